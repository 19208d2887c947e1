"""Hypothetical-set aggregates: ``rank(value) WITHIN GROUP (ORDER BY x)`` and its like, as counts.

The rank of a row that is not there is one more than the number of rows that sort before it: ``count(*) FILTER (…)``.
So these are maintained as counts are, whatever the size of the group.
"""

from __future__ import annotations

from typing import Final

from ivm.errors import unsupported
from planner.expr.scalar import Scalar
from sql.bind.environment import Binder
from sql.bind.overloads import no_function
from sql.bind.walk import references
from sql.syntax.nodes import queries as nodes

NAMES: Final = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})


def hypothetical(b: Binder, node: nodes.Apply, name: str) -> Scalar:
    """The aggregate's value. Raises 42883, 42803, 0A000."""
    direct = [b.bind(a) for a in node.args]
    if len(direct) != len(node.order):
        error = no_function(name, [d.type for d in direct], node.at)
        error.hint = (
            f"To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments (here "
            f"{len(direct)}) must match the number of ordering columns (here {len(node.order)})."
        )
        raise error
    if b.scope.several and any(level == 0 for d in direct for level, _ in references(d)):
        raise unsupported(f"{name}() WITHIN GROUP of a column, with grouping sets", position=node.at + 1)
    if not b.inside_aggregate:
        b.scope.direct += direct
    return b.bind(_MADE[name](node))


def _rank(node: nodes.Apply) -> nodes.Expr:
    return _plus_one(_count(node, _before(node)), node.at)


def _dense_rank(node: nodes.Apply) -> nodes.Expr:
    # a row of NULLs is no NULL, and so is counted
    row = nodes.RowExpr(tuple(i.expr for i in node.order), node.at)
    return _plus_one(_count(node, _before(node), row), node.at)


def _percent_rank(node: nodes.Apply) -> nodes.Expr:
    """The part of the rows that sort before it; 0 if there are none."""
    part = _ratio(_count(node, _before(node)), _count(node, None), node.at)
    none = nodes.Cast(nodes.Number("0", node.at), nodes.TypeName("float8", (), False, node.at), node.at)
    return nodes.Apply(("coalesce",), (part, none), node.at)


def _cume_dist(node: nodes.Apply) -> nodes.Expr:
    """The part of the rows, itself included, that do not sort after it."""
    upto = nodes.OrExpr((_before(node), _peers(node)), node.at)
    return _ratio(_plus_one(_count(node, upto), node.at), _plus_one(_count(node, None), node.at), node.at)


_MADE: Final = {"rank": _rank, "dense_rank": _dense_rank, "percent_rank": _percent_rank, "cume_dist": _cume_dist}


def _count(node: nodes.Apply, condition: nodes.Expr | None, distinct: nodes.Expr | None = None) -> nodes.Expr:
    """How many rows (or different values) meet the condition and the aggregate's own FILTER."""
    parts = tuple(c for c in (node.filter, condition) if c is not None)
    filter_ = None if not parts else parts[0] if len(parts) == 1 else nodes.AndExpr(parts, node.at)
    args = () if distinct is None else (distinct,)
    return nodes.Apply(
        ("pg_catalog", "count"), args, node.at, star=distinct is None, distinct=distinct is not None, filter=filter_
    )


def _plus_one(count: nodes.Expr, at: int) -> nodes.Expr:
    return nodes.Operator("+", (count, nodes.Number("1", at)), at, "pg_catalog")


def _ratio(part: nodes.Expr, whole: nodes.Expr, at: int) -> nodes.Expr:
    """A quotient of counts; NULL if the divisor is 0."""
    double = nodes.TypeName("float8", (), False, at)
    divisor = nodes.Apply(("nullif",), (whole, nodes.Number("0", at)), at)
    return nodes.Operator("/", (nodes.Cast(part, double, at), nodes.Cast(divisor, double, at)), at, "pg_catalog")


def _before(node: nodes.Apply) -> nodes.Expr:
    """Whether a row sorts before the hypothetical one: by the first key in which they differ."""
    pairs = list(zip(node.order, node.args, strict=True))
    arms = []
    for i, (item, value) in enumerate(pairs):
        same = tuple(_same(earlier.expr, other, node.at) for earlier, other in pairs[:i])
        parts = (*same, _key_before(item, value))
        arms.append(nodes.AndExpr(parts, node.at) if len(parts) > 1 else parts[0])
    return nodes.OrExpr(tuple(arms), node.at) if len(arms) > 1 else arms[0]


def _peers(node: nodes.Apply) -> nodes.Expr:
    same = tuple(_same(item.expr, value, node.at) for item, value in zip(node.order, node.args, strict=True))
    return nodes.AndExpr(same, node.at) if len(same) > 1 else same[0]


def _same(left: nodes.Expr, right: nodes.Expr, at: int) -> nodes.Expr:
    return nodes.DistinctTest(left, right, True, at)


def _key_before(item: nodes.OrderItem, value: nodes.Expr) -> nodes.Expr:
    """Whether a row's key sorts before the value, NULLs as the ORDER BY item places them."""
    at = item.at
    nulls_first = item.descending if item.nulls_first is None else item.nulls_first
    compared = nodes.Operator(">" if item.descending else "<", (item.expr, value), at, "pg_catalog")
    nulls = nodes.AndExpr(
        (nodes.IsTest(item.expr, "null", not nulls_first, at), nodes.IsTest(value, "null", nulls_first, at)), at
    )
    return nodes.Apply(("coalesce",), (compared, nulls), at)
