"""Name resolution: the names of a query level and of the levels around it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ivm.errors import SqlError
from ivm.words import Schema
from planner.expr.scalar import Aggregate, Coalesce, Column, Scalar, SortKey
from planner.logical.frames import Framed
from planner.logical.nodes import Numbering, Rel
from sql.bind.namespace import HAVE_OIDS, Namespace, Range, Visible, at_level
from sql.catalog.routine import Routine
from sql.syntax.nodes.queries import Over, Star

MERGE_ACTION: Final = "merge_action()"
"""The name of the column and of the table, in RETURNING of MERGE, that say which action changed a row."""
GROUPING_BASE: Final = 3 << 29
AGGREGATE_BASE: Final = 1 << 30
FUNCTION_BASE: Final = 1 << 29
WINDOW_BASE: Final = 1 << 28
"""Columns numbered from these on are placeholders for the results of GROUPING, aggregates, set-returning functions and
window functions until ``sql.bind.selection`` builds the query's plan."""
WINDOW_ARGUMENTS: Final = "a window function's arguments"
"""``NameScope.clause`` while these are bound."""


@dataclass(slots=True)
class NameScope:
    """The names of one query level, and what the expressions bound in it have collected.

    ``parent``: the enclosing level, which ``OuterColumn`` level 1 refers to from here. ``used``: an inner level has
    named a column of this one. ``clause``: the clause being bound, for errors. ``grouped``: there is a GROUP BY.
    ``aggregates``, ``functions`` and ``windows``: the aggregates, set-returning functions and window functions so far;
    None where the clause allows none. ``named``: the windows of WINDOW. ``hidden``: tables that FROM has but that
    cannot be named from here, for errors.
    ``target``: the table that UPDATE or DELETE changes, which the other items of FROM cannot name. ``seen``: by column,
    the offset where it was first named, and whether that was in an inner level. ``conditional``: the expression being
    bound is an argument of this (CASE, COALESCE), where no set-returning function may be. ``groupings``: the arguments
    of each GROUPING so far, and its offset. ``several``: GROUP BY has several sets of keys. ``direct``: expressions
    that must be over grouped columns, although they stand in an aggregate.
    """

    namespace: Namespace = field(default_factory=Namespace)
    parent: NameScope | None = None
    used: bool = False
    clause: str = ""
    grouped: bool = False
    aggregates: list[Aggregate] | None = None
    functions: list[SetReturning] | None = None
    windows: list[WindowCall] | None = None
    named: dict[str, Over] = field(default_factory=dict)
    hidden: Namespace = field(default_factory=Namespace)
    target: Range | None = None
    seen: dict[int, tuple[int, bool]] = field(default_factory=dict)
    conditional: str | None = None
    groupings: list[tuple[tuple[Scalar, ...], int]] = field(default_factory=list)
    several: bool = False
    direct: list[Scalar] = field(default_factory=list)
    found: tuple[Namespace | None, Range | None, dict[tuple[str, ...], Scalar]] = (None, None, {})
    """The names that have been found here, with the namespace and the target that they were found in."""
    _numbered: list[Aggregate] | None = None
    """The aggregates that ``_numbers`` has numbered."""
    _numbers: dict[Aggregate, int] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """The number of levels from here to the outermost, both included."""
        return 1 if self.parent is None else 1 + self.parent.depth

    def add_aggregate(self, aggregate: Aggregate) -> int:
        """Adds an aggregate of this level; its number, which equal aggregates share."""
        known = self.aggregates
        assert known is not None
        if self._numbered is not known:
            self._numbered, self._numbers = known, {a: i for i, a in enumerate(known)}
        number = self._numbers.setdefault(aggregate, len(known))
        if number == len(known):
            known.append(aggregate)
        return number


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function; its result is Column(WINDOW_BASE + its number).

    An ``Aggregate`` is over the whole partition and has no order.
    """

    function: Numbering | Aggregate | Framed
    partition: tuple[Scalar, ...]
    order: tuple[SortKey, ...]


@dataclass(frozen=True, slots=True)
class SetReturning:
    """A set-returning function of a select list; its result is Column(FUNCTION_BASE + its number)."""

    function: str
    args: tuple[Scalar, ...]
    columns: Schema
    routine: tuple[Routine, Rel] | None = None
    """A user-defined function and its body, in which the arguments are the columns one level out."""


def find_column(scope: NameScope, parts: tuple[str, ...], at: int) -> Scalar:
    """The column that a name means, as an expression in ``scope``. Raises 42702, 42703, 42P01.

    A name of this level that was found before is not searched again: nothing new is noted of it.
    """
    if scope.found[0] is not scope.namespace or scope.found[1] is not scope.target:
        scope.found = scope.namespace, scope.target, {}
    known = scope.found[2].get(parts)
    if known is not None:
        return known
    level, here = 0, scope
    while True:
        found = _in_namespace(here.namespace, parts, at)
        if found is not None:
            if here.target is not None:
                _check_target(here.target, found, at)
            here.used = here.used or level > 0
            note_columns(here, found.expr, at, level > 0)
            found.note()
            if level:
                return at_level(found.expr, level)
            scope.found[2][parts] = found.expr
            return found.expr
        if here.parent is None:
            raise missing(scope, parts, at)
        here, level = here.parent, level + 1


def _check_target(target: Range, visible: Visible, at: int) -> None:
    if any(visible is column for column in target.columns):
        alias = target.alias
        raise SqlError(
            "42P10", f'invalid reference to FROM-clause entry for table "{alias}"',
            hint=f'There is an entry for table "{alias}", but it cannot be referenced from this part of the query.',
            position=at + 1,
        )  # fmt: skip


def note_columns(scope: NameScope, expr: Scalar, at: int, below: bool) -> None:
    """Records the offset of a name's columns unless they were named before. ``below``: from an inner level."""

    if isinstance(expr, Column):
        scope.seen.setdefault(expr.index, (at, below))
        return
    assert isinstance(expr, Coalesce), expr
    for part in expr.args:
        note_columns(scope, part, at, below)


