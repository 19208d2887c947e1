"""The columns and tables that FROM makes visible, and how aliases and joins change them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ivm.errors import SqlError
from ivm.words import Schema, SqlType
from planner.expr.scalar import Coalesce, Column, OuterColumn, Scalar, SortKey
from planner.logical.traversal import own_columns
from planner.memo import by_identity
from sql.bind.uses import Use
from sql.catalog.catalog import Relation, RelationKind
from sql.statements.queries import OutputColumn


@dataclass(frozen=True, slots=True)
class Visible:
    """A column with a name. ``expr``: its value over the query's input rows, a Column or the Coalesce of columns that a
    join merged. ``table`` and ``attribute``: as in ``OutputColumn``. ``hidden``: ``*`` leaves it out. ``use``: the
    use of a relation that it is a column of; None where nobody asks. ``output``: the result's column that it is, if it
    has been made beforehand."""

    name: str
    expr: Scalar
    table: int = 0
    attribute: int = 0
    hidden: bool = False
    use: Use | None = field(default=None, compare=False)
    output: OutputColumn | None = field(default=None, compare=False, repr=False)

    def note(self) -> None:
        """Note that the statement reads the column."""
        if self.use is not None:
            self.use.need("r", (self.attribute,))


@dataclass(frozen=True, slots=True)
class Range:
    """A table of FROM under its alias (a range table entry in Postgres).

    ``relation``: the relation of the catalog, if it is one. ``padded``: an outer join may pad its columns with NULLs;
    ``marker``: a column that is NULL in padded rows only. ``oid``: its tableoid, if the statement uses one. ``row``:
    the type of its rows, if that has a name and they are no relation's. ``at``: the offset of the item of FROM; -1
    where the range is none. ``scalar``: its row is the value of its one column, that of a function which returns no
    rows.
    """

    alias: str
    columns: tuple[Visible, ...]
    schema_name: str | None = None
    relation: Relation | None = None
    marker: Column | None = None
    padded: bool = False
    oid: Visible | None = None
    row: SqlType | None = None
    at: int = -1
    scalar: bool = False

    def named(self, name: str) -> Sequence[Visible]:
        """Its columns of this name, as ``Namespace.named``."""
        return _by_name(self.columns).get(name, ())


@dataclass(frozen=True, slots=True)
class Namespace:
    """What unqualified and qualified names mean in a FROM clause.

    ``visible``: the columns of ``*`` in order, merged ones once. ``ranges``: the tables. ``order``: that of the rows,
    if FROM is one subquery or view with ORDER BY; a query without an order of its own keeps it, as Postgres does.
    """

    visible: tuple[Visible, ...] = ()
    ranges: tuple[Range, ...] = ()
    order: tuple[SortKey, ...] = ()

    def named(self, name: str) -> Sequence[Visible]:
        """The visible columns of this name. They are searched once, for all names: a query may name all of many."""
        return _by_name(self.visible).get(name, ())

    def meant(self, expr: Column) -> Visible | None:
        """The first visible column with this value. They are searched once too."""
        return _by_value(self.visible).get(expr)


@by_identity
def _by_name(columns: tuple[Visible, ...]) -> Mapping[str, Sequence[Visible]]:
    """Those of each name."""
    known: dict[str, list[Visible]] = {}
    for column in columns:
        known.setdefault(column.name, []).append(column)
    return known


@by_identity
def _by_value(columns: tuple[Visible, ...]) -> Mapping[Scalar, Visible]:
    """The first with each value."""
    return {column.expr: column for column in reversed(columns)}


HAVE_OIDS: Final = frozenset({RelationKind.TABLE, RelationKind.MATERIALIZED_VIEW})
"""The kinds of relations whose rows have a tableoid."""


def visible_columns(names: Iterable[str], columns: Schema) -> tuple[Visible, ...]:
    """The columns of a plan under these names, one each."""
    return tuple([Visible(name, expr) for name, expr in zip(names, own_columns(columns), strict=True)])


def relation_columns(relation: Relation, columns: Schema, use: Use | None) -> tuple[Visible, ...]:
    """A relation's columns, with which rows of ``columns`` begin."""
    if columns is not relation.schema:
        found = _relation_columns(relation, columns)
    else:
        found = _stored_columns(relation)
    if use is None:
        return found
    return tuple([Visible(v.name, v.expr, v.table, v.attribute, use=use, output=v.output) for v in found])


