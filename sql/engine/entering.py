"""Dictionary entries on their way to the log and the store, and the removal of dead ones from the store."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ivm.rows import Words
from storage.dictionary import Dictionary
from storage.record import NO_ENTRIES, Entries
from storage.stored import NO_WORDS, merge_entries


@dataclass(slots=True)
class Entering:
    """Invariant: an entry is in the log before, or in the same record as, the first row that refers to it, and reaches
    the store no later than that row. A removed entry that is added again reaches the store after its removal. Used on
    the engine's thread only."""

    dictionary: Dictionary
    leaving: list[Words] = field(default_factory=list)
    """Ids that a sweep has declared dead. The next batch removes their entries from the store."""
    _unlogged: list[Entries] = field(default_factory=list)
    _unapplied: list[Entries] = field(default_factory=list)

    def load(self, entries: Entries) -> None:
        """Load the entries of a replayed log record, which the store may not have yet.

        Entries derived before it go into the next record, since the log's records may lack them.
        """
        self._unlogged.append(self._drain())
        fresh = self.dictionary.load(*entries)
        if len(fresh):
            self._unapplied.append(Entries(fresh, *self.dictionary.packed(fresh)))

    def to_log(self) -> Entries:
        """All entries that no record has yet, including those that the last steps derived, since later rows may refer
        to them."""
        if not self._unlogged and not self.dictionary.has_new:
            return NO_ENTRIES
        parts = [*self._unlogged, self._drain()]
        self._unlogged.clear()
        return self._living(merge_entries(parts))

    def to_store(self) -> tuple[Entries, Words]:
        """The entries for the next batch, and the ids that it removes first."""
        if self.dictionary.has_new:
            self._unlogged.append(self._drain())
        entries = NO_ENTRIES
        if self._unapplied:
            entries, self._unapplied = self._living(merge_entries(self._unapplied)), []
        leaving = np.concatenate(self.leaving) if self.leaving else NO_WORDS
        self.leaving.clear()
        return entries, leaving

    def _living(self, entries: Entries) -> Entries:
        """The entries that no sweep has declared dead since they were drained; one that is added again is drained
        again."""
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
