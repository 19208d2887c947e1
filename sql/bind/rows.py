"""Row values: ``ROW(…)``, a table's whole row, and fields of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ivm.errors import SqlError
from ivm.words import BOOL, INT8, OID, Kind, SqlType
from planner.expr.functions.library import CAST
from planner.expr.scalar import Call, Case, Column, Literal, Parameter, Scalar
from sql.bind.coerce import resolve_unknown, same_family, type_name
from sql.bind.environment import Binder, Environment
from sql.bind.namespace import Range, Visible, at_level
from sql.bind.row_fields import fields_of
from sql.bind.scope import NameScope, find_column, find_range, note_columns
from sql.catalog.catalog import ROWED, Relation, RelationKind
from sql.catalog.composite import without_domain
from sql.syntax.nodes import queries as nodes
from storage.types.arrays import Row


class MarkerNeeded(Exception):
    """A whole row of a table that an outer join may pad, none of whose columns is NOT NULL: the statement has to be
    bound again with an extra column that tells padded rows from rows of NULLs (``Environment.marked``)."""

    def __init__(self, alias: str) -> None:
        super().__init__(alias)
        self.alias = alias


def make_row(values: Sequence[Scalar], names: Sequence[str]) -> Scalar:
    """A row of these values, which is not NULL itself."""
    fields = tuple((name, without_domain(value.type.plain)) for name, value in zip(names, values, strict=True))
    type_ = SqlType(Kind.RECORD, fields=fields)
    return Call("row", tuple(values), type_, False) if values else Literal(Row(), type_)


def row(b: Binder, node: nodes.RowExpr) -> Scalar:
    """ROW(a, b, …), in which ``t.*`` stands for the columns of t."""
    values = b.bind_items(node.items)
    names = [f"f{i}" for i in range(1, len(values) + 1)]
    if any(isinstance(value, Parameter) for value in values):
        return make_row(values, names)  # what the row is cast to says the parameters' types
    # a NULL has no type yet: it takes that of the same field of other rows in a VALUES list or CASE
    typed = [v if isinstance(v, Literal) and v.value is None else resolve_unknown(b.env, v, node.at) for v in values]
    made = make_row(typed, names)
    b.env.rows[id(made)] = made, tuple(values)
    return made


def whole_row(env: Environment, scope: NameScope, qualifier: tuple[str, ...], at: int) -> Scalar | None:
    """The row of a table in FROM, of this level or an enclosing one; None where no table has the name."""
    level, here = 0, scope
    while (range_ := find_range(here.namespace, qualifier, at)) is None:
        if here.parent is None:
            return None
        here, level = here.parent, level + 1
    here.used = here.used or level > 0
    return _row_of(env, range_, lambda expr: _seen(here, expr, at, level))


def _seen(scope: NameScope, expr: Scalar, at: int, level: int) -> Scalar:
    note_columns(scope, expr, at, level > 0)
    return at_level(expr, level)


def argument(env: Environment, scope: NameScope, parts: tuple[str, ...], at: int) -> Scalar | None:
    """A row that is an argument or variable of the function whose body is being bound; None if it is none."""
    variable = env.parameters.variable(parts)
    if variable is not None:
        return variable if variable.type.fields else None
    outermost = scope
    while outermost.parent is not None:
        outermost = outermost.parent
    if outermost.clause != "FUNCTION":
        return None
    try:
        found = find_column(scope, parts, at)
    except SqlError:
        return None
    return found if found.type.fields else None


def _row_of(env: Environment, range_: Range, seen: Callable[[Scalar], Scalar]) -> Scalar:
    """A table's row, NULL where an outer join pads it. Raises MarkerNeeded."""
    columns, named = [c for c in range_.columns if not c.hidden], range_.row
    if range_.relation is not None:
        relation = env.catalog.by_id(range_.relation.id) or range_.relation
        columns, named = _all_columns(range_, relation), relation.own_type if relation.kind in ROWED else None
    for column in columns:
        column.note()
    values = [seen(c.expr) for c in columns]
    if range_.scalar:
        return values[0]
    if named is not None and len(values) == len(named.fields) > 0:
        made: Scalar = Call("row", tuple(values), named, False)
    else:
        made = make_row(values, [c.name for c in columns])
    return _unless_padded(made, range_, seen) if range_.padded else made


def _all_columns(range_: Range, relation: Relation) -> list[Visible]:
    """A relation's columns, also those that it got after the view which is bound was created and that have no name
    there: they are a part of its row."""
    named = [c for c in range_.columns if not c.hidden]
    known = {c.attribute: c for c in named}
    first = next(iter(named), None)
    if not len(known) == len(named) < len(relation.columns) or first is None or not isinstance(first.expr, Column):
        return named
    before = first.expr.index - first.attribute
    added = {
        i: Visible(c.name, Column(before + i, c.type if c.domain is None else c.own_type(c.type)), relation.oid, i)
        for i, c in enumerate(relation.columns, 1) if i not in known
    }  # fmt: skip
    return [column for _, column in sorted({**known, **added}.items())]


