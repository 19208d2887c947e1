"""What a new routine declares: the types of its parameters, and the shape of its result (functioncmds.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import UNKNOWN, Kind, SqlType
from planner.expr.functions.row import RECORD
from planner.expr.functions.table import (
    ANY,
    ANYARRAY,
    ANYCOMPATIBLE,
    ANYCOMPATIBLEARRAY,
    ANYCOMPATIBLEMULTIRANGE,
    ANYCOMPATIBLENONARRAY,
    ANYCOMPATIBLERANGE,
    ANYELEMENT,
    ANYENUM,
    ANYMULTIRANGE,
    ANYNONARRAY,
    ANYRANGE,
    ArgumentType,
    Polymorphic,
)
from sql.bind.environment import Environment
from sql.bind.routine_resolution import argument_type_name
from sql.catalog.catalog import TableColumn
from sql.catalog.routine import Argument
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes import routines as nodes_routines

_POLYMORPHIC: Final = {p.value: p for p in Polymorphic if p is not ANY}
_FAMILY: Final = (ANYELEMENT, ANYARRAY, ANYNONARRAY, ANYENUM, ANYRANGE, ANYMULTIRANGE)
_COMPATIBLE: Final = (
    ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, ANYCOMPATIBLENONARRAY, ANYCOMPATIBLERANGE, ANYCOMPATIBLEMULTIRANGE,
)  # fmt: skip


def declared_type(env: Environment, name: nodes.TypeName) -> ArgumentType:
    """The type of a parameter, or what RETURNS says, without modifiers as in Postgres. Raises 42704, 42P01, 42703,
    0A000."""
    if name.column is not None:
        return _column_type(env, name).unmodified
    found = None if name.array or name.schema not in (None, "pg_catalog") else _POLYMORPHIC.get(name.name)
    return env.field_type(name).unmodified if found is None else found


def aggregated_type(env: Environment, name: nodes.TypeName) -> ArgumentType:
    """The type of an aggregate's parameter, which may be "any". Raises 42704, 0A000."""
    if name.name == ANY.value and not name.array and name.schema in (None, "pg_catalog"):
        return ANY
    return declared_type(env, name)


def _column_type(env: Environment, name: nodes.TypeName) -> SqlType:
    """``table.column%TYPE``."""
    relation = env.catalog.resolve(name.schema, name.name)
    if relation is None:
        shown = name.name if name.schema is None else f"{name.schema}.{name.name}"
        raise SqlError("42P01", f'relation "{shown}" does not exist', position=name.at + 1)
    column = next((c for c in relation.columns if c.name == name.column), None)
    if column is None:
        message = f'column "{name.column}" of relation "{relation.name}" does not exist'
        raise SqlError("42703", message, position=name.at + 1)
    type_: SqlType = replace(column.type, domain=column.domain)
    return type_


def check_parameters(declared: Sequence[Argument]) -> None:
    """Raises 42P13 for names that repeat, defaults that are not last, and a VARIADIC that is not."""
    for i, argument in enumerate(declared):
        for before in declared[:i]:
            apart = {_side(argument), _side(before)} == {"in", "out"}
            if argument.name is not None and before.name == argument.name and not apart:
                raise SqlError("42P13", f'parameter name "{argument.name}" used more than once')
    if any(a.default is not None and a.mode in ("out", "table") for a in declared):
        raise SqlError("42P13", "only input parameters can have default values")
    inputs = [a for a in declared if a.mode not in ("out", "table")]
    if any(before.default is not None and after.default is None for before, after in pairwise(inputs)):
        raise SqlError("42P13", "input parameters after one with a default value must also have defaults")
    if any(a.mode == "variadic" for a in inputs[:-1]):
        raise SqlError("42P13", "VARIADIC parameter must be the last input parameter")
    for argument in inputs:
        type_ = argument.type
        if argument.mode == "variadic" and not (
            type_ in (ANY, ANYARRAY, ANYCOMPATIBLEARRAY) or (isinstance(type_, SqlType) and type_.kind is Kind.ARRAY)
        ):
            raise SqlError("42P13", "VARIADIC parameter must be an array")


def _side(argument: Argument) -> str:
    """in, out, or inout for both."""
    return {"variadic": "in", "table": "out"}.get(argument.mode, argument.mode)


