"""Cutting blocks into parts for several threads: by key where they are sorted, by pivots where they are not."""

from __future__ import annotations

from ivm.kernels.cache import kernel
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFF_WIDTH,
    B_DIFFS,
    B_ROWS,
    B_TIMES,
    B_WIDTH,
    Words,
    copy_words,
    load,
    move_words,
    store,
)  # fmt: skip
from ivm.kernels.order import compare
from ivm.kernels.seek import bisect
from ivm.kernels.sort import is_sorted


@kernel
def key_start(block: Words, key_width: int, at: int) -> int:
    """The first place from ``at`` on at which another key begins; the block is sorted."""
    bytes_a_row = 8 * block[B_WIDTH]
    i = at
    while 0 < i < block[B_COUNT]:
        row = block[B_ROWS] + bytes_a_row * i
        if compare(row - bytes_a_row, row, 0, key_width, 0) != 0:
            break
        i += 1
    return i


@kernel
def key_place(block: Words, key: int, key_width: int, order: int) -> int:
    """The first place of a sorted block whose key is not less than that at an address."""
    return bisect(block[B_ROWS], block[B_WIDTH], 0, block[B_COUNT], key, key_width, order)


@kernel
def in_order(block: Words, order: int) -> bool:
    """Whether the updates are sorted. Cost: up to the first that is not."""
    return is_sorted(block[B_ROWS], block[B_TIMES], block[B_WIDTH], order, block[B_COUNT])


@kernel
def _part(block: Words, row: int, time: int, order: int) -> int:
    """How many of a few sorted updates are not greater than one of this row and time."""
    width = block[B_WIDTH]
    for k in range(block[B_COUNT]):
        c = compare(row, block[B_ROWS] + 8 * width * k, 0, width, order)
        if c < 0 or (c == 0 and time < load(block[B_TIMES] + 8 * k)):
            return k
    return int(block[B_COUNT])


@kernel
def tally(source: Words, pivots: Words, order: int, counts: Words) -> None:
    """Adds how many of the source's updates belong to each part: to part k what is less than pivot k, and no less than
    the one before."""
    for i in range(source[B_COUNT]):
        row = source[B_ROWS] + 8 * source[B_WIDTH] * i
        counts[_part(pivots, row, load(source[B_TIMES] + 8 * i), order)] += 1


@kernel
def deal(source: Words, pivots: Words, order: int, places: Words, target: Words) -> None:
    """Copies each of the source's updates to the next place of its part in the target; the places move on."""
    width = source[B_WIDTH]
    diff_width = source[B_DIFF_WIDTH]
    for i in range(source[B_COUNT]):
        row = source[B_ROWS] + 8 * width * i
        time = load(source[B_TIMES] + 8 * i)
        part = _part(pivots, row, time, order)
        n = places[part]
        places[part] = n + 1
        copy_words(row, target[B_ROWS] + 8 * width * n, width)
        store(target[B_TIMES] + 8 * n, time)
        copy_words(source[B_DIFFS] + 8 * diff_width * i, target[B_DIFFS] + 8 * diff_width * n, diff_width)


@kernel
def close_gaps(block: Words, starts: Words, counts: Words) -> int:
    """Moves runs of updates, each at its start and of its count, together from the first's start on; the end."""
    width = block[B_WIDTH]
    diff_width = block[B_DIFF_WIDTH]
    end = starts[0]
    for k in range(len(starts)):
        n = counts[k]
        if starts[k] != end:
            move_words(block[B_ROWS] + 8 * width * starts[k], block[B_ROWS] + 8 * width * end, width * n)
            move_words(block[B_TIMES] + 8 * starts[k], block[B_TIMES] + 8 * end, n)
            diffs = block[B_DIFFS]
            move_words(diffs + 8 * diff_width * starts[k], diffs + 8 * diff_width * end, diff_width * n)
        end += n
    return int(end)
