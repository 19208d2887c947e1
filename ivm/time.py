"""Timestamps in Python: shapes (``ivm.kernels.times``) and packing of vectors, with widths checked."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.kernels.codes import WIDTH_BITS

PRIORITIES: Final = 64
"""The number of priorities: one for each bit length of a word."""
ROUND_BITS: Final = 33
"""Bits that the rounds of nested loops share; the ordinal gets the rest."""
WIDEST: Final = 24
NARROWEST: Final = 2
"""Bits of one loop's round."""
MAX_LOOPS: Final = 12
_WIDTH: Final = (1 << WIDTH_BITS) - 1


def widths(shape: int) -> tuple[int, ...]:
    """The bits of each loop's round, outermost first."""
    found: tuple[int, ...] = ()
    while shape:
        found = (shape & _WIDTH, *found)
        shape >>= WIDTH_BITS
    return found


def all_bits(shape: int) -> int:
    """How many bits the rounds take."""
    return sum(widths(shape))


def deeper(shape: int, width: int) -> int:
    """The shape of a loop in another one. Raises 0A000 where times have no room for it."""
    if len(widths(shape)) == MAX_LOOPS or width < 1 or all_bits(shape) + width > ROUND_BITS:
        raise too_deep()
    return shape << WIDTH_BITS | width


def too_deep() -> SqlError:
    """The error for loops that are nested too deeply."""
    return unsupported(f"recursion nested more than {MAX_LOOPS} deep")


def some_width(shape: int, limit: int | None) -> int:
    """A round width for a loop of which only the limit is known."""
    room = ROUND_BITS - all_bits(shape)
    return min(room, limit.bit_length()) if limit is not None else min(room, max(room // 2, NARROWEST))


def check_ordinal(ordinal: int, bits: int) -> None:
    """Raises 54001 if an ordinal does not fit beside rounds of ``bits`` bits."""
    if not 0 <= ordinal < 1 << (63 - bits):
        raise SqlError("54001", f"time {ordinal} is out of range in a dataflow whose loops have {bits} bits of rounds")


def pack(shape: int, ordinal: int, *rounds: int) -> int:
    """The packed time of a vector."""
    time = ordinal
    for width, r in zip(widths(shape), rounds, strict=True):
        assert 0 <= r < 1 << width
        time = time << width | r
    return time


def unpack(time: int, shape: int) -> tuple[int, ...]:
    """The vector (ordinal, round, …) of a packed time."""
    found: tuple[int, ...] = ()
    while shape:
        width = shape & _WIDTH
        found = (time & ((1 << width) - 1), *found)
        time >>= width
        shape >>= WIDTH_BITS
    return (time, *found)


def last_width(shape: int) -> int:
    """The bits of the innermost round, by which a loop vector shifts on entering and leaving the loop."""
    return shape & _WIDTH


def priority_stride(width: int) -> int:
    """How many rounds each of ``PRIORITIES`` gets before the next one starts, in a loop whose round has ``width`` bits.

    The last priority keeps at least three quarters of the rounds; an earlier one that needs more than its own continues
    beside the next. 0: there is no room for priorities.
    """
    return 0 if width < 8 else 1 << min(12, width - 8)


def max_round(width: int) -> int:
    """The last round of a loop whose round has ``width`` bits. The next one is representable too: an arrangement that
    stands in for a variable's may contain it, but it is ignored."""
    return (1 << width) - 2
