"""Reduce: gathers each touched key's accumulated values into segments, and turns a reducer's rows into differences.

A *segment* is a key's distinct values with their summed diffs at one time. The gathering kernels write
``heads`` (a block: rows = the keys, times, diffs = (sign, next time or -1)), ``offsets`` and ``vals`` (a block: rows =
the values, times unused, diffs = the sums). They return False when a block is full: the caller makes room and starts anew.
"""

from __future__ import annotations

from ivm.kernels.cache import kernel
from ivm.kernels.memory import (
    B_COUNT, B_DIFFS, B_DIFF_WIDTH, B_ROOM, B_ROWS, B_TIMES, B_WIDTH, L_COUNT, L_DIFFS, L_DIFF_STRIDE, L_FENCE, L_ROWS,
    L_SIGN, L_TIMES, L_TIME_STRIDE, LAYER_WORDS, T_DEPTH, T_DIFF_WIDTH, T_KEY_WIDTH, T_ORDER, T_WIDTH, copy_words,
    load, store,
)  # fmt: skip
from ivm.kernels.history import close, gather_history, put
from ivm.kernels.join import S_HISTORY, S_SEEKS, S_SEGMENTS
from ivm.kernels.order import compare
from ivm.kernels.seek import layers, seek
from ivm.kernels.sort import permutation
from ivm.kernels.times import ROUND_BITS, advance, below, lub, rounds
import numpy as np


@kernel
def _live(table, k, position, width, key, key_width):  # type: ignore[no-untyped-def]
    """Whether layer k has a row of the key at the position."""
    at = k * LAYER_WORDS
    if position >= table[at + L_COUNT]:
        return False
    return compare(table[at + L_ROWS] + 8 * width * position, key, 0, key_width, 0) == 0


@kernel
def _walk(trace, table, count, starts, positions, key, time, limit, vals, sums):  # type: ignore[no-untyped-def]
    """Appends the key's accumulation at ``time`` to ``vals``; the rows visited, or -1 when there is no room.

    With ``limit`` >= 0 only positive sums are written, and the walk ends when their total reaches the limit.
    """
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    depth = trace[T_DEPTH]
    diff_width = trace[T_DIFF_WIDTH]
    order = trace[T_ORDER]
    visited = 0
    reached = 0
    for k in range(count):
        positions[k] = starts[k]
    while True:
        best = 0
        for k in range(count):
            if _live(table, k, positions[k], width, key, key_width):
                row = table[k * LAYER_WORDS + L_ROWS] + 8 * width * positions[k]
                if best == 0 or compare(row, best, key_width, width, order) < 0:
                    best = row
        if best == 0:
            return visited
        sums[:] = 0
        for k in range(count):
            at = k * LAYER_WORDS
            p = positions[k]
            while p < table[at + L_COUNT] and compare(table[at + L_ROWS] + 8 * width * p, best, 0, width, 0) == 0:
                if below(load(table[at + L_TIMES] + table[at + L_TIME_STRIDE] * p), time, depth):
                    diff = table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p
                    for d in range(diff_width):
                        sums[d] += load(diff + 8 * d) * table[at + L_SIGN]
                p += 1
                visited += 1
            positions[k] = p
        kept = False
        for d in range(diff_width):
            if sums[d] > 0 or (sums[d] != 0 and limit < 0):
                kept = True
        if not kept:
            continue
        n = vals[B_COUNT]
        if n >= vals[B_ROOM]:
            return -1
        copy_words(best + 8 * key_width, vals[B_ROWS] + 8 * (width - key_width) * n, width - key_width)
        for d in range(diff_width):
            store(vals[B_DIFFS] + 8 * (diff_width * n + d), sums[d])
        vals[B_COUNT] = n + 1
        reached += sums[0]
        if 0 <= limit <= reached:
            return visited


