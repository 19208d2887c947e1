"""Inequalities in join conditions: bands, intervals that contain a point or overlap, and orders on one side.

Each row of either side stands for an *interval* from ``low`` to ``high``; a point is both ends of one. Two rows match
if each starts before the other ends: ``a.lo <= b.hi AND b.lo <= a.hi``, or one of the two, or both with strict signs.
``a.x BETWEEN b.lo AND b.hi`` is the case of a point; ``a.r && b.r`` and ``b.r @> a.x`` are of ranges.

Ends compare as words. Where a type's words do not sort as its values, words that do so weakly stand for them
(``order_prefix``, a day for a timestamp that is compared with a date): then the condition is tested as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ivm.words import BOOL, DATE, INT8, Kind, SqlType, Storage
from planner.expr.comparison import Comparison
from planner.expr.functions.boolean import NOT
from planner.expr.functions.compare import ORDER_PREFIX
from planner.expr.functions.library import CAST, comparison_of, is_volatile
from planner.expr.functions.ranges import MEETING
from planner.expr.parts import walk
from planner.expr.scalar import Call, Case, Coalesce, Literal, Scalar
from planner.logical.join_keys import Band, Inequality, as_type, by_class, common_type, operator
from planner.logical.traversal import columns_of, has_subquery, shift

_ORDERED: Final = frozenset(
    {
        Kind.INT2, Kind.INT4, Kind.INT8, Kind.OID, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.DATE, Kind.TIME,
        Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.ENUM,
    }
)  # fmt: skip
"""The kinds whose words sort as their values, where the type is stored as an integer."""
_PREFIXED: Final = frozenset(
    {Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.BPCHAR, Kind.BYTEA, Kind.NUMERIC, Kind.INTERVAL, Kind.UUID}
)
"""Other kinds that are compared by prefixes first."""
_DAYS: Final = frozenset({Kind.DATE, Kind.TIMESTAMP})
_RANGES: Final = {Kind.RANGE: "anyrange", Kind.MULTIRANGE: "anymultirange"}
_FIRST: Final = Literal(-(2**63), INT8)
_LAST: Final = Literal(2**63 - 1, INT8)

Order = tuple[Scalar, Scalar, bool, bool]
"""An expression that is less than or equal to another; whether it is less; whether that is all of a condition."""


def band_in(parts: tuple[Scalar, ...], left_width: int) -> Band | None:
    """The band among the parts of a join condition, over left's columns and right's; None: there is none.

    The one with a point is chosen before others of two inequalities, and these before one inequality alone; any is
    right, but the ends of intervals leave the fewest pairs.
    """
    up: list[Inequality] = []
    down: list[Inequality] = []
    for part in parts:
        if has_subquery(part) or any(map(is_volatile, walk(part))):
            continue
        for order in _orders(part):
            _sort_out(part, order, left_width, up, down)
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
    if band.left == band.right or (band.up is not None and band.down is not None and band.up.part == band.down.part):
        return 1
    return 2 if low.type.kind is high.type.kind else 3


def _sort_out(part: Scalar, order: Order, left_width: int, up: list[Inequality], down: list[Inequality]) -> None:
    """Adds an order between the two sides to those of its direction."""
    low, high, strict, exact = order
    one, two = columns_of(low), columns_of(high)
    if not one or not two:
        return
    if max(one) < left_width <= min(two):
        up.append(Inequality(low, shift(high, -left_width), strict, part, exact))
    elif max(two) < left_width <= min(one):
        down.append(Inequality(shift(low, -left_width), high, strict, part, exact))


def _orders(part: Scalar) -> Iterator[Order]:
    """What follows from a condition."""
    negated = isinstance(part, Call) and operator(part) == NOT
    call = part.args[0] if isinstance(part, Call) and negated else part
    sign = comparison_of(call)
    if isinstance(call, Call) and sign is not None and sign not in (Comparison.EQUAL, Comparison.NOT_EQUAL):
        sign = sign.negator if negated else sign
        ends = call.args if sign in (Comparison.LESS, Comparison.NOT_GREATER) else call.args[::-1]
        words = _as_words(*ends)
        if words is not None:
            low, high, exact = words
            yield low, high, exact and sign in (Comparison.LESS, Comparison.GREATER), exact
    elif isinstance(part, Call) and operator(part) in MEETING and len(part.args) == 2:
        one, two = part.args
        if operator(part) == "&&" or one.type.kind not in _RANGES or two.type.kind not in _RANGES:
            yield from _meeting(one, two)


def _as_words(low: Scalar, high: Scalar) -> tuple[Scalar, Scalar, bool] | None:
    """The two sides of a comparison as expressions whose words compare likewise, and whether they do so exactly; None
    where there are none."""
    days = _of_date(low), _of_date(high)
    if {days[0].type.kind, days[1].type.kind} == _DAYS:
        return _as_day(days[0]), _as_day(days[1]), False  # a date may be no timestamp
    target = common_type(low.type, high.type)
    if target is None:
        return None
    low, high = as_type(low, target), as_type(high, target)
    if low.type.kind in _ORDERED and low.type.storage is high.type.storage is Storage.DIRECT:
        return by_class(low), by_class(high), True
    if low.type.kind in _PREFIXED and high.type.kind in _PREFIXED:
        return _prefix(low), _prefix(high), False
    return None


def _of_date(expr: Scalar) -> Scalar:
    """The date that an expression casts to a timestamp; any other expression itself."""
    cast = isinstance(expr, Call) and expr.function == CAST and expr.type.kind is Kind.TIMESTAMP
    return expr.args[0] if isinstance(expr, Call) and cast and expr.args[0].type.kind is Kind.DATE else expr


def _as_day(expr: Scalar) -> Scalar:
    return expr if expr.type.kind is Kind.DATE else Call(CAST, (expr,), DATE, expr.nullable)


def _prefix(expr: Scalar) -> Scalar:
    return Call(ORDER_PREFIX, (expr,), INT8, expr.nullable)


def _meeting(one: Scalar, two: Scalar) -> Iterator[Order]:
    """Two ranges that have a value in common, or a range and a value in it."""
    ends = _ends(one, two.type), _ends(two, one.type)
    if ends[0] is not None and ends[1] is not None:
        yield ends[0][0], ends[1][1], False, False
        yield ends[1][0], ends[0][1], False, False


def _ends(expr: Scalar, other: SqlType) -> tuple[Scalar, Scalar] | None:
    """The ends of a range, or a value twice, as words that sort weakly; NULL for the empty range. ``other``: the type
    that it is compared with. None: of types without such words."""
    suffix = _RANGES.get(expr.type.kind)
    if suffix is None:
        subtype = _subtype(other)
        word = None if subtype is None else _weakly(as_type(expr, subtype))
        return None if word is None else (word, word)
    subtype = _subtype(expr.type)
    if subtype is None:
        return None
    some = Call(NOT, (Call(f"isempty({suffix})", (expr,), BOOL, expr.nullable),), BOOL, expr.nullable)
    found = []
    for name, infinite in (("lower", _FIRST), ("upper", _LAST)):
        word = _weakly(Call(f"{name}({suffix})", (expr,), subtype))
        if word is None:
            return None
        found.append(Case(((some, Coalesce((word, infinite), INT8)),), Literal(None, INT8), INT8))
    return found[0], found[1]


def _subtype(type_: SqlType) -> SqlType | None:
    """The type of a range's ends."""
    return type_.subtype.subtype if type_.kind is Kind.MULTIRANGE and type_.subtype is not None else type_.subtype


def _weakly(expr: Scalar) -> Scalar | None:
    return _prefix(expr) if expr.type.kind in _ORDERED | _PREFIXED else None
