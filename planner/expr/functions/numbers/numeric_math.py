"""Arithmetic of single numerics with Postgres's result scales (numeric.c of PostgreSQL 15).

Values are Decimals whose exponent is minus the display scale. Inexact results get the scale that ``select_div_scale``
and its kin choose: at least 16 significant digits, and no fewer decimals than the arguments have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Final

from ivm.errors import SqlError
from storage.types.numeric import WIDE, from_parts, mantissa_of, scale_of

NAN: Final = Decimal("NaN")
INFINITY: Final = Decimal("Infinity")
ZERO: Final = Decimal(0)
ONE: Final = Decimal(1)
_SIGNIFICANT: Final = 16
_MAX_SCALE: Final = 1000
_MAX_STORED_SCALE: Final = 16383
_MAX_RESULT_SCALE: Final = 2000
_MAX_DIGITS: Final = 131072
_LOG10_E: Final = 0.434294481903252
_FEW_DIGITS: Final = 2000
_LONG: Final = Context(prec=600_000, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999, traps=[])
_TRUNCATE: Final = Context(prec=150_000, rounding=ROUND_DOWN, Emin=-999_999, Emax=999_999, traps=[])


def overflow() -> SqlError:
    return SqlError("22003", "value overflows numeric format")


def division_by_zero() -> SqlError:
    return SqlError("22012", "division by zero")


def checked(value: Decimal) -> Decimal:
    """The result, if Postgres can store it. Raises 22003 if it is too large."""
    if not value.is_finite():
        return value
    if value.adjusted() >= _MAX_DIGITS and not value.is_zero():
        raise overflow()
    return to_scale(value, _MAX_STORED_SCALE) if scale_of(value) > _MAX_STORED_SCALE else value


def to_scale(value: Decimal, scale: int) -> Decimal:
    """A finite value with this display scale (>= 0), rounded half away from zero."""
    return WIDE.quantize(value, Decimal((0, (1,), -scale)))


def _leading(value: Decimal) -> tuple[int, int]:
    """Weight and value of the first nonzero digit in base 10000."""
    if value.is_zero():
        return 0, 0
    weight = value.adjusted() // 4
    return weight, int(WIDE.scaleb(value, -4 * weight).copy_abs())


def _clamped(scale: int, *values: Decimal) -> int:
    return min(max(scale, 0, *map(scale_of, values)), _MAX_SCALE)


def division_scale(left: Decimal, right: Decimal) -> int:
    """select_div_scale."""
    (weight1, first1), (weight2, first2) = _leading(left), _leading(right)
    weight = weight1 - weight2 - (1 if first1 <= first2 else 0)
    return _clamped(_SIGNIFICANT - weight * 4, left, right)


def _ratio(numerator: int, denominator: int, scale: int) -> Decimal:
    """An exact fraction, rounded half away from zero."""
    quotient, rest = divmod(abs(numerator) * 10**scale, abs(denominator))
    if 2 * rest >= abs(denominator):
        quotient += 1
    return from_parts(quotient if (numerator < 0) == (denominator < 0) else -quotient, scale)


def divide_to_scale(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """Finite ``left / right`` with the given scale, rounded half away from zero."""
    if left.adjusted() > _FEW_DIGITS or right.adjusted() > _FEW_DIGITS:
        return _long_quotient(left, right, scale)
    s1, s2 = scale_of(left), scale_of(right)
    return _ratio(mantissa_of(left, s1) * 10**s2, mantissa_of(right, s2) * 10**s1, scale)


def _long_quotient(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """The same for numbers so long that Python's integer division is slow."""
    dividend = _LONG.scaleb(left.copy_abs(), scale)
    quotient, rest = _LONG.divmod(dividend, right.copy_abs())
    if _LONG.add(rest, rest) >= right.copy_abs():
        quotient = _LONG.add(quotient, ONE)
    value = _LONG.scaleb(quotient, -scale)
    return value if left.is_signed() == right.is_signed() else value.copy_negate()


def divide(left: Decimal, right: Decimal) -> Decimal:
    """``/``"""
    special = _special_quotient(left, right)
    if special is not None:
        return special
    return checked(divide_to_scale(left, right, division_scale(left, right)))


def whole_quotient(left: Decimal, right: Decimal) -> Decimal:
    """``div``: the quotient truncated to an integer."""
    special = _special_quotient(left, right)
    return _TRUNCATE.divide_int(left, right) if special is None else special


