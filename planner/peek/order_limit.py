"""ORDER BY, LIMIT, OFFSET and the returned columns of a one-shot query."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import numpy as np

from ivm.distinct import distinct
from ivm.rows import RowSet, Vector, Words, pack
from ivm.stops import poll, polled
from ivm.words import BYTEA, INT8, ColumnType
from planner import gathers
from planner.aggregates.row_reducers import slice_bound
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate
from planner.expr.functions.compare import ORDER_BYTES, ORDER_PREFIX
from planner.expr.ordering import needs_order_bytes
from planner.expr.scalar import Call, Scalar, SortKey
from planner.logical.nodes import Finishing

SORTED_AT_ONCE: Final = 8192
"""Values that Python sorts in one call: some 5 ms."""
SAMPLES: Final = 16
"""Sampled values for each part, which is so seldom twice as large as meant."""


def finish(rowset: RowSet, finishing: Finishing, context: Context) -> RowSet:
    """The rows ordered, sliced and cut to ``width`` columns. Raises the errors of ORDER BY and LIMIT expressions."""
    rows, schema = rowset.rows, rowset.schema
    if finishing.order and len(rows) > 1:
        rows = rows[sort_order(rowset, finishing.order, context)]
    limit = slice_bound(finishing.limit, "LIMIT", context)
    offset = slice_bound(finishing.offset, "OFFSET", context) or 0
    if limit is not None or offset:
        rows = rows[offset : None if limit is None else offset + limit]
    if finishing.project is not None:
        return projected(RowSet(rows, schema), finishing.project, context)
    if finishing.width is None or finishing.width == len(schema):
        return RowSet(rows, schema)
    shown = tuple(range(finishing.width))
    moved, _ = gathers.apply(gathers.columns(schema, shown), rows)
    return RowSet(moved, schema[: finishing.width])


def rows_wanted(finishing: Finishing, context: Context) -> int | None:
    """How many rows suffice for the result; None: all are needed. Raises the errors of LIMIT expressions."""
    limit = slice_bound(finishing.limit, "LIMIT", context)
    if limit is None or finishing.order:
        return None
    return limit + (slice_bound(finishing.offset, "OFFSET", context) or 0)


def projected(source: RowSet, exprs: tuple[Scalar, ...], context: Context) -> RowSet:
    """The expressions over every row. Raises their errors."""
    vectors, failures = evaluate(exprs, source.columns(), len(source), context)
    if failures is not None:
        raise failures.errors[0]
    pairs = zip(exprs, vectors, strict=True)
    columns = tuple(ColumnType(e.type, e.nullable or v.nulls is not None) for e, v in pairs)
    return RowSet(pack(vectors, columns, len(source)), columns)


def sort_order(rowset: RowSet, order: tuple[SortKey, ...], context: Context) -> Words:
    """The rows' positions in sorted order; stable."""
    columns = rowset.columns()
    keys: list[Words] = []
    for key in order:
        keys += _sort_words(key, columns, len(rowset), context)
    return np.lexsort(keys[::-1])


def _sort_words(key: SortKey, columns: list[Vector], count: int, context: Context) -> list[Words]:
    """Words by which an ascending sort gives the key's order: where NULLs stand, prefix, rank among equal prefixes."""
    prefix: Scalar = Call(ORDER_PREFIX, (key.expr,), INT8, True)
    exprs: tuple[Scalar, ...] = (key.expr, prefix)
    if needs_order_bytes(key.expr.type):
        exprs = (*exprs, Call(ORDER_BYTES, (key.expr,), BYTEA, True))
    vectors, failures = evaluate(exprs, columns, count, context)
    if failures is not None and len(failures.rows):
        raise failures.errors[0]
    nulls = vectors[0].nulls
    keys = [vectors[1].words]
    if len(vectors) > 2:
        keys.append(_ranks(vectors[2], context))
    if key.descending:
        keys = [~k for k in keys]
    if nulls is None:
        return keys
    keys = [np.where(nulls, 0, k) for k in keys]
    return [(nulls != key.nulls_first).astype(np.int64), *keys]


def _ranks(vector: Vector, context: Context) -> Words:
    """The rank of each id by its bytes."""
    words = vector.words if vector.nulls is None else vector.words[~vector.nulls]
    ids = distinct(words)
    values = context.dictionary.lookup(ids)
    rank = np.zeros(len(ids), np.int64)
    rank[by_bytes(values)] = np.arange(len(ids))
    out = np.zeros(len(vector.words), np.int64)
    where = slice(None) if vector.nulls is None else ~vector.nulls
    out[where] = rank[np.searchsorted(ids, words)]
    return out


def by_bytes(values: Sequence[bytes]) -> list[int]:
    """The positions of values in the order of their bytes. They come in an order that says nothing about that, as that
    of ids is. Cost: m log m, in parts of some ``SORTED_AT_ONCE``, between which the work may end and others may have
    Python's lock (sample sort: Frazer and McKellar, 1970)."""
    if len(values) <= SORTED_AT_ONCE:
        return sorted(range(len(values)), key=values.__getitem__)
    bounds = sorted(values[:: max(SORTED_AT_ONCE // SAMPLES, len(values) // SORTED_AT_ONCE)])[SAMPLES::SAMPLES]
    parts: list[list[int]] = [[] for _ in range(len(bounds) + 1)]
    for position in polled(range(len(values))):
        parts[bisect_right(bounds, values[position])].append(position)
    found: list[int] = []
    for part in parts:
        poll()
        found += sorted(part, key=values.__getitem__)
    return found
