"""Aggregates of extreme values: NaN, infinities, bigints whose sums overflow, numerics of any width, intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from tests.support.model_folds import Case, Fold, bits, discrete, last_null, listed, moments, on, text, there

NAN, NO_NUMBER = math.nan, Decimal("NaN")
FLOATS = (1.5, 1.5, -2.25, -0.0, 0.0, 2.0**-1000, math.inf, -math.inf, NAN)
BIG = (2**63 - 1, 2**63 - 1, -(2**63), 1, 5, -7)
WIDTHS = (
    *map(Decimal, ("2.5", "2.50", "1" + 40 * "0", "-0.000000000000000000001", "123456789012345678901234567890.12")),
    NO_NUMBER,
)  # fmt: skip
SPANS = {
    "1 mon": (1, Fraction(0)), "30 days": (0, Fraction(2_592_000)), "-2 days": (0, Fraction(-172_800)),
    "36:00:00": (0, Fraction(129_600)), "1 day 12:00:00": (0, Fraction(129_600)), "00:00:01.5": (0, Fraction(3, 2)),
}  # fmt: skip
"""Months and seconds of intervals, some of which compare equal."""


def missing(value: Any) -> bool:
    """Whether the value is NaN, which sorts after all others."""
    return str(value).lower() == "nan"


def ranked(value: Any) -> tuple[bool, Any]:
    return missing(value), 0 if missing(value) else value


def total(values: Sequence[Any]) -> Any:
    """The sum of floats: exact, unless one of them is not finite."""
    beyond = {v for v in values if not math.isfinite(v)}
    return sum(beyond) if beyond else sum(map(Fraction, values), Fraction(0))


def spread(values: Sequence[float], sample: bool) -> Any:
    if all(map(math.isfinite, values)):
        return moments(list(values), sample)
    return math.nan if len(values) > sample else None


def plainly(value: Decimal) -> str:
    """A decimal's text, without an exponent."""
    return format(value, "f")


def digits(values: Sequence[Decimal]) -> str:
    """A sum of numerics, with all digits."""
    with localcontext(prec=200):
        return plainly(sum(values, Decimal(0)))


def seconds(interval: str) -> Fraction:
    return SPANS[interval][0] * 2_592_000 + SPANS[interval][1]


def lasting(intervals: Sequence[str]) -> Fraction:
    """The seconds of a sum of intervals: twelve months are 365.25 days, one is 30."""
    months = sum(SPANS[i][0] for i in intervals)
    return months // 12 * 31_557_600 + months % 12 * 2_592_000 + sum((SPANS[i][1] for i in intervals), Fraction(0))


def often(values: Sequence[Any], key: Callable[[Any], Any]) -> Any:
    """The most frequent value; of several, the least."""
    counts = Counter(map(key, values))
    return min(k for k, n in counts.items() if n == max(counts.values()))


def filtered(column: str, fold: Fold) -> Fold:
    return lambda rows: fold([r for r in rows if r[column]])


