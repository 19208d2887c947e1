"""Bit strings: operators, functions and casts. A datum is a string of 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ivm.errors import SqlError
from ivm.words import INT4, INT8, Kind, SqlType
from planner.expr.functions.casts.registry import cast_per_value
from planner.expr.functions.table import CallSite, Raises, per_value
from planner.expr.functions.text.string import substring, substring_from
from storage.types.bits import fit_bits

BIT: Final = SqlType(Kind.BIT)
VARBIT: Final = SqlType(Kind.VARBIT)
_WIDTHS: Final = {Kind.INT4: (32, "integer"), Kind.INT8: (64, "bigint")}


@cast_per_value(
    (Kind.BIT, Kind.VARBIT), (Kind.BIT, Kind.VARBIT), needs_assignment=True, context="implicit", raises=Raises.TYPMOD
)
def fitted(site: CallSite, value: str, assignment: bool) -> str:
    return fit_bits(value, site.result, not assignment)


@cast_per_value((Kind.INT4, Kind.INT8), (Kind.BIT,), needs_site=True, context="explicit", raises=Raises.NEVER)
def from_integer(site: CallSite, value: int) -> str:
    """The lowest bits; more than the integer has repeat its sign."""
    length = site.result.precision or 1
    return f"{value & ((1 << length) - 1):0{length}b}"


@cast_per_value((Kind.BIT,), (Kind.INT4, Kind.INT8), needs_site=True, context="explicit")
def to_integer(site: CallSite, value: str) -> int:
    width, label = _WIDTHS[site.result.kind]
    if len(value) > width:
        raise SqlError("22003", f"{label} out of range")
    number = int(value or "0", 2)
    return number - (1 << width) if number >> (width - 1) else number


def _combined(name: str, rule: Callable[[int, int], int]) -> Callable[[str, str], str]:
    def run(left: str, right: str) -> str:
        if len(left) != len(right):
            raise SqlError("22026", f"cannot {name} bit strings of different sizes")
        return f"{rule(int(left, 2), int(right, 2)):0{len(left)}b}" if left else ""

    return run


bit_and: Final = per_value("&", (BIT, BIT), BIT, makes_null=False)(_combined("AND", lambda a, b: a & b))
bit_or: Final = per_value("|", (BIT, BIT), BIT, makes_null=False)(_combined("OR", lambda a, b: a | b))
bit_xor: Final = per_value("#", (BIT, BIT), BIT, makes_null=False)(_combined("XOR", lambda a, b: a ^ b))
_INVERTED: Final = str.maketrans("01", "10")


@per_value("~", (BIT,), BIT, makes_null=False, raises=Raises.NEVER)
def inverted(value: str) -> str:
    return value.translate(_INVERTED)


@per_value("<<", (BIT, INT4), BIT, makes_null=False, raises=Raises.NEVER)
def shift_left(value: str, count: int) -> str:
    size = min(abs(count), len(value))
    return value[size:] + "0" * size if count >= 0 else "0" * size + value[: len(value) - size]


@per_value(">>", (BIT, INT4), BIT, makes_null=False, raises=Raises.NEVER)
def shift_right(value: str, count: int) -> str:
    return shift_left(value, -count)


@per_value("||", (VARBIT, VARBIT), VARBIT, makes_null=False, raises=Raises.NEVER)
def concatenate(left: str, right: str) -> str:
    return left + right


@per_value("length", (BIT,), INT4, makes_null=False, raises=Raises.NEVER)
@per_value("bit_length", (BIT,), INT4, makes_null=False, raises=Raises.NEVER)
def length(value: str) -> int:
    return len(value)


@per_value("octet_length", (BIT,), INT4, makes_null=False, raises=Raises.NEVER)
def octet_length(value: str) -> int:
    return -(-len(value) // 8)


@per_value("bit_count", (BIT,), INT8, makes_null=False, raises=Raises.NEVER)
def bit_count(value: str) -> int:
    return value.count("1")


@per_value("position", (BIT, BIT), INT4, makes_null=False, raises=Raises.NEVER)
def position(value: str, part: str) -> int:
    return value.find(part) + 1 if value else 0


per_value("substring", (BIT, INT4), BIT, makes_null=False)(substring_from)
per_value("substring", (BIT, INT4, INT4), BIT, makes_null=False)(substring)


@per_value("overlay", (BIT, BIT, INT4), BIT, makes_null=False)
@per_value("overlay", (BIT, BIT, INT4, INT4), BIT, makes_null=False)
def overlay(value: str, new: str, start: int, count: int | None = None) -> str:
    if start <= 0:
        raise SqlError("22011", "negative substring length not allowed")
    count = len(new) if count is None else count
    if not -(2**31) <= start + count < 2**31:
        raise SqlError("22003", "integer out of range")
    after = start - 1 + count
    return value[: start - 1] + new + value[max(after, 0) :]


def _checked(value: str, place: int) -> None:
    if not 0 <= place < len(value):
        raise SqlError("2202E", f"bit index {place} out of valid range (0..{len(value) - 1})")


@per_value("get_bit", (BIT, INT4), INT4, makes_null=False)
def get_bit(value: str, place: int) -> int:
    _checked(value, place)
    return int(value[place])


@per_value("set_bit", (BIT, INT4, INT4), BIT, makes_null=False)
def set_bit(value: str, place: int, bit: int) -> str:
    _checked(value, place)
    if bit not in (0, 1):
        raise SqlError("22023", "new bit must be 0 or 1")
    return f"{value[:place]}{bit}{value[place + 1 :]}"
