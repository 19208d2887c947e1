"""Ordered-set aggregates as functions of an array: the group's values in the order of WITHIN GROUP.

If the fraction depends on the group, the binder rewrites ``percentile_disc(p) WITHIN GROUP (ORDER BY x)`` to one of
these functions of ``array_agg(x ORDER BY x)`` (otherwise see ``planner/aggregates/percentile.py``). Clients cannot call
them. The array is NULL for no rows; NULLs among the values are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from ivm.errors import SqlError
from ivm.words import FLOAT8, INTERVAL, Kind, SqlType
from planner.expr.functions.datetime.operators import interval_minus, interval_plus, interval_times
from planner.expr.functions.table import ANYARRAY, ANYELEMENT, ArgumentType, per_value
from storage.types.interval_output import Interval

T = TypeVar("T")
_FLOATS: Final = SqlType(Kind.ARRAY, element=FLOAT8)
_INTERVALS: Final = SqlType(Kind.ARRAY, element=INTERVAL)
_Pick = Callable[[Sequence[Any], float], Any]


def checked(fraction: float) -> float:
    """The fraction, checked to be in range. Raises 22003."""
    if not 0 <= fraction <= 1:
        raise SqlError("22003", f"percentile value {fraction:g} is not between 0 and 1".replace("nan", "NaN"))
    return fraction


def leaves(fractions: Sequence[Any]) -> list[float | None]:
    """The fractions of an array of any number of dimensions, in order."""
    found: list[float | None] = []
    for item in fractions:
        found += leaves(item) if isinstance(item, tuple) else [item]
    return found


def shaped(fractions: Sequence[Any], values: Iterator[Any]) -> tuple[Any, ...]:
    """An array of the values, which has the dimensions of the fractions."""
    return tuple(shaped(item, values) if isinstance(item, tuple) else next(values) for item in fractions)


def _one(values: Sequence[Any] | None, fraction: float | None, pick: _Pick) -> Any:
    if fraction is None:
        return None
    checked(fraction)
    there = [v for v in values or () if v is not None]
    return pick(there, fraction) if there else None


def _many(values: Sequence[Any] | None, fractions: Sequence[Any] | None, pick: _Pick) -> Any:
    if fractions is None:
        return None
    flat = leaves(fractions)
    for fraction in flat:
        if fraction is not None:
            checked(fraction)
    there = [v for v in values or () if v is not None]
    return shaped(fractions, iter([None if f is None else pick(there, f) for f in flat])) if there else None


def _discrete(values: Sequence[T], fraction: float) -> T:
    return values[max(math.ceil(fraction * len(values)), 1) - 1]


def _around(values: Sequence[T], fraction: float) -> tuple[T, T, float]:
    """The two values that a position lies between, and how far along it is from the first to the second."""
    place = fraction * (len(values) - 1)
    first = math.floor(place)
    return values[first], values[math.ceil(place)], place - first


def between(low: float, high: float, part: float) -> float:
    """Linear interpolation between two doubles; ``part`` from 0 to 1."""
    return low if not part else low + part * (high - low)


def interval_between(low: Interval, high: Interval, part: float) -> Interval:
    """Linear interpolation between two intervals; ``part`` from 0 to 1."""
    return low if not part else interval_plus(low, interval_times(interval_minus(high, low), part))


def _add(name: str, values: ArgumentType, result: ArgumentType, results: ArgumentType, pick: _Pick) -> None:
    """Adds a percentile of one fraction and that of an array of fractions."""
    per_value(name, (values, FLOAT8), result, strict=False)(lambda items, fraction: _one(items, fraction, pick))
    per_value(name, (values, _FLOATS), results, strict=False)(lambda items, fractions: _many(items, fractions, pick))


_add("percentile_cont", _FLOATS, FLOAT8, _FLOATS, lambda values, fraction: between(*_around(values, fraction)))
_add(
    "percentile_cont", _INTERVALS, INTERVAL, _INTERVALS,
    lambda values, fraction: interval_between(*_around(values, fraction)),
)  # fmt: skip
_add("percentile_disc", ANYARRAY, ANYELEMENT, ANYARRAY, _discrete)