@by_identity
def _stored_columns(relation: Relation) -> tuple[Visible, ...]:
    """The same, once for all statements."""
    return _relation_columns(relation, relation.schema)


def _relation_columns(relation: Relation, columns: Schema) -> tuple[Visible, ...]:
    own, oid = own_columns(columns), relation.oid
    found = []
    for i, column in enumerate(relation.columns):
        if not column.name:
            continue  # a table's column that was added after the view has no name in it
        expr = own[i] if column.domain is None else replace(own[i], type=column.own_type(own[i].type))
        output = OutputColumn(column.name, expr.type, oid, i + 1)
        found.append(Visible(column.name, expr, oid, i + 1, output=output))
    return tuple(found)


def one_table(alias: str, columns: tuple[Visible, ...]) -> Namespace:
    """The namespace of a single table."""
    return Namespace(columns, (Range(alias, columns),))


def map_columns(expr: Scalar, change: Callable[[Column], Scalar]) -> Scalar:
    """A ``Visible.expr`` over other columns."""
    if isinstance(expr, Column):
        return change(expr)
    assert isinstance(expr, Coalesce), expr
    return Coalesce(tuple(map_columns(a, change) for a in expr.args), expr.type)


def at_level(expr: Scalar, level: int) -> Scalar:
    """A ``Visible.expr`` as seen from ``level`` queries further in."""
    if level == 0:
        return expr
    if isinstance(expr, Column):
        return OuterColumn(level, expr.index, expr.type, expr.nullable)
    return map_columns(expr, lambda c: OuterColumn(level, c.index, c.type, c.nullable))


def rename(namespace: Namespace, alias: str, columns: tuple[str, ...], at: int) -> Namespace:
    """All visible columns as one table ``alias (columns)``. Raises 42P10 where there are too many names."""
    if len(columns) > len(namespace.visible):
        raise SqlError(
            "42P10",
            f'table "{alias}" has {len(namespace.visible)} columns available but {len(columns)} columns specified',
            position=at + 1,
        )
    renamed = namespace.visible
    if columns:
        new = [replace(c, name=name, output=None) for c, name in zip(renamed, columns, strict=False)]
        renamed = (*new, *renamed[len(new) :])
    return Namespace(renamed, (Range(alias, renamed, marker=never_null(renamed), at=at),))


def never_null(columns: tuple[Visible, ...]) -> Column | None:
    """A NOT NULL column, if there is one: it is NULL in padded rows only."""
    return next((c.expr for c in columns if isinstance(c.expr, Column) and not c.expr.nullable), None)


def shift(namespace: Namespace, by: int, nullable: bool) -> Namespace:
    """The namespace of a join's side: columns moved by ``by``; ``nullable``: the join may pad this side."""

    def move(column: Column) -> Column:
        return Column(column.index + by, column.type, column.nullable or nullable)

    return _mapped(namespace, move, nullable) if by or nullable else namespace


def nullable(namespace: Namespace) -> Namespace:
    """The namespace with every column nullable."""
    return _mapped(namespace, lambda column: Column(column.index, column.type), False)


def _mapped(namespace: Namespace, change: Callable[[Column], Column], padded: bool) -> Namespace:
    def visible(c: Visible) -> Visible:
        return Visible(c.name, map_columns(c.expr, change), c.table, c.attribute, use=c.use)

    moved = tuple([visible(c) for c in namespace.visible])
    ranges = tuple(
        Range(
            r.alias,
            moved if r.columns is namespace.visible else tuple([visible(c) for c in r.columns]),
            r.schema_name,
            r.relation,
            None if r.marker is None else change(r.marker),
            r.padded or padded,
            None if r.oid is None else visible(r.oid),
            r.row,
            r.at,
            r.scalar,
        )
        for r in namespace.ranges
    )
    return Namespace(moved, ranges)
