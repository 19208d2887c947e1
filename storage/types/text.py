"""Postgres's text format of every type, input and output, for single datums or in bulk.

Datums are those of ``planner/expr/scalar.py``: jsonb is its canonical text (str), uuid 16 bytes, an array a tuple
(nested for more dimensions), reg* and oid ints. Errors are ``SqlError`` with Postgres's SQLSTATE and message: 22P02 bad
syntax, 22003 out of range, 22007 bad date, 22008 date out of range, …
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from ivm.errors import SqlError, unsupported
from ivm.rows import Mask, Vector
from ivm.words import NAMED_OIDS, Kind, SqlType, Storage
from storage.dictionary import Dictionary
from storage.types import codec
from storage.types.arrays import Row
from storage.types.definition import Inside
from storage.types.definitions import DEFINITIONS
from storage.types.interval_output import format_interval
from storage.types.numeric import numeric_text
from storage.types.order import sort_key
from storage.types.text_array import format_array, leaf_test, parse_array, parse_plain_array
from storage.types.text_bulk import format_bulk, parse_bulk
from storage.types.text_char import format_char1, parse_char1
from storage.types.text_interval import parse_interval
from storage.types.text_json import canonical_json, check_json
from storage.types.text_number import (
    format_float4,
    format_float8,
    parse_bool,
    parse_float,
    parse_integer,
    parse_numeric,
    parse_oid,
    rounded_float,
)
from storage.types.text_row import format_row, parse_row
from storage.types.text_style import DEFAULT_STYLE, TextStyle
from storage.types.text_time import parse_date, parse_time, parse_timestamp, parse_timestamptz
from storage.types.time_output import format_date, format_time, format_timestamp, format_timestamptz
from storage.types.type_names import format_type

__all__ = [
    "DEFAULT_STYLE",
    "TextStyle",
    "fit_string",
    "format_datum",
    "format_text",
    "parse_datum",
    "parse_rows",
    "parse_text",
]


def parse_text(
    type_: SqlType, values: Sequence[str | None], dictionary: Dictionary, style: TextStyle = DEFAULT_STYLE
) -> Vector:
    """Text → words; None is NULL. Raises the SqlError of the first value that fails."""
    vector, failures = parse_rows(type_, values, dictionary, style)
    if failures:
        raise failures[0][1]
    return vector


def parse_rows(
    type_: SqlType, values: Sequence[str | None], dictionary: Dictionary, style: TextStyle = DEFAULT_STYLE
) -> tuple[Vector, list[tuple[int, SqlError]]]:
    """``parse_text`` that continues after errors: the vector (NULL where a value failed), and (row, error) for each
    failure."""
    fast = parse_bulk(type_, values, dictionary)
    if fast is not None:
        return fast, []
    datums: list[object] = []
    failures: list[tuple[int, SqlError]] = []
    seen: dict[str, object] = {}
    for row, text in enumerate(values):
        if text is None:
            datums.append(None)
            continue
        if text in seen:
            datums.append(seen[text])
            continue
        try:
            datum = parse_datum(type_, text, style)
        except SqlError as error:
            failures.append((row, error))
            datum = None
        else:
            seen[text] = datum
        datums.append(datum)
    return codec.encode(type_, datums, dictionary), failures


def format_text(
    type_: SqlType, vector: Vector, dictionary: Dictionary, style: TextStyle = DEFAULT_STYLE
) -> list[bytes | None]:
    """Words → Postgres's output, UTF-8; None for NULL."""
    fast = format_bulk(type_, vector, dictionary, style)
    if fast is not None:
        return fast
    words, nulls = vector.words, vector.nulls
    if len(words) > 32 and type_.storage is Storage.INTERNED:
        distinct, inverse = np.unique(words, return_inverse=True)
        if len(distinct) < len(words) // 2:
            return _format_distinct(type_, distinct, inverse, nulls, dictionary, style)
    datums = codec.decode(type_, vector, dictionary)
    return [None if d is None else format_datum(type_, d, style).encode() for d in datums]


def _format_distinct(
    type_: SqlType,
    distinct: np.ndarray[Any, Any],
    inverse: np.ndarray[Any, Any],
    nulls: Mask | None,
    dictionary: Dictionary,
    style: TextStyle,
) -> list[bytes | None]:
    # a NULL's word is 0, which is not an id
    absent = distinct == 0
    datums = codec.decode(type_, Vector(distinct, absent if absent.any() else None), dictionary)
    texts = [None if d is None else format_datum(type_, d, style).encode() for d in datums]
    taken = [texts[i] for i in inverse.ravel().tolist()]
    if nulls is None:
        return taken
    return [None if null else text for text, null in zip(taken, nulls.tolist(), strict=True)]


ALIKE: Final = frozenset(
    {
        Kind.BOOL,
        Kind.INT2,
        Kind.INT4,
        Kind.INT8,
        Kind.FLOAT4,
        Kind.FLOAT8,
        Kind.NUMERIC,
        Kind.UUID,
        Kind.TEXT,
        Kind.VARCHAR,
    }
)
"""Types whose texts mean the same under all settings."""


