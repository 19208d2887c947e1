"""RANGE with an offset in a large group: values as words that the group's order is searched for."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np

from ivm.rows import Mask, Vector, Words
from ivm.trace.ordered import Ordered
from ivm.words import NEGATIVE_INFINITY, POSITIVE_INFINITY, Kind, SqlType, Storage
from planner.aggregates.reducers import value_words
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluated
from planner.expr.scalar import Column, SortKey
from planner.frames.distance import DAY, Distance, Keys
from planner.frames.plan import Layout
from storage.types import codec
from storage.types.codec import float_to_word
from storage.types.numeric import DIRECT_NAN

_MONTH = 30 * DAY
_LEAST, _MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Probes:
    """The order of one group."""

    layout: Layout
    context: Context
    rows: Ordered

    def reach(
        self, columns: list[Vector], vals: Words, distance: Distance, following: bool, end: bool
    ) -> Words:  # fmt: skip
        """``Source.reach`` for rows with these columns and values."""
        key = self.layout.sorted_by
        assert key is not None
        assert isinstance(key.expr, Column)
        column = columns[key.expr.index]
        nulls = np.zeros(len(vals), np.bool_) if column.nulls is None else column.nulls
        out = np.empty(len(vals), np.int64)
        low, high = self._values()
        if key.nulls_first:
            out[nulls] = low if end else 0
        else:
            out[nulls] = self.rows.size if end else high
        there = np.flatnonzero(~nulls)
        if len(there):
            more = following != key.descending
            moved = distance.moved(column.words[there], more, end == key.descending, self.context)
            out[there] = self._places(key, moved, end, low, high)
        return out

    def _values(self) -> tuple[int, int]:
        """The ranks of the rows with a value."""
        key = self.layout.sorted_by
        assert key is not None
        if not self.layout.flagged:
            return 0, self.rows.size
        first = self.rows.ranks(np.array([[0]]), True)[0]  # the first word is 1 for the rows that come last
        return (int(first), self.rows.size) if key.nulls_first else (0, int(first))

    def _places(self, key: SortKey, moved: Keys, end: bool, low: int, high: int) -> Words:
        """Where values end (``end``) or begin among the rows with a value."""
        words, below, above = _words(key.expr.type, moved, end == key.descending, self.context)
        least, most = (high, low) if key.descending else (low, high)
        expr = Column(0, key.expr.type, False)
        exprs = tuple(e for e, _ in value_words(SortKey(expr, key.descending)))
        vectors = evaluated(exprs, [Vector(words)], len(words), self.context)
        parts = [v.words for v in vectors]
        if self.layout.flagged:
            parts.insert(0, np.full(len(words), int(key.nulls_first)))
        found = np.clip(self.rows.ranks(np.stack(parts, axis=1), end), low, high)
        return np.where(below, least, np.where(above, most, found))


def _words(type_: SqlType, moved: Keys, up: bool, context: Context) -> tuple[Words, Mask, Mask]:
    """(words of the type, which keys are below all of them, which are above). A key between two values is rounded
    ``up`` or down."""
    n = len(moved)
    none = np.zeros(n, np.bool_)
    if type_.kind in (Kind.FLOAT4, Kind.FLOAT8):
        return float_to_word(np.ascontiguousarray(moved)), none, none
    if type_.kind is Kind.INTERVAL:
        values: list[Any] = [(k // _MONTH, 0, k % _MONTH) for k in moved.tolist()]
        return codec.encode(type_, values, context.dictionary).words, none, none
    if type_.kind is Kind.NUMERIC and type_.storage is not Storage.DIRECT:
        values = [Decimal("NaN") if is_nan else value for is_nan, value in moved.tolist()]
        return codec.encode(type_, values, context.dictionary).words, none, none
    if type_.kind is Kind.NUMERIC:
        integers = [_scaled(is_nan, value, type_.scale or 0, up) for is_nan, value in moved.tolist()]
    elif type_.kind is Kind.DATE:
        fixed = (POSITIVE_INFINITY, NEGATIVE_INFINITY)
        integers = [k if k in fixed else -(-k // DAY) if up else k // DAY for k in moved.tolist()]
    else:
        integers = moved.tolist()
    below = np.array([k < _LEAST for k in integers])
    above = np.array([k > _MOST for k in integers])
    return np.array([min(max(k, _LEAST), _MOST) for k in integers], np.int64), below, above


def _scaled(is_nan: bool, value: Decimal, scale: int, up: bool) -> int:
    if is_nan:
        return DIRECT_NAN
    if value.is_infinite():
        return _MOST + 1 if value > 0 else _LEAST - 1
    return int(value.scaleb(scale).to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))
