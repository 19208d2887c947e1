"""Some rows of a large group as a source of window functions: what they need of the rest is searched for."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, total_ordering
from typing import Any, Final

import numpy as np

from ivm.distinct import distinct
from ivm.rows import Vector, Words, unpack
from ivm.trace.ordered import Ordered
from planner.aggregates.accumulable import Accumulation
from planner.aggregates.components import AggregateCall, DiffColumn
from planner.aggregates.table import COUNT_VALUES
from planner.expr.context import Context
from planner.expr.ordering import is_its_own_order
from planner.frames import extremes
from planner.frames.distance import Distance
from planner.frames.held import Held
from planner.frames.layers import Layers, Run
from planner.frames.plan import Layout
from planner.frames.probes import Probes
from planner.frames.sums import Sums, Totals
from storage.types.codec import decode_one
from storage.types.order import sort_key

NEAR: Final = 128
"""Places at most so far apart are read together."""


class Group:
    """A large group at one time."""

    def __init__(self, rows: Ordered, layers: Layers, layout: Layout, context: Context) -> None:
        self.rows = rows
        self.layers = layers
        self.layout = layout
        self.context = context

    def held(self, first: int, last: int) -> tuple[Held, int]:
        """(rows that have a rank in first … last-1, the rank of the first one)."""
        vals, counts, begin = self.rows.rows(first, last)
        return Held(self.layout, self.context, vals, counts, np.array([0, len(vals)])), begin

    def clusters(self, places: Words) -> Iterator[tuple[Held, int, Words]]:
        """Runs of near ascending places, each with the rows around it: (rows, the rank of the first, the run)."""
        cuts = np.flatnonzero(np.diff(places) > NEAR) + 1
        for run in np.split(places, cuts):
            if len(run):
                yield *self.held(int(run[0]), int(run[-1]) + 1), run

    def totals(self, sums: Sums, places: Words) -> Totals:
        """Sums over the rows before places that ascend."""
        found: list[Totals] = []
        for held, begin, run in self.clusters(places):
            spot = self.rows.spots(run[:1])
            base = self.layers.sums_before(sums, spot.places[0])
            here = held.totals(sums, run - begin) if len(held.row) else base.take(np.zeros(len(run), np.int64))
            found.append(here.plus(base.take(np.zeros(len(run), np.int64))) if len(held.row) else here)
        return _joined(found)

    def present(self, column: int, places: Words) -> Words:
        """How many rows before places have a value in the column."""
        call = AggregateCall(COUNT_VALUES, (column,), (self.layout.row[column].type,))
        layout = Accumulation((call,))
        distinct, at = np.unique(places, return_inverse=True)
        totals = self.totals(Sums(layout, self.context.dictionary), distinct)
        return totals.main[:, layout.plans[0].places[DiffColumn.COUNT]][at]

    def nth(self, column: int, counts: Words) -> Words:
        """The places of rows by the number of values before them. Cost: a bisection."""
        low, high = np.zeros(len(counts), np.int64), np.full(len(counts), self.rows.size)
        while (high - low > 1).any():
            middle = (low + high) >> 1
            less = self.present(column, middle) <= counts
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        return low

    def read(self, places: Words, columns: Sequence[int]) -> list[Vector]:
        """Columns of the rows at places."""
        distinct, at = np.unique(places, return_inverse=True)
        found = [held.read(run - begin, columns) for held, begin, run in self.clusters(distinct)]
        return [_take(_stacked([part[i] for part in found]), at) for i in range(len(columns))]

    def least_of(self, column: int, greatest: bool, low: int, high: int) -> int | None:
        """The word of the least value of the ranks low … high-1; None if there is none.

        Rows that other layers have retracted are passed over, best first. Cost: searches, and one for each such row
        that is less than the result."""
        type_ = self.layout.row[column].type
        ends = self.rows.spots(np.array([low, high])).places
        heap: list[tuple[Any, int, int, Run]] = []
        number = 0

        def push(run: Run) -> None:
            nonlocal number
            place = run.least()
            if place >= 0:
                word = int(run.coded.words[run.coded.codes[place]])
                key = word if is_its_own_order(type_) else _key(type_, word, self.context)
                number += 1
                heapq.heappush(heap, (_Last(key) if greatest else key, number, place, run))

        for k, batch in enumerate(self.rows.layers):
            for run in self.layers.candidates(k, batch, column, greatest, int(ends[0, k]), int(ends[1, k])):
                push(run)
        while heap:
            _, _, place, run = heapq.heappop(heap)
            vals, _ = self.rows.layer(run.layer, run.base + place, run.base + place + 1)
            if self.rows.ranks(vals, True)[0] > self.rows.ranks(vals, False)[0]:
                return int(run.coded.words[run.coded.codes[place]])
            for part in run.without(place):
                push(part)
        return None


def _key(type_: Any, word: int, context: Context) -> tuple[bytes, int]:
    return sort_key(type_, decode_one(type_, word, context.dictionary)), word


@total_ordering
@dataclass(frozen=True, slots=True)
class _Last:
    """A key in the opposite order."""

    key: Any

    def __lt__(self, other: _Last) -> bool:
        return bool(self.key > other.key)


class Searched:
    """Rows of a group, ascending, with their ranks. The rows need not be in the group: a missing one has the rank that
    it would have. Invariant: of equal rows all are here."""

    def __init__(self, group: Group, at: Words, vals: Words) -> None:
        self.of = group
        self.at = at
        self.vals = vals
        self.columns = unpack(vals[:, group.layout.skip :], group.layout.row)
        self.first = np.zeros(len(at), np.int64)
        self.stop = np.full(len(at), group.rows.size)

    @classmethod
    def between(cls, group: Group, first: int, last: int) -> Searched:
        """The rows that have a rank in first … last-1."""
        held, begin = group.held(first, last)
        return cls(group, begin + held.at, held.vals)

    @classmethod
    def of_rows(cls, group: Group, vals: Words) -> Searched:
        """Given rows, once each."""
        return cls(group, group.rows.ranks(vals, False), vals)

    @cached_property
    def _groups(self) -> tuple[Words, Words]:
        """(the number of each row's group of peers, one row of each group)."""
        peers = self.vals[:, : self.of.layout.peers]
        fresh = np.ones(len(peers), np.bool_)
        fresh[1:] = (peers[1:] != peers[:-1]).any(axis=1)
        return np.cumsum(fresh) - 1, peers[fresh]

    @cached_property
    def _edges(self) -> tuple[Words, Words]:
        if not self.of.layout.peers:
            return self.first, self.stop
        number, peers = self._groups
        rows = self.of.rows
        return rows.ranks(peers, False)[number], rows.ranks(peers, True)[number]

    def peers(self) -> tuple[Words, Words]:
        """See ``Source``."""
        return self._edges

    def group(self, step: int) -> Words:
        """See ``Source``."""
        low, high = self._edges
        if not len(low):
            return low
        starts = distinct(np.append(low, high[-1])).tolist()
        for _ in range(step):
            if starts[-1] >= self.of.rows.size:
                break
            starts.append(self.edge(starts[-1], True))
        for _ in range(-step):
            if starts[0] <= 0:
                break
            starts.insert(0, self.edge(starts[0] - 1, False))
        at = np.searchsorted(starts, low) + step
        found = np.array(starts)[np.clip(at, 0, len(starts) - 1)]
        return np.where(at < 0, 0, np.where(at >= len(starts), self.of.rows.size, found))

    def edge(self, rank: int, behind: bool) -> int:
        """Where the group of peers of the row at a rank begins, or ends (``behind``)."""
        vals, _, _ = self.of.rows.rows(rank, rank + 1)
        return int(self.of.rows.ranks(vals[:, : self.of.layout.peers], behind)[0])

    def reach(self, distance: Distance, following: bool, end: bool) -> Words:
        """See ``Source``."""
        probes = Probes(self.of.layout, self.of.context, self.of.rows)
        return probes.reach(self.columns, self.vals, distance, following, end)

    def totals(self, sums: Sums, places: Words) -> Totals:
        """See ``Source``."""
        return self.of.totals(sums, places)

    def read(self, places: Words, columns: Sequence[int]) -> list[Vector]:
        """See ``Source``."""
        return self.of.read(places, columns)

    def present(self, column: int, places: Words) -> Words:
        """See ``Source``."""
        return self.of.present(column, places)

    def nth(self, column: int, counts: Words) -> Words:
        """See ``Source``."""
        return self.of.nth(column, counts)

    def spread(self, low: Words, high: Words, columns: Sequence[int]) -> tuple[list[Vector], Words]:
        """See ``Source``."""
        full = low < high
        first, last = (int(low[full].min()), int(high[full].max())) if full.any() else (0, 0)
        held, begin = self.of.held(first, last)
        return held.spread(np.where(full, low - begin, 0), np.where(full, high - begin, 0), columns)

    def least(self, column: int, greatest: bool, low: Words, high: Words) -> Vector:
        """See ``Source``. The ranges' ends ascend, so most of what they share is searched for once."""
        full = np.flatnonzero(low < high)
        words, nulls = np.zeros(len(low), np.int64), np.ones(len(low), np.bool_)
        if len(full):
            found = self._least(column, greatest, low[full], high[full])
            words[full] = found.words
            nulls[full] = False if found.nulls is None else found.nulls
        return Vector(words, nulls)

    def _least(self, column: int, greatest: bool, low: Words, high: Words) -> Vector:
        group, n = self.of, len(low)
        a, b, c, d = int(low.min()), int(low.max()), int(high.min()), int(high.max())
        room = 16 * n + 16 * NEAR
        if d - a <= room:
            held, begin = group.held(a, d)
            return held.least(column, greatest, low - begin, high - begin)
        if b <= c and (n == 1 or b - a + d - c <= room):
            return self._around(column, greatest, low, high, (a, b, c, d))
        half = n // 2
        parts = [self._least(column, greatest, low[s], high[s]) for s in (slice(half), slice(half, n))]
        return _stacked(parts)

    def _around(self, column: int, greatest: bool, low: Words, high: Words, ends: tuple[int, int, int, int]) -> Vector:
        """The least values where all ranges share those from ``ends[1]`` to ``ends[2]``."""
        a, b, c, d = ends
        c = max(b, int(self.of.rows.spots(np.array([c])).rank[0]))  # not between equal rows
        type_, context = self.of.layout.row[column].type, self.of.context
        word = self.of.least_of(column, greatest, b, c) if b < c else None
        shared = Vector(np.array([word or 0]), np.array([word is None]))
        (before,), (behind,) = (self.of.read(np.arange(x, y), (column,)) for x, y in ((a, b), (c, d)))
        values, words = extremes.codes(type_, _stacked([before, shared, behind]), greatest, context.dictionary)
        return extremes.words_of(extremes.least(values, low - a, b - a + 1 + high - c), words)


def _take(vector: Vector, rows: Words) -> Vector:
    return Vector(vector.words[rows], None if vector.nulls is None else vector.nulls[rows])


def _stacked(parts: Sequence[Vector]) -> Vector:
    if not parts:
        return Vector(np.zeros(0, np.int64))
    nulls = [np.zeros(len(p.words), np.bool_) if p.nulls is None else p.nulls for p in parts]
    return Vector(np.concatenate([p.words for p in parts]), np.concatenate(nulls))


def _joined(parts: Sequence[Totals]) -> Totals:
    """Totals one after another."""
    if len(parts) == 1:
        return parts[0]
    slots = distinct(np.concatenate([p.slots for p in parts]))
    laid = [p.laid(slots) for p in parts]
    return Totals(np.concatenate([p.main for p in parts]), slots, np.concatenate(laid))
