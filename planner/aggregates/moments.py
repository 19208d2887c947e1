"""avg, variance and standard deviation from a group's exact totals, with Postgres's scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from planner.aggregates.exact_sums import Total
from planner.expr.functions.numbers.division import divide, division_scale
from storage.types.numeric import from_parts


@dataclass(frozen=True, slots=True)
class Moment:
    """The variance of a sample (divisor: the count less one) or of a population, or its square root."""

    sample: bool
    root: bool

    def divisor(self, count: int) -> int:
        return count * (count - 1) if self.sample else count * count


VAR_SAMP: Final = Moment(sample=True, root=False)
VAR_POP: Final = Moment(sample=False, root=False)
STDDEV_SAMP: Final = Moment(sample=True, root=True)
STDDEV_POP: Final = Moment(sample=False, root=True)


def numeric_average(total: Total, count: int) -> Decimal:
    """sum / count."""
    if total.special:
        return Decimal(total.special)
    left, right = (total.mantissa, total.scale), (count, 0)
    scale = division_scale(left, right)
    return from_parts(divide(left, right, scale), scale)


def numeric_moment(moment: Moment, count: int, total: Total, squares: Total) -> Decimal | None:
    """The variance or standard deviation, after PostgreSQL's ``numeric_stddev_internal``; None is NULL."""
    if count <= moment.sample:
        return None
    if total.special:
        return Decimal("NaN")
    scale = 2 * total.scale
    square_sum = squares.mantissa * 10 ** max(scale - squares.scale, 0)
    spread = count * square_sum - total.mantissa**2
    if spread <= 0:
        return Decimal(0)
    left = (spread, scale)
    right = (moment.divisor(count), 0)
    result_scale = division_scale(left, right)
    variance = divide(left, right, result_scale)
    if not moment.root:
        return from_parts(variance, result_scale)
    square = variance * 10**result_scale
    root = math.isqrt(square)
    return from_parts(root + (square - root * root > root), result_scale)


def float_sum(total: Total) -> float:
    """The sum, rounded once. Raises OverflowError beyond the largest double."""
    if total.special:
        return float(total.special)
    return _ratio(total.mantissa, total.scale, 1)


def float_average(total: Total, count: int) -> float:
    """The exact sum divided by the count, rounded once."""
    if total.special:
        return float(total.special)
    return _ratio(total.mantissa, total.scale, count)


def _ratio(mantissa: int, scale: int, count: int) -> float:
    if scale <= 0:
        return (mantissa << -scale) / count
    return mantissa / (count << scale)


def float_moment(moment: Moment, count: int, total: Total, squares: Total) -> float | None:
    """The same of doubles, from exact sums; None is NULL. Raises OverflowError as ``float_sum``."""
    if count <= moment.sample:
        return None
    if total.special or squares.special:
        return math.nan
    mean_part = Fraction(total.mantissa) ** 2 * Fraction(2) ** (-2 * total.scale)
    spread = count * Fraction(squares.mantissa) * Fraction(2) ** -squares.scale - mean_part
    variance = float(max(spread, Fraction(0)) / moment.divisor(count))
    return math.sqrt(variance) if moment.root else variance


PairRule = Callable[[int, Sequence[Total]], float | None]
"""(count of pairs, the exact sums of y, y * y, x, x * x and y * x) → the result; None is NULL. OverflowError."""


@dataclass(frozen=True, slots=True)
class _Pairs:
    """``count`` pairs: the sums of y and x, and the sums of products of deviations from the means."""

    count: int
    y: Fraction
    x: Fraction
    sxx: Fraction
    syy: Fraction
    sxy: Fraction


def _of(rule: Callable[[_Pairs], float | None]) -> PairRule:
    """Makes a rule over exact sums from one over ``_Pairs``; NaN if a value is not finite."""

    def compute(count: int, sums: Sequence[Total]) -> float | None:
        if any(total.special for total in sums):
            return math.nan
        y, yy, x, xx, yx = (Fraction(s.mantissa) * Fraction(2) ** -s.scale for s in sums)
        return rule(_Pairs(count, y, x, xx - x * x / count, yy - y * y / count, yx - y * x / count))

    return compute


def _slope(p: _Pairs) -> float | None:
    return float(p.sxy / p.sxx) if p.sxx else None


def _intercept(p: _Pairs) -> float | None:
    return float((p.y - p.x * p.sxy / p.sxx) / p.count) if p.sxx else None


def _r2(p: _Pairs) -> float | None:
    return (float(p.sxy * p.sxy / (p.sxx * p.syy)) if p.syy else 1.0) if p.sxx else None


def _corr(p: _Pairs) -> float | None:
    if not (p.sxx and p.syy):
        return None
    return math.copysign(math.sqrt(p.sxy * p.sxy / (p.sxx * p.syy)), p.sxy)


def _covar_samp(count: int, sums: Sequence[Total]) -> float | None:
    return None if count <= 1 else _of(lambda p: float(p.sxy / (p.count - 1)))(count, sums)


PAIR_RULES: Final[tuple[tuple[str, PairRule], ...]] = (
    ("corr", _of(_corr)),
    ("covar_pop", _of(lambda p: float(p.sxy / p.count))),
    ("covar_samp", _covar_samp),
    ("regr_avgx", lambda count, sums: float_average(sums[2], count)),
    ("regr_avgy", lambda count, sums: float_average(sums[0], count)),
    ("regr_intercept", _of(_intercept)),
    ("regr_r2", _of(_r2)),
    ("regr_slope", _of(_slope)),
    ("regr_sxx", _of(lambda p: float(p.sxx))),
    ("regr_sxy", _of(lambda p: float(p.sxy))),
    ("regr_syy", _of(lambda p: float(p.syy))),
)
"""The aggregates of pairs (y, x) by name."""
