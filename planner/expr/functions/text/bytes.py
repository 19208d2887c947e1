"""Functions of bytea: bits and bytes, digests, parts, encodings of text."""

from __future__ import annotations

from ivm.errors import SqlError
from ivm.words import BOOL, BYTEA, INT4, INT8, NAME, TEXT
from planner.expr.functions.pieces import part, pieces, together
from planner.expr.functions.table import Raises, per_value
from planner.expr.functions.text.encodings import decoded, encoded, encoding_of
from planner.expr.functions.text.regex import like_escape, matches_like
from planner.expr.functions.text.string import digest


def _checked_index(at: int, count: int) -> int:
    if not 0 <= at < count:
        raise SqlError("2202E", f"index {at} out of valid range, 0..{count - 1}")
    return at


@per_value("get_byte", (BYTEA, INT4), INT4)
def get_byte(value: bytes, at: int) -> int:
    return value[_checked_index(at, len(value))]


@per_value("set_byte", (BYTEA, INT4, INT4), BYTEA)
def set_byte(value: bytes, at: int, new: int) -> bytes:
    _checked_index(at, len(value))
    return together(part(value, 0, at), bytes([new & 255]), part(value, at + 1))


@per_value("get_bit", (BYTEA, INT8), INT4)
def get_bit(value: bytes, at: int) -> int:
    """Bits are numbered from the lowest of the first byte."""
    _checked_index(at, len(value) * 8)
    return value[at // 8] >> at % 8 & 1


@per_value("set_bit", (BYTEA, INT8, INT4), BYTEA)
def set_bit(value: bytes, at: int, new: int) -> bytes:
    _checked_index(at, len(value) * 8)
    if new not in (0, 1):
        raise SqlError("22023", "new bit must be 0 or 1")
    place, mask = at // 8, 1 << at % 8
    changed = value[place] | mask if new else value[place] & ~mask
    return together(part(value, 0, place), bytes([changed]), part(value, place + 1))


@per_value("bit_count", (BYTEA,), INT8, raises=Raises.NEVER)
def bit_count(value: bytes) -> int:
    return sum(int.from_bytes(piece, "big").bit_count() for piece in pieces(value))


per_value("sha224", (BYTEA,), BYTEA)(lambda value: digest("sha224", pieces(value)))
per_value("sha256", (BYTEA,), BYTEA)(lambda value: digest("sha256", pieces(value)))
per_value("sha384", (BYTEA,), BYTEA)(lambda value: digest("sha384", pieces(value)))
per_value("sha512", (BYTEA,), BYTEA)(lambda value: digest("sha512", pieces(value)))


@per_value("length", (BYTEA, NAME), INT4)
def length_in(value: bytes, encoding: str) -> int:
    """The number of characters in an encoding."""
    return len(decoded(value, encoding_of(encoding)))


@per_value("convert_from", (BYTEA, NAME), TEXT)
def convert_from(value: bytes, encoding: str) -> str:
    return decoded(value, encoding_of(encoding, "source"))


@per_value("convert_to", (TEXT, NAME), BYTEA)
def convert_to(value: str, encoding: str) -> bytes:
    return encoded(value, encoding_of(encoding, "destination"))


@per_value("convert", (BYTEA, NAME, NAME), BYTEA)
def convert(value: bytes, source: str, destination: str) -> bytes:
    return encoded(decoded(value, encoding_of(source, "source")), encoding_of(destination, "destination"))


@per_value("~~", (BYTEA, BYTEA), BOOL)
@per_value("like", (BYTEA, BYTEA), BOOL)
def like_bytes(value: bytes, pattern: bytes) -> bool:
    return matches_like(value.decode("latin-1"), pattern.decode("latin-1"), False)


@per_value("!~~", (BYTEA, BYTEA), BOOL)
@per_value("notlike", (BYTEA, BYTEA), BOOL)
def not_like_bytes(value: bytes, pattern: bytes) -> bool:
    return not like_bytes(value, pattern)


@per_value("like_escape", (BYTEA, BYTEA), BYTEA)
def like_escape_bytes(pattern: bytes, escape: bytes) -> bytes:
    return like_escape(pattern.decode("latin-1"), escape.decode("latin-1")).encode("latin-1")
