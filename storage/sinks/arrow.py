"""Words → Arrow columns, in bulk: the inverse of ``storage.load.arrow``.

SQL types with an Arrow equivalent use it. Unconstrained numerics, intervals, uuid, jsonb, enum labels and rows become
Postgres's text, which ``storage.load.arrow`` reads back. Infinite dates and timestamps become the type's largest value
and its negative, as in DuckDB. 22003: a NaN in a numeric(p, s), which Arrow cannot represent. 22008: a timestamp after
the year 294246, whose µs since 1970 overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words, unpack
from ivm.words import NEGATIVE_INFINITY, POSITIVE_INFINITY, ColumnType, Kind, SqlType, Storage
from storage.dictionary import Dictionary
from storage.types import codec
from storage.types.calendar import DAY, EPOCH_DAYS
from storage.types.numeric import DIRECT_NAN, WIDE, scale_of
from storage.types.text import format_text
from storage.types.text_style import DEFAULT_STYLE
from storage.types.type_names import format_type

_EPOCH_2000: Final = EPOCH_DAYS * DAY
_DATE_INFINITY: Final = 2**31 - 1
_INFINITY: Final = 2**63 - 1
_MOST_DIGITS: Final = 38
_PLAIN: Final = {
    Kind.BOOL: pa.bool_(), Kind.INT2: pa.int16(), Kind.INT4: pa.int32(), Kind.INT8: pa.int64(), Kind.OID: pa.int64(),
    Kind.FLOAT4: pa.float32(), Kind.FLOAT8: pa.float64(), Kind.DATE: pa.date32(), Kind.TIME: pa.time64("us"),
    Kind.TIMESTAMP: pa.timestamp("us"), Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"), Kind.BYTEA: pa.large_binary(),
}  # fmt: skip
_BYTES_ARE_TEXT: Final = (
    Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.UNKNOWN, Kind.JSON, Kind.JSONB,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SinkColumn:
    """A column to write, and its name in the output."""

    name: str
    column: ColumnType


def arrow_type(type_: SqlType) -> pa.DataType:
    """The Arrow type of a column of this SQL type."""
    if type_.kind in _PLAIN:
        return _PLAIN[type_.kind]
    if type_.kind is Kind.ARRAY:
        assert type_.element is not None, "an array has an element's type"
        return pa.list_(arrow_type(type_.element))
    if type_.kind is Kind.NUMERIC and _is_decimal(type_):
        return pa.decimal128(_digits(type_), max(type_.scale or 0, 0))
    return pa.large_string()


def arrow_schema(columns: Sequence[SinkColumn]) -> pa.Schema:
    """The schema of ``to_arrow``'s result."""
    return pa.schema([pa.field(c.name, arrow_type(c.column.type), c.column.nullable) for c in columns])


def to_arrow(rows: Words, columns: Sequence[SinkColumn], dictionary: Dictionary) -> pa.RecordBatch:
    """Converts rows int64[n, row_width] of these columns. Cost: linear; a Python object per value only inside arrays
    and for types that become text."""
    vectors = unpack(rows, tuple(c.column for c in columns))
    arrays = [column_to_arrow(v, c.name, c.column.type, dictionary) for v, c in zip(vectors, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns))


def column_to_arrow(vector: Vector, name: str, type_: SqlType, dictionary: Dictionary) -> pa.Array:
    """One column's words, int64[n], as an array of ``arrow_type``. Elements of arrays are interned in the dictionary,
    so pass a scratch one."""
    words = np.ascontiguousarray(vector.words)
    if type_.storage is Storage.DIRECT:
        return _direct(words, vector.nulls, name, type_)
    if type_.kind in _BYTES_ARE_TEXT or type_.kind is Kind.BYTEA:
        return _packed(words, vector.nulls, type_, dictionary)
    if type_.kind is Kind.ARRAY:
        return _lists(words, vector.nulls, name, type_, dictionary)
    if type_.kind is Kind.NUMERIC and _is_decimal(type_):
        return _wide_decimals(words, vector.nulls, name, type_, dictionary)
    return _texts(vector, type_, dictionary)


def _is_decimal(type_: SqlType) -> bool:
    return type_.precision is not None and _digits(type_) <= _MOST_DIGITS


def _digits(type_: SqlType) -> int:
    """The digits that hold a numeric(p, s) in a file, whose scales are not negative and not above the precision."""
    precision, scale = type_.precision or 0, type_.scale or 0
    return max(precision - min(scale, 0), scale)


def _direct(words: Words, nulls: Mask | None, name: str, type_: SqlType) -> pa.Array:
    kind = type_.kind
    if kind is Kind.NUMERIC and _is_decimal(type_):
        return _decimals(words, nulls, name, type_)
    if kind not in _PLAIN:
        return _texts(Vector(words, nulls), type_, None)
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        values: np.ndarray[Any, Any] = _stamps(words, name)
    else:
        values = _CONVERTERS[kind](words) if kind in _CONVERTERS else words
    return pa.array(values, mask=nulls).cast(_PLAIN[kind])


def _singles(words: Words) -> np.ndarray[Any, Any]:
    singles: np.ndarray[Any, Any] = codec.word_to_float(words).astype(np.float32)
    return singles


def _dates(words: Words) -> np.ndarray[Any, Any]:
    days = np.where(words == POSITIVE_INFINITY, _DATE_INFINITY, words + EPOCH_DAYS)
    return np.where(words == NEGATIVE_INFINITY, -_DATE_INFINITY, days).astype(np.int32)


