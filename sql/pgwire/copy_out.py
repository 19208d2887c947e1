"""Formats RowSets as the data of COPY … TO STDOUT, in text and CSV, in bulk.

Postgres sends one CopyData per row and some clients rely on it (psycopg's ``copy.rows()``), so formatted rows keep the
offsets of their ends: ``CopyRows`` is the payload as bytes, and ``frame_copy`` cuts it into messages in a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import RowSet, Words
from ivm.words import Kind, SqlType
from planner.expr.functions.pieces import bytes_of, is_long, pieces
from sql.pgwire.copy_kernels import frame_rows
from sql.statements.statements import CopyFormat, CopyOptions
from storage.dictionary import Dictionary
from storage.encodings.encoding import Encoding
from storage.types.text import format_text
from storage.types.text_style import DEFAULT_STYLE, TextStyle

_PLAIN: Final = frozenset(
    {
        Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.OID, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.UUID,
    }
)  # fmt: skip
"""Types whose text consists of ``0-9 a-z A-Z + - .`` only: it needs escapes only if the delimiter is one of those."""
_ORDINARY: Final = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-.")
_TEXT_ESCAPES: Final = {8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 92: b"\\\\"}


SHORT: Final = 32
"""Bytes that a set looks at faster than another copy of the value is made."""


class CopyRows(bytes):
    """Formatted rows, concatenated. ``ends``: int64[n], where each row ends."""

    ends: Words

    @staticmethod
    def of(lines: Sequence[bytes]) -> CopyRows:
        """Concatenates rows that are already formatted, each with its line end."""
        rows = CopyRows(b"".join(lines))
        rows.ends = np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)))
        return rows


def frame_copy(chunk: bytes) -> bytes | None:
    """One CopyData message per formatted row; None for bytes that are not ``CopyRows``."""
    if not isinstance(chunk, CopyRows):
        return None
    return frame_rows(np.frombuffer(chunk, np.uint8), chunk.ends).tobytes()


def recoded(rows: CopyRows, encoding: Encoding) -> CopyRows:
    """Rows in the client's encoding. Raises 22P05."""
    if rows.isascii():
        return rows
    starts = [0, *rows.ends.tolist()]
    return CopyRows.of([encoding.of_utf8(rows[start:end]) for start, end in pairwise(starts)])


def format_copy(
    rowset: RowSet, options: CopyOptions, dictionary: Dictionary, style: TextStyle = DEFAULT_STYLE
) -> CopyRows:
    """The rows as COPY TO writes them, without a header. Cost: linear in the output."""
    assert options.format in (CopyFormat.TEXT, CopyFormat.CSV), "the binary format is elsewhere"
    delimiter = options.delimiter.encode()
    columns = []
    for i, (column, vector) in enumerate(zip(rowset.schema, rowset.columns(), strict=True)):
        values = format_text(column.type, vector, dictionary, style)
        columns.append(_fields(values, column.type, options, i in options.force_quote, len(rowset.schema) == 1))
    if not columns:
        return CopyRows.of([b"\n"] * len(rowset))
    if len(columns) == 1:
        return CopyRows.of([value + b"\n" for value in columns[0]])
    columns[-1] = [value + b"\n" for value in columns[-1]]
    return CopyRows.of(list(map(delimiter.join, zip(*columns, strict=True))))


def format_header(names: Sequence[str], options: CopyOptions) -> CopyRows:
    """The header line of HEADER."""
    delimiter = options.delimiter.encode()
    raw = [name.encode() for name in names]
    if options.format is CopyFormat.CSV:
        raw = [_csv_quoter(options, False)(name) for name in raw]
    else:
        raw = [_text_escaper(delimiter)(name) for name in raw]
    return CopyRows.of([delimiter.join(raw) + b"\n"])


def _fields(
    values: list[bytes | None], type_: SqlType, options: CopyOptions, forced: bool, single: bool
) -> list[bytes]:
    """One column's fields as they appear in the data."""
    null = options.null.encode()
    delimiter = options.delimiter.encode()
    csv = options.format is CopyFormat.CSV
    if type_.kind in _PLAIN and not forced and delimiter[0] not in _ORDINARY and not (csv and _could_be_plain(null)):
        return [null if value is None else value for value in values]
    if csv:
        quote = _csv_quoter(options, single)
        whole = _csv_quoted(options)
        if forced:
            return [null if value is None else whole(value) for value in values]
        return [null if value is None else quote(value) for value in values]
    escape = _text_escaper(delimiter)
    return [null if value is None else escape(value) for value in values]


