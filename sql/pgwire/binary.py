"""Postgres's binary formats of single values: datum ↔ bytes, by type (``typsend`` and ``typreceive``)."""

from __future__ import annotations

import struct
from decimal import Decimal
from functools import partial
from typing import Any, Final

from ivm.errors import SqlError, unsupported
from ivm.words import NAMED_OIDS, NEGATIVE_INFINITY, POSITIVE_INFINITY, TEXT, Kind, SqlType
from sql.pgwire.messages import sized
from storage.encodings.encoding import Encoding
from storage.types.arrays import Row, bounded, check_dimensions, elements, lower_bounds, shape
from storage.types.definition import Inside
from storage.types.definitions import DEFINITIONS
from storage.types.numeric import from_parts, mantissa_of, scale_of
from storage.types.order import sort_key
from storage.types.text import format_datum, parse_datum
from storage.types.text_number import fit_numeric
from storage.types.text_style import DEFAULT_STYLE, TextStyle
from storage.types.type_names import format_type, type_oid

_INT2: Final = struct.Struct("!h")
_INT4: Final = struct.Struct("!i")
_INT8: Final = struct.Struct("!q")
_UINT4: Final = struct.Struct("!I")
_FLOAT4: Final = struct.Struct("!f")
_FLOAT8: Final = struct.Struct("!d")
_INTERVAL: Final = struct.Struct("!qii")
_NUMERIC: Final = struct.Struct("!HhHH")
_TEXTS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.UNKNOWN, Kind.JSON)
_MAX_INT4: Final = 2**31 - 1
_STRUCTS: Final[dict[Kind, struct.Struct]] = {
    Kind.INT2: _INT2, Kind.INT4: _INT4, Kind.INT8: _INT8, Kind.FLOAT4: _FLOAT4, Kind.FLOAT8: _FLOAT8,
    Kind.OID: _UINT4, **dict.fromkeys(NAMED_OIDS, _UINT4),
    Kind.TIME: _INT8, Kind.TIMESTAMP: _INT8, Kind.TIMESTAMPTZ: _INT8,
}  # fmt: skip
_NUMERIC_SIGNS: Final = {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}


def encode_binary(type_: SqlType, datum: Any, encoding: Encoding | None = None) -> bytes:
    """Encodes a datum that is not None in its binary format. ``encoding``: of texts; None: UTF-8."""
    kind = type_.kind
    packer = _STRUCTS.get(kind)
    if packer is not None:
        return packer.pack(datum)
    if kind in _TEXTS:
        return datum.encode() if encoding is None else encoding.bytes_of(datum)
    match kind:
        case Kind.BOOL:
            return b"\x01" if datum else b"\x00"
        case Kind.BYTEA:
            return bytes(datum)
        case Kind.CHAR1:
            return datum.encode("latin-1") or b"\0"
        case Kind.JSONB:
            return b"\x01" + encode_binary(TEXT, datum, encoding)
        case Kind.DATE:
            return _INT4.pack(max(-_MAX_INT4 - 1, min(_MAX_INT4, datum)))
        case Kind.INTERVAL:
            return _INTERVAL.pack(datum[2], datum[1], datum[0])
        case Kind.NUMERIC:
            return _encode_numeric(datum)
        case Kind.ENUM:
            return encode_binary(TEXT, format_datum(type_, datum), encoding)
        case Kind.ARRAY:
            return _encode_array(type_, datum, encoding)
        case Kind.RECORD:
            return _encode_row(type_, datum, encoding)
        case Kind.VOID:
            return b""
        case _ if (own := DEFINITIONS.get(kind)) is not None:
            part = encode_binary if encoding is None else partial(encode_binary, encoding=encoding)
            return own.send(type_, datum, part)
        case _:
            raise unsupported(f"binary output of type {format_type(type_)}")


def decode_binary(type_: SqlType, data: bytes, style: TextStyle = DEFAULT_STYLE) -> object:
    """Decodes the binary format. 22P03 for a wrong size, 08P01 or 22021 for invalid contents."""
    kind = type_.kind
    packer = _STRUCTS.get(kind)
    try:
        if packer is not None:
            return packer.unpack(data)[0]
        if kind in _TEXTS or kind is Kind.ENUM:
            return parse_datum(type_, _text_of(data, style), style)
        match kind:
            case Kind.CHAR1:
                return parse_datum(type_, data.decode("latin-1").rstrip("\0"), style)
            case Kind.BOOL:
                return data != b"\x00"
            case Kind.BYTEA:
                return data
            case Kind.JSONB if data[:1] == b"\x01":
                return parse_datum(type_, _text_of(data[1:], style), style)
            case Kind.DATE:
                return _decode_date(_INT4.unpack(data)[0])
            case Kind.INTERVAL:
                micros, days, months = _INTERVAL.unpack(data)
                return months, days, micros
            case Kind.NUMERIC:
                return fit_numeric(_decode_numeric(data), type_.precision, type_.scale)
            case Kind.ARRAY:
                return _decode_array(type_, data, style)
            case Kind.VOID:
                return 0  # whatever it is
            case Kind.RECORD if type_.fields:
                return _decode_row(type_, data, style)
            case _ if (own := DEFINITIONS.get(kind)) is not None:
                return own.receive(type_, data, Inside(lambda part, of: decode_binary(part, of, style), sort_key))
            case _:
                pass
    except UnicodeDecodeError:
        raise SqlError("22021", 'invalid byte sequence for encoding "UTF8"') from None
    except (struct.error, IndexError, ValueError):
        pass
    raise SqlError("22P03", f"incorrect binary data format for type {format_type(type_)}")


