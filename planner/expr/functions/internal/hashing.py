"""PostgreSQL's hashes of values, by which it chooses a row's hash partition.

Bytes are hashed by Bob Jenkins's lookup3, which is in the public domain. Every hash has 64 bits; as a datum it is the
signed number of the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import BOOL, DATE, INT2, INT4, INT8, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, SqlType
from planner.expr.functions.table import per_value

FOLDED: Final = "hash folded"
"""The hash of some columns, and one column more: a NULL leaves it as it is."""
REMAINDER: Final = "hash remainder"
_WORD: Final = 2**32 - 1
_LONG: Final = 2**64 - 1
_SEED: Final = 0x7A5B22367996DCFD
_START: Final = 0x9E3779B9 + 3923095
_MIXES: Final = (4, 6, 8, 16, 19, 4)
_FINALS: Final = (14, 11, 25, 16, 4, 14, 24)


def _turned(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _WORD


def _mixed(state: Iterable[int]) -> tuple[int, int, int]:
    a, b, c = state
    for by in _MIXES:
        a = (a - c & _WORD) ^ _turned(c, by)
        c = c + b & _WORD
        a, b, c = b, c, a  # the next line of the round: the letters move on
    return a, b, c


def _ended(state: Iterable[int]) -> int:
    a, b, c = state
    for by in _FINALS:
        c = (c ^ b) - _turned(b, by) & _WORD
        a, b, c = b, c, a
    return (a << 32 | b) & _LONG


def _begun(length: int) -> tuple[int, int, int]:
    start = _START + length & _WORD
    return _mixed((start + (_SEED >> 32) & _WORD, start + (_SEED & _WORD) & _WORD, start))


def hash_word(value: int) -> int:
    """The hash of 32 bits."""
    a, b, c = _begun(4)
    return _ended((a + (value & _WORD) & _WORD, b, c))


def hash_bytes(data: bytes) -> int:
    """The hash of a string of bytes."""
    state = _begun(len(data))
    whole = len(data) - len(data) % 12
    for at in range(0, whole, 12):
        state = _mixed(_added(state, data[at : at + 12]))
    rest = data[whole:]
    return _ended(_added(state, rest[:8] + (b"\0" + rest[8:] if len(rest) > 8 else b"")))


def _added(state: Iterable[int], data: bytes) -> tuple[int, int, int]:
    padded = data.ljust(12, b"\0")
    a, b, c = (word + int.from_bytes(padded[i * 4 : i * 4 + 4], "little") & _WORD for i, word in enumerate(state))
    return a, b, c


def _hash_long(value: int) -> int:
    low, high = value & _WORD, value >> 32 & _WORD
    return hash_word(low ^ (high if value >= 0 else ~high & _WORD))


def _hash_numeric(value: Decimal) -> int:
    if not value.is_finite():
        return _SEED
    if not value:
        return _SEED - 1
    _, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits))
    assert isinstance(exponent, int), "it is finite"
    text += "0" * (exponent % 4)
    exponent -= exponent % 4
    text = text.rjust(-(-len(text) // 4) * 4, "0")
    groups = [int(text[i : i + 4]) for i in range(0, len(text), 4)]
    weight = len(groups) - 1 + exponent // 4
    while not groups[0]:
        groups, weight = groups[1:], weight - 1
    while not groups[-1]:
        groups = groups[:-1]
    return hash_bytes(b"".join(group.to_bytes(2, "little") for group in groups)) ^ (weight & _LONG)


def _hash_text(value: str) -> int:
    return hash_bytes(value.encode())


_RULES: Final[dict[SqlType, Callable[[Any], int]]] = {
    INT2: hash_word, INT4: hash_word, INT8: _hash_long, DATE: hash_word, TIMESTAMP: _hash_long,
    TIMESTAMPTZ: _hash_long, BOOL: lambda value: hash_word(int(value)), NUMERIC: _hash_numeric, TEXT: _hash_text,
    SqlType(Kind.VARCHAR): _hash_text, SqlType(Kind.BPCHAR): lambda value: _hash_text(value.rstrip(" ")),
}  # fmt: skip


def _fold(rule: Callable[[Any], int]) -> Callable[[int | None, object], int]:
    def folded(state: int | None, value: object) -> int:
        if value is None or state is None:
            return state or 0
        state &= _LONG
        found = state ^ (rule(value) + 0x49A0F4DD15E5A8E3 + (state << 54 & _LONG) + (state >> 7)) & _LONG
        return found - (found >> 63 << 64)

    return folded


for _type, _rule in _RULES.items():
    per_value(FOLDED, (INT8, _type), INT8, strict=False, makes_null=False, internal=True)(_fold(_rule))


@per_value(REMAINDER, (INT8, INT8), INT8, internal=True)
def remainder(state: int, modulus: int) -> int:
    if modulus <= 0:
        raise SqlError("22023", "a modulus is positive")
    return (state & _LONG) % modulus
