"""String functions and operators over text and bytea. Lengths and positions are in code points; the collation is C."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, AnyStr, Final

from ivm.errors import SqlError
from ivm.stops import polled
from ivm.words import BOOL, BYTEA, INT4, INT8, TEXT, Kind, SqlType
from planner.expr.functions.pieces import (
    backwards,
    between,
    changed,
    found,
    is_long,
    part,
    pieces,
    repeated,
    replaced,
    stripped,
    text_of,
    together,
)
from planner.expr.functions.room import joined, requested
from planner.expr.functions.table import Raises, per_value
from planner.expr.functions.text import columns

BPCHAR: Final = SqlType(Kind.BPCHAR)


@per_value("length", (TEXT,), INT4, makes_null=False, raises=Raises.NEVER, vector=columns.length)
@per_value("char_length", (TEXT,), INT4, makes_null=False, raises=Raises.NEVER, vector=columns.length)
@per_value("character_length", (TEXT,), INT4, vector=columns.length)
@per_value("length", (BYTEA,), INT4, makes_null=False, raises=Raises.NEVER, vector=columns.size())
@per_value("octet_length", (BYTEA,), INT4, vector=columns.size())
def length(value: str | bytes) -> int:
    return len(value)


@per_value("octet_length", (BPCHAR,), INT4)
@per_value("octet_length", (TEXT,), INT4, vector=columns.size())
def octet_length(value: str) -> int:
    return _size(value)


def _size(value: str) -> int:
    return len(value) if value.isascii() else sum(len(piece.encode()) for piece in pieces(value))


@per_value("length", (BPCHAR,), INT4, makes_null=False, raises=Raises.NEVER)
@per_value("char_length", (BPCHAR,), INT4, makes_null=False, raises=Raises.NEVER)
@per_value("character_length", (BPCHAR,), INT4)
def length_without_padding(value: str) -> int:
    return len(value.rstrip(" "))


@per_value("bit_length", (TEXT,), INT4, vector=columns.size(8))
def bit_length(value: str) -> int:
    return 8 * _size(value)


@per_value("bit_length", (BYTEA,), INT4, vector=columns.size(8))
def bit_length_bytes(value: bytes) -> int:
    return 8 * len(value)


def _all_upper(value: str) -> str:
    made = value.upper()
    return made if len(made) == len(value) else "".join(map(_upper, polled(value)))


def _all_lower(value: str) -> str:
    # of all letters only the capital sigma's lower case depends on what is around it
    made = "" if "Σ" in value else value.lower()
    return made if len(made) == len(value) else "".join(c.lower()[0] for c in polled(value))


@per_value("upper", (TEXT,), TEXT, makes_null=False, raises=Raises.NEVER, vector=columns.whole(_all_upper))
def upper(value: str) -> str:
    return changed(value, _all_upper)


@per_value("lower", (TEXT,), TEXT, makes_null=False, raises=Raises.NEVER, vector=columns.whole(_all_lower))
def lower(value: str) -> str:
    return changed(value, _all_lower)


def _upper(letter: str) -> str:
    # Unicode's simple mapping, as of C.UTF-8: one letter for one; ß stays, and ᾳ becomes its title case
    return next((mapped for mapped in (letter.upper(), letter.title()) if len(mapped) == 1), letter)


def _in_word(letter: str) -> bool:
    # letters, also in circles, and digits that are not raised; C.UTF-8 counts vowel signs too, which have no case
    category = unicodedata.category(letter)
    return category[0] == "L" or category in ("Nd", "Nl") or (category == "So" and letter != letter.swapcase())


@per_value("initcap", (TEXT,), TEXT, vector=columns.capitalised)
def initcap(value: str) -> str:
    inside = False

    def work(piece: str) -> str:
        nonlocal inside
        out: list[str] = []
        for c in polled(piece):
            out.append(_all_lower(c) if inside else _all_upper(c))
            inside = c.isalnum() if c.isascii() else _in_word(c)
        return "".join(out)

    return changed(value, work)


@per_value("ltrim", (BYTEA, BYTEA), BYTEA, makes_null=False, raises=Raises.NEVER)
@per_value("ltrim", (TEXT,), TEXT, makes_null=False, raises=Raises.NEVER, vector=columns.trimmed(True, False))
@per_value("ltrim", (TEXT, TEXT), TEXT, makes_null=False, raises=Raises.NEVER, vector=columns.trimmed(True, False))
def ltrim(value: Any, characters: Any = " ") -> Any:
    return stripped(value, lambda piece: piece.lstrip(characters), from_left=True) if characters else value


@per_value("rtrim", (BYTEA, BYTEA), BYTEA, makes_null=False, raises=Raises.NEVER)
@per_value("rtrim", (TEXT,), TEXT, makes_null=False, raises=Raises.NEVER, vector=columns.trimmed(False, True))
@per_value("rtrim", (TEXT, TEXT), TEXT, makes_null=False, raises=Raises.NEVER, vector=columns.trimmed(False, True))
def rtrim(value: Any, characters: Any = " ") -> Any:
    return stripped(value, lambda piece: piece.rstrip(characters), from_left=False) if characters else value


@per_value("btrim", (BYTEA, BYTEA), BYTEA, makes_null=False, raises=Raises.NEVER)
@per_value("trim", (BYTEA, BYTEA), BYTEA)
@per_value("btrim", (TEXT,), TEXT, makes_null=False, raises=Raises.NEVER, vector=columns.trimmed(True, True))
@per_value("trim", (TEXT,), TEXT, vector=columns.trimmed(True, True))
@per_value("btrim", (TEXT, TEXT), TEXT, makes_null=False, raises=Raises.NEVER, vector=columns.trimmed(True, True))
@per_value("trim", (TEXT, TEXT), TEXT, vector=columns.trimmed(True, True))
def btrim(value: Any, characters: Any = " ") -> Any:
    return rtrim(ltrim(value, characters), characters)


@per_value("lpad", (TEXT, INT4), TEXT, makes_null=False, vector=columns.padded(True))
@per_value("lpad", (TEXT, INT4, TEXT), TEXT, makes_null=False, vector=columns.padded(True))
def lpad(value: str, width: int, fill: str = " ") -> str:
    padding = _padding(value, width, fill)
    return together(padding, value) if padding else part(value, 0, max(width, 0))


@per_value("rpad", (TEXT, INT4), TEXT, makes_null=False, vector=columns.padded(False))
@per_value("rpad", (TEXT, INT4, TEXT), TEXT, makes_null=False, vector=columns.padded(False))
def rpad(value: str, width: int, fill: str = " ") -> str:
    padding = _padding(value, width, fill)
    return together(value, padding) if padding else part(value, 0, max(width, 0))


def _padding(value: str, width: int, fill: str) -> str:
    requested(width)
    missing = width - len(value)
    return repeated(fill, missing) if missing > 0 and fill else ""


@per_value("substring", (TEXT, INT4), TEXT, makes_null=False, vector=columns.substring_from)
@per_value("substr", (TEXT, INT4), TEXT, makes_null=False, vector=columns.substring_from)
@per_value("substring", (BYTEA, INT4), BYTEA, makes_null=False)
@per_value("substr", (BYTEA, INT4), BYTEA, makes_null=False)
def substring_from(value: AnyStr, start: int) -> AnyStr:
    return part(value, max(start - 1, 0))


@per_value("substring", (TEXT, INT4, INT4), TEXT, makes_null=False, vector=columns.substring)
@per_value("substr", (TEXT, INT4, INT4), TEXT, makes_null=False, vector=columns.substring)
@per_value("substring", (BYTEA, INT4, INT4), BYTEA, makes_null=False)
@per_value("substr", (BYTEA, INT4, INT4), BYTEA, makes_null=False)
def substring(value: AnyStr, start: int, count: int) -> AnyStr:
    if count < 0:
        raise SqlError("22011", "negative substring length not allowed")
    return part(value, max(start - 1, 0), max(start - 1 + count, 0))


@per_value("left", (TEXT, INT4), TEXT, vector=columns.left)
def left(value: str, count: int) -> str:
    return part(value, 0, count if count >= 0 else max(len(value) + count, 0))


@per_value("right", (TEXT, INT4), TEXT, vector=columns.right)
def right(value: str, count: int) -> str:
    if count >= 0:
        return part(value, max(len(value) - count, 0))
    return part(value, -count)


@per_value("position", (BYTEA, BYTEA), INT4, makes_null=False, raises=Raises.NEVER)
@per_value("position", (TEXT, TEXT), INT4, makes_null=False, raises=Raises.NEVER, vector=columns.position)
@per_value("strpos", (TEXT, TEXT), INT4, makes_null=False, raises=Raises.NEVER, vector=columns.position)
def strpos(value: AnyStr, wanted: AnyStr) -> int:
    return found(value, wanted) + 1


@per_value("replace", (TEXT, TEXT, TEXT), TEXT, makes_null=False, vector=columns.replacing)
def replace(value: str, old: str, new: str) -> str:
    if not old:
        return value
    if len(new) > len(old):
        count = sum(piece.count(old) for piece in between(value, old))
        joined(len(value) + count * (len(new) - len(old)))
    return text_of(replaced(value, old, new)) if is_long(value) else value.replace(old, new)


@per_value("translate", (TEXT, TEXT, TEXT), TEXT, vector=columns.translated)
def translate(value: str, old: str, new: str) -> str:
    table = columns.letters(old, new)
    return changed(value, lambda piece: piece.translate(table))


@per_value("split_part", (TEXT, TEXT, INT4), TEXT, vector=columns.split_part)
def split_part(value: str, delimiter: str, field: int) -> str:
    if field == 0:
        raise SqlError("22023", "field position must not be zero")
    if is_long(value) and delimiter:
        return _long_part(value, delimiter, field)
    parts = value.split(delimiter) if delimiter else [value]
    at = field - 1 if field > 0 else len(parts) + field
    return parts[at] if 0 <= at < len(parts) else ""


def _long_part(value: str, delimiter: str, field: int) -> str:
    if field < 0:
        field += 1 + sum(1 for _ in polled(_parts(value, delimiter)))
        if field <= 0:
            return ""
    start, stop = next(islice(polled(_parts(value, delimiter)), field - 1, None), (0, 0))
    return part(value, start, stop)


def _parts(value: str, delimiter: str) -> Iterator[tuple[int, int]]:
    """Where the parts between delimiters begin and end."""
    start = 0
    while (stop := found(value, delimiter, start)) >= 0:
        yield start, stop
        start = stop + len(delimiter)
    yield start, len(value)


@per_value("reverse", (TEXT,), TEXT, vector=columns.reversed_texts)
def reverse(value: str) -> str:
    return backwards(value)


@per_value("repeat", (TEXT, INT4), TEXT, vector=columns.repeated)
def repeat(value: str, count: int) -> str:
    requested(len(value) * max(count, 0))
    return repeated(value, len(value) * count) if value and count > 0 else ""


@per_value("||", (TEXT, TEXT), TEXT, makes_null=False, raises=Raises.NEVER, vector=columns.concatenated)
@per_value("||", (BYTEA, BYTEA), BYTEA, makes_null=False, raises=Raises.NEVER, vector=columns.concatenated)
def concatenate(left_part: AnyStr, right_part: AnyStr) -> AnyStr:
    joined(len(left_part) + len(right_part))
    return together(left_part, right_part)


JOINED: Final = "|| of many"
"""The key of what the evaluator makes of ``a || b || …`` of texts, whose parts would be made one after the other."""


@per_value(
    JOINED,
    (TEXT,),
    TEXT,
    variadic=True,
    key_is_name=True,
    internal=True,
    makes_null=False,
    vector=columns.concatenated,
)
def all_together(*parts: str) -> str:
    joined(sum(map(len, parts)))
    return together("", *parts)


@per_value("starts_with", (TEXT, TEXT), BOOL, raises=Raises.NEVER, vector=columns.starts_with)
@per_value("^@", (TEXT, TEXT), BOOL, vector=columns.starts_with)
def starts_with(value: str, prefix: str) -> bool:
    return value.startswith(prefix)


@per_value("ascii", (TEXT,), INT4)
def ascii_code(value: str) -> int:
    return ord(value[0]) if value else 0


@per_value("chr", (INT4,), TEXT)
def character(code: int) -> str:
    if code < 0:
        raise SqlError("22023", "character number must be positive")
    if code == 0:
        raise SqlError("54000", "null character not permitted")
    if not 0 < code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise SqlError("54000", f"requested character too large for encoding: {code}")
    return chr(code)


def _short_md5(value: bytes) -> bytes:
    return hashlib.md5(value, usedforsecurity=False).hexdigest().encode()


@per_value("md5", (TEXT,), TEXT, makes_null=False, vector=columns.by_bytes(_short_md5))
def md5(value: str) -> str:
    return digest("md5", (piece.encode() for piece in pieces(value))).hex()


@per_value("md5", (BYTEA,), TEXT, makes_null=False, vector=columns.by_bytes(_short_md5))
def md5_bytes(value: bytes) -> str:
    return digest("md5", pieces(value)).hex()


def digest(name: str, parts: Iterable[bytes]) -> bytes:
    """The hash of bytes that come in parts."""
    made = hashlib.new(name, usedforsecurity=False)
    for piece in parts:
        made.update(piece)
    return made.digest()


def _digits(base: str) -> tuple[Callable[[int], str], Callable[[int], str]]:
    return lambda value: format(value % 2**32, base), lambda value: format(value % 2**64, base)


for _name, _base in (("to_hex", "x"), ("to_oct", "o"), ("to_bin", "b")):
    for _type, _function in zip((INT4, INT8), _digits(_base), strict=True):
        per_value(_name, (_type,), TEXT)(_function)


@per_value("overlay", (BYTEA, BYTEA, INT4, INT4), BYTEA)
@per_value("overlay", (BYTEA, BYTEA, INT4), BYTEA)
@per_value("overlay", (TEXT, TEXT, INT4, INT4), TEXT)
@per_value("overlay", (TEXT, TEXT, INT4), TEXT)
def overlay(value: AnyStr, new: AnyStr, start: int, count: int | None = None) -> AnyStr:
    if start <= 0:
        raise SqlError("22011", "negative substring length not allowed")
    count = len(new) if count is None else count
    if not -(2**31) <= start + count < 2**31:
        raise SqlError("22003", "integer out of range")
    rest = start - 1 + count
    joined(len(value) + len(new))
    return together(part(value, 0, start - 1), new, part(value, max(rest, 0)))