def _text_of(data: bytes, style: TextStyle) -> str:
    return data.decode() if style.encoding is None else style.encoding.text_of(data)


def _decode_date(days: int) -> int:
    if days == _MAX_INT4:
        return POSITIVE_INFINITY
    return NEGATIVE_INFINITY if days == -_MAX_INT4 - 1 else days


def _encode_numeric(value: Decimal) -> bytes:
    if not value.is_finite():
        sign = 0xC000 if value.is_nan() else (0xF000 if value < 0 else 0xD000)
        return _NUMERIC.pack(0, 0, sign, 0)
    scale = scale_of(value)
    # base-10000 digits before and after the point
    fraction_digits = -(-scale // 4)
    rest = abs(mantissa_of(value, scale)) * 10 ** (4 * fraction_digits - scale)
    digits: list[int] = []
    while rest:
        rest, digit = divmod(rest, 10000)
        digits.append(digit)
    digits.reverse()
    weight = len(digits) - fraction_digits - 1
    while digits and digits[-1] == 0:
        digits.pop()
    sign = 0x4000 if value < 0 and digits else 0
    return _NUMERIC.pack(len(digits), weight if digits else 0, sign, scale) + struct.pack(f"!{len(digits)}H", *digits)


def _decode_numeric(data: bytes) -> Decimal:
    count, weight, sign, scale = _NUMERIC.unpack_from(data)
    if sign in _NUMERIC_SIGNS:
        return Decimal(_NUMERIC_SIGNS[sign])
    if sign not in (0, 0x4000) or len(data) != 8 + 2 * count:
        raise struct.error
    number = 0
    for digit in struct.unpack_from(f"!{count}H", data, 8):
        number = number * 10000 + digit
    shift = 4 * (weight - count + 1) + scale
    number = number * 10**shift if shift >= 0 else number // 10**-shift
    return from_parts(-number if sign else number, scale)


def _encode_array(type_: SqlType, datum: Any, encoding: Encoding | None) -> bytes:
    assert type_.element is not None
    element = type_.element
    lengths = shape(datum, element.kind is Kind.INTERVAL)
    flat = list(elements(datum, len(lengths)))
    parts = [struct.pack("!iiI", len(lengths), any(item is None for item in flat), type_oid(element))]
    lower = lower_bounds(datum, len(lengths))
    parts += [struct.pack("!ii", length, low) for length, low in zip(lengths, lower, strict=True)]
    parts += [sized(None if item is None else encode_binary(element, item, encoding)) for item in flat]
    return b"".join(parts)


def _encode_row(type_: SqlType, datum: Any, encoding: Encoding | None) -> bytes:
    parts = [_INT4.pack(len(datum))]
    for (_, field), value in zip(type_.fields, datum, strict=True):
        body = None if value is None else encode_binary(field, value, encoding)
        parts.append(_UINT4.pack(type_oid(field)) + sized(body))
    return b"".join(parts)


def _decode_row(type_: SqlType, data: bytes, style: TextStyle) -> Row:
    """A row in Postgres's form: for each field the oid of its type, its size and its bytes."""
    (count,) = _INT4.unpack_from(data)
    if count != len(type_.fields):
        raise SqlError("42804", f"wrong number of columns: {count}, expected {len(type_.fields)}")
    at, values = 4, []
    for i, (_, field) in enumerate(type_.fields):
        oid, size = _UINT4.unpack_from(data, at)[0], _INT4.unpack_from(data, at + 4)[0]
        if oid != type_oid(field):
            message = f"binary data has type {oid} instead of expected {type_oid(field)} in record column {i + 1}"
            raise SqlError("42804", message)
        at += 8
        values.append(None if size < 0 else decode_binary(field, data[at : at + size], style))
        at += max(size, 0)
    if at != len(data):
        raise ValueError
    return Row(values)


def _decode_array(type_: SqlType, data: bytes, style: TextStyle) -> tuple[Any, ...]:
    assert type_.element is not None
    dimensions, _, oid = struct.unpack_from("!iiI", data)
    if oid != type_oid(type_.element):
        raise SqlError("42804", f"binary data has array element type {oid}, not {type_oid(type_.element)}")
    if dimensions < 0:
        raise SqlError("22P03", f"invalid number of dimensions: {dimensions}")
    check_dimensions(dimensions)
    shape, lower = [], []
    for i in range(dimensions):
        length, low = struct.unpack_from("!ii", data, 12 + 8 * i)
        shape.append(length)
        lower.append(low)
    at = 12 + 8 * dimensions
    items: list[Any] = []
    while at < len(data):
        size = _INT4.unpack_from(data, at)[0]
        at += 4
        if size < 0:
            items.append(None)
            continue
        items.append(decode_binary(type_.element, data[at : at + size], style))
        at += size
    for length in reversed(shape[1:]):
        items = [tuple(items[i : i + length]) for i in range(0, len(items), length)]
    return bounded(tuple(items), lower)
