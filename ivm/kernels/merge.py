"""Merging: into the small layer in place, two layers with fuel, and compaction of times.

Compaction raises ordinals to ``since``, which may reorder the updates of one row; so they are sorted by time and
added up again inside each group of equal rows.
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
    FENCE,
    HEAD,
    L_COUNT,
    L_DIFF_STRIDE,
    L_DIFFS,
    L_ROWS,
    L_TIME_STRIDE,
    L_TIMES,
    T_DIFF_WIDTH,
    T_ORDER,
    T_ROOM,
    T_SHAPE,
    T_SINCE,
    T_WIDTH,
    copy_words,
    load,
    move_words,
    spread,
    store,
)
from ivm.kernels.order import compare
from ivm.kernels.times import advance, all_bits
from ivm.rows import Words

M_LEFT: Final = 0
M_RIGHT: Final = 1
M_DONE: Final = 2
M_MIXED: Final = 3
MERGE_WORDS: Final = 4

_FEW: Final = 8


@kernel
def _settle(rows: int, times: int, diffs: int, start: int, stop: int, width: int, diff_width: int) -> int:
    """Sorts updates start … stop-1, all of one row, by time and adds up equal times. Returns the new stop."""
    if stop - start > 64:
        return _settle_long(rows, times, diffs, start, stop, width, diff_width)
    for i in range(start + 1, stop):
        j = i
        while j > start and load(times + 8 * (j - 1)) > load(times + 8 * j):
            x = load(times + 8 * j)
            store(times + 8 * j, load(times + 8 * (j - 1)))
            store(times + 8 * (j - 1), x)
            for k in range(diff_width):
                a = diffs + 8 * (diff_width * j + k)
                b = diffs + 8 * (diff_width * (j - 1) + k)
                y = load(a)
                store(a, load(b))
                store(b, y)
            j -= 1
    return _add_up(rows, times, diffs, start, stop, width, diff_width)


@kernel
def _settle_long(rows: int, times: int, diffs: int, start: int, stop: int, width: int, diff_width: int) -> int:
    count = stop - start
    old_times = np.empty(count, np.int64)
    old_diffs = np.empty(count * diff_width, np.int64)
    for i in range(count):
        old_times[i] = load(times + 8 * (start + i))
        for k in range(diff_width):
            old_diffs[i * diff_width + k] = load(diffs + 8 * ((start + i) * diff_width + k))
    perm = np.argsort(old_times)
    for i in range(count):
        store(times + 8 * (start + i), old_times[perm[i]])
        for k in range(diff_width):
            store(diffs + 8 * ((start + i) * diff_width + k), old_diffs[perm[i] * diff_width + k])
    return _add_up(rows, times, diffs, start, stop, width, diff_width)


@kernel
def _add_up(rows: int, times: int, diffs: int, start: int, stop: int, width: int, diff_width: int) -> int:
    out = start
    i = start
    while i < stop:
        time = load(times + 8 * i)
        total = diffs + 8 * diff_width * out
        if out != i:
            copy_words(diffs + 8 * diff_width * i, total, diff_width)
        i += 1
        while i < stop and load(times + 8 * i) == time:
            for k in range(diff_width):
                store(total + 8 * k, load(total + 8 * k) + load(diffs + 8 * (diff_width * i + k)))
            i += 1
        for k in range(diff_width):
            if load(total + 8 * k) != 0:
                if out != start:
                    copy_words(rows + 8 * width * start, rows + 8 * width * out, width)
                store(times + 8 * out, time)
                out += 1
                break
    return out


@kernel
def compact(trace: Words) -> int:
    """Compacts the small layer in place to ``since``; returns its new count."""
    count = trace[HEAD + L_COUNT]
    rows = trace[HEAD + L_ROWS]
    times = trace[HEAD + L_TIMES]
    diffs = trace[HEAD + L_DIFFS]
    width = trace[T_WIDTH]
    diff_width = trace[T_DIFF_WIDTH]
    since = load(trace[T_SINCE])
    for i in range(count):
        store(times + 8 * i, advance(load(times + 8 * i), since, trace[T_SHAPE]))
    out = 0
    i = 0
    while i < count:
        start = out
        first = rows + 8 * width * i
        group = i
        while i < count and compare(first, rows + 8 * width * i, 0, width, 0) == 0:
            i += 1
        if group != out:
            copy_words(first, rows + 8 * width * out, width * (i - group))
            copy_words(times + 8 * group, times + 8 * out, i - group)
            copy_words(diffs + 8 * diff_width * group, diffs + 8 * diff_width * out, diff_width * (i - group))
        out = _settle(rows, times, diffs, start, start + i - group, width, diff_width)
    trace[HEAD + L_COUNT] = out
    return out


@kernel
def _merge_small(trace: Words, block: Words) -> int:
    """``insert_small`` for blocks of many updates, where there is room.

    The old updates move to the end of the room; from there and from the block they are merged forwards.
    """
    added = block[B_COUNT]
    count = trace[HEAD + L_COUNT]
    room = trace[T_ROOM]
    rows = trace[HEAD + L_ROWS]
    times = trace[HEAD + L_TIMES]
    diffs = trace[HEAD + L_DIFFS]
    order = trace[T_ORDER]
    width = trace[T_WIDTH]
    diff_width = trace[T_DIFF_WIDTH]
    i = room - count
    move_words(rows, rows + 8 * width * i, width * count)
    move_words(times, times + 8 * i, count)
    move_words(diffs, diffs + 8 * diff_width * i, diff_width * count)
    j = 0
    out = 0
    while j < added:
        row = block[B_ROWS] + 8 * width * j
        time = load(block[B_TIMES] + 8 * j)
        c = -1
        while i < room:
            old = rows + 8 * width * i
            c = compare(old, row, 0, width, order)
            if c == 0:
                then = load(times + 8 * i)
                c = -1 if then < time else (1 if then > time else 0)
            if c >= 0:
                break
            copy_words(old, rows + 8 * width * out, width)
            store(times + 8 * out, load(times + 8 * i))
            copy_words(diffs + 8 * diff_width * i, diffs + 8 * diff_width * out, diff_width)
            i += 1
            out += 1
        kept = i == room or c != 0
        diff = block[B_DIFFS] + 8 * diff_width * j
        for k in range(diff_width):
            x = load(diff + 8 * k)
            if i < room and c == 0:
                x += load(diffs + 8 * (diff_width * i + k))
            kept = kept or x != 0
            store(diffs + 8 * (diff_width * out + k), x)
        if i < room and c == 0:
            i += 1
        if kept:
            copy_words(row, rows + 8 * width * out, width)
            store(times + 8 * out, time)
            out += 1
        j += 1
    rest = room - i
    move_words(rows + 8 * width * i, rows + 8 * width * out, width * rest)
    move_words(times + 8 * i, times + 8 * out, rest)
    move_words(diffs + 8 * diff_width * i, diffs + 8 * diff_width * out, diff_width * rest)
    out += rest
    trace[HEAD + L_COUNT] = out
    return int(out)


@kernel
def insert_small(trace: Words, block: Words) -> int:
    """Inserts a sorted, consolidated block into the small layer. Returns -1, having done nothing, if there is no
    room."""
    added = block[B_COUNT]
    count = trace[HEAD + L_COUNT]
    if count + added > trace[T_ROOM]:
        count = compact(trace)
        if 2 * count > trace[T_ROOM] or count + added > trace[T_ROOM]:
            return -1
    if added > _FEW:
        return _merge_small(trace, block)
    rows = trace[HEAD + L_ROWS]
    times = trace[HEAD + L_TIMES]
    diffs = trace[HEAD + L_DIFFS]
    width = trace[T_WIDTH]
    diff_width = trace[T_DIFF_WIDTH]
    low = 0
    for j in range(added):
        row = block[B_ROWS] + 8 * width * j
        time = load(block[B_TIMES] + 8 * j)
        diff = block[B_DIFFS] + 8 * diff_width * j
        high = count
        while low < high:
            middle = (low + high) >> 1
            c = compare(rows + 8 * width * middle, row, 0, width, trace[T_ORDER])
            if c < 0 or (c == 0 and load(times + 8 * middle) < time):
                low = middle + 1
            else:
                high = middle
        at = diffs + 8 * diff_width * low
        if low < count and load(times + 8 * low) == time and compare(rows + 8 * width * low, row, 0, width, 0) == 0:
            zero = True
            for k in range(diff_width):
                x = load(at + 8 * k) + load(diff + 8 * k)
                store(at + 8 * k, x)
                zero = zero and x == 0
            if zero:
                after = count - low - 1
                move_words(rows + 8 * width * (low + 1), rows + 8 * width * low, width * after)
                move_words(times + 8 * (low + 1), times + 8 * low, after)
                move_words(at + 8 * diff_width, at, diff_width * after)
                count -= 1
            continue
        after = count - low
        move_words(rows + 8 * width * low, rows + 8 * width * (low + 1), width * after)
        move_words(times + 8 * low, times + 8 * (low + 1), after)
        move_words(at, at + 8 * diff_width, diff_width * after)
        copy_words(row, rows + 8 * width * low, width)
        store(times + 8 * low, time)
        copy_words(diff, at, diff_width)
        count += 1
    trace[HEAD + L_COUNT] = count
    return int(count)


@kernel
def _mixed(times: int, diffs: int, start: int, stop: int) -> bool:
    """Whether any of the updates start … stop-1, of one diff word, has a diff other than 1 or a time other than the
    first's."""
    for i in range(start, stop):  # noqa: SIM110  (numba has no any() over generators)
        if load(diffs + 8 * i) != 1 or load(times + 8 * i) != load(times):
            return True
    return False


