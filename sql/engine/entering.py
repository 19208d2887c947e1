"""Dictionary entries on their way to the log and the store, and those that leave the store."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ivm.rows import Words
from storage.dictionary import Dictionary
from storage.record import Entries
from storage.stored import NO_WORDS, merge_entries


@dataclass(slots=True)
class Entering:
    """Invariant: an entry is in the log before, or in the same record as, the first row that names it, and comes to the
    store no later than that row; one that has left and comes back comes after it left. Only on the engine's thread."""

    dictionary: Dictionary
    leaving: list[Words] = field(default_factory=list)
    """Ids that a sweep has declared dead, whose entries the next batch takes from the store."""
    _unlogged: list[Entries] = field(default_factory=list)
    _unapplied: list[Entries] = field(default_factory=list)

    def load(self, entries: Entries) -> None:
        """Entries of a log record that is replayed: the store may not have them yet.

        What was derived before goes into the next record: none of the log's may have it.
        """
        self._unlogged.append(self._drain())
        fresh = self.dictionary.load(*entries)
        if len(fresh):
            self._unapplied.append(Entries(fresh, *self.dictionary.packed(fresh)))

    def to_log(self) -> Entries:
        """Every entry that no record has yet: also what the last steps derived, since later rows may name it."""
        parts = [*self._unlogged, self._drain()]
        self._unlogged.clear()
        return self._living(merge_entries(parts))

    def to_store(self) -> tuple[Entries, Words]:
        """What the next batch brings, and the ids of what it takes away first."""
        self._unlogged.append(self._drain())
        entries, self._unapplied = self._living(merge_entries(self._unapplied)), []
        leaving = np.concatenate(self.leaving) if self.leaving else NO_WORDS
        self.leaving.clear()
        return entries, leaving

    def _living(self, entries: Entries) -> Entries:
        """Without those that a sweep has declared dead since they came; one that comes back is drained again."""
        if not self.dictionary.guarded or not len(entries.ids):
            return entries
        places = self.dictionary.living(entries.ids)
        if len(places) == len(entries.ids):
            return entries
        ids = entries.ids[places]
        return Entries(ids, *self.dictionary.packed(ids))

    def _drain(self) -> Entries:
        entries = merge_entries([Entries(*e) for e in self.dictionary.drain_new()])
        if len(entries.ids):
            self._unapplied.append(entries)
        return entries
