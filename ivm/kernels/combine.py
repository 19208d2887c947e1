"""Adding up equal updates by hashing before they are sorted, if many updates fall into few groups."""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFF_WIDTH,
    B_DIFFS,
    B_ROOM,
    B_ROWS,
    B_TIMES,
    B_WIDTH,
    SPREAD,
    copy_words,
    load,
    store,
)
from ivm.kernels.order import compare
from ivm.rows import Words

COMBINED: Final = 1 << 15
"""With fewer updates it is not tried."""
_SHARE: Final = 8
"""It stops if more than one in this many updates is a group of its own …"""
_MOST: Final = 1 << 17
"""… or if there are more groups than the caches hold."""
_SLOT_BITS: Final = 10
_PROBES: Final = 256
"""The most slots probed for one update; longer probes almost certainly come from adversarial rows."""


@kernel
def most_groups(count: int) -> int:
    """The most groups that ``count`` updates may have."""
    return min(count // _SHARE, _MOST)


@kernel
def combine(source: Words, groups: Words) -> bool:
    """Adds up the source's updates of equal row and time into an empty block, in order of first occurrence. False:
    there are more groups than the block has room for. Cost: O(n) with few cache misses; if it stops early, the updates
    until then."""
    rows, times, diffs = source[B_ROWS], source[B_TIMES], source[B_DIFFS]
    width, diff_width = source[B_WIDTH], source[B_DIFF_WIDTH]
    own_rows, own_times, own_diffs = groups[B_ROWS], groups[B_TIMES], groups[B_DIFFS]
    bits = _SLOT_BITS
    slots = np.full(1 << bits, -1, np.int64)
    found = 0
    for i in range(source[B_COUNT]):
        row = rows + 8 * width * i
        time = load(times + 8 * i)
        at = _slot(slots, bits, groups, row, time)
        if at < 0:
            return False
        group = slots[at]
        if group < 0:
            if found == groups[B_ROOM]:
                return False
            copy_words(row, own_rows + 8 * width * found, width)
            store(own_times + 8 * found, time)
            copy_words(diffs + 8 * diff_width * i, own_diffs + 8 * diff_width * found, diff_width)
            slots[at] = found
            found += 1
            if 2 * found > len(slots):
                bits += 1
                slots = _filled(bits, groups, found)
                if len(slots) == 0:
                    return False
            continue
        total = own_diffs + 8 * diff_width * group
        for k in range(diff_width):
            store(total + 8 * k, load(total + 8 * k) + load(diffs + 8 * (diff_width * i + k)))
    groups[B_COUNT] = found
    return True


@kernel
def _slot(slots: Words, bits: int, groups: Words, row: int, time: int) -> int:
    """The slot of the group of a row and time, or where it would go; -1: too many probes."""
    width = groups[B_WIDTH]
    mask = (1 << bits) - 1
    mixed = time * SPREAD
    for k in range(width):
        mixed = (mixed ^ (mixed >> 32) ^ load(row + 8 * k)) * SPREAD
    at = (mixed >> (64 - bits)) & mask  # the uppermost bits depend on all bits of a word
    for _ in range(_PROBES):
        group = slots[at]
        if group < 0:
            return at
        if load(groups[B_TIMES] + 8 * group) == time:
            other = groups[B_ROWS] + 8 * width * group
            if compare(other, row, 0, width, 0) == 0:
                return at
        at = (at + 1) & mask
    return -1


@kernel
def _filled(bits: int, groups: Words, count: int) -> Words:
    """A slot table with the groups in it; empty if one needs too many probes."""
    slots = np.full(1 << bits, -1, np.int64)
    for group in range(count):
        row = groups[B_ROWS] + 8 * groups[B_WIDTH] * group
        at = _slot(slots, bits, groups, row, load(groups[B_TIMES] + 8 * group))
        if at < 0:
            return np.empty(0, np.int64)
        slots[at] = group
    return slots
