"""Timestamps: vectors (ordinal, round, …) of one coordinate for each enclosing loop, packed into one int64.

The ordinal lies in the high bits, then the rounds, outermost first, each as wide as ``ROUND_BITS`` says for the
depth; so packed times compare lexicographically as integers. The product order is ``below``; ``lub`` is its join.
"""

from __future__ import annotations

from typing import Final

from ivm.kernels.cache import kernel

# By depth. Widths are checked where ordinals are fed and where rounds are counted, never here.
ROUND_BITS: Final = (0, 24, 16, 11, 8)
MAX_DEPTH: Final = 4


@kernel
def lub(a: int, b: int, depth: int) -> int:
    """The least time that is above both."""
    if depth == 0:
        return max(a, b)
    bits = ROUND_BITS[depth]
    mask = (1 << bits) - 1
    shift = depth * bits
    result = max(a >> shift, b >> shift) << shift
    for k in range(depth):
        field = k * bits
        result |= max((a >> field) & mask, (b >> field) & mask) << field
    return result


@kernel
def below(a: int, b: int, depth: int) -> bool:
    """Whether a <= b in the product order."""
    if depth == 0:
        return a <= b
    bits = ROUND_BITS[depth]
    mask = (1 << bits) - 1
    shift = depth * bits
    if (a >> shift) > (b >> shift):
        return False
    for k in range(depth):
        field = k * bits
        if ((a >> field) & mask) > ((b >> field) & mask):
            return False
    return True


@kernel
def rounds(time: int, depth: int) -> int:
    """The time's loop vector: its rounds, packed, without the ordinal."""
    return time & ((1 << (depth * ROUND_BITS[depth])) - 1)


@kernel
def wrap(time: int, depth: int, target: int) -> int:
    """A time of an outer scope inside a deeper one: it gains rounds 0."""
    if depth == target:
        return time
    bits = ROUND_BITS[depth]
    wide = ROUND_BITS[target]
    mask = (1 << bits) - 1
    result = (time >> (depth * bits)) << (target * wide)
    for k in range(depth):
        result |= ((time >> (bits * (depth - 1 - k))) & mask) << (wide * (target - 1 - k))
    return result


@kernel
def unwrap(time: int, depth: int) -> int:
    """The time without its innermost round, one scope further out."""
    bits = ROUND_BITS[depth]
    wide = ROUND_BITS[depth - 1]
    mask = (1 << bits) - 1
    result = (time >> (depth * bits)) << ((depth - 1) * wide)
    for k in range(depth - 1):
        result |= ((time >> (bits * (depth - 1 - k))) & mask) << (wide * (depth - 2 - k))
    return result


@kernel
def advance(time: int, since: int, depth: int) -> int:
    """The time with its ordinal raised to ``since``; the rounds stay."""
    shift = depth * ROUND_BITS[depth]
    if (time >> shift) >= since:
        return time
    return (since << shift) | (time & ((1 << shift) - 1))
