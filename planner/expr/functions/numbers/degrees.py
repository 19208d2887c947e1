"""Trigonometry in degrees, exact where the answer is: sind(30) is 0.5, and erf.

As PostgreSQL does it: an angle is reduced to the first quadrant, and each half of the quadrant is scaled so that its
ends come out right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from ivm.errors import SqlError
from ivm.words import FLOAT8
from planner.expr.functions.table import per_value

_DEGREE: Final = 0.0174532925199432957692
_SIN_30: Final = math.sin(30.0 * _DEGREE)
_VERSED_60: Final = 1.0 - math.cos(60.0 * _DEGREE)
_ASIN_HALF: Final = math.asin(0.5)
_ACOS_HALF: Final = math.acos(0.5)
_ATAN_ONE: Final = math.atan(1.0)


def _range_error() -> SqlError:
    return SqlError("22003", "input is out of range")


def _of_angle(function: Callable[[float], float]) -> Callable[[float], float]:
    """A function of a finite angle between -360 and 360; NaN for NaN."""

    def implementation(angle: float) -> float:
        if math.isnan(angle):
            return angle
        if math.isinf(angle):
            raise _range_error()
        return function(math.fmod(angle, 360.0))

    return implementation


def _first_sine(angle: float) -> float:
    """The sine of 0 to 90 degrees."""
    if angle <= 30.0:
        return math.sin(angle * _DEGREE) / _SIN_30 / 2.0
    return 1.0 - (1.0 - math.cos((90.0 - angle) * _DEGREE)) / _VERSED_60 / 2.0


def _first_cosine(angle: float) -> float:
    """The cosine of 0 to 90 degrees."""
    if angle <= 60.0:
        return 1.0 - (1.0 - math.cos(angle * _DEGREE)) / _VERSED_60 / 2.0
    return math.sin((90.0 - angle) * _DEGREE) / _SIN_30 / 2.0


def _sine(angle: float) -> float:
    sign = 1
    if angle < 0.0:
        angle, sign = -angle, -sign
    if angle > 180.0:
        angle, sign = 360.0 - angle, -sign
    return sign * _first_sine(180.0 - angle if angle > 90.0 else angle)


def _cosine(angle: float) -> float:
    angle = abs(angle)
    if angle > 180.0:
        angle = 360.0 - angle
    return -_first_cosine(180.0 - angle) if angle > 90.0 else _first_cosine(angle)


def _quotient(above: Callable[[float], float], below: Callable[[float], float]) -> Callable[[float], float]:
    """The tangent or the cotangent, which is 1 at 45 degrees and infinite at its poles."""
    at_45 = above(45.0) / below(45.0)

    def implementation(angle: float) -> float:
        sign = 1
        if angle < 0.0:
            angle, sign = -angle, -sign
        if angle > 180.0:
            angle, sign = 360.0 - angle, -sign
        if angle > 90.0:
            angle, sign = 180.0 - angle, -sign
        divisor = below(angle)
        ratio = math.copysign(math.inf, divisor) if divisor == 0.0 else above(angle) / divisor
        # no negative zero
        return sign * (ratio / at_45) + 0.0

    return implementation


per_value("sind", (FLOAT8,), FLOAT8)(_of_angle(_sine))
per_value("cosd", (FLOAT8,), FLOAT8)(_of_angle(_cosine))
per_value("tand", (FLOAT8,), FLOAT8)(_of_angle(_quotient(_first_sine, _first_cosine)))
per_value("cotd", (FLOAT8,), FLOAT8)(_of_angle(_quotient(_first_cosine, _first_sine)))


def _of_ratio(function: Callable[[float], float]) -> Callable[[float], float]:
    """A function of a number from -1 to 1; NaN for NaN."""

    def implementation(ratio: float) -> float:
        if math.isnan(ratio):
            return ratio
        if not -1.0 <= ratio <= 1.0:
            raise _range_error()
        return function(ratio)

    return implementation


def _first_arcsine(ratio: float) -> float:
    if ratio <= 0.5:
        return math.asin(ratio) / _ASIN_HALF * 30.0
    return 90.0 - math.acos(ratio) / _ACOS_HALF * 60.0


def _first_arccosine(ratio: float) -> float:
    if ratio <= 0.5:
        return 90.0 - math.asin(ratio) / _ASIN_HALF * 30.0
    return math.acos(ratio) / _ACOS_HALF * 60.0


per_value("asind", (FLOAT8,), FLOAT8)(
    _of_ratio(lambda ratio: _first_arcsine(ratio) if ratio >= 0.0 else -_first_arcsine(-ratio))
)
per_value("acosd", (FLOAT8,), FLOAT8)(
    _of_ratio(lambda ratio: _first_arccosine(ratio) if ratio >= 0.0 else 90.0 + _first_arcsine(-ratio))
)


@per_value("atand", (FLOAT8,), FLOAT8)
def atand(value: float) -> float:
    return math.atan(value) / _ATAN_ONE * 45.0


@per_value("atan2d", (FLOAT8, FLOAT8), FLOAT8)
def atan2d(y: float, x: float) -> float:
    return math.atan2(y, x) / _ATAN_ONE * 45.0


per_value("erf", (FLOAT8,), FLOAT8)(math.erf)
per_value("erfc", (FLOAT8,), FLOAT8)(math.erfc)
