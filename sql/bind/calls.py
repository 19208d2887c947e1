"""Function calls: scalar functions, aggregates, set-returning functions, and casts written as calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ivm.errors import SqlError, unsupported
from ivm.words import INT8, Kind
from planner.aggregates.table import PYTHON, AggregateFunction, aggregate_overloads, result_nullable
from planner.expr.functions.table import Function, overloads
from planner.expr.scalar import Aggregate, Call, Column, OuterColumn, Scalar
from planner.logical.levels import unlift
from sql.bind import (
    conditional,
    operator_functions,
    ordered_sets,
    routines,
    sequences,
    table_functions,
    user_aggregates,
    windows,
)
from sql.bind.coerce import cast, castable, plain, resolve_unknown, to_boolean
from sql.bind.environment import Environment
from sql.bind.overloads import no_function, resolve, result_type
from sql.bind.scope import AGGREGATE_BASE, Scope
from sql.bind.walk import has_subquery, references
from sql.catalog.column_types import is_type_name, type_from_name
from sql.syntax import nodes

if TYPE_CHECKING:
    from sql.bind.expression import Binder

_INTERNAL = frozenset({
    "equality_class", "order_prefix", "order_bytes", "cast", "try_cast", "assignment_cast", "row_priority",
})  # fmt: skip
_RENAMED = {"current_role": "current_user", "user": "current_user", "current_catalog": "current_database"}
_SCHEMAS = ("pg_catalog", "public", "information_schema")


def call(b: Binder, node: nodes.Apply) -> Scalar:
    """Any call."""
    found = routines.entries(b.env, node.name)
    if found and not (node.star or node.variadic or node.within):
        made = _routine(b, node, found)
        if made is not None:
            return made
    name = _name(node)
    if any(node.names):
        raise no_function(name, [b.bind(a).type for a in node.args], node.at)
    if node.over is not None:
        return windows.window_function(b, node, name)
    if name in windows.NAMES and not node.within and len(node.name) == 1:
        message = f"window function {name} requires an OVER clause"
        raise SqlError("42809", message, position=node.at + 1)
    match name:
        case "coalesce":
            return conditional.coalesce(b, node)
        case "nullif":
            return conditional.nullif(b, node)
        case "greatest" | "least":
            return conditional.extreme(b, node)
        case "grouping":
            raise unsupported("GROUPING", position=node.at + 1)
    if node.within or name in ordered_sets.NAMES:
        return ordered_sets.ordered_set(b, node, name)
    if aggregate_overloads(name):
        return aggregate(b, node, name)
    if node.star or node.distinct or node.order or node.filter is not None:
        raise _not_an_aggregate(b, node, name)
    if table_functions.is_table_function(name) and not overloads(name):
        return table_functions.in_expression(b, node, name)
    if node.variadic:
        raise unsupported("VARIADIC", position=node.at + 1)
    args = [b.bind(a) for a in node.args]
    if name == "try" and len(args) == 1 and not overloads("try"):
        raise unsupported("TRY", "TRY_CAST(x AS type) is.", node.at + 1)
    return apply_function(b.env, name, args, node.at)


def _routine(b: Binder, node: nodes.Apply, found: tuple[routines.Entry, ...]) -> Scalar | None:
    """A call of a user's function; None where the name means another one with these arguments."""
    builtin = (*aggregate_overloads(node.name[-1]), *overloads(node.name[-1])) if len(node.name) == 1 else ()
    call = routines.applied(b, node, found, builtin)
    if call is None:
        return None
    if call.entry.routine.aggregate and node.over is not None:
        return windows.window_function(b, node, call.entry.name, call.entry)
    if call.entry.routine.aggregate:
        return aggregate(b, node, call.entry.name, entry=call.entry)
    if node.over is not None:
        message = f"OVER specified, but {node.name[-1]} is not a window function nor an aggregate function"
        raise SqlError("42809", message, position=node.at + 1)
    if node.distinct or node.order or node.filter is not None:
        raise _only_aggregates(node)
    if call.entry.routine.returns_set:
        return table_functions.routine_in_expression(b, node, call)
    return routines.scalar(b, call, node.at)


