"""Set-returning functions, in FROM and in select lists; ``planner/table_functions.py`` has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ivm.errors import SqlError, unsupported
from ivm.words import INT4, INT8, INTERVAL, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ, ColumnType, Kind, Schema, SqlType
from planner.functions import ANYARRAY, ArgumentType, function_key
from planner.scalar import Column, Scalar
from sql.bind.coerce import cast
from sql.bind.environment import Environment
from sql.bind.overloads import no_function, resolve
from sql.bind.scope import FUNCTION_BASE, SetReturning
from sql.syntax import nodes

if TYPE_CHECKING:
    from sql.bind.expression import Binder


@dataclass(frozen=True, slots=True)
class TableOverload:
    """A table function as resolution sees it; ``result`` None: the element of its array argument."""

    key: str
    name: str
    args: tuple[ArgumentType, ...]
    result: SqlType | None
    nullable: bool


def _series(*args: SqlType) -> TableOverload:
    return TableOverload(function_key("generate_series", args), "generate_series", args, args[0], False)


_OVERLOADS: dict[str, tuple[TableOverload, ...]] = {
    "generate_series": (
        *(_series(*((t,) * n)) for t in (INT4, INT8, NUMERIC) for n in (2, 3)),
        *(_series(t, t, INTERVAL) for t in (TIMESTAMP, TIMESTAMPTZ)),
    ),
    "unnest": (TableOverload("unnest", "unnest", (ANYARRAY,), None, True),),
    "generate_subscripts": (
        TableOverload("generate_subscripts(anyarray,int4)", "generate_subscripts", (ANYARRAY, INT4), INT4, False),
    ),
    "regexp_split_to_table": (
        TableOverload("regexp_split_to_table(text,text)", "regexp_split_to_table", (TEXT, TEXT), TEXT, False),
    ),
}


@lru_cache(maxsize=64)
def _available(name: str) -> tuple[TableOverload, ...]:
    from planner.table_functions import TABLE_FUNCTIONS

    return tuple(o for o in _OVERLOADS.get(name, ()) if o.key in TABLE_FUNCTIONS)


def is_table_function(name: str) -> bool:
    """Whether a name is a set-returning function's."""
    return name in _OVERLOADS


Call = tuple[str, tuple[Scalar, ...], Schema]
"""(function key, arguments, result columns): what TableFunction takes."""


def apply(env: Environment, name: str, args: list[Scalar], at: int) -> Call:
    """A table function applied. Raises 42883."""
    if name == "unnest" and len(args) > 1:
        return _unnest_many(env, args, at)
    types = tuple(a.type for a in args)
    try:
        choice = resolve(_available(name), types)
    except SqlError:
        raise no_function(name, types, at, ambiguous=True) from None
    if choice is None:
        raise no_function(name, types, at)
    bound = tuple(cast(env, a, t, "implicit", at) for a, t in zip(args, choice.args, strict=True))
    result = choice.overload.result or bound[0].type.element
    assert result is not None
    return choice.overload.key, bound, (ColumnType(result, choice.overload.nullable),)


def _unnest_many(env: Environment, args: list[Scalar], at: int) -> Call:
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


def in_expression(b: Binder, node: nodes.Apply, name: str) -> Scalar:
    """A set-returning function in a select list: noted in the scope, and a placeholder for its value."""
    functions = b.scope.functions
    if functions is None:
        raise SqlError(
            "0A000", f"set-returning functions are not allowed in {b.clause}", position=node.at + 1
        )
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
