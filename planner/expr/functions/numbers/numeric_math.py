"""Arithmetic of single numerics with Postgres's result scales (numeric.c of PostgreSQL 15).

Values are Decimals whose exponent is minus the display scale. Inexact results get the scale that ``select_div_scale``
and its kin choose: at least 16 significant digits, and no fewer decimals than the arguments have.
"""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Final

from ivm.errors import SqlError
from ivm.stops import poll
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
_SHORT: Final = 15_000
_EUCLID: Final = 100_000
_MOST_LOGARITHM_DIGITS: Final = 4000
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
    rest = to_scale(_LONG.remainder(left, right), max(scale_of(left), scale_of(right)))
    return rest.copy_abs() if rest.is_zero() else rest


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
    if value.adjusted() < _FEW_DIGITS:
        # the integer root decides exactly how a half is rounded
        root = math.isqrt(mantissa_of(value, 2 * scale + 2))
        return from_parts((root + 5) // 10, scale)
    # so many digits that a root which is no half is seen not to be one
    return to_scale(_working(value.adjusted() + 2 * scale + scale_of(value) + 10).sqrt(value), scale)


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
    return checked(to_scale(context.exp(_shortened(value, context.prec + 8)), scale))


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
    return to_scale(_ln(value, scale + 20), scale)


def _shortened(value: Decimal, decimals: int) -> Decimal:
    """A finite value rounded to so many decimals, if it has more."""
    return to_scale(value, decimals) if scale_of(value) > decimals else value


def _ln(value: Decimal, digits: int) -> Decimal:
    """The natural logarithm of a positive value, right to so many decimals, and near one to so many digits.

    Python's takes the square of the value's digits: it gets no more of them than count.
    """
    rest = WIDE.subtract(value, ONE)
    if rest.is_zero():
        return ZERO
    context = _working(digits + 20)
    if rest.adjusted() < -20:
        return _series(context, context.plus(rest), digits // -rest.adjusted() + 2)
    if rest.adjusted() < 0 and value.adjusted() >= -1:
        return context.ln(_shortened(value, digits + 50))
    power = value.adjusted()
    leading = context.ln(context.plus(WIDE.scaleb(value, -power)))
    return context.add(leading, context.multiply(Decimal(power), context.ln(Decimal(10))))


def _series(context: Context, rest: Decimal, terms: int) -> Decimal:
    """ln(1 + rest) = rest - rest^2 / 2 + rest^3 / 3 - …, for a small rest."""
    total, factor = ZERO, ONE
    for n in range(1, terms + 1):
        factor = context.multiply(factor, rest)
        term = context.divide(factor, Decimal(n))
        total = context.add(total, term) if n % 2 else context.subtract(total, term)
    return total


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
    digits = scale + 30 + abs(weight)
    if digits > _MOST_LOGARITHM_DIGITS:
        raise SqlError("54000", "logarithm has too many digits", "Its base is too near one.")
    divisor = _ln(base, digits)
    if divisor.is_zero():
        raise division_by_zero()
    return to_scale(_working(digits + 20).divide(_ln(value, digits), divisor), scale)


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
    odd = base < 0 and not _LONG.remainder(exponent, Decimal(2)).is_zero()
    return -INFINITY if odd else INFINITY


def _integer_power(base: Decimal, exponent: int) -> Decimal:
    scale = _clamped(_SIGNIFICANT, base)
    if exponent == 0:
        return from_parts(10**scale, scale)
    if base.is_zero():
        return from_parts(0, scale)
    decades = float(_ln(base.copy_abs(), 30)) * _LOG10_E * exponent
    if decades > _MAX_DIGITS:
        raise overflow()
    if decades + 1 < -scale:
        return from_parts(0, scale)
    if abs(exponent) * len(base.as_tuple().digits) <= 20_000:
        own = scale_of(base)
        top, bottom = mantissa_of(base, own) ** abs(exponent), 10 ** (own * abs(exponent))
        return checked(_ratio(top, bottom, scale) if exponent > 0 else _ratio(bottom, top, scale))
    return checked(to_scale(_powered(_working(scale + max(int(decades), 0) + 30), base, exponent), scale))


def _powered(context: Context, base: Decimal, exponent: int) -> Decimal:
    """A power by squaring, which can be stopped."""
    rest, factor, result = abs(exponent), context.plus(base), ONE
    while rest:
        if rest & 1:
            result = context.multiply(result, factor)
        rest >>= 1
        if rest:
            factor = context.multiply(factor, factor)
        poll()
    return result if exponent > 0 else context.divide(ONE, result)


def _real_power(base: Decimal, exponent: Decimal) -> Decimal:
    # about eight digits of the result's logarithm determine its scale: truncate them as Postgres does
    rough = max(8 - logarithm_weight(base.copy_abs()), 0)
    nearby = to_scale(_ln(base.copy_abs(), rough + 20), rough)
    size = float(to_scale(WIDE.multiply(nearby, exponent), rough))
    if abs(size) > _MAX_RESULT_SCALE * 3.01:
        if size > 0:
            raise overflow()
        return from_parts(0, _MAX_SCALE)
    scale = _clamped(_SIGNIFICANT - int(size * _LOG10_E), base, exponent)
    context = _working(scale + max(int(size * _LOG10_E), 0) + 30)
    exact = context.multiply(_ln(base.copy_abs(), context.prec), exponent)
    result = _exponential(exact, scale)
    return result.copy_negate() if base < 0 and _LONG.remainder(exponent, Decimal(2)) else result


def greatest_divisor(left: Decimal, right: Decimal) -> Decimal:
    """gcd"""
    if not (left.is_finite() and right.is_finite()):
        return NAN
    return _divisor(left, right, max(scale_of(left), scale_of(right)))


def _divisor(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """gcd by Euclid's steps, until the numbers are short enough for Python's. Raises 54000 after ``_EUCLID`` steps."""
    a, b = left.copy_abs(), right.copy_abs()
    for _ in range(_EUCLID):
        if b.is_zero():
            return to_scale(a, scale)
        if max(a.adjusted(), b.adjusted()) + scale < _SHORT:
            return from_parts(math.gcd(mantissa_of(a, scale), mantissa_of(b, scale)), scale)
        a, b = b, _LONG.remainder(a, b)
        poll()
    raise SqlError("54000", "numbers are too long for their greatest common divisor")


def least_multiple(left: Decimal, right: Decimal) -> Decimal:
    """lcm"""
    if not (left.is_finite() and right.is_finite()):
        return NAN
    scale = max(scale_of(left), scale_of(right))
    if left.is_zero() or right.is_zero():
        return from_parts(0, scale)
    quotient = _LONG.divide_int(left.copy_abs(), _divisor(left, right, scale))
    product = _LONG.multiply(quotient, right.copy_abs())
    if product.adjusted() >= _MAX_DIGITS:
        raise overflow()
    return checked(to_scale(product, scale))
