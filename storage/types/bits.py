"""Types bit(n) and bit varying(n). A datum is a string of 0 and 1, whose bytes compare as the values do: an equal
beginning decides for the shorter."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

from ivm.errors import SqlError
from ivm.stops import polled
from ivm.words import Kind, SqlType
from storage.types.definition import BytesPart, FormatPart, FromBytesPart, Inside, TypeDefinition
from storage.types.text_style import TextStyle

MOST: Final = 83_886_080
"""The longest that a type can say."""
_LENGTH: Final = struct.Struct("!i")


def fit_bits(value: str, type_: SqlType, explicit: bool) -> str:
    """Fits bits to a type's length: an explicit cast cuts and pads with zeros. Raises 22026, 22001."""
    limit = type_.precision
    if limit is None or len(value) == limit:
        return value
    if type_.kind is Kind.BIT:
        if explicit:
            return value[:limit].ljust(limit, "0")
        raise SqlError("22026", f"bit string length {len(value)} does not match type bit({limit})")
    if len(value) < limit or explicit:
        return value[:limit]
    raise SqlError("22001", f"bit string too long for type bit varying({limit})")


def _parse(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> str:
    return fit_bits(_digits(text), type_, False)


def _digits(text: str) -> str:
    if text[:1] in ("x", "X"):
        return "".join(f"{_digit(c, 16, 'hexadecimal'):04b}" for c in polled(text[1:]))
    body = text[1:] if text[:1] in ("b", "B") else text
    for c in body.strip("01")[:1]:
        _digit(c, 2, "binary")
    return body


def _digit(c: str, base: int, name: str) -> int:
    try:
        return int(c, base)
    except ValueError:
        raise SqlError("22P02", f'"{c}" is not a valid {name} digit') from None


def _write(type_: SqlType, datum: str, style: TextStyle, part: FormatPart) -> str:
    return datum


def bits_to_bytes(value: str) -> bytes:
    """The bits from the left, the last byte filled with zeros."""
    size = -(-len(value) // 8)
    return int(value.ljust(8 * size, "0") or "0", 2).to_bytes(size, "big")


def bits_from_bytes(data: bytes, length: int) -> str:
    """The inverse of ``bits_to_bytes``."""
    return f"{int.from_bytes(data):0{8 * len(data)}b}"[:length] if data else ""


def _send(type_: SqlType, datum: str, part: BytesPart) -> bytes:
    return _LENGTH.pack(len(datum)) + bits_to_bytes(datum)


def _receive(type_: SqlType, data: bytes, inside: Inside[bytes]) -> str:
    length = _LENGTH.unpack_from(data)[0]
    if length < 0 or len(data) != 4 + -(-length // 8):
        raise ValueError
    return fit_bits(bits_from_bytes(data[4:], length), type_, False)


def _pack(type_: SqlType, datum: str, part: BytesPart) -> bytes:
    return datum.encode()


def _unpack(type_: SqlType, data: bytes, part: FromBytesPart) -> Any:
    return data.decode()


def _modified(name: str, args: Sequence[int]) -> SqlType:
    kind = Kind.BIT if name == "bit" else Kind.VARBIT
    if not args:
        return SqlType(kind, 1 if kind is Kind.BIT else None)
    if args[0] < 1:
        raise SqlError("22023", f"length for type {name.replace('bit varying', 'varbit')} must be at least 1")
    if args[0] > MOST:
        raise SqlError("22023", f"length for type {name.replace('bit varying', 'varbit')} cannot exceed {MOST}")
    return SqlType(kind, args[0])


BIT: Final = TypeDefinition(
    Kind.BIT, "bit",
    "1560 bit -1 f b V f 0 1561 bit_ bittypmod i x 0",
    "1564:bit_in 1565:bit_out 2456:bit_recv 2457:bit_send 2919:bittypmodin 2920:bittypmodout",
    _parse, _write, _send, _receive, _pack, _unpack, modified=_modified,
)  # fmt: skip
VARBIT: Final = TypeDefinition(
    Kind.VARBIT, "bit varying",
    "1562 varbit -1 f b V t 0 1563 varbit_ varbittypmod i x 0",
    "1579:varbit_in 1580:varbit_out 2458:varbit_recv 2459:varbit_send 2902:varbittypmodin 2921:varbittypmodout",
    _parse, _write, _send, _receive, _pack, _unpack, ("varbit",), modified=_modified,
)  # fmt: skip
