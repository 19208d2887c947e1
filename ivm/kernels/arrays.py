"""Kernels over the bytes of arrays and numbers in them (layout: ``storage.types.arrays``), each value named by the
address of its bytes and their number."""

from __future__ import annotations

from typing import Final

from ivm.kernels.cache import kernel
from ivm.kernels.memory import load_byte
from ivm.rows import Words

NULL: Final = -1
"""In the place of a length."""
_BOUNDED: Final = 0x80
_SIGN: Final = 1 << 31


@kernel
def _number(address: int) -> int:
    """The big-endian number of four bytes."""
    found = 0
    for i in range(4):
        found = found << 8 | load_byte(address + i)
    return found


@kernel
def read_shapes(starts: Words, depths: Words, lowers: Words, counts: Words) -> None:
    """Of each array the number of its dimensions, the first one's lower bound, and how many elements it has."""
    for i in range(len(starts)):
        depth = load_byte(starts[i])
        bounded = depth & _BOUNDED
        depth &= ~_BOUNDED
        count = 1 if depth > 0 else 0
        for dimension in range(depth):
            count *= _number(starts[i] + 1 + 4 * dimension)
        lower = 1
        if bounded and depth > 0:
            lower = (_number(starts[i] + 1 + 4 * depth) ^ _SIGN) - _SIGN
        depths[i], lowers[i], counts[i] = depth, lower, count


@kernel
def find_elements(starts: Words, firsts: Words, item_starts: Words, item_lengths: Words) -> None:
    """Where the elements of each array are, at ``firsts[i]`` and on; of a NULL the length is ``NULL``."""
    for i in range(len(starts)):
        depth = load_byte(starts[i])
        bounded = depth & _BOUNDED
        depth &= ~_BOUNDED
        at = starts[i] + 1 + (8 if bounded else 4) * depth
        for item in range(firsts[i], firsts[i + 1]):
            size = _number(at) - 1
            item_starts[item], item_lengths[item] = at + 4, size
            at += 4 + max(size, 0)


@kernel
def read_words(starts: Words, out: Words) -> None:
    """The big-endian int64 at each address."""
    for i in range(len(starts)):
        word = 0
        for byte in range(8):
            word = word << 8 | load_byte(starts[i] + byte)
        out[i] = word
