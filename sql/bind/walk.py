"""Walks over bound plans, subqueries included: moving column references between levels, and finding things."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from planner import traverse
from planner.functions import FUNCTIONS
from planner.logical import Get, Join, Rel
from planner.scalar import (
    Call,
    Column,
    Exists,
    OuterColumn,
    Quantified,
    Scalar,
    ScalarSubquery,
    children,
    with_children,
)

Change = Callable[[int, int], tuple[int, int]]
"""(level, index) → (level, index): level 0 is the row that the expression is evaluated on, 1 the query around it, …"""


def relevel(expr: Scalar, change: Change, depth: int = 0) -> Scalar:
    """The expression with every column reference that leaves it changed, inside its subqueries too."""
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
            new = tuple(relevel(p, change, depth) for p in parts)
            return expr if all(a is b for a, b in zip(parts, new, strict=True)) else with_children(expr, new)


def _moved(column: Column | OuterColumn, to: tuple[int, int], depth: int) -> Scalar:
    level, index = to[0] + depth, to[1]
    if level == 0:
        return Column(index, column.type, column.nullable)
    return OuterColumn(level, index, column.type, column.nullable)


def relevel_rel(rel: Rel, change: Change, depth: int) -> Rel:
    """The same for a subquery's plan, which stands ``depth`` levels below."""
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
    """The inverse of ``lift``; the expression must not refer to nearer levels."""
    return relevel(expr, lambda level, index: (level - levels, index))


def references(expr: Scalar) -> set[tuple[int, int]]:
    """All (level, index) that an expression refers to outside itself."""
    found: set[tuple[int, int]] = set()

    def note(level: int, index: int) -> tuple[int, int]:
        found.add((level, index))
        return level, index

    relevel(expr, note)
    return found


def rel_references(rel: Rel) -> set[tuple[int, int]]:
    """All (level, index) outside a plan that it refers to; level 0 is the query that it stands in as a subquery."""
    found: set[tuple[int, int]] = set()

    def note(level: int, index: int) -> tuple[int, int]:
        found.add((level, index))
        return level, index

    relevel_rel(rel, note, 1)
    return found


def has_subquery(expr: Scalar) -> bool:
    """Whether a subquery stands anywhere in the expression."""
    if isinstance(expr, ScalarSubquery | Exists | Quantified):
        return True
    return any(has_subquery(c) for c in children(expr))


def _all_rels(rel: Rel) -> Iterator[Rel]:
    yield rel
    for child in traverse.children(rel):
        yield from _all_rels(child)
    for expr in traverse.scalars(rel):
        for inner in _subqueries(expr):
            yield from _all_rels(inner)


def _subqueries(expr: Scalar) -> Iterator[Rel]:
    if isinstance(expr, ScalarSubquery | Exists | Quantified):
        yield expr.rel
        if isinstance(expr, Quantified):
            yield from _subqueries(expr.comparison)
    for child in children(expr):
        yield from _subqueries(child)


def relations(rel: Rel) -> frozenset[int]:
    """The ids of the stored relations that a plan reads."""
    return frozenset(r.relation for r in _all_rels(rel) if isinstance(r, Get))


def _calls(expr: Scalar) -> Iterator[Call]:
    if isinstance(expr, Call):
        yield expr
    if isinstance(expr, Quantified):
        yield from _calls(expr.comparison)
    for child in children(expr):
        yield from _calls(child)


def volatile_functions(rel: Rel, *, stable: bool = False) -> frozenset[str]:
    """The names of the volatile (with ``stable``: and stable) functions that a plan calls."""
    kinds = ("volatile", "stable", "settings") if stable else ("volatile",)
    found = set()
    for node in _all_rels(rel):
        for expr in traverse.scalars(node):
            for call in _calls(expr):
                function = FUNCTIONS.get(call.function)
                if function is not None and function.volatility in kinds:
                    found.add(function.name)
    return frozenset(found)
