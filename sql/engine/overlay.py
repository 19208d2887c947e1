"""A transaction's pending changes as an overlay: lookups by key see both the stepped state and the pending changes.

A transaction of several small statements is stepped once, at its end. Until then its later statements read the tables
that earlier ones changed through these overlays. Only directly run plans may use them: a dataflow reads versions by
their descriptors, which do not include an overlay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ivm.distinct import distinct_rows
from ivm.graph import Gather
from ivm.rows import Words
from ivm.trace.ranges import Layer
from ivm.trace.trace import Version
from planner import gathers
from planner.expr.context import Context
from planner.physical.layouts import StoredKey, table_layout
from planner.physical.row_programs import MapFilter
from sql.engine.snapshot import MemorySnapshot, Published

FEW: Final = 64
"""The most pending rows to overlay; with more, the transaction is stepped first."""

Pending = Mapping[int, tuple[Words, Words]]
"""By table: rows in its schema's layout and their diffs."""


class OverlaidVersion(Version):
    """A version and some additional updates. Cost of a lookup: the version's, and rows × keys comparisons."""

    __slots__ = ("_base", "_diffs", "_rows")

    def __init__(self, base: Version, rows: Words, diffs: Words) -> None:
        """``rows``: int64[n, width] as arranged."""
        self._base = base
        self._rows = rows
        self._diffs = diffs
        self.width = base.width
        self.key_width = base.key_width
        self.since = base.since
        self.upper = base.upper

    @property
    def count(self) -> int:
        return self._base.count + len(self._rows)

    def total(self, at: int) -> int | None:
        below = self._base.total(at)
        return None if below is None else below + int(self._diffs.sum())

    def rows_at(self, at: int) -> tuple[Words, Words]:
        """The transaction's own rows come last, in the order of its statements."""
        rows, diffs = self._base.rows_at(at)
        near = np.isin(rows[:, 0], self._rows[:, 0])
        met, sums = _consolidated(np.concatenate([rows[near], self._rows]), np.concatenate([diffs[near], self._diffs]))
        return np.concatenate([rows[~near], met]), np.concatenate([diffs[~near], sums])

    def rows_in_place(self, at: int) -> None:
        """Its rows are in several pieces."""

    def lookup(self, keys: Words, at: int) -> tuple[Words, Words, Words]:
        rows, diffs, index = self._base.lookup(keys, at)
        mine, where = np.nonzero((self._rows[:, None, : self.key_width] == keys[None]).all(axis=2))
        if not len(mine):
            return rows, diffs, index
        every = np.concatenate([np.column_stack([index, rows]), np.column_stack([where, self._rows[mine]])])
        found, sums = _consolidated(every, np.concatenate([diffs, self._diffs[mine]]))
        order = np.argsort(found[:, 0], kind="stable")
        found, sums = found[order], sums[order]
        return np.ascontiguousarray(found[:, 1:]), sums, found[:, 0]

    def layers(self) -> tuple[Layer, ...] | None:
        below = self._base.layers()
        order = np.lexsort(self._rows.T[::-1])
        mine = Layer(self._rows[order], np.zeros(len(order), np.int64), self._diffs[order])
        return None if below is None else (*below, mine)

    def timeless(self) -> Words:
        raise AssertionError("an overlaid version has no descriptor")


@dataclass(frozen=True, slots=True)
class OverlaidSnapshot(MemorySnapshot):
    """A snapshot that includes the pending changes."""

    pending: Pending | None = None
    context: Context | None = None
    """Computes the keys of pending rows in arrangements by expressions; needed if there are pending rows."""
    _known: dict[tuple[int, StoredKey], Version] = field(default_factory=dict)

    def version(self, relation: int) -> Version | None:
        return self._overlaid(relation, (), MemorySnapshot.version(self, relation))

    def arrangement(self, relation: int, key: StoredKey) -> Version | None:
        return self._overlaid(relation, key, MemorySnapshot.arrangement(self, relation, key))

    def _overlaid(self, relation: int, key: StoredKey, base: Version | None) -> Version | None:
        updates = None if self.pending is None else self.pending.get(relation)
        if base is None or updates is None:
            return base
        found = self._known.get((relation, key))
        if found is None:
            found = self._known[relation, key] = self._made(relation, key, base, updates)
        return found

    def _made(self, relation: int, key: StoredKey, base: Version, updates: tuple[Words, Words]) -> Version:
        rows, diffs = updates
        if isinstance(key, tuple):
            return overlaid(self.published, relation, key, base, updates)
        if isinstance(key.program, MapFilter):
            assert self.context is not None, "expressions need a context"
            made = key.program.run(rows, self.context)
            rows, diffs = made.rows, diffs if made.source is None else diffs[made.source]
        return _arranged(base, key.gather, rows, diffs)


def overlaid(
    published: Published, relation: int, columns: tuple[int, ...], base: Version, updates: tuple[Words, Words]
) -> Version:
    """A table's arrangement by ``columns`` (default: its own), with pending updates."""
    stored = published.stored[relation]
    return _arranged(base, table_layout(stored.schema, columns or stored.primary_key).gather, *updates)


def _arranged(base: Version, gather: Gather, rows: Words, diffs: Words) -> Version:
    moved, source = gathers.apply(gather, rows)
    return OverlaidVersion(base, moved, diffs if source is None else diffs[source])


def _consolidated(rows: Words, diffs: Words) -> tuple[Words, Words]:
    """Each row once, where it comes first."""
    _, first, place, _ = distinct_rows(rows)
    sums = np.zeros(len(first), np.int64)
    np.add.at(sums, place, diffs)
    live = np.flatnonzero(sums)
    live = live[np.argsort(first[live])]
    return rows[first[live]], sums[live]
