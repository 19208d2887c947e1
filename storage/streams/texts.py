"""Columns of text → words, by the types' own input functions, as COPY reads them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from ivm.errors import SqlError
from ivm.rows import Vector
from ivm.words import Kind
from storage import codec
from storage.dictionary import Dictionary
from storage.load.arrow import column_vector
from storage.load.columns import LoadColumn
from storage.text import parse_datum

_STRINGS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME)


def text_vector(texts: pa.Array, column: LoadColumn, dictionary: Dictionary) -> Vector:
    """A string array's values as words of the column's type, each distinct text parsed once.

    Raises 23502, and what the type's input function raises, with the column's name.
    """
    if column.type.kind in _STRINGS:
        return column_vector(texts, column, dictionary)
    if texts.null_count and not column.nullable:
        raise SqlError("23502", f'null value in column "{column.name}" violates not-null constraint')
    encoded = texts.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    try:
        values = [parse_datum(column.type, text) for text in distinct]
    except SqlError as error:
        detail = f'It is a value of column "{column.name}".'
        raise SqlError(error.sqlstate, error.message, error.detail or detail, error.hint) from error
    known = codec.encode(column.type, values, dictionary).words if distinct else np.zeros(1, np.int64)
    places = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    words = known[places] if len(places) else np.zeros(0, np.int64)
    if not texts.null_count:
        return Vector(words)
    nulls = texts.is_null().to_numpy(zero_copy_only=False)
    return Vector(np.where(nulls, 0, words), nulls)
