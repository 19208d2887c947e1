"""One-shot reads by key: a filter that fixes an arrangement's whole key becomes a lookup of the constants.

``k = $1 AND …``, ``k IN (…)`` (an OR of equalities) and compound keys; the other conjuncts stay as a filter above.
``k = ANY($1)`` is a semijoin with the array's elements, which looks the arrangement up as any join does.
"""

from __future__ import annotations

from itertools import product

from ivm.words import ColumnType
from planner.expr.scalar import Column, Literal, Or, Scalar
from planner.logical.join_keys import KeyPair, comparable, is_constant
from planner.logical.nodes import Get, Values
from planner.lower.state import Lowering
from planner.physical.nodes import Flow

LIMIT = 10_000
"""Keys that one lookup may list; past it a scan is no worse."""


def lookup(low: Lowering, rel: Get, predicates: tuple[Scalar, ...]) -> tuple[Flow, tuple[Scalar, ...]] | None:
    """The rows by key and the predicates that are left; None when no arrangement's key is fixed."""
    found = fixed_key(low, rel, predicates)
    if found is None:
        return None
    key, fixed = found
    used = [fixed[k][0] for k in key]
    rest = tuple(p for p in predicates if p not in used)
    return _joined(low, rel, key, tuple(product(*(fixed[k][1] for k in key)))), rest


Fixed = dict[int, tuple[Scalar, tuple[Scalar, ...]]]
"""By column: the predicate that fixes it, and to which constants."""


def fixed_key(low: Lowering, rel: Get, predicates: tuple[Scalar, ...]) -> tuple[tuple[int, ...], Fixed] | None:
    """An arrangement's key that the predicates fix, of a few values."""
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
    """(column, constants) of column = constant, or of an OR of such."""
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


def _joined(low: Lowering, rel: Get, key: tuple[int, ...], rows: tuple[tuple[Scalar, ...], ...]) -> Flow:
    rows = tuple(dict.fromkeys(rows))
    row = tuple(ColumnType(cells[0].type, any(c.nullable for c in cells)) for cells in zip(*rows, strict=True))
    values = low.rel(Values(rows, row))
    alike = (isinstance(c, Literal) and c.type == t.type for r in rows for c, t in zip(r, row, strict=True))
    if len(rows) > 1 and not all(alike):
        values = low.distinct_rows(values)
    table = low.rel(rel)
    keys = tuple(KeyPair(Column(i, row[i].type, row[i].nullable), Column(k, rel.schema[k].type), False)
                 for i, k in enumerate(key))  # fmt: skip
    from planner.lower.join import matched, prepare

    pairs = matched(low, prepare(low, values, table, keys, ()))
    columns = tuple(range(len(row), len(row) + len(rel.schema)))
    return low.builder.move(pairs, columns, rel.schema)
