"""SET of UPDATE and of ON CONFLICT DO UPDATE."""

from __future__ import annotations

from collections.abc import Sequence

from ivm.errors import SqlError
from planner.expr.scalar import Column, Scalar, ScalarSubquery
from planner.logical.nodes import Project, schema
from sql.bind.coerce import assign
from sql.bind.environment import Binder
from sql.bind.positions import position
from sql.bind.target import column_default, column_positions
from sql.catalog.catalog import Relation, TableColumn
from sql.syntax.nodes import queries as nodes


def new_values(binder: Binder, table: Relation, assignments: Sequence[nodes.Assignment]) -> dict[int, Scalar]:
    """The new values of the columns that SET names, by position. Raises 42601, 42701, 42703, 42804, 428C9, 0A000."""
    new: dict[int, Scalar] = {}
    for assignment in assignments:
        positions = column_positions(table, assignment.columns)
        for i, (name, at) in zip(positions, assignment.columns, strict=True):
            if i in new:
                raise SqlError("42601", f'multiple assignments to same column "{name}"', position=at + 1)
        new.update(zip(positions, _assigned(binder, table, positions, assignment), strict=True))
    return new


def _assigned(binder: Binder, table: Relation, positions: Sequence[int], assignment: nodes.Assignment) -> list[Scalar]:
    """The values of one assignment, which may be to several columns."""
    columns = [table.columns[i] for i in positions]
    source = assignment.source
    if not assignment.multiple:
        return [_value(binder, columns[0], source)]
    if isinstance(source, nodes.RowExpr):
        if any(isinstance(i, nodes.Star) for i in source.items):
            bound = binder.bind_items(source.items)
            _same_number(len(bound), len(columns), source.at)
            return [assign(binder.env, e, c.type, c.name, source.at) for c, e in zip(columns, bound, strict=True)]
        _same_number(len(source.items), len(columns), source.at)
        return [_value(binder, c, e) for c, e in zip(columns, source.items, strict=True)]
    if not isinstance(source, nodes.Subquery):
        if len(columns) == 1:
            return [_value(binder, columns[0], source)]
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


def _value(binder: Binder, column: TableColumn, node: nodes.Expr) -> Scalar:
    """One column's new value. Raises 428C9, 42804."""
    if isinstance(node, nodes.Default):
        return column_default(binder.env, column)
    if column.generated is not None and column.generated.kind == "always":
        raise SqlError(
            "428C9", f'column "{column.name}" can only be updated to DEFAULT',
            f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.',
        )  # fmt: skip
    return assign(binder.env, binder.bind(node), column.type, column.name, position(node))
