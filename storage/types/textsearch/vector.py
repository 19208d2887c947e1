"""Type tsvector. A datum is a ``Vector``: entries in order of their lexemes' bytes, each a lexeme and its places.

A place is a word's position (1 to 16383) with a weight, ``weight << 14 | position``, as the binary form has it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError
from ivm.words import TEXT, Kind, SqlType
from storage.types.definition import BytesPart, FormatPart, FromBytesPart, Inside, TypeDefinition
from storage.types.text_style import TextStyle
from storage.types.textsearch.lexemes import MOST_POSITION, WEIGHTS, checked, quoted, read_lexeme, syntax_error

Entry = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Vector:
    """A datum of type tsvector."""

    entries: tuple[Entry, ...]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


_MOST_PLACES: Final = 255
_PLACE: Final = re.compile(r"([0-9]+)([^,\s]*)")
_WEIGHT: Final = re.compile(r"[Dd0-9]*(?:([ABCabc*])[0-9]*)?")
"""What follows a position: digits do not count, and D is no weight."""


def position(place: int) -> int:
    """A place without its weight."""
    return place & 0x3FFF


def vector_of(entries: Iterable[Entry]) -> Vector:
    """A vector of entries in any order. Of places with one position the heaviest stays."""
    found: dict[str, list[int]] = {}
    for lexeme, places in entries:
        found.setdefault(lexeme, []).extend(places)
    return Vector(tuple((lexeme, _places(found[lexeme])) for lexeme in sorted(found, key=str.encode)))


def _places(places: list[int]) -> tuple[int, ...]:
    heaviest: dict[int, int] = {}
    for place in places:
        heaviest[position(place)] = max(place, heaviest.get(position(place), 0))
    return tuple(heaviest[p] for p in sorted(heaviest)[:_MOST_PLACES])


def _parse(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> Vector:
    entries: list[Entry] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        lexeme, at = read_lexeme(text, at, "tsvector")
        places: tuple[int, ...] = ()
        if text[at : at + 1] == ":":
            places, at = _read_places(text, at + 1)
        entries.append((checked(lexeme), places))
    return vector_of(entries)


def _read_places(text: str, at: int) -> tuple[tuple[int, ...], int]:
    """The places after a colon, and where they end."""
    places: list[int] = []
    while True:
        found = _PLACE.match(text, at)
        if found is None:
            raise syntax_error("tsvector", text)
        number = min(int(found[1]), MOST_POSITION)
        if number == 0:
            raise SqlError("42601", f'wrong position info in tsvector: "{text}"')
        match = _WEIGHT.fullmatch(found[2])
        if match is None:
            raise syntax_error("tsvector", text)
        weight = (match[1] or "").upper().replace("*", "A")
        places.append((WEIGHTS.index(weight) << 14 if weight else 0) | number)
        at = found.end()
        if text[at : at + 1] != ",":
            return tuple(places), at
        at += 1


def _written(entry: Entry) -> str:
    lexeme, places = entry
    shown = ",".join(f"{position(p)}{WEIGHTS[p >> 14] if p >> 14 else ''}" for p in places)
    return f"{quoted(lexeme)}:{shown}" if shown else quoted(lexeme)


def _write(type_: SqlType, datum: Vector, style: TextStyle, part: FormatPart) -> str:
    return " ".join(map(_written, datum))


def _send(type_: SqlType, datum: Vector, part: BytesPart) -> bytes:
    out = [struct.pack(">i", len(datum))]
    for lexeme, places in datum:
        out += [part(TEXT, lexeme), b"\0", struct.pack(f">{len(places) + 1}H", len(places), *places)]
    return b"".join(out)


def _unpack(type_: SqlType, data: bytes, part: FromBytesPart) -> Vector:
    (count,), at = struct.unpack_from(">i", data), 4
    entries = []
    for _ in range(count):
        end = data.index(b"\0", at)
        lexeme = part(TEXT, data[at:end])
        (size,) = struct.unpack_from(">H", data, end + 1)
        entries.append((lexeme, struct.unpack_from(f">{size}H", data, end + 3)))
        at = end + 3 + 2 * size
    if at != len(data):
        raise ValueError
    return Vector(tuple(entries))


def _receive(type_: SqlType, data: bytes, inside: Inside[bytes]) -> Vector:
    entries = _unpack(type_, data, inside.read)
    if any(not lexeme or position(p) == 0 for lexeme, places in entries for p in (*places, 1)):
        raise ValueError
    return vector_of((checked(lexeme), places) for lexeme, places in entries)


def _key(type_: SqlType, datum: Vector, part: BytesPart) -> bytes:
    """As Postgres compares vectors: by their size in memory, then by the number of lexemes; of one lexeme, more places
    and later ones come first."""
    size, out = 8 + 4 * len(datum), []
    strings = 0
    for lexeme, places in datum:
        strings += len(lexeme.encode())
        out += [b"\0" if places else b"\1", lexeme.encode(), b"\0"]
        if places:
            strings += strings % 2 + 2 + 2 * len(places)
            out += [struct.pack(">H", 0xFFFF - len(places))]
            out += [struct.pack(">HB", 0xFFFF - position(p), 3 - (p >> 14)) for p in places]
    return struct.pack(">II", size + strings, len(datum)) + b"".join(out)


DEFINITION: Final = TypeDefinition(
    Kind.TSVECTOR, "tsvector",
    "3614 tsvector -1 f b U f 0 3643 ts - i x 0",
    "3610:tsvectorin 3611:tsvectorout 3639:tsvectorrecv 3638:tsvectorsend",
    _parse, _write, _send, _receive, _send, _unpack, key=_key,
)  # fmt: skip
