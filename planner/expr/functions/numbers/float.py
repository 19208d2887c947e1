"""real and double precision: arithmetic with Postgres's range errors, and the mathematical functions.

Transcendental functions call the C library value by value, as Postgres does: numpy's vectorised versions differ in
the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ivm.errors import SqlError
from ivm.rows import Mask, Words
from ivm.words import FLOAT4, FLOAT8, INT4, Kind, SqlType
from planner.expr.functions.numbers import float_columns
from planner.expr.functions.numbers.numeric_math import logarithm_domain
from planner.expr.functions.table import CallSite, per_value, vectorised
from storage.types.codec import float_to_word, word_to_float

Floats = NDArray[np.float64]
Number = TypeVar("Number", float, Decimal)
_INFINITY: Final = math.inf


def overflow() -> SqlError:
    return SqlError("22003", "value out of range: overflow")


def underflow() -> SqlError:
    return SqlError("22003", "value out of range: underflow")


def rounded(values: Floats, type: SqlType) -> Floats:
    """Rounds values to the type: float4 to a real (kept in a double)."""
    if type.kind is Kind.FLOAT4:
        return values.astype(np.float32).astype(np.float64)
    return values


def _arithmetic(
    operator: Callable[[Floats, Floats], Floats], underflows: Callable[[Floats, Floats], Mask] | None, divides: bool
) -> Callable[[CallSite, Words, Words], Words]:
    def implementation(site: CallSite, left: Words, right: Words) -> Words:
        a, b = word_to_float(left), word_to_float(right)
        if divides:
            site.fail_where((b == 0) & ~np.isnan(a), SqlError("22012", "division by zero"))
        with np.errstate(all="ignore"):
            result = rounded(operator(a, b), site.result)
        infinite = np.isinf(result)
        if np.count_nonzero(infinite):
            out = infinite & ~np.isinf(a) & ~np.isinf(b)
            if divides:
                out &= b != 0
            site.fail_where(out, overflow())
        if underflows is not None:
            zero = result == 0
            if np.count_nonzero(zero):
                site.fail_where(zero & underflows(a, b), underflow())
        return float_to_word(result)

    return implementation


_add = _arithmetic(np.add, None, False)
_subtract = _arithmetic(np.subtract, None, False)
_multiply = _arithmetic(np.multiply, lambda a, b: (a != 0) & (b != 0), False)
_divide = _arithmetic(np.divide, lambda a, b: (a != 0) & ~np.isinf(b), True)

for _left, _right, _result in (
    (FLOAT4, FLOAT4, FLOAT4),
    (FLOAT4, FLOAT8, FLOAT8),
    (FLOAT8, FLOAT4, FLOAT8),
    (FLOAT8, FLOAT8, FLOAT8),
):
    for _name, _operator in (("+", _add), ("-", _subtract), ("*", _multiply), ("/", _divide)):
        vectorised(_name, (_left, _right), _result, makes_null=False)(_operator)

for _type in (FLOAT4, FLOAT8):
    vectorised("-", (_type,), _type, total=True, makes_null=False)(lambda _site, w: float_to_word(-word_to_float(w)))
    vectorised("+", (_type,), _type, total=True, makes_null=False)(lambda _site, w: w)
    for _name in ("abs", "@"):
        vectorised(_name, (_type,), _type, total=True, makes_null=False)(
            lambda _site, w: float_to_word(np.abs(word_to_float(w)))
        )


def _whole(name: str, operation: Callable[[Floats], Floats]) -> None:
    vectorised(name, (FLOAT8,), FLOAT8, total=True, makes_null=False)(
        lambda _site, w: float_to_word(operation(word_to_float(w)))
    )


for _names, _operation in (
    (("ceil", "ceiling"), np.ceil), (("floor",), np.floor), (("round",), np.rint), (("trunc",), np.trunc),
    (("sign",), lambda v: (v > 0).astype(np.float64) - (v < 0)),
):  # fmt: skip
    for _name in _names:
        _whole(_name, _operation)


def _checked(function: Callable[[float], float]) -> Callable[[float], float]:
    """Wraps a function of the C library that may overflow."""

    def implementation(value: float) -> float:
        try:
            return function(value)
        except OverflowError:
            raise overflow() from None

    return implementation


def _nan_safe(function: Callable[[float], float]) -> Callable[[float], float]:
    """Wraps a function with a limited domain: 22003 outside of it, NaN for NaN."""

    def implementation(value: float) -> float:
        if math.isnan(value):
            return value
        try:
            return function(value)
        except ValueError:
            raise SqlError("22003", "input is out of range") from None

    return implementation


for _name, _function in (("asin", math.asin), ("acos", math.acos), ("acosh", math.acosh)):
    per_value(_name, (FLOAT8,), FLOAT8)(_nan_safe(_function))
for _name, _function in (
    ("sin", math.sin), ("cos", math.cos), ("tan", math.tan), ("atan", math.atan), ("asinh", math.asinh),
    ("tanh", math.tanh),
):  # fmt: skip
    per_value(_name, (FLOAT8,), FLOAT8, vector=float_columns.by_library(_function, np.isfinite))(_nan_safe(_function))


@per_value("sinh", (FLOAT8,), FLOAT8)
def sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(_INFINITY, value)


@per_value("cosh", (FLOAT8,), FLOAT8)
def cosh(value: float) -> float:
    try:
        return math.cosh(value)
    except OverflowError:
        return _INFINITY


@per_value("atanh", (FLOAT8,), FLOAT8)
def atanh(value: float) -> float:
    if abs(value) == 1:
        return math.copysign(_INFINITY, value)
    return _nan_safe(math.atanh)(value)


@per_value("cot", (FLOAT8,), FLOAT8)
def cot(value: float) -> float:
    if math.isinf(value):
        raise SqlError("22003", "input is out of range")
    tangent = math.tan(value)
    return math.copysign(_INFINITY, tangent) if tangent == 0 else 1.0 / tangent


per_value("atan2", (FLOAT8, FLOAT8), FLOAT8)(math.atan2)


@per_value("radians", (FLOAT8,), FLOAT8)
def radians(value: float) -> float:
    result = value * 0.0174532925199432957692
    if result == 0 and value != 0:
        raise underflow()
    return result


@per_value("degrees", (FLOAT8,), FLOAT8)
def degrees(value: float) -> float:
    result = value / 0.0174532925199432957692
    if math.isinf(result) and not math.isinf(value):
        raise overflow()
    return result


@per_value("pi", (), FLOAT8)
def pi() -> float:
    return math.pi


@per_value("|/", (FLOAT8,), FLOAT8, vector=float_columns.square_root)
@per_value("sqrt", (FLOAT8,), FLOAT8, vector=float_columns.square_root)
def square_root(value: float) -> float:
    if value < 0:
        raise SqlError("2201F", "cannot take square root of a negative number")
    return math.sqrt(value)


per_value("cbrt", (FLOAT8,), FLOAT8)(math.cbrt)
per_value("||/", (FLOAT8,), FLOAT8)(math.cbrt)


@per_value("exp", (FLOAT8,), FLOAT8, vector=float_columns.by_library(math.exp, lambda values: np.abs(values) < 700))
def exponential(value: float) -> float:
    result = _checked(math.exp)(value)
    if result == 0 and not math.isinf(value):
        raise underflow()
    return result


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    def implementation(value: float) -> float:
        logarithm_domain(value)
        return function(value)

    return implementation


for _name, _function in (("ln", math.log), ("log", math.log10), ("log10", math.log10)):
    per_value(_name, (FLOAT8,), FLOAT8, vector=float_columns.by_library(_function, lambda values: values > 0))(
        _logarithm(_function)
    )


@per_value("^", (FLOAT8, FLOAT8), FLOAT8, makes_null=False, vector=float_columns.power)
@per_value("pow", (FLOAT8, FLOAT8), FLOAT8, vector=float_columns.power)
@per_value("power", (FLOAT8, FLOAT8), FLOAT8, vector=float_columns.power)
def power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        raise SqlError("2201F", "zero raised to a negative power is undefined")
    if base < 0 and math.isfinite(exponent) and exponent != math.floor(exponent):
        raise SqlError("2201F", "a negative number raised to a non-integer power yields a complex result")
    try:
        result = math.pow(base, exponent)
    except OverflowError:
        raise overflow() from None
    except ValueError:
        raise SqlError("2201F", "a negative number raised to a non-integer power yields a complex result") from None
    if result == 0 and base != 0 and math.isfinite(base) and math.isfinite(exponent):
        raise underflow()
    return result


def check_buckets(value: Number, low: Number, high: Number, count: int) -> None:
    """Raises 2201G where width_bucket has no answer."""
    if count <= 0:
        raise SqlError("2201G", "count must be greater than zero")
    if math.isnan(value) or math.isnan(low) or math.isnan(high):
        raise SqlError("2201G", "operand, lower bound, and upper bound cannot be NaN")
    if abs(low) == _INFINITY or abs(high) == _INFINITY:
        raise SqlError("2201G", "lower and upper bounds must be finite")
    if low == high:
        raise SqlError("2201G", "lower bound cannot equal upper bound")


@per_value("width_bucket", (FLOAT8, FLOAT8, FLOAT8, INT4), INT4)
def width_bucket(value: float, low: float, high: float, count: int) -> int:
    """The number of the equal-width bucket; 0 and count + 1 are outside."""
    check_buckets(value, low, high, count)
    if low > high:
        return _bucket(-value, -low, -high, count)
    return _bucket(value, low, high, count)


def _bucket(value: float, low: float, high: float, count: int) -> int:
    if value < low:
        return 0
    if value >= high:
        if count == 2**31 - 1:
            raise SqlError("22003", "integer out of range")
        return count + 1
    return min(int((value - low) / (high - low) * count), count - 1) + 1
