"""Type point. A datum is its two coordinates as big-endian doubles; it has no equality or order, as in Postgres."""

from __future__ import annotations

import re
import struct
from typing import Final

from ivm.errors import SqlError
from ivm.words import FLOAT8, Kind, SqlType
from storage.types.definition import FormatPart, Inside, TypeDefinition, invalid_input, read_as_is, stored_as_is
from storage.types.text_number import parse_float
from storage.types.text_style import TextStyle

_PAIR: Final = struct.Struct(">2d")
_NUMBER: Final = r"\s*([^\s,()]+)\s*"
_SPELLINGS: Final = tuple(re.compile(p) for p in (rf"\s*\({_NUMBER},{_NUMBER}\)\s*", rf"{_NUMBER},{_NUMBER}"))


def coordinates(datum: bytes) -> tuple[float, float]:
    """The x and y of a point."""
    x, y = _PAIR.unpack(datum)
    return x, y


def point(x: float, y: float) -> bytes:
    """The datum of a point."""
    return _PAIR.pack(x, y)


def _parse(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> bytes:
    found = next((m for spelling in _SPELLINGS if (m := spelling.fullmatch(text))), None)
    if found is None:
        raise invalid_input("point", text)
    return point(_coordinate(found[1], text), _coordinate(found[2], text))


def _coordinate(number: str, text: str) -> float:
    try:
        return parse_float(number, "double precision")
    except SqlError as error:
        if error.sqlstate == "22P02":
            raise invalid_input("point", text) from None
        raise


def _write(type_: SqlType, datum: bytes, style: TextStyle, part: FormatPart) -> str:
    x, y = coordinates(datum)
    return f"({part(FLOAT8, x)},{part(FLOAT8, y)})"


def _receive(type_: SqlType, data: bytes, inside: Inside[bytes]) -> bytes:
    if len(data) != _PAIR.size:
        raise ValueError
    return data


DEFINITION: Final = TypeDefinition(
    Kind.POINT, "point",
    "600 point 16 f b G f 0 1017 point_ - d p 0", "117:point_in 118:point_out 2428:point_recv 2429:point_send",
    _parse, _write, stored_as_is, _receive, stored_as_is, read_as_is, compared=False,
)  # fmt: skip
