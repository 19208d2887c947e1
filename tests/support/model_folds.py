"""Aggregates of a group's rows in plain Python: exact fractions, sorted lists, counters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Fold = Callable[[Sequence[dict[str, Any]]], Any]


@dataclass(frozen=True)
class Case:
    """An aggregate as SQL, and as a function of a group's rows."""

    sql: str
    fold: Fold


def there(rows: Iterable[dict[str, Any]], column: str) -> list[Any]:
    return [r[column] for r in rows if r[column] is not None]


def on(column: str, fold: Callable[[list[Any]], Any]) -> Fold:
    """A fold of the column's non-NULL values; NULL if there are none."""

    def of(rows: Sequence[dict[str, Any]]) -> Any:
        values = there(rows, column)
        return fold(values) if values else None

    return of


def text(column: str, fold: Callable[[list[Any]], Any]) -> Fold:
    """The same, compared to the last digit: a numeric's scale is part of its text."""
    return on(column, lambda values: str(fold(values)))


def moments(values: list[Any], sample: bool) -> Fraction | None:
    exact = [Fraction(v) for v in values]
    count = len(exact)
    if count <= sample:
        return None
    mean = sum(exact, Fraction(0)) / count
    return sum(((v - mean) ** 2 for v in exact), Fraction(0)) / (count - sample)


def root(value: Fraction | None) -> float | None:
    return None if value is None else math.sqrt(value)


def pairs(fold: Callable[[int, Fraction, Fraction, Fraction, Fraction, Fraction], Any]) -> Fold:
    """A fold of (count, mean of f, mean of x, sums of squares and of products around the means), over rows with both f
    and x."""

    def of(rows: Sequence[dict[str, Any]]) -> Any:
        both = [(Fraction(r["f"]), Fraction(r["x"])) for r in rows if r["f"] is not None and r["x"] is not None]
        if not both:
            return None
        count = len(both)
        y = sum((a for a, _ in both), Fraction(0)) / count
        x = sum((b for _, b in both), Fraction(0)) / count
        syy = sum(((a - y) ** 2 for a, _ in both), Fraction(0))
        sxx = sum(((b - x) ** 2 for _, b in both), Fraction(0))
        sxy = sum(((a - y) * (b - x) for a, b in both), Fraction(0))
        return fold(count, y, x, syy, sxx, sxy)

    return of


def continuous(values: Sequence[Any], fraction: float) -> Any:
    ordered = sorted(float(v) for v in values)
    place = fraction * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (place - math.floor(place)) * (high - low)


def discrete(values: Sequence[Any], fraction: float, descending: bool = False) -> Any:
    return sorted(values, reverse=descending)[max(math.ceil(fraction * len(values)), 1) - 1]


def mode(values: Sequence[Any]) -> Any:
    counts = Counter(values)
    return min(v for v, n in counts.items() if n == max(counts.values()))


def bits(values: list[int], fold: Callable[[int, int], int]) -> int:
    total = values[0]
    for value in values[1:]:
        total = fold(total, value)
    return total


def listed(values: Iterable[Any]) -> str | None:
    values = list(values)
    return None if not values else "{" + ",".join("NULL" if v is None else str(v) for v in values) + "}"


def last_null(value: Any) -> tuple[bool, Any]:
    return value is None, 0 if value is None else value
