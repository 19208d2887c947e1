"""Values on the wire: parameters in, result rows out as DataRow messages; text (format 0) and binary (1) by type."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ivm.errors import SqlError
from ivm.rows import RowSet, Vector, Words
from ivm.words import NAMED_OIDS, NEGATIVE_INFINITY, POSITIVE_INFINITY, Kind, Schema, SqlType, Storage
from sql.pgwire.binary import decode_binary, encode_binary
from sql.pgwire.copy_kernels import plain_ascii
from sql.pgwire.kernels import INTEGER_WIDTH, assemble, format_integers, message_bytes
from sql.statements.results import RowsResult
from storage.dictionary import Dictionary
from storage.encodings.encoding import Encoding
from storage.types import codec
from storage.types.numeric import SCALE_BITS, word_text
from storage.types.text import format_datum, format_text, parse_datum
from storage.types.text_bulk import TEXT_KINDS
from storage.types.text_style import DEFAULT_STYLE, TextStyle

TEXT_FORMAT: Final = 0
BINARY_FORMAT: Final = 1
DIGITS: Final = {Kind.INT2: 4, Kind.INT4: 9, Kind.INT8: 18}
"""So many digits are never out of range."""

_SMALL: Final = 20
_LENGTH: Final = struct.Struct("!i")
_HEAD: Final = struct.Struct("!cih")
_INTEGERS: Final = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.OID)
_BINARY_DTYPES: Final[dict[Kind, str]] = {
    Kind.BOOL: ">u1", Kind.INT2: ">i2", Kind.INT4: ">i4", Kind.INT8: ">i8", Kind.OID: ">u4",
    **dict.fromkeys(NAMED_OIDS, ">u4"), Kind.DATE: ">i4", Kind.TIME: ">i8",
    Kind.TIMESTAMP: ">i8", Kind.TIMESTAMPTZ: ">i8", Kind.FLOAT4: ">f4", Kind.FLOAT8: ">f8",
}  # fmt: skip

_BULK: Final = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.FLOAT4, Kind.FLOAT8)
"""Types whose binary format is their word, or its float: any value is valid."""

Writer = Callable[[int], bytes]
"""From a word, not of NULL, to its bytes on the wire."""
Slices = tuple[NDArray[np.uint8], Words, Words]
"""The data, and each row's start and length in it (-1 for NULL)."""


def decode_parameter(type_: SqlType, format_: int, data: bytes, style: TextStyle = DEFAULT_STYLE) -> object:
    """Decodes a parameter's bytes. Raises the errors of the type's input function, 22021 and 22P05 if it is not text in
    the client's encoding."""
    if format_ == BINARY_FORMAT:
        return decode_binary(type_, data, style)
    if format_ != TEXT_FORMAT:
        raise SqlError("08P01", f"unsupported format code: {format_}")
    if style.encoding is not None:
        return parse_datum(type_, style.encoding.text_of(data), style)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        found = f"0x{data[error.start]:02x}"
        raise SqlError("22021", f'invalid byte sequence for encoding "UTF8": {found}') from None
    return parse_datum(type_, text, style)


def decode_words(type_: SqlType, fields: Sequence[bytes | None]) -> Words | None:
    """A column's binary fields → words, 0 for NULL, in bulk; None if they must be decoded one by one."""
    if type_.kind not in _BULK or type_.precision is not None:
        return None
    dtype = np.dtype(_BINARY_DTYPES[type_.kind])
    if any(f is not None and len(f) != dtype.itemsize for f in fields):
        return None
    absent = bytes(dtype.itemsize)
    values = np.frombuffer(b"".join([absent if f is None else f for f in fields]), dtype)
    if type_.kind in (Kind.FLOAT4, Kind.FLOAT8):
        return codec.float_to_word(values.astype(np.float64))
    return values.astype(np.int64)


def column_formats(formats: Sequence[int], count: int) -> list[int]:
    """Expands Bind's result formats to one per column: none means text, one applies to all."""
    if len(formats) == 0:
        return [TEXT_FORMAT] * count
    if len(formats) == 1:
        return list(formats) * count
    if len(formats) != count:
        raise SqlError("08P01", f"bind message has {len(formats)} result formats but query has {count} columns")
    return list(formats)


