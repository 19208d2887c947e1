"""Searching in traces: a local table of layers, with the negated blocks of the current pass as further layers.

A trace is read *minus* up to two blocks, so that an operator sees the contents before this pass's updates.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFF_WIDTH,
    B_DIFFS,
    B_ROWS,
    B_TIMES,
    B_WIDTH,
    FENCE,
    HEAD,
    L_COUNT,
    L_DIFF_STRIDE,
    L_DIFFS,
    L_FENCE,
    L_FILTER,
    L_MASK,
    L_RANKS,
    L_ROWS,
    L_SIGN,
    L_TIME_STRIDE,
    L_TIMES,
    LAYER_WORDS,
    T_LAYERS,
    load,
    prefetch,
    spread,
    store,
    where,
)
from ivm.kernels.order import compare
from ivm.rows import Words

# The number of keys searched together, and the rows from which a layer is worth it: it then exceeds the caches near a
# core.
AHEAD: Final = 16
_AHEAD_ROWS: Final = 1 << 15
_SPARSE: Final = 64
_NEAR: Final = 8
"""Rows that are tried one by one where a key is less than the next fence: many keys lie that near to each other."""
_LINE: Final = 64


@kernel
def add_block(layer: int, block: int) -> None:
    """Writes a block as a layer of the opposite sign; both by their addresses."""
    store(layer + 8 * L_COUNT, load(block + 8 * B_COUNT))
    store(layer + 8 * L_ROWS, load(block + 8 * B_ROWS))
    store(layer + 8 * L_TIMES, load(block + 8 * B_TIMES))
    store(layer + 8 * L_TIME_STRIDE, 8)
    store(layer + 8 * L_DIFFS, load(block + 8 * B_DIFFS))
    store(layer + 8 * L_DIFF_STRIDE, 8 * load(block + 8 * B_DIFF_WIDTH))
    store(layer + 8 * L_FENCE, 0)
    store(layer + 8 * L_SIGN, -1)
    store(layer + 8 * L_FILTER, 0)
    store(layer + 8 * L_RANKS, 0)


@kernel
def lacks(layer: int, key: int, key_width: int) -> bool:
    """Whether the bloom filter of the layer at this address rules out the key."""
    words = load(layer + 8 * L_FILTER)
    if words == 0 or key_width == 0:
        return False
    bit = spread(load(key)) & load(layer + 8 * L_MASK)
    return bool((load(words + 8 * (bit >> 6)) >> (bit & 63)) & 1 == 0)


@kernel
def absent(table: Words, at: int, key: int, key_width: int) -> bool:
    """``lacks`` of the layer at this offset of a table."""
    return lacks(where(table) + 8 * at, key, key_width)


@kernel
def layers(trace: Words, minus: Words, minus_too: Words) -> tuple[Words, int]:
    """(table, count): the trace's non-empty layers and the blocks to subtract, LAYER_WORDS each."""
    total = trace[T_LAYERS]
    table = np.empty((total + 2) * LAYER_WORDS, np.int64)
    count = 0
    for k in range(total):
        at = HEAD + LAYER_WORDS * k
        if trace[at + L_COUNT] != 0:
            for j in range(LAYER_WORDS):
                table[count * LAYER_WORDS + j] = trace[at + j]
            count += 1
    if minus[B_COUNT] != 0:
        add_block(where(table) + 8 * LAYER_WORDS * count, where(minus))
        count += 1
    if minus_too[B_COUNT] != 0:
        add_block(where(table) + 8 * LAYER_WORDS * count, where(minus_too))
        count += 1
    return table, count


@kernel
def seek(rows: int, count: int, width: int, fence: int, start: int, key: int, key_width: int, order: int) -> int:
    """The first row from ``start`` on whose first ``key_width`` words are not less than those at address ``key``.

    Galloping search, over the fence if there is one: a near row costs few comparisons, a far one few cache misses.
    """
    if key_width == 0 or start >= count:
        return start
    if compare(rows + 8 * width * start, key, 0, key_width, order) >= 0:
        return start
    low = start + 1
    if fence == 0:
        step = 1
        while low + step < count and compare(rows + 8 * width * (low + step), key, 0, key_width, order) < 0:
            low += step
            step *= 2
        return bisect(rows, width, low, min(low + step, count), key, key_width, order)
    high = count
    first = load(key)
    left = start // FENCE + 1
    b = (count + FENCE - 1) // FENCE
    if left < b and load(fence + 8 * left) < first:
        right = left + 1
        step = 1
        while right < b and load(fence + 8 * right) < first:
            left = right
            step *= 2
            right += step
        right = min(right, b)
        while left < right:
            middle = (left + right) >> 1
            if load(fence + 8 * middle) < first:
                left = middle + 1
            else:
                right = middle
        low = max(low, (left - 1) * FENCE)
    else:
        near = min(low + _NEAR, count)
        while low < near:
            if compare(rows + 8 * width * low, key, 0, key_width, order) >= 0:
                return low
            low += 1
    if key_width > 1:
        right = b
        while left < right:
            middle = (left + right) >> 1
            if load(fence + 8 * middle) <= first:
                left = middle + 1
            else:
                right = middle
    high = min(count, left * FENCE)
    return bisect(rows, width, low, high, key, key_width, order)