def _name(node: nodes.Apply) -> str:
    if len(node.name) > 1 and node.name[-2] not in _SCHEMAS:
        raise SqlError("3F000", f'schema "{node.name[-2]}" does not exist', position=node.at + 1)
    name = node.name[-1]
    return _RENAMED.get(name, name) if len(node.name) == 1 else name


def _not_an_aggregate(b: Binder, node: nodes.Apply, name: str) -> SqlError:
    args = [resolve_unknown(b.env, b.bind(a), a.at).type for a in node.args]
    if not overloads(name):
        return no_function(name, args, node.at)
    if node.star:
        return SqlError("42883", f"function {name}() does not exist", position=node.at + 1)
    return _only_aggregates(node)


def _only_aggregates(node: nodes.Apply) -> SqlError:
    name = node.name[-1]
    what = "DISTINCT" if node.distinct else "ORDER BY" if node.order else "FILTER"
    return SqlError(
        "42809", f"{what} specified, but {name} is not an aggregate function", position=node.at + 1
    )  # fmt: skip


def apply_function(env: Environment, name: str, args: list[Scalar], at: int) -> Scalar:
    """A scalar function applied. Raises 42883, 42725."""
    if name in sequences.FUNCTIONS and args:
        args = [sequences.resolved(env, args[0], at), *args[1:]]
    types = tuple(a.type for a in args)
    found: tuple[Function, ...] = () if name in _INTERNAL else overloads(name)
    try:
        choice = resolve(found, types)
    except SqlError:
        raise no_function(name, types, at, ambiguous=True) from None
    if choice is None:
        converted = _as_cast(env, name, args, at) or _as_operator(env, name, args, at)
        if converted is not None:
            return converted
        raise no_function(name, types, at)
    from sql.bind.expression import NEVER_NULL

    function = choice.overload
    bound = tuple(cast(env, a, t, "implicit", at) for a, t in zip(args, choice.args, strict=True))
    sure = function.strict and name in NEVER_NULL and function.key != "substring(text,text)"
    nullable = not sure or any(a.nullable for a in bound)
    return Call(function.key, bound, result_type(function.result, choice), nullable)


def _as_operator(env: Environment, name: str, args: list[Scalar], at: int) -> Scalar | None:
    """``booleq(a, b)``: the function behind an operator."""
    from sql.bind.expression import operator

    symbol, types = operator_functions.FUNCTIONS.get(name, ("", ()))
    if len(args) != 2 or not types:
        return None
    pairs = list(zip(args, types, strict=True))
    if not all(a.type.kind is Kind.UNKNOWN or castable(a.type, t, "implicit") for a, t in pairs):
        return None
    return operator(env, symbol, [cast(env, a, t, "implicit", at) for a, t in pairs], at)


def _as_cast(env: Environment, name: str, args: list[Scalar], at: int) -> Scalar | None:
    """``int4(x)``: a cast in a function's clothes, where a type has the name (func_get_detail)."""
    if len(args) != 1:
        return None
    own = None if is_type_name(name) else env.catalog.type(None, name)
    try:
        target = type_from_name(name) if own is None else own.own_type
    except SqlError:
        return None
    source = args[0].type
    if source.kind is not Kind.UNKNOWN and not castable(source, target, "explicit"):
        return None
    return cast(env, args[0], plain(target), "explicit", at)


