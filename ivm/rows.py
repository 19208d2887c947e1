"""Rows as matrices of words, and their columns as vectors; packs and unpacks the null words of ``ivm.words``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

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


FEW: Final = 64
"""Up to this many rows, what is done for all columns at once is faster than what is done for each."""


def null_mask(rows: Words, width: int) -> Mask:
    """Which cells of a row matrix with null words are NULL: bool[n, width]."""
    bits = np.ascontiguousarray(rows[:, width:], "<i8").view(np.uint8)
    return np.unpackbits(bits, axis=1, count=width, bitorder="little").view(np.bool_)


def null_bits(mask: Mask) -> Words:
    """The null words of rows in which these cells are NULL; the inverse of ``null_mask``."""
    count, width = mask.shape
    bits = np.zeros((count, 8 * ((width + 63) // 64)), np.uint8)
    packed = np.packbits(mask, axis=1, bitorder="little")
    bits[:, : packed.shape[1]] = packed
    return bits.view("<i8").astype(np.int64, copy=False)


def unpack(rows: Words, schema: Schema) -> list[Vector]:
    """The columns of a row matrix."""
    width = len(schema)
    if not null_words(schema):
        return [Vector(rows[:, i]) for i in range(width)]
    if len(rows) <= FEW:
        mask = np.asfortranarray(null_mask(rows, width))
        some = set(np.flatnonzero(mask.any(axis=0)).tolist())
        return [
            Vector(rows[:, i], mask[:, i] if i in some and column.nullable else None) for i, column in enumerate(schema)
        ]
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
