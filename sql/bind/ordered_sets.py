"""Ordered-set aggregates: ``f(direct) WITHIN GROUP (ORDER BY x)`` is an aggregate of (x, direct) with an order.

If the direct argument is not a constant, the result is a scalar function of ``array_agg(x ORDER BY x)`` and it.
"""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError, unsupported
from ivm.words import FLOAT8, Kind, SqlType
from planner.aggregates.table import AGGREGATES, ORDERED_SETS
from planner.expr.functions.library import FUNCTIONS, overloads
from planner.expr.functions.table import ANYELEMENT, ArgumentType
from planner.expr.scalar import (
    Aggregate,
    Call,
    Column,
    Exists,
    OuterColumn,
    Quantified,
    Scalar,
    ScalarSubquery,
    children,
)  # fmt: skip
from sql.bind import hypothetical
from sql.bind.aggregates import aggregate
from sql.bind.coerce import cast, castable, resolve_unknown
from sql.bind.environment import Binder
from sql.bind.overloads import no_function, resolve, result_type
from sql.bind.walk import has_subquery
from sql.catalog.column_types import array_of
from sql.syntax.nodes import queries as nodes


def ordered_set(b: Binder, node: nodes.Apply, name: str) -> Scalar:
    """The aggregate's value. Raises 42883 for an unknown aggregate or wrong types, 42809, 0A000."""
    if not node.within:
        if len(node.args) == 1 + (name != "mode"):
            message = f"WITHIN GROUP is required for ordered-set aggregate {name}"
            raise SqlError("42809", message, position=node.at + 1)
        raise no_function(name, [b.bind(a).type for a in node.args], node.at)
    if name in hypothetical.NAMES:
        return hypothetical.hypothetical(b, node, name)
    direct = [b.bind(a) for a in node.args]
    types = [sorted_type(b, i.expr) for i in node.order]
    wrong = no_function(name, [*(d.type for d in direct), *types], node.at)
    if name not in ORDERED_SETS or len(types) != 1 or len(direct) != (name != "mode"):
        raise wrong
    if any(map(has_subquery, direct)):
        raise unsupported("a subquery in an ordered-set aggregate", position=node.at + 1)
    item = node.order[0]
    if name == "percentile_cont" and types[0].kind is not Kind.INTERVAL:
        if types[0].kind is not Kind.UNKNOWN and not castable(types[0], FLOAT8, "implicit"):
            raise wrong
        item = replace(item, expr=nodes.Cast(item.expr, nodes.TypeName("float8", (), False, item.at), item.at))
    elif types[0].element is not None or types[0].kind is Kind.RECORD:
        raise unsupported(f"{name}() of arrays and rows", position=node.at + 1)
    gathered = nodes.Apply(("array_agg",), (item.expr,), node.at, order=(item,), filter=node.filter)
    fractions = [_fraction(b, d, wrong, node.at) for d in direct]
    if all(_is_fixed(f) for f in fractions):
        return aggregate(b, gathered, "array_agg", lambda made: _within(name, made, fractions))
    args = [aggregate(b, gathered, "array_agg"), *fractions]
    choice = resolve(overloads(name), tuple(a.type for a in args))
    assert choice is not None, "of these types there is one"
    return Call(choice.overload.key, tuple(args), result_type(choice.overload.result, choice), True)


def _within(name: str, gathered: Aggregate, fractions: list[Scalar]) -> Aggregate:
    """The ordered-set aggregate of what array_agg would gather."""
    args = (*gathered.args, *fractions)
    value = args[0].type.plain
    many = len(args) > 1 and args[1].type.kind is Kind.ARRAY
    first: ArgumentType = value if name == "percentile_cont" else ANYELEMENT
    direct = tuple(a.type.plain for a in fractions)
    function = next(f for f in AGGREGATES.values() if f.name == name and f.args == (first, *direct))
    return replace(gathered, function=function.key, args=args, type=array_of(value) if many else value, nullable=True)


def _is_fixed(expr: Scalar) -> bool:
    """Whether the expression has one value, for all groups and at all times."""
    found = FUNCTIONS.get(expr.function) if isinstance(expr, Call) else None
    if found is not None and found.volatility not in ("immutable", "settings"):
        return False
    return not isinstance(expr, Column | OuterColumn | ScalarSubquery | Exists | Quantified) and all(
        _is_fixed(part) for part in children(expr)
    )


def sorted_type(b: Binder, expr: nodes.Expr) -> SqlType:
    """The type of an expression in WITHIN GROUP."""
    inside, b.inside_aggregate = b.inside_aggregate, True
    try:
        return b.bind(expr).type
    finally:
        b.inside_aggregate = inside


def _fraction(b: Binder, expr: Scalar, wrong: SqlError, at: int) -> Scalar:
    """A direct argument as double precision, or as an array of that."""
    target = FLOAT8 if expr.type.element is None else array_of(FLOAT8)
    if expr.type.kind is Kind.UNKNOWN:
        return cast(b.env, expr, FLOAT8, "implicit", at)
    if not castable(expr.type, target, "implicit"):
        raise wrong
    return resolve_unknown(b.env, cast(b.env, expr, target, "implicit", at), at)
