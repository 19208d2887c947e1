"""Timestamps: vectors (ordinal, round, …) of one coordinate for each enclosing loop, packed into one int64.

The ordinal lies in the high bits, then the rounds, outermost first; so packed times compare lexicographically as
integers. The *shape* of a time gives the width of each loop's round: WIDTH_BITS bits for each loop, the innermost in
the lowest, 0 outside of loops. A loop's round keeps its width in inner loops, so that entering a loop shifts a time.
The product order is ``below``; ``lub`` is its join.
"""

from __future__ import annotations

from typing import Final

from ivm.kernels.cache import kernel
from ivm.kernels.codes import WIDTH_BITS

# Widths are checked where ordinals are fed and where rounds are counted, never here.
_WIDTH: Final = (1 << WIDTH_BITS) - 1


@kernel
def all_bits(shape: int) -> int:
    """How many bits the rounds take."""
    if shape <= _WIDTH:
        return shape
    total = 0
    while shape != 0:
        total += shape & _WIDTH
        shape >>= WIDTH_BITS
    return total


@kernel
def last_mask(shape: int) -> int:
    """The bits of the innermost round."""
    return (1 << (shape & _WIDTH)) - 1


@kernel
def loops(shape: int) -> int:
    """How many loops a shape has."""
    count = 0
    while shape != 0:
        count += 1
        shape >>= WIDTH_BITS
    return count


@kernel
def lub(a: int, b: int, shape: int) -> int:
    """The least time that is above both."""
    if shape <= _WIDTH:  # one loop or none: the common case
        mask = (1 << shape) - 1
        return max(a >> shape, b >> shape) << shape | max(a & mask, b & mask)
    result = 0
    at = 0
    while shape != 0:
        width = shape & _WIDTH
        mask = (1 << width) - 1
        result |= max((a >> at) & mask, (b >> at) & mask) << at
        at += width
        shape >>= WIDTH_BITS
    return result | max(a >> at, b >> at) << at


@kernel
def below(a: int, b: int, shape: int) -> bool:
    """Whether a <= b in the product order."""
    if shape <= _WIDTH:
        mask = (1 << shape) - 1
        return (a >> shape) <= (b >> shape) and (a & mask) <= (b & mask)
    while shape != 0:
        width = shape & _WIDTH
        mask = (1 << width) - 1
        if (a & mask) > (b & mask):
            return False
        a >>= width
        b >>= width
        shape >>= WIDTH_BITS
    return a <= b


@kernel
def rounds(time: int, shape: int) -> int:
    """The time's loop vector: its rounds, packed, without the ordinal."""
    return time & ((1 << all_bits(shape)) - 1)


@kernel
def wrap(time: int, shape: int, target: int) -> int:
    """A time of an outer scope inside a deeper one: it gains rounds 0."""
    return time << (all_bits(target) - all_bits(shape))


@kernel
def unwrap(time: int, shape: int) -> int:
    """The time without its innermost round, one scope further out."""
    return time >> (shape & _WIDTH)


@kernel
def advance(time: int, since: int, shape: int) -> int:
    """The time with its ordinal raised to ``since``; the rounds stay."""
    shift = all_bits(shape)
    if (time >> shift) >= since:
        return time
    return (since << shift) | (time & ((1 << shift) - 1))
