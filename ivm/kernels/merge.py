"""Merging: into the small layer in place, two layers with fuel, and compaction of times.

Compaction raises ordinals to ``since``, which may reorder the updates of one row; so they are sorted by time and
added up again inside each group of equal rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.cache import inlined, kernel
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
    L_ROWS,
    L_TIME_STRIDE,
    L_TIMES,
    LAYER_WORDS,
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
    where,
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


@inlined
def _others(diff: int, diff_width: int) -> bool:
    """Whether a word of the diff but the first is not zero."""
    for k in range(1, diff_width):  # noqa: SIM110  (numba has no any() over generators)
        if load(diff + 8 * k) != 0:
            return True
    return False


@inlined
def _precedes(a: int, b: int, width: int, order: int, time: int, other: int, least: int, low: int) -> bool:
    """Whether row a comes before row b, or is equal and its time, once raised, is not later; all by their addresses."""
    c = compare(a, b, 0, width, order)
    if c != 0:
        return c < 0
    x, y = load(time), load(other)
    return max(x, least | (x & low)) <= max(y, least | (y & low))


@inlined
def _mark(bits: Words, row: int) -> None:
    """Sets a row's bit in a filter, if there is one."""
    if len(bits) != 0:
        bit = spread(load(row)) & (64 * len(bits) - 1)
        at = where(bits) + 8 * (bit >> 6)
        store(at, load(at) | 1 << (bit & 63))


