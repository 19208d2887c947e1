"""Views that were up when the server ended and are not filled yet: the store has them as of an earlier epoch than
everything else.

After a start, views are filled beside the engine, and commits go on. Until a view is back its changes do not enter the
store, which notes that durably (``Store.lagging``). Memory keeps the history since the start, so the view comes back
with what it would have held at every commit since, and the store gets these changes with their own epochs, as if it had
never been away. If that cannot be, it counts as a view that was down.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ivm.dataflow import Changes
from sql.engine.state import EngineState
from storage.stored import History


class Lagging:
    """Part of the next batch for the store: ``new``, ``caught_up``.

    ``upto``: the epoch as of which the store has each such view; 0: it has nothing of it.
    """

    def __init__(self, engine: EngineState) -> None:
        self._engine = engine
        self.upto: dict[int, int] = {}
        self.new: list[int] = []
        self.caught_up: list[int] = []
        self._whole: set[int] = set()
        """Those for which memory keeps history."""
        self._base = -1
        self._epoch = 0
        self._away: set[int] = set()
        """The views that have come back without their history since the start."""

    def start(self, views: Iterable[int]) -> None:
        """From the present on, memory keeps history until these views are back."""
        engine = self._engine
        assert engine.persistence is not None
        self._base, self._epoch = engine.timeline.last, engine.timeline.epoch(engine.timeline.last)
        self.upto = dict.fromkeys(views, self._epoch)
        earlier = engine.persistence.store.lagging
        engine.persistence.store.begin_lag(self.upto)
        self.upto |= {view: lag.epoch for view, lag in earlier.items() if view in self.upto}
        self._whole = {view for view, upto in self.upto.items() if upto == self._epoch}
        if self._whole:
            engine.dataflow.hold(self)

    def add(self, view: int) -> None:
        """A view that is created while the log is replayed."""
        if not self._whole:
            self._engine.dataflow.hold(self)
        self._whole.add(view)
        self.upto[view] = 0
        self.new.append(view)

    def was_away(self, view: int) -> None:
        """A view is back, but memory has nothing of it from before."""
        self._away.add(view)

    def is_whole(self, view: int, inputs: Iterable[int]) -> bool:
        """Whether a view can come back with its history: memory and the store have all of what it reads."""
        return view in self._whole and self._away.isdisjoint((view, *inputs))

    def leave(self, view: int) -> None:
        """A view is not to be filled for now: memory need not keep history for it."""
        self._whole.discard(view)
        if not self._whole:
            self._engine.dataflow.drop_hold(self)

    def whole(self, view: int, contents: dict[int, list[Changes]]) -> tuple[dict[int, History], int]:
        """What the store does not have yet of a view's contents since the start; how many rows it has."""
        found: dict[int, History] = {}
        base = self._base if self.upto[view] else -1
        known = 0
        created = self._engine.catalog.relations[view].created
        for relation, parts in contents.items():
            rows, times, diffs = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            new = times > base
            if relation == view:
                known = int(diffs[~new].sum())
            if new.any():
                epochs = np.maximum(self._engine.timeline.epochs(times[new]), created)
                found[relation] = History(rows[new], epochs, diffs[new])
        return found, known

    def end(self, view: int) -> int | None:
        """A view does not lag any more, or is gone; the epoch as of which the store had it."""
        upto = self.upto.pop(view, None)
        if upto is not None:
            self.caught_up.append(view)
        self.leave(view)
        return upto

    def take(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What was noted since the last call."""
        taken = tuple(self.new), tuple(self.caught_up)
        self.new, self.caught_up = [], []
        return taken
