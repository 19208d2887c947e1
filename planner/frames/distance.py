"""RANGE with an offset: the values that bound a row's frame (PostgreSQL's in_range functions).

Values are compared as *keys*: an array that ``numpy.searchsorted`` takes, in ascending order of the values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Decimal
from decimal import Context as DecimalContext
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ivm.errors import SqlError
from ivm.rows import Vector, Words
from ivm.words import (
    INTERVAL,
    NEGATIVE_INFINITY,
    POSITIVE_INFINITY,
    TIMESTAMP,
    Kind,
    SqlType,
)
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate
from planner.expr.ordering import decode_words
from planner.expr.scalar import Call, Column, Literal
from storage.types.codec import word_to_float
from storage.types.timetz import timetz

Keys = NDArray[Any]
DAY: Final = 86_400_000_000
_FLOATS: Final = (Kind.FLOAT4, Kind.FLOAT8)
_LARGEST: Final = 2**63 - 1
_EXACT: Final = DecimalContext(prec=200_000, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True, slots=True)
class Distance:
    """An offset from values of a type. ``datum``: of type int8, float8, numeric or interval, by ``type``."""

    type: SqlType
    datum: Any

    def __post_init__(self) -> None:
        """Raises 22013 for an offset that is negative or NaN."""
        datum, kind = self.datum, self.type.kind
        if kind in _TIMES:
            bad = datum[2] < 0
        elif kind in _MOMENTS or kind is Kind.INTERVAL:
            bad = _size(datum) < 0
        else:
            bad = (datum.is_nan() if isinstance(datum, Decimal) else math.isnan(datum)) or datum < 0
        if bad:
            raise SqlError("22013", "invalid preceding or following size in window function")

    def keys(self, words: Words, context: Context) -> Keys:
        """The keys of values."""
        kind = self.type.kind
        if kind in _FLOATS:
            return word_to_float(np.ascontiguousarray(words)) + 0.0
        if kind is Kind.DATE:
            infinite = (words == POSITIVE_INFINITY) | (words == NEGATIVE_INFINITY)
            return np.where(infinite, words, np.where(infinite, 0, words) * DAY)
        if kind is Kind.INTERVAL:
            return _objects([_size(v) for v in decode_words(self.type, words, context.dictionary)])
        if kind is Kind.NUMERIC:
            return _objects([_comparable(v) for v in decode_words(self.type, words, context.dictionary)])
        return words

    def moved(self, words: Words, more: bool, least: bool, context: Context) -> Keys:
        """The keys of the values plus (``more``) or minus the offset, for the question which values are not less
        (``least``) or not greater than these."""
        kind, datum = self.type.kind, self.datum
        keys = self.keys(words, context)
        if kind in _FLOATS:
            return _moved_floats(keys, datum if more else -datum, least)
        if kind is Kind.NUMERIC:
            return _objects([_moved_numeric(k, datum if more else datum.copy_negate(), least) for k in keys.tolist()])
        if kind is Kind.INTERVAL:
            size = _size(datum)
            return _objects([k + size if more else k - size for k in keys.tolist()])
        if kind in _MOMENTS and (datum[0] or (datum[1] and kind is Kind.TIMESTAMPTZ)):
            return self._by_calendar(keys, more, context)
        if kind is Kind.TIMETZ:
            by = timetz(min(datum[2], 7 * DAY), 0) - timetz(0, 0)
            return _moved_integers(keys, by, more, False)
        size = datum[2] if kind is Kind.TIME else datum[1] * DAY + datum[2] if kind in _MOMENTS else datum
        return _moved_integers(keys, min(size, _LARGEST), more, kind in _MOMENTS)

    def _by_calendar(self, keys: Words, more: bool, context: Context) -> Words:
        """Timestamps plus or minus an interval with months, or with days in a time zone. Values out of range are
        infinite."""
        type_ = TIMESTAMP if self.type.kind is Kind.DATE else self.type
        name = f"{'+' if more else '-'}({type_.kind.value},interval)"
        call = Call(name, (Column(0, type_, False), Literal(self.datum, INTERVAL)), type_, False)
        (vector,), failures = evaluate((call,), [Vector(keys)], len(keys), context)
        words = np.array(vector.words)
        if failures is not None:
            words[failures.rows] = POSITIVE_INFINITY if more else NEGATIVE_INFINITY
        return words


_TIMES: Final = (Kind.TIME, Kind.TIMETZ)
"""These do not count the months and days of an offset."""
_MOMENTS: Final = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def _size(interval: tuple[int, int, int]) -> int:
    """An interval's length as it compares: months have 30 days, days 24 hours."""
    months, days, micros = interval
    return (months * 30 + days) * DAY + micros


def _comparable(value: Decimal) -> tuple[bool, Decimal]:
    """NaN is equal to itself and greater than all other values."""
    return (True, Decimal(0)) if value.is_nan() else (False, value)


def _moved_floats(keys: NDArray[np.float64], by: float, least: bool) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", over="ignore"):
        moved = keys + by
    undefined = np.isnan(moved) & ~np.isnan(keys)  # infinity minus infinity: every value is in range
    return np.where(undefined, -np.inf if least else np.inf, moved)


def _moved_numeric(key: tuple[bool, Decimal], by: Decimal, least: bool) -> tuple[bool, Decimal]:
    is_nan, value = key
    if is_nan:
        return key
    if value.is_infinite() and by.is_infinite() and value != by:
        return False, Decimal("-Infinity" if least else "Infinity")
    return False, _EXACT.add(value, by)


def _moved_integers(keys: Words, by: int, more: bool, has_infinity: bool) -> Keys:
    """Sums or differences; as Python's integers if one does not fit a word."""
    fixed = (keys == POSITIVE_INFINITY) | (keys == NEGATIVE_INFINITY) if has_infinity else np.zeros(len(keys), np.bool_)
    beyond = keys > _LARGEST - by if more else keys < -_LARGEST + by
    step = by if more else -by
    if (beyond & ~fixed).any():
        return _objects([k if f else k + step for k, f in zip(keys.tolist(), fixed.tolist(), strict=True)])
    return np.where(fixed, keys, np.where(fixed, 0, keys) + step)


def _objects(values: list[Any]) -> Keys:
    keys = np.empty(len(values), object)
    keys[:] = values
    return keys