def note_star(scope: NameScope, columns: Sequence[Visible], at: int, below: bool) -> None:
    """Records that a ``*`` names these columns."""
    place, seen = (at, below), scope.seen
    for visible in columns:
        expr = visible.expr
        if type(expr) is Column:
            seen.setdefault(expr.index, place)
        else:
            note_columns(scope, expr, at, below)
        if visible.use is not None:
            visible.note()


def _in_namespace(namespace: Namespace, parts: tuple[str, ...], at: int) -> Visible | None:
    name = parts[-1]
    if len(parts) == 1:
        found = _one(namespace.named(name), name, at)
        return found or _one(_oids(namespace.ranges, name), name, at)
    range_ = find_range(namespace, parts[:-1], at)
    if range_ is None:
        return None
    found = _one([*range_.named(name), *_oids((range_,), name)], name, at)
    if found is None:
        shown = ".".join(parts[-2:])
        raise SqlError("42703", f"column {shown} does not exist", hint=_hint(namespace, name), position=at + 1)
    return found


class OidNeeded(Exception):
    """The statement uses a tableoid: it has to be bound again with ``Environment.oids``."""


def _oids(ranges: tuple[Range, ...], name: str) -> list[Visible]:
    """The tableoids of these tables if that is the name."""
    if name != "tableoid":
        return []
    stored = [r for r in ranges if r.relation is not None and r.relation.kind in HAVE_OIDS]
    if any(r.oid is None for r in stored):
        raise OidNeeded
    return [r.oid for r in stored if r.oid is not None]


def _one(found: Sequence[Visible], name: str, at: int) -> Visible | None:
    if len(found) > 1:
        raise SqlError("42702", f'column reference "{name}" is ambiguous', position=at + 1)
    return found[0] if found else None


def find_range(namespace: Namespace, qualifier: tuple[str, ...], at: int) -> Range | None:
    """The table of this level that a qualifier names, if there is one. Raises 42P09."""
    alias = qualifier[-1]
    schema_name = qualifier[-2] if len(qualifier) > 1 else None
    found = [r for r in namespace.ranges if r.alias == alias and (schema_name is None or r.schema_name == schema_name)]
    if len(found) > 1:
        raise SqlError("42P09", f'table reference "{alias}" is ambiguous', position=at + 1)
    return found[0] if found else None


def find_range_columns(scope: NameScope, star: Star) -> tuple[Visible, ...]:
    """The columns of ``t.*`` as expressions in ``scope``; t may be of an enclosing level. Raises 42P01."""
    level, here = 0, scope
    while (range_ := find_range(here.namespace, star.qualifier, star.at)) is None:
        if here.parent is None:
            raise missing_table(scope, star.qualifier, star.at)
        here, level = here.parent, level + 1
    columns = tuple([visible for visible in range_.columns if not visible.hidden])
    if here.target is not None:
        for visible in columns:
            _check_target(here.target, visible, star.at)
    here.used = here.used or level > 0
    note_star(here, columns, star.at, level > 0)
    return columns if level == 0 else tuple(replace(v, expr=at_level(v.expr, level), output=None) for v in columns)


def missing(scope: NameScope, parts: tuple[str, ...], at: int) -> SqlError:
    """The error for a name that no level has."""
    if len(parts) > 1:
        return missing_table(scope, parts[:-1], at)
    hint = _hint(scope.namespace, parts[0])
    return SqlError("42703", f'column "{parts[0]}" does not exist', hint=hint, position=at + 1)


def missing_table(scope: NameScope, qualifier: tuple[str, ...], at: int) -> SqlError:
    """42P01 for a qualifier, with a hint where the table has an alias or cannot be named from here."""
    alias = qualifier[-1]
    here: NameScope | None = scope
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
    """A hint at the nearest column name, worded as in Postgres."""
    known = [(c.name, r.alias) for r in namespace.ranges for c in r.columns]
    close = difflib.get_close_matches(name, {c for c, _ in known}, n=1, cutoff=0.6)
    if not close:
        return None
    shown = [f'"{alias}.{column}"' for column, alias in known if column == close[0]][:2]
    return f"Perhaps you meant to reference the column {' or the column '.join(shown)}."
