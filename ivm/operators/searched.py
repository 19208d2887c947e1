"""Reduce outside of loops for reducers that search large groups for what changes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ivm.abilities import searches
from ivm.distinct import distinct
from ivm.graph import OrderedReducer, Reducer, Seen
from ivm.operators.reduce import ReduceOperator
from ivm.rows import Words
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Operator, Scope
from ivm.trace.batch import Block
from ivm.trace.ordered import Ordered
from ivm.trace.shards import sort_into

FEW = 8
"""A group is searched if it has this many times as many rows as updates."""
BEFORE = -(2**63)


class SearchedReduceOperator(ReduceOperator):
    """Cost of a pass: small groups, and those that change a lot, are read whole; in the others what the reducer reads
    for the updates of each time."""

    __slots__ = ("_seen",)

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, reducer: Reducer) -> None:
        super().__init__(context, scope, source, reducer)
        self._seen: Seen = {}

    def _reduce(self, delta: Block) -> None:
        reducer = self.reducer
        if not self.ran or not searches(reducer):
            super()._reduce(delta)
            return
        if not self.read.ranked:
            self.read.rank()
        large = [group for group in _groups(delta, self.key_width) if self._is_large(delta, *group, reducer.least)]
        if not large:
            super()._reduce(delta)
            return
        rest = np.ones(delta.n, np.bool_)
        for first, stop in large:
            rest[first:stop] = False
        if rest.any():
            rows, times, diffs = delta.arrays()
            super()._reduce(Block.of(rows[rest], times[rest], diffs[rest]))
        self._search(delta, large, reducer)

    def _is_large(self, delta: Block, first: int, stop: int, least: int) -> bool:
        count = stop - first
        if count * FEW > self.read.count:
            return False
        size = Ordered(self.read, self.context.nothing, delta, first, stop, 2**62, self.context.stats).size
        return size >= max(least, FEW * count)

    def _search(self, delta: Block, large: list[tuple[int, int]], reducer: OrderedReducer) -> None:
        """Adds the changes of large groups to ``out`` and ``errors``."""
        self._forget()
        shown, errors = _Updates(self.width), _Updates(self.key_width + 1)
        shown.add_block(self.out)
        for first, stop in large:
            key = delta.rows[first, : self.key_width]
            times = delta.times[first:stop]
            before = self._at(delta, first, stop, BEFORE)
            for time in distinct(times).tolist():
                now = np.flatnonzero(times == time) + first
                after = self._at(delta, first, stop, time)
                updates, diffs = delta.rows[now, self.key_width :], delta.diffs[now, 0]
                found = reducer.changes(before, after, updates, diffs, self._seen)
                shown.add(key, found.gone, found.came, time)
                errors.add(key, found.errors_gone, found.errors_came, time)
                before = after
        shown.sort_into(self.out, 0 if self.spine is None else self.spine.order)
        if errors.times:
            keyed = Block(self.key_width + 1)
            errors.sort_into(keyed, 0)
            earlier = self.errors.n
            held = [a.copy() for a in self.errors.arrays()]
            self.show_errors(keyed)
            if earlier:
                _append(self.errors, *held)

    def _at(self, delta: Block, first: int, stop: int, time: int) -> Ordered:
        return Ordered(self.read, self.context.nothing, delta, first, stop, time, self.context.stats)

    def _forget(self) -> None:
        """Drops what is known of batches that are merged away."""
        present = {id(part) for part in self.read.parts}
        for known in [k for k in self._seen if k not in present]:
            del self._seen[known]


class _Updates:
    """Updates of several groups, not sorted."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: list[Words] = []
        self.times: list[Words] = []
        self.diffs: list[Words] = []

    def add(self, key: Words, gone: Words, came: Words, time: int) -> None:
        for rows, diff in ((gone, -1), (came, 1)):
            if len(rows):
                keys = np.broadcast_to(key, (len(rows), len(key)))
                self.rows.append(np.concatenate([keys, rows], axis=1))
                self.times.append(np.full(len(rows), time))
                self.diffs.append(np.full((len(rows), 1), diff))

    def add_block(self, block: Block) -> None:
        if block.n:
            rows, times, diffs = (a.copy() for a in block.arrays())
            self.rows.append(rows)
            self.times.append(times)
            self.diffs.append(diffs)

    def sort_into(self, out: Block, order: int) -> None:
        """Replaces the contents of ``out``."""
        out.reset()
        if self.times:
            both = Block.of(np.concatenate(self.rows), np.concatenate(self.times), np.concatenate(self.diffs))
            out.reserve(both.n)
            out.n = sort_into(both, out, order)


def _append(block: Block, rows: Words, times: Words, diffs: Words) -> None:
    n = block.n
    block.reserve(n + len(times))
    block.rows[n : n + len(times)] = rows
    block.times[n : n + len(times)] = times
    block.diffs[n : n + len(times)] = diffs
    block.n = n + len(times)
    block.d[0] = block.n


def _groups(delta: Block, key_width: int) -> list[tuple[int, int]]:
    """The ranges of a sorted delta that share a key."""
    if not delta.n:
        return []
    keys = delta.rows[: delta.n, :key_width]
    ends = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
    bounds = [0, *ends.tolist(), delta.n]
    return list(pairwise(bounds))
