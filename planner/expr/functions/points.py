"""Points of the plane: their operators and functions. Coordinates are compared as Postgres's FPeq and its kin do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from ivm.errors import SqlError
from ivm.words import BOOL, FLOAT8, Kind, SqlType
from planner.expr.functions.numbers.float import overflow, underflow
from planner.expr.functions.table import Raises, per_value
from storage.types.point import coordinates, point

POINT: Final = SqlType(Kind.POINT)
_EPSILON: Final = 1e-6
Rule = Callable[[float, float], bool]


def _equal(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= _EPSILON


def _less(a: float, b: float) -> bool:
    return a + _EPSILON < b


def _same(a: bytes, b: bytes) -> bool:
    (ax, ay), (bx, by) = coordinates(a), coordinates(b)
    if any(map(math.isnan, (ax, ay, bx, by))):
        return all(p == q or (math.isnan(p) and math.isnan(q)) for p, q in ((ax, bx), (ay, by)))
    return _equal(ax, bx) and _equal(ay, by)


def _test(names: tuple[str, ...], rule: Callable[[bytes, bytes], bool]) -> None:
    for name in names:
        per_value(name, (POINT, POINT), BOOL, makes_null=False, raises=Raises.NEVER)(rule)


def _along(axis: int, rule: Rule) -> Callable[[bytes, bytes], bool]:
    return lambda a, b: rule(coordinates(a)[axis], coordinates(b)[axis])


def _more(a: float, b: float) -> bool:
    return a > b + _EPSILON


_test(("~=", "point_eq"), _same)
_test(("<>", "point_ne"), lambda a, b: not _same(a, b))
_test(("<<", "point_left"), _along(0, _less))
_test((">>", "point_right"), _along(0, _more))
_test(("<<|", "<^", "point_below"), _along(1, _less))
_test(("|>>", ">^", "point_above"), _along(1, _more))
_test(("?|", "point_vert"), _along(0, _equal))
_test(("?-", "point_horiz"), _along(1, _equal))
_test(("isvertical",), _along(0, _equal))
_test(("ishorizontal",), _along(1, _equal))


def _sum(a: float, b: float) -> float:
    result = a + b
    if math.isinf(result) and not math.isinf(a) and not math.isinf(b):
        raise overflow()
    return result


def _product(a: float, b: float) -> float:
    result = a * b
    if math.isinf(result) and not math.isinf(a) and not math.isinf(b):
        raise overflow()
    if result == 0 and a != 0 and b != 0:
        raise underflow()
    return result


def _quotient(a: float, b: float) -> float:
    if b == 0 and not math.isnan(a):
        raise SqlError("22012", "division by zero")
    result = math.nan if b == 0 else a / b
    if math.isinf(result) and not math.isinf(a):
        raise overflow()
    if result == 0 and a != 0 and not math.isinf(b):
        raise underflow()
    return result


@per_value("point", (FLOAT8, FLOAT8), POINT, makes_null=False, raises=Raises.NEVER)
def made(x: float, y: float) -> bytes:
    return point(x, y)


@per_value("+", (POINT, POINT), POINT, makes_null=False)
@per_value("point_add", (POINT, POINT), POINT, makes_null=False)
def added(a: bytes, b: bytes) -> bytes:
    (ax, ay), (bx, by) = coordinates(a), coordinates(b)
    return point(_sum(ax, bx), _sum(ay, by))


@per_value("-", (POINT, POINT), POINT, makes_null=False)
@per_value("point_sub", (POINT, POINT), POINT, makes_null=False)
def subtracted(a: bytes, b: bytes) -> bytes:
    (ax, ay), (bx, by) = coordinates(a), coordinates(b)
    return point(_sum(ax, -bx), _sum(ay, -by))


@per_value("*", (POINT, POINT), POINT, makes_null=False)
@per_value("point_mul", (POINT, POINT), POINT, makes_null=False)
def multiplied(a: bytes, b: bytes) -> bytes:
    """The product of two complex numbers."""
    (ax, ay), (bx, by) = coordinates(a), coordinates(b)
    return point(_sum(_product(ax, bx), -_product(ay, by)), _sum(_product(ax, by), _product(ay, bx)))


@per_value("/", (POINT, POINT), POINT, makes_null=False)
@per_value("point_div", (POINT, POINT), POINT, makes_null=False)
def divided(a: bytes, b: bytes) -> bytes:
    """The quotient of two complex numbers."""
    (ax, ay), (bx, by) = coordinates(a), coordinates(b)
    size = _sum(_product(bx, bx), _product(by, by))
    x = _sum(_product(ax, bx), _product(ay, by))
    y = _sum(_product(ay, bx), -_product(ax, by))
    return point(_quotient(x, size), _quotient(y, size))


@per_value("<->", (POINT, POINT), FLOAT8, makes_null=False)
@per_value("point_distance", (POINT, POINT), FLOAT8, makes_null=False)
def distance(a: bytes, b: bytes) -> float:
    (ax, ay), (bx, by) = coordinates(a), coordinates(b)
    return _length(_sum(ax, -bx), _sum(ay, -by))


def _length(x: float, y: float) -> float:
    """The hypotenuse to Postgres's last bit, which the C library's differs in."""
    if math.isinf(x) or math.isinf(y):
        return math.inf
    if math.isnan(x) or math.isnan(y):
        return math.nan
    short, long = sorted((abs(x), abs(y)))
    if short == 0:
        return long
    ratio = short / long
    result = long * math.sqrt(1.0 + ratio * ratio)
    if math.isinf(result):
        raise overflow()
    if result == 0:
        raise underflow()
    return result


@per_value("slope", (POINT, POINT), FLOAT8, makes_null=False)
def slope(a: bytes, b: bytes) -> float:
    """The slope of the line through two points; infinite where it is vertical."""
    (ax, ay), (bx, by) = coordinates(a), coordinates(b)
    if _equal(ax, bx):
        return math.inf
    return 0.0 if _equal(ay, by) else _quotient(_sum(ay, -by), _sum(ax, -bx))
