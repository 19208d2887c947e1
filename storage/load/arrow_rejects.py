"""Finds the rows of Arrow columns that cannot be loaded, by bisection, so that the converters need not report them.

Cost: for k bad rows of n, O(n · log k) value conversions; nothing if no row is bad.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ivm.errors import SqlError
from ivm.rows import Mask, Vector
from storage.dictionary import Dictionary
from storage.load.arrow import column_vector
from storage.load.columns import LoadColumn
from storage.load.rejects import Rejects

_OF_TYPES = "42804"
"""An error that is not any row's fault."""


def column_vectors(arrays: Sequence[pa.Array], columns: Sequence[LoadColumn], dictionary: Dictionary) -> list[Vector]:
    """Each column's words. Raises as ``column_vector``."""
    return [column_vector(array, column, dictionary) for array, column in zip(arrays, columns, strict=True)]


def without_bad(
    arrays: Sequence[pa.Array], columns: Sequence[LoadColumn], dictionary: Dictionary, rejects: Rejects
) -> tuple[list[pa.Array], int]:
    """The columns without the rows that do not convert, and the number of rows left. Raises 42804, TooManyRejects."""
    count = len(arrays[0])
    first: dict[int, tuple[SqlError, str]] = {}
    for array, column in zip(arrays, columns, strict=True):
        for row, error in _bad(array, column, dictionary, 0, rejects.most):
            first.setdefault(row, (error, column.name))
    kept: Mask = np.ones(count, np.bool_)
    for row in sorted(first):
        kept[row] = False
        error, name = first[row]
        rejects.add(error, _row_text(arrays, row), column=name)
    mask = pa.array(kept)
    return [array.filter(mask) for array in arrays], int(kept.sum())


def _bad(
    array: pa.Array, column: LoadColumn, dictionary: Dictionary, start: int, most: int
) -> Iterator[tuple[int, SqlError]]:
    """Rows of a column that do not convert, ascending, with their errors; if more than ``most``, at least the first of
    them."""
    try:
        column_vector(array, column, dictionary)
    except SqlError as error:
        if error.sqlstate == _OF_TYPES:
            raise
        if len(array) == 1:
            yield start, error
            return
        half, found = len(array) // 2, 0
        for part, at in ((array.slice(0, half), start), (array.slice(half), start + half)):
            for bad in _bad(part, column, dictionary, at, most):
                yield bad
                found += 1
                if found > most:
                    return


def _row_text(arrays: Sequence[pa.Array], row: int) -> str:
    return "(" + ", ".join(_value_text(array.slice(row, 1)) for array in arrays) + ")"


def _value_text(array: pa.Array) -> str:
    """One value as Arrow prints it, bytes in hexadecimal. Not via a Python value: Python lacks some of Arrow's
    times."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.null_count:
        return "null"
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    types = pa.types
    if types.is_binary(array.type) or types.is_large_binary(array.type) or types.is_fixed_size_binary(array.type):
        return "\\x" + bytes(array[0].as_py()).hex()
    if types.is_nested(array.type):
        return str(array[0])
    return str(array.cast(pa.string())[0].as_py())
