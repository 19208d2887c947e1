"""Assignment to parts of variables: ``a[i]``, ``a[i:j]``, ``r.f.g``, ``j['key']``, ``r.a[i].f``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ivm.errors import SqlError
from ivm.words import INT4, INT8, TEXT, Kind, SqlType
from planner.expr.functions.array import assigned
from planner.expr.scalar import Literal, Scalar
from sql.bind.column_parts import with_part
from sql.bind.entry_points import ENTRY_POINTS
from sql.bind.environment import Environment, Parameters
from sql.bind.scope import NameScope
from sql.catalog.catalog import TableColumn
from sql.session.routines.plpgsql.frame import Frame, within
from sql.session.routines.plpgsql.scope import Name
from sql.syntax.nodes import queries
from sql.syntax.nodes.constants import Param
from sql.syntax.plpgsql.nodes import Fragment, Place, Target

_TUPLES: Final = (Kind.RECORD, Kind.INTERVAL)
"""Kinds whose datums are tuples, as arrays are."""


def assign_part(frame: Frame, target: Target, value: Fragment) -> None:
    """``target := value``. Raises 2202E, 22004, 42703, 42804."""
    name, parts = _split(frame, target)
    variable, rest = frame.scope.known(name)
    try:
        current, type_ = variable.part(rest)
    except SqlError as error:
        raise within(error, value) from None
    element = type_.element
    indexes = [p.low for p in parts if isinstance(p, Place) and not p.slice and p.low is not None]
    if element is not None and element.kind not in _TUPLES and len(indexes) == len(parts):
        places = [frame.value_as(i, INT8) for i in indexes]
        given = frame.value_as(value, element)
        if any(p is None for p in places):
            raise SqlError("22004", "array subscript in assignment must not be null")
        numbers = [p for p in places if isinstance(p, int)]
        changed: object = assigned(type_, current if isinstance(current, tuple) else (), given, numbers)
    else:
        changed = _evaluated(frame, TableColumn(variable.name, type_), current, parts, value)
    frame.assign(Target(name), changed, type_)


def _split(frame: Frame, target: Target) -> tuple[Name, Sequence[Place | str]]:
    """The name of a variable or its field, and the parts of that."""
    name = target.name
    for length in range(len(name), 1, -1):
        if frame.scope.find(name[:length]) is not None:
            return name[:length], (*name[length:], *target.parts)
    return name, target.parts


def _evaluated(
    frame: Frame, variable: TableColumn, current: object, parts: Sequence[Place | str], value: Fragment
) -> object:
    """The variable's value with a part changed, as UPDATE changes a column's."""
    subscripts: list[object] = []
    types: list[SqlType] = []

    def parameter(fragment: Fragment | None) -> queries.Expr | None:
        if fragment is None:
            return None
        subscript, type_ = frame.value(fragment)
        subscripts.append(subscript)
        types.append(INT4 if subscript is None else TEXT if type_.kind is Kind.UNKNOWN else type_)
        return Param(len(types), 0)

    nodes = tuple(
        queries.FieldPart(part, 0)
        if isinstance(part, str)
        else queries.Part(parameter(part.low), parameter(part.high), part.slice, 0)
        for part in parts
    )
    given, have = frame.value(value)

    def give(wanted: SqlType) -> Scalar:
        return Literal(frame.cast(given, have, wanted), wanted)

    env = Environment(frame.nested.names, Parameters(tuple(types)), ENTRY_POINTS)
    binder = env.binder(NameScope(clause="PL/pgSQL assignment"), "PL/pgSQL assignment")
    try:
        changed = with_part(binder, variable, Literal(current, variable.type), nodes, give)
    except SqlError as error:
        if error.position is not None:
            error.query = value.assignment
        raise
    return frame.nested.values((changed,), subscripts)[0]
