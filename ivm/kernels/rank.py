"""Ranks: searching a key's rows by the number of rows before them, counted by their diffs.

The batches of a ranked spine keep the sum of the first diffs before every FENCE-th row, so that the sum before any row
costs a constant. The rank of a row is the sum over the layers; a row of a given rank is found by repeatedly bisecting
the layer with the most rows left, until no layer has any left: O(layers * log**2), whatever the group's size and
however many of its rows cancel out. Outside of loops only, where all of a trace's times count.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFF_WIDTH,
    B_DIFFS,
    FENCE,
    L_COUNT,
    L_DIFF_STRIDE,
    L_DIFFS,
    L_RANKS,
    L_ROWS,
    L_SIGN,
    LAYER_WORDS,
    load,
)
from ivm.kernels.order import compare
from ivm.kernels.seek import bisect
from ivm.rows import Words

# A search's state for each layer: the key's first row and the one after its last, the current position, the search
# bounds, where its running sums start (-1: the layer has sums, or one diff for all rows), the sum before its start, and
# the bounds of a row's updates.
W_START: Final = 0
W_END: Final = 1
W_AT: Final = 2
W_LOW: Final = 3
W_HIGH: Final = 4
W_SUMS: Final = 5
W_BASE: Final = 6
W_MIDDLE: Final = 7
W_AFTER: Final = 8
SEARCH_WORDS: Final = 9


@kernel
def extend_ranks(block: Words, ranks: Words, start: int) -> int:
    """Fills in the sums from entry ``start`` (at least 1) on as far as the block has rows. Returns where to
    continue."""
    count = block[B_COUNT]
    stride = 8 * block[B_DIFF_WIDTH]
    j = start
    while FENCE * j <= count:
        total = ranks[j - 1]
        for p in range(FENCE * (j - 1), FENCE * j):
            total += load(block[B_DIFFS] + stride * p)
        ranks[j] = total
        j += 1
    return j


@kernel
def prepare(table: Words, count: int, width: int, key: int, key_width: int, order: int, work: Words) -> Words:
    """Prepares a search for the key; ``work`` has the starts. Returns the running sums of layers without sums.

    Cost: a search in each layer, and the key's rows in layers without sums (the small one, the pass's delta).
    """
    sums = np.empty(ends(table, count, width, key, key_width, order, work), np.int64)
    add_up(table, count, work, sums)
    return sums


@kernel
def ends(table: Words, count: int, width: int, key: int, key_width: int, order: int, work: Words) -> int:
    """Finds where the key's rows end and lays out the running sums. Returns the number of sums."""
    room = 0
    for k in range(count):
        at = k * LAYER_WORDS
        w = k * SEARCH_WORDS
        low = work[w + W_START]
        rows = table[at + L_ROWS]
        n = table[at + L_COUNT]
        high = low
        step = 1
        while high < n and compare(rows + 8 * width * high, key, 0, key_width, order) <= 0:
            low = high + 1
            high += step
            step *= 2
        high = min(high, n)
        while low < high:
            middle = (low + high) >> 1
            if compare(rows + 8 * width * middle, key, 0, key_width, order) <= 0:
                low = middle + 1
            else:
                high = middle
        work[w + W_END] = low
        work[w + W_SUMS] = -1
        if table[at + L_DIFF_STRIDE] != 0 and table[at + L_RANKS] == 0:
            work[w + W_SUMS] = room
            room += low - work[w + W_START] + 1
    return int(room)


@kernel
def add_up(table: Words, count: int, work: Words, sums: Words) -> None:
    """Fills in the running sums laid out by ``ends``, and the sum before each layer's start."""
    for k in range(count):
        at = k * LAYER_WORDS
        w = k * SEARCH_WORDS
        i = work[w + W_SUMS]
        if i >= 0:
            total = 0
            for p in range(work[w + W_START], work[w + W_END]):
                sums[i] = total
                total += load(table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p)
                i += 1
            sums[i] = total
        work[w + W_BASE] = _sum_before(table, at, work, w, sums, work[w + W_START])


