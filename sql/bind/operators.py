"""Operators applied to bound arguments, by PostgreSQL's rules of operator resolution."""

from __future__ import annotations

from ivm.errors import SqlError
from ivm.words import BOOL, Kind
from planner.expr.functions.library import overloads
from planner.expr.scalar import Call, Scalar
from sql.bind.coerce import cast_arguments, resolve_unknown
from sql.bind.comparable import check_comparison
from sql.bind.environment import Environment
from sql.bind.overloads import no_operator, not_resolved, resolve_operator, result_type
from sql.bind.rows import check_comparable


def operator(env: Environment, symbol: str, args: list[Scalar], at: int) -> Scalar:
    """An operator applied to one or two operands. Raises 42883, 42725, 42804, worded as in Postgres."""
    args = [resolve_unknown(env, a, at) if a.type.kind is Kind.RECORD else a for a in args]
    types = tuple(a.type for a in args)
    try:
        choice = resolve_operator(overloads(symbol), types)
    except SqlError as error:
        raise not_resolved(error, no_operator(symbol, types, at, ambiguous=True)) from None
    if choice is None:
        raise no_operator(symbol, types, at)
    function = choice.overload
    if len(args) == 2:
        check_comparable(types[0], types[1], at)
    if function.comparison is not None:
        check_comparison(types[0], function.comparison, at)
    cast_args = cast_arguments(env, args, choice.args, at)
    nullable = not function.null_if_null_only or any(a.nullable for a in cast_args)
    return Call(function.key, cast_args, result_type(function.result, choice), nullable)


def equal(env: Environment, left: Scalar, right: Scalar, at: int) -> Scalar:
    """``left = right``."""
    return operator(env, "=", [left, right], at)


def negate(expr: Scalar) -> Scalar:
    """NOT."""
    return Call("not", (expr,), BOOL, expr.nullable)