EXTREMES: tuple[Case, ...] = (
    Case("sum(z)", on("z", total)),
    Case("sum(DISTINCT z)", on("z", lambda v: total(list(set(v))))),
    Case("avg(z) FILTER (WHERE b)", filtered("b", on("z", lambda v: total(v) / len(v)))),
    Case("min(z)", on("z", lambda v: min(v, key=ranked))),
    Case("max(z)", on("z", lambda v: max(v, key=ranked))),
    Case("count(DISTINCT z)", lambda rows: len(set(there(rows, "z")))),
    Case("var_pop(z)", on("z", lambda v: spread(v, False))),
    Case("variance(z)", on("z", lambda v: spread(v, True))),
    Case("percentile_disc(0.5) WITHIN GROUP (ORDER BY z)", on("z", lambda v: sorted(v, key=ranked)[
        math.ceil(len(v) / 2) - 1])),
    Case("percentile_disc(0.2) WITHIN GROUP (ORDER BY z DESC) FILTER (WHERE x > 0)", lambda rows: on(
        "z", lambda v: sorted(v, key=ranked, reverse=True)[max(math.ceil(0.2 * len(v)), 1) - 1])(
        [r for r in rows if (r["x"] or 0) > 0])),
    Case("mode() WITHIN GROUP (ORDER BY z)", on("z", lambda v: next(
        a for a in v if ranked(a) == often(v, ranked)))),
    Case("sum(q)", text("q", sum)),
    Case("sum(DISTINCT q)", text("q", lambda v: sum(set(v)))),
    Case("sum(q) FILTER (WHERE b)", filtered("b", text("q", sum))),
    Case("avg(q)", on("q", lambda v: Fraction(sum(v), len(v)))),
    Case("var_pop(q)", on("q", lambda v: moments(v, False))),
    Case("min(q)", text("q", min)),
    Case("max(q)", text("q", max)),
    Case("bit_xor(q)", text("q", lambda v: bits(v, lambda a, b: a ^ b))),
    Case("bit_and(q)", text("q", lambda v: bits(v, lambda a, b: a & b))),
    Case("array_agg(q ORDER BY q DESC)", lambda rows: listed(sorted(
        (r["q"] for r in rows), key=last_null, reverse=True))),
    Case("percentile_disc(0.4) WITHIN GROUP (ORDER BY q)", text("q", lambda v: discrete(v, 0.4))),
    Case("sum(w)", on("w", digits)),
    Case("sum(w) FILTER (WHERE NOT b)", lambda rows: on("w", digits)([r for r in rows if r["b"] is False])),
    Case("min(w)", on("w", lambda v: min(v, key=ranked))),
    Case("max(w)", on("w", lambda v: max(v, key=ranked))),
    Case("count(DISTINCT w)", lambda rows: len(set(there(rows, "w")))),
    Case("mode() WITHIN GROUP (ORDER BY w)", on("w", lambda v: next(a for a in v if ranked(a) == often(v, ranked)))),
    Case("percentile_disc(0.3) WITHIN GROUP (ORDER BY w)", on("w", lambda v: sorted(v, key=ranked)[
        max(math.ceil(0.3 * len(v)), 1) - 1])),
    Case("string_agg(DISTINCT w::text, ';' ORDER BY w::text DESC)", on("w", lambda v: ";".join(
        sorted(set(map(plainly, v)), reverse=True)))),
    Case("count(DISTINCT i)", lambda rows: len(set(map(seconds, there(rows, "i"))))),
    Case("extract(epoch FROM sum(i))", on("i", lasting)),
    Case("extract(epoch FROM max(i))", on("i", lambda v: max(map(seconds, v)))),
    Case("extract(epoch FROM min(i) FILTER (WHERE b))", filtered("b", on("i", lambda v: min(map(seconds, v))))),
    Case("extract(epoch FROM mode() WITHIN GROUP (ORDER BY i))", on("i", lambda v: often(v, seconds))),
    Case("extract(epoch FROM percentile_disc(0.5) WITHIN GROUP (ORDER BY i DESC))", on(
        "i", lambda v: sorted(map(seconds, v), reverse=True)[math.ceil(len(v) / 2) - 1])),
)  # fmt: skip
"""NaN, infinities and a negative zero; bigints whose sums overflow; numerics of any width; intervals."""

HAVING: tuple[Case, ...] = (
    Case("count(*) > 1", lambda rows: len(rows) > 1),
    Case("sum(x) > 3", lambda rows: sum(there(rows, "x")) > 3),
    Case("max(z) > 1", lambda rows: any(missing(v) or v > 1 for v in there(rows, "z"))),
    Case("count(DISTINCT w) <> 1", lambda rows: len(set(there(rows, "w"))) != 1),
    Case("bool_or(b) AND min(s) < 'c'", lambda rows: any(there(rows, "b")) and any(v < "c" for v in there(rows, "s"))),
    Case("sum(q) > 9223372036854775807 OR sum(q) IS NULL", lambda rows: not there(rows, "q") or sum(
        there(rows, "q")) > 2**63 - 1),
)  # fmt: skip