def _special_quotient(left: Decimal, right: Decimal) -> Decimal | None:
    if left.is_nan() or right.is_nan():
        return NAN
    if left.is_infinite() and right.is_infinite():
        return NAN
    if right.is_zero():
        raise division_by_zero()
    if left.is_infinite():
        return INFINITY if (left > 0) == (right > 0) else -INFINITY
    return ZERO if right.is_infinite() else None


def modulo(left: Decimal, right: Decimal) -> Decimal:
    """``%``: the remainder, with the dividend's sign."""
    if left.is_nan() or right.is_nan():
        return NAN
    if right.is_zero():
        raise division_by_zero()
    if left.is_infinite():
        return NAN
    if right.is_infinite():
        return left
    scale = max(scale_of(left), scale_of(right))
    a, b = mantissa_of(left, scale), mantissa_of(right, scale)
    rest = abs(a) % abs(b)
    return from_parts(-rest if a < 0 else rest, scale)


def round_to(value: Decimal, digits: int = 0) -> Decimal:
    """round(value, digits); digits may be negative."""
    if not value.is_finite():
        return value
    return checked(_at_digits(WIDE, value, digits))


def truncate_to(value: Decimal, digits: int = 0) -> Decimal:
    """trunc(value, digits)"""
    return _at_digits(_TRUNCATE, value, digits) if value.is_finite() else value


def _at_digits(context: Context, value: Decimal, digits: int) -> Decimal:
    digits = max(min(digits, _MAX_STORED_SCALE), -_MAX_DIGITS - 1)
    cut = context.quantize(value, Decimal((0, (1,), -digits)))
    return cut if digits >= 0 else WIDE.quantize(cut, ONE)


def _working(digits: int) -> Context:
    return Context(prec=max(digits, 8), rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999, traps=[])


