"""Moves column references between query levels, in expressions and plans, including their subqueries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import is_

from planner.expr.scalar import (
    Column,
    Exists,
    Literal,
    OuterColumn,
    Quantified,
    Scalar,
    ScalarSubquery,
    children,
    with_children,
)
from planner.logical import traversal as traverse
from planner.logical.nodes import Join, Rel

Change = Callable[[int, int], tuple[int, int] | Scalar]
"""(level, index) → (level, index), or an expression without columns that stands for the column.

Level 0 is the row the expression is evaluated on, 1 the enclosing query, and so on.
"""


def relevel(expr: Scalar, change: Change, depth: int = 0) -> Scalar:
    """Applies ``change`` to every reference that leaves the expression, including those inside its subqueries."""
    if type(expr) is Literal:
        return expr
    match expr:
        case Column():
            return _moved(expr, change(0, expr.index), 0) if depth == 0 else expr
        case OuterColumn():
            if expr.level < depth:
                return expr
            return _moved(expr, change(expr.level - depth, expr.index), depth)
        case ScalarSubquery() | Exists():
            return replace(expr, rel=relevel_rel(expr.rel, change, depth + 1))
        case Quantified():
            rel = relevel_rel(expr.rel, change, depth + 1)
            return replace(expr, rel=rel, comparison=relevel(expr.comparison, change, depth + 1))
        case _:
            parts = children(expr)
            new = tuple([relevel(p, change, depth) for p in parts])  # no generator: fewer frames
            return expr if all(map(is_, parts, new)) else with_children(expr, new)


def _moved(column: Column | OuterColumn, to: tuple[int, int] | Scalar, depth: int) -> Scalar:
    if not isinstance(to, tuple):
        return to
    level, index = to[0] + depth, to[1]
    if level == 0:
        if isinstance(column, Column) and index == column.index:
            return column
        return Column(index, column.type, column.nullable)
    return OuterColumn(level, index, column.type, column.nullable)


def relevel_rel(rel: Rel, change: Change, depth: int) -> Rel:
    """``relevel`` for the plan of a subquery ``depth`` levels further in."""
    scalars = traverse.scalars(rel)
    new_scalars = tuple(relevel(s, change, depth) for s in scalars)
    if any(a is not b for a, b in zip(scalars, new_scalars, strict=True)):
        rel = traverse.with_scalars(rel, new_scalars)
    inputs = traverse.children(rel)
    if isinstance(rel, Join) and rel.lateral:
        new = (relevel_rel(rel.left, change, depth), relevel_rel(rel.right, change, depth + 1))
    else:
        new = tuple(relevel_rel(r, change, depth) for r in inputs)  # type: ignore[assignment]
    return traverse.with_children(rel, new)


def lift(expr: Scalar) -> Scalar:
    """The expression as seen from one query level further in."""
    return relevel(expr, lambda level, index: (level + 1, index))


def unlift(expr: Scalar, levels: int = 1) -> Scalar:
    """The inverse of ``lift``, ``levels`` times. The expression must not refer to the levels that are removed."""
    return relevel(expr, lambda level, index: (level - levels, index))