def parse_datum(type_: SqlType, text: str, style: TextStyle = DEFAULT_STYLE) -> object:
    """One value's text → its datum, with the type's typmod applied as in Postgres's input function."""
    kind = type_.kind
    if kind is Kind.ARRAY:
        assert type_.element is not None
        element = type_.element
        plain = parse_plain_array(element.kind, text)
        if plain is not None:
            return plain
        return parse_array(text, lambda part: parse_datum(element, part, style), leaf_test(element.kind))
    own = DEFINITIONS.get(kind)
    if own is not None:
        return own.parse(type_, text, style, Inside(lambda part, of: parse_datum(part, of, style), sort_key))
    parser = _PARSERS.get(kind)
    if parser is None:
        raise SqlError("0A000", f"cannot accept a value of type {format_type(type_)}")
    return parser(type_, text, style)


def format_datum(type_: SqlType, datum: object, style: TextStyle = DEFAULT_STYLE) -> str:
    """One datum (not None) → Postgres's text."""
    kind = type_.kind
    if kind is Kind.ARRAY:
        assert type_.element is not None
        element = type_.element
        if type_.zero_based and isinstance(datum, tuple):  # int2vector, oidvector
            return " ".join(map(str, datum))
        return format_array(datum, lambda part: format_datum(element, part, style), leaf_test(element.kind))
    own = DEFINITIONS.get(kind)
    if own is not None:
        return own.write(type_, datum, style, lambda part, of: format_datum(part, of, style))
    writer = _WRITERS.get(kind)
    if writer is None:
        raise unsupported(f"text output of type {format_type(type_)}")
    return writer(type_, datum, style)


_Parser = Callable[[SqlType, str, TextStyle], object]
_Writer = Callable[[SqlType, Any, TextStyle], str]


def _integer(low: int, high: int) -> _Parser:
    return lambda type_, text, style: parse_integer(text, low, high, format_type(type_))


def fit_string(value: str, type_: SqlType, assignment: bool) -> str:
    """Fits a string to a type's length: an explicit cast cuts, an assignment cuts only spaces; char(n) pads."""
    if type_.kind is Kind.NAME:
        return value.encode()[:63].decode(errors="ignore")
    limit = type_.precision
    if limit is None:
        return value
    if len(value) > limit:
        if assignment and value[limit:].strip(" "):
            label = "character" if type_.kind is Kind.BPCHAR else "character varying"
            raise SqlError("22001", f"value too long for type {label}({limit})")
        return value[:limit]
    return value.ljust(limit) if type_.kind is Kind.BPCHAR else value


def _string(type_: SqlType, text: str, style: TextStyle) -> str:
    if "\x00" in text:
        raise SqlError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    return fit_string(text, type_, True)


_ESCAPED_BYTES: Final = tuple(
    "\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte <= 0x7E else f"\\{byte:03o}" for byte in range(256)
)


_NO_DIGIT: Final = re.compile("[^0-9a-fA-F]")


def _bytea(type_: SqlType, text: str, style: TextStyle) -> bytes:
    if text.startswith("\\x"):
        digits = "".join(text[2:].split())
        bad = _NO_DIGIT.search(digits)
        if bad is not None:
            raise SqlError("22023", f'invalid hexadecimal digit: "{bad[0]}"')
        if len(digits) % 2:
            raise SqlError("22023", "invalid hexadecimal data: odd number of digits")
        return bytes.fromhex(digits)
    return _escaped_bytea(text)


def format_bytea(datum: bytes, form: str) -> str:
    """``form`` hex: two digits a byte; escape: the printable characters of ASCII, the other bytes in octal."""
    if form == "hex":
        return "\\x" + datum.hex()
    return datum.decode("latin-1").translate(_ESCAPED_BYTES)


def _escaped_bytea(text: str) -> bytes:
    raw, out, at = text.encode(), bytearray(), 0
    while at < len(raw):
        plain = raw.find(b"\\", at)
        if plain != at:
            end = len(raw) if plain < 0 else plain
            out += raw[at:end]
            at = end
        elif raw[at + 1 : at + 2] == b"\\":
            out.append(0x5C)
            at += 2
        elif len(octal := raw[at + 1 : at + 4]) == 3 and octal[0] in b"0123" and all(c in b"01234567" for c in octal):
            out.append(int(octal, 8))
            at += 4
        else:
            raise SqlError("22P02", "invalid input syntax for type bytea")
    return bytes(out)


def _enum_in(type_: SqlType, text: str, style: TextStyle) -> int:
    enum = type_.enum
    assert enum is not None, "an enum has labels"
    word = enum.words.get(text)
    if word is None:
        raise SqlError("22P02", f'invalid input value for enum {format_type(type_)}: "{text}"')
    return word


def _enum_out(type_: SqlType, datum: int, style: TextStyle) -> str:
    assert type_.enum is not None, "an enum has labels"
    return type_.enum.labels[datum]


