"""A table together with those that inherit from it: its rows in FROM, and the rows that UPDATE and DELETE change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ivm.words import OID
from planner.expr.scalar import Column, Literal, Scalar
from planner.logical.nodes import Get, Project, Rel, SetKind, SetOperation, schema
from sql.bind.environment import Environment
from sql.bind.scope import Visible
from sql.catalog.catalog import Relation
from sql.statements.statements import Branch

TABLEOID: Final = "tableoid"


@dataclass(frozen=True, slots=True)
class Family:
    """The rows of several tables: the columns of the first of them, as many as it has; then, if they were asked for,
    the other columns of the others (NULL where a row's table has none such); then, if asked for, the tableoid."""

    rel: Rel
    branches: tuple[Branch, ...]


def family(env: Environment, relation: Relation, *, only: bool, extras: bool, oid: bool) -> Family:
    """The rows of a table and of those below it, or ``only`` of itself."""
    known = env.catalog.by_id(relation.id) or relation
    below = () if only else env.catalog.below(known)
    members = tuple(r for r in (known, *below) if r.partitioning is None) or (known,)
    others = _others(known, members) if extras else ()
    rels, branches = [], []
    for member in members:
        rel, branch = _member(known, member, others, oid)
        rels.append(rel)
        branches.append(branch)
    result = rels[0]
    for rel in rels[1:]:
        result = SetOperation(SetKind.UNION, True, result, rel)
    return Family(result, tuple(branches))


def _others(parent: Relation, members: Sequence[Relation]) -> tuple[tuple[Relation, int], ...]:
    """The columns that tables have beyond those of the parent."""
    known = {c.name for c in parent.columns}
    return tuple((m, i) for m in members for i, c in enumerate(m.columns) if c.name not in known)


def _member(
    parent: Relation, member: Relation, others: Sequence[tuple[Relation, int]], oid: bool
) -> tuple[Rel, Branch]:
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
    """The last column of such rows, which is the tableoid."""
    return Visible(TABLEOID, Column(len(schema(rel)) - 1, OID, False), relation.oid, -6)