def _stamps(words: Words, name: str) -> np.ndarray[Any, Any]:
    latest = _INFINITY - 1 - _EPOCH_2000
    if ((words > latest) & (words != POSITIVE_INFINITY)).any():
        message = f'a timestamp of column "{name}" lies after the year 294246, which a file cannot hold'
        raise SqlError("22008", message, hint="Make a view that casts the column to text.")
    finite = np.where((words == POSITIVE_INFINITY) | (words == NEGATIVE_INFINITY), 0, words) + _EPOCH_2000
    micros = np.where(words == POSITIVE_INFINITY, _INFINITY, finite)
    return np.where(words == NEGATIVE_INFINITY, -_INFINITY, micros)


_CONVERTERS: Final[dict[Kind, Callable[[Words], np.ndarray[Any, Any]]]] = {
    Kind.BOOL: lambda words: words != 0, Kind.FLOAT4: _singles, Kind.FLOAT8: codec.word_to_float, Kind.DATE: _dates,
}  # fmt: skip
"""Of the types that have an Arrow type, those whose words are not its values."""


def _decimals(words: Words, nulls: Mask | None, name: str, type_: SqlType) -> pa.Array:
    if (words == DIRECT_NAN).any():
        raise _nan(name, type_)
    halves = np.empty((len(words), 2), np.int64)
    halves[:, 0] = words
    halves[:, 1] = words >> 63
    return _of_buffers(arrow_type(type_), len(words), nulls, [pa.py_buffer(halves)])


def _wide_decimals(words: Words, nulls: Mask | None, name: str, type_: SqlType, dictionary: Dictionary) -> pa.Array:
    scale = max(type_.scale or 0, 0)
    distinct, places = np.unique(words if nulls is None else words[~nulls], return_inverse=True)
    values = codec.decode(type_, Vector(distinct), dictionary)
    for value in values:
        if not value.is_finite():  # type: ignore[attr-defined]
            raise _nan(name, type_)
    exact = [WIDE.quantize(v, WIDE.scaleb(1, -scale)) if scale_of(v) != scale else v for v in values]  # type: ignore[arg-type]
    return _spread(pa.array(exact, arrow_type(type_)), places, nulls)


def _nan(name: str, type_: SqlType) -> SqlError:
    message = f'a value of column "{name}" is no finite number, which a file\'s {format_type(type_)} cannot hold'
    return SqlError("22003", message, hint="Make a view that casts the column to text or double precision.")


def _packed(words: Words, nulls: Mask | None, type_: SqlType, dictionary: Dictionary) -> pa.Array:
    """Interned bytes unchanged: one copy out of the arena."""
    data, offsets = dictionary.packed(words if nulls is None else words[~nulls])
    if nulls is not None:  # a NULL begins and ends where the next value begins
        places = np.zeros(len(words) + 1, np.int64)
        np.cumsum(~nulls, out=places[1:])
        offsets = offsets[places]
    buffers = [pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(data))]
    return _of_buffers(arrow_type(type_), len(words), nulls, buffers)


def _texts(vector: Vector, type_: SqlType, dictionary: Dictionary | None) -> pa.Array:
    """Postgres's text, formatted once per distinct value."""
    words, nulls = vector.words, vector.nulls
    distinct, places = np.unique(words if nulls is None else words[~nulls], return_inverse=True)
    shown = format_text(type_, Vector(distinct), _NONE if dictionary is None else dictionary, DEFAULT_STYLE)
    return _spread(pa.array(shown, pa.large_binary()).cast(pa.large_string()), places, nulls)


def _lists(words: Words, nulls: Mask | None, name: str, type_: SqlType, dictionary: Dictionary) -> pa.Array:
    """One-dimensional arrays as lists. 0A000 for more dimensions, since the SQL type does not tell how many."""
    element = type_.element
    assert element is not None, "an array has an element's type"
    distinct, places = np.unique(words if nulls is None else words[~nulls], return_inverse=True)
    values: list[Any] = codec.decode(type_, Vector(distinct), dictionary)
    parts = [part for value in values for part in value]
    if any(isinstance(part, tuple) for part in parts) and element.kind not in (Kind.INTERVAL, Kind.RECORD):
        hint = "Make a view with array_to_string or the array's text."
        raise SqlError("0A000", f'an array of column "{name}" has more than one dimension', hint=hint)
    inner = column_to_arrow(codec.encode(element, parts, dictionary), name, element, dictionary)
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(value) for value in values], out=ends[1:])
    lists = pa.ListArray.from_arrays(pa.array(ends), inner)
    return _spread(lists, places, nulls)


def _spread(distinct: pa.Array, places: np.ndarray[Any, Any], nulls: Mask | None) -> pa.Array:
    """Each distinct value at its positions; NULL where ``nulls`` is set."""
    if nulls is None:
        return distinct.take(pa.array(places.ravel()))
    indices = np.zeros(len(nulls), np.int64)
    indices[~nulls] = places.ravel()
    return distinct.take(pa.array(indices, mask=nulls))


def _of_buffers(type_: pa.DataType, count: int, nulls: Mask | None, buffers: list[pa.Buffer]) -> pa.Array:
    validity = None
    if nulls is not None:
        validity = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(type_, count, [validity, *buffers])


_NONE: Final = Dictionary(bytes(16))
"""For types whose text needs no dictionary."""
