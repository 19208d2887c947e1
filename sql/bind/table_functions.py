"""Calls of table functions (``planner/expr/functions/table_functions.py`` has the functions), in FROM and in select
lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ivm.errors import SqlError
from ivm.words import ColumnType, Kind, Schema, SqlType
from planner.expr.functions.json.sets import DEFINED
from planner.expr.functions.table_functions import TABLE_FUNCTIONS, table_overloads
from planner.expr.scalar import Literal, Scalar
from sql.bind.coerce import cast_arguments
from sql.bind.environment import Binder, Environment
from sql.bind.overloads import no_function, resolve_call
from sql.syntax.nodes import queries as nodes

__all__ = [
    "DEFINED",
    "TableCall",
    "apply",
    "as_row",
    "defined_row",
    "defining",
    "is_table_function",
    "no_definitions",
    "unnest",
]

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


def as_row(key: str, args: Sequence[Scalar]) -> tuple[str, Schema]:
    """A function of several columns as one that returns rows: its key and column. Raises 0A000."""
    packed = TABLE_FUNCTIONS[key].row
    if packed is None:
        raise SqlError("0A000", "a row as a value is not supported")
    return packed, TABLE_FUNCTIONS[packed].columns([a.type for a in args])


def no_definitions(at: int) -> SqlError:
    """For a column definition list where the function's columns are known."""
    message = 'a column definition list is only allowed for functions returning "record"'
    return SqlError("42601", message, position=at + 1)


def defining(b: Binder, node: nodes.Apply, definitions: nodes.Definitions) -> nodes.Apply:
    """json_populate_record(NULL::record, …) and its kin with a column definition list as json_to_record(…)."""
    if not definitions or len(node.args) < 2:
        return node
    name = node.name[-1].replace("_populate_", "_to_")
    if name == node.name[-1] or name not in DEFINED:
        return node
    base = b.bind(node.args[0]).type
    if base.kind is not Kind.RECORD or base.fields:
        return node
    return replace(node, name=(name,), args=node.args[1:2])


def defined_row(env: Environment, name: str, definitions: nodes.Definitions, at: int) -> Scalar:
    """A NULL of the row type that a column definition list says, the first argument of such functions. Raises 42601,
    42701."""
    if name not in DEFINED:
        raise no_definitions(definitions[0][2] if definitions else at)
    if not definitions:
        message = 'a column definition list is required for functions returning "record"'
        raise SqlError("42601", message, position=at + 1)
    fields: dict[str, SqlType] = {}
    for column, type_, place in definitions:
        if column in fields:
            raise SqlError("42701", f'column name "{column}" specified more than once', position=place + 1)
        fields[column] = env.field_type(type_)
    return Literal(None, SqlType(Kind.RECORD, fields=tuple(fields.items())))


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
