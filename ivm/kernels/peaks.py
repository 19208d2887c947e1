"""Peaks: the greatest words of ranges of rows, for finding the next row whose word is not less than some value.

A batch sorted by where intervals start does not say where they end. Its peaks are a Fenwick tree over blocks of FENCE
rows: entry j holds the greatest word of the last ``j & -j`` of the first j blocks. It grows at its end, like the batch
that a merge writes, and takes 8 bytes for FENCE rows. A search that passes n rows without a match costs O(log n).
"""

from __future__ import annotations

from ivm.kernels.cache import kernel
from ivm.kernels.memory import FENCE, load, store


@kernel
def extend_peaks(rows: int, width: int, word: int, count: int, peaks: int, start: int) -> int:
    """Fills in entry ``start`` (at least 1) and those after it, as far as there are full blocks. Returns where to
    continue. ``rows`` and ``peaks`` are addresses."""
    j = start
    while FENCE * j <= count:
        at = rows + 8 * (width * FENCE * (j - 1) + word)
        top = load(at)
        for k in range(1, FENCE):
            top = max(top, load(at + 8 * width * k))
        k = 1
        while j & k == 0:
            top = max(top, load(peaks + 8 * (j - k)))
            k *= 2
        store(peaks + 8 * j, top)
        j += 1
    return j


@kernel
def climb(rows: int, width: int, word: int, count: int, peaks: int, start: int, stop: int, least: int) -> int:
    """The first of rows start … stop-1 whose word is not less than ``least``, or ``stop``; ``peaks`` 0: there are none.

    ``count``: how many rows there are in all.
    """
    p = start
    while p < stop:
        if peaks != 0 and p % FENCE == 0:
            p = FENCE * _lower(peaks, p // FENCE, count // FENCE, stop, least)
        end = min(stop, p - p % FENCE + FENCE)
        while p < end:
            if load(rows + 8 * (width * p + word)) >= least:
                return p
            p += 1
    return stop


@kernel
def _lower(peaks: int, block: int, blocks: int, stop: int, least: int) -> int:
    """The first block from ``block`` on that may have such a word: the next one, after a match in the one before, or
    one that is not full. What an entry covers before the block only makes it less sure."""
    step = 1
    while block * FENCE < stop:
        if block + step <= blocks and load(peaks + 8 * (block + step)) < least:
            block += step
            if block & (2 * step - 1) == 0:
                step *= 2
        elif step == 1:
            break
        else:
            step >>= 1
    return block