@kernel
def _head(heads, offsets, vals, key, key_width, time, sign, following):  # type: ignore[no-untyped-def]
    n = heads[B_COUNT]
    copy_words(key, heads[B_ROWS] + 8 * key_width * n, key_width)
    store(heads[B_TIMES] + 8 * n, time)
    store(heads[B_DIFFS] + 16 * n, sign)
    store(heads[B_DIFFS] + 16 * n + 8, following)
    store(offsets[B_ROWS] + 8 * (n + 1), vals[B_COUNT])
    heads[B_COUNT] = n + 1


@kernel
def segments_total(trace, delta, nothing, heads, offsets, vals, limit, fresh, stats):  # type: ignore[no-untyped-def]
    """Outside loops: for each key of the delta what stood before (sign -1), and what stands at each of its times.

    ``trace`` holds the delta already; no history is later than the delta's times. ``fresh``: nothing stood before.
    """
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    order = trace[T_ORDER]
    table, count = layers(trace, delta, nothing)
    starts = np.zeros(count, np.int64)
    positions = np.zeros(count, np.int64)
    sums = np.zeros(trace[T_DIFF_WIDTH], np.int64)
    now = np.empty(16, np.int64)
    heads[B_COUNT] = 0
    vals[B_COUNT] = 0
    store(offsets[B_ROWS], 0)
    i = 0
    while i < delta[B_COUNT]:
        key = delta[B_ROWS] + 8 * width * i
        n_now = 0
        while i < delta[B_COUNT] and compare(key, delta[B_ROWS] + 8 * width * i, 0, key_width, 0) == 0:
            time = load(delta[B_TIMES] + 8 * i)
            if n_now == 0 or now[n_now - 1] != time:
                now, n_now = put(now, n_now, time)
            i += 1
        now[:n_now].sort()
        for k in range(count):
            at = k * LAYER_WORDS
            starts[k] = seek(
                table[at + L_ROWS], table[at + L_COUNT], width, table[at + L_FENCE], starts[k], key, key_width, order
            )
        stats[S_SEEKS] += count
        if heads[B_COUNT] + n_now + 1 >= heads[B_ROOM]:
            return False
        if not fresh:
            first = vals[B_COUNT]
            visited = _walk(trace, table, count, starts, positions, key, now[n_now - 1], limit, vals, sums)
            if visited < 0:
                return False
            stats[S_HISTORY] += visited
            if vals[B_COUNT] > first:
                _head(heads, offsets, vals, key, key_width, now[0], -1, -1)
        for e in range(n_now):
            first = vals[B_COUNT]
            visited = _walk(trace, table, count - 1, starts, positions, key, now[e], limit, vals, sums)
            if visited < 0:
                return False
            stats[S_HISTORY] += visited
            if vals[B_COUNT] > first:
                _head(heads, offsets, vals, key, key_width, now[e], 1, now[e + 1] if e + 1 < n_now else -1)
    stats[S_SEGMENTS] += heads[B_COUNT]
    return True


@kernel
def differences_total(heads, segment, vals, target):  # type: ignore[no-untyped-def]
    """Appends [key | val] of a reducer's rows to the target, which has room for two of each, by their segments' signs."""
    key_width = heads[B_WIDTH]
    width = target[B_WIDTH]
    val_width = width - key_width
    n = target[B_COUNT]
    for i in range(len(segment)):
        h = segment[i]
        following = load(heads[B_DIFFS] + 16 * h + 8)
        for again in range(2):
            if again == 1 and following < 0:
                break
            row = target[B_ROWS] + 8 * width * n
            copy_words(heads[B_ROWS] + 8 * key_width * h, row, key_width)
            for k in range(val_width):
                store(row + 8 * (key_width + k), vals[i, k])
            sign = load(heads[B_DIFFS] + 16 * h)
            store(target[B_TIMES] + 8 * n, following if again == 1 else load(heads[B_TIMES] + 8 * h))
            store(target[B_DIFFS] + 8 * n, -sign if again == 1 else sign)
            n += 1
    target[B_COUNT] = n
    return n


