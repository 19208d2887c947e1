"""What a group's sums make: avg, variance and standard deviation with Postgres's scales, from exact totals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from planner.aggregates.exact_sums import Total
from planner.aggregates.table import Family
from planner.expr.functions.numbers.division import divide, division_scale
from storage.types.numeric import from_parts

_SAMPLE = (Family.VAR_SAMP, Family.STDDEV_SAMP)
_ROOTS = (Family.STDDEV_SAMP, Family.STDDEV_POP)


def numeric_average(total: Total, count: int) -> Decimal:
    """sum / count."""
    if total.special:
        return Decimal(total.special)
    left, right = (total.mantissa, total.scale), (count, 0)
    scale = division_scale(left, right)
    return from_parts(divide(left, right, scale), scale)


def numeric_moment(family: Family, count: int, total: Total, squares: Total) -> Decimal | None:
    """variance or stddev, after PostgreSQL's ``numeric_stddev_internal``; None is NULL."""
    if count <= (1 if family in _SAMPLE else 0):
        return None
    if total.special:
        return Decimal("NaN")
    scale = 2 * total.scale
    square_sum = squares.mantissa * 10 ** max(scale - squares.scale, 0)
    spread = count * square_sum - total.mantissa**2
    if spread <= 0:
        return Decimal(0)
    left = (spread, scale)
    right = (count * (count - 1) if family in _SAMPLE else count * count, 0)
    result_scale = division_scale(left, right)
    variance = divide(left, right, result_scale)
    if family not in _ROOTS:
        return from_parts(variance, result_scale)
    square = variance * 10**result_scale
    root = math.isqrt(square)
    return from_parts(root + (square - root * root > root), result_scale)


def float_sum(total: Total) -> float:
    """The sum rounded once; OverflowError past the largest double."""
    if total.special:
        return float(total.special)
    return _ratio(total.mantissa, total.scale, 1)


def float_average(total: Total, count: int) -> float:
    """The quotient of the exact sum, rounded once."""
    if total.special:
        return float(total.special)
    return _ratio(total.mantissa, total.scale, count)


def _ratio(mantissa: int, scale: int, count: int) -> float:
    if scale <= 0:
        return (mantissa << -scale) / count
    return mantissa / (count << scale)


def float_moment(family: Family, count: int, total: Total, squares: Total) -> float | None:
    """variance or stddev of doubles from exact sums; None is NULL. OverflowError as ``float_sum``."""
    if count <= (1 if family in _SAMPLE else 0):
        return None
    if total.special or squares.special:
        return math.nan
    mean_part = Fraction(total.mantissa) ** 2 * Fraction(2) ** (-2 * total.scale)
    spread = count * Fraction(squares.mantissa) * Fraction(2) ** -squares.scale - mean_part
    variance = float(max(spread, Fraction(0)) / (count * (count - 1) if family in _SAMPLE else count * count))
    return math.sqrt(variance) if family in _ROOTS else variance


def pair_moment(family: Family, count: int, sums: Sequence[Total]) -> float | None:
    """corr, covar_* and regr_* of ``count`` pairs from the exact sums of y, y * y, x, x * x and y * x; None is NULL."""
    if count <= (1 if family is Family.COVAR_SAMP else 0):
        return None
    if family in (Family.REGR_AVGX, Family.REGR_AVGY):
        return float_average(sums[2 if family is Family.REGR_AVGX else 0], count)
    if any(total.special for total in sums):
        return math.nan
    y, yy, x, xx, yx = (Fraction(s.mantissa) * Fraction(2) ** -s.scale for s in sums)
    sxx, syy, sxy = xx - x * x / count, yy - y * y / count, yx - y * x / count
    match family:
        case Family.REGR_SXX:
            return float(sxx)
        case Family.REGR_SYY:
            return float(syy)
        case Family.REGR_SXY:
            return float(sxy)
        case Family.COVAR_POP:
            return float(sxy / count)
        case Family.COVAR_SAMP:
            return float(sxy / (count - 1))
        case Family.REGR_SLOPE:
            return float(sxy / sxx) if sxx else None
        case Family.REGR_INTERCEPT:
            return float((y - x * sxy / sxx) / count) if sxx else None
        case Family.REGR_R2:
            return (float(sxy * sxy / (sxx * syy)) if syy else 1.0) if sxx else None
    assert family is Family.CORR, family
    return math.copysign(math.sqrt(sxy * sxy / (sxx * syy)), sxy) if sxx and syy else None
