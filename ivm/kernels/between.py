"""Reading a trace's rows between two keys, into a block to be sorted and consolidated."""

from __future__ import annotations

from ivm.kernels.cache import kernel
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFFS,
    B_ROOM,
    B_ROWS,
    B_TIMES,
    HEAD,
    L_COUNT,
    L_DIFF_STRIDE,
    L_DIFFS,
    L_FENCE,
    L_ROWS,
    L_TIME_STRIDE,
    L_TIMES,
    LAYER_WORDS,
    T_DIFF_WIDTH,
    T_KEY_WIDTH,
    T_LAYERS,
    T_ORDER,
    T_SHAPE,
    T_WIDTH,
    copy_words,
    load,
    store,
)
from ivm.kernels.order import compare
from ivm.kernels.seek import seek
from ivm.kernels.times import all_bits
from ivm.rows import Words


@kernel
def between(trace: Words, lows: Words, highs: Words, target: Words, upto: int) -> bool:
    """Appends the updates with ordinal <= ``upto`` whose keys are from row i of ``lows`` to row i of ``highs`` (blocks,
    both included), with i as time.

    False when the target has no room. Cost: one seek for each range and layer, and the updates found.
    """
    shift = all_bits(trace[T_SHAPE])
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    diff_width = trace[T_DIFF_WIDTH]
    order = trace[T_ORDER]
    for i in range(lows[B_COUNT]):
        low = lows[B_ROWS] + 8 * key_width * i
        high = highs[B_ROWS] + 8 * key_width * i
        for k in range(trace[T_LAYERS]):
            at = HEAD + LAYER_WORDS * k
            rows = trace[at + L_ROWS]
            total = trace[at + L_COUNT]
            p = seek(rows, total, width, trace[at + L_FENCE], 0, low, key_width, order)
            while p < total and compare(rows + 8 * width * p, high, 0, key_width, order) <= 0:
                if (load(trace[at + L_TIMES] + trace[at + L_TIME_STRIDE] * p) >> shift) <= upto:
                    n = target[B_COUNT]
                    if n >= target[B_ROOM]:
                        return False
                    copy_words(rows + 8 * width * p, target[B_ROWS] + 8 * width * n, width)
                    store(target[B_TIMES] + 8 * n, i)
                    diff = trace[at + L_DIFFS] + trace[at + L_DIFF_STRIDE] * p
                    copy_words(diff, target[B_DIFFS] + 8 * diff_width * n, diff_width)
                    target[B_COUNT] = n + 1
                p += 1
    return True
