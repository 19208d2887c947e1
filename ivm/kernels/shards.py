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
    L_COUNT,
    L_ROWS,
    T_ORDER,
    T_WIDTH,
    move_words,
)
from ivm.kernels.order import compare
from ivm.kernels.seek import bisect
from ivm.kernels.sort import is_sorted
from ivm.rows import Words


@kernel
def key_start(block: Words, key_width: int, at: int) -> int:
    """The first index from ``at`` on at which another key begins; the block is sorted."""
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
    """The first index of a sorted block whose key is not less than that at an address."""
    return bisect(block[B_ROWS], block[B_WIDTH], 0, block[B_COUNT], key, key_width, order)


@kernel
def in_order(block: Words, order: int) -> bool:
    """Whether the updates are sorted. Cost: up to the first that is not."""
    return is_sorted(block[B_ROWS], block[B_TIMES], block[B_WIDTH], order, block[B_COUNT])


@kernel
def cut_merge(trace: Words, left: int, right: int, i: int, j: int, reads: int, lefts: Words, rights: Words) -> bool:
    """Cuts the next ``reads`` updates of a merge, from indexes i and j of the layers at these offsets on, between rows
    into parts of about equal size: part k goes from ``lefts[k]`` and ``rights[k]`` to the next ones. False if the
    layers are too uneven for that."""
    number = len(lefts) - 1
    width = trace[T_WIDTH]
    order = trace[T_ORDER]
    i_end = trace[left + L_COUNT]
    j_end = trace[right + L_COUNT]
    rest = i_end - i + j_end - j
    lefts[0] = i
    rights[0] = j
    by_left = i_end - i >= j_end - j
    for k in range(1, number + 1):
        if rest == 0 or (k == number and reads >= rest):
            lefts[k] = i_end
            rights[k] = j_end
            continue
        share = reads * k // number
        at = right if not by_left else left
        start = i if by_left else j
        end = i_end if by_left else j_end
        p = min(start + max(share * (end - start) // rest, 1), end)
        rows = trace[at + L_ROWS]
        while p < end and compare(rows + 8 * width * (p - 1), rows + 8 * width * p, 0, width, 0) == 0:
            p += 1
        p = max(p, lefts[k - 1] if by_left else rights[k - 1])
        other = right if by_left else left
        q = j_end if by_left else i_end
        if p < end:
            before = rights[k - 1] if by_left else lefts[k - 1]
            q = bisect(trace[other + L_ROWS], width, before, q, rows + 8 * width * p, width, order)
        lefts[k] = p if by_left else q
        rights[k] = q if by_left else p
    return bool(lefts[number] - i + rights[number] - j <= 2 * reads)


@kernel
def close_gaps(block: Words, starts: Words, counts: Words) -> int:
    """Moves runs of updates, given by starts and counts, together from the first's start on. Returns the end."""
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