@inlined
def _put(target: Words, out: int, row: int, time: int, diff: int, width: int, diff_width: int, fence: int) -> None:
    """Writes an update, all but the first word of its diff, and its fence, if the fence's address is not 0."""
    to = target[B_ROWS] + 8 * width * out
    for k in range(width):
        store(to + 8 * k, load(row + 8 * k))
    if fence != 0 and out % FENCE == 0:
        store(fence + 8 * (out // FENCE), load(row))
    store(target[B_TIMES] + 8 * out, time)
    to = target[B_DIFFS] + 8 * diff_width * out
    for k in range(1, diff_width):
        store(to + 8 * k, load(diff + 8 * k))


@inlined
def _merge(
    trace: Words, left: int, right: int, target: Words, state: Words, fuel: int, since: int, bits: Words, fence: Words,
    width: int, diff_width: int, order: int,
) -> int:  # fmt: skip
    """``merge`` of updates of such rows, diffs and order: where these are constants, the compiler makes use of it.

    An update is written behind the others at once, all but the first word of its diff, which becomes ``total`` with
    those of equal updates, and stays there unless its diff becomes zero. The updates of a row come ordered by time,
    unless raising ordinals has changed the order of those of a loop.
    """
    i, j = state[M_LEFT], state[M_RIGHT]
    begun = i + j
    i_end, j_end = trace[left + L_COUNT], trace[right + L_COUNT]
    shift = all_bits(trace[T_SHAPE])
    low, least = (1 << shift) - 1, since << shift
    row_size, diff_size = 8 * width, 8 * diff_width
    a, b = trace[left + L_ROWS] + row_size * i, trace[right + L_ROWS] + row_size * j
    a_times, a_time_stride = trace[left + L_TIMES], trace[left + L_TIME_STRIDE]
    b_times, b_time_stride = trace[right + L_TIMES], trace[right + L_TIME_STRIDE]
    a_diffs, a_diff_stride = trace[left + L_DIFFS], trace[left + L_DIFF_STRIDE]
    b_diffs, b_diff_stride = trace[right + L_DIFFS], trace[right + L_DIFF_STRIDE]
    rows, times, diffs = target[B_ROWS], target[B_TIMES], target[B_DIFFS]
    out = group = target[B_COUNT]
    fence_at = where(fence) if len(fence) != 0 else 0
    mixed = (state[M_MIXED] != 0) | (diff_width != 1)
    first = load(times) if out != 0 else 0
    last, last_time, total = 0, 0, 0
    ordered = True
    while i < i_end or j < j_end:
        own = b_times + b_time_stride * j
        from_left = j == j_end or (
            i < i_end and _precedes(a, b, width, order, a_times + a_time_stride * i, own, least, low)
        )
        row = a if from_left else b
        time = load(a_times + a_time_stride * i if from_left else own)
        time = max(time, least | (time & low))
        diff = a_diffs + a_diff_stride * i if from_left else b_diffs + b_diff_stride * j
        same = last != 0 and compare(last, row, 0, width, 0) == 0
        own = diffs + diff_size * out
        if same and time == last_time:
            total += load(diff)
            for k in range(1, diff_width):
                store(own + 8 * k, load(own + 8 * k) + load(diff + 8 * k))
        else:
            if total != 0 or (last != 0 and _others(own, diff_width)):
                store(own, total)
                first = first if out != 0 else last_time
                mixed = mixed | (total != 1) | (last_time != first)
                out += 1
            if not same:
                if not ordered:
                    out = _settle(rows, times, diffs, group, out, width, diff_width)
                    first = load(times)
                    ordered = True
                last, total = 0, 0
                if i + j - begun >= fuel:
                    break
                group = out
                _mark(bits, row)
            elif time < last_time:
                ordered = False
            _put(target, out, row, time, diff, width, diff_width, fence_at)
            last, last_time, total = row, time, load(diff)
        if from_left:
            i += 1
            a += row_size
        else:
            j += 1
            b += row_size
    own = diffs + diff_size * out
    if total != 0 or (last != 0 and _others(own, diff_width)):
        store(own, total)
        mixed = mixed | (total != 1) | (last_time != (first if out != 0 else last_time))
        out += 1
    target[B_COUNT] = out if ordered else _settle(rows, times, diffs, group, out, width, diff_width)
    state[M_MIXED], state[M_LEFT], state[M_RIGHT] = mixed, i, j
    state[M_DONE] = i == i_end and j == j_end
    return int(i + j - begun)


@kernel
def merge(
    trace: Words, left: int, right: int, target: Words, state: Words, fuel: int, since: int, bits: Words, fence: Words
) -> int:
    """Merges the layers at offsets ``left`` and ``right`` of a trace into the target, until ``fuel`` updates are read.

    ``state`` int64[MERGE_WORDS] keeps the merge's progress, and whether times and diffs may not all be equal. Returns
    how many updates were read. A group of equal rows is never split, so it may exceed ``fuel`` by the size of one.
    ``bits``: the target's bloom filter; ``fence``: its fence; both are skipped if empty.
    """
    width = trace[T_WIDTH]
    if trace[T_DIFF_WIDTH] == 1 and trace[T_ORDER] == 0:
        if width == 1:
            return _merge(trace, left, right, target, state, fuel, since, bits, fence, 1, 1, 0)
        if width == 2:
            return _merge(trace, left, right, target, state, fuel, since, bits, fence, 2, 1, 0)
        return _merge(trace, left, right, target, state, fuel, since, bits, fence, width, 1, 0)
    return _merge(
        trace, left, right, target, state, fuel, since, bits, fence, width, trace[T_DIFF_WIDTH], trace[T_ORDER]
    )


@kernel
def spill(trace: Words, block: Words, bits: Words, fence: Words) -> int:
    """Merges the small layer with the second one, into a block that has room for both, and lets the trace have the
    block as its second layer. Returns how many updates it has; if none, the trace still has both layers.

    ``bits``, ``fence``: as in ``merge``, for as many updates as the block has room for.
    """
    small, second = HEAD, HEAD + LAYER_WORDS
    state = np.zeros(MERGE_WORDS, np.int64)
    since = load(trace[T_SINCE])
    merge(trace, small, second, block, state, trace[small + L_COUNT] + trace[second + L_COUNT], since, bits, fence)
    count = block[B_COUNT]
    if count != 0:
        trace[small + L_COUNT] = 0
        trace[second + L_COUNT] = count
        trace[second + L_ROWS], trace[second + L_TIMES] = block[B_ROWS], block[B_TIMES]
        trace[second + L_DIFFS] = block[B_DIFFS]
        trace[second + L_TIME_STRIDE], trace[second + L_DIFF_STRIDE] = 8, 8 * block[B_DIFF_WIDTH]
        trace[second + L_FENCE] = where(fence) if len(fence) != 0 else 0
        trace[second + L_FILTER], trace[second + L_MASK] = where(bits) if len(bits) != 0 else 0, 64 * len(bits) - 1
    return int(count)


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
