"""Range and multirange types: text, binary form, bytes, order. Datums are those of ``storage.types.range_values``."""

from __future__ import annotations

import re
import struct
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import DATE, INT4, INT8, NUMERIC, TIMESTAMP, TIMESTAMPTZ, Kind, NamedType, RangeType, SqlType
from storage.types.arrays import fields_from_bytes, fields_to_bytes
from storage.types.definition import BytesPart, FormatPart, FromBytesPart, Inside, TypeDefinition
from storage.types.range_values import (
    EMPTY,
    Multirange,
    Range,
    multirange_of,
    range_type_of,
    space_of,
    subtype_of,
)
from storage.types.text_style import TextStyle

_EMPTY_FLAG, _LOWER_INC, _UPPER_INC, _LOWER_INF, _UPPER_INF = 1, 2, 4, 8, 16
_NEEDS_QUOTES: Final = re.compile(r'[\s()\[\],"\\]')
_COUNT: Final = struct.Struct("!I")
_SPACE: Final = " \t\n\r\v\f"


class _Text:
    """A cursor over a literal. ``whole``: for errors; ``what``: range or multirange."""

    def __init__(self, text: str, what: str) -> None:
        self.text, self.what, self.at = text, what, 0

    def fail(self, detail: str) -> SqlError:
        return SqlError("22P02", f'malformed {self.what} literal: "{self.text}"', detail)

    def skip(self) -> str:
        """The next character that is not blank, '' at the end."""
        while self.text[self.at : self.at + 1] in _SPACE and self.at < len(self.text):
            self.at += 1
        return self.text[self.at : self.at + 1]

    def word(self, word: str) -> bool:
        """Passes a word, if it comes next."""
        found = self.text[self.at : self.at + len(word)].lower() == word
        self.at += len(word) * found
        return found

    def bound(self) -> str | None:
        """A bound's text, None where it is empty and so infinite."""
        if self.text[self.at : self.at + 1] in (",", ")", "]"):
            return None
        out: list[str] = []
        quoted = False
        while True:
            c = self.text[self.at : self.at + 1]
            if not c:
                raise self.fail("Unexpected end of input.")
            if not quoted and c in ",)]":
                return "".join(out)
            self.at += 1
            if c == "\\":
                c = self.text[self.at : self.at + 1]
                if not c:
                    raise self.fail("Unexpected end of input.")
                out.append(c)
                self.at += 1
            elif c == '"' and quoted and self.text[self.at : self.at + 1] == '"':
                out.append(c)
                self.at += 1
            elif c == '"':
                quoted = not quoted
            else:
                out.append(c)


def _read(cursor: _Text, type_: SqlType, inside: Inside[str]) -> Range:
    """A range at the cursor, which ends after it."""
    cursor.skip()
    if cursor.word("empty"):
        return EMPTY
    opening = cursor.text[cursor.at : cursor.at + 1]
    if opening not in ("[", "("):
        raise cursor.fail("Missing left parenthesis or bracket.")
    cursor.at += 1
    lower = cursor.bound()
    if cursor.text[cursor.at] != ",":
        raise cursor.fail("Missing comma after lower bound.")
    cursor.at += 1
    upper = cursor.bound()
    closing = cursor.text[cursor.at : cursor.at + 1]
    if closing == ",":
        raise cursor.fail("Too many commas.")
    cursor.at += 1
    subtype = subtype_of(type_)
    low, high = (None if bound is None else inside.read(subtype, bound) for bound in (lower, upper))
    return space_of(type_, inside.key).make(low, high, opening == "[", closing == "]")