def field(b: Binder, node: nodes.Field) -> Scalar:
    """``(row).name``. Raises 42703 and 42809 as Postgres does."""
    if isinstance(node.expr, nodes.Name) and len(node.expr.parts) == 1:
        for range_ in b.scope.namespace.ranges:
            column = [c for c in range_.columns if c.name == node.name]
            if range_.alias == node.expr.parts[0] and len(column) == 1:
                return b.bind(nodes.Name((range_.alias, node.name), node.at))
    return field_of(b.typed(node.expr), node)


def field_of(value: Scalar, node: nodes.Field) -> Scalar:
    """The field of a row. Raises 42703 and 42809 as Postgres does."""
    if value.type.kind is not Kind.RECORD:
        message = f"column notation .{node.name} applied to type {type_name(value.type)}, which is not a composite type"
        raise SqlError("42809", message, position=node.at + 1)
    for (name, _), field_ in zip(value.type.fields, fields_of(value), strict=True):
        if name == node.name:
            return field_
    if value.type.named is not None:
        message = f'column "{node.name}" not found in data type {type_name(value.type)}'
        raise SqlError("42703", message, position=node.at + 1)
    raise SqlError("42703", f'could not identify column "{node.name}" in record data type', position=node.at + 1)


def all_fields(value: Scalar, at: int) -> tuple[tuple[str, Scalar], ...]:
    """``(row).*``: the names and values of all fields. Raises 42809."""
    if value.type.kind is not Kind.RECORD or not value.type.fields:
        raise SqlError("42809", f"type {type_name(value.type)} is not composite", position=at + 1)
    return tuple((name, field_of(value, nodes.Field(nodes.Null(at), name, at))) for name, _ in value.type.fields)


def table_oid(scope: NameScope, qualifier: tuple[str, ...], at: int) -> Scalar | None:
    """``tableoid`` of a relation without a stored one; None where there is none. Raises 42702, MarkerNeeded."""
    return _system_column(scope, qualifier, at, "tableoid", lambda relation: Literal(relation.oid, OID))


_LARGEST: Final = (1 << 32) - 1


def catalog_xmin(scope: NameScope, qualifier: tuple[str, ...], at: int) -> Scalar | None:
    """``xmin`` of a relation of pg_catalog; None for other relations. Raises 42702, MarkerNeeded.

    Clients compare it to find out what has changed since they looked. As rows of catalogs do not say when they came,
    it is the present epoch, later than all of them."""
    epoch = Call("txid_current()", (), INT8, False)
    number = Call(CAST, (Call("&(int8,int8)", (epoch, Literal(_LARGEST, INT8)), INT8, False),), OID, False)
    return _system_column(scope, qualifier, at, "xmin", lambda r: number if r.kind is RelationKind.SYSTEM else None)


def _system_column(
    scope: NameScope, qualifier: tuple[str, ...], at: int, name: str, value: Callable[[Relation], Scalar | None]
) -> Scalar | None:
    here: NameScope | None = scope
    level = 0
    while here is not None:
        ranges = [r for r in here.namespace.ranges if r.relation is not None]
        if qualifier:
            ranges = [r for r in ranges if r.alias == qualifier[-1]]
        if len(ranges) > 1:
            raise SqlError("42702", f'column reference "{name}" is ambiguous', position=at + 1)
        if ranges:
            break
        here, level = here.parent, level + 1
    else:
        return None
    here.used = here.used or level > 0
    return _oid_of(ranges[0], value, lambda expr: _seen(here, expr, at, level))


def _oid_of(
    range_: Range, value: Callable[[Relation], Scalar | None], seen: Callable[[Scalar], Scalar]
) -> Scalar | None:
    """A number of the table, NULL where an outer join pads it. Raises MarkerNeeded."""
    relation = range_.relation
    assert relation is not None
    number = None if relation.kind is RelationKind.VIEW else value(relation)
    if number is None:
        return None
    return _unless_padded(number, range_, seen) if range_.padded else number


def _unless_padded(made: Scalar, range_: Range, seen: Callable[[Scalar], Scalar]) -> Scalar:
    if range_.marker is None:
        raise MarkerNeeded(range_.alias)
    absent = Call("is null", (seen(range_.marker),), BOOL, False)
    return Case(((absent, Literal(None, made.type)),), made, made.type, True)


def null_test(value: Scalar, negated: bool) -> Scalar:
    """IS [NOT] NULL of a row value."""
    return Call("row is not null" if negated else "row is null", (value,), BOOL, False)


def check_comparable(left: SqlType, right: SqlType, at: int) -> None:
    """Raises 42804 where two row types differ in the number or the types of their fields."""
    if not (left.kind is right.kind is Kind.RECORD) or same_family(left, right):
        return
    if len(left.fields) != len(right.fields):
        message = "cannot compare record types with different numbers of columns"
        raise SqlError("42804", message, position=at + 1)
    for i, ((_, a), (_, b)) in enumerate(zip(left.fields, right.fields, strict=True)):
        if not same_family(a, b):
            types = f"{type_name(a)} and {type_name(b)}"
            message = f"cannot compare dissimilar column types {types} at record column {i + 1}"
            raise SqlError("42804", message, position=at + 1)
