"""Ranges and multiranges: constructors, operators, and functions of their bounds.

The algebra is in ``storage.types.range_values``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from ivm.errors import SqlError
from ivm.words import BOOL, TEXT, Kind, NamedType, SqlType
from planner.expr.functions.casts.registry import cast_per_value
from planner.expr.functions.table import (
    ANYELEMENT,
    ANYMULTIRANGE,
    ANYRANGE,
    ArgumentType,
    CallSite,
    Raises,
    per_value,
)
from storage.types.order import sort_key
from storage.types.range_values import (
    EMPTY,
    Multirange,
    Range,
    Space,
    multirange_of,
    space_of,
    subtype_of,
)
from storage.types.ranges import BUILT_IN

_HINT: Final = 'Valid values are "[]", "[)", "(]", and "()".'
RANGE: Final = "range"
MULTIRANGE: Final = "multirange of"
MEETING: Final = frozenset({"&&", "@>", "<@"})
"""The operators of ranges that hold only where both sides have a value in common, but for empty ranges."""
Either = Range | Multirange


def space(type_: SqlType) -> Space:
    """How the values of a range or multirange type compare."""
    return space_of(type_, sort_key)


def _parts(value: Either) -> tuple[Range, ...]:
    """The ranges of a value that are not empty."""
    if isinstance(value, Multirange):
        return value.ranges
    return () if value.empty else (value,)


def hull(value: Either) -> Range:
    """The least range that contains all."""
    parts = _parts(value)
    if not parts:
        return EMPTY
    first, last = parts[0], parts[-1]
    return Range(first.lower, last.upper, first.lower_inc, last.upper_inc)


def _make(site: CallSite, lower: Any, upper: Any, flags: str | None = "[)") -> Range:
    if flags is None:
        raise SqlError("22000", "range constructor flags argument must not be null")
    if flags not in ("[]", "[)", "(]", "()"):
        raise SqlError("42601", "invalid range bound flags", hint=_HINT)
    return space(site.result).make(lower, upper, flags[0] == "[", flags[1] == "]")


def _make_many(site: CallSite, *ranges: Range | None) -> Multirange | None:
    if ranges == (None,):
        return None
    return _gathered(site, ranges)


def _gathered(site: CallSite, ranges: tuple[Range | None, ...]) -> Multirange:
    if None in ranges:
        raise SqlError("22004", "multirange values cannot contain null members")
    return space(site.result).gathered(r for r in ranges if r is not None)


def _make_from_array(site: CallSite, ranges: tuple[Range | None, ...]) -> Multirange:
    if any(isinstance(each, tuple) for each in ranges):
        raise SqlError("21000", "multiranges cannot be constructed from multidimensional arrays")
    return _gathered(site, ranges)


@per_value(
    RANGE, (ANYRANGE, ANYELEMENT, ANYELEMENT, TEXT), ANYRANGE, strict=False, needs_site=True, key_is_name=True,
    makes_null=False, internal=True,
)  # fmt: skip
def make(site: CallSite, _: None, lower: Any, upper: Any, flags: str | None) -> Range:
    """A value of a user's range type, which the first argument, a NULL, has."""
    return _make(site, lower, upper, flags)


@per_value(
    MULTIRANGE, (ANYMULTIRANGE, ANYRANGE), ANYMULTIRANGE, strict=False, variadic=True, needs_site=True,
    key_is_name=True, internal=True,
)  # fmt: skip
def make_many(site: CallSite, _: None, *ranges: Range | None) -> Multirange | None:
    """A value of a user's multirange type, which the first argument, a NULL, has."""
    return _make_many(site, *ranges)


def _name(type_: SqlType) -> str:
    assert isinstance(type_.named, NamedType)
    return type_.named.name


