"""Searching in traces: a local table of layers, with the negated blocks of the current pass as further layers.

A trace is read *minus* up to two blocks, so that an operator sees what stood before the updates of this pass.
"""

from __future__ import annotations

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFF_WIDTH,
    B_DIFFS,
    B_ROWS,
    B_TIMES,
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
    Words,
    load,
    spread,
    store,
    where,
)  # fmt: skip
from ivm.kernels.order import compare


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
    """Whether the filter of the layer at this address says that it has no row with the key."""
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

    Gallops, over the fence where there is one: a near row costs few comparisons, a far one few cache misses.
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
