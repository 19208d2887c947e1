"""Calls of table functions (``planner/expr/functions/table_functions.py`` has the functions), in FROM and in select
lists."""

from __future__ import annotations

from ivm.errors import SqlError
from ivm.words import ColumnType, Kind, Schema
from planner.expr.functions.table_functions import table_overloads
from planner.expr.scalar import Scalar
from sql.bind.coerce import cast_arguments
from sql.bind.environment import Environment
from sql.bind.overloads import no_function, resolve_call

TableCall = tuple[str, tuple[Scalar, ...], Schema]
"""(function key, arguments, result columns), as ``TableFunction`` takes them."""


def is_table_function(name: str) -> bool:
    """Whether a name is a set-returning function's."""
    return bool(table_overloads(name))


def apply(env: Environment, name: str, args: list[Scalar], at: int) -> TableCall:
    """A table function applied to bound arguments. Raises 42883, 42725."""
    if name == "unnest" and len(args) > 1:
        return _unnest_many(args, at)
    choice = resolve_call(table_overloads(name), name, tuple(a.type for a in args), at)
    bound = cast_arguments(env, args, choice.args, at)
    return choice.overload.key, bound, choice.overload.columns([a.type for a in bound])


def _unnest_many(args: list[Scalar], at: int) -> TableCall:
    """``unnest(a, b, …)``: the arrays side by side, the shorter ones padded with NULLs."""
    for arg in args:
        if arg.type.kind is not Kind.ARRAY:
            if arg.type.kind is Kind.UNKNOWN:
                raise SqlError(
                    "42P18", "could not determine polymorphic type because input has type unknown", position=at + 1
                )
            raise no_function("unnest", [a.type for a in args], at)
    columns = tuple(ColumnType(a.type.element, True) for a in args if a.type.element is not None)
    return "unnest", tuple(args), columns


def unnest(array: Scalar) -> TableCall:
    """``unnest`` of one array."""
    assert array.type.element is not None
    return "unnest", (array,), (ColumnType(array.type.element, True),)
