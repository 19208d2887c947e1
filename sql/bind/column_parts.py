"""Assignment to parts of a column: ``a.b``, ``a[1]``, ``a.b[1].c``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, INT4, JSONB, Kind, SqlType
from planner.expr.functions.array import OWN
from planner.expr.functions.library import overloads
from planner.expr.scalar import Call, Literal, Scalar
from sql.bind.arrays import jsonb_key
from sql.bind.coerce import assign, cast, castable, type_name
from sql.bind.domains import domain_value
from sql.bind.environment import Binder
from sql.bind.row_fields import fields_of
from sql.catalog.catalog import TableColumn
from sql.syntax.nodes import queries as nodes

Give = Callable[[SqlType], Scalar]
"""The assigned value as the type of its place."""


def with_parts(
    b: Binder, column: TableColumn, base: Scalar, items: Sequence[tuple[nodes.Parts, Scalar, int]]
) -> Scalar:
    """The column's value ``base`` with new values, each with its offset, of some of its parts. Raises 42804, 42703,
    0A000."""
    for parts, value, at in items:
        if not parts:
            base = assign(b.env, value, column.type, column.name, at)
            continue
        base = with_part(b, column, base, parts, _given(b, column, parts, value, at))
    return base


def _given(b: Binder, column: TableColumn, parts: nodes.Parts, value: Scalar, at: int) -> Give:
    def give(type_: SqlType) -> Scalar:
        if value.type.kind is not Kind.UNKNOWN and not castable(value.type, type_, "assignment"):
            raise _unfit(column, parts[-1], type_, value.type, at)
        return cast(b.env, value, type_, "assignment", at)

    return give


def _unfit(
    column: TableColumn, part: nodes.Part | nodes.FieldPart, wanted: SqlType, found: SqlType, at: int
) -> SqlError:
    if isinstance(part, nodes.FieldPart):
        message = f'subfield "{part.name}" is of type {type_name(wanted)} but expression is of type {type_name(found)}'
    else:
        message = (
            f'subscripted assignment to "{column.name}" requires type {type_name(wanted)} '
            f"but expression is of type {type_name(found)}"
        )
    hint = "You will need to rewrite or cast the expression."
    return SqlError("42804", message, hint=hint, position=at + 1)


def with_part(b: Binder, column: TableColumn, base: Scalar, parts: nodes.Parts, give: Give) -> Scalar:
    """``base`` with what ``give`` gives in one of its parts. Raises 42804, 42703, 0A000."""
    if not parts:
        return give(base.type)
    if isinstance(parts[0], nodes.FieldPart):
        return _with_field(b, column, base, parts[0], parts[1:], give)
    count = next((i for i, p in enumerate(parts) if isinstance(p, nodes.FieldPart)), len(parts))
    places = [p for p in parts[:count] if isinstance(p, nodes.Part)]
    return _with_element(b, column, base, places, parts[count:], give)


def _with_field(
    b: Binder, column: TableColumn, base: Scalar, part: nodes.FieldPart, rest: nodes.Parts, give: Give
) -> Scalar:
    what = f'cannot assign to field "{part.name}" of column "{column.name}" because'
    if base.type.kind is not Kind.RECORD:
        message = f"{what} its type {type_name(base.type)} is not a composite type"
        raise SqlError("42804", message, position=part.at + 1)
    place = next((i for i, (name, _) in enumerate(base.type.fields) if name == part.name), None)
    if place is None:
        message = f"{what} there is no such column in data type {type_name(base.type)}"
        raise SqlError("42703", message, position=part.at + 1)
    values = list(fields_of(base))
    given = with_part(b, column, values[place], rest, give)
    field = base.type.fields[place][1]
    values[place] = given if field.domain is None else domain_value(b.env, field, given)
    return Call("row", tuple(values), base.type, False)


def _with_element(
    b: Binder, column: TableColumn, base: Scalar, places: Sequence[nodes.Part], rest: nodes.Parts, give: Give
) -> Scalar:
    if base.type.kind is Kind.JSONB:
        return _with_keys(b, base, places, give)
    element = base.type.element
    if element is None:
        message = f"cannot subscript type {type_name(base.type)} because it does not support subscripting"
        raise SqlError("42804", message, position=places[0].at + 1)
    sliced = any(p.slice for p in places)
    if sliced and rest:
        raise unsupported("assignment to a field of a slice", position=rest[0].at + 1)
    if sliced:
        (function, *_) = overloads("array_assign_slice")
        value = give(base.type)
        where = [bound for part in places for bound in _bounds(b, part)]
        return Call(function.key, (base, value, *where), base.type, True)
    where = [_index(b, p.low) for p in places]
    (function, *_) = overloads("array_assign")
    (subscript, *_) = overloads("array_subscript")
    value = with_part(b, column, Call(subscript.key, (base, *where), element, True), rest, give)
    return Call(function.key, (base, value, *where), base.type, True)


def _with_keys(b: Binder, base: Scalar, places: Sequence[nodes.Part], give: Give) -> Scalar:
    """A jsonb with a new value at these subscripts."""
    (function, *_) = overloads("jsonb_assign")
    keys = [jsonb_key(b, p.low, p.high, p.slice, p.at) for p in places]
    in_array = Literal(keys[0][1], BOOL)
    return Call(function.key, (base, give(JSONB), in_array, *(key for key, _ in keys)), JSONB, False)


def _bounds(b: Binder, part: nodes.Part) -> list[Scalar]:
    """The bounds of a slice in one dimension; ``OWN`` stand for the array's own. ``[i]`` beside slices is
    ``[1:i]``."""
    if not part.slice:
        return [Literal(1, INT4), _index(b, part.low)]
    bounds = zip((part.low, part.high), OWN, strict=True)
    return [Literal(own, INT4) if bound is None else _index(b, bound) for bound, own in bounds]


def _index(b: Binder, node: nodes.Expr | None) -> Scalar:
    assert node is not None, "an element has a subscript"
    return cast(b.env, b.bind(node), INT4, "assignment", node.at)
