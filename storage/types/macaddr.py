"""Types macaddr and macaddr8. A datum is the 6 or 8 bytes, which compare as the values do."""

from __future__ import annotations

import re
from typing import Final

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from storage.types.definition import (
    FormatPart,
    Inside,
    TypeDefinition,
    invalid_input,
    read_as_is,
    stored_as_is,
)
from storage.types.text_style import TextStyle

_H: Final = r"([0-9a-fA-F]{1,8})"
_P: Final = r"([0-9a-fA-F]{2})"
_SPELLINGS: Final = tuple(
    re.compile(rf"\s*{pattern}\s*")
    for pattern in (
        ":".join([_H] * 6), "-".join([_H] * 6), f"{_P * 3}:{_P * 3}", f"{_P * 3}-{_P * 3}",
        r"\.".join([_P * 2] * 3), "-".join([_P * 2] * 3), _P * 6,
    )
)  # fmt: skip
_SPELLING8: Final = re.compile(r"\s*[0-9a-fA-F]{2}(?:([:.-])?[0-9a-fA-F]{2}){5,7}\s*")


def _parse(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> bytes:
    found = next((m for spelling in _SPELLINGS if (m := spelling.fullmatch(text))), None)
    if found is None:
        raise invalid_input("macaddr", text)
    octets = [int(octet, 16) for octet in found.groups()]
    if max(octets) > 255:
        raise SqlError("22003", f'invalid octet value in "macaddr" value: "{text}"')
    return bytes(octets)


def _parse8(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> bytes:
    marks = {c for c in text if c in ":.-"}
    digits = re.sub(r"[\s:.-]", "", text)
    if not _SPELLING8.fullmatch(text) or len(marks) > 1 or len(digits) not in (12, 16):
        raise invalid_input("macaddr8", text)
    octets = bytes.fromhex(digits)
    return octets if len(octets) == 8 else to_macaddr8(octets)


def to_macaddr8(octets: bytes) -> bytes:
    """A macaddr as a macaddr8, with FF and FE inserted."""
    return octets[:3] + b"\xff\xfe" + octets[3:]


def _write(type_: SqlType, datum: bytes, style: TextStyle, part: FormatPart) -> str:
    return datum.hex(":")


def _receive(type_: SqlType, data: bytes, inside: Inside[bytes]) -> bytes:
    if len(data) == 6:
        return data if type_.kind is Kind.MACADDR else to_macaddr8(data)
    if len(data) != 8 or type_.kind is Kind.MACADDR:
        raise ValueError
    return data


MACADDR: Final = TypeDefinition(
    Kind.MACADDR, "macaddr",
    "829 macaddr 6 f b U f 0 1040 macaddr_ - i p 0",
    "436:macaddr_in 437:macaddr_out 2494:macaddr_recv 2495:macaddr_send",
    _parse, _write, stored_as_is, _receive, stored_as_is, read_as_is,
)  # fmt: skip
MACADDR8: Final = TypeDefinition(
    Kind.MACADDR8, "macaddr8",
    "774 macaddr8 8 f b U f 0 775 macaddr8_ - i p 0",
    "4110:macaddr8_in 4111:macaddr8_out 3446:macaddr8_recv 3447:macaddr8_send",
    _parse8, _write, stored_as_is, _receive, stored_as_is, read_as_is,
)  # fmt: skip
