"""Searches in bound plans and expressions, subqueries included."""

from __future__ import annotations

from typing import Final

from planner.expr.scalar import (
    Column,
    Exists,
    Literal,
    OuterColumn,
    Quantified,
    Scalar,
    ScalarSubquery,
    children,
)
from planner.logical.levels import relevel, relevel_rel
from planner.logical.nodes import Get, Rel


def references(expr: Scalar) -> set[tuple[int, int]]:
    """The columns that an expression refers to, as (level, index); those of its own subqueries excluded."""
    found: set[tuple[int, int]] = set()

    def collect(level: int, index: int) -> tuple[int, int]:
        found.add((level, index))
        return level, index

    todo = [expr]
    while todo:
        part = todo.pop()
        if type(part) is Column:
            found.add((0, part.index))
        elif type(part) in _DEEPER:
            relevel(part, collect)
        elif type(part) is not Literal:
            todo += children(part)
    return found


_DEEPER: Final = frozenset({OuterColumn, ScalarSubquery, Exists, Quantified})
"""What may refer to columns of other levels."""


def rel_references(rel: Rel) -> set[tuple[int, int]]:
    """The outer columns that a plan refers to, as (level, index); level 0 is the query around the plan."""
    found: set[tuple[int, int]] = set()
    if isinstance(rel, Get):
        return found

    def collect(level: int, index: int) -> tuple[int, int]:
        found.add((level, index))
        return level, index

    relevel_rel(rel, collect, 1)
    return found


def has_subquery(expr: Scalar) -> bool:
    """Whether the expression contains a subquery."""
    if isinstance(expr, ScalarSubquery | Exists | Quantified):
        return True
    return any(has_subquery(c) for c in children(expr))
