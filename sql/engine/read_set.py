"""What transactions have read, and what has been committed since.

A transaction that promises to be serializable may commit if no commit since its snapshot has changed what it has read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ivm.rows import Words
from planner.peek.affected import Asked, AskedKey
from storage.stored import History

GROUPS: Final = 4096
"""The most groups of commits that are remembered."""
WORDS: Final = 1 << 22
"""The most words of their rows."""
STATEMENTS: Final = 256
"""The most statements of a transaction that are remembered one by one."""
LARGE: Final = 10_000
"""The most rows of a relation in a group that are remembered; more are taken for all rows there may be."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A statement over ``relations``; if what it ``asked`` is not known, all of them has been read."""

    relations: frozenset[int]
    asked: Asked | AskedKey | None = None

    def meets(self, relation: int, rows: Words | None) -> bool:
        """Whether it may have read one of these rows, or (None) any rows, of a relation."""
        if relation not in self.relations:
            return False
        return rows is None or self.asked is None or self.asked.may_read(relation, rows)


@dataclass(slots=True)
class ReadSet:
    """What a transaction has read. ``whole``: relations of which everything is taken for read."""

    readings: list[Reading] = field(default_factory=list)
    whole: frozenset[int] = frozenset()

    def mark(self) -> tuple[int, frozenset[int]]:
        """What it has, for ``return_to``."""
        return len(self.readings), self.whole

    def return_to(self, mark: tuple[int, frozenset[int]]) -> None:
        """Forget what has been read since."""
        del self.readings[mark[0] :]
        self.whole = mark[1]

    def __bool__(self) -> bool:
        return bool(self.readings or self.whole)

    @property
    def relations(self) -> frozenset[int]:
        return self.whole.union(*(r.relations for r in self.readings))

    def add(self, reading: Reading) -> None:
        if not reading.relations - self.whole:
            return
        if reading.asked is None or len(self.readings) >= STATEMENTS:
            self.whole |= reading.relations
        else:
            self.readings.append(reading)

    def meets(self, relation: int, rows: Words | None) -> bool:
        """Whether one of these rows of a relation may have been read."""
        return relation in self.whole or any(r.meets(relation, rows) for r in self.readings)


class RecentCommits:
    """The changes of the last groups of commits, by the ordinals at which they ended."""

    def __init__(self) -> None:
        self._groups: deque[tuple[int, dict[int, Words | None]]] = deque()
        self._words = 0
        self._forgotten = 0
        """The newest ordinal that is no longer remembered."""

    def add(self, ordinal: int, changes: Mapping[int, History]) -> None:
        """Remember a group that ends at an ordinal."""
        kept: dict[int, Words | None] = {}
        for relation, history in changes.items():
            rows = history.rows
            if len(rows) > LARGE:
                kept[relation] = None
            else:
                kept[relation] = rows
                self._words += rows.size
        self._groups.append((ordinal, kept))
        while self._words > WORDS or len(self._groups) > GROUPS:
            self._forgotten, gone = self._groups.popleft()
            self._words -= _words(gone)

    def conflicts(self, reads: ReadSet, since: int) -> bool:
        """Whether a commit after an ordinal has changed what was read; true if that is no longer known."""
        if since < self._forgotten:
            return True
        wanted: frozenset[int] | None = None
        for ordinal, changes in reversed(self._groups):
            if ordinal <= since:
                break
            if wanted is None:
                wanted = reads.relations
            if any(reads.meets(relation, rows) for relation, rows in changes.items() if relation in wanted):
                return True
        return False

    def rows_since(self, relation: int, since: int) -> Words | None:
        """The rows of a relation that commits after an ordinal have added or removed; None: they are not known, or are
        too many. On any thread."""
        groups = tuple(self._groups)  # at once: the engine's thread goes on adding
        found = [changes[relation] for ordinal, changes in groups if ordinal > since and relation in changes]
        known = [rows for rows in found if rows is not None]
        if since < self._forgotten or len(known) < len(found):
            return None
        rows: Words = np.concatenate(known or [np.zeros((0, 1), np.int64)])
        return rows


def _words(changes: Mapping[int, Words | None]) -> int:
    return sum([rows.size for rows in changes.values() if rows is not None])