def _constructors() -> None:
    for range_ in BUILT_IN:
        bound, many, name = subtype_of(range_), multirange_of(range_), _name(range_)
        per_value(name, (bound, bound), range_, strict=False, needs_site=True, makes_null=False)(_make)
        per_value(name, (bound, bound, TEXT), range_, strict=False, needs_site=True, makes_null=False)(_make)
        per_value(_name(many), (), many, needs_site=True, makes_null=False)(_make_many)
        per_value(_name(many), (range_,), many, strict=False, variadic=True, needs_site=True)(_make_many)
        array = SqlType(Kind.ARRAY, element=range_)
        per_value(_name(many), (array,), many, needs_site=True, makes_null=False)(_make_from_array)


_constructors()


@per_value("multirange", (ANYRANGE,), ANYMULTIRANGE, needs_site=True, makes_null=False, raises=Raises.NEVER)
@cast_per_value((Kind.RANGE,), (Kind.MULTIRANGE,), needs_site=True, context="explicit", raises=Raises.NEVER)
def to_multirange(site: CallSite, value: Range) -> Multirange:
    return Multirange(_parts(value))


_SIDES: Final = ((ANYRANGE, ANYRANGE), (ANYMULTIRANGE, ANYRANGE), (ANYRANGE, ANYMULTIRANGE), (ANYMULTIRANGE,) * 2)
Test = Callable[[Space, Either, Either], bool]


def _test(symbol: str, rule: Test, function: str = "") -> None:
    def run(site: CallSite, a: Either, b: Either) -> bool:
        return rule(space(site.args[0]), a, b)

    for sides in _SIDES:
        names = (symbol,) if not function else (symbol, _function_name(function, sides))
        for name in names:
            per_value(name, sides, BOOL, needs_site=True, makes_null=False, raises=Raises.NEVER)(run)


def _function_name(name: str, sides: tuple[ArgumentType, ...]) -> str:
    """Postgres's function of an operator: range_before, multirange_before_range, …"""
    a, b = ("multirange" if side is ANYMULTIRANGE else "range" for side in sides)
    return f"range_{name}" if a == b == "range" else f"{a}_{name}_{b}"


def _contains(s: Space, a: Either, b: Either) -> bool:
    return all(any(s.contains(whole, part) for whole in _parts(a)) for part in _parts(b))


def _overlaps(s: Space, a: Either, b: Either) -> bool:
    return any(s.overlaps(one, two) for one in _parts(a) for two in _parts(b))


def _adjacent(s: Space, a: Either, b: Either) -> bool:
    """Of multiranges: a ends where b begins, or the other way round."""
    one, two = _parts(a), _parts(b)
    return bool(one and two) and (s.touch(one[-1], two[0]) or s.touch(two[-1], one[0]))


def _of_hulls(rule: Callable[[Space, Range, Range], bool]) -> Test:
    return lambda s, a, b: rule(s, hull(a), hull(b))


_test("@>", _contains, "contains")
_test("<@", lambda s, a, b: _contains(s, b, a), "contained_by")
_test("&&", _overlaps, "overlaps")
_test("-|-", _adjacent, "adjacent")
_test("<<", _of_hulls(Space.before), "before")
_test(">>", _of_hulls(lambda s, a, b: s.before(b, a)), "after")
_test("&<", _of_hulls(Space.not_beyond), "overleft")
_test("&>", _of_hulls(Space.not_short_of), "overright")


@per_value("@>", (ANYRANGE, ANYELEMENT), BOOL, needs_site=True, makes_null=False, raises=Raises.NEVER)
@per_value("@>", (ANYMULTIRANGE, ANYELEMENT), BOOL, needs_site=True, makes_null=False, raises=Raises.NEVER)
@per_value("range_contains_elem", (ANYRANGE, ANYELEMENT), BOOL, needs_site=True, makes_null=False, raises=Raises.NEVER)
@per_value(
    "multirange_contains_elem", (ANYMULTIRANGE, ANYELEMENT), BOOL, needs_site=True, makes_null=False,
    raises=Raises.NEVER,
)  # fmt: skip
def contains_element(site: CallSite, value: Either, element: Any) -> bool:
    s = space(site.args[0])
    return any(s.holds(part, element) for part in _parts(value))


