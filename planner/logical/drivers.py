"""Relations of which a query is linear: what it gives for all rows of one is the sum of what it gives for parts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from planner.expr.scalar import Column
from planner.logical.apart import sets_apart
from planner.logical.nodes import Filter, Get, Join, JoinKind, Project, Rel, TableFunction, schema
from planner.logical.traversal import children


@dataclass(frozen=True, slots=True)
class Driver:
    """Such a relation, and of each of the query's columns the one that it is of the relation, if it is one."""

    relation: int
    columns: tuple[int | None, ...]


def drivers(rel: Rel) -> tuple[Driver, ...]:
    """Those that the query reads once. Cost: its size."""
    found = _drivers(rel)
    if not found:
        return ()
    reads: Counter[int] = Counter()
    visits: Counter[int] = Counter()
    todo = [rel]
    while todo:
        node = todo.pop()
        visits[id(node)] += 1
        if visits[id(node)] > 2:
            continue  # once or more often is the question
        if isinstance(node, Get):
            reads[node.relation] += 1
        todo += children(node)
    return tuple(driver for driver in found if reads[driver.relation] == 1)


def _drivers(rel: Rel) -> tuple[Driver, ...]:
    match rel:
        case Get():
            return (Driver(rel.relation, tuple(range(len(rel.schema)))),)
        case Filter():
            return _drivers(rel.input)
        case Project():
            places = [e.index if isinstance(e, Column) else None for e in rel.exprs]
            return tuple(
                Driver(d.relation, tuple(None if p is None else d.columns[p] for p in places))
                for d in _drivers(rel.input)
            )
        case TableFunction() if not sets_apart(rel):
            return _padded(_drivers(rel.input), 0, len(schema(rel)) - len(schema(rel.input)))
        case Join():
            return _of_join(rel)
        case _:
            return ()


def _of_join(join: Join) -> tuple[Driver, ...]:
    width = len(schema(join)) - len(schema(join.left))
    left: tuple[Driver, ...] = ()
    right: tuple[Driver, ...] = ()
    if join.kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI):
        left = _padded(_drivers(join.left), 0, width)
    if join.kind in (JoinKind.INNER, JoinKind.RIGHT):
        right = _padded(_drivers(join.right), len(schema(join.left)), 0)
    return left + right


def _padded(found: tuple[Driver, ...], before: int, behind: int) -> tuple[Driver, ...]:
    return tuple(Driver(d.relation, (None,) * before + d.columns + (None,) * behind) for d in found)
