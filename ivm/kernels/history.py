"""A key's history: its times and diffs in a trace, in short lists.

A list is an int64 array and a separate count; entries after the count are undefined. Kernels never return the arrays:
reference counting would cost more than the lists. Instead they report that a list is too short, and the caller starts
again with a ``longer`` one.
"""

from __future__ import annotations

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.memory import (
    B_COUNT,
    B_ROWS,
    B_TIMES,
    L_COUNT,
    L_DIFF_STRIDE,
    L_DIFFS,
    L_FENCE,
    L_ROWS,
    L_SIGN,
    L_TIME_STRIDE,
    L_TIMES,
    LAYER_WORDS,
    load,
)
from ivm.kernels.order import compare
from ivm.kernels.seek import absent, seek
from ivm.kernels.times import advance
from ivm.rows import Words


@kernel
def longer(array: Words, count: int) -> Words:
    """A list with twice the room and the same first ``count`` entries."""
    result = np.empty(2 * len(array), np.int64)
    result[:count] = array[:count]
    return result


@kernel
def put(array: Words, count: int, value: int) -> int:
    """Adds a value to a list of distinct values, which has room. Returns the new count. Cost: the list's length."""
    for i in range(count):
        if array[i] == value:
            return count
    array[count] = value
    return count + 1


@kernel
def sort_few(array: Words, count: int) -> None:
    """Sorts the first ``count`` entries in place, by insertion, which is faster than numpy's sort for a few."""
    if count > 64:
        array[:count].sort()
        return
    for i in range(1, count):
        x = array[i]
        j = i
        while j > 0 and array[j - 1] > x:
            array[j] = array[j - 1]
            j -= 1
        array[j] = x


@kernel
def gather_history(
    table: Words, layers: int, cursors: Words, width: int, key_width: int, order: int, key: int, since: int,
    shape: int, times: Words, diffs: Words,
) -> int:  # fmt: skip
    """Writes a key's updates, of one diff word, to ``times`` and ``diffs`` as far as there is room. Returns how many
    the key has.

    ``table``: ``layers`` layers, see ``ivm.kernels.seek``; ``cursors`` int64[layers]: where the searches begin,
    advanced to the key, since keys come in ascending order; ``key``: an address. Times are raised to the ordinal
    ``since``.
    """
    count = 0
    room = len(times)
    for k in range(layers):
        at = k * LAYER_WORDS
        if absent(table, at, key, key_width):
            continue
        rows = table[at + L_ROWS]
        total = table[at + L_COUNT]
        p = seek(rows, total, width, table[at + L_FENCE], cursors[k], key, key_width, order)
        cursors[k] = p
        while p < total and compare(rows + 8 * width * p, key, 0, key_width, 0) == 0:
            if count < room:
                times[count] = advance(load(table[at + L_TIMES] + table[at + L_TIME_STRIDE] * p), since, shape)
                diffs[count] = load(table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p) * table[at + L_SIGN]
            count += 1
            p += 1
    return count


@kernel
def consolidate_history(times: Words, diffs: Words, count: int) -> int:
    """Sorts by time, adds up diffs of equal times and drops zeros, in place; returns the new count."""
    if count > 64:
        perm = np.argsort(times[:count])
        times[:count] = times[:count][perm]
        diffs[:count] = diffs[:count][perm]
    else:
        for i in range(1, count):
            x = times[i]
            y = diffs[i]
            j = i
            while j > 0 and times[j - 1] > x:
                times[j] = times[j - 1]
                diffs[j] = diffs[j - 1]
                j -= 1
            times[j] = x
            diffs[j] = y
    out = 0
    i = 0
    while i < count:
        time = times[i]
        total = 0
        while i < count and times[i] == time:
            total += diffs[i]
            i += 1
        if total != 0:
            times[out] = time
            diffs[out] = total
            out += 1
    return out


@kernel
def rows_from(block: Words, i: int, key: int, width: int, key_width: int) -> int:
    """The index of the first row from ``i`` on, or the count, that does not begin with the key (an address)."""
    while i < block[B_COUNT] and compare(key, block[B_ROWS] + 8 * width * i, 0, key_width, 0) == 0:
        i += 1
    return i


@kernel
def put_times(block: Words, start: int, stop: int, now: Words, count: int) -> int:
    """Adds the distinct times of a block's updates ``start`` … ``stop`` - 1 to a list with room. Returns its count."""
    for i in range(start, stop):
        count = put(now, count, load(block[B_TIMES] + 8 * i))
    return count