@kernel
def bisect(rows: int, width: int, low: int, high: int, key: int, key_width: int, order: int) -> int:
    """The first of rows low … high whose first words are not less than those at address ``key``."""
    while low < high:
        middle = (low + high) >> 1
        if compare(rows + 8 * width * middle, key, 0, key_width, order) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def hints(table: Words, count: int, keys: int, order: int) -> Words:
    """Room for the results of ``look_ahead``, if worthwhile for this many keys in these layers; otherwise empty."""
    if keys >= 4 and order == 0:
        for k in range(count):
            total = table[k * LAYER_WORDS + L_COUNT]
            if total >= max(_AHEAD_ROWS, _SPARSE * keys) and table[k * LAYER_WORDS + L_FENCE] != 0:
                return np.empty(2 * AHEAD * count, np.int64)
    return np.empty(0, np.int64)


@kernel
def _fences(fence: int, blocks: int, start: int, key: int, key_width: int) -> tuple[int, int]:
    """The range of rows that contains a key, by the fences from ``start`` on, whose row is less than the key."""
    first = load(key)
    left = start
    right = left
    step = 1
    while right < blocks and load(fence + 8 * right) < first:
        left = right
        step *= 2
        right += step
    right = min(right, blocks)
    while left < right:
        middle = (left + right) >> 1
        if load(fence + 8 * middle) < first:
            left = middle + 1
        else:
            right = middle
    low = max(0, left - 1)
    if key_width > 1:
        right = blocks
        while left < right:
            middle = (left + right) >> 1
            if load(fence + 8 * middle) <= first:
                left = middle + 1
            else:
                right = middle
    return low, left


@kernel
def look_ahead(table: Words, count: int, width: int, block: Words, start: int, key_width: int, found: Words) -> None:
    """Finds the keys of the next AHEAD rows of a block in the large layers together, so that their cache misses
    overlap.

    ``width``: words of a layer's rows. ``found`` (from ``hints``) gets the position for each row and layer, -1 if the
    layer was not searched.
    """
    block_width = block[B_WIDTH]
    stop = min(start + AHEAD, block[B_COUNT])
    highs = AHEAD * count
    for k in range(count):
        at = k * LAYER_WORDS
        rows = table[at + L_ROWS]
        total = table[at + L_COUNT]
        fence = table[at + L_FENCE]
        if fence == 0 or total < _AHEAD_ROWS:
            for i in range(start, stop):
                found[(i - start) * count + k] = -1
            continue
        blocks = (total + FENCE - 1) // FENCE
        bytes_a_row = 8 * width
        left = 0
        for i in range(start, stop):
            key = block[B_ROWS] + 8 * block_width * i
            place = (i - start) * count + k
            if absent(table, at, key, key_width):
                found[place] = -1
                continue
            if load(fence + 8 * left) >= load(key):
                left = 0
            left, high = _fences(fence, blocks, left, key, key_width)
            found[place] = left * FENCE
            found[highs + place] = min(total, high * FENCE)
            middle = rows + bytes_a_row * ((left + high) * FENCE // 2)
            for line in range(-2, 2):
                prefetch(middle + _LINE * line)
        for i in range(start, stop):
            place = (i - start) * count + k
            if found[place] >= 0:
                key = block[B_ROWS] + 8 * block_width * i
                p = bisect(rows, width, found[place], found[highs + place], key, key_width, 0)
                found[place] = p
                prefetch(table[at + L_TIMES] + table[at + L_TIME_STRIDE] * p)
                prefetch(table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p)


@kernel
def aim(
    table: Words, count: int, width: int, block: Words, i: int, key_width: int, found: Words, window: int,
    cursors: Words,
) -> int:  # fmt: skip
    """Moves the cursors of large layers to the key of a block's row i. Returns the row at which ``found`` begins.

    ``window``: the previous call's result, -AHEAD at first; rows come in order.
    """
    if i >= window + AHEAD:
        look_ahead(table, count, width, block, i, key_width, found)
        window = i
    for k in range(count):
        place = found[(i - window) * count + k]
        if place >= 0:
            cursors[k] = place
    return window
