"""What names mean in a query: the columns and tables of FROM, and the enclosing queries around them."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ivm.errors import SqlError
from ivm.words import Schema
from planner.expr.scalar import Aggregate, Coalesce, Column, OuterColumn, Scalar, SortKey
from planner.logical.nodes import Numbering
from sql.catalog.catalog import Relation, RelationKind
from sql.syntax.nodes import Star

if TYPE_CHECKING:
    from planner.logical.nodes import Rel
    from sql.bind.routines import Entry

AGGREGATE_BASE: Final = 1 << 30
FUNCTION_BASE: Final = 1 << 29
WINDOW_BASE: Final = 1 << 28
"""Columns from these numbers on stand for aggregates, set-returning functions and window functions until the query is
put together."""
HAVE_OIDS: Final = frozenset({RelationKind.TABLE, RelationKind.MATERIALIZED_VIEW})
"""What has a tableoid."""


@dataclass(frozen=True, slots=True)
class Visible:
    """A named column: ``expr`` computes it from the query's input rows. ``table`` and ``attribute`` as OutputColumn."""

    name: str
    expr: Scalar
    table: int = 0
    attribute: int = 0


@dataclass(frozen=True, slots=True)
class Range:
    """A table in FROM under its alias. ``relation``: the stored relation that it is, if it is one.

    ``padded``: an outer join may put NULLs in place of its rows; ``marker``: a column that is NULL only there.
    ``oid``: its tableoid, where the statement names one.
    """

    alias: str
    columns: tuple[Visible, ...]
    schema_name: str | None = None
    relation: Relation | None = None
    marker: Column | None = None
    padded: bool = False
    oid: Visible | None = None


@dataclass(frozen=True, slots=True)
class Namespace:
    """``visible``: the columns of ``*``, in order (merged ones once); ``ranges``: what qualified names may name."""

    visible: tuple[Visible, ...] = ()
    ranges: tuple[Range, ...] = ()


@dataclass(slots=True)
class Scope:
    """The names of one query level. ``parent`` is the level that ``OuterColumn`` level 1 refers to from here.

    ``used`` and ``passed`` tell whether a name was found here, or beyond, from a level below. ``aggregates``: those
    found so far, None where the present ``clause`` allows none; ``grouped``: whether there is a GROUP BY.
    ``hidden``: the tables that stand beside but may not be named from here; only errors speak of them.
    ``target``: the table that UPDATE or DELETE changes, which what stands beside it in FROM may not name.
    ``functions``: the set-returning functions of the select list; ``windows``: its window functions, None where none
    is allowed. ``seen``: where each column was first named, and
    whether from a subquery.
    """

    namespace: Namespace = field(default_factory=Namespace)
    parent: Scope | None = None
    used: bool = False
    passed: bool = False
    clause: str = ""
    grouped: bool = False
    aggregates: list[Aggregate] | None = None
    functions: list[SetReturning] | None = None
    windows: list[WindowCall] | None = None
    hidden: Namespace = field(default_factory=Namespace)
    target: Range | None = None
    seen: dict[int, tuple[int, bool]] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """How many levels there are from here to the statement's own."""
        return 1 if self.parent is None else 1 + self.parent.depth

    def note_aggregate(self, aggregate: Aggregate) -> int:
        """Its number; equal aggregates have one."""
        assert self.aggregates is not None
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        return self.aggregates.index(aggregate)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """``value`` of the row that stands ``offset`` rows before (behind, where negative), ``default`` where none does; of
    the partition's first row where ``offset`` is None."""

    value: Scalar
    offset: int | None
    default: Scalar


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function over (partition, order); its result is Column(WINDOW_BASE + its number).

    An aggregate has no order: it is of the whole partition.
    """

    function: Numbering | Aggregate | Neighbour
    partition: tuple[Scalar, ...]
    order: tuple[SortKey, ...]


@dataclass(frozen=True, slots=True)
class SetReturning:
    """A set-returning function of a select list; its result is Column(FUNCTION_BASE + its number)."""

    function: str
    args: tuple[Scalar, ...]
    columns: Schema
    at: int
    routine: tuple[Entry, Rel] | None = None
    """A user's function and its body, whose arguments are one level out."""


