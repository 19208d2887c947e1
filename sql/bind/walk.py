"""Searches in bound plans and expressions, subqueries included."""

from __future__ import annotations

from collections.abc import Iterator

from planner.expr.functions.library import FUNCTIONS
from planner.expr.scalar import (
    Call,
    Exists,
    Quantified,
    Scalar,
    ScalarSubquery,
    children,
)
from planner.logical import traversal as traverse
from planner.logical.levels import relevel, relevel_rel
from planner.logical.nodes import Get, Rel


def references(expr: Scalar) -> set[tuple[int, int]]:
    """The columns that an expression refers to, as (level, index); those of its own subqueries excluded."""
    found: set[tuple[int, int]] = set()

    def collect(level: int, index: int) -> tuple[int, int]:
        found.add((level, index))
        return level, index

    relevel(expr, collect)
    return found


def rel_references(rel: Rel) -> set[tuple[int, int]]:
    """The outer columns that a plan refers to, as (level, index); level 0 is the query around the plan."""
    found: set[tuple[int, int]] = set()

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