def aggregate(
    b: Binder,
    node: nodes.Apply,
    name: str,
    become: Callable[[Aggregate], Aggregate] | None = None,
    entry: routines.Entry | None = None,
) -> Scalar:
    """An aggregate: noted in the scope of the query it belongs to, and a placeholder column for its result.

    It belongs to the nearest query that one of the columns in it comes from (parse_agg.c). ``become``: what it is in
    truth, where the syntax says something else. ``entry``: the user's aggregate that it is.
    """
    if b.inside_aggregate:
        raise SqlError("42803", "aggregate function calls cannot be nested", position=node.at + 1)
    b.inside_aggregate = True
    try:
        made = called_aggregate(b, node, name, entry)
    finally:
        b.inside_aggregate = False
    made = made if become is None else become(made)
    parts = [*made.args, *(k.expr for k in made.order), *([made.filter] if made.filter is not None else [])]
    levels = {level for part in parts for level, _ in references(part)}
    level = min(levels, default=0)
    owner: Scope = b.scope
    for _ in range(level):
        assert owner.parent is not None
        owner = owner.parent
    if owner.aggregates is None:
        clause = b.clause if level == 0 else owner.clause
        raise SqlError("42803", f"aggregate functions are not allowed in {clause}", position=node.at + 1)
    if level:
        made = _outer_aggregate(made, level, parts, node)
    index = AGGREGATE_BASE + owner.note_aggregate(made)
    if level:
        return OuterColumn(level, index, made.type, made.nullable)
    return Column(index, made.type, made.nullable)


def _outer_aggregate(made: Aggregate, level: int, parts: list[Scalar], node: nodes.Apply) -> Aggregate:
    if any(has_subquery(p) for p in parts) or made.order:
        raise unsupported("such an aggregate of an outer query", position=node.at + 1)
    filter_ = None if made.filter is None else unlift(made.filter, level)
    args = tuple(unlift(a, level) for a in made.args)
    return replace(made, args=args, filter=filter_)


def called_aggregate(b: Binder, node: nodes.Apply, name: str, entry: routines.Entry | None) -> Aggregate:
    """The aggregate of a call, not noted anywhere."""
    from sql.bind.expression import sort_key

    filter_ = None if node.filter is None else to_boolean(b.env, b.bind(node.filter), "FILTER", node.filter.at)
    keys = [b.bind(i.expr) for i in node.order]
    if node.star:
        if name != "count":
            raise SqlError("42883", f"function {name}() does not exist", position=node.at + 1)
        return Aggregate("count(*)", (), INT8, False, False, filter_)
    if name == "count" and not node.args:
        raise SqlError(
            "42809", "count(*) must be used to call a parameterless aggregate function", position=node.at + 1
        )
    args = [b.bind(a) for a in node.args]
    if entry is not None:
        function, bound = PYTHON, user_aggregates.arguments(b.env, entry, args, node.at)
    else:
        function, bound = _resolve_aggregate(b.env, name, args, node.at)
    if node.distinct and any(k not in args for k in keys):
        raise SqlError(
            "42P10", "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
            position=node.at + 1,
        )  # fmt: skip
    # An ORDER BY the argument means the argument as the aggregate takes it, cast included.
    keys = [bound[args.index(k)] if k in args else resolve_unknown(b.env, k, node.at) for k in keys]
    order = tuple(sort_key(k, i) for k, i in zip(keys, node.order, strict=True))
    types = tuple(a.type for a in bound)
    nullable = result_nullable(function, tuple(a.nullable for a in bound), b.scope.grouped, filter_ is not None)
    python = None if entry is None else user_aggregates.python_function(entry)
    result = plain(function.result_type(types) if python is None else python.result)
    return Aggregate(function.key, bound, result, nullable, node.distinct, filter_, order, python)


def _resolve_aggregate(
    env: Environment, name: str, args: list[Scalar], at: int
) -> tuple[AggregateFunction, tuple[Scalar, ...]]:
    types = tuple(a.type for a in args)
    try:
        choice = resolve(aggregate_overloads(name), types)
    except SqlError:
        raise no_function(name, types, at, ambiguous=True) from None
    if choice is None:
        raise no_function(name, types, at)
    bound = tuple(cast(env, a, t, "implicit", at) for a, t in zip(args, choice.args, strict=True))
    return choice.overload, bound