@kernel
def _sum_before(table: Words, at: int, work: Words, w: int, sums: Words, position: int) -> int:
    """The sum of a layer's diffs before a position, from some fixed row on."""
    stride = table[at + L_DIFF_STRIDE]
    diffs = table[at + L_DIFFS]
    if stride == 0:
        total = position * load(diffs)
    elif work[w + W_SUMS] >= 0:
        total = sums[work[w + W_SUMS] + position - work[w + W_START]]
    else:
        j = position // FENCE
        total = load(table[at + L_RANKS] + 8 * j)
        for p in range(FENCE * j, position):
            total += load(diffs + stride * p)
    return int(total * table[at + L_SIGN])


@kernel
def rank_at(table: Words, count: int, work: Words, sums: Words, field: int) -> int:
    """How many of the key's rows lie before the positions in the given field of ``work``."""
    total = 0
    for k in range(count):
        w = k * SEARCH_WORDS
        total += _sum_before(table, k * LAYER_WORDS, work, w, sums, work[w + field]) - work[w + W_BASE]
    return total


@kernel
def place(
    table: Words, count: int, width: int, order: int, work: Words, row: int, words: int, low: int, high: int,
) -> None:  # fmt: skip
    """Sets W_MIDDLE: each layer's first row, from its position in field ``low`` to that in ``high``, whose first words
    are not less than the row's."""
    for k in range(count):
        w = k * SEARCH_WORDS
        work[w + W_MIDDLE] = bisect(
            table[k * LAYER_WORDS + L_ROWS], width, work[w + low], work[w + high], row, words, order
        )


@kernel
def after(table: Words, count: int, width: int, work: Words, row: int, high: int) -> None:
    """Sets W_AFTER: each layer's first row from W_MIDDLE on, before its position in field ``high``, that differs from
    the row."""
    for k in range(count):
        at = k * LAYER_WORDS
        w = k * SEARCH_WORDS
        p = work[w + W_MIDDLE]
        while p < work[w + high] and compare(table[at + L_ROWS] + 8 * width * p, row, 0, width, 0) == 0:
            p += 1
        work[w + W_AFTER] = p


@kernel
def select(
    table: Words, count: int, width: int, order: int, work: Words, sums: Words, rank: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Finds the row that ``rank`` falls on: (its rank, its count, steps); count 0: there is none. Sets W_AT to each
    layer's first row that is not less."""
    for k in range(count):
        w = k * SEARCH_WORDS
        work[w + W_LOW] = work[w + W_START]
        work[w + W_HIGH] = work[w + W_END]
    steps = 0
    while True:
        widest = -1
        most = 0
        for k in range(count):
            w = k * SEARCH_WORDS
            if work[w + W_HIGH] - work[w + W_LOW] > most:
                most = work[w + W_HIGH] - work[w + W_LOW]
                widest = k
        if widest < 0:
            return 0, 0, steps
        steps += 1
        w = widest * SEARCH_WORDS
        middle = (work[w + W_LOW] + work[w + W_HIGH]) >> 1
        row = table[widest * LAYER_WORDS + L_ROWS] + 8 * width * middle
        place(table, count, width, order, work, row, width, W_LOW, W_HIGH)
        before = rank_at(table, count, work, sums, W_MIDDLE)
        if rank < before:
            for k in range(count):
                work[k * SEARCH_WORDS + W_HIGH] = work[k * SEARCH_WORDS + W_MIDDLE]
            continue
        after(table, count, width, work, row, W_HIGH)
        behind = rank_at(table, count, work, sums, W_AFTER)
        if rank < behind:
            for k in range(count):
                work[k * SEARCH_WORDS + W_AT] = work[k * SEARCH_WORDS + W_MIDDLE]
            return before, behind - before, steps
        for k in range(count):
            work[k * SEARCH_WORDS + W_LOW] = work[k * SEARCH_WORDS + W_AFTER]
