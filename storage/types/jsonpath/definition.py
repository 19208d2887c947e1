"""Type jsonpath. A datum is its canonical text."""

from __future__ import annotations

from typing import Any, Final

from ivm.words import TEXT, Kind, SqlType
from storage.types.definition import BytesPart, FormatPart, FromBytesPart, Inside, TypeDefinition
from storage.types.jsonpath.output import format_path
from storage.types.jsonpath.parser import parse_path
from storage.types.text_style import TextStyle

_VERSION: Final = b"\x01"


def _parse(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> str:
    return format_path(parse_path(text))


def _write(type_: SqlType, datum: str, style: TextStyle, part: FormatPart) -> str:
    return datum


def _send(type_: SqlType, datum: str, part: BytesPart) -> bytes:
    return _VERSION + part(TEXT, datum)


def _receive(type_: SqlType, data: bytes, inside: Inside[bytes]) -> str:
    if data[:1] != _VERSION:
        raise ValueError
    return format_path(parse_path(inside.read(TEXT, data[1:])))


def _pack(type_: SqlType, datum: Any, part: BytesPart) -> bytes:
    return str(datum).encode()


def _unpack(type_: SqlType, data: bytes, part: FromBytesPart) -> str:
    return data.decode()


DEFINITION: Final = TypeDefinition(
    Kind.JSONPATH, "jsonpath",
    "4072 jsonpath -1 f b U f 0 4073 jsonpath_ - i x 0",
    "4001:jsonpath_in 4003:jsonpath_out 4002:jsonpath_recv 4004:jsonpath_send",
    _parse, _write, _send, _receive, _pack, _unpack, compared=False,
)  # fmt: skip