def as_described(result: RowsResult) -> Schema:
    """The schema of the rows with the types of rows that a client is told: untyped fields of ROW(…) are of type unknown
    there, and texts in the plan."""
    schema = result.rows.schema
    if not any(c.type.kind is Kind.RECORD for c in schema):
        return schema
    pairs = zip(schema, result.columns, strict=True)
    return tuple(replace(c, type=told.type) if c.type.kind is Kind.RECORD else c for c, told in pairs)


def encode_rows(
    rowset: RowSet, formats: Sequence[int], dictionary: Dictionary, style: TextStyle = DEFAULT_STYLE
) -> bytes:
    """All rows as concatenated DataRow messages. ``formats`` as in Bind (empty, one, or one per column)."""
    chosen = column_formats(formats, len(rowset.schema))
    if len(rowset.rows) <= _SMALL:
        return _encode_few(rowset, chosen, dictionary, style)
    return _encode_many(rowset, chosen, dictionary, style)


def _encode_few(rowset: RowSet, formats: list[int], dictionary: Dictionary, style: TextStyle) -> bytes:
    writers = row_writers(rowset.schema, formats, dictionary, style)
    return b"".join([encode_row(row, writers) for row in rowset.rows.tolist()])


def row_writers(schema: Schema, formats: Sequence[int], dictionary: Dictionary, style: TextStyle) -> list[Writer]:
    """What writes each column of a row. ``formats``: one per column."""
    known: dict[tuple[int, int], Writer] = {}  # by the identity of a type, which many columns share
    writers = []
    for column, form in zip(schema, formats, strict=True):
        key = id(column.type), form
        writer = known.get(key)
        if writer is None:
            writer = known[key] = _writer(column.type, form, dictionary, style)
        writers.append(writer)
    if (encoding := style.encoding) is not None:
        for i, (column, form) in enumerate(zip(schema, formats, strict=True)):
            if _is_text(column.type, form):
                writers[i] = _recoding(writers[i], encoding)
    return writers


def _is_text(type_: SqlType, format_: int) -> bool:
    """Whether values are sent as texts."""
    return format_ == TEXT_FORMAT or type_.kind in TEXT_KINDS


def _recoding(write: Writer, encoding: Encoding) -> Writer:
    return lambda word: encoding.of_utf8(write(word))


