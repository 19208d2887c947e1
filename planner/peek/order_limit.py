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
from planner.logical.fallibility import can_raise
from planner.logical.nodes import Finishing

SORTED_AT_ONCE: Final = 8192
"""Values that Python sorts in one call: some 5 ms."""
SAMPLES: Final = 16
"""Sampled values for each part, which is so seldom twice as large as meant."""


def finish(rowset: RowSet, finishing: Finishing, context: Context) -> RowSet:
    """The rows ordered, sliced and cut to ``width`` columns. Raises the errors of ORDER BY and LIMIT expressions."""
    rows, schema = rowset.rows, rowset.schema
    limit = slice_bound(finishing.limit, "LIMIT", context)
    offset = slice_bound(finishing.offset, "OFFSET", context) or 0
    if finishing.order and len(rows) > 1:
        end = len(rows) if limit is None else offset + limit
        rows = rows[first_in_order(rowset, finishing.order, end, context)]
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
    return None if finishing.order else slice_end(finishing, context)


def slice_end(finishing: Finishing, context: Context) -> int | None:
    """Behind which of the rows in order the result ends; None: there is no LIMIT. Raises the errors of LIMIT
    expressions."""
    limit = slice_bound(finishing.limit, "LIMIT", context)
    return None if limit is None else limit + (slice_bound(finishing.offset, "OFFSET", context) or 0)


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
    keys = [words for key in order for words in _key_words(key, _calls(key), rowset, context)]
    return np.lexsort(keys[::-1])


def first_in_order(rowset: RowSet, order: tuple[SortKey, ...], count: int, context: Context) -> Words:
    """The first ``count`` of ``sort_order``.

    Cost: for a small part of the rows, a selection in linear time by each key, among the rows that the keys before it
    leave undecided, and a sort of what is found. Unless one can fail, keys are computed of the undecided only.
    """
    if 8 * count > len(rowset) or any(can_raise(key.expr) for key in order):
        return sort_order(rowset, order, context)[:count]
    found: list[Words] = []
    rest, left = np.arange(len(rowset) if count else 0), count
    for key, call in ((by, call) for by in order for call in _calls(by)):
        if left >= len(rest):
            break
        poll()
        words = _key_words(key, (call,), RowSet(rowset.rows[rest], rowset.schema), context)
        first, equal, left = _selected(words, left)
        found.append(rest[first])
        rest = rest[equal]
    places = np.sort(np.concatenate([*found, rest[:left]]))
    return places[sort_order(RowSet(rowset.rows[places], rowset.schema), order, context)]


def _selected(keys: list[Words], count: int) -> tuple[Words, Words, int]:
    """The places of the first ``count`` in the ascending order of keys, as far as these decide: those that are among
    them, those of which some are, and how many of these."""
    found = [np.zeros(0, np.int64)]
    rest = np.arange(len(keys[0]))
    for words in keys:
        if count >= len(rest):
            break
        among = words[rest]
        last = np.partition(among, count - 1)[count - 1]
        found.append(rest[among < last])
        count -= len(found[-1])
        rest = rest[among == last]
    return np.concatenate(found), rest, count


def _calls(key: SortKey) -> tuple[Call, ...]:
    """What an ascending sort is by: a prefix, and then bytes."""
    prefix = Call(ORDER_PREFIX, (key.expr,), INT8, True)
    if not needs_order_bytes(key.expr.type):
        return (prefix,)
    return prefix, Call(ORDER_BYTES, (key.expr,), BYTEA, True)


def _key_words(key: SortKey, calls: tuple[Call, ...], rowset: RowSet, context: Context) -> list[Words]:
    """Words by which an ascending sort gives the key's order, as far as the calls decide it: where NULLs stand (with
    the prefix), the prefix, the rank by bytes."""
    vectors, failures = evaluate((key.expr, *calls), rowset.columns(), len(rowset), context)
    if failures is not None and len(failures.rows):
        raise failures.errors[0]
    pairs = zip(calls, vectors[1:], strict=True)
    keys = [_ranks(vector, context) if call.function == ORDER_BYTES else vector.words for call, vector in pairs]
    if key.descending:
        keys = [~k for k in keys]
    nulls = vectors[0].nulls
    if nulls is None:
        return keys
    keys = [np.where(nulls, 0, k) for k in keys]
    return keys if calls[0].function == ORDER_BYTES else [(nulls != key.nulls_first).astype(np.int64), *keys]


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
