"""Who follows the changes of relations as they are committed: subscriptions.

The thread that publishes a group of commits hands it over once, however many followers there are. The event loop tells
them in rounds, a slice of time at a time, so that other clients are answered meanwhile; the groups that come during a
round are told together in the next. Followers that listen in the same form get the same bytes, written once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter
from typing import Final

import numpy as np

from sql.engine.engine import Engine
from sql.engine.group import Delta
from sql.engine.snapshot import Published
from storage.stored import History

log = logging.getLogger("freshet.followers")

Follower = Callable[[Delta, Published, Published], None]
"""Called on the event loop with changes, and the published states before and after them."""
SLICE_SECONDS: Final = 0.0005
"""How long followers are told before others have their turn. A client takes some 10 µs."""
AGAIN_SECONDS: Final = 0.0005
MOST_BUSY_SECONDS: Final = 0.004
"""How long a round waits, between two slices, for the engine to be idle."""
MOST_FORMS: Final = 10_000
"""How many forms are known by number before numbering begins anew; those who listen keep theirs."""


@dataclass(frozen=True, slots=True)
class Written:
    """Changes as they are sent: ``data``, of which ``size`` bytes are of the ``rows`` themselves."""

    data: bytes
    rows: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Listening:
    """A follower whose client waits for nothing but changes.

    ``write``: what is sent of changes, the same for all of one ``form``; None: each follower must be told. ``push``:
    sends it; False: this follower must be told.
    """

    form: int
    write: Callable[[Delta, Published], Written | None]
    push: Callable[[Written], bool]


@dataclass(slots=True)
class _Told:
    """The newest state that a follower knows of; ``listening``, if it is."""

    known: Published
    listening: Listening | None = None


@dataclass(slots=True)
class _Round:
    """Groups that are told together, and the followers that are left."""

    groups: list[tuple[Delta, Published]]
    left: Iterator[Follower]
    _deltas: dict[int, Delta] = field(default_factory=dict)
    _written: dict[tuple[int, int], Written | None] = field(default_factory=dict)

    @property
    def published(self) -> Published:
        return self.groups[-1][1]

    def first(self, after: Published) -> int:
        """The place of the first group after a state."""
        if self.groups[0][1].ordinal > after.ordinal:
            return 0
        return next(i for i, (_, published) in enumerate(self.groups) if published.ordinal > after.ordinal)

    def delta(self, first: int) -> Delta:
        """The changes of the groups from this one on."""
        if first not in self._deltas:
            self._deltas[first] = merged([delta for delta, _ in self.groups[first:]])
        return self._deltas[first]

    def written(self, first: int, listening: Listening) -> Written | None:
        """What is sent of them to a follower that listens; None: it must be told, also of an error in writing."""
        key = first, listening.form
        if key not in self._written:
            try:
                self._written[key] = listening.write(self.delta(first), self.published)
            except Exception:
                log.exception("changes could not be written for all that listen")
                self._written[key] = None
        return self._written[key]


class Followers:
    """Made on the event loop."""

    def __init__(self, engine: Engine, busy: Callable[[], bool] = lambda: False) -> None:
        """``busy``: whether other clients wait for the engine, which then has the processor to itself for a while."""
        self._engine, self._busy = engine, busy
        self._left_off = 0.0
        self._loop = asyncio.get_running_loop()
        self._followers: dict[Follower, _Told] = {}
        self._groups: deque[tuple[Delta, Published]] = deque()
        """Published, and not told of yet. The publishing thread adds to it."""
        self._round: _Round | None = None
        self._forms: dict[Hashable, int] = {}
        self._numbers = count()
        engine.listeners.append(self._published)

    def __len__(self) -> int:
        return len(self._followers)

    @property
    def telling(self) -> bool:
        """Whether some have not been told yet of what has been published."""
        return self._round is not None or len(self._groups) > 0

    def add(self, follower: Follower) -> None:
        """Tell a follower of all groups after the published one. On the thread that owns the engine."""
        self._followers[follower] = _Told(self._engine.published)

    def remove(self, follower: Follower) -> bool:
        """Tell it nothing more; whether it was told until now. On any thread."""
        return self._followers.pop(follower, None) is not None

    def form(self, meaning: Hashable) -> int:
        """A number for all that decides what is written of changes: numbers are compared faster."""
        if len(self._forms) > MOST_FORMS:
            self._forms.clear()
        known = self._forms.get(meaning)
        if known is None:
            known = self._forms[meaning] = next(self._numbers)
        return known

    def listen(self, follower: Follower, listening: Listening | None) -> None:
        """Let a follower get what is written, as long as that goes, instead of being told; None: no longer."""
        told = self._followers.get(follower)
        if told is not None:
            told.listening = listening

    def _published(self, delta: Delta, published: Published) -> None:
        if self._followers:
            self._groups.append((delta, published))
            self._loop.call_soon_threadsafe(self._arrived)

    def _arrived(self) -> None:
        if self._round is None:
            self._go_on()

    def _resume(self) -> None:
        if self._busy() and perf_counter() < self._left_off + MOST_BUSY_SECONDS:
            self._loop.call_later(AGAIN_SECONDS, self._resume)
        else:
            self._go_on()

    def _go_on(self) -> None:
        """Tell followers until the slice of time is over, then leave the rest to the next turn of the event loop."""
        until = perf_counter() + SLICE_SECONDS
        while self._round is not None or self._groups:
            if self._round is None:
                groups = [self._groups.popleft() for _ in range(len(self._groups))]
                self._round = _Round(groups, iter(tuple(self._followers)))
            for follower in self._round.left:
                try:
                    self._tell(follower, self._round)
                except Exception:
                    log.exception("a follower of changes failed")
                if perf_counter() > until:
                    self._left_off = perf_counter()
                    self._loop.call_later(0, self._resume)  # behind what has come meanwhile, as call_soon is not
                    return
            self._round = None

    def _tell(self, follower: Follower, around: _Round) -> None:
        told, published = self._followers.get(follower), around.published
        if told is None or told.known.ordinal >= published.ordinal:
            return
        before, told.known = told.known, published
        first, listening = around.first(before), told.listening
        if listening is not None:
            written = around.written(first, listening)
            if written is not None and (not written.rows or listening.push(written)):
                return
        follower(around.delta(first), before, published)


def merged(deltas: list[Delta]) -> Delta:
    """The changes of several groups, in their order, as one."""
    if len(deltas) == 1:
        return deltas[0]
    parts: dict[int, list[History]] = {}
    for delta in deltas:
        for relation, history in delta.changes.items():
            parts.setdefault(relation, []).append(history)
    changes = {
        relation: History(*(np.concatenate(column) for column in zip(*histories, strict=True)))
        for relation, histories in parts.items()
    }
    return Delta(deltas[-1].epoch, changes)
