"""A row's history: the times and diffs that a trace holds of it, and the times at which an operator owes output.

At partially ordered times an operator's output changes at the joins of new times with old ones (McSherry et al.,
Differential dataflow, CIDR 2013, section 3.3). New times of one pass share their loop vector; a join either has that
vector too, or a later one, and is then owed for the pass at that vector.
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
    Words,
    load,
)  # fmt: skip
from ivm.kernels.order import compare
from ivm.kernels.seek import absent, seek
from ivm.kernels.times import advance, all_bits, lub, rounds


@kernel
def longer(array: Words, count: int) -> Words:
    """A copy with twice the room, of which the first ``count`` entries count."""
    result = np.empty(2 * len(array), np.int64)
    result[:count] = array[:count]
    return result


@kernel
def put(array: Words, count: int, value: int) -> int:
    """Adds a value to a short list without doubles, which has room; the new count."""
    for i in range(count):
        if array[i] == value:
            return count
    array[count] = value
    return count + 1


@kernel
def sort_few(array: Words, count: int) -> None:
    """Sorts a short list in place; numpy's sort costs more than the list."""
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
    """How many rows with the key a table of layers has (diffs of one word); what fits goes to ``times`` and ``diffs``.

    Times are raised to the ordinal ``since``. Cursors move on: keys come in ascending order. Arrays are never returned:
    counting references to them costs more than the lists.
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
def next_row(delta: Words, i: int, owed: Words, j: int, width: int, key_width: int, order: int) -> int:
    """The address of the lesser key of a delta's row i and the row j of what is owed, of ``key_width`` words a row."""
    row: int = delta[B_ROWS] + 8 * width * i
    other: int = owed[B_ROWS] + 8 * key_width * j
    if i >= delta[B_COUNT] or (j < owed[B_COUNT] and compare(other, row, 0, key_width, order) < 0):
        return other
    return row


@kernel
def rows_from(block: Words, i: int, key: int, width: int, key_width: int) -> int:
    """The index after the block's rows from ``i`` on that have the key."""
    while i < block[B_COUNT] and compare(key, block[B_ROWS] + 8 * width * i, 0, key_width, 0) == 0:
        i += 1
    return i


@kernel
def put_times(block: Words, start: int, stop: int, now: Words, count: int) -> int:
    """Adds the distinct times of a block's updates to a list that has room; its new count."""
    for i in range(start, stop):
        count = put(now, count, load(block[B_TIMES] + 8 * i))
    return count


@kernel
def least_ordinal(now: Words, count: int, shape: int) -> int:
    """The least ordinal of some times."""
    shift = all_bits(shape)
    least = now[0] >> shift
    for k in range(1, count):
        least = min(least, now[k] >> shift)
    return int(least)


@kernel
def close(
    now: Words, now_count: int, owed: Words, history: Words, history_count: int, shape: int, vector: int,
) -> int:  # fmt: skip
    """Closes the times of this pass under joins with a history, sorted in ``now``; later joins go to ``owed``.

    Returns both counts, the second shifted by 32 bits; -1 when a list is full.
    """
    owed_count = 0
    i = 0
    while i < now_count:
        for j in range(history_count):
            if now_count == len(now) or owed_count == len(owed):
                return -1
            time = lub(now[i], history[j], shape)
            if rounds(time, shape) == vector:
                now_count = put(now, now_count, time)
            else:
                owed_count = put(owed, owed_count, time)
        i += 1
    sort_few(now, now_count)
    return now_count | owed_count << 32
