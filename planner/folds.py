"""The planner's own reducers: first row, top-k, set operations by equality class, the one value of a subquery."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ivm.errors import SqlError
from ivm.graph import Reduced, Reducer, Words
from planner.context import Context
from planner.evaluate import constant
from planner.scalar import Scalar


@dataclass(frozen=True, slots=True)
class FirstRow:
    """A group's first value."""

    out_width: int

    @property
    def can_fail(self) -> bool:
        return False

    @property
    def limit(self) -> int | None:
        return 1

    def bind(self, context: Context) -> Reducer:
        return self

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        starts = offsets[:-1]
        live = diffs[starts, 0] > 0
        return Reduced(np.flatnonzero(live).astype(np.int64), vals[starts[live]])


@dataclass(frozen=True, slots=True)
class TopRows:
    """Of each group's values, written out as often as they occur, those from ``offset`` on, ``count`` at most.

    A value comes out as [its words from ``skip`` on | how often], since a reduce gives each row once.
    """

    skip: int
    width: int
    count: int | None
    offset: int

    @property
    def out_width(self) -> int:
        return 1 + self.width

    @property
    def can_fail(self) -> bool:
        return False

    @property
    def limit(self) -> int | None:
        return None if self.count is None else max(self.count + self.offset, 1)

    def bind(self, context: Context) -> Reducer:
        return self

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        counts = np.maximum(diffs[:, 0], 0)
        group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        ends = np.cumsum(counts)
        base = np.concatenate([[0], ends])[offsets[:-1]]
        end = ends - base[group]
        start = end - counts
        low = np.maximum(start, self.offset)
        high = end if self.count is None else np.minimum(end, self.offset + self.count)
        taken = np.maximum(high - low, 0)
        keep = np.flatnonzero(taken > 0)
        rows = vals[keep, self.skip : self.skip + self.width]
        return Reduced(group[keep].astype(np.int64), np.column_stack([taken[keep], rows]).astype(np.int64))


@dataclass(frozen=True, slots=True)
class TopFold:
    """``TopRows`` whose limit and offset are expressions without columns. NULL: no limit, no offset."""

    skip: int
    width: int
    count: Scalar | None
    offset: Scalar | None

    @property
    def out_width(self) -> int:
        return 1 + self.width

    @property
    def can_fail(self) -> bool:
        return False

    def bind(self, context: Context) -> Reducer:
        return TopRows(self.skip, self.width, slice_bound(self.count, "LIMIT", context),
                       slice_bound(self.offset, "OFFSET", context) or 0)  # fmt: skip


def slice_bound(expr: Scalar | None, clause: str, context: Context) -> int | None:
    """The number of a LIMIT or OFFSET; None for NULL or none. Errors: 2201W, 2201X when negative."""
    if expr is None:
        return None
    value = constant(expr, context)
    if value is None:
        return None
    assert isinstance(value, int)
    if value < 0:
        raise SqlError("2201W" if clause == "LIMIT" else "2201X", f"{clause} must not be negative")
    return value


@dataclass(frozen=True, slots=True)
class SetFold:
    """INTERSECT or EXCEPT by equality class: values are [side | row], out come [count | row] of the left side.

    Of equal rows with different words the first ones (by word) are the ones that stay.
    """

    intersect: bool
    all: bool
    width: int

    @property
    def out_width(self) -> int:
        return 1 + self.width

    @property
    def can_fail(self) -> bool:
        return False

    @property
    def limit(self) -> int | None:
        return None

    def bind(self, context: Context) -> Reducer:
        return self

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        segments: list[int] = []
        out: list[Words] = []
        for i in range(len(offsets) - 1):
            for row in self._group(vals[offsets[i] : offsets[i + 1]], diffs[offsets[i] : offsets[i + 1], 0]):
                segments.append(i)
                out.append(row)
        rows = np.array(out, np.int64).reshape(-1, self.out_width)
        return Reduced(np.array(segments, np.int64), rows)

    def _group(self, vals: Words, diffs: Words) -> list[Words]:
        on_left = vals[:, 0] == 0
        left, right = int(diffs[on_left].sum()), int(diffs[~on_left].sum())
        left, right = max(left, 0), max(right, 0)
        if self.all:
            wanted = min(left, right) if self.intersect else max(left - right, 0)
        else:
            wanted = int(left > 0 and (right > 0) is self.intersect)
        found = []
        for row, diff in zip(vals[on_left], diffs[on_left], strict=True):
            taken = min(wanted, max(int(diff), 0))
            if taken > 0:
                found.append(np.concatenate([[taken], row[1:]]).astype(np.int64))
                wanted -= taken
        return found


@dataclass(frozen=True, slots=True)
class OneValue:
    """The value of a scalar subquery, [word | is NULL | how many rows]: of several rows the first."""

    @property
    def out_width(self) -> int:
        return 3

    @property
    def can_fail(self) -> bool:
        return False

    @property
    def limit(self) -> int | None:
        return 2

    def bind(self, context: Context) -> Reducer:
        return self

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        starts = offsets[:-1]
        counts = np.maximum(diffs[:, 0], 0)
        totals = np.add.reduceat(counts, starts) if len(starts) else counts
        live = totals > 0
        # a negative first value happens only at times that are not final: any value will do
        rows = np.column_stack([vals[starts], np.minimum(totals, 2)])
        return Reduced(np.flatnonzero(live).astype(np.int64), rows[live].astype(np.int64))
