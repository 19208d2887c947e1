"""The rows under evaluation: their columns, and the failures met so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words
from planner.expr.context import Context

_Item = TypeVar("_Item", np.int64, np.bool_)


@dataclass(frozen=True, slots=True)
class Failures:
    """The rows whose expression failed: ``rows`` int64[m], ascending, and the first error of each."""

    rows: Words
    errors: list[SqlError]


class RowBatch:
    """``count`` rows. ``failed`` holds (row indices, error) in the order in which they occurred; from then on a failed
    row's values are NULL, and only its first error counts. ``shared``: results of expressions that occur twice."""

    __slots__ = ("columns", "context", "count", "failed", "shared")

    def __init__(self, columns: Sequence[Vector], count: int, context: Context) -> None:
        self.columns = columns
        self.count = count
        self.context = context
        self.failed: list[tuple[Words, SqlError]] = []
        self.shared: dict[int, Vector] = {}

    def column(self, index: int) -> Vector:
        return self.columns[index]

    def child(self, rows: Words) -> RowBatch:
        """A batch of these rows only; ``absorb`` takes its failures back."""
        return _Child(self, rows)

    def absorb(self, child: RowBatch, rows: Words) -> None:
        """Takes over the failures of a child made of ``rows``."""
        for failed, error in child.failed:
            self.failed.append((rows[failed], error))

    def failures(self) -> Failures | None:
        """Each failed row's first error; None if no row failed."""
        if not self.failed:
            return None
        first: dict[int, SqlError] = {}
        for rows, error in self.failed:
            for row in rows.tolist():
                first.setdefault(row, error)
        order = sorted(first)
        return Failures(np.array(order, np.int64), [first[row] for row in order])


class _Child(RowBatch):
    """A batch that takes columns from its parent when they are first read."""

    __slots__ = ("parent", "rows", "taken")

    def __init__(self, parent: RowBatch, rows: Words) -> None:
        super().__init__((), len(rows), parent.context)
        self.parent = parent
        self.rows = rows
        self.taken: dict[int, Vector] = {}

    def column(self, index: int) -> Vector:
        vector = self.taken.get(index)
        if vector is None:
            vector = self.taken[index] = take(self.parent.column(index), self.rows)
        return vector


def take(vector: Vector, rows: Words) -> Vector:
    """The vector's values at these rows."""
    if vector.nulls is None:
        return Vector(vector.words[rows])
    nulls = vector.nulls[rows]
    return Vector(vector.words[rows], nulls if np.count_nonzero(nulls) else None)


def put(words: Words, nulls: Mask, rows: Words | None, vector: Vector) -> None:
    """Writes a vector's values to these rows (None: all) of a result."""
    where = slice(None) if rows is None else rows
    words[where] = vector.words
    nulls[where] = False if vector.nulls is None else vector.nulls


def nulls_of(vector: Vector) -> Mask:
    """A mask of the rows that are NULL."""
    return np.zeros(len(vector.words), np.bool_) if vector.nulls is None else vector.nulls


def taken(vector: Vector, rows: Words | slice) -> Vector:
    """The vector's values at some rows; a constant stays one."""
    nulls = None if vector.nulls is None else some(vector.nulls[rows])
    words = vector.words[rows]
    if vector.words.strides == (0,):
        words = np.broadcast_to(vector.words[:1], len(words))
    return Vector(words, nulls)


def equals(vector: Vector, value: int) -> Mask:
    """A mask of the rows that have this word and are not NULL."""
    mask: Mask = vector.words == value
    return mask if vector.nulls is None else mask & ~vector.nulls


def some(nulls: Mask) -> Mask | None:
    """The null mask, or None if nothing is NULL."""
    return nulls if np.count_nonzero(nulls) else None


def with_nulls(words: Words, nulls: Mask | None) -> Vector:
    """A vector whose NULLs have the word 0."""
    if nulls is None or not np.count_nonzero(nulls):
        return Vector(words)
    return Vector(np.where(nulls, np.int64(0), words), nulls)


def constant_vector(word: int, count: int) -> Vector:
    """A vector of ``count`` equal words, stored once (stride 0, read-only)."""
    single = np.array([word], np.int64)
    return Vector(single if count == 1 else repeated(single, count))


def repeated(single: NDArray[_Item], count: int) -> NDArray[_Item]:
    """The item of an array of one, ``count`` times, stored once (stride 0, read-only).

    ``np.broadcast_to`` gives the same, and takes several times as long.
    """
    found: NDArray[_Item] = np.ndarray((count,), single.dtype, single, 0, (0,))
    found.flags.writeable = False
    return found
