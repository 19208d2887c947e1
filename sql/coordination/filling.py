"""Filling a materialized view beside the engine: its new nodes in a small dataflow, which catches up with the commits.

``Creation`` (``hydration.py``) fills a view that is created, ``Refill`` (``refilling.py``) one whose rows were wrong.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from typing import Final

import numpy as np

from ivm.dataflow import Changes
from ivm.errors import SqlError
from ivm.graph import NodeId
from ivm.hydration.detached import Detached, NotDetachableError, detach
from planner.physical.nodes import Plan
from planner.render.dataflow import Installed, Renderer
from sql.catalog.catalog import Relation
from sql.coordination.prepared import StaleError
from sql.engine.engine import Engine
from storage.stored import History, errors_of

HURRY_SECONDS: Final = 2.0


class HydrationPhase(Enum):
    """The progress of a view that is being created, as freshet.hydrations shows it."""

    WAITING = "waiting"
    PLANNING = "planning"
    HYDRATING = "hydrating"
    CATCHING_UP = "catching up"
    TAKING_OVER = "taking over"


@dataclass(slots=True)
class Filling(ABC):
    """The state of one view that is being filled. ``plan`` and ``run`` may be called on any thread, one at a time;
    everything else belongs to the engine thread. ``behind``: the number of updates received last. ``present``: as in
    ``detach``.
    """

    engine: Engine
    _: KW_ONLY
    present: bool = False
    cancel: threading.Event = field(default_factory=threading.Event)
    phase: HydrationPhase = HydrationPhase.WAITING
    behind: int | None = None
    _view: Relation | None = None
    _plan: Plan | None = None
    _flow: Detached | None = None
    _renderer: Renderer | None = None
    _installed: Installed | None = None
    _contents: dict[int, list[Changes]] = field(default_factory=dict)

    @property
    def place(self) -> tuple[int, int, int] | None:
        """The numbers of the view's operators, of those that this pass has reached, and of the updates that they hold;
        None before it runs."""
        return None if self._flow is None else self._flow.place

    @property
    def hurry(self) -> float:
        """How long a loop may catch up with the last commits while others wait."""
        return HURRY_SECONDS

    @abstractmethod
    def plan(self) -> None:
        """Make the physical plan, with today's arrangements."""

    @abstractmethod
    def check_current(self) -> None:
        """StaleError: what the view reads has changed since it was planned."""

    @abstractmethod
    def finish(self) -> None:
        """Catch up, take over the view and commit it. StaleError as in ``check_current``."""

    def begin(self) -> bool:
        """Create the view's nodes. False if they would have to read the running dataflow itself."""
        engine, plan, view = self.engine, self._plan, self._view
        assert plan is not None
        assert view is not None
        engine.flush()
        engine.settle()
        self.check_current()

        def make(flow: Detached) -> Renderer:
            renderer = engine.renderer.beside(flow)
            self._make(renderer, plan, view.id)
            return renderer

        try:
            self._flow, self._renderer = detach(engine.dataflow, make, self.cancel, self.present)
        except NotDetachableError:
            return False
        return True

    def _make(self, renderer: Renderer, plan: Plan, view: int) -> None:
        """Add the view's nodes beside the engine. NotDetachableError: only the engine itself can."""
        self._installed = renderer.install(plan, view)

    def run(self) -> None:
        """Hydrate, or catch up with the changes that the last ``advance`` received."""
        self._catch_up()
        self._contents = {relation: [_added_up(parts)] for relation, parts in self._contents.items()}

    def _compute(self, flow: Detached) -> None:
        """Hydrate or catch up."""
        flow.run()

    def _caught_up(self) -> Detached:
        """For ``finish``: the view's nodes, with all commits."""
        assert self._flow is not None
        self.advance()
        self.check_current()
        if not self._flow.sound:
            raise StaleError
        self._flow.limit_loops(self._too_slow)  # commits wait
        self._catch_up()
        return self._flow

    def _too_slow(self, seconds: float, patience: float) -> SqlError | None:
        del patience
        if seconds < self.hurry:
            return None
        return SqlError("54001", "the view cannot catch up with the last commits in time")

    def _catch_up(self) -> None:
        assert self._flow is not None
        self._compute(self._flow)
        for relation, output in self._outputs():
            failure = self._flow.failure(output)
            if failure is not None:
                raise SqlError(failure.sqlstate, failure.message, failure.detail, failure.hint)
            changes = self._flow.changes(output)
            if len(changes.rows):
                self._contents.setdefault(relation, []).append(changes)

    def _outputs(self) -> list[tuple[int, NodeId]]:
        """(relation in the store, Output node) of the view, of its error rows, and of the state of its locked joins."""
        assert self._installed is not None
        assert self._renderer is not None
        view, errors = self._installed.relation, self._installed.errors
        locks = self._renderer.stored[view].locks
        failing = [] if errors is None else [(errors_of(view), errors)]
        return [(view, self._installed.output), *failing, *((name, lock.output) for name, lock in locks.items())]

    def advance(self) -> int:
        """Receive the commits since the last call; the number of updates."""
        assert self._flow is not None
        self.engine.flush()
        self.engine.settle()
        return self._flow.advance()

    def abandon(self) -> None:
        """Free everything that was created."""
        if self._flow is not None:
            self._flow.abandon()
            self.engine.failing.let_go()

    def _histories(self, epoch: int) -> dict[int, History]:
        """The contents to store, as of the view's creation."""
        added = {relation: _added_up(parts) for relation, parts in self._contents.items()}
        return {i: History(c.rows, np.full(len(c.rows), epoch, np.int64), c.diffs) for i, c in added.items()}


def _added_up(parts: list[Changes]) -> Changes:
    if len(parts) == 1:
        return parts[0]
    return Changes(
        *(np.concatenate(arrays) for arrays in zip(*((c.rows, c.times, c.diffs) for c in parts), strict=True))
    )
