"""Running a function's implementation on a batch: strictness, words or datums, memoised results."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from sys import getsizeof
from typing import Any, Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words
from ivm.stops import Taking, may_move, move, poll, stay
from ivm.words import SqlType, Storage
from planner.expr.evaluate.vector_forms import by_form, has_form
from planner.expr.functions.table import CallingConvention, CallSite, Function
from planner.expr.rows import RowBatch, some, taken, with_nulls
from storage.types.codec import decode, decode_one, encode, encode_one

Run = Callable[[RowBatch], Vector]
_MEMO_LIMIT: Final = 1 << 16
_BLOCK: Final = 1024
"""Rows whose arguments are decoded together: each gets a copy of a value that all share."""
_SLICE: Final = 1 << 14
"""Rows between two looks at whether the work is to end."""
_SIZED: Final = (str, bytes, tuple)
_LONG: Final = 20_000
"""What is longer is not worked on by the event loop's thread."""
_ABSENT: Final = object()


def call_runner(function: Function, args: tuple[Run, ...], types: tuple[SqlType, ...], result: SqlType) -> Run:
    """A closure that computes the function's call on a batch."""
    if function.convention is CallingConvention.PER_VALUE:
        return _value_runner(function, args, types, result)
    if not function.strict:
        return _lenient_runner(function, args, types, result)
    return _strict_runner(function, args, types, result)


def _lenient_runner(function: Function, args: tuple[Run, ...], types: tuple[SqlType, ...], result: SqlType) -> Run:
    implementation = function.implementation
    volatile = function.volatility == "volatile"

    def run(batch: RowBatch) -> Vector:
        poll()
        if volatile:
            stay()
        site = CallSite(batch, types, result, batch.count)
        out = implementation(site, *[a(batch) for a in args])
        vector = out if isinstance(out, Vector) else Vector(out)
        return _without_failed(site, vector) if site.failed else vector

    return run


def _strict_runner(function: Function, args: tuple[Run, ...], types: tuple[SqlType, ...], result: SqlType) -> Run:
    implementation = function.implementation
    total = function.total
    volatile = function.volatility == "volatile"

    def together(site: CallSite, vectors: list[Vector]) -> Vector:
        return _as_vector(site, implementation(site, *[v.words for v in vectors]))

    def made(site: CallSite, vectors: list[Vector]) -> Vector:
        if has_form(function, vectors, site.count):
            return by_form(function, site, vectors, together)
        return together(site, vectors)

    def run(batch: RowBatch) -> Vector:
        vectors = [a(batch) for a in args]
        if volatile:
            stay()
        nulls = _any_null(vectors)
        if nulls is None or total:
            site = CallSite(batch, types, result, batch.count)
            vector = made(site, vectors)
            if nulls is None:
                return vector
            return with_nulls(vector.words, nulls if vector.nulls is None else nulls | vector.nulls)
        rows = np.flatnonzero(~nulls)
        words = np.zeros(batch.count, np.int64)
        if not len(rows):
            return Vector(words, nulls)
        site = CallSite(batch, types, result, len(rows), rows)
        vector = made(site, [Vector(v.words[rows]) for v in vectors])
        words[rows] = vector.words
        if vector.nulls is not None:
            nulls = nulls.copy()
            nulls[rows] = vector.nulls
        return Vector(words, nulls)

    return run


def _any_null(vectors: list[Vector]) -> Mask | None:
    nulls: Mask | None = None
    for vector in vectors:
        if vector.nulls is not None:
            nulls = vector.nulls if nulls is None else nulls | vector.nulls
    return nulls


def _as_vector(site: CallSite, out: Words | Vector) -> Vector:
    vector = out if isinstance(out, Vector) else Vector(out)
    return _without_failed(site, vector) if site.failed else vector


def _without_failed(site: CallSite, vector: Vector) -> Vector:
    """Makes failed rows NULL, so that no enclosing expression computes on them."""
    nulls = np.zeros(site.count, np.bool_) if vector.nulls is None else vector.nulls.copy()
    for rows in site.failed:
        nulls[rows] = True
    return with_nulls(vector.words, nulls)