def _could_be_plain(null: bytes) -> bool:
    """Whether a NULL marker could also be a value of a plain type, which must then be quoted."""
    return bool(null) and all(byte in _ORDINARY for byte in null)


def _finder(special: bytes) -> Callable[[bytes], bool]:
    """Whether a value has any of these bytes. A set looks at one Python object for each byte of it: 2 s for 100 MB."""
    few = frozenset(special)

    def finds(value: bytes) -> bool:
        if len(value) <= SHORT:
            return not few.isdisjoint(value)
        if is_long(value):
            return any(len(piece.translate(None, special)) < len(piece) for piece in pieces(value))
        return len(value.translate(None, special)) < len(value)

    return finds


def _text_escaper(delimiter: bytes) -> Callable[[bytes], bytes]:
    """An escaper for the text format: backslash escapes, the delimiter included."""
    escapes = {bytes([byte]): code for byte, code in _TEXT_ESCAPES.items()}
    if delimiter not in escapes:
        escapes[delimiter] = b"\\" + delimiter
    others = [(raw, code) for raw, code in escapes.items() if raw != b"\\"]
    is_special = _finder(b"".join(escapes))

    def escaped(value: bytes) -> bytes:
        value = value.replace(b"\\", b"\\\\")
        for raw, code in others:
            value = value.replace(raw, code)
        return value

    def escape(value: bytes) -> bytes:
        if not is_special(value):
            return value
        return bytes_of(map(escaped, pieces(value))) if is_long(value) else escaped(value)

    return escape


def _csv_quoted(options: CopyOptions) -> Callable[[bytes], bytes]:
    """A function that always quotes a field."""
    quote, escape = options.quote.encode(), options.escape.encode()

    def inside(value: bytes) -> bytes:
        if escape != quote:
            value = value.replace(escape, escape + escape)
        return value.replace(quote, escape + quote)

    def whole(value: bytes) -> bytes:
        if is_long(value):
            return bytes_of(chain((quote,), map(inside, pieces(value)), (quote,)))
        return quote + inside(value) + quote

    return whole


def _csv_quoter(options: CopyOptions, single: bool) -> Callable[[bytes], bytes]:
    """A function that quotes a field if needed: if it equals the NULL marker, contains special characters, or is
    ``\\.`` alone on its line."""
    null = options.null.encode()
    is_special = _finder((options.delimiter + options.quote + "\r\n").encode())
    whole = _csv_quoted(options)

    def quote(value: bytes) -> bytes:
        if value == null or is_special(value) or (single and value == b"\\."):
            return whole(value)
        return value

    return quote


def check_options(options: CopyOptions) -> None:
    """Checks delimiter, NULL marker, quote and escape by the rules of Postgres's ProcessCopyOptions."""
    csv = options.format is CopyFormat.CSV
    if len(options.delimiter.encode()) != 1:
        raise SqlError("0A000", "COPY delimiter must be a single one-byte character")
    if options.delimiter in "\r\n":
        raise SqlError("22023", "COPY delimiter cannot be newline or carriage return")
    if "\r" in options.null or "\n" in options.null:
        raise SqlError("22023", "COPY null representation cannot use newline or carriage return")
    if not csv and options.delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789":
        raise SqlError("22023", f'COPY delimiter cannot be "{options.delimiter}"')
    if options.delimiter in options.null:
        raise SqlError("0A000", "COPY delimiter must not appear in the NULL specification")
    if not csv:
        return
    if len(options.quote.encode()) != 1:
        raise SqlError("0A000", "COPY quote must be a single one-byte character")
    if options.delimiter == options.quote:
        raise SqlError("22023", "COPY delimiter and quote must be different")
    if len(options.escape.encode()) != 1:
        raise SqlError("0A000", "COPY escape must be a single one-byte character")
    if options.quote in options.null:
        raise SqlError("0A000", "CSV quote character must not appear in the NULL specification")
