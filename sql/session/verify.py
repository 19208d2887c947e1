"""VERIFY MATERIALIZED VIEW: a recompute from the tables at one epoch, beside the running server."""

from __future__ import annotations

import numpy as np

from ivm.errors import unsupported
from ivm.rows import RowSet, Vector, Words, pack, unpack
from ivm.words import INT8, ColumnType
from planner.context import Bounds, Context
from planner.lower import lower
from planner.run import run
from planner.transform.pipeline import optimize
from sql.catalog.catalog import Relation
from sql.engine.definition import definition_rel
from sql.engine.snapshot import MemorySnapshot, Published, StoredIndexes


def verify(view: Relation, published: Published, snapshot: MemorySnapshot, context: Context, bounds: Bounds) -> RowSet:
    """The rows that differ, with ``diff``: how often more (or less) a row stands in the view than in a recompute.

    The recompute reads tables only: views that the view reads are recomputed too.
    """
    if view.locks:
        hint = "What its joins with PROCTIME() have found is primary data, which no recompute gives back."
        raise unsupported(f"VERIFY of {view.name}", hint)
    rel = definition_rel(view, published.catalog)
    computed = run(lower(optimize(rel), StoredIndexes(published, one_shot=True)), snapshot, context, bounds)
    schema = view.schema
    expected = pack(computed.columns(), schema, len(computed))
    rows, diffs = published.rows(view.id, published.ordinal)
    rows, diffs = _difference(rows, diffs, expected)
    result = (*schema, ColumnType(INT8, False))
    return RowSet(pack([*unpack(rows, schema), Vector(diffs)], result, len(rows)), result)


def _difference(rows: Words, diffs: Words, expected: Words) -> tuple[Words, Words]:
    """The rows whose counts differ: view minus recompute."""
    both = np.concatenate([rows, expected])
    weights = np.concatenate([diffs, np.full(len(expected), -1, np.int64)])
    if not len(both):
        return both, weights
    distinct, place = np.unique(both, axis=0, return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, place.reshape(-1), weights)
    wrong = sums != 0
    return distinct[wrong], sums[wrong]