def _parse(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> Range:
    cursor = _Text(text, "range")
    found = _read(cursor, type_, inside)
    if cursor.skip():
        raise cursor.fail(f"Junk after {_EMPTY_WORD if found is EMPTY and 'm' in text.lower() else _CLOSING}.")
    return found


_EMPTY_WORD: Final = '"empty" key word'
_CLOSING: Final = "right parenthesis or bracket"


def _quoted(text: str) -> str:
    if text and not _NEEDS_QUOTES.search(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'


def _write(type_: SqlType, datum: Range, style: TextStyle, part: FormatPart) -> str:
    if datum.empty:
        return "empty"
    subtype = subtype_of(type_)
    lower, upper = ("" if b is None else _quoted(part(subtype, b)) for b in (datum.lower, datum.upper))
    return f"{'[' if datum.lower_inc else '('}{lower},{upper}{']' if datum.upper_inc else ')'}"


def _flags(datum: Range) -> int:
    if datum.empty:
        return _EMPTY_FLAG
    flags = _LOWER_INC * datum.lower_inc | _UPPER_INC * datum.upper_inc
    return flags | _LOWER_INF * (datum.lower is None) | _UPPER_INF * (datum.upper is None)


def _send(type_: SqlType, datum: Range, part: BytesPart) -> bytes:
    bounds = [part(subtype_of(type_), bound) for bound in (datum.lower, datum.upper) if bound is not None]
    return bytes([_flags(datum)]) + b"".join(_COUNT.pack(len(bound)) + bound for bound in bounds)


def _receive(type_: SqlType, data: bytes, inside: Inside[bytes]) -> Range:
    flags, at = data[0], 1
    if flags & _EMPTY_FLAG:
        return EMPTY
    bounds: list[Any] = []
    for infinite in (_LOWER_INF, _UPPER_INF):
        if flags & infinite:
            bounds.append(None)
            continue
        size = _COUNT.unpack_from(data, at)[0]
        bounds.append(inside.read(subtype_of(type_), data[at + 4 : at + 4 + size]))
        at += 4 + size
    if at != len(data):
        raise ValueError
    lower, upper = bounds
    return space_of(type_, inside.key).make(lower, upper, bool(flags & _LOWER_INC), bool(flags & _UPPER_INC))


def _pack(type_: SqlType, datum: Range, part: BytesPart) -> bytes:
    bounds = (None if bound is None else part(subtype_of(type_), bound) for bound in (datum.lower, datum.upper))
    return bytes([_flags(datum)]) + fields_to_bytes(list(bounds))


def _unpack(type_: SqlType, data: bytes, part: FromBytesPart) -> Range:
    if data[0] & _EMPTY_FLAG:
        return EMPTY
    lower, upper = (None if b is None else part(subtype_of(type_), b) for b in fields_from_bytes(data[1:]))
    return Range(lower, upper, bool(data[0] & _LOWER_INC), bool(data[0] & _UPPER_INC))


def _delimited(key: bytes) -> bytes:
    return key.replace(b"\0", b"\0\xff") + b"\0\x01"


def _key(type_: SqlType, datum: Range, part: BytesPart) -> bytes:
    """An empty range is least; then by the lower bound, then by the upper."""
    if datum.empty:
        return b"\x00"
    subtype, lower, upper = subtype_of(type_), b"\x00", b"\x02"
    if datum.lower is not None:
        lower = b"\x01" + _delimited(part(subtype, datum.lower)) + (b"\x00" if datum.lower_inc else b"\x01")
    if datum.upper is not None:
        upper = b"\x01" + _delimited(part(subtype, datum.upper)) + (b"\x01" if datum.upper_inc else b"\x00")
    return b"\x01" + lower + upper


def _canonical(type_: SqlType, datum: Range, part: Any) -> Range:
    subtype = subtype_of(type_)
    lower, upper = (None if bound is None else part(subtype, bound) for bound in (datum.lower, datum.upper))
    return Range(lower, upper, datum.lower_inc, datum.upper_inc, datum.empty)


def _parse_many(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> Multirange:
    cursor = _Text(text, "multirange")
    if cursor.skip() != "{":
        raise cursor.fail("Missing left brace.")
    cursor.at += 1
    ranges: list[Range] = []
    if cursor.skip() != "}":
        while True:
            ranges.append(_next_range(cursor, range_type_of(type_), inside))
            mark = cursor.skip()
            if mark not in (",", "}") or not mark:
                raise cursor.fail("Unexpected end of input." if not mark else "Expected comma or end of multirange.")
            if mark == "}":
                break
            cursor.at += 1
    cursor.at += 1
    if cursor.skip():
        raise cursor.fail("Junk after closing right brace.")
    return space_of(type_, inside.key).gathered(ranges)


def _next_range(cursor: _Text, type_: SqlType, inside: Inside[str]) -> Range:
    first = cursor.skip()
    if not first:
        raise cursor.fail("Unexpected end of input.")
    if first not in "[(" and cursor.text[cursor.at : cursor.at + 5].lower() != "empty":
        raise cursor.fail("Expected range start.")
    return _read(cursor, type_, inside)


def _write_many(type_: SqlType, datum: Multirange, style: TextStyle, part: FormatPart) -> str:
    return "{" + ",".join(part(range_type_of(type_), range_) for range_ in datum.ranges) + "}"


def _send_many(type_: SqlType, datum: Multirange, part: BytesPart) -> bytes:
    parts = [part(range_type_of(type_), range_) for range_ in datum.ranges]
    return _COUNT.pack(len(parts)) + b"".join(_COUNT.pack(len(each)) + each for each in parts)


def _receive_many(type_: SqlType, data: bytes, inside: Inside[bytes]) -> Multirange:
    at, ranges = 4, []
    for _ in range(_COUNT.unpack_from(data)[0]):
        size = _COUNT.unpack_from(data, at)[0]
        ranges.append(inside.read(range_type_of(type_), data[at + 4 : at + 4 + size]))
        at += 4 + size
    if at != len(data):
        raise ValueError
    return space_of(type_, inside.key).gathered(ranges)


def _pack_many(type_: SqlType, datum: Multirange, part: BytesPart) -> bytes:
    return fields_to_bytes([part(range_type_of(type_), range_) for range_ in datum.ranges])


def _unpack_many(type_: SqlType, data: bytes, part: FromBytesPart) -> Multirange:
    return Multirange(tuple(part(range_type_of(type_), each) for each in fields_from_bytes(data) if each is not None))


def _key_many(type_: SqlType, datum: Multirange, part: BytesPart) -> bytes:
    return b"".join(part(range_type_of(type_), range_) for range_ in datum.ranges) + b"\x00"


def _canonical_many(type_: SqlType, datum: Multirange, part: Any) -> Multirange:
    return Multirange(tuple(part(range_type_of(type_), range_) for range_ in datum.ranges))


def _built_in(name: str, oid: int, array: int, subtype: SqlType, many: tuple[str, int, int], discrete: bool) -> SqlType:
    multirange = NamedType(many[1], many[2], many[0], many[0])
    return SqlType(Kind.RANGE, subtype=subtype, named=RangeType(oid, array, name, name, multirange, discrete))


BUILT_IN: Final = (
    _built_in("int4range", 3904, 3905, INT4, ("int4multirange", 4451, 6150), True),
    _built_in("numrange", 3906, 3907, NUMERIC, ("nummultirange", 4532, 6151), False),
    _built_in("tsrange", 3908, 3909, TIMESTAMP, ("tsmultirange", 4533, 6152), False),
    _built_in("tstzrange", 3910, 3911, TIMESTAMPTZ, ("tstzmultirange", 4534, 6153), False),
    _built_in("daterange", 3912, 3913, DATE, ("datemultirange", 4535, 6155), True),
    _built_in("int8range", 3926, 3927, INT8, ("int8multirange", 4536, 6157), True),
)
_WIDE: Final = (TIMESTAMP, TIMESTAMPTZ, INT8)


def _lines(types: tuple[SqlType, ...], mark: str) -> str:
    """The rows of pg_type."""
    return "\n".join(
        f"{t.named.oid} {t.named.name} -1 f {mark} R f 0 {t.named.array_oid} "
        f"{'range_' if mark == 'r' else 'multirange_'} - {'d' if subtype_of(t) in _WIDE else 'i'} x 0"
        for t in types
        if t.named is not None
    )


_MANY: Final = tuple(map(multirange_of, BUILT_IN))
RANGE: Final = TypeDefinition(
    Kind.RANGE, "anyrange", _lines(BUILT_IN, "r"),
    "3834:range_in 3835:range_out 3836:range_recv 3837:range_send",
    _parse, _write, _send, _receive, _pack, _unpack, key=_key, canonical=_canonical, by_settings=True, family=BUILT_IN,
)  # fmt: skip
MULTIRANGE: Final = TypeDefinition(
    Kind.MULTIRANGE, "anymultirange", _lines(_MANY, "m"),
    "4231:multirange_in 4232:multirange_out 4233:multirange_recv 4234:multirange_send",
    _parse_many, _write_many, _send_many, _receive_many, _pack_many, _unpack_many, key=_key_many,
    canonical=_canonical_many, by_settings=True, family=_MANY,
)  # fmt: skip
