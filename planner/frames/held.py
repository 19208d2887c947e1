"""Whole partitions in memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ivm.rows import Mask, Vector, Words, unpack
from planner.expr.context import Context
from planner.frames import extremes
from planner.frames.distance import Distance
from planner.frames.plan import Layout
from planner.frames.sums import Sums, Totals, running


class Held:
    """The rows of partitions, all of which get results. Places count through all partitions.

    ``vals`` int64[m, w] are distinct rows in order, ``counts`` int64[m] how often each occurs (at least once), and
    partition i has those from ``offsets[i]`` to ``offsets[i + 1]``.
    """

    def __init__(self, layout: Layout, context: Context, vals: Words, counts: Words, offsets: Words) -> None:
        self.layout = layout
        self.context = context
        self._rows = vals
        self._counts = counts
        self._offsets = offsets
        self.begin = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        """The place of each row's first copy, and the last place."""
        self.row = np.repeat(np.arange(len(vals)), counts)
        """The row at each place."""
        self._columns = unpack(vals[:, layout.skip :], layout.row)
        self._known: dict[object, Totals] = {}
        self._present: dict[int, Words] = {}

    @property
    def at(self) -> Words:
        """See ``Source``."""
        return np.arange(len(self.row))

    @property
    def vals(self) -> Words:
        """See ``Source``."""
        return self._rows[self.row]

    @property
    def columns(self) -> list[Vector]:
        """See ``Source``."""
        return [_take(v, self.row) for v in self._columns]

    @cached_property
    def partition(self) -> Words:
        """The partition of each row."""
        return np.repeat(np.arange(len(self._offsets) - 1), np.diff(self._offsets))

    @cached_property
    def first(self) -> Words:
        """See ``Source``."""
        return self.begin[self._offsets[:-1]][self.partition][self.row]

    @cached_property
    def stop(self) -> Words:
        """See ``Source``."""
        return self.begin[self._offsets[1:]][self.partition][self.row]

    @cached_property
    def _group(self) -> tuple[Words, Words]:
        """(the group of peers of each row, where each group begins and the last one ends)."""
        fresh = np.ones(len(self._rows), np.bool_)
        if len(fresh):
            peers = self.layout.peers
            fresh[1:] = (self._rows[1:, :peers] != self._rows[:-1, :peers]).any(axis=1)
            starts = self._offsets[:-1]
            fresh[starts[starts < len(fresh)]] = True
        starts = self.begin[np.flatnonzero(fresh)]
        return np.cumsum(fresh) - 1, np.append(starts, self.begin[-1])

    def peers(self) -> tuple[Words, Words]:
        """See ``Source``."""
        group, starts = self._group
        return starts[group][self.row], starts[group + 1][self.row]

    def group(self, step: int) -> Words:
        """See ``Source``."""
        group, starts = self._group
        if not len(group):
            return self.at
        step = max(min(step, len(starts)), -len(starts))
        target = np.clip(group + step, 0, len(starts) - 1)[self.row]
        return np.clip(starts[target], self.first, self.stop)

    def reach(self, distance: Distance, following: bool, end: bool) -> Words:
        """See ``Source``."""
        key = self.layout.sorted_by
        assert key is not None
        (index,) = (i for i, c in enumerate(self.layout.row) if i == getattr(key.expr, "index", -1))
        column = self._columns[index]
        nulls = np.zeros(len(column.words), np.bool_) if column.nulls is None else column.nulls
        out = np.empty(len(column.words), np.int64)
        given = distance.keys(np.where(nulls, 0, column.words), self.context) if not nulls.any() else None
        for low, high in zip(self._offsets[:-1].tolist(), self._offsets[1:].tolist(), strict=True):
            none = nulls[low:high]
            count = int(none.sum())
            a, b = (low + count, high) if key.nulls_first else (low, high - count)
            out[low:a] = a if end else low
            out[b:high] = high if end else b
            words = column.words[a:b]
            keys = distance.keys(words, self.context) if given is None else given[a:b]
            moved = distance.moved(words, following != key.descending, end == key.descending, self.context)
            out[a:b] = a + _searched(keys, moved, key.descending, end)
        return self.begin[out][self.row]

    def totals(self, sums: Sums, places: Words) -> Totals:
        """See ``Source``."""
        known = self._known.get(sums.layout)
        if known is None:
            known = self._known[sums.layout] = running(sums.of(self._columns, self._counts))
        row = np.searchsorted(self.begin, places, "right") - 1
        found = known.take(row)
        within = places - self.begin[row]
        if not within.any():
            return found
        more = known.take(np.minimum(row + 1, len(self._rows))).plus(found, -1)
        of = np.append(self._counts, 1)[row]
        share = Totals(
            more.main // of[:, None] * within[:, None], more.slots, more.amounts // of[:, None] * within[:, None]
        )
        return found.plus(share)

    def read(self, places: Words, columns: Sequence[int]) -> list[Vector]:
        """See ``Source``."""
        return [_take(self._columns[i], self.row[places]) for i in columns]

    def _valued(self, column: int) -> Words:
        """The places of the rows with a value."""
        found = self._present.get(column)
        if found is None:
            nulls = self._columns[column].nulls
            found = self._present[column] = self.at if nulls is None else np.flatnonzero(~nulls[self.row])
        return found

    def present(self, column: int, places: Words) -> Words:
        """See ``Source``."""
        return np.searchsorted(self._valued(column), places)

    def nth(self, column: int, counts: Words) -> Words:
        """See ``Source``."""
        return self._valued(column)[counts]

    def least(self, column: int, greatest: bool, low: Words, high: Words) -> Vector:
        """See ``Source``."""
        type_ = self.layout.row[column].type
        values, words = extremes.codes(type_, self._columns[column], greatest, self.context.dictionary)
        return extremes.words_of(extremes.least(values[self.row], low, high), words)

    def spread(self, low: Words, high: Words, columns: Sequence[int]) -> tuple[list[Vector], Words]:
        """See ``Source``."""
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(high - low)])
        places = np.arange(ends[-1]) - np.repeat(ends[:-1] - low, high - low)
        return self.read(places, columns), ends


def _take(vector: Vector, rows: Words) -> Vector:
    return Vector(vector.words[rows], None if vector.nulls is None else vector.nulls[rows])


def _searched(keys: Words, moved: Words, descending: bool, end: bool) -> Words | Mask:
    """For each value: how many of a partition's keys come before it, or not after it (``end``)."""
    if not descending:
        return np.searchsorted(keys, moved, "right" if end else "left")
    return len(keys) - np.searchsorted(keys[::-1], moved, "left" if end else "right")
