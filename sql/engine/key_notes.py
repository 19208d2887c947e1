"""Changes in the number of rows with each key, which the arrangements do not show yet."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from operator import itemgetter

from planner.physical.key_checks import KeyName

Place = tuple[int, KeyName]
"""A table's id and one of its keys."""


@dataclass(slots=True)
class KeyNotes:
    """``since``: for each key, the change in its count. A table in ``bulk`` has too many changes to note each: it is
    stepped before its keys are looked up."""

    since: dict[Place, dict[bytes, int]] = field(default_factory=dict)
    bulk: set[int] = field(default_factory=set)

    def add(self, place: Place, key: bytes, diff: int) -> None:
        counts = self.since.setdefault(place, {})
        counts[key] = counts.get(key, 0) + diff

    def clear(self) -> None:
        self.since.clear()
        self.bulk.clear()

    def take(self, other: KeyNotes) -> None:
        """Add another's notes."""
        self.bulk |= other.bulk
        for place, counts in other.since.items():
            for key, diff in counts.items():
                self.add(place, key, diff)


@dataclass(slots=True)
class WriterNotes:
    """The notes of one writer's updates, each with the position of its update, and (``unfed``) those of the updates
    that are not fed."""

    entries: list[tuple[int, Place, bytes, int]] = field(default_factory=list)
    large: list[tuple[int, int]] = field(default_factory=list)
    """(position, table) of updates with too many rows to note each."""
    unfed: KeyNotes = field(default_factory=KeyNotes)
    _fed: int = 0
    """The number of entries, the first ones, that are not in ``unfed``."""

    def note(self, position: int, place: Place, key: bytes, diff: int) -> None:
        self.entries.append((position, place, key, diff))
        self.unfed.add(place, key, diff)

    def note_large(self, position: int, table: int) -> None:
        self.large.append((position, table))
        self.unfed.bulk.add(table)

    def forget(self, updates: int) -> None:
        """Forget the notes of all but the first ``updates``. Cost: those notes."""
        while self.entries and self.entries[-1][0] >= updates:
            _, place, key, diff = self.entries.pop()
            if len(self.entries) >= self._fed:
                self.unfed.add(place, key, -diff)
        self._fed = min(self._fed, len(self.entries))
        while self.large and self.large[-1][0] >= updates:
            self.large.pop()  # its table stays in bulk, at the price of a step

    def stepped(self) -> None:
        """All updates are fed, and have been stepped."""
        self.unfed.clear()
        self._fed = len(self.entries)

    def taken_out(self, updates: int = 0) -> None:
        """Only the first ``updates`` are fed, and have been stepped."""
        self.unfed.clear()
        self._fed = bisect_left(self.entries, updates, key=itemgetter(0))
        for _, place, key, diff in self.entries[self._fed :]:
            self.unfed.add(place, key, diff)
        self.unfed.bulk.update(table for position, table in self.large if position >= updates)