def square_root(value: Decimal) -> Decimal:
    if value.is_nan():
        return value
    if value < 0:
        raise SqlError("2201F", "cannot take square root of a negative number")
    if value.is_infinite():
        return value
    weight, _ = _leading(value)
    scale = _clamped(_SIGNIFICANT - (weight * 4 // 2 + 1), value)
    # the integer root decides exactly how a half is rounded
    root = math.isqrt(mantissa_of(value, 2 * scale + 2))
    return from_parts((root + 5) // 10, scale)


def exponential(value: Decimal) -> Decimal:
    """exp"""
    if not value.is_finite():
        return value if not value.is_infinite() or value > 0 else ZERO
    decades = max(min(float(value) * _LOG10_E, _MAX_RESULT_SCALE), -_MAX_RESULT_SCALE)
    return _exponential(value, _clamped(_SIGNIFICANT - int(decades), value))


def _exponential(value: Decimal, scale: int) -> Decimal:
    size = float(value)
    if abs(size) >= _MAX_RESULT_SCALE * 3:
        if size > 0:
            raise overflow()
        return from_parts(0, scale)
    context = _working(scale + int(max(size, 0) * _LOG10_E) + 12)
    return checked(to_scale(context.exp(value), scale))


def logarithm_weight(value: Decimal) -> int:
    """estimate_ln_dweight: about log10 of ``|ln(value)|``."""
    if value <= 0:
        return 0
    if Decimal("0.9") <= value <= Decimal("1.1"):
        rest = WIDE.subtract(value, ONE)
        if rest.is_zero():
            return 0
        weight, first = _leading(rest)
        return weight * 4 + int(math.log10(first))
    weight, digits = _leading(value)
    power = weight * 4
    scaled = WIDE.scaleb(value, -4 * (weight - 1))
    if WIDE.scaleb(value, -4 * weight) != digits:
        digits, power = int(scaled), power - 4
    estimate = math.log(digits) + power * 2.302585092994046
    return int(math.log10(abs(estimate)))


def logarithm_domain(value: Decimal | float) -> None:
    """Raises 2201E unless the value has a logarithm."""
    if value == 0:
        raise SqlError("2201E", "cannot take logarithm of zero")
    if value < 0:
        raise SqlError("2201E", "cannot take logarithm of a negative number")


def natural_logarithm(value: Decimal) -> Decimal:
    """ln"""
    if value.is_nan():
        return value
    logarithm_domain(value)
    if value.is_infinite():
        return value
    scale = _clamped(_SIGNIFICANT - logarithm_weight(value), value)
    return to_scale(_working(scale + 20 + abs(value.adjusted())).ln(value), scale)


def logarithm(base: Decimal, value: Decimal) -> Decimal:
    """log(base, value)"""
    if base.is_nan() or value.is_nan():
        return NAN
    if base == -INFINITY or value == -INFINITY:
        logarithm_domain(-INFINITY)
    logarithm_domain(base)
    logarithm_domain(value)
    if base.is_infinite():
        return NAN if value.is_infinite() else ZERO
    if value.is_infinite():
        return INFINITY
    weight = logarithm_weight(value) - logarithm_weight(base)
    scale = _clamped(_SIGNIFICANT - weight, base, value)
    context = _working(scale + 30 + abs(value.adjusted()) + abs(base.adjusted()))
    divisor = context.ln(base)
    if divisor.is_zero():
        raise division_by_zero()
    return to_scale(context.divide(context.ln(value), divisor), scale)


def _is_integral(value: Decimal) -> bool:
    return not value.is_nan() and (value.is_infinite() or value == value.to_integral_value())


def power(base: Decimal, exponent: Decimal) -> Decimal:
    """``^`` and power."""
    if base.is_nan() or exponent.is_nan():
        return ONE if exponent == 0 or base == 1 else NAN
    if base.is_zero() and exponent < 0:
        raise SqlError("2201F", "zero raised to a negative power is undefined")
    if base < 0 and not _is_integral(exponent):
        raise SqlError("2201F", "a negative number raised to a non-integer power yields a complex result")
    if base.is_infinite() or exponent.is_infinite():
        return _infinite_power(base, exponent)
    if exponent == exponent.to_integral_value() and -(2**31) <= exponent < 2**31:
        return _integer_power(base, int(exponent))
    if base.is_zero():
        return from_parts(0, _SIGNIFICANT)
    return _real_power(base, exponent)


def _infinite_power(base: Decimal, exponent: Decimal) -> Decimal:
    if base == 1 or exponent.is_zero():
        return ONE
    if base.is_zero():
        return ZERO
    if exponent.is_infinite():
        if base == -1:
            return ONE
        return INFINITY if (base.copy_abs() > 1) == (exponent > 0) else ZERO
    if exponent < 0:
        return ZERO
    odd = base < 0 and int(exponent) % 2 == 1
    return -INFINITY if odd else INFINITY


def _integer_power(base: Decimal, exponent: int) -> Decimal:
    scale = _clamped(_SIGNIFICANT, base)
    if exponent == 0:
        return from_parts(10**scale, scale)
    if base.is_zero():
        return from_parts(0, scale)
    decades = float(WIDE.scaleb(base.copy_abs(), -base.adjusted()).log10() + base.adjusted()) * exponent
    if decades > _MAX_DIGITS:
        raise overflow()
    if decades + 1 < -scale:
        return from_parts(0, scale)
    if abs(exponent) * len(base.as_tuple().digits) <= 20_000:
        own = scale_of(base)
        top, bottom = mantissa_of(base, own) ** abs(exponent), 10 ** (own * abs(exponent))
        return checked(_ratio(top, bottom, scale) if exponent > 0 else _ratio(bottom, top, scale))
    context = _working(scale + max(int(decades), 0) + 30)
    return checked(to_scale(context.power(base, exponent), scale))


def _real_power(base: Decimal, exponent: Decimal) -> Decimal:
    # about eight digits of the result's logarithm determine its scale: truncate them as Postgres does
    rough = max(8 - logarithm_weight(base.copy_abs()), 0)
    nearby = to_scale(_working(rough + 20 + abs(base.adjusted())).ln(base.copy_abs()), rough)
    size = float(to_scale(WIDE.multiply(nearby, exponent), rough))
    if abs(size) > _MAX_RESULT_SCALE * 3.01:
        if size > 0:
            raise overflow()
        return from_parts(0, _MAX_SCALE)
    scale = _clamped(_SIGNIFICANT - int(size * _LOG10_E), base, exponent)
    context = _working(scale + max(int(size * _LOG10_E), 0) + 30)
    exact = context.multiply(context.ln(base.copy_abs()), exponent)
    result = _exponential(exact, scale)
    return result.copy_negate() if base < 0 and int(exponent) % 2 else result


def _of_integers(operation: Callable[[int, int], int], left: Decimal, right: Decimal) -> Decimal:
    if not (left.is_finite() and right.is_finite()):
        return NAN
    scale = max(scale_of(left), scale_of(right))
    return from_parts(operation(mantissa_of(left, scale), mantissa_of(right, scale)), scale)


def greatest_divisor(left: Decimal, right: Decimal) -> Decimal:
    """gcd"""
    return _of_integers(math.gcd, left, right)


def least_multiple(left: Decimal, right: Decimal) -> Decimal:
    """lcm"""
    return checked(_of_integers(math.lcm, left, right))
