"""One-shot reads by key: a filter that fixes an arrangement's whole key becomes a lookup of the constants.

Covers ``k = $1 AND …``, ``k IN (…)`` (an OR of equalities) and compound keys; other conjuncts stay as a filter above.
``k = ANY($1)`` is a semijoin with the array's elements, which looks up the arrangement as any join does.
"""

from __future__ import annotations

from itertools import product

from ivm.words import ColumnType
from planner.expr.scalar import Column, Literal, Scalar
from planner.logical.join_keys import KeyPair
from planner.logical.nodes import Get, Values
from planner.lower.constant_keys import fixed_key
from planner.lower.join import matched, prepare
from planner.lower.state import Lowering
from planner.physical.nodes import Flow


def lookup(low: Lowering, rel: Get, predicates: tuple[Scalar, ...]) -> tuple[Flow, tuple[Scalar, ...]] | None:
    """(rows by key, remaining predicates); None if the predicates fix no arrangement's key."""
    found = fixed_key(low, rel, predicates)
    if found is None:
        return None
    key, fixed = found
    used = [fixed[k][0] for k in key]
    rest = tuple(p for p in predicates if p not in used)
    return _joined(low, rel, key, tuple(product(*(fixed[k][1] for k in key)))), rest


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
    pairs = matched(low, prepare(low, values, table, keys, ()))
    columns = tuple(range(len(row), len(row) + len(rel.schema)))
    return low.builder.move(pairs, columns, rel.schema)