@kernel
def merge(
    trace: Words, left: int, right: int, target: Words, state: Words, fuel: int, since: int, bits: Words, fence: Words
) -> int:
    """Merges the layers at offsets ``left`` and ``right`` of a trace into the target, until ``fuel`` updates are read.

    ``state`` int64[MERGE_WORDS] keeps the merge's progress, and whether times and diffs are not all equal. Returns how
    many updates were read. A group of equal rows is never split, so it may exceed ``fuel`` by the size of one.
    ``bits``: the target's bloom filter; ``fence``: its fence; both are skipped if empty.
    """
    i = state[M_LEFT]
    j = state[M_RIGHT]
    i_end = trace[left + L_COUNT]
    j_end = trace[right + L_COUNT]
    width = trace[T_WIDTH]
    diff_width = trace[T_DIFF_WIDTH]
    order = trace[T_ORDER]
    shape = trace[T_SHAPE]
    shift = all_bits(shape)
    low = (1 << shift) - 1
    bytes_a_row = 8 * width
    bytes_a_diff = 8 * diff_width
    a = trace[left + L_ROWS] + bytes_a_row * i
    b = trace[right + L_ROWS] + bytes_a_row * j
    rows = target[B_ROWS]
    times = target[B_TIMES]
    diffs = target[B_DIFFS]
    out = target[B_COUNT]
    group = out
    last = 0
    read = 0
    mask = 64 * len(bits) - 1
    mixed = state[M_MIXED] != 0 or diff_width != 1
    while i < i_end or j < j_end:
        from_left = j >= j_end or (i < i_end and compare(a, b, 0, width, order) <= 0)
        row = a if from_left else b
        if last == 0 or compare(last, row, 0, width, 0) != 0:
            if out > group + 1:
                out = _settle(rows, times, diffs, group, out, width, diff_width)
            mixed = mixed or _mixed(times, diffs, group, out)
            group = out
            if read >= fuel:
                break
            last = row
            if mask > 0:
                bit = spread(load(row)) & mask
                bits[bit >> 6] |= 1 << (bit & 63)
        if from_left:
            time = load(trace[left + L_TIMES] + trace[left + L_TIME_STRIDE] * i)
            diff = trace[left + L_DIFFS] + trace[left + L_DIFF_STRIDE] * i
            i += 1
            a += bytes_a_row
        else:
            time = load(trace[right + L_TIMES] + trace[right + L_TIME_STRIDE] * j)
            diff = trace[right + L_DIFFS] + trace[right + L_DIFF_STRIDE] * j
            j += 1
            b += bytes_a_row
        if (time >> shift) < since:
            time = (since << shift) | (time & low)
        to = rows + bytes_a_row * out
        for k in range(width):
            store(to + 8 * k, load(row + 8 * k))
        if out % FENCE == 0 and len(fence) != 0:  # written again if an update of the group was added to another
            fence[out // FENCE] = load(row)
        store(times + 8 * out, time)
        to = diffs + bytes_a_diff * out
        for k in range(diff_width):
            store(to + 8 * k, load(diff + 8 * k))
        out += 1
        read += 1
    if out > group + 1:
        out = _settle(rows, times, diffs, group, out, width, diff_width)
    mixed = mixed or _mixed(times, diffs, group, out)
    target[B_COUNT] = out
    state[M_MIXED] = mixed
    state[M_LEFT] = i
    state[M_RIGHT] = j
    state[M_DONE] = i == i_end and j == j_end
    return read


@kernel
def fill_fence(rows: int, count: int, width: int, fence: Words) -> None:
    """Writes the first word of every FENCE-th row to the fence."""
    for k in range(len(fence)):
        fence[k] = load(rows + 8 * width * FENCE * k)


@kernel
def fill_filter(rows: int, count: int, width: int, bits: Words) -> None:
    """Sets the bit of each row's first word."""
    mask = 64 * len(bits) - 1
    for i in range(count):
        bit = spread(load(rows + 8 * width * i)) & mask
        bits[bit >> 6] |= 1 << (bit & 63)


@kernel
def uniform(block: Words) -> bool:
    """Whether all updates have the same time and diff 1."""
    if block[B_DIFF_WIDTH] != 1:
        return False
    for i in range(block[B_COUNT]):
        if load(block[B_DIFFS] + 8 * i) != 1 or load(block[B_TIMES] + 8 * i) != load(block[B_TIMES]):
            return False
    return True
