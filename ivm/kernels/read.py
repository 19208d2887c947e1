"""Reading a trace at a time, into a block to be sorted and consolidated."""

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
    where,
)
from ivm.kernels.order import compare
from ivm.kernels.seek import seek
from ivm.kernels.times import advance, all_bits
from ivm.rows import Words


@kernel
def _append(trace: Words, at: int, p: int, target: Words, time: int) -> None:
    width = trace[T_WIDTH]
    diff_width = trace[T_DIFF_WIDTH]
    n = target[B_COUNT]
    copy_words(trace[at + L_ROWS] + 8 * width * p, target[B_ROWS] + 8 * width * n, width)
    store(target[B_TIMES] + 8 * n, time)
    diff = trace[at + L_DIFFS] + trace[at + L_DIFF_STRIDE] * p
    copy_words(diff, target[B_DIFFS] + 8 * diff_width * n, diff_width)
    target[B_COUNT] = n + 1


@kernel
def collect(trace: Words, target: Words, upto: int, since: int) -> int:
    """Appends all updates with ordinal <= ``upto``, ordinals raised to ``since``; the target has room for all."""
    shape = trace[T_SHAPE]
    shift = all_bits(shape)
    for k in range(trace[T_LAYERS]):
        at = HEAD + LAYER_WORDS * k
        for p in range(trace[at + L_COUNT]):
            time = load(trace[at + L_TIMES] + trace[at + L_TIME_STRIDE] * p)
            if (time >> shift) <= upto:
                _append(trace, at, p, target, advance(time, since, shape))
    return int(target[B_COUNT])


@kernel
def lookup(trace: Words, keys: Words, target: Words, upto: int) -> bool:
    """Appends the updates with ordinal <= ``upto`` of each row of ``keys`` (a block), with the key's index as time.

    False when the target has no room. Cost: one seek for each key and layer, and the updates found.
    """
    shape = trace[T_SHAPE]
    shift = all_bits(shape)
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    for i in range(keys[B_COUNT]):
        key = keys[B_ROWS] + 8 * key_width * i
        for k in range(trace[T_LAYERS]):
            at = HEAD + LAYER_WORDS * k
            rows = trace[at + L_ROWS]
            total = trace[at + L_COUNT]
            p = seek(rows, total, width, trace[at + L_FENCE], 0, key, key_width, trace[T_ORDER])
            while p < total and compare(rows + 8 * width * p, key, 0, key_width, 0) == 0:
                if (load(trace[at + L_TIMES] + trace[at + L_TIME_STRIDE] * p) >> shift) <= upto:
                    if target[B_COUNT] >= target[B_ROOM]:
                        return False
                    _append(trace, at, p, target, i)
                p += 1
    return True


@kernel
def lookup_one(trace: Words, held: Words, room: int, upto: int) -> int:
    """The rows whose key is the word ``held[0]``, accumulated over ordinals <= ``upto``: their words from ``held[1]``
    on, and their diffs, none 0, behind the place of ``room`` rows. -1: there are more.

    For traces whose key and diff have one word. Cost: one seek for each layer, and the updates found.
    """
    shift = all_bits(trace[T_SHAPE])
    width = trace[T_WIDTH]
    key = where(held)
    first = key + 8
    diffs = 1 + room * width
    count = 0
    for k in range(trace[T_LAYERS]):
        at = HEAD + LAYER_WORDS * k
        rows = trace[at + L_ROWS]
        total = trace[at + L_COUNT]
        p = seek(rows, total, width, trace[at + L_FENCE], 0, key, 1, trace[T_ORDER])
        while p < total and load(rows + 8 * width * p) == held[0]:
            if (load(trace[at + L_TIMES] + trace[at + L_TIME_STRIDE] * p) >> shift) <= upto:
                i = 0
                while i < count and compare(first + 8 * width * i, rows + 8 * width * p, 1, width, 0) != 0:
                    i += 1
                if i == count:
                    if count == room:
                        return -1
                    copy_words(rows + 8 * width * p, first + 8 * width * i, width)
                    held[diffs + i] = 0
                    count += 1
                held[diffs + i] += load(trace[at + L_DIFFS] + trace[at + L_DIFF_STRIDE] * p)
            p += 1
    left = 0
    for i in range(count):
        if held[diffs + i] != 0:
            copy_words(first + 8 * width * i, first + 8 * width * left, width)
            held[diffs + left] = held[diffs + i]
            left += 1
    return left
