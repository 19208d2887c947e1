"""SET of UPDATE and of ON CONFLICT DO UPDATE."""

from __future__ import annotations

from collections.abc import Sequence

from ivm.errors import SqlError
from planner.expr.scalar import Column, Scalar, ScalarSubquery
from planner.logical.nodes import Project, schema
from sql.bind.coerce import assign
from sql.bind.column_parts import with_parts
from sql.bind.environment import Binder
from sql.bind.positions import position
from sql.bind.target import Target, column_positions
from sql.catalog.catalog import TableColumn
from sql.syntax.nodes import queries as nodes


def new_values(
    binder: Binder, target: Target, assignments: Sequence[nodes.Assignment], what: str = "update"
) -> dict[int, Scalar]:
    """The new values of the columns that SET names, by position in the table. ``what``: as in ``Target.assigned``.
    Raises 42601, 42701, 42703, 42804, 428C9, 0A000."""
    new: dict[int, Scalar] = {}
    for assignment in assignments:
        positions = column_positions(target.relation, assignment.columns)
        target.need("w", positions)
        places = [target.assigned(i, what) for i in positions]
        for i, (_, at) in zip(places, assignment.columns, strict=True):
            if i in new:
                name = target.table.columns[i].name
                raise SqlError("42601", f'multiple assignments to same column "{name}"', position=at + 1)
        new.update(zip(places, _assigned(binder, target, places, assignment), strict=True))
    return new


def _assigned(binder: Binder, target: Target, places: Sequence[int], assignment: nodes.Assignment) -> list[Scalar]:
    """The values of one assignment, which may be to several columns."""
    columns = [target.table.columns[i] for i in places]
    source = assignment.source
    if assignment.multiple and not isinstance(source, nodes.RowExpr):
        for column in columns:
            _check_assigned(column)
    if isinstance(source, nodes.PartValues):
        _check_assigned(columns[0])
        items = [(parts, binder.bind(value), position(value)) for parts, value in source.items]
        return [with_parts(binder, columns[0], Column(places[0], columns[0].type, True), items)]
    if not assignment.multiple:
        return [_value(binder, target, places[0], source)]
    if isinstance(source, nodes.RowExpr):
        if any(isinstance(i, nodes.Star) for i in source.items):
            bound = binder.bind_items(source.items)
            _same_number(len(bound), len(columns), source.at)
            return [assign(binder.env, e, c.type, c.name, source.at) for c, e in zip(columns, bound, strict=True)]
        _same_number(len(source.items), len(columns), source.at)
        return [_value(binder, target, i, e) for i, e in zip(places, source.items, strict=True)]
    if not isinstance(source, nodes.Subquery):
        if len(columns) == 1:
            return [_value(binder, target, places[0], source)]
        raise SqlError(
            "0A000", "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
            position=source.at + 1,
        )  # fmt: skip
    rel = binder.query(source.query).rel
    found = schema(rel)
    _same_number(len(found), len(columns), source.at)
    values = []
    for i, column in enumerate(columns):
        one = Project(rel, (Column(i, found[i].type, found[i].nullable),))
        subquery = ScalarSubquery(one, found[i].type)
        values.append(assign(binder.env, subquery, column.type, column.name, source.at))
    return values


def _same_number(found: int, columns: int, at: int) -> None:
    if found != columns:
        raise SqlError("42601", "number of columns does not match number of values", position=at + 1)


def _value(binder: Binder, target: Target, place: int, node: nodes.Expr) -> Scalar:
    """One column's new value. Raises 428C9, 42804."""
    column = target.table.columns[place]
    if isinstance(node, nodes.Default):
        if target.view_default(place) is not None:
            _check_assigned(column)
        return target.default(binder.env, place)
    _check_assigned(column)
    return assign(binder.env, binder.bind(node), column.type, column.name, position(node))


def _check_assigned(column: TableColumn) -> None:
    """Raises 428C9 for a column that is always generated."""
    detail = None
    if column.expression is not None:
        detail = f'Column "{column.name}" is a generated column.'
    elif column.generated is not None and column.generated.kind == "always":
        detail = f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.'
    if detail is not None:
        raise SqlError("428C9", f'column "{column.name}" can only be updated to DEFAULT', detail)
