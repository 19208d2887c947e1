"""What is known of a batch's rows: sums and least values by block, so that a range of a large group is not read.

A batch is cut into parts of PART rows, made when they are first needed and kept as long as the batch is. Cost: a part's
rows once; then a block of BLOCK rows for each end of a range, and a step for each part between.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, TypeVar, cast

import numpy as np

from ivm.graph import Seen
from ivm.rows import Vector, Words, unpack
from ivm.trace.batch import Batch
from ivm.trace.ordered import Ordered
from planner.expr.context import Context
from planner.frames import extremes
from planner.frames.plan import Layout
from planner.frames.sums import Sums, Totals, running

BLOCK: Final = 128
PART: Final = 1 << 15
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of one view of a group, with what ``seen`` has of their batches."""

    rows: Ordered
    layout: Layout
    context: Context
    seen: Seen

    def _columns(self, vals: Words) -> list[Vector]:
        return unpack(vals[:, self.layout.skip :], self.layout.row)

    def _part(self, batch: Batch, number: int, what: Hashable, make: Callable[[Words, Words], K]) -> K:
        """What is known of a part of a batch, from its values and diffs."""
        known = self.seen.setdefault(id(batch), (batch, {}))[1]
        key = (what, number)
        if key not in known:
            first, last = number * PART, min((number + 1) * PART, batch.n)
            vals, diffs = batch.slice(first, last)
            known[key] = make(vals[:, self.rows.key_width :], diffs)
        return cast("K", known[key])

    def sums_before(self, sums: Sums, places: Words) -> Totals:
        """The sums over the layers' rows before these positions (int64[layers]), from a fixed row of each on."""
        total: Totals | None = None
        for k, (batch, start, place) in enumerate(zip(self.rows.layers, self.rows.starts, places, strict=True)):
            if batch is None or place - start <= 2 * BLOCK:
                found = self._added(sums, *self.rows.layer(k, int(start), int(place)))
            else:
                found = self._of_batch(sums, k, batch, int(start), int(place))
                found = found.plus(self._of_batch(sums, k, batch, int(start), int(start)), -1)
            total = found if total is None else total.plus(found)
        assert total is not None
        return total

    def _added(self, sums: Sums, vals: Words, diffs: Words) -> Totals:
        each = sums.of(self._columns(vals), diffs)
        return Totals(each.main.sum(axis=0)[None], each.slots, each.amounts.sum(axis=0)[None])

    def _of_batch(self, sums: Sums, k: int, batch: Batch, start: int, place: int) -> Totals:
        """The sums before a position, from the beginning of the part that ``start`` is in."""

        def fences(vals: Words, diffs: Words) -> Totals:
            each = sums.of(self._columns(vals), diffs)
            cuts = np.arange(0, len(vals), BLOCK)
            main, amounts = np.add.reduceat(each.main, cuts), np.add.reduceat(each.amounts, cuts)
            return running(Totals(main, each.slots, amounts))

        last = place // PART
        total: Totals | None = None
        for number in range(start // PART, last + (place % PART > 0)):
            made = self._part(batch, number, sums.layout, fences)
            inside = place - number * PART if number == last else PART
            found = made.take(np.array([min(inside // BLOCK, len(made.main) - 1)]))
            total = found if total is None else total.plus(found)
        rest = place - place % PART + (place % PART) // BLOCK * BLOCK
        ends = self._added(sums, *self.rows.layer(k, rest, place))
        return ends if total is None else total.plus(ends)

    # -- least values --------------------------------------------------------------------------------------------

    def candidates(self, k: int, batch: Batch | None, column: int, greatest: bool, low: int, high: int) -> list[Run]:
        """The values of a layer's rows low … high-1, as runs that can be searched."""
        type_ = self.layout.row[column].type

        def coded(vals: Words, diffs: Words) -> Coded:
            vector = self._columns(vals)[column]
            nulls = (diffs <= 0) if vector.nulls is None else vector.nulls | (diffs <= 0)
            codes, words = extremes.codes(type_, Vector(vector.words, nulls), greatest, self.context.dictionary)
            minima = np.minimum.reduceat(codes, np.arange(0, len(codes), BLOCK)) if len(codes) else codes
            return Coded(codes, words, minima)

        if batch is None:
            return [Run(coded(*self.rows.layer(k, low, high)), k, low, 0, high - low)] if high > low else []
        runs = []
        for number in range(low // PART, (high + PART - 1) // PART):
            made = self._part(batch, number, (column, greatest), coded)
            first = number * PART
            runs.append(Run(made, k, first, max(low - first, 0), min(high - first, len(made.codes))))
        return runs


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """``codes`` int64[n]: NOTHING for rows that do not count; ``words``: the value of each code; ``minima``: of every
    BLOCK codes."""

    codes: Words
    words: Words
    minima: Words


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Rows low … high-1 of ``coded``, whose first row is ``base`` in layer ``layer``."""

    coded: Coded
    layer: int
    base: int
    low: int
    high: int

    def least(self) -> int:
        """The position in ``coded`` of the least value; -1 if there is none. Cost: O(BLOCK + PART / BLOCK)."""
        codes, low, high = self.coded.codes, self.low, self.high
        if low >= high:
            return -1
        first, last = -(-low // BLOCK), high // BLOCK
        if first >= last:
            best = low + int(np.argmin(codes[low:high]))
        else:
            block = first + int(np.argmin(self.coded.minima[first:last]))
            spans = ((low, first * BLOCK), (block * BLOCK, (block + 1) * BLOCK), (last * BLOCK, high))
            found = [a + int(np.argmin(codes[a:b])) for a, b in spans if a < b]
            best = min(found, key=lambda p: int(codes[p]))
        return best if codes[best] != extremes.NOTHING else -1

    def without(self, place: int) -> tuple[Run, Run]:
        """The rows before and after a position."""
        return (
            Run(self.coded, self.layer, self.base, self.low, place),
            Run(self.coded, self.layer, self.base, place + 1, self.high),
        )
