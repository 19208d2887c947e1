"""Types regconfig and regdictionary: the names of text search configurations and dictionaries, of which there are two
each."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from ivm.errors import SqlError, unsupported
from ivm.words import Kind, SqlType
from storage.types.definition import BytesPart, FormatPart, Inside, TypeDefinition
from storage.types.text_style import TextStyle

SIMPLE: Final = 3748
ENGLISH: Final = 13164
SIMPLE_WORDS: Final = 3765
ENGLISH_STEMS: Final = 13163
_OIDS: Final = {"simple": SIMPLE, "english": ENGLISH}
_NAMES: Final = {oid: name for name, oid in _OIDS.items()}
_OTHERS: Final = frozenset(
    {
        "arabic", "armenian", "basque", "catalan", "danish", "dutch", "finnish", "french", "german", "greek", "hindi",
        "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "portuguese", "romanian",
        "russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish",
    }
)  # fmt: skip
"""What PostgreSQL has besides, and for each of them a dictionary."""
_DICTIONARIES: Final = {"simple": SIMPLE_WORDS, "english_stem": ENGLISH_STEMS}
_DICTIONARY_NAMES: Final = {oid: name for name, oid in _DICTIONARIES.items()}


def configuration(text: str) -> int:
    """The oid of a configuration's name. Raises 42704, 0A000 for one that PostgreSQL has and we have not."""
    return _named(text, "configuration", _OIDS, _OTHERS)


def dictionary(text: str) -> int:
    """The oid of a dictionary's name. Raises as ``configuration``."""
    return _named(text, "dictionary", _DICTIONARIES, {f"{name}_stem" for name in _OTHERS})


def _named(text: str, what: str, oids: Mapping[str, int], others: Collection[str]) -> int:
    name = text.strip().lower().removeprefix("pg_catalog.").strip('"')
    if name in oids:
        return oids[name]
    if name == "-":
        return 0
    if name.isdigit() and int(name) < 1 << 32:
        return int(name)
    if name in others:
        raise unsupported(f"text search {what} {name}", hint=f"Use {' or '.join(oids)}.")
    raise SqlError("42704", f'text search {what} "{text}" does not exist')


def configuration_name(oid: int) -> str:
    """The name of a configuration; of an oid that is none, its digits; ``-`` for 0."""
    return _NAMES.get(oid, str(oid) if oid else "-")


def _send(type_: SqlType, datum: Any, part: BytesPart) -> bytes:
    return struct.pack(">I", datum)


def _receive(type_: SqlType, data: bytes, inside: Inside[bytes]) -> int:
    return int(struct.unpack(">I", data)[0])


def _definition(kind: Kind, oids: str, functions: str, read: Reader, names: Mapping[int, str]) -> TypeDefinition:
    def parse(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> int:
        return read(text)

    def write(type_: SqlType, datum: int, style: TextStyle, part: FormatPart) -> str:
        return names.get(datum, str(datum) if datum else "-")

    return TypeDefinition(kind, kind.value, oids, functions, parse, write, _send, _receive)


Reader = Callable[[str], int]
DEFINITION: Final = _definition(
    Kind.REGCONFIG, "3734 regconfig 4 t b N f 0 3735 regconfig - i p 0",
    "3736:regconfigin 3737:regconfigout 3738:regconfigrecv 3739:regconfigsend", configuration, _NAMES,
)  # fmt: skip
DICTIONARY: Final = _definition(
    Kind.REGDICTIONARY, "3769 regdictionary 4 t b N f 0 3770 regdictionary - i p 0",
    "3771:regdictionaryin 3772:regdictionaryout 3773:regdictionaryrecv 3774:regdictionarysend", dictionary,
    _DICTIONARY_NAMES,
)  # fmt: skip