@dataclass(frozen=True, slots=True)
class Found:
    """A resolved column, as an expression at the level that asked."""

    expr: Scalar
    visible: Visible


def find_column(scope: Scope, parts: tuple[str, ...], at: int) -> Found:
    """The column that a name means. Raises 42702, 42703, 42P01."""
    level, here = 0, scope
    while True:
        found = _in_namespace(here.namespace, parts, at)
        if found is not None:
            _check_target(here, found, at)
            here.used = here.used or level > 0
            note_columns(here, found.expr, at, level > 0)
            return Found(at_level(found.expr, level), found)
        if here.parent is None:
            raise missing(scope, parts, at)
        here.passed = True
        here, level = here.parent, level + 1


def _check_target(scope: Scope, visible: Visible, at: int) -> None:
    if scope.target is not None and any(visible is column for column in scope.target.columns):
        alias = scope.target.alias
        raise SqlError(
            "42P10", f'invalid reference to FROM-clause entry for table "{alias}"',
            hint=f'There is an entry for table "{alias}", but it cannot be referenced from this part of the query.',
            position=at + 1,
        )  # fmt: skip


def note_columns(scope: Scope, expr: Scalar, at: int, below: bool) -> None:
    """Remembers where the columns of a name were first named."""

    def note(column: Column) -> Scalar:
        scope.seen.setdefault(column.index, (at, below))
        return column

    map_columns(expr, note)


def at_level(expr: Scalar, level: int) -> Scalar:
    """A name's expression as seen from ``level`` queries further in."""
    if level == 0:
        return expr
    if isinstance(expr, Column):
        return OuterColumn(level, expr.index, expr.type, expr.nullable)
    return map_columns(expr, lambda c: OuterColumn(level, c.index, c.type, c.nullable))


def map_columns(expr: Scalar, change: Callable[[Column], Scalar]) -> Scalar:
    """A name's expression (a column or a merge of columns) over other columns."""
    if isinstance(expr, Column):
        return change(expr)
    assert isinstance(expr, Coalesce), expr
    return Coalesce(tuple(map_columns(a, change) for a in expr.args), expr.type)


def _in_namespace(namespace: Namespace, parts: tuple[str, ...], at: int) -> Visible | None:
    name = parts[-1]
    if len(parts) == 1:
        found = _one([c for c in namespace.visible if c.name == name], name, at)
        return found or _one(_oids(namespace.ranges, name), name, at)
    range_ = find_range(namespace, parts[:-1], at)
    if range_ is None:
        return None
    found = _one([*(c for c in range_.columns if c.name == name), *_oids((range_,), name)], name, at)
    if found is None:
        shown = ".".join(parts[-2:])
        raise SqlError("42703", f"column {shown} does not exist", hint=_hint(namespace, name), position=at + 1)
    return found


class OidNeeded(Exception):
    """The statement names a tableoid: it is bound again with such columns (``Environment.oids``)."""


def _oids(ranges: tuple[Range, ...], name: str) -> list[Visible]:
    """The tableoids of these tables, where that is the column asked for."""
    if name != "tableoid":
        return []
    stored = [r for r in ranges if r.relation is not None and r.relation.kind in HAVE_OIDS]
    if any(r.oid is None for r in stored):
        raise OidNeeded
    return [r.oid for r in stored if r.oid is not None]


def _one(found: list[Visible], name: str, at: int) -> Visible | None:
    if len(found) > 1:
        raise SqlError("42702", f'column reference "{name}" is ambiguous', position=at + 1)
    return found[0] if found else None


def find_range(namespace: Namespace, qualifier: tuple[str, ...], at: int) -> Range | None:
    """The table of FROM that a qualifier names, None if there is none here. Raises 42P09."""
    alias = qualifier[-1]
    schema_name = qualifier[-2] if len(qualifier) > 1 else None
    found = [r for r in namespace.ranges if r.alias == alias and (schema_name is None or r.schema_name == schema_name)]
    if len(found) > 1:
        raise SqlError("42P09", f'table reference "{alias}" is ambiguous', position=at + 1)
    return found[0] if found else None


