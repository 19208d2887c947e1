"""random, random_normal and setseed."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import Final

from ivm.errors import SqlError
from ivm.words import FLOAT8, INT4, INT8, NUMERIC, VOID
from planner.expr.functions.table import CallSite, per_value
from planner.expr.random_numbers import RandomNumbers

_UNSEEDED: Final = RandomNumbers()
_MOST_DIGITS: Final = 20_000
_EXACT: Final = Context(prec=200_000, Emin=-999_999, Emax=999_999, traps=[])


def numbers(site: CallSite) -> RandomNumbers:
    """The session's numbers; those of nobody where no session runs the function."""
    session = site.context.session
    return _UNSEEDED if session is None else session.random_numbers()


@per_value("random", (), FLOAT8, volatility="volatile", only_draws=True, needs_site=True)
def random(site: CallSite) -> float:
    return numbers(site).fraction()


@per_value("random", (INT4, INT4), INT4, volatility="volatile", only_draws=True, needs_site=True)
@per_value("random", (INT8, INT8), INT8, volatility="volatile", only_draws=True, needs_site=True)
def random_between(site: CallSite, low: int, high: int) -> int:
    _check_bounds(low, high)
    return numbers(site).whole(low, high)


@per_value("random", (NUMERIC, NUMERIC), NUMERIC, volatility="volatile", only_draws=True, needs_site=True)
def random_numeric(site: CallSite, low: Decimal, high: Decimal) -> Decimal:
    for name, bound in (("lower", low), ("upper", high)):
        if not bound.is_finite():
            raise SqlError("22023", f"{name} bound cannot be {'NaN' if bound.is_nan() else 'infinity'}")
    _check_bounds(low, high)
    places = max(-int(bound.as_tuple().exponent) for bound in (low, high))
    if max(low.adjusted(), high.adjusted()) + places > _MOST_DIGITS:
        raise SqlError("54000", "bounds of random() have too many digits")
    ends = (int(bound.scaleb(places, _EXACT)) for bound in (low, high))
    return Decimal(numbers(site).whole(*ends)).scaleb(-places, _EXACT)


def _check_bounds(low: object, high: object) -> None:
    if low > high:  # type: ignore[operator]
        raise SqlError("22023", "lower bound must be less than or equal to upper bound")


@per_value("random_normal", (), FLOAT8, volatility="volatile", only_draws=True, needs_site=True)
@per_value("random_normal", (FLOAT8,), FLOAT8, volatility="volatile", only_draws=True, needs_site=True)
@per_value("random_normal", (FLOAT8, FLOAT8), FLOAT8, volatility="volatile", only_draws=True, needs_site=True)
def random_normal(site: CallSite, mean: float = 0.0, deviation: float = 1.0) -> float:
    return mean + deviation * numbers(site).normal()


@per_value("setseed", (FLOAT8,), VOID, volatility="volatile", needs_site=True)
def setseed(site: CallSite, seed: float) -> int:
    if not -1 <= seed <= 1:
        shown = "NaN" if math.isnan(seed) else f"{seed:g}"
        raise SqlError("22023", f"setseed parameter {shown} is out of allowed range [-1,1]")
    numbers(site).seed(seed)
    return 0
