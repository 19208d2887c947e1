"""The rows of a version between two bounds, in order, from either end: reads in proportion to what is taken.

A version is a few sorted layers. A piece takes the next updates of each, as far as no layer may have more of the rows
that it has, and adds up equal rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ivm.rows import Words, plain
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block

Row = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """Sorted updates: rows int64[n, width], and of each its diff int64[n], and time int64[n]; of one entry each, if it
    is that of all."""

    rows: Words
    times: Words
    diffs: Words

    def part(self, first: int, stop: int) -> Layer:
        """Some of the updates, as views."""
        times = self.times if len(self.times) == 1 else self.times[first:stop]
        diffs = self.diffs if len(self.diffs) == 1 else self.diffs[first:stop]
        return Layer(self.rows[first:stop], times, diffs)


@dataclass(frozen=True, slots=True)
class Bound:
    """An end of a range: the first words of a row, and whether rows that begin with them belong to the range."""

    words: Row
    included: bool


EVERYTHING: Final = Bound((), included=True)


class Range:
    """The rows between two bounds, accumulated over times <= ``at``. What has been taken is gone.

    ``read``: how many updates have been looked at. Cost: a binary search for each layer and bound.
    """

    def __init__(self, layers: tuple[Layer, ...], at: int, low: Bound = EVERYTHING, high: Bound = EVERYTHING) -> None:
        self._at = at
        self._width = layers[0].rows.shape[1] if layers else 0
        self.read = 0
        self._layers: list[Layer] = []
        self._starts: list[int] = []
        self._stops: list[int] = []
        for layer in layers:
            start = _place(layer.rows, low, behind=not low.included)
            stop = _place(layer.rows, high, behind=high.included, first=start)
            if start < stop:
                self._layers.append(layer)
                self._starts.append(start)
                self._stops.append(stop)

    @property
    def left(self) -> int:
        """How many updates are left: an upper bound on the rows."""
        return sum(self._stops) - sum(self._starts)

    def rest(self) -> tuple[Words, Words]:
        """All that is left: (rows int64[m, width] in order, diffs int64[m], none 0)."""
        return self.take(max(self.left, 1), backward=False)

    def take(self, count: int, backward: bool) -> tuple[Words, Words]:
        """The next rows from the low end, or the high one, in ascending order either way, and their diffs, none 0.

        About ``count`` updates of each layer are looked at, more only where so many are of one row. There may be none
        in spite of rows being left.
        """
        ends = self._ends_backward if backward else self._ends
        while not (cuts := ends(count)) and self.left:
            count *= 2  # so many updates of one row
        parts = []
        for k, cut in enumerate(cuts):
            first, stop = (cut, self._stops[k]) if backward else (self._starts[k], cut)
            parts.append(self._layers[k].part(first, stop))
        (self._stops if backward else self._starts)[:] = cuts
        self.read += sum(len(part.rows) for part in parts)
        return self._accumulated(parts)

    def _ends(self, count: int) -> list[int]:
        """Up to where each layer is taken; [] if that would be nothing."""
        last: list[Row] = []
        ends = []
        for layer, start, stop in zip(self._layers, self._starts, self._stops, strict=True):
            end = min(start + count, stop)
            if end < stop:
                last.append(tuple(layer.rows[end - 1].tolist()))
            ends.append(end)
        if last:  # a cut layer may have more of its last row
            limit = Bound(min(last), included=False)
            spans = zip(self._layers, self._starts, ends, strict=True)
            ends = [_place(layer.rows, limit, behind=False, first=start, stop=end) for layer, start, end in spans]
        return ends if ends != self._starts else []

    def _ends_backward(self, count: int) -> list[int]:
        """From where on each layer is taken; [] if that would be nothing."""
        first: list[Row] = []
        ends = []
        for layer, start, stop in zip(self._layers, self._starts, self._stops, strict=True):
            end = max(stop - count, start)
            if end > start:
                first.append(tuple(layer.rows[end].tolist()))
            ends.append(end)
        if first:
            limit = Bound(max(first), included=False)
            spans = zip(self._layers, ends, self._stops, strict=True)
            ends = [_place(layer.rows, limit, behind=True, first=end, stop=stop) for layer, end, stop in spans]
        return ends if ends != self._stops else []

    def _accumulated(self, parts: list[Layer]) -> tuple[Words, Words]:
        parts = [seen for part in parts if len(part.rows) and len((seen := _until(part, self._at)).rows)]
        if not parts:
            return np.zeros((0, self._width), np.int64), np.zeros(0, np.int64)
        diffs = [np.full(len(p.rows), p.diffs[0]) if len(p.diffs) == 1 else p.diffs for p in parts]
        if len(parts) == 1 and len(parts[0].times) == 1:
            return plain(parts[0].rows), diffs[0]  # at one time a row has one update
        rows = parts[0].rows if len(parts) == 1 else np.concatenate([part.rows for part in parts])
        whole = diffs[0] if len(parts) == 1 else np.concatenate(diffs)
        found, _, sums = sorted_block(Block.of(rows, np.zeros(len(rows), np.int64), whole)).arrays()
        return found, sums[:, 0]


def _until(part: Layer, at: int) -> Layer:
    """The updates that are not later than ``at``."""
    late = part.times > at
    if not late.any():
        return part
    kept = np.flatnonzero(np.broadcast_to(~late, len(part.rows)))
    times = part.times if len(part.times) == 1 else part.times[kept]
    diffs = part.diffs if len(part.diffs) == 1 else part.diffs[kept]
    return Layer(part.rows[kept], times, diffs)


def _place(rows: Words, bound: Bound, behind: bool, first: int = 0, stop: int | None = None) -> int:
    """The first of the rows that is not less than the bound; ``behind``: that is greater."""
    width, end = len(bound.words), len(rows) if stop is None else stop
    if not width:
        return end if behind else first
    search: Callable[..., int] = bisect_right if behind else bisect_left
    if width == 1:
        return search(rows[:, 0], bound.words[0], first, end)
    return search(rows, bound.words, first, end, key=lambda row: tuple(row[:width].tolist()))