@per_value("<@", (ANYELEMENT, ANYRANGE), BOOL, needs_site=True, makes_null=False, raises=Raises.NEVER)
@per_value("<@", (ANYELEMENT, ANYMULTIRANGE), BOOL, needs_site=True, makes_null=False, raises=Raises.NEVER)
@per_value(
    "elem_contained_by_range", (ANYELEMENT, ANYRANGE), BOOL, needs_site=True, makes_null=False, raises=Raises.NEVER
)
@per_value(
    "elem_contained_by_multirange", (ANYELEMENT, ANYMULTIRANGE), BOOL, needs_site=True, makes_null=False,
    raises=Raises.NEVER,
)  # fmt: skip
def element_contained(site: CallSite, element: Any, value: Either) -> bool:
    s = space(site.args[1])
    return any(s.holds(part, element) for part in _parts(value))


def _combine(symbol: str, name: str, of_ranges: Callable[[Space, Range, Range], Range],
             of_many: Callable[[Space, Multirange, Multirange], Multirange]) -> None:  # fmt: skip
    def ranges(site: CallSite, a: Range, b: Range) -> Range:
        return of_ranges(space(site.args[0]), a, b)

    def many(site: CallSite, a: Multirange, b: Multirange) -> Multirange:
        return of_many(space(site.args[0]), a, b)

    for called in (symbol, f"range_{name}"):
        per_value(called, (ANYRANGE, ANYRANGE), ANYRANGE, needs_site=True, makes_null=False)(ranges)
    for called in (symbol, f"multirange_{name}"):
        per_value(called, (ANYMULTIRANGE, ANYMULTIRANGE), ANYMULTIRANGE, needs_site=True, makes_null=False)(many)


_combine("+", "union", Space.union, lambda s, a, b: s.gathered((*a.ranges, *b.ranges)))
_combine("*", "intersect", Space.common, Space.all_common)
_combine("-", "minus", Space.difference, Space.all_without)


@per_value("range_merge", (ANYRANGE, ANYRANGE), ANYRANGE, needs_site=True, makes_null=False)
def range_merge(site: CallSite, a: Range, b: Range) -> Range:
    return space(site.args[0]).spanned(a, b)


@per_value("range_merge", (ANYMULTIRANGE,), ANYRANGE, makes_null=False)
def multirange_merge(value: Multirange) -> Range:
    return hull(value)


def _of_bounds(name: str, result: ArgumentType, rule: Callable[[Range], Any], makes_null: bool = False) -> None:
    for argument in (ANYRANGE, ANYMULTIRANGE):
        per_value(name, (argument,), result, makes_null=makes_null, raises=Raises.NEVER)(
            lambda value: rule(hull(value))
        )


_of_bounds("lower", ANYELEMENT, lambda hull: hull.lower, True)
_of_bounds("upper", ANYELEMENT, lambda hull: hull.upper, True)
_of_bounds("isempty", BOOL, lambda hull: hull.empty)
_of_bounds("lower_inc", BOOL, lambda hull: hull.lower_inc)
_of_bounds("upper_inc", BOOL, lambda hull: hull.upper_inc)
_of_bounds("lower_inf", BOOL, lambda hull: not hull.empty and hull.lower is None)
_of_bounds("upper_inf", BOOL, lambda hull: not hull.empty and hull.upper is None)


def merged(type_: SqlType, values: list[Any], _: list[Any]) -> Multirange:
    """range_agg: the values as one multirange."""
    return space(type_).gathered(part for value in values if value is not None for part in _parts(value))


def intersected(type_: SqlType, values: list[Any], _: list[Any]) -> Either:
    """range_intersect_agg: what all values have in common."""
    s, result = space(type_), cast("Either", values[0])
    for value in values[1:]:
        result = s.common(result, value) if isinstance(result, Range) else s.all_common(result, value)
    return result
