"""What a few updates change in a large group: the rows around them, before and after, as far as results differ.

Where frames begin at the partition's start, a change may concern all later rows. These are taken in portions that
double, until a row's frame has the same content before and after, without what it excludes: then those of all later
rows have, too. Likewise to the left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ivm.rows import Words
from planner.expr.context import Context
from planner.frames.buckets import bucket_ends, buckets
from planner.frames.plan import Edges, WindowPlan
from planner.frames.region import Reach, around, own, reach
from planner.frames.searched import Group, Searched
from planner.frames.settled import settled

FIRST: Final = 128
MOST: Final = 1 << 15
"""Rows in the first and in the largest portion."""
Cut = tuple[int, int]
"""A place between rows: its rank before and after the change."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Rows to recompute: from ``low`` to ``high``; the updated rows lie from ``first`` to ``last``."""

    low: Cut
    high: Cut
    first: Cut
    last: Cut


class Walk:
    """The rows that updates (``vals``, ascending; ``moved``: how many rows they add or remove in all) may concern."""

    def __init__(
        self, plan: WindowPlan, frames: dict[int, Edges], groups: tuple[Group, Group], vals: Words, moved: int,
        context: Context,
    ) -> None:  # fmt: skip
        self.plan = plan
        self.frames = frames
        self.groups = groups
        self.vals = vals
        self.moved = moved
        self.context = context
        self.reach: Reach = reach(plan, frames, buckets(plan, groups))
        self.end: Cut = (groups[0].rows.size, groups[1].rows.size)

    def portions(self) -> Iterator[tuple[Cut, Cut]]:
        """Ranges of rows that do not overlap and hold every row whose result changes."""
        extents = self._merged()
        done: Cut = (0, 0)
        for i, extent in enumerate(extents):
            bound = extents[i + 1].low if i + 1 < len(extents) else self.end
            if self.reach.open_left:
                yield from self._left(extent, done)
            yield max(extent.low, done), extent.high
            done = extent.high
            if self.reach.open_right:
                for low, high in self._right(extent, bound):
                    yield low, high
                    done = high

    # -- extents -------------------------------------------------------------------------------------------------

    def _merged(self) -> list[Extent]:
        """The extents of the updates, in order; those that overlap as one."""
        found: list[Extent] = []
        extents = [self._extent(self.vals[i : i + 1]) for i in range(len(self.vals))]
        for each in sorted([*extents, *self._moved()], key=lambda e: e.low):
            extent = each
            while found and found[-1].high >= extent.low:
                last = found.pop()
                low, first = _least(last.low, extent.low), _least(last.first, extent.first)
                high, behind = _greatest(last.high, extent.high), _greatest(last.last, extent.last)
                extent = Extent(low, high, first, behind)
            found.append(extent)
        return found

    def _extent(self, row: Words) -> Extent:
        before, after = self.groups
        first = (int(before.rows.ranks(row, False)[0]), int(after.rows.ranks(row, False)[0]))
        last = (int(before.rows.ranks(row, True)[0]), int(after.rows.ranks(row, True)[0]))
        low, high = first, last
        for side, group in enumerate(self.groups):
            source = Searched.of_rows(group, row)
            ranges = [own(source)] if self.reach.by_peers else []
            for edges in self.reach.edges:
                a, b = around(source, edges, self.moved + 1)
                # to its open sides rows are taken in portions
                a, b = first[side] if edges.end.unbounded else a, last[side] if edges.start.unbounded else b
                ranges.append((a, b))
            for a, b in ranges:
                low, high = _least(low, self._cut(side, a, False)), _greatest(high, self._cut(side, b, True))
        return Extent(low, high, first, last)

    def _moved(self) -> list[Extent]:
        """The rows at which buckets of ntile end, before and after."""
        found: list[Extent] = []
        for number in self.reach.buckets:
            for ends in zip(*(bucket_ends(number, size) for size in self.end), strict=True):
                low = min(self._cut(side, end, False) for side, end in enumerate(ends))
                high = max(self._cut(side, end, True) for side, end in enumerate(ends))
                found += [Extent(low, high, low, high)] if low < high else []
        return found

    def _cut(self, side: int, rank: int, behind: bool) -> Cut:
        """The cut before the row at a rank of one side, or after the row before it (``behind``)."""
        if rank >= self.end[side]:
            return self.end
        if rank <= 0:
            return 0, 0
        vals, _, _ = self.groups[side].rows.rows(rank - behind, rank - behind + 1)
        words = self.plan.layout.peers if self.reach.by_peers else vals.shape[1]
        if not words:
            return self.end if behind else (0, 0)
        before, after = (int(g.rows.ranks(vals[:, :words], behind)[0]) for g in self.groups)
        return before, after

    # -- open sides ----------------------------------------------------------------------------------------------

    def _right(self, extent: Extent, bound: Cut) -> Iterator[tuple[Cut, Cut]]:
        """Portions after an extent, up to ``bound`` at most."""
        size, low = FIRST, extent.high
        while low < bound and not self._same(low, True, extent):
            high = min(self._cut(1, low[1] + size, True) if low[1] + size < bound[1] else bound, bound)
            high = bound if high <= low else high
            yield low, high
            size, low = min(2 * size, MOST), high

    def _left(self, extent: Extent, bound: Cut) -> Iterator[tuple[Cut, Cut]]:
        """Portions before an extent, down to ``bound`` at most."""
        size, high = FIRST, extent.low
        while high > bound and not self._same(high, False, extent):
            low = max(self._cut(1, high[1] - size, False) if high[1] - size > bound[1] else bound, bound)
            low = bound if low >= high else low
            yield low, high
            size, high = min(2 * size, MOST), low

    def _same(self, cut: Cut, right: bool, extent: Extent) -> bool:
        """Whether the rows on the far side of a cut keep their results, as the nearest row on its near side shows."""
        sources = []
        for group, rank in zip(self.groups, cut, strict=True):
            at = rank - 1 if right else rank
            if not 0 <= at < group.rows.size:
                return False
            vals, _, _ = group.rows.rows(at, at + 1)
            sources.append(Searched(group, np.array([at]), vals[:1]))
        if (sources[0].vals != sources[1].vals).any():
            return False
        changed = (extent.first, extent.last)
        return settled(self.plan, self.frames, self.reach, (sources[0], sources[1]), right, changed, self.context)


def _least(a: Cut, b: Cut) -> Cut:
    return min(a[0], b[0]), min(a[1], b[1])


def _greatest(a: Cut, b: Cut) -> Cut:
    return max(a[0], b[0]), max(a[1], b[1])


Show = Callable[[Searched], tuple[Words, Words]]
"""(the rows with their results, the rows of errors) of some rows."""


def changes(walk: Walk, show: Show) -> tuple[list[Words], list[Words], list[Words], list[Words]]:
    """(old rows, new rows, old errors, new errors), in pieces."""
    gone: list[Words] = []
    came: list[Words] = []
    errors_gone: list[Words] = []
    errors_came: list[Words] = []
    for low, high in walk.portions():
        for side, rows, errors in ((0, gone, errors_gone), (1, came, errors_came)):
            if low[side] < high[side]:
                shown, failed = show(Searched.between(walk.groups[side], low[side], high[side]))
                rows.append(shown)
                errors.append(failed)
    return gone, came, errors_gone, errors_came