def _value_runner(function: Function, args: tuple[Run, ...], types: tuple[SqlType, ...], result: SqlType) -> Run:
    remember = function.volatility == "immutable"
    key = (function.key, types, result)

    def by_value(site: CallSite, vectors: list[Vector]) -> Vector:
        memo = site.context.dictionary.memos.setdefault(key, {}) if remember else {}
        return _each_distinct(function, site, vectors, memo)

    def run(batch: RowBatch) -> Vector:
        vectors = [a(batch) for a in args]
        if batch.count == 1 and function.volatility != "volatile":
            return _one(function, CallSite(batch, types, result, 1), vectors, key if remember else None)
        nulls = _any_null(vectors) if function.strict else None
        rows = None if nulls is None else np.flatnonzero(~nulls)
        count = batch.count if rows is None else len(rows)
        if rows is not None:
            vectors = [taken(Vector(v.words), rows) for v in vectors]
        site = CallSite(batch, types, result, count, rows)
        if function.volatility == "volatile":
            stay()
            vector = _collect(site, _compute(function, site, vectors))
        elif has_form(function, vectors, count):
            vector = by_form(function, site, vectors, by_value)
        else:
            vector = by_value(site, vectors)
        if rows is None:
            return vector
        words, out_nulls = np.zeros(batch.count, np.int64), np.ones(batch.count, np.bool_)
        words[rows] = vector.words
        out_nulls[rows] = False if vector.nulls is None else vector.nulls
        return Vector(words, out_nulls)

    return run


def _one(function: Function, site: CallSite, vectors: list[Vector], memory: Hashable | None) -> Vector:
    """The function on a single row: as of many, without their arrays. ``memory``: the key of its memo; None: it has
    none."""
    words = [None if v.nulls is not None and v.nulls[0] else v.words.item(0) for v in vectors]
    if function.strict and None in words:
        return _no_value()
    memo = None if memory is None else site.context.dictionary.memos.setdefault(memory, {})
    row = words[0] if len(words) == 1 else tuple(words)
    known = _ABSENT if memo is None else memo.get(row, _ABSENT)
    if known is _ABSENT:
        known = _one_computed(function, site, words)
        if memo is not None:
            if len(memo) >= _MEMO_LIMIT:
                memo.clear()
            memo[row] = known
    if isinstance(known, int):
        return Vector(np.array([known], np.int64))
    if isinstance(known, SqlError):
        site.fail(np.zeros(1, np.int64), known)
    return _no_value()


def _no_value() -> Vector:
    return Vector(np.zeros(1, np.int64), np.ones(1, np.bool_))


def _one_computed(function: Function, site: CallSite, words: list[int | None]) -> int | SqlError | None:
    dictionary = site.context.dictionary
    datums = [None if w is None else decode_one(t, w, dictionary) for t, w in zip(site.args, words, strict=True)]
    taking = Taking()
    try:
        values, errors = _values(function, site, 1, [[datum] for datum in datums], taking)
    finally:
        taking.release()
    if errors:
        return errors[0]
    return None if values[0] is None else encode_one(site.result, values[0], dictionary)


def _row_keys(vectors: list[Vector], count: int) -> list[Hashable]:
    """A hashable key for each row's arguments: their words, None for NULL."""
    columns = []
    for vector in vectors:
        column: list[Any] = vector.words.tolist()
        if vector.nulls is not None:
            column = [None if null else word for word, null in zip(column, vector.nulls.tolist(), strict=True)]
        columns.append(column)
    if len(columns) == 1:
        return columns[0]
    return list(zip(*columns, strict=True)) if columns else [()] * count


def _each_distinct(function: Function, site: CallSite, vectors: list[Vector], memo: dict[Hashable, Any]) -> Vector:
    """Results through a memo, which maps each distinct row of arguments to its word, None (NULL) or error."""
    if site.count <= _SLICE:
        return _collect(site, _remembered(function, site, vectors, site.count, memo))
    parts = []
    for at in range(0, site.count, _SLICE):
        poll()
        rows = slice(at, at + _SLICE)
        part = [Vector(v.words[rows], None if v.nulls is None else v.nulls[rows]) for v in vectors]
        parts.append(_collect(site, _remembered(function, site, part, min(_SLICE, site.count - at), memo), at))
    nulls = [np.zeros(len(p.words), np.bool_) if p.nulls is None else p.nulls for p in parts]
    return with_nulls(np.concatenate([p.words for p in parts]), np.concatenate(nulls))


