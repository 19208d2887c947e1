"""Inequalities in join conditions: bands, intervals that contain a point or overlap, and orders on one side.

Each row of either side stands for an *interval* from ``low`` to ``high``; a point is both ends of one. Two rows match
if each starts before the other ends: ``a.lo <= b.hi AND b.lo <= a.hi``, or one of the two, or both with strict signs.
``a.x BETWEEN b.lo AND b.hi`` is the case of a point. Ends compare as words.
"""

from __future__ import annotations

from typing import Final

from ivm.words import Kind, SqlType, Storage
from planner.expr.comparison import Comparison
from planner.expr.functions.boolean import NOT
from planner.expr.functions.library import comparison_of, is_volatile
from planner.expr.parts import walk
from planner.expr.scalar import Call, Scalar
from planner.logical.join_keys import Band, Inequality, as_type, by_class, common_type, operator
from planner.logical.traversal import columns_of, has_subquery, shift

_ORDERED: Final = frozenset(
    {
        Kind.INT2, Kind.INT4, Kind.INT8, Kind.OID, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.DATE, Kind.TIME,
        Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.ENUM,
    }
)  # fmt: skip
"""The kinds whose words sort as their values, where the type is stored as an integer."""


def band_in(parts: tuple[Scalar, ...], left_width: int) -> Band | None:
    """The band among the parts of a join condition, over left's columns and right's; None: there is none.

    The one with a point is chosen before others of two inequalities, and these before one inequality alone; any is
    right, but the ends of intervals leave the fewest pairs.
    """
    up: list[Inequality] = []
    down: list[Inequality] = []
    for part in parts:
        found = _inequality(part, left_width)
        if found is not None:
            (up if found[1] else down).append(found[0])
    both = sorted((Band(u, d) for u in up for d in down), key=_oddness)
    some = [*both, *(Band(u, None) for u in up), *(Band(None, d) for d in down)]
    return some[0] if some else None


def _oddness(band: Band) -> int:
    """How unlikely it is that the ends of two inequalities are those of intervals."""
    low, high = band.left
    assert low is not None
    assert high is not None
    if low == high or band.right[0] == band.right[1]:
        return 0
    return 1 if band.left == band.right else 2 if low.type.kind is high.type.kind else 3


def _inequality(part: Scalar, left_width: int) -> tuple[Inequality, bool] | None:
    """The inequality that a condition is, and whether its low end is the left side's."""
    negated = isinstance(part, Call) and operator(part) == NOT
    call = part.args[0] if isinstance(part, Call) and negated else part
    sign = comparison_of(call)
    if not isinstance(call, Call) or sign is None or sign in (Comparison.EQUAL, Comparison.NOT_EQUAL):
        return None
    sign = sign.negator if negated else sign
    if has_subquery(part) or any(map(is_volatile, walk(part))):
        return None
    ends = _as_words(*call.args)
    if ends is None:
        return None
    low, high = ends if sign in (Comparison.LESS, Comparison.NOT_GREATER) else ends[::-1]
    strict = sign in (Comparison.LESS, Comparison.GREATER)
    one, two = columns_of(low), columns_of(high)
    if not one or not two:
        return None
    if max(one) < left_width <= min(two):
        return Inequality(low, shift(high, -left_width), strict, part), True
    if max(two) < left_width <= min(one):
        return Inequality(shift(low, -left_width), high, strict, part), False
    return None


def _as_words(left: Scalar, right: Scalar) -> tuple[Scalar, Scalar] | None:
    """The two sides of a comparison as expressions whose words compare likewise; None where there are none."""
    target = common_type(left.type, right.type)
    if target is None or not (_is_ordered(left.type) and _is_ordered(right.type)):
        return None
    if as_type(left, target) is not left or as_type(right, target) is not right:
        return None  # a cast may fail where the comparison does not: a date may be no timestamp
    return by_class(left), by_class(right)


def _is_ordered(type_: SqlType) -> bool:
    return type_.kind in _ORDERED and type_.storage is Storage.DIRECT
