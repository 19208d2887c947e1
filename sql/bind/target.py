"""The table that a statement changes: its lookup, its columns by name, and their defaults."""

from __future__ import annotations

from collections.abc import Sequence

from ivm.errors import SqlError
from planner.expr.scalar import Literal, Scalar
from sql.bind import sequences
from sql.bind.coerce import assign
from sql.bind.environment import Environment
from sql.bind.lookup import lookup, lookup_in_schema
from sql.bind.scope import NameScope
from sql.catalog.catalog import LABELS, Relation, RelationKind, TableColumn
from sql.parse import parse_expression
from sql.syntax.nodes import queries as nodes


def change_target(env: Environment, name: nodes.TableName) -> Relation:
    """The table of INSERT, UPDATE or DELETE. Raises 42P01, 42501, 42809, 55000."""
    return _table(lookup(env, name), name)


def copy_target(env: Environment, name: nodes.TableName) -> Relation:
    """The table of COPY … FROM. Raises 42P01, 3F000, 42501, 42809, 55000."""
    return _table(lookup_in_schema(env, name), name)


def truncate_target(env: Environment, name: nodes.TableName) -> Relation:
    """A table of TRUNCATE. Raises 42P01, 3F000, 42501, 42809."""
    relation = lookup_in_schema(env, name)
    if relation.kind not in (RelationKind.TABLE, RelationKind.SYSTEM):
        raise SqlError("42809", f'"{relation.name}" is not a table', position=name.at + 1)
    return _table(relation, name)


def _table(relation: Relation, name: nodes.TableName) -> Relation:
    if relation.kind is RelationKind.TABLE:
        return relation
    if relation.kind is RelationKind.SYSTEM:
        message = f'permission denied: "{relation.name}" is a system catalog'
        raise SqlError("42501", message, position=name.at + 1)
    message = f'cannot change {LABELS[relation.kind]} "{relation.name}"'
    raise SqlError("55000" if relation.kind is RelationKind.VIEW else "42809", message)


def column_positions(table: Relation, columns: Sequence[tuple[str, int]]) -> tuple[int, ...]:
    """The positions of named columns; a name comes with its offset. Raises 42703, 42701."""
    names = [c.name for c in table.columns]
    found: list[int] = []
    for name, at in columns:
        if name not in names:
            message = f'column "{name}" of relation "{table.name}" does not exist'
            raise SqlError("42703", message, position=at + 1)
        index = names.index(name)
        if index in found:
            raise SqlError("42701", f'column "{name}" specified more than once', position=at + 1)
        found.append(index)
    return tuple(found)


def column_default(env: Environment, column: TableColumn) -> Scalar:
    """A column's DEFAULT as the column's type, NULL where it has none."""
    if column.generated is not None:
        return assign(env, sequences.next_value(column.generated.sequence), column.type, column.name, 0)
    if column.default is None:
        return Literal(None, column.type)
    expr = bind_default(env, parse_expression(column.default))
    return assign(env, expr, column.type, column.name, 0)


def bind_default(env: Environment, node: nodes.Expr) -> Scalar:
    """The expression of a DEFAULT, as its own type."""
    return env.binder(NameScope(clause="DEFAULT expressions"), "DEFAULT expressions").bind(node)