@dataclass(frozen=True, slots=True)
class Returned:
    """The result: its type, the columns, whether they are several (or of RETURNS TABLE), and whether only a column
    definition list says them. ``trigger``: RETURNS trigger."""

    result: ArgumentType
    columns: tuple[TableColumn, ...]
    table: bool = False
    record: bool = False
    trigger: bool = False


def returned(env: Environment, node: nodes_routines.CreateFunctionStatement, declared: Sequence[Argument]) -> Returned:
    """The shape of the result. Raises 42P13, 0A000."""
    outputs = [a for a in declared if a.mode in ("out", "inout", "table")]
    if outputs:
        shape = _of_outputs(env, node, outputs)
    elif node.result is None:
        shape = Returned(SqlType(Kind.VOID), (TableColumn(node.name.name, SqlType(Kind.VOID)),))
    else:
        shape = _of_type(env, node, node.result)
    wanted = [shape.result, *(a.type for a in outputs)]
    inputs = [a.type for a in declared if a.mode not in ("out", "table")]
    for type_ in wanted:
        check_determined(type_, inputs)
    return shape


def _of_outputs(
    env: Environment, node: nodes_routines.CreateFunctionStatement, outputs: Sequence[Argument]
) -> Returned:
    one = len(outputs) == 1 and node.kind != "procedure"
    result = outputs[0].type if one else RECORD
    if node.result is not None:
        given = RECORD if node.result.name == "record" else declared_type(env, node.result)
        if given != result:
            shown = argument_type_name(result) if one else "record"
            raise SqlError("42P13", f"function result type must be {shown} because of OUT parameters")
    first = node.name.name if one else "column1"
    columns = tuple(
        TableColumn(a.name or (first if i == 0 else f"column{i + 1}"), _placeholder(a.type))
        for i, a in enumerate(outputs)
    )
    return Returned(result, columns, not one or outputs[0].mode == "table")


def _of_type(env: Environment, node: nodes_routines.CreateFunctionStatement, type_: nodes.TypeName) -> Returned:
    name = node.name.name
    if type_.name == "record" and not type_.array:
        return Returned(RECORD, (), record=True)
    if type_.name == "trigger":
        return _of_trigger(node, type_)
    found = declared_type(env, type_)
    if isinstance(found, SqlType) and found.kind is Kind.RECORD and found.fields:
        return Returned(found, tuple(TableColumn(n, t) for n, t in found.fields), True)
    return Returned(found, (TableColumn(name, _placeholder(found)),))


def _of_trigger(node: nodes_routines.CreateFunctionStatement, type_: nodes.TypeName) -> Returned:
    if node.language != "plpgsql":
        hint = "Write it in LANGUAGE plpgsql."
        raise unsupported(f"a trigger function in LANGUAGE {node.language}", hint, type_.at + 1)
    if node.arguments:
        hint = "The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead."
        raise SqlError("42P13", "trigger functions cannot have declared arguments", hint=hint)
    void = SqlType(Kind.VOID)
    return Returned(void, (TableColumn(node.name.name, void),), trigger=True)


def _placeholder(type_: ArgumentType) -> SqlType:
    """A column's type in the catalog, where a polymorphic one has none."""
    return type_ if isinstance(type_, SqlType) else UNKNOWN


def check_determined(type_: ArgumentType, inputs: Sequence[ArgumentType], what: str = "result") -> None:
    """42P13: no input says what a polymorphic result is. ``what``: result, or transition."""
    if not isinstance(type_, Polymorphic):
        return
    if type_ in (ANYRANGE, ANYMULTIRANGE):
        fits: tuple[Polymorphic, ...] = (ANYRANGE, ANYMULTIRANGE)
        needed = "anyrange or anymultirange"
    elif type_ in (ANYCOMPATIBLERANGE, ANYCOMPATIBLEMULTIRANGE):
        fits = (ANYCOMPATIBLERANGE, ANYCOMPATIBLEMULTIRANGE)
        needed = "anycompatiblerange or anycompatiblemultirange"
    elif type_ in _COMPATIBLE:
        fits = _COMPATIBLE
        needed = (
            "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or anycompatiblemultirange"
        )
    else:
        fits = _FAMILY
        needed = "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange"
    if not any(i in fits for i in inputs):
        detail = f"A result of type {type_.value} requires at least one input of type {needed}."
        raise SqlError("42P13", f"cannot determine {what} data type", detail)
