"""AND, OR, CASE, COALESCE and TRY, which evaluate each argument only on the rows that reach it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ivm.rows import Mask, Vector, Words
from planner.expr.rows import RowBatch, equals, nulls_of, put, some

Run = Callable[[RowBatch], Vector]


def run_and(args: tuple[Run, ...], safe: tuple[bool, ...]) -> Run:
    """Three-valued AND; an argument is evaluated only where no earlier one is false."""
    return _junction(args, safe, decided=0)


def run_or(args: tuple[Run, ...], safe: tuple[bool, ...]) -> Run:
    """Three-valued OR; an argument is evaluated only where no earlier one is true."""
    return _junction(args, safe, decided=1)


def _junction(args: tuple[Run, ...], safe: tuple[bool, ...], decided: int) -> Run:
    """AND or OR. ``decided``: the value that decides a row, 0 for AND, 1 for OR."""

    def run(batch: RowBatch) -> Vector:
        result = args[0](batch)
        for arg, harmless in zip(args[1:], safe[1:], strict=True):
            if harmless:
                result = _combine(result, arg(batch), decided)
                continue
            open_rows = result.words != decided
            if result.nulls is not None:
                open_rows |= result.nulls
            waiting = np.count_nonzero(open_rows)
            if waiting == 0:
                return result
            if waiting == batch.count:
                result = _combine(result, arg(batch), decided)
                continue
            rows = np.flatnonzero(open_rows)
            child = batch.child(rows)
            vector = arg(child)
            batch.absorb(child, rows)
            result = _combine(result, _among(vector, rows, batch.count, 1 - decided), decided)
        return result

    return run


def _among(vector: Vector, rows: Words, count: int, elsewhere: int) -> Vector:
    """Widens a vector of some rows to all rows, with a neutral value on the others."""
    words = np.full(count, elsewhere, np.int64)
    words[rows] = vector.words
    if vector.nulls is None:
        return Vector(words)
    nulls = np.zeros(count, np.bool_)
    nulls[rows] = vector.nulls
    return Vector(words, nulls)


def _combine(left: Vector, right: Vector, decided: int) -> Vector:
    words = left.words & right.words if decided == 0 else left.words | right.words
    if left.nulls is None and right.nulls is None:
        return Vector(words)
    settled = equals(left, decided) | equals(right, decided)
    nulls = nulls_of(left) | nulls_of(right)
    nulls &= ~settled
    # a NULL's word is 0, so there OR yields its other argument's word and AND yields 0
    if decided == 1:
        words = np.where(nulls, 0, words)
    return Vector(words, some(nulls))


def is_true(vector: Vector) -> Mask:
    """The rows where a boolean is true."""
    return equals(vector, 1)


def run_case(arms: tuple[tuple[Run, Run], ...], otherwise: Run) -> Run:
    """Searched CASE."""

    def run(batch: RowBatch) -> Vector:
        words, nulls = np.zeros(batch.count, np.int64), np.zeros(batch.count, np.bool_)
        rows: Words | None = None
        rest = batch
        for condition, value in arms:
            met = is_true(condition(rest))
            if rows is not None:
                _absorb(batch, rest, rows)
            hits = np.count_nonzero(met)
            if hits == rest.count and rows is None:
                return value(batch)
            if hits:
                chosen = np.flatnonzero(met) if rows is None else rows[met]
                _fill(batch, value, chosen, words, nulls)
            if hits == rest.count:
                return Vector(words, some(nulls))
            if hits:
                rows = np.flatnonzero(~met) if rows is None else rows[~met]
                rest = batch.child(rows)
        if rows is None:
            return otherwise(batch)
        _fill(batch, otherwise, rows, words, nulls)
        return Vector(words, some(nulls))

    return run


def _absorb(batch: RowBatch, child: RowBatch, rows: Words) -> None:
    batch.absorb(child, rows)
    child.failed.clear()


def _fill(batch: RowBatch, value: Run, rows: Words, words: Words, nulls: Mask) -> None:
    child = batch.child(rows)
    put(words, nulls, rows, value(child))
    batch.absorb(child, rows)


def run_coalesce(args: tuple[Run, ...], _safe: tuple[bool, ...]) -> Run:
    """The first argument that is not NULL. A failed argument is NULL as well, but its row has already failed."""

    def run(batch: RowBatch) -> Vector:
        first = args[0](batch)
        if first.nulls is None:
            return first
        words, nulls = first.words.copy(), first.nulls.copy()
        for arg in args[1:]:
            rows = np.flatnonzero(nulls)
            if not len(rows):
                break
            child = batch.child(rows)
            put(words, nulls, rows, arg(child))
            batch.absorb(child, rows)
        return Vector(words, some(nulls))

    return run


def run_try(arg: Run) -> Run:
    """NULL on the rows where the argument fails."""

    def run(batch: RowBatch) -> Vector:
        rows = np.arange(batch.count)
        child = batch.child(rows)
        vector = arg(child)
        failures = child.failures()
        if failures is None:
            return vector
        words, nulls = np.zeros(batch.count, np.int64), np.zeros(batch.count, np.bool_)
        put(words, nulls, None, vector)
        words[failures.rows], nulls[failures.rows] = 0, True
        return Vector(words, nulls)

    return run
