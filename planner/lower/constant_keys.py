"""Which key of a stored relation's arrangements a filter fixes to constants."""

from __future__ import annotations

from planner.expr.scalar import Column, Or, Scalar
from planner.logical.join_keys import comparable, is_constant
from planner.logical.nodes import Get
from planner.lower.state import Lowering

LIMIT = 10_000
"""The most keys that one lookup may list; beyond it a scan is no worse."""

Fixed = dict[int, tuple[Scalar, tuple[Scalar, ...]]]
"""By column: the predicate that fixes it, and the constants."""


def fixed_key(low: Lowering, rel: Get, predicates: tuple[Scalar, ...]) -> tuple[tuple[int, ...], Fixed] | None:
    """(key columns of an arrangement, constants by column), if the predicates fix that key; None otherwise."""
    if not low.indexes.one_shot:
        return None
    fixed: Fixed = {}
    for predicate in predicates:
        found = points(predicate)
        if found is not None:
            fixed.setdefault(found[0], (predicate, found[1]))
    for key in low.indexes.keys(rel.relation):
        if key and all(k in fixed for k in key):
            total = 1
            for k in key:
                total *= len(fixed[k][1])
            if total <= LIMIT:
                return key, fixed
    return None


def points(predicate: Scalar) -> tuple[int, tuple[Scalar, ...]] | None:
    """(column, constants) of column = constant, or of an OR of such; None: the predicate is neither."""
    if isinstance(predicate, Or):
        parts = [points(a) for a in predicate.args]
        columns = {p[0] for p in parts if p is not None}
        if None in parts or len(columns) != 1:
            return None
        return columns.pop(), tuple(c for p in parts if p is not None for c in p[1])
    equality = comparable(predicate)
    if equality is None or equality[2]:
        return None
    for column, value in (equality[:2], equality[1::-1]):
        if isinstance(column, Column) and is_constant(value):
            return column.index, (value,)
    return None
