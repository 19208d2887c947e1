"""Type uuid. A datum is its 16 bytes, which compare as the values do."""

from __future__ import annotations

from typing import Final

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

_DIGITS: Final = frozenset("0123456789abcdefABCDEF")


def _parse(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> bytes:
    body = text[1:-1] if text[:1] == "{" and text[-1:] == "}" else text
    digits = body.replace("-", "")
    groups = body.split("-")
    legal = len(digits) == 32 and all(len(g) % 4 == 0 and g for g in groups)
    if not legal or not _DIGITS.issuperset(digits):
        raise invalid_input("uuid", text)
    return bytes.fromhex(digits)


def _write(type_: SqlType, datum: bytes, style: TextStyle, part: FormatPart) -> str:
    digits = datum.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _receive(type_: SqlType, data: bytes, inside: Inside[bytes]) -> bytes:
    if len(data) != 16:
        raise ValueError
    return data


DEFINITION: Final = TypeDefinition(
    Kind.UUID, "uuid",
    "2950 uuid 16 f b U f 0 2951 uuid_ - c p 0", "2952:uuid_in 2953:uuid_out 2961:uuid_recv 2962:uuid_send",
    _parse, _write, stored_as_is, _receive, stored_as_is, read_as_is,
)  # fmt: skip