def encode_row(row: Sequence[int], writers: Sequence[Writer]) -> bytes:
    """The DataRow message of one row: its columns' words, then those of its null bits, if it has any."""
    width = len(writers)
    has_nulls = len(row) > width
    parts = [b""]
    for i, write in enumerate(writers):
        if has_nulls and row[width + i // 64] >> (i % 64) & 1:
            parts.append(b"\xff\xff\xff\xff")
        else:
            body = write(row[i])
            parts.append(_LENGTH.pack(len(body)) + body)
    body = b"".join(parts)
    return _HEAD.pack(b"D", len(body) + 6, width) + body


def _format_int(word: int) -> bytes:
    return b"%d" % word


def _writer(type_: SqlType, format_: int, dictionary: Dictionary, style: TextStyle) -> Writer:
    """A function from a word to its encoding on the wire."""
    kind = type_.kind
    if kind in TEXT_KINDS:
        return dictionary.lookup_one
    if format_ == TEXT_FORMAT:
        if kind in _INTEGERS:
            return _format_int
        if kind is Kind.NUMERIC and type_.storage is Storage.NUMERIC:
            return lambda word: word_text(word, dictionary)
        return lambda word: format_datum(type_, codec.decode_one(type_, word, dictionary), style).encode()
    return lambda word: encode_binary(type_, codec.decode_one(type_, word, dictionary), style.encoding)


def _encode_many(rowset: RowSet, formats: list[int], dictionary: Dictionary, style: TextStyle) -> bytes:
    count, width = len(rowset.rows), len(rowset.schema)
    if width == 0:
        return _HEAD.pack(b"D", 6, 0) * count
    starts, lengths = np.empty((width, count), np.int64), np.empty((width, count), np.int64)
    pieces: list[NDArray[np.uint8]] = []
    base = 0
    for i, (column, vector) in enumerate(zip(rowset.schema, rowset.columns(), strict=True)):
        data, column_starts, column_lengths = _slices(column.type, vector, formats[i], dictionary, style)
        if style.encoding is not None and _is_text(column.type, formats[i]) and not plain_ascii(data):
            data, column_starts, column_lengths = _recoded(data, column_starts, column_lengths, style.encoding)
        np.add(column_starts, base, out=starts[i])
        lengths[i] = column_lengths
        if vector.nulls is not None:
            lengths[i][vector.nulls] = -1
        pieces.append(data)
        base += len(data)
    out = np.empty(message_bytes(lengths), np.uint8)
    assemble(np.concatenate(pieces), starts, lengths, out)
    return out.tobytes()


def _slices(type_: SqlType, vector: Vector, format_: int, dictionary: Dictionary, style: TextStyle) -> Slices:
    kind, count = type_.kind, len(vector.words)
    if kind in TEXT_KINDS:
        return _text_slices(vector, dictionary)
    if format_ == BINARY_FORMAT:
        if kind in _BINARY_DTYPES:
            data = _binary_words(kind, vector.words)
            size = len(data) // count
            return data, np.arange(count) * size, np.full(count, size)
        datums = codec.decode(type_, vector, dictionary)
        return _list_slices([None if d is None else encode_binary(type_, d, style.encoding) for d in datums])
    if kind in _INTEGERS:
        return _integer_slices(vector.words)
    if kind is Kind.NUMERIC and type_.storage is Storage.NUMERIC and not (vector.words & SCALE_BITS).any():
        return _integer_slices(vector.words >> 6)
    if kind is Kind.BOOL:
        return np.frombuffer(b"ft", np.uint8), vector.words, np.ones(count, np.int64)
    return _list_slices(format_text(type_, vector, dictionary, style))


def _integer_slices(words: Words) -> Slices:
    count = len(words)
    data = np.empty(count * INTEGER_WIDTH, np.uint8)
    starts, lengths = np.empty(count, np.int64), np.empty(count, np.int64)
    format_integers(np.ascontiguousarray(words), data, starts, lengths)
    return data, starts, lengths


def _text_slices(vector: Vector, dictionary: Dictionary) -> Slices:
    count = len(vector.words)
    if vector.nulls is None:
        data, offsets = dictionary.packed(np.ascontiguousarray(vector.words))
        return data, offsets[:-1], np.diff(offsets)
    present = np.flatnonzero(~vector.nulls)
    data, offsets = dictionary.packed(np.ascontiguousarray(vector.words[present]))
    starts, lengths = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    starts[present], lengths[present] = offsets[:-1], np.diff(offsets)
    return data, starts, lengths


def _list_slices(values: Sequence[bytes | None]) -> Slices:
    lengths = np.fromiter((-1 if v is None else len(v) for v in values), np.int64, len(values))
    ends = np.cumsum(np.maximum(lengths, 0))
    data = np.frombuffer(b"".join([v for v in values if v is not None]), np.uint8)
    return data, ends - np.maximum(lengths, 0), lengths


def _recoded(data: NDArray[np.uint8], starts: Words, lengths: Words, encoding: Encoding) -> Slices:
    """Texts in UTF-8, in the client's encoding."""
    raw, spans = data.tobytes(), zip(starts.tolist(), lengths.tolist(), strict=True)
    return _list_slices([None if size < 0 else encoding.of_utf8(raw[at : at + size]) for at, size in spans])


def _binary_words(kind: Kind, words: Words) -> NDArray[np.uint8]:
    values: NDArray[Any] = words
    if kind in (Kind.FLOAT4, Kind.FLOAT8):
        values = codec.word_to_float(np.ascontiguousarray(words))
    elif kind is Kind.DATE:
        values = np.where(words == POSITIVE_INFINITY, 2**31 - 1, np.where(words == NEGATIVE_INFINITY, -(2**31), words))
    return np.frombuffer(values.astype(_BINARY_DTYPES[kind]).tobytes(), np.uint8)
