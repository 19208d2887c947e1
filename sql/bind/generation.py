"""Generated columns: GENERATED ALWAYS AS (expression) STORED."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ivm.errors import SqlError
from planner.expr.parts import walk
from planner.expr.scalar import Call, Column, Scalar
from planner.logical.traversal import columns_of, has_subquery
from planner.memo import by_identity
from sql.bind.coerce import assign
from sql.bind.entry_points import empty_environment
from sql.bind.expression import ExpressionBinder
from sql.bind.namespace import Visible, one_table
from sql.bind.renamed import renamed_text
from sql.bind.scope import NameScope
from sql.catalog.catalog import Relation, TableColumn
from sql.parse import parse_expression
from sql.settings.maintainable import is_immutable
from sql.syntax.nodes import queries as nodes

_WHERE = "column generation expressions"


def generation(table: str, columns: Sequence[TableColumn], column: TableColumn, node: nodes.Expr) -> Scalar:
    """A generation expression over a table's columns, as the column's type. Raises 42P17, 0A000, 42804, and the errors
    of binding."""
    visible = tuple(Visible(c.name, Column(i, c.type, c.nullable)) for i, c in enumerate(columns))
    env = empty_environment()
    expr = ExpressionBinder(env, NameScope(one_table(table, visible), clause=_WHERE), _WHERE).bind(node)
    if has_subquery(expr):
        raise SqlError("0A000", "cannot use subquery in column generation expression", position=node.at + 1)
    other = next((columns[i] for i in sorted(columns_of(expr)) if columns[i].expression is not None), None)
    if other is not None:
        message = f'cannot use generated column "{other.name}" in column generation expression'
        raise SqlError("42P17", message, "A generated column cannot reference another generated column.")
    for part in walk(expr):
        if isinstance(part, Call) and not is_immutable(part):
            raise SqlError("42P17", "generation expression is not immutable")
    return assign(env, expr, column.type, column.name, node.at)


def check_generated(table: str, columns: Sequence[TableColumn], nodes_: dict[str, nodes.Expr]) -> None:
    """Check a new table's generation expressions, by column. Raises what ``generation`` raises."""
    for column in columns:
        if column.name in nodes_:
            generation(table, columns, column, nodes_[column.name])


@by_identity
def generated_columns(table: Relation) -> tuple[tuple[int, Scalar], ...]:
    """A table's generated columns: each one's position and expression over the table's columns."""
    return tuple(
        (i, generation(table.name, table.columns, c, parse_expression(c.expression)))
        for i, c in enumerate(table.columns)
        if c.expression is not None
    )


def generated_from(table: Relation, name: str) -> list[str]:
    """The generated columns that use a column."""
    place = [c.name for c in table.columns].index(name)
    return [table.columns[i].name for i, expr in generated_columns(table) if place in columns_of(expr)]


def renamed_generation(before: Relation, column: TableColumn, old: str, new: str) -> TableColumn:
    """A column whose expression uses a renamed table or column by its new name."""
    if column.expression is None:
        return column
    return replace(column, expression=renamed_text(column.expression, old, new, table=before.name == old))
