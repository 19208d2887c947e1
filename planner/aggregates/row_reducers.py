"""The planner's own reducers: first row, top-k, set operations by equality class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ivm.errors import SqlError
from ivm.graph import Picks, Rank, Reduced, Reducer, Window
from ivm.operators.picking import pick
from ivm.rows import Words, unpack
from ivm.words import Schema
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import constant, evaluate
from planner.expr.row_errors import error_words
from planner.expr.scalar import Scalar, SortKey
from planner.logical.nodes import Numbering
from planner.logical.traversal import columns_of


@dataclass(frozen=True, slots=True)
class FirstRow:
    """A group's first value."""

    out_width: int
    can_fail: ClassVar[bool] = False
    limit: ClassVar[int | None] = 1

    def bind(self, context: Context) -> Reducer:
        return self

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        starts = offsets[:-1]
        live = diffs[starts, 0] > 0
        return Reduced(np.flatnonzero(live).astype(np.int64), vals[starts[live]])


@dataclass(frozen=True, slots=True)
class TopRows:
    """At most ``count`` of each group's values from ``offset`` on, where a value counts as often as it occurs.

    A reduce gives each row once, so the output is [the value's words from ``skip`` on | how often].
    """

    skip: int
    width: int
    count: int | None
    offset: int
    can_fail: ClassVar[bool] = False
    limit: ClassVar[int | None] = None

    @property
    def out_width(self) -> int:
        return 1 + self.width

    @property
    def picks(self) -> Picks:
        last = None if self.count is None else self.offset + self.count
        return Picks((Window(first=self.offset, last=last),), changes=True)

    def bind(self, context: Context) -> Reducer:
        return self

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        rows = vals[:, self.skip : self.skip + self.width]
        return Reduced(group, np.column_stack([diffs[:, 0], rows]))


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """The numbered values of each group, up to the numbering's limit; peers agree in their first ``peers`` words.

    The output is [how often | rows before it | rows before its peers | groups of peers before | its words].
    """

    skip: int
    width: int
    peers: int
    count: int | None
    limit_of: Numbering | None
    can_fail: ClassVar[bool] = False
    limit: ClassVar[int | None] = None

    @property
    def out_width(self) -> int:
        return 4 + self.width

    @property
    def picks(self) -> Picks:
        match self.limit_of:
            case Numbering.RANK if self.peers:
                window = Window(Rank.PEERS, last=self.count, words=self.peers)
            case Numbering.DENSE_RANK if self.peers:
                window = Window(Rank.GROUPS, last=self.count, words=self.peers)
            case Numbering.ROW_NUMBER:
                window = Window(last=self.count)
            case _:
                # without an order, all rows are peers
                window = Window(last=0 if self.count == 0 else None)
        return Picks((window,))

    def bind(self, context: Context) -> Reducer:
        return self

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        fresh = np.ones(len(vals), np.bool_)
        fresh[1:] = (vals[1:, : self.peers] != vals[:-1, : self.peers]).any(axis=1)
        fresh[offsets[:-1][offsets[:-1] < len(vals)]] = True
        before = diffs[:, 2]
        number = np.cumsum(fresh) - 1
        first = np.flatnonzero(fresh)
        peers = number - number[offsets[:-1]][group]
        rows = vals[:, self.skip : self.skip + self.width]
        return Reduced(group, np.column_stack([diffs[:, 0], before, before[first][number], peers, rows]))


@dataclass(frozen=True, slots=True)
class TopFold:
    """``TopRows`` whose limit and offset are expressions without columns. NULL: no limit, no offset.

    ``order``: what the order of the values, which breaks ties, begins with.
    """

    skip: int
    width: int
    count: Scalar | None
    offset: Scalar | None
    keys: Schema = ()
    order: tuple[SortKey, ...] = field(default=(), compare=False)

    @property
    def out_width(self) -> int:
        return 1 + self.width

    @property
    def is_grouped(self) -> bool:
        """Whether the bounds are columns of the key, so that each group has its own."""
        return any(columns_of(e) for e in (self.count, self.offset) if e is not None)

    @property
    def can_fail(self) -> bool:
        return self.is_grouped

    def bind(self, context: Context) -> Reducer:
        if self.is_grouped:
            return TopOfKey(self, context)
        return TopRows(self.skip, self.width, slice_bound(self.count, "LIMIT", context),
                       slice_bound(self.offset, "OFFSET", context) or 0)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class TopOfKey:
    """``TopRows`` with bounds computed from each group's key: a correlated LIMIT. Negative bounds are errors."""

    fold: TopFold
    context: Context
    limit: ClassVar[int | None] = None

    @property
    def out_width(self) -> int:
        return self.fold.out_width

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopOfKey) and self.fold == other.fold and self.context is other.context

    def __hash__(self) -> int:
        return hash(self.fold)

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        count, offset = self._bound(keys, self.fold.count), self._bound(keys, self.fold.offset)
        offset = np.where(offset == _ALL, 0, offset)
        bad = np.flatnonzero((count < 0) | (offset < 0)).astype(np.int64)
        segments, out = [], []
        for i in np.flatnonzero((count >= 0) & (offset >= 0)).tolist():
            part = slice(offsets[i], offsets[i + 1])
            limit = None if count[i] == _ALL else int(count[i])
            top = TopRows(self.fold.skip, self.fold.width, limit, int(offset[i]))
            ends = np.array([0, offsets[i + 1] - offsets[i]])
            made = top(keys[i : i + 1], *pick(top.picks, ends, vals[part], diffs[part]))
            segments += [i] * len(made.vals)
            out.append(made.vals)
        rows = np.concatenate(out) if out else np.zeros((0, self.out_width), np.int64)
        failed = [_negative("LIMIT" if count[i] < 0 else "OFFSET") for i in bad.tolist()]
        errors = error_words(failed, [None] * len(failed), self.context.dictionary)
        return Reduced(np.array(segments, np.int64), rows, errors, bad)

    def _bound(self, keys: Words, expr: Scalar | None) -> Words:
        """Each group's bound, ``_ALL`` for none."""
        if expr is None:
            return np.full(len(keys), _ALL)
        columns = unpack(keys, self.fold.keys)
        (vector,), failures = evaluate((expr,), columns, len(keys), self.context)
        words = vector.words if vector.nulls is None else np.where(vector.nulls, _ALL, vector.words)
        words = np.array(words, np.int64)
        if failures is not None:
            words[failures.rows] = -1
        return words


def _negative(clause: str) -> SqlError:
    return SqlError("2201W" if clause == "LIMIT" else "2201X", f"{clause} must not be negative")


_ALL = np.iinfo(np.int64).max


def slice_bound(expr: Scalar | None, clause: str, context: Context) -> int | None:
    """The value of a LIMIT or OFFSET; None if NULL or absent. Raises 2201W or 2201X if negative."""
    if expr is None:
        return None
    value = constant(expr, context)
    if value is None:
        return None
    assert isinstance(value, int)
    if value < 0:
        raise _negative(clause)
    return value


@dataclass(frozen=True, slots=True)
class SetFold:
    """INTERSECT or EXCEPT by equality class: vals are [side | row], vals out [count | row] of the left side.

    Of equal rows with different words, the first ones (by word) remain.
    """

    intersect: bool
    all: bool
    width: int
    can_fail: ClassVar[bool] = False
    limit: ClassVar[int | None] = None

    @property
    def out_width(self) -> int:
        return 1 + self.width

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
