"""Rows as matrices of words, and their columns as vectors; packs and unpacks the null words of ``ivm.words``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ivm.words import Schema, null_words, row_width

Words = NDArray[np.int64]
Mask = NDArray[np.bool_]
Bytes = NDArray[np.uint8]


def plain(words: Words) -> Words:
    """Words as the kernels of images take them: in one piece and not read-only, which are other types to numba. A copy
    if they are not so."""
    found = np.asarray(words, np.int64)
    return found if found.flags.c_contiguous and found.flags.writeable else found.copy()


@dataclass(frozen=True, slots=True)
class Vector:
    """One column: ``words`` int64[n] and ``nulls`` bool[n], None when nothing is NULL. A NULL's word is 0."""

    words: Words
    nulls: Mask | None = None


@dataclass(frozen=True, slots=True)
class RowSet:
    """Rows of one schema, repeated as often as they occur: int64[n, row_width(schema)]."""

    rows: Words
    schema: Schema

    def __len__(self) -> int:
        return len(self.rows)

    def columns(self) -> list[Vector]:
        """The columns as vectors, views of the rows where possible."""
        return unpack(self.rows, self.schema)


def unpack(rows: Words, schema: Schema) -> list[Vector]:
    """The columns of a row matrix."""
    width = len(schema)
    if not null_words(schema):
        return [Vector(rows[:, i]) for i in range(width)]
    vectors = []
    for i, column in enumerate(schema):
        nulls = None
        if column.nullable:
            nulls = (rows[:, width + i // 64] >> np.int64(i % 64)) & 1 != 0
            if not nulls.any():
                nulls = None
        vectors.append(Vector(rows[:, i], nulls))
    return vectors


def pack(vectors: Sequence[Vector], schema: Schema, count: int) -> Words:
    """The row matrix of columns, int64[count, row_width(schema)]; the inverse of ``unpack``."""
    width = len(schema)
    rows = np.zeros((count, row_width(schema)), np.int64)
    for i, vector in enumerate(vectors):
        if vector.nulls is None:
            rows[:, i] = vector.words
            continue
        assert schema[i].nullable or not vector.nulls.any(), "NULL in a column that is NOT NULL"
        rows[:, i] = np.where(vector.nulls, 0, vector.words)
        if schema[i].nullable:
            bit = np.int64(-(2**63)) if i % 64 == 63 else np.int64(1 << (i % 64))
            rows[:, width + i // 64] |= np.where(vector.nulls, bit, 0)
    return rows