@kernel
def _times_of_key(table, count, starts, width, key, key_width, since, depth, times):  # type: ignore[no-untyped-def]
    """(times, count, rows visited): the distinct times of a key's rows, raised to ``since``."""
    n = 0
    visited = 0
    for k in range(count):
        at = k * LAYER_WORDS
        p = starts[k]
        while _live(table, k, p, width, key, key_width):
            time = advance(load(table[at + L_TIMES] + table[at + L_TIME_STRIDE] * p), since, depth)
            times, n = put(times, n, time)
            visited += 1
            p += 1
    return times, n, visited


@kernel
def segments_partial(  # type: ignore[no-untyped-def]
    trace, delta, owed, nothing, heads, offsets, vals, owed_out, limit, vector, stats
):
    """Inside loops, at one loop vector: for each key of the delta or of ``owed`` (rows = keys, sorted) a segment, maybe
    empty, at each time of the closure; later times go to ``owed_out``."""
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    depth = trace[T_DEPTH]
    order = trace[T_ORDER]
    shift = depth * ROUND_BITS[depth]
    table, count = layers(trace, nothing, nothing)
    starts = np.zeros(count, np.int64)
    positions = np.zeros(count, np.int64)
    sums = np.zeros(trace[T_DIFF_WIDTH], np.int64)
    now = np.empty(16, np.int64)
    later = np.empty(16, np.int64)
    times = np.empty(64, np.int64)
    owed_found = owed_out[B_COUNT]
    heads[B_COUNT] = 0
    vals[B_COUNT] = 0
    store(offsets[B_ROWS], 0)
    i = 0
    j = 0
    while i < delta[B_COUNT] or j < owed[B_COUNT]:
        key = delta[B_ROWS] + 8 * width * i
        other = owed[B_ROWS] + 8 * key_width * j
        if i >= delta[B_COUNT] or (j < owed[B_COUNT] and compare(other, key, 0, key_width, order) < 0):
            key = other
        n_now = 0
        while i < delta[B_COUNT] and compare(key, delta[B_ROWS] + 8 * width * i, 0, key_width, 0) == 0:
            now, n_now = put(now, n_now, load(delta[B_TIMES] + 8 * i))
            i += 1
        while j < owed[B_COUNT] and compare(key, owed[B_ROWS] + 8 * key_width * j, 0, key_width, 0) == 0:
            now, n_now = put(now, n_now, load(owed[B_TIMES] + 8 * j))
            j += 1
        since = now[0] >> shift
        for k in range(1, n_now):
            since = min(since, now[k] >> shift)
        for k in range(count):
            at = k * LAYER_WORDS
            starts[k] = seek(
                table[at + L_ROWS], table[at + L_COUNT], width, table[at + L_FENCE], starts[k], key, key_width, order
            )
        times, n_times, visited = _times_of_key(table, count, starts, width, key, key_width, since, depth, times)
        stats[S_SEEKS] += count
        stats[S_HISTORY] += visited
        now, n_now, later, n_later = close(now, n_now, later, 0, times, n_times, depth, vector)
        full = heads[B_COUNT] + n_now >= heads[B_ROOM] or owed_out[B_COUNT] + n_later > owed_out[B_ROOM]
        for e in range(n_now):
            if full:
                break
            visited = _walk(trace, table, count, starts, positions, key, now[e], limit, vals, sums)
            full = visited < 0
            if not full:
                stats[S_HISTORY] += visited
                _head(heads, offsets, vals, key, key_width, now[e], 1, -1)
        if full:
            owed_out[B_COUNT] = owed_found
            return False
        for k in range(n_later):
            n = owed_out[B_COUNT]
            copy_words(key, owed_out[B_ROWS] + 8 * key_width * n, key_width)
            store(owed_out[B_TIMES] + 8 * n, later[k])
            store(owed_out[B_DIFFS] + 8 * n, 1)
            owed_out[B_COUNT] = n + 1
    stats[S_SEGMENTS] += heads[B_COUNT]
    return True


