"""Fields → lines of JSON and CSV files, column by column.

JSON follows Postgres's ``to_json``: numbers as printed, NaN and infinities as strings, dates and timestamps in ISO
8601. CSV follows ``COPY TO``: Postgres's text, an empty field for NULL, quotes where needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm.errors import SqlError
from ivm.rows import Vector
from ivm.words import Kind, SqlType
from storage.dictionary import Dictionary
from storage.sinks.envelope import Nested, SinkField, SinkFields
from storage.types import codec
from storage.types.text import format_datum, format_text
from storage.types.text_style import DEFAULT_STYLE

_INTEGERS: Final = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.OID)
_STAMPS: Final = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_FLOATS: Final = (Kind.FLOAT4, Kind.FLOAT8)
_NO_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")


def json_lines(fields: SinkFields, dictionary: Dictionary) -> bytes:
    """One JSON object per row, each on its own line."""
    return _joined([_object(fields, dictionary)])


def csv_lines(fields: SinkFields, dictionary: Dictionary) -> bytes:
    """One line per row. 0A000 for nested columns."""
    columns = []
    for field in fields:
        if isinstance(field, Nested):
            raise SqlError("0A000", "ENVELOPE DEBEZIUM needs rows inside rows, which FORMAT csv does not have",
                           hint="Use FORMAT parquet or jsonl.")  # fmt: skip
        columns.append(_csv(field, dictionary, alone=len(fields) == 1))
    return _joined(columns)


def csv_header(names: Sequence[str]) -> bytes:
    """The header line."""
    return ",".join(_quoted(name) for name in names).encode() + b"\n"


def _joined(columns: list[pa.Array]) -> bytes:
    if not len(columns[0]):
        return b""
    lines = columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, _text(","))
    ended = pc.binary_join_element_wise(lines, _text(""), _text("\n"))
    _, offsets, data = ended.buffers()
    ends = np.frombuffer(offsets, np.int64)[ended.offset : ended.offset + len(ended) + 1]
    return bytes(memoryview(data)[int(ends[0]) : int(ends[-1])])


def _text(value: str) -> pa.Scalar[Any]:
    return pa.scalar(value, pa.large_string())


def _object(fields: SinkFields, dictionary: Dictionary) -> pa.Array:
    parts: list[Any] = []
    for i, field in enumerate(fields):
        name = encode_basestring(field.name)
        parts += [_text(("{" if not i else ",") + name + ":"), _values(field, dictionary)]
    if not parts:
        return pa.array(["{}"], pa.large_string())
    return pc.binary_join_element_wise(*parts, _text("}"), _text(""))


def _values(field: SinkField | Nested, dictionary: Dictionary) -> pa.Array:
    if isinstance(field, Nested):
        inner = _object(field.fields, dictionary)
        return pc.if_else(pa.array(field.nulls), _text("null"), inner)
    type_, vector = field.column.type, field.vector
    words = vector.words if vector.nulls is None else vector.words[~vector.nulls]
    if type_.kind in _INTEGERS:
        found = pa.array(np.ascontiguousarray(words)).cast(pa.large_string())
    else:
        distinct, places = np.unique(words, return_inverse=True)
        shown = pa.array(_json(type_, distinct, dictionary), pa.large_string())
        found = shown.take(pa.array(places.ravel()))
    return _with_nulls(found, vector, "null")


def _with_nulls(found: pa.Array, vector: Vector, null: str) -> pa.Array:
    if vector.nulls is None:
        return found
    indices = np.maximum(np.cumsum(~vector.nulls) - 1, 0)
    return pc.fill_null(found.take(pa.array(indices, mask=vector.nulls)), _text(null))


def _json(type_: SqlType, distinct: Any, dictionary: Dictionary) -> list[str]:
    if type_.kind is Kind.ARRAY:
        return [_datum(type_, datum) for datum in codec.decode(type_, Vector(distinct), dictionary)]
    texts = format_text(type_, Vector(distinct), dictionary, DEFAULT_STYLE)
    return _shown(type_, [text.decode() for text in texts if text is not None])


def _shown(type_: SqlType, texts: list[str]) -> list[str]:
    """Postgres's text of values, as JSON."""
    if type_.kind is Kind.BOOL:
        return ["true" if text == "t" else "false" for text in texts]
    if type_.kind in (Kind.JSON, Kind.JSONB) or type_.kind in _INTEGERS:
        return texts
    if type_.kind is Kind.NUMERIC or type_.kind in _FLOATS:
        return [f'"{text}"' if text in _NO_NUMBERS else text for text in texts]
    if type_.kind in _STAMPS:
        return ['"' + text.replace(" ", "T", 1) + '"' for text in texts]
    return list(map(encode_basestring, texts))


def _datum(type_: SqlType, datum: Any) -> str:
    if datum is None:
        return "null"
    if type_.kind is Kind.ARRAY:
        assert type_.element is not None, "an array has an element's type"
        nested = type_.element.kind not in (Kind.INTERVAL, Kind.RECORD)
        parts = (_datum(type_ if nested and isinstance(d, tuple) else type_.element, d) for d in datum)
        return f"[{','.join(parts)}]"
    return _shown(type_, [format_datum(type_, datum, DEFAULT_STYLE)])[0]


def _csv(field: SinkField, dictionary: Dictionary, alone: bool) -> pa.Array:
    vector = field.vector
    words = vector.words if vector.nulls is None else vector.words[~vector.nulls]
    shown = pa.array(format_text(field.column.type, Vector(np.ascontiguousarray(words)), dictionary), pa.large_binary())
    text = shown.cast(pa.large_string())
    special = pc.or_(pc.match_substring_regex(text, r'[",\r\n]'), pc.equal(text, _text("")))
    if alone:
        special = pc.or_(special, pc.equal(text, _text("\\.")))
    doubled = pc.replace_substring(text, '"', '""')
    wrapped = pc.binary_join_element_wise(_text('"'), doubled, _text('"'), _text(""))
    return _with_nulls(pc.if_else(special, wrapped, text), vector, "")


def _quoted(name: str) -> str:
    special = any(c in name for c in '",\r\n') or not name
    return '"' + name.replace('"', '""') + '"' if special else name