def _reg_in(type_: SqlType, text: str, style: TextStyle) -> int:
    if text == "-":
        return 0
    if text.isdecimal():
        return parse_oid(text)
    if style.reg is None:
        raise unsupported(f"input of type {format_type(type_)} by name here")
    return style.reg.reg_in(type_, text)


def _reg_out(type_: SqlType, datum: int, style: TextStyle) -> str:
    if datum == 0:
        return "-"
    return str(datum) if style.reg is None else style.reg.reg_out(type_, datum)


def _row_out(type_: SqlType, datum: Row, style: TextStyle) -> str:
    pairs = zip(type_.fields, datum, strict=True)
    return format_row(None if value is None else format_datum(field, value, style) for (_, field), value in pairs)


def _record_in(type_: SqlType, text: str, style: TextStyle) -> Row:
    if not type_.fields and type_.named is None:
        raise SqlError("0A000", "input of anonymous composite types is not implemented")
    texts = parse_row(text, len(type_.fields))
    pairs = zip(type_.fields, texts, strict=True)
    return Row(None if part is None else parse_datum(field, part, style) for (_, field), part in pairs)


_STRINGS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.UNKNOWN)
_REGS: Final = NAMED_OIDS

_PARSERS: Final[dict[Kind, _Parser]] = {
    Kind.BOOL: lambda type_, text, style: parse_bool(text),
    Kind.INT2: _integer(-(2**15), 2**15 - 1),
    Kind.INT4: _integer(-(2**31), 2**31 - 1),
    Kind.INT8: _integer(-(2**63), 2**63 - 1),
    Kind.FLOAT4: lambda type_, text, style: parse_float(text, "real"),
    Kind.FLOAT8: lambda type_, text, style: parse_float(text, "double precision"),
    Kind.NUMERIC: lambda type_, text, style: parse_numeric(text, type_.precision, type_.scale),
    **dict.fromkeys(_STRINGS, _string),
    Kind.CHAR1: lambda type_, text, style: parse_char1(text),
    Kind.BYTEA: _bytea,
    Kind.DATE: lambda type_, text, style: parse_date(text, style),
    Kind.TIME: lambda type_, text, style: parse_time(text, type_.precision, style),
    Kind.TIMESTAMP: lambda type_, text, style: parse_timestamp(text, type_.precision, style),
    Kind.TIMESTAMPTZ: lambda type_, text, style: parse_timestamptz(text, type_.precision, style),
    Kind.INTERVAL: lambda type_, text, style: parse_interval(
        text, type_.precision, style.formats.interval == "sql_standard", type_.scale
    ),
    Kind.JSON: lambda type_, text, style: check_json(text),
    Kind.JSONB: lambda type_, text, style: canonical_json(text),
    Kind.OID: lambda type_, text, style: parse_oid(text),
    Kind.ENUM: _enum_in,
    **dict.fromkeys(_REGS, _reg_in),
    Kind.RECORD: _record_in,
    Kind.VOID: lambda type_, text, style: "",
}


def _as_is(type_: SqlType, datum: Any, style: TextStyle) -> str:
    return cast("str", datum)


def _as_str(type_: SqlType, datum: Any, style: TextStyle) -> str:
    return str(datum)


def _float4_out(type_: SqlType, datum: Any, style: TextStyle) -> str:
    return format_float4(datum) if style.float_digits > 0 else rounded_float(datum, 6 + style.float_digits)


def _float8_out(type_: SqlType, datum: Any, style: TextStyle) -> str:
    return format_float8(datum) if style.float_digits > 0 else rounded_float(datum, 15 + style.float_digits)


_WRITERS: Final[dict[Kind, _Writer]] = {
    Kind.BOOL: lambda type_, datum, style: "t" if datum else "f",
    **dict.fromkeys((Kind.INT2, Kind.INT4, Kind.INT8, Kind.OID), _as_str),
    Kind.ENUM: _enum_out,
    Kind.FLOAT4: _float4_out,
    Kind.FLOAT8: _float8_out,
    Kind.NUMERIC: lambda type_, datum, style: numeric_text(datum),
    **dict.fromkeys((*_STRINGS, Kind.JSON, Kind.JSONB), _as_is),
    Kind.CHAR1: lambda type_, datum, style: format_char1(datum),
    Kind.BYTEA: lambda type_, datum, style: format_bytea(datum, style.formats.bytea),
    Kind.DATE: lambda type_, datum, style: format_date(datum, style.formats),
    Kind.TIME: lambda type_, datum, style: format_time(datum),
    Kind.TIMESTAMP: lambda type_, datum, style: format_timestamp(datum, style.formats),
    Kind.TIMESTAMPTZ: lambda type_, datum, style: format_timestamptz(datum, style.timezone, style.formats),
    Kind.INTERVAL: lambda type_, datum, style: format_interval(datum, style.formats.interval),
    **dict.fromkeys(_REGS, _reg_out),
    Kind.RECORD: _row_out,
    Kind.VOID: lambda type_, datum, style: "",
}
