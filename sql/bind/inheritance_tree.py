"""A table and the tables that inherit from it: its rows in FROM, and the rows that UPDATE and DELETE change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ivm.words import OID
from planner.expr.scalar import Column, Literal, Scalar
from planner.logical.nodes import Get, Project, Rel, schema
from sql.bind.bound_query import union_all
from sql.bind.environment import Environment
from sql.bind.namespace import Visible
from sql.catalog.catalog import Relation
from sql.statements.statements import Branch

TABLEOID: Final = "tableoid"
TABLEOID_ATTRIBUTE: Final = -6
"""The attribute number of tableoid in Postgres."""


@dataclass(frozen=True, slots=True)
class WideRows:
    """The rows of a table and of those below it that a statement may change.

    ``rel`` has the columns of the table; then those that only tables below it have, NULL in rows of other tables; then
    the tableoid. ``branches``: where each table's columns are in ``rel``.
    """

    rel: Rel
    branches: tuple[Branch, ...]


def inherited_rows(env: Environment, relation: Relation, *, only: bool) -> Rel:
    """The table's columns of its rows and those of the tables below it (``only``: ONLY is written), then the tableoid
    if the statement uses one."""
    parent, members = _members(env, relation, only)
    return union_all([_member(parent, member, (), env.oids)[0] for member in members])


def wide_rows(env: Environment, relation: Relation, *, only: bool) -> WideRows:
    """The same rows with all columns of their own tables."""
    parent, members = _members(env, relation, only)
    known = {c.name for c in parent.columns}
    others = tuple((m, i) for m in members for i, c in enumerate(m.columns) if c.name not in known)
    found = [_member(parent, member, others, True) for member in members]
    return WideRows(union_all([rel for rel, _ in found]), tuple(branch for _, branch in found))


def _members(env: Environment, relation: Relation, only: bool) -> tuple[Relation, tuple[Relation, ...]]:
    """The table, and the tables of its tree that hold rows."""
    known = env.catalog.by_id(relation.id) or relation
    below = () if only else env.catalog.below(known)
    return known, tuple(r for r in (known, *below) if r.partitioning is None) or (known,)


def _member(
    parent: Relation, member: Relation, others: Sequence[tuple[Relation, int]], oid: bool
) -> tuple[Rel, Branch]:
    """One table's rows: the parent's columns, then ``others`` (a table's column each), then the tableoid if ``oid``."""
    names = {c.name: i for i, c in enumerate(member.columns)}
    place: dict[int, int] = {}
    exprs: list[Scalar] = []
    for column in parent.columns:
        i = names[column.name]
        place[i] = len(exprs)
        exprs.append(Column(i, member.columns[i].type, member.columns[i].nullable))
    for table, i in others:
        column = table.columns[i]
        if table.id == member.id:
            place[i] = len(exprs)
            exprs.append(Column(i, column.type, column.nullable))
        else:
            exprs.append(Literal(None, column.type))
    if oid:
        exprs.append(Literal(member.oid, OID))
    wide = tuple(place.get(i, 0) for i in range(len(member.columns)))
    get = Get(member.id, member.schema)
    own = tuple(Column(i, c.type, c.nullable) for i, c in enumerate(member.columns))
    return (get if tuple(exprs) == own else Project(get, tuple(exprs))), Branch(member, wide)


def oid_column(rel: Rel, relation: Relation) -> Visible:
    """The tableoid, the last column of ``rel``."""
    return Visible(TABLEOID, Column(len(schema(rel)) - 1, OID, False), relation.oid, TABLEOID_ATTRIBUTE)
