"""Columns of arrays as bytes (layout: ``storage.types.arrays``), and those of their elements one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ivm.rows import Bytes, Mask, Words
from ivm.stops import room
from ivm.words import Kind, SqlType, Storage
from storage.dictionary import Dictionary
from storage.text_columns import LARGE, TextColumn, TooLarge, decimals, interned, joined, of_parts
from storage.types.numeric import INLINE_LIMIT, inline_words

THEMSELVES: Final = (Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.UNKNOWN, Kind.JSON, Kind.JSONB, Kind.NUMERIC)
"""Types of elements whose bytes are their text."""
_ITEM_BYTES: Final = 64
"""What the columns of an element take."""


@dataclass(slots=True)
class ArrayColumn:
    """Row i's array has ``depths[i]`` dimensions, of which the first begins at ``lowers[i]``, and ``counts[i]``
    elements; ``bytes``: its bytes."""

    bytes: TextColumn
    depths: Words
    lowers: Words
    counts: Words


@dataclass(slots=True)
class Items:
    """The elements of a column of arrays: those of row i are number ``firsts[i]`` to ``firsts[i+1]``, ``rows`` says the
    row of each. ``bytes``: those of an element in an array, none for NULL."""

    firsts: Words
    rows: Words
    bytes: TextColumn
    nulls: Mask


def arrays(column: TextColumn) -> ArrayColumn:
    """What the arrays with these bytes are."""
    from ivm.kernels import arrays as kernels

    depths, lowers, counts = (np.empty(len(column), np.int64) for _ in range(3))
    kernels.read_shapes(column.starts, depths, lowers, counts)
    return ArrayColumn(column, depths, lowers, counts)


def items_of(column: ArrayColumn) -> Items:
    """The elements, of arrays of many dimensions in the order of their bytes. Raises TooLarge."""
    from ivm.kernels import arrays as kernels

    firsts = np.zeros(len(column.counts) + 1, np.int64)
    np.cumsum(column.counts, out=firsts[1:])
    count = int(firsts[-1])
    if _ITEM_BYTES * count > 4 * LARGE:
        raise TooLarge
    room(_ITEM_BYTES * count)
    starts, lengths = np.empty(count, np.int64), np.empty(count, np.int64)
    kernels.find_elements(column.bytes.starts, firsts, starts, lengths)
    nulls = lengths == kernels.NULL
    found = TextColumn(starts, np.where(nulls, 0, lengths), column.bytes.held)
    return Items(firsts, np.repeat(np.arange(len(column.counts)), column.counts), found, nulls)


def together(found: Items, *parts: TextColumn) -> TextColumn:
    """Row by row what the parts have for each of its elements, one after the other. Raises TooLarge."""
    whole = joined(*parts)
    ends = np.concatenate([[0], np.cumsum(whole.lengths)])
    begins = ends[found.firsts]
    starts = begins[:-1] + (whole.starts[0] if len(whole) else 0)
    return TextColumn(starts, np.diff(begins), whole.held)


def item_words(type_: SqlType, found: TextColumn, dictionary: Dictionary) -> tuple[Words, Mask]:
    """The words of elements that are not NULL, as values of the type without a typmod, and those that must be read
    otherwise. Raises TooLarge."""
    from ivm.kernels import arrays as kernels

    if type_.kind is Kind.NUMERIC:
        mantissas, scales = decimals(found)
        return inline_words(mantissas, scales), (scales < 0) | (np.abs(mantissas) >= INLINE_LIMIT)
    if type_.storage is not Storage.DIRECT:
        return interned(dictionary, found), np.zeros(len(found), np.bool_)
    words = np.empty(len(found), np.int64)
    kernels.read_words(found.starts, words)
    return words, np.zeros(len(found), np.bool_)


def word_bytes(words: Words) -> TextColumn:
    """The bytes that words of a DIRECT type which is no numeric have in an array."""
    return of_parts(_big_endian(words, ">i8"), 8 * np.arange(len(words)), np.full(len(words), 8))


def headers(lengths: Words) -> TextColumn:
    """How arrays of one dimension begin that have so many elements, the first at 1: 5 bytes; none of an empty one."""
    data = np.ones((len(lengths), 5), np.uint8)
    data[:, 1:] = lengths.astype(">u4").view(np.uint8).reshape(-1, 4)
    data[lengths == 0, 0] = 0
    return of_parts(data.reshape(-1), 5 * np.arange(len(lengths)), np.where(lengths == 0, 1, 5))


def sizes(lengths: Words, nulls: Mask) -> TextColumn:
    """What stands before an element of so many bytes: 4 bytes."""
    data = _big_endian(np.where(nulls, 0, lengths + 1), ">u4")
    return of_parts(data, 4 * np.arange(len(lengths)), np.full(len(lengths), 4))


def _big_endian(numbers: Words, form: str) -> Bytes:
    return np.concatenate([numbers.astype(form).view(np.uint8), np.zeros(1, np.uint8)])
