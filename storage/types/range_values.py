"""Ranges and multiranges as datums, and their algebra (after PostgreSQL's ``rangetypes.c`` and ``multirangetypes.c``).

Functions take a ``Space``: the type of a range, and how its bounds compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import Kind, RangeType, SqlType
from storage.types.calendar import MAX_DATE

Position = tuple[Any, ...]
"""A bound's place: (-1,) and (1,) for the infinities, else (0, key, -1, 0 or 1), just before, at or just after it."""
_LIMITS: Final = {Kind.INT4: (2**31 - 1, "integer"), Kind.INT8: (2**63 - 1, "bigint")}
_FINITE: Final = 2**62


@dataclass(frozen=True, slots=True)
class Range:
    """A range's datum. A bound that is None is infinite (and exclusive)."""

    lower: Any = None
    upper: Any = None
    lower_inc: bool = False
    upper_inc: bool = False
    empty: bool = False


@dataclass(frozen=True, slots=True)
class Multirange:
    """A multirange's datum: ranges that are not empty, in order, with gaps between them."""

    ranges: tuple[Range, ...]


EMPTY: Final = Range(empty=True)


@dataclass(frozen=True, slots=True)
class Space:
    """A range type's values. ``type``: of its bounds; ``key``: memcmp-able bytes of a bound's datum."""

    type: SqlType
    discrete: bool
    key: Callable[[SqlType, Any], bytes]

    def low(self, range_: Range) -> Position:
        """The place of a lower bound."""
        if range_.lower is None:
            return (-1,)
        return 0, self.key(self.type, range_.lower), 0 if range_.lower_inc else 1

    def high(self, range_: Range) -> Position:
        """The place of an upper bound."""
        if range_.upper is None:
            return (1,)
        return 0, self.key(self.type, range_.upper), 0 if range_.upper_inc else -1

    def make(self, lower: Any, upper: Any, lower_inc: bool, upper_inc: bool) -> Range:
        """The range with these bounds, in canonical form. Raises 22000, 22003, 22008."""
        lower_inc, upper_inc = lower_inc and lower is not None, upper_inc and upper is not None
        if lower is not None and upper is not None:
            a, b = self.key(self.type, lower), self.key(self.type, upper)
            if a > b:
                raise SqlError("22000", "range lower bound must be less than or equal to range upper bound")
            if a == b and not (lower_inc and upper_inc):
                return EMPTY
        if not self.discrete:
            return Range(lower, upper, lower_inc, upper_inc)
        if lower is not None and not lower_inc and self._steps(lower):
            lower, lower_inc = self._next(lower), True
        if upper is not None and upper_inc and self._steps(upper):
            upper, upper_inc = self._next(upper), False
        if lower is not None and upper is not None and lower >= upper and not upper_inc:
            return EMPTY
        return Range(lower, upper, lower_inc, upper_inc)

    def _steps(self, value: int) -> bool:
        """Whether the value has a next one: an infinite date has none."""
        return self.type.kind is not Kind.DATE or -_FINITE < value < _FINITE

    def _next(self, value: int) -> int:
        if self.type.kind is Kind.DATE:
            if value >= MAX_DATE:
                raise SqlError("22008", "date out of range")
        elif value >= _LIMITS[self.type.kind][0]:
            raise SqlError("22003", f"{_LIMITS[self.type.kind][1]} out of range")
        return value + 1

    def holds(self, range_: Range, value: Any) -> bool:
        """Whether a value is in a range."""
        if range_.empty:
            return False
        place = (0, self.key(self.type, value), 0)
        return self.low(range_) <= place <= self.high(range_)

    def contains(self, a: Range, b: Range) -> bool:
        """Whether b is within a."""
        if b.empty or a.empty:
            return b.empty
        return self.low(a) <= self.low(b) and self.high(b) <= self.high(a)

    def overlaps(self, a: Range, b: Range) -> bool:
        """Whether the two have a value in common."""
        return not (a.empty or b.empty) and self.low(a) <= self.high(b) and self.low(b) <= self.high(a)

    def before(self, a: Range, b: Range) -> bool:
        """Whether a ends before b begins."""
        return not (a.empty or b.empty) and self.high(a) < self.low(b)

    def not_beyond(self, a: Range, b: Range) -> bool:
        """Whether a ends no later than b (``&<``)."""
        return not (a.empty or b.empty) and self.high(a) <= self.high(b)

    def not_short_of(self, a: Range, b: Range) -> bool:
        """Whether a begins no earlier than b (``&>``)."""
        return not (a.empty or b.empty) and self.low(a) >= self.low(b)

    def touch(self, a: Range, b: Range) -> bool:
        """Whether b begins where a ends."""
        if a.upper is None or b.lower is None or a.upper_inc == b.lower_inc:
            return False
        return self.key(self.type, a.upper) == self.key(self.type, b.lower)

    def adjacent(self, a: Range, b: Range) -> bool:
        """Whether nothing is between the two, and nothing in both."""
        return not (a.empty or b.empty) and (self.touch(a, b) or self.touch(b, a))

    def spanned(self, a: Range, b: Range) -> Range:
        """The least range that contains both."""
        if a.empty or b.empty:
            return b if a.empty else a
        first = a if self.low(a) <= self.low(b) else b
        last = a if self.high(a) >= self.high(b) else b
        return Range(first.lower, last.upper, first.lower_inc, last.upper_inc)

    def union(self, a: Range, b: Range) -> Range:
        """Raises 22000 where there is a gap."""
        if not (a.empty or b.empty or self.overlaps(a, b) or self.adjacent(a, b)):
            raise SqlError("22000", "result of range union would not be contiguous")
        return self.spanned(a, b)

    def common(self, a: Range, b: Range) -> Range:
        """The intersection."""
        if not self.overlaps(a, b):
            return EMPTY
        first = a if self.low(a) >= self.low(b) else b
        last = a if self.high(a) <= self.high(b) else b
        return self.make(first.lower, last.upper, first.lower_inc, last.upper_inc)

    def without(self, a: Range, b: Range) -> tuple[Range, ...]:
        """The one or two parts of a, which is not empty, that are not in b; none if there is nothing left."""
        if not self.overlaps(a, b):
            return (a,)
        left, right = EMPTY, EMPTY
        if self.low(a) < self.low(b):
            left = self.make(a.lower, b.lower, a.lower_inc, not b.lower_inc)
        if self.high(a) > self.high(b):
            right = self.make(b.upper, a.upper, not b.upper_inc, a.upper_inc)
        return tuple(part for part in (left, right) if not part.empty)

    def difference(self, a: Range, b: Range) -> Range:
        """Raises 22000 where the result has two parts."""
        if a.empty or b.empty:
            return a
        if self.low(a) < self.low(b) and self.high(a) > self.high(b):
            raise SqlError("22000", "result of range difference would not be contiguous")
        return next(iter(self.without(a, b)), EMPTY)

    def gathered(self, ranges: Iterable[Range]) -> Multirange:
        """The ranges in order, those that touch made one."""
        found: list[Range] = []
        for range_ in sorted((r for r in ranges if not r.empty), key=lambda r: (self.low(r), self.high(r))):
            if found and (self.overlaps(found[-1], range_) or self.adjacent(found[-1], range_)):
                found[-1] = self.spanned(found[-1], range_)
            else:
                found.append(range_)
        return Multirange(tuple(found))

    def all_common(self, a: Multirange, b: Multirange) -> Multirange:
        """The intersection of two multiranges. Cost: linear in both."""
        found: list[Range] = []
        i = j = 0
        while i < len(a.ranges) and j < len(b.ranges):
            one, two = a.ranges[i], b.ranges[j]
            part = self.common(one, two)
            if not part.empty:
                found.append(part)
            if self.high(one) < self.high(two):
                i += 1
            else:
                j += 1
        return Multirange(tuple(found))

    def all_without(self, a: Multirange, b: Multirange) -> Multirange:
        """The values of a that are not in b."""
        parts = list(a.ranges)
        for gone in b.ranges:
            parts = [rest for part in parts for rest in self.without(part, gone)]
        return Multirange(tuple(parts))


def subtype_of(type_: SqlType) -> SqlType:
    """The type of the bounds of a range or multirange type."""
    range_type = range_type_of(type_)
    assert range_type.subtype is not None
    return range_type.subtype


def range_type_of(type_: SqlType) -> SqlType:
    """A multirange's range type; a range type itself."""
    if type_.kind is not Kind.MULTIRANGE:
        return type_
    assert type_.subtype is not None
    return type_.subtype


def multirange_of(type_: SqlType) -> SqlType:
    """A range type's multirange type."""
    assert isinstance(type_.named, RangeType)
    return SqlType(Kind.MULTIRANGE, subtype=type_, named=type_.named.multirange)


def space_of(type_: SqlType, key: Callable[[SqlType, Any], bytes]) -> Space:
    """The space of a range or multirange type."""
    named = range_type_of(type_).named
    assert isinstance(named, RangeType)
    return Space(subtype_of(type_), named.discrete, key)
