"""Type regconfig: the name of a text search configuration, of which there are two."""

from __future__ import annotations

import struct
from typing import Any, Final

from ivm.errors import SqlError, unsupported
from ivm.words import Kind, SqlType
from storage.types.definition import BytesPart, FormatPart, Inside, TypeDefinition
from storage.types.text_style import TextStyle

SIMPLE: Final = 3748
ENGLISH: Final = 13164
_OIDS: Final = {"simple": SIMPLE, "english": ENGLISH}
_NAMES: Final = {oid: name for name, oid in _OIDS.items()}
_OTHERS: Final = frozenset(
    {
        "arabic", "armenian", "basque", "catalan", "danish", "dutch", "finnish", "french", "german", "greek", "hindi",
        "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "portuguese", "romanian",
        "russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish",
    }
)  # fmt: skip
"""What PostgreSQL has besides."""


def configuration(text: str) -> int:
    """The oid of a configuration's name. Raises 42704, 0A000 for one that PostgreSQL has and we have not."""
    name = text.strip().lower().removeprefix("pg_catalog.").strip('"')
    if name in _OIDS:
        return _OIDS[name]
    if name == "-":
        return 0
    if name.isdigit() and int(name) < 1 << 32:
        return int(name)
    if name in _OTHERS:
        raise unsupported(f"text search configuration {name}", hint="Use simple or english.")
    raise SqlError("42704", f'text search configuration "{text}" does not exist')


def configuration_name(oid: int) -> str:
    """The name of a configuration; of an oid that is none, its digits; ``-`` for 0."""
    return _NAMES.get(oid, str(oid) if oid else "-")


def _parse(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> int:
    return configuration(text)


def _write(type_: SqlType, datum: int, style: TextStyle, part: FormatPart) -> str:
    return configuration_name(datum)


def _send(type_: SqlType, datum: Any, part: BytesPart) -> bytes:
    return struct.pack(">I", datum)


def _receive(type_: SqlType, data: bytes, inside: Inside[bytes]) -> int:
    return int(struct.unpack(">I", data)[0])


DEFINITION: Final = TypeDefinition(
    Kind.REGCONFIG, "regconfig",
    "3734 regconfig 4 t b N f 0 3735 regconfig - i p 0",
    "3736:regconfigin 3737:regconfigout 3738:regconfigrecv 3739:regconfigsend",
    _parse, _write, _send, _receive,
)  # fmt: skip
