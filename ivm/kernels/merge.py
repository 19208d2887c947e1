"""Merging: into the small layer in place, two layers with fuel, and compaction of times.

Compaction raises ordinals to ``since``, which may reorder the updates of one row; so they are sorted by time and
added up again inside each group of equal rows.
"""

from __future__ import annotations

from typing import Final

from ivm.kernels.cache import kernel
from ivm.kernels.memory import (
    B_COUNT, B_DIFFS, B_DIFF_WIDTH, B_ROWS, B_TIMES, B_WIDTH, FENCE, HEAD, L_COUNT, L_DIFFS, L_DIFF_STRIDE, L_ROWS,
    L_TIMES, L_TIME_STRIDE, T_DEPTH, T_DIFF_WIDTH, T_ORDER, T_ROOM, T_SINCE, T_WIDTH, copy_words, copy_words_down,
    load, store,
)  # fmt: skip
from ivm.kernels.order import compare
from ivm.kernels.times import advance
import numpy as np

M_LEFT: Final = 0
M_RIGHT: Final = 1
M_DONE: Final = 2
MERGE_WORDS: Final = 3


@kernel
def _settle(rows, times, diffs, start, stop, width, diff_width):  # type: ignore[no-untyped-def]
    """Sorts updates start … stop-1, all of one row, by time and adds equal times up; returns the new stop."""
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
def _settle_long(rows, times, diffs, start, stop, width, diff_width):  # type: ignore[no-untyped-def]
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
def _add_up(rows, times, diffs, start, stop, width, diff_width):  # type: ignore[no-untyped-def]
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
def compact(trace):  # type: ignore[no-untyped-def]
    """Compacts the small layer in place to ``since``; returns its new count."""
    count = trace[HEAD + L_COUNT]
    rows = trace[HEAD + L_ROWS]
    times = trace[HEAD + L_TIMES]
    diffs = trace[HEAD + L_DIFFS]
    width = trace[T_WIDTH]
    diff_width = trace[T_DIFF_WIDTH]
    since = load(trace[T_SINCE])
    for i in range(count):
        store(times + 8 * i, advance(load(times + 8 * i), since, trace[T_DEPTH]))
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
def insert_small(trace, block):  # type: ignore[no-untyped-def]
    """Inserts a sorted, consolidated block into the small layer; -1, and nothing done, when there is no room."""
    added = block[B_COUNT]
    count = trace[HEAD + L_COUNT]
    if count + added > trace[T_ROOM]:
        count = compact(trace)
        if 2 * count > trace[T_ROOM] or count + added > trace[T_ROOM]:
            return -1
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
                copy_words(rows + 8 * width * (low + 1), rows + 8 * width * low, width * after)
                copy_words(times + 8 * (low + 1), times + 8 * low, after)
                copy_words(at + 8 * diff_width, at, diff_width * after)
                count -= 1
            continue
        after = count - low
        copy_words_down(rows + 8 * width * low, rows + 8 * width * (low + 1), width * after)
        copy_words_down(times + 8 * low, times + 8 * (low + 1), after)
        copy_words_down(at, at + 8 * diff_width, diff_width * after)
        copy_words(row, rows + 8 * width * low, width)
        store(times + 8 * low, time)
        copy_words(diff, at, diff_width)
        count += 1
    trace[HEAD + L_COUNT] = count
    return count


@kernel
def _take(trace, layer, i, target, since):  # type: ignore[no-untyped-def]
    """Appends all updates of the row at i of a layer, times compacted; returns the index after them."""
    width = trace[T_WIDTH]
    diff_width = trace[T_DIFF_WIDTH]
    first = trace[layer + L_ROWS] + 8 * width * i
    out = target[B_COUNT]
    while i < trace[layer + L_COUNT]:
        row = trace[layer + L_ROWS] + 8 * width * i
        if row != first and compare(first, row, 0, width, 0) != 0:
            break
        time = load(trace[layer + L_TIMES] + trace[layer + L_TIME_STRIDE] * i)
        copy_words(row, target[B_ROWS] + 8 * width * out, width)
        store(target[B_TIMES] + 8 * out, advance(time, since, trace[T_DEPTH]))
        diff = trace[layer + L_DIFFS] + trace[layer + L_DIFF_STRIDE] * i
        copy_words(diff, target[B_DIFFS] + 8 * diff_width * out, diff_width)
        out += 1
        i += 1
    target[B_COUNT] = out
    return i


@kernel
def merge(trace, left, right, target, state, fuel, since):  # type: ignore[no-untyped-def]
    """Merges the layers at offsets ``left`` and ``right`` of a trace into the target, until ``fuel`` updates are read.

    ``state`` int64[MERGE_WORDS] keeps how far it is; returns how many updates were read. A group of equal rows is
    never split, so it may read more than ``fuel`` by the size of one.
    """
    i = state[M_LEFT]
    j = state[M_RIGHT]
    width = trace[T_WIDTH]
    diff_width = trace[T_DIFF_WIDTH]
    order = trace[T_ORDER]
    read = 0
    while read < fuel and (i < trace[left + L_COUNT] or j < trace[right + L_COUNT]):
        if i >= trace[left + L_COUNT]:
            c = 1
        elif j >= trace[right + L_COUNT]:
            c = -1
        else:
            a = trace[left + L_ROWS] + 8 * width * i
            b = trace[right + L_ROWS] + 8 * width * j
            c = compare(a, b, 0, width, order)
        start = target[B_COUNT]
        before = i + j
        if c <= 0:
            i = _take(trace, left, i, target, since)
        if c >= 0:
            j = _take(trace, right, j, target, since)
        read += i + j - before
        if target[B_COUNT] > start + 1:
            target[B_COUNT] = _settle(
                target[B_ROWS], target[B_TIMES], target[B_DIFFS], start, target[B_COUNT], width, diff_width
            )
    state[M_LEFT] = i
    state[M_RIGHT] = j
    state[M_DONE] = i == trace[left + L_COUNT] and j == trace[right + L_COUNT]
    return read


@kernel
def fill_fence(rows, count, width, fence):  # type: ignore[no-untyped-def]
    """The first word of every FENCE-th row."""
    for k in range(len(fence)):
        fence[k] = load(rows + 8 * width * FENCE * k)


@kernel
def uniform(block):  # type: ignore[no-untyped-def]
    """Whether all updates have one time and diff 1."""
    if block[B_DIFF_WIDTH] != 1:
        return False
    for i in range(block[B_COUNT]):
        if load(block[B_DIFFS] + 8 * i) != 1 or load(block[B_TIMES] + 8 * i) != load(block[B_TIMES]):
            return False
    return True
