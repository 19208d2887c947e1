"""The changes that wait for a job of a view that Spark maintains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ivm.rows import Words
from storage.stored import History

MOST_WAITING: Final = 2_000_000
"""The most updates that wait in memory. More of them are read from the store when their job begins."""

Histories = dict[int, list[History]]
"""Updates by table, oldest first."""


@dataclass(slots=True)
class Taken:
    """The changes that a job applies: all of them up to ``epoch``. ``first``: the epoch of the oldest one. ``spilled``:
    they are in the store only."""

    changes: Histories
    epoch: int
    first: int | None
    spilled: bool


class PendingChanges:
    """The changes of a view's ``tables``: those that wait, and those that a job has taken.

    Not thread-safe: the view's lock guards it. ``spills``: whether there is a store to read them from.
    """

    def __init__(self, tables: tuple[int, ...], seen: int, spills: bool) -> None:
        self.tables = tables
        self.seen = seen
        """The epoch of the last group that was noted."""
        self.taken: Taken | None = None
        self._spills = spills
        self.changes: Histories = {}
        """The changes waiting in memory."""
        self._count = 0
        self._first: int | None = None
        self._spilled = False

    @property
    def waits(self) -> bool:
        """Whether there is something to take."""
        return bool(self.changes) or self._spilled

    @property
    def count(self) -> int:
        """The number of updates in memory, those of the running job included."""
        return self._count + (0 if self.taken is None else _updates(self.taken.changes))

    @property
    def covered(self) -> int:
        """The epoch up to which everything is applied."""
        missing = [self._first, None if self.taken is None else self.taken.first]
        return min((first - 1 for first in missing if first is not None), default=self.seen)

    def words(self) -> list[Words]:
        """The rows in memory."""
        parts = [self.changes, {} if self.taken is None else self.taken.changes]
        return [h.rows for changes in parts for some in changes.values() for h in some]

    def add(self, epoch: int, changes: Mapping[int, History]) -> None:
        """Add the changes of a published group."""
        for relation in self.tables:
            history = changes.get(relation)
            if history is not None and len(history.diffs):
                self.changes.setdefault(relation, []).append(history)
                self._see(history)
        self.seen = epoch
        self._spill()

    def add_before(self, changes: Mapping[int, History]) -> None:
        """Add changes that are older than those that wait."""
        for relation, history in changes.items():
            self.changes[relation] = [history, *self.changes.get(relation, [])]
            self._see(history)

    def take(self) -> Taken:
        """Hand all waiting changes to a job, which ends with ``applied`` or ``give_back``."""
        self.taken = Taken(self.changes, self.seen, self._first, self._spilled)
        self.changes, self._count, self._first, self._spilled = {}, 0, None, False
        return self.taken

    def applied(self) -> None:
        """The job has succeeded."""
        self.taken = None

    def give_back(self) -> None:
        """The job has failed: its changes wait again."""
        taken, self.taken = self.taken, None
        if taken is not None:
            for relation, histories in taken.changes.items():
                self.changes[relation] = [*histories, *self.changes.get(relation, [])]
            self._count += _updates(taken.changes)
            self._first = self._first if taken.first is None else taken.first
            self._spilled |= taken.first is not None and not taken.changes
        self._spill()

    def _see(self, history: History) -> None:
        self._count += len(history.diffs)
        oldest = int(history.epochs.min())
        self._first = oldest if self._first is None else min(self._first, oldest)

    def _spill(self) -> None:
        """Drop waiting changes from memory if they exceed the limit; the store has them."""
        if self._spills and (self._spilled or self._count > MOST_WAITING):
            self.changes, self._count, self._spilled = {}, 0, True


def _updates(changes: Histories) -> int:
    return sum(len(h.diffs) for some in changes.values() for h in some)
