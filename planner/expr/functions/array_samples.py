"""Functions that choose elements of an array: at random, or by binary search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ivm.errors import SqlError
from ivm.words import INT4
from planner.expr.functions.numbers.randoms import numbers
from planner.expr.functions.table import ANYARRAY, ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, CallSite, per_value
from planner.expr.ordering import comparable
from storage.types.arrays import bounded, lower_bounds, shape
from storage.types.order import sort_key
from storage.types.type_names import format_type

Array = tuple[Any, ...]


def _drawn(site: CallSite, array: Array, count: int) -> Array:
    """So many items, each as likely in each place (Fisher and Yates)."""
    items, whole = list(array), numbers(site).whole
    for at in range(count):
        other = whole(at, len(items) - 1)
        items[at], items[other] = items[other], items[at]
    return tuple(items[:count])


@per_value("array_shuffle", (ANYARRAY,), ANYARRAY, volatility="volatile", needs_site=True)
def array_shuffle(site: CallSite, array: Array) -> Array:
    """The items of the first dimension in random order."""
    return bounded(_drawn(site, array, len(array)), lower_bounds(array, 1))


@per_value("array_sample", (ANYARRAY, INT4), ANYARRAY, volatility="volatile", needs_site=True)
def array_sample(site: CallSite, array: Array, count: int) -> Array:
    """So many random items of the first dimension."""
    if not 0 <= count <= len(array):
        raise SqlError("22023", f"sample size must be between 0 and {len(array)}")
    return _drawn(site, array, count)


@per_value("width_bucket", (ANYCOMPATIBLE, ANYCOMPATIBLEARRAY), INT4, makes_null=False, needs_site=True)
def bucket_of(site: CallSite, value: Any, thresholds: Array) -> int:
    """How many of the ascending thresholds are not above the value."""
    type_ = site.args[0]
    if not comparable(type_):
        message = f"could not identify a comparison function for type {format_type(type_, False)}"
        raise SqlError("42883", message)
    if len(shape(thresholds, isinstance(value, tuple))) > 1:
        raise SqlError("2202E", "thresholds must be one-dimensional array")
    if None in thresholds:
        raise SqlError("22004", "thresholds array must not contain NULLs")
    return _bisected(len(thresholds), sort_key(type_, value), lambda at: sort_key(type_, thresholds[at]))


def _bisected(count: int, wanted: bytes, key: Callable[[int], bytes]) -> int:
    """Postgres's search, which also decides what thresholds in no order give."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if wanted < key(middle):
            high = middle
        else:
            low = middle + 1
    return low
