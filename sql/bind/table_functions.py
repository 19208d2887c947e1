"""Set-returning functions, in FROM and in select lists; ``planner/expr/functions/table_functions.py`` has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm.errors import SqlError, unsupported
from ivm.words import ColumnType, Kind, Schema
from planner.expr.functions.table_functions import table_overloads
from planner.expr.scalar import Column, Scalar
from sql.bind import routines
from sql.bind.coerce import cast
from sql.bind.environment import Environment
from sql.bind.overloads import no_function, resolve
from sql.bind.scope import FUNCTION_BASE, SetReturning
from sql.syntax import nodes

if TYPE_CHECKING:
    from sql.bind.expression import Binder


def is_table_function(name: str) -> bool:
    """Whether a name is a set-returning function's."""
    return bool(table_overloads(name))


Call = tuple[str, tuple[Scalar, ...], Schema]
"""(function key, arguments, result columns): what TableFunction takes."""


def apply(env: Environment, name: str, args: list[Scalar], at: int) -> Call:
    """A table function applied. Raises 42883."""
    if name == "unnest" and len(args) > 1:
        return _unnest_many(args, at)
    types = tuple(a.type for a in args)
    try:
        choice = resolve(table_overloads(name), types)
    except SqlError:
        raise no_function(name, types, at, ambiguous=True) from None
    if choice is None:
        raise no_function(name, types, at)
    bound = tuple(cast(env, a, t, "implicit", at) for a, t in zip(args, choice.args, strict=True))
    return choice.overload.key, bound, choice.overload.columns([a.type for a in bound])


def _unnest_many(args: list[Scalar], at: int) -> Call:
    """``unnest(a, b, …)``: the arrays side by side, the shorter ones padded with NULL."""
    for arg in args:
        if arg.type.kind is not Kind.ARRAY:
            if arg.type.kind is Kind.UNKNOWN:
                raise SqlError(
                    "42P18", "could not determine polymorphic type because input has type unknown", position=at + 1
                )
            raise no_function("unnest", [a.type for a in args], at)
    columns = tuple(ColumnType(a.type.element, True) for a in args if a.type.element is not None)
    return "unnest", tuple(args), columns


def unnest(array: Scalar) -> Call:
    """``unnest`` of one array."""
    assert array.type.element is not None
    return "unnest", (array,), (ColumnType(array.type.element, True),)


def routine_in_expression(b: Binder, node: nodes.Apply, call: routines.Applied) -> Scalar:
    """The same for a user's function."""
    functions = b.scope.functions
    if functions is None:
        raise SqlError("0A000", f"set-returning functions are not allowed in {b.clause}", position=node.at + 1)
    columns = call.entry.relation.columns
    if len(columns) != 1:
        raise unsupported("a row as the value of a function", "Call it in FROM.", node.at + 1)
    shown = (ColumnType(columns[0].type, True),)
    made = SetReturning(call.entry.key, call.args, shown, node.at, (call.entry, routines.body(b.env, call.entry)))
    if made not in functions:
        functions.append(made)
    return Column(FUNCTION_BASE + functions.index(made), columns[0].type, True)


def in_expression(b: Binder, node: nodes.Apply, name: str) -> Scalar:
    """A set-returning function in a select list: noted in the scope, and a placeholder for its value."""
    functions = b.scope.functions
    if functions is None:
        raise SqlError("0A000", f"set-returning functions are not allowed in {b.clause}", position=node.at + 1)
    if b.inside_aggregate:
        raise SqlError(
            "0A000", "aggregate function calls cannot contain set-returning function calls", position=node.at + 1
        )
    before = len(functions)
    args = [b.bind(a) for a in node.args]
    if len(functions) > before:
        raise unsupported("a set-returning function of a set-returning function", position=node.at + 1)
    key, bound, columns = apply(b.env, name, args, node.at)
    if len(columns) != 1:
        raise SqlError("0A000", "a row as a value is not supported", position=node.at + 1)
    made = SetReturning(key, bound, columns, node.at)
    if made not in functions:
        functions.append(made)
    return Column(FUNCTION_BASE + functions.index(made), columns[0].type, True)
