"""Operators applied to bound arguments, by PostgreSQL's rules of operator resolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, Kind, SqlType
from planner.expr.functions.library import overloads
from planner.expr.functions.table import ArgumentType, Function
from planner.expr.scalar import Call, Scalar
from sql.bind.coerce import cast_arguments, resolve_unknown
from sql.bind.comparable import check_comparison
from sql.bind.environment import Environment
from sql.bind.folding import folded
from sql.bind.literals import computed
from sql.bind.overloads import (
    Resolution,
    no_operator,
    not_resolved,
    resolve_operator,
    resolve_operator_uncached,
    result_type,
)
from sql.bind.rows import check_comparable
from sql.bind.volatile import is_volatile
from sql.bind.walk import has_subquery
from sql.catalog.catalog import Operators, Relation
from sql.catalog.operators import Operator
from sql.catalog.search_path import Recorder


@dataclass(frozen=True, slots=True)
class Applied:
    """An operator applied. ``args``: the operands, cast to what it takes; ``own``: it is a user's."""

    expr: Scalar
    args: tuple[Scalar, ...]
    own: bool = False


@dataclass(frozen=True, slots=True)
class _Own:
    """A user's operator as a candidate of resolution (an ``Overload``)."""

    relation: Relation

    @property
    def operator(self) -> Operator:
        assert self.relation.operator is not None, "an operator"
        return self.relation.operator

    @property
    def key(self) -> str:
        return f"operator {self.relation.id}"

    @property
    def name(self) -> str:
        return self.operator.symbol

    @property
    def args(self) -> tuple[ArgumentType, ...]:
        return self.operator.args


def operator(env: Environment, symbol: str, args: list[Scalar], at: int, schema_name: str | None = None) -> Scalar:
    """An operator applied to one or two operands. ``schema_name``: of ``OPERATOR(schema.op)``. Raises 42883, 42725,
    42804, 3F000, worded as in Postgres."""
    return applied(env, symbol, args, at, schema_name).expr


def applied(env: Environment, symbol: str, args: list[Scalar], at: int, schema_name: str | None = None) -> Applied:
    """The same, with what the operator was found to be."""
    types = tuple([a.type for a in args])
    own = env.catalog.operators(schema_name, symbol)
    if own == ((), ()) and schema_name is None and env.notes is None and len(args) == 2:
        known = _EXACT.get((symbol, types))
        if known is not None and types[0].domain is None and types[1].domain is None:
            key, result, strict = known
            call = Call(key, tuple(args), result, not strict or args[0].nullable or args[1].nullable)
            return Applied(computed(call.args, folded(call)), call.args)
    args = [resolve_unknown(env, a, at) if a.type.kind is Kind.RECORD else a for a in args]
    types = tuple([a.type for a in args])
    shown = symbol if schema_name is None else f"{schema_name}.{symbol}"
    choice: Resolution[Any] | None
    try:
        if schema_name in (None, "pg_catalog") and own == ((), ()):
            choice = resolve_operator(overloads(symbol), types)
        else:
            choice = resolve_operator_uncached(_candidates(env, symbol, own, at, schema_name), types)
    except SqlError as error:
        if error.sqlstate == "3F000":
            raise
        raise not_resolved(error, no_operator(shown, types, at, ambiguous=True)) from None
    if choice is None:
        raise no_operator(shown, types, at)
    if isinstance(choice.overload, _Own):
        if schema_name is None and isinstance(env.catalog, Recorder):
            env.catalog.record_operator(choice.overload.relation, at)
        return _own(env, choice, args, at)
    found = _builtin(env, choice, args, at)
    if choice.overload.args == types and own == ((), ()):
        _remember(symbol, types, choice.overload, found)
    return found


_PLAIN: Final = frozenset({
    Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT4, Kind.FLOAT8, Kind.TEXT, Kind.VARCHAR,
    Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL,
})  # fmt: skip
_EXACT: Final[dict[tuple[str, tuple[SqlType, ...]], tuple[str, SqlType, bool]]] = {}
"""By a built-in operator's symbol and the types that it is declared for: its key, the type of its result, and whether
only NULL makes it NULL. A few of them are most of what is bound."""


def _remember(symbol: str, types: tuple[SqlType, ...], function: Function, found: Applied) -> None:
    plain = all(t.kind in _PLAIN and t.precision is None and t.scale is None for t in types)
    if plain and len(types) == 2 and isinstance(found.expr, Call) and found.expr.type.domain is None:
        _EXACT[symbol, types] = found.expr.function, found.expr.type, function.null_if_null_only


def _candidates(
    env: Environment, symbol: str, own: Operators, at: int, schema_name: str | None
) -> list[_Own | Function]:
    """The operators that a name may mean; of those with equal types, the one that the search path has first."""
    before, after = [_Own(r) for r in own[0]], [_Own(r) for r in own[1]]
    if schema_name in (None, "pg_catalog"):
        first: dict[tuple[ArgumentType, ...], _Own | Function] = {}
        candidates: list[_Own | Function] = [*before, *overloads(symbol), *after]
        for candidate in candidates:
            first.setdefault(candidate.args, candidate)
        return list(first.values())
    try:
        env.catalog.home(schema_name, False)
    except SqlError as error:
        raise _placed(error, at) from None
    return [*before, *after]


def _placed(error: SqlError, at: int) -> SqlError:
    """The error at this offset."""
    return SqlError(error.sqlstate, error.message, error.detail, error.hint, at + 1)


def _own(env: Environment, choice: Resolution[_Own], args: Sequence[Scalar], at: int) -> Applied:
    found = choice.overload
    if found.operator.shell:
        error = no_operator(found.name, [a.type for a in args], at)
        message = error.message.replace("operator does not exist:", "operator is only a shell:", 1)
        raise SqlError("42883", message, position=at + 1)
    operands = cast_arguments(env, args, choice.args, at)
    if env.notes is not None:
        env.notes.operators[at, found.name] = found.relation, choice.args
    return Applied(env.call_operator(found.relation, operands, at), operands, own=True)


def _builtin(env: Environment, choice: Resolution[Function], args: Sequence[Scalar], at: int) -> Applied:
    function = choice.overload
    types: tuple[SqlType, ...] = tuple(a.type for a in args)
    if len(args) == 2:
        check_comparable(types[0], types[1], at)
    if function.comparison is not None:
        check_comparison(types[0], function.comparison, at)
    cast_args = cast_arguments(env, args, choice.args, at)
    nullable = not function.null_if_null_only or any(a.nullable for a in cast_args)
    call = Call(function.key, cast_args, result_type(function.result, choice), nullable)
    return Applied(computed(cast_args, folded(call)) if env.notes is None else call, cast_args)


def check_repeatable(what: str, args: Sequence[Scalar], at: int) -> None:
    """Raises 0A000 for operands of a user's operator that may not be computed more than once."""
    if any(is_volatile(a) or has_subquery(a) for a in args):
        hint = "Compute them in a subquery in FROM."
        raise unsupported(f"{what} by an operator of one's own over volatile values or subqueries", hint, at + 1)


def equal(env: Environment, left: Scalar, right: Scalar, at: int) -> Scalar:
    """``left = right``."""
    return operator(env, "=", [left, right], at)


def negate(expr: Scalar) -> Scalar:
    """NOT."""
    return Call("not", (expr,), BOOL, expr.nullable)
