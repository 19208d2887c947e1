"""CASE, COALESCE, NULLIF, GREATEST and LEAST."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ivm.errors import SqlError
from ivm.words import BOOL, UNKNOWN, Kind
from planner.expr.functions.library import overloads
from planner.expr.scalar import And, Call, Case, Coalesce, Literal, Scalar
from sql.bind.coerce import cast, common_type, resolve_unknown, to_boolean
from sql.bind.environment import Binder
from sql.bind.operators import applied, check_repeatable, equal, operator
from sql.bind.positions import position
from sql.syntax.nodes import queries as nodes

T = TypeVar("T")
_TIMES = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def unify(b: Binder, exprs: Sequence[Scalar], what: str, positions: Sequence[int]) -> list[Scalar]:
    """Expressions cast to their common type. ``what`` and ``positions``: for errors. Raises 42804."""
    target = common_type([e.type for e in exprs], what, positions)
    return [cast(b.env, e, target, "implicit", at) for e, at in zip(exprs, positions, strict=True)]


def _inside(b: Binder, what: str, bind: Callable[[], T]) -> T:
    """Binds the arguments of ``what``, among which no set-returning function may be."""
    outer, b.scope.conditional = b.scope.conditional, what
    try:
        return bind()
    finally:
        b.scope.conditional = outer


def case(b: Binder, node: nodes.CaseExpr) -> Scalar:
    """Both forms of CASE; the simple form compares its operand with each WHEN. Raises 42804."""
    return _inside(b, "CASE", lambda: _case(b, node))


def _case(b: Binder, node: nodes.CaseExpr) -> Scalar:
    operand = None if node.operand is None else resolve_unknown(b.env, b.bind(node.operand), node.at)
    conditions: list[Scalar] = []
    for when, _ in node.arms:
        if operand is None:
            conditions.append(b.condition(when, "CASE/WHEN"))
        else:
            bound = b.bind(when)
            conditions.append(to_boolean(b.env, equal(b.env, operand, bound, when.at), "CASE/WHEN", position(when)))
    results = [b.bind(result) for _, result in node.arms]
    otherwise = Literal(None, UNKNOWN) if node.otherwise is None else b.bind(node.otherwise)
    at_otherwise = node.at if node.otherwise is None else node.otherwise.at
    # ELSE comes first, as in Postgres, which tries its type first.
    unified = unify(b, [otherwise, *results], "CASE", [at_otherwise, *(r.at for _, r in node.arms)])
    nullable = any(e.nullable for e in unified)
    return Case(tuple(zip(conditions, unified[1:], strict=True)), unified[0], unified[0].type, nullable)


def coalesce(b: Binder, node: nodes.Apply) -> Scalar:
    """COALESCE(a, …)."""
    if not node.args:
        raise SqlError("42601", 'syntax error at or near ")"', position=node.at + 1)
    args = _inside(b, "COALESCE", lambda: [b.bind(a) for a in node.args])
    unified = unify(b, args, "COALESCE", [a.at for a in node.args])
    return Coalesce(tuple(unified), unified[0].type)


def nullif(b: Binder, node: nodes.Apply) -> Scalar:
    """NULLIF(a, b): a unless a = b. Its type is what = casts a to."""
    if len(node.args) != 2:
        raise SqlError("42601", 'syntax error at or near ")"', position=node.at + 1)
    left, right = b.bind(node.args[0]), b.bind(node.args[1])
    found = applied(b.env, "=", [left, right], node.at)
    comparison = found.expr
    if comparison.type.kind is not Kind.BOOL:
        raise SqlError("42804", "NULLIF requires = operator to yield boolean", position=node.at + 1)
    if found.own:  # it is not asked about NULLs
        check_repeatable("NULLIF", found.args, node.at)
        comparison = And((*(Call("is not null", (a,), BOOL, False) for a in found.args), comparison))
    # Postgres compares a date with a timestamp as they are
    value = left if left.type.kind in _TIMES else found.args[0]
    return Case(((comparison, Literal(None, value.type)),), value, value.type, True)


def extreme(b: Binder, node: nodes.Apply) -> Scalar:
    """GREATEST and LEAST: NULL arguments are ignored."""
    name = node.name[0]
    if not node.args:
        raise SqlError("42601", 'syntax error at or near ")"', position=node.at + 1)
    unified = unify(b, [b.bind(a) for a in node.args], name.upper(), [a.at for a in node.args])
    type_ = unified[0].type
    nullable = all(e.nullable for e in unified)
    known = overloads(name)
    if known:
        return Call(known[0].key, tuple(unified), type_, nullable)
    result = unified[0]
    symbol = ">=" if name == "greatest" else "<="
    for item in unified[1:]:
        better = operator(b.env, symbol, [result, item], node.at, "pg_catalog")
        result = Case(((better, result),), Coalesce((item, result), type_), type_, nullable)
    return result