@kernel
def _tidy(block, start, order):  # type: ignore[no-untyped-def]
    """Sorts and consolidates the updates from ``start`` on, in place; they all have one time."""
    count = block[B_COUNT] - start
    if count == 0:
        return
    width = block[B_WIDTH]
    rows = block[B_ROWS] + 8 * width * start
    times = block[B_TIMES] + 8 * start
    diffs = block[B_DIFFS] + 8 * start
    perm = permutation(rows, times, width, order, count)
    copied = np.empty(count * width + 1, np.int64)
    copied_diffs = np.empty(count, np.int64)
    out = 0
    i = 0
    while i < count:
        first = perm[i]
        total = 0
        while i < count and compare(rows + 8 * width * first, rows + 8 * width * perm[i], 0, width, 0) == 0:
            total += load(diffs + 8 * perm[i])
            i += 1
        if total != 0:
            for k in range(width):
                copied[out * width + k] = load(rows + 8 * (width * first + k))
            copied_diffs[out] = total
            out += 1
    for i in range(out):
        for k in range(width):
            store(rows + 8 * (width * i + k), copied[i * width + k])
        store(diffs + 8 * i, copied_diffs[i])
    block[B_COUNT] = start + out


@kernel
def _subtract(table, count, cursors, width, key, key_width, order, time, depth, out):  # type: ignore[no-untyped-def]
    """Appends the negated accumulation of a key in the output trace at ``time``; False when there is no room."""
    for k in range(count):
        at = k * LAYER_WORDS
        p = seek(table[at + L_ROWS], table[at + L_COUNT], width, table[at + L_FENCE], cursors[k], key, key_width, order)
        cursors[k] = p
        while _live(table, k, p, width, key, key_width):
            if below(load(table[at + L_TIMES] + table[at + L_TIME_STRIDE] * p), time, depth):
                n = out[B_COUNT]
                if n >= out[B_ROOM]:
                    return False
                copy_words(table[at + L_ROWS] + 8 * width * p, out[B_ROWS] + 8 * width * n, width)
                store(out[B_TIMES] + 8 * n, time)
                store(out[B_DIFFS] + 8 * n, -load(table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p))
                out[B_COUNT] = n + 1
            p += 1
    return True


@kernel
def differences_partial(heads, segment, vals, output, nothing, out):  # type: ignore[no-untyped-def]
    """Appends to ``out`` the reducer's rows minus what was emitted: by the output trace and, in this call, by ``out``.

    ``segment`` is ascending and names heads. Returns False, with ``out`` as found, when there is no room.
    """
    key_width = heads[B_WIDTH]
    width = output[T_WIDTH]
    depth = output[T_DEPTH]
    order = output[T_ORDER]
    table, count = layers(output, nothing, nothing)
    cursors = np.zeros(count, np.int64)
    found = out[B_COUNT]
    r = 0
    group = out[B_COUNT]
    for h in range(heads[B_COUNT]):
        key = heads[B_ROWS] + 8 * key_width * h
        time = load(heads[B_TIMES] + 8 * h)
        if h == 0 or compare(key, key - 8 * key_width, 0, key_width, 0) != 0:
            group = out[B_COUNT]
        start = out[B_COUNT]
        full = not _subtract(table, count, cursors, width, key, key_width, order, time, depth, out)
        for i in range(group, start):
            if below(load(out[B_TIMES] + 8 * i), time, depth):
                n = out[B_COUNT]
                if n >= out[B_ROOM]:
                    full = True
                    break
                copy_words(out[B_ROWS] + 8 * width * i, out[B_ROWS] + 8 * width * n, width)
                store(out[B_TIMES] + 8 * n, time)
                store(out[B_DIFFS] + 8 * n, -load(out[B_DIFFS] + 8 * i))
                out[B_COUNT] = n + 1
        while r < len(segment) and segment[r] == h:
            n = out[B_COUNT]
            if n >= out[B_ROOM]:
                full = True
                break
            row = out[B_ROWS] + 8 * width * n
            copy_words(key, row, key_width)
            for k in range(width - key_width):
                store(row + 8 * (key_width + k), vals[r, k])
            store(out[B_TIMES] + 8 * n, time)
            store(out[B_DIFFS] + 8 * n, 1)
            out[B_COUNT] = n + 1
            r += 1
        if full:
            out[B_COUNT] = found
            return False
        _tidy(out, start, order)
    return True
