"""A row's history: the times and diffs that a trace holds of it, and the times at which an operator owes output.

At partially ordered times an operator's output changes at the joins of new times with old ones (McSherry et al.,
Differential dataflow, CIDR 2013, section 3.3). New times of one pass share their loop vector; a join either has that
vector too, or a later one, and is then owed for the pass at that vector.
"""

from __future__ import annotations

from ivm.kernels.cache import kernel
from ivm.kernels.memory import (
    L_COUNT, L_DIFFS, L_DIFF_STRIDE, L_FENCE, L_ROWS, L_SIGN, L_TIMES, L_TIME_STRIDE, LAYER_WORDS, load,
)  # fmt: skip
from ivm.kernels.order import compare
from ivm.kernels.seek import seek
from ivm.kernels.times import advance, lub, rounds
import numpy as np


@kernel
def grow(array, count):  # type: ignore[no-untyped-def]
    """The array, or a longer copy when ``count`` fills it."""
    if count < len(array):
        return array
    longer = np.empty(2 * len(array) + 8, np.int64)
    longer[:count] = array[:count]
    return longer


@kernel
def put(array, count, value):  # type: ignore[no-untyped-def]
    """Adds a value to a short list without doubles; (array, count)."""
    for i in range(count):
        if array[i] == value:
            return array, count
    array = grow(array, count)
    array[count] = value
    return array, count + 1


@kernel
def gather_history(table, layers, cursors, width, key_width, order, key, since, depth, times, diffs):  # type: ignore[no-untyped-def]
    """(times, diffs, count) of all rows with the key in a table of layers, diffs of one word.

    Times are raised to the ordinal ``since``, sorted and added up. Cursors move on: keys come in ascending order.
    """
    count = 0
    for k in range(layers):
        at = k * LAYER_WORDS
        rows = table[at + L_ROWS]
        total = table[at + L_COUNT]
        p = seek(rows, total, width, table[at + L_FENCE], cursors[k], key, key_width, order)
        cursors[k] = p
        while p < total and compare(rows + 8 * width * p, key, 0, key_width, 0) == 0:
            times = grow(times, count)
            diffs = grow(diffs, count)
            times[count] = advance(load(table[at + L_TIMES] + table[at + L_TIME_STRIDE] * p), since, depth)
            diffs[count] = load(table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p) * table[at + L_SIGN]
            count += 1
            p += 1
    return times, diffs, count


@kernel
def consolidate_history(times, diffs, count):  # type: ignore[no-untyped-def]
    """Sorts by time, adds equal times up and drops zeros, in place; returns the new count."""
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
def close(now, now_count, owed, owed_count, history, history_count, depth, vector):  # type: ignore[no-untyped-def]
    """Closes the times of this pass under joins with a history; (now, its count, owed, its count), ``now`` sorted."""
    i = 0
    while i < now_count:
        for j in range(history_count):
            time = lub(now[i], history[j], depth)
            if rounds(time, depth) == vector:
                now, now_count = put(now, now_count, time)
            else:
                owed, owed_count = put(owed, owed_count, time)
        i += 1
    now[:now_count].sort()
    return now, now_count, owed, owed_count