def find_range_columns(scope: Scope, star: Star) -> tuple[Visible, ...]:
    """The columns of ``t.*``, of this query or one around it, as seen from here. Raises 42P01."""
    level, here = 0, scope
    while (range_ := find_range(here.namespace, star.qualifier, star.at)) is None:
        if here.parent is None:
            raise missing_table(scope, star.qualifier, star.at)
        here.passed = True
        here, level = here.parent, level + 1
    for visible in range_.columns:
        _check_target(here, visible, star.at)
    here.used = here.used or level > 0
    for visible in range_.columns:
        note_columns(here, visible.expr, star.at, level > 0)
    return tuple(replace(v, expr=at_level(v.expr, level)) for v in range_.columns)


def missing(scope: Scope, parts: tuple[str, ...], at: int) -> SqlError:
    """The error for a name that no level knows."""
    if len(parts) > 1:
        return missing_table(scope, parts[:-1], at)
    hint = _hint(scope.namespace, parts[0])
    return SqlError("42703", f'column "{parts[0]}" does not exist', hint=hint, position=at + 1)


def missing_table(scope: Scope, qualifier: tuple[str, ...], at: int) -> SqlError:
    """42P01 for a qualifier, with a hint where the table stands in FROM under another name."""
    alias = qualifier[-1]
    here: Scope | None = scope
    while here is not None:
        for range_ in here.namespace.ranges:
            if range_.relation is not None and range_.relation.name == alias and range_.alias != alias:
                return SqlError(
                    "42P01", f'invalid reference to FROM-clause entry for table "{alias}"',
                    hint=f'Perhaps you meant to reference the table alias "{range_.alias}".', position=at + 1,
                )  # fmt: skip
        if any(r.alias == alias for r in here.hidden.ranges):
            return SqlError(
                "42P01", f'invalid reference to FROM-clause entry for table "{alias}"',
                hint=f'There is an entry for table "{alias}", but it cannot be referenced from this part of the query.',
                position=at + 1,
            )  # fmt: skip
        here = here.parent
    return SqlError("42P01", f'missing FROM-clause entry for table "{alias}"', position=at + 1)


def _hint(namespace: Namespace, name: str) -> str | None:
    """The nearest column names, as Postgres's hint."""
    known = [(c.name, r.alias) for r in namespace.ranges for c in r.columns]
    close = difflib.get_close_matches(name, {c for c, _ in known}, n=1, cutoff=0.6)
    if not close:
        return None
    shown = [f'"{alias}.{column}"' for column, alias in known if column == close[0]][:2]
    return f"Perhaps you meant to reference the column {' or the column '.join(shown)}."


def rename(namespace: Namespace, alias: str, columns: tuple[str, ...], at: int) -> Namespace:
    """All visible columns as one table ``alias (columns)``. Raises 42P10 for too many names."""
    if len(columns) > len(namespace.visible):
        raise SqlError(
            "42P10",
            f'table "{alias}" has {len(namespace.visible)} columns available but {len(columns)} columns specified',
            position=at + 1,
        )
    renamed = tuple(replace(c, name=columns[i]) if i < len(columns) else c for i, c in enumerate(namespace.visible))
    return Namespace(renamed, (Range(alias, renamed, marker=never_null(renamed)),))


def never_null(columns: tuple[Visible, ...]) -> Column | None:
    """A column that is never NULL, so that it tells a row from a padded one."""
    return next((c.expr for c in columns if isinstance(c.expr, Column) and not c.expr.nullable), None)


def shift(namespace: Namespace, by: int, nullable: bool) -> Namespace:
    """The namespace of a join's side: columns moved by ``by``, and nullable if the join may pad that side."""

    def move(column: Column) -> Column:
        return Column(column.index + by, column.type, column.nullable or nullable)

    return _mapped(namespace, move, nullable) if by or nullable else namespace


def _mapped(namespace: Namespace, change: Callable[[Column], Column], padded: bool) -> Namespace:
    def visible(c: Visible) -> Visible:
        return Visible(c.name, map_columns(c.expr, change), c.table, c.attribute)

    ranges = tuple(
        Range(
            r.alias,
            tuple(visible(c) for c in r.columns),
            r.schema_name,
            r.relation,
            None if r.marker is None else change(r.marker),
            r.padded or padded,
            None if r.oid is None else visible(r.oid),
        )
        for r in namespace.ranges
    )
    return Namespace(tuple(visible(c) for c in namespace.visible), ranges)
