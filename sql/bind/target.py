"""The table that a statement changes: its lookup, its columns by name, and their defaults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ivm.errors import SqlError
from planner.expr.scalar import Literal, Scalar
from sql.bind import sequences
from sql.bind.coerce import assign
from sql.bind.environment import Environment
from sql.bind.lookup import lookup_in_schema
from sql.bind.scope import NameScope
from sql.bind.uses import Use
from sql.catalog.catalog import LABELS, Relation, RelationKind, TableColumn
from sql.parse import parse_expression
from sql.statements.statements import ViewLayer
from sql.syntax.nodes import queries as nodes


@dataclass(frozen=True, slots=True)
class Target:
    """What a statement changes. ``relation``: as named, a table or a view; ``table``: whose rows change. ``places``:
    for each column of the relation, its position in the table; None for one that is computed. ``only``: without the
    tables below. ``use``: of the relation, where somebody asks."""

    relation: Relation
    table: Relation
    places: tuple[int | None, ...]
    only: bool
    layers: tuple[ViewLayer, ...] = ()
    use: Use | None = field(default=None, compare=False)
    base: Use | None = field(default=None, compare=False)
    """The use of the table, below the views."""

    def need(self, privilege: str, positions: Iterable[int] = ()) -> None:
        """Note a privilege that the change needs, on these columns of the relation."""
        if self.use is not None:
            self.use.need(privilege, (i + 1 for i in positions))

    def assigned(self, position: int, what: str) -> int:
        """The table's position for one of the relation's. ``what``: "insert into", "update" or "merge into". Raises
        0A000."""
        place = self.places[position]
        if place is None:
            name = self.relation.columns[position].name
            message = f'cannot {what} column "{name}" of view "{self.relation.name}"'
            detail = "View columns that are not columns of their base relation are not updatable."
            raise SqlError("0A000", message, detail)
        return place

    def default(self, env: Environment, place: int) -> Scalar:
        """The DEFAULT of one of the table's columns: that of the outermost view which has one, or else the table's."""
        column, own = self.table.columns[place], self.view_default(place)
        if own is None:
            return column_default(env, column)
        return assign(env, bind_default(env, parse_expression(own)), column.type, column.name, 0)

    def view_default(self, place: int) -> str | None:
        """The DEFAULT that the outermost view which has one gives to one of the table's columns."""
        for view, places in reversed(self.views):
            own = view.columns[places.index(place)].default if place in places else None
            if own is not None:
                return own
        return None

    @property
    def views(self) -> tuple[tuple[Relation, tuple[int | None, ...]], ...]:
        """The views from the table up, each with its columns' positions in the table."""
        return tuple((layer.view, layer.places) for layer in self.layers)


def table_target(table: Relation, use: Use | None, *, only: bool = False) -> Target:
    """A table as a target."""
    return Target(table, table, tuple(range(len(table.columns))), only, use=use, base=use)


def copy_target(env: Environment, name: nodes.TableName) -> Relation:
    """The table of COPY … FROM. Raises 42P01, 3F000, 42501, 42809, 55000."""
    return changed_table(lookup_in_schema(env, name), name)


def truncate_target(env: Environment, name: nodes.TableName) -> Relation:
    """A table of TRUNCATE. Raises 42P01, 3F000, 42501, 42809."""
    relation = lookup_in_schema(env, name)
    use = env.use(relation)
    if use is not None:
        use.need("D")
    if relation.kind not in (RelationKind.TABLE, RelationKind.SYSTEM):
        raise SqlError("42809", f'"{relation.name}" is not a table', position=name.at + 1)
    return changed_table(relation, name)


def changed_table(relation: Relation, name: nodes.TableName) -> Relation:
    """The relation if its rows can be changed. Raises 42501, 42809, 55000."""
    if relation.kind is RelationKind.TABLE:
        return relation
    if relation.kind is RelationKind.SYSTEM:
        message = f'permission denied: "{relation.name}" is a system catalog'
        raise SqlError("42501", message, position=name.at + 1)
    message = f'cannot change {LABELS[relation.kind]} "{relation.name}"'
    raise SqlError("55000" if relation.kind is RelationKind.VIEW else "42809", message)


def column_positions(table: Relation, columns: Sequence[tuple[str, int]]) -> tuple[int, ...]:
    """The positions of named columns; a name comes with its offset. Raises 42703, 42701."""
    places = {c.name: i for i, c in enumerate(table.columns)}
    found: dict[int, None] = {}
    for name, at in columns:
        index = places.get(name)
        if index is None:
            message = f'column "{name}" of relation "{table.name}" does not exist'
            raise SqlError("42703", message, position=at + 1)
        if index in found:
            raise SqlError("42701", f'column "{name}" specified more than once', position=at + 1)
        found[index] = None
    return tuple(found)


def column_default(env: Environment, column: TableColumn) -> Scalar:
    """A column's DEFAULT as the column's type, NULL where it has none."""
    if column.generated is not None:
        return assign(env, sequences.next_value(column.generated), column.type, column.name, 0)
    text = column.own_default
    if text is None:
        return Literal(None, column.type)
    expr = bind_default(env, parse_expression(text))
    return assign(env, expr, column.type, column.name, 0)


def bind_default(env: Environment, node: nodes.Expr) -> Scalar:
    """The expression of a DEFAULT, as its own type."""
    return env.binder(NameScope(clause="DEFAULT expressions"), "DEFAULT expressions").bind(node)
