"""A bound query as a plan: what the layers of the binder hand to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Final

from ivm.words import ColumnType
from planner.expr.scalar import Column, Scalar, SortKey
from planner.logical.nodes import Project, Rel, SetKind, SetOperation, TopK, Values, schema
from sql.bind.arrival import first_rows
from sql.bind.walk import references
from sql.statements.queries import LockedRows, OutputColumn

UNIT: Final = Values(((),), ())
"""One row without columns: the input of a SELECT without FROM."""


@dataclass(frozen=True, slots=True)
class NamedRel:
    """A plan and the names of its columns."""

    rel: Rel
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query whose ORDER BY, LIMIT and OFFSET are not part of the plan yet.

    ``rel`` has the columns ``columns``, then perhaps hidden ones that ``order`` uses. ``order``, ``limit`` and
    ``offset`` are over ``rel``.
    """

    rel: Rel
    columns: tuple[OutputColumn, ...]
    order: tuple[SortKey, ...] = ()
    limit: Scalar | None = None
    offset: Scalar | None = None
    locks: tuple[LockedRows, ...] = ()

    @property
    def width(self) -> int:
        """The number of columns that are not hidden."""
        return len(self.columns)


def sliced(bound: BoundQuery) -> Rel:
    """The plan with LIMIT and OFFSET applied, hidden columns included."""
    if bound.limit is None and bound.offset is None:
        return bound.rel
    if not bound.order:
        return first_rows(bound.rel, bound.limit, bound.offset)
    return TopK(bound.rel, (), bound.order, bound.limit, bound.offset)


def finished(bound: BoundQuery) -> Rel:
    """The plan with LIMIT and OFFSET applied, without the hidden columns."""
    rel = sliced(bound)
    columns = schema(rel)
    if len(columns) == bound.width:
        return rel
    if rel is bound.rel and isinstance(rel, Project):
        return Project(rel.input, rel.exprs[: bound.width])
    return Project(rel, rel_columns(rel)[: bound.width])


def rel_columns(rel: Rel) -> tuple[Column, ...]:
    """A plan's columns as expressions over it."""
    return tuple(Column(i, c.type, c.nullable) for i, c in enumerate(schema(rel)))


def union_all(rels: Sequence[Rel]) -> Rel:
    """UNION ALL of one or more relations."""
    return reduce(partial(SetOperation, SetKind.UNION, True), rels)


def values_rel(rows: Sequence[tuple[Scalar, ...]]) -> Rel:
    """The plan of VALUES, each of whose columns has one type; a union of projections where a row refers to an outer
    query."""
    if any(references(e) for row in rows for e in row):
        return union_all([Project(UNIT, row) for row in rows])
    columns = tuple(ColumnType(column[0].type, any(e.nullable for e in column)) for column in zip(*rows, strict=True))
    return Values(tuple(rows), columns)
