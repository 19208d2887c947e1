"""What the store reads and writes, independent of DuckDB: histories, and batches of commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from ivm.rows import Words
from ivm.words import Schema
from storage.record import NO_ENTRIES, Entries, RelationUpdate, SequenceMark


class History(NamedTuple):
    """Updates in time: ``rows`` int64[n, width], ``epochs`` int64[n], ``diffs`` int64[n]."""

    rows: Words
    epochs: Words
    diffs: Words


FEW: Final = 64
"""So many values are handled faster one by one than as an array."""


def history_of(parts: Sequence[tuple[int, RelationUpdate]]) -> History:
    """One relation's updates, each with its epoch."""
    rows = np.concatenate([u.rows for _, u in parts]) if len(parts) > 1 else parts[0][1].rows
    diffs = np.concatenate([u.diffs for _, u in parts]) if len(parts) > 1 else parts[0][1].diffs
    if len(parts) == 1:  # without a copy: a load may be large
        epoch, count = parts[0][0], len(rows)
        few = count <= FEW
        epochs = np.array([epoch] * count, np.int64) if few else np.broadcast_to(np.int64(epoch), count)
        return History(rows, epochs, diffs)
    epochs = np.array([epoch for epoch, _ in parts], np.int64)
    return History(rows, epochs.repeat([len(u.rows) for _, u in parts]), diffs)


NO_WORDS: Final = np.zeros(0, np.int64)

_ERRORS: Final = 1 << 60
"""Added to a view's id: more relations than there can be."""


def errors_of(view: int) -> int:
    """The store's relation of a view's error rows, each of one word. It exists if the view has ever had one."""
    return view + _ERRORS


def owner_of(relation: int) -> int:
    """The view of a relation of error rows; any other relation itself."""
    return relation - _ERRORS if relation >= _ERRORS else relation


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """A table or materialized view to keep. Names only label its typed view."""

    id: int
    schema: Schema
    name: str = ""
    column_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class WriteBatch:
    """All changes of the commits above the store's high water up to ``high_water``, tables and views together.

    ``log_sequence``: the log record that ends the batch. ``catalog``: the whole catalog as of then, None if unchanged.
    ``loads``: what is known from now on of a commit's loads, by epoch; None: nothing any more. ``sequences``: the
    positions of those that moved; the last one of each counts. ``leaving``: ids of dictionary entries to delete before
    ``entries`` are added; no update of this batch or an earlier one names them, unless they come again. ``files``: row
    files that are no longer needed once this is in the store. ``filed``: the number of updates in them. ``emptied``:
    (relation, epoch), by epoch: what the relation had before that epoch leaves it then, before its updates of that
    epoch. ``lagging``: views, created in this batch, whose contents come later. ``caught_up``: views that lagged; their
    updates may be older than the high water.
    """

    high_water: int
    log_sequence: int
    relations: dict[int, History] = field(default_factory=dict)
    entries: Entries = NO_ENTRIES
    catalog: bytes | None = None
    created: tuple[StoredRelation, ...] = ()
    dropped: tuple[int, ...] = ()
    loads: Mapping[int, str | None] = field(default_factory=dict)
    sequences: tuple[SequenceMark, ...] = ()
    leaving: Words = field(default_factory=lambda: NO_WORDS)
    files: tuple[Path, ...] = ()
    filed: int = 0
    emptied: tuple[tuple[int, int], ...] = ()
    lagging: tuple[int, ...] = ()
    caught_up: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of updates."""
        found = 0
        for history in self.relations.values():
            found += len(history.diffs)
        return found

    @property
    def pressing(self) -> int:
        """The updates that count towards backpressure, for their memory: all but the initial contents of new relations
        and what is in files."""
        found = self.size - self.filed
        for relation in self.created:
            if relation.id in self.relations:
                found -= len(self.relations[relation.id].diffs)
        return max(0, found)


def merge_batches(batches: Sequence[WriteBatch]) -> WriteBatch:
    """Concatenates consecutive batches (at least one, oldest first). Cost: O(size)."""
    if len(batches) == 1:
        return batches[0]
    histories: dict[int, list[History]] = {}
    for batch in batches:
        for relation, history in batch.relations.items():
            histories.setdefault(relation, []).append(history)
    catalogs = [batch.catalog for batch in batches if batch.catalog is not None]
    return WriteBatch(
        batches[-1].high_water,
        batches[-1].log_sequence,
        {relation: _concatenate(parts) for relation, parts in histories.items()},
        merge_entries([batch.entries for batch in batches]),
        catalogs[-1] if catalogs else None,
        tuple(relation for batch in batches for relation in batch.created),
        tuple(relation for batch in batches for relation in batch.dropped),
        dict(load for batch in batches for load in batch.loads.items()),
        tuple({mark.storage: mark for batch in batches for mark in batch.sequences}.values()),
        np.concatenate([batch.leaving for batch in batches]),
        tuple(file for batch in batches for file in batch.files),
        sum(batch.filed for batch in batches),
        tuple(emptied for batch in batches for emptied in batch.emptied),
        tuple(view for batch in batches for view in batch.lagging),
        tuple(view for batch in batches for view in batch.caught_up),
    )


def merge_entries(parts: Sequence[Entries]) -> Entries:
    """Concatenates dictionary entries of several sources that share no id."""
    parts = [part for part in parts if len(part.ids)]
    if len(parts) <= 1:
        return parts[0] if parts else NO_ENTRIES
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.concatenate([part.data[part.offsets[0] : part.offsets[-1]] for part in parts])
    return Entries(np.concatenate([part.ids for part in parts]), data, offsets)


def _concatenate(parts: Sequence[History]) -> History:
    if len(parts) == 1:
        return parts[0]
    return History(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.epochs for part in parts]),
        np.concatenate([part.diffs for part in parts]),
    )


@dataclass(frozen=True, slots=True)
class Lag:
    """Of a view that the store has as of ``epoch``, while everything else is newer (0: it has nothing of it). ``slow``:
    filling it took long."""

    epoch: int
    slow: bool = False