def _remembered(
    function: Function, site: CallSite, vectors: list[Vector], count: int, memo: dict[Hashable, Any]
) -> list[int | SqlError | None]:
    keys = _row_keys(vectors, count)
    # another thread may clear the memo at any time: each key is read once
    results = [memo.get(key, _ABSENT) for key in keys]
    missing: dict[Hashable, int] = {}
    for row, known in enumerate(results):
        if known is _ABSENT:
            missing.setdefault(keys[row], row)
    if missing:
        rows = np.fromiter(missing.values(), np.int64, len(missing))
        found = dict(zip(missing, _compute(function, site, [_pick(v, rows) for v in vectors]), strict=True))
        results = [found[key] if known is _ABSENT else known for key, known in zip(keys, results, strict=True)]
        if len(memo) + len(found) > _MEMO_LIMIT:
            memo.clear()
        if len(found) <= _MEMO_LIMIT:
            memo.update(found)
    return results


def _pick(vector: Vector, rows: Words) -> Vector:
    return Vector(vector.words[rows], None if vector.nulls is None else some(vector.nulls[rows]))


def _compute(function: Function, site: CallSite, vectors: list[Vector]) -> list[int | SqlError | None]:
    """Runs the implementation on each row. Gives a result word, None (NULL) or an error for each."""
    count = len(vectors[0].words) if vectors else site.count
    taking = Taking()
    try:
        if count <= _BLOCK:
            return _block(function, site, vectors, count, taking)
        words: list[int | SqlError | None] = []
        for at in range(0, count, _BLOCK):
            rows = slice(at, at + _BLOCK)
            part = [Vector(v.words[rows], None if v.nulls is None else v.nulls[rows]) for v in vectors]
            words += _block(function, site, part, min(_BLOCK, count - at), taking)
        return words
    finally:
        taking.release()


def _block(
    function: Function, site: CallSite, vectors: list[Vector], count: int, taking: Taking
) -> list[int | SqlError | None]:
    """The same for few rows, whose values are decoded together."""
    poll()
    dictionary = site.context.dictionary
    datums = [decode(t, v, dictionary) for t, v in zip(site.args, vectors, strict=True)]
    values, errors = _values(function, site, count, datums, taking)
    encoded = encode(site.result, values, dictionary)
    words: list[Any] = encoded.words.tolist()
    if encoded.nulls is not None:
        words = [None if null else word for word, null in zip(words, encoded.nulls.tolist(), strict=True)]
        for i, failure in errors.items():
            words[i] = failure
    return words


def _values(
    function: Function, site: CallSite, count: int, datums: list[Any], taking: Taking
) -> tuple[list[object], dict[int, SqlError]]:
    """The implementation's values, and the errors of those rows (None among the values) that fail."""
    implementation = function.implementation
    first = (site,) if function.needs_site else ()
    here = may_move()
    large = site.result.storage is not Storage.DIRECT
    values: list[object] = []
    errors: dict[int, SqlError] = {}
    for i, row in enumerate(zip(*datums, strict=True) if datums else [()] * count):
        if here and any(type(v) in _SIZED and len(v) > _LONG for v in row):
            move()
        try:
            value = implementation(*first, *row)
        except SqlError as error:
            error.__traceback__ = None
            errors[i] = error
            value = None
        values.append(value)
        poll()
        if large:
            taking.add(getsizeof(value))
    return values, errors


def _collect(site: CallSite, results: list[int | SqlError | None], first: int = 0) -> Vector:
    """Collects result words into a vector; errors fail their rows, which are counted from ``first`` on."""
    try:
        return Vector(np.array(results, np.int64))
    except TypeError:
        pass
    nulls = np.zeros(len(results), np.bool_)
    words = np.zeros(len(results), np.int64)
    for row, result in enumerate(results):
        if isinstance(result, int):
            words[row] = result
            continue
        nulls[row] = True
        if result is not None:
            site.fail(np.array([first + row]), result)
    return Vector(words, nulls)
