"""Reduce: gathers a key's accumulated values for a reducer in Python, and emits what the reducer's rows change.

A *segment* is a key's distinct values with their summed diffs at one time, or just a *head* (key, time) where it has
none. The gathering kernels write three blocks: ``heads`` (rows: the keys; times; diffs, two words: sign, and the next
time or -1), ``offsets`` (rows: where each head's values begin in ``vals``, one more at the end) and ``vals`` (rows: the
values; diffs: the sums; times unused). They return False if a block is full: the caller makes room and starts again.

``*_total`` are for outside loops. Inside loops ``segments_history`` and ``emit_segments`` are the tactic SEGMENTS of
``ivm.kernels.interesting``, and ``differences_partial`` subtracts what was emitted before.
"""

from __future__ import annotations

import numpy as np

from ivm.kernels.cache import inlined, kernel
from ivm.kernels.history import put, put_times, rows_from, sort_few
from ivm.kernels.join import S_HISTORY, S_SEEKS, S_SEGMENTS
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFFS,
    B_ROOM,
    B_ROWS,
    B_TIMES,
    B_WIDTH,
    L_COUNT,
    L_DIFF_STRIDE,
    L_DIFFS,
    L_FENCE,
    L_ROWS,
    L_SIGN,
    L_TIME_STRIDE,
    L_TIMES,
    LAYER_WORDS,
    T_DIFF_WIDTH,
    T_KEY_WIDTH,
    T_ORDER,
    T_SHAPE,
    T_WIDTH,
    copy_words,
    load,
    store,
)
from ivm.kernels.order import compare
from ivm.kernels.seek import AHEAD, absent, aim, hints, layers, seek
from ivm.kernels.sort import permutation
from ivm.kernels.times import advance, below
from ivm.rows import Words


@kernel
def live(table: Words, k: int, position: int, width: int, key: int, key_width: int) -> bool:
    """Whether layer k has a row of the key at the position."""
    at = k * LAYER_WORDS
    if position >= table[at + L_COUNT]:
        return False
    return compare(table[at + L_ROWS] + 8 * width * position, key, 0, key_width, 0) == 0


@kernel
def _walk(
    trace: Words, table: Words, count: int, starts: Words, positions: Words, key: int, time: int, limit: int,
    vals: Words, sums: Words,
) -> int:  # fmt: skip
    """Appends the key's accumulation at ``time`` to ``vals``. Returns the rows visited, or -1 if there is no room.

    With ``limit`` >= 0 only positive sums are written, and the walk ends when their total reaches the limit.
    """
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    shape = trace[T_SHAPE]
    diff_width = trace[T_DIFF_WIDTH]
    order = trace[T_ORDER]
    visited = 0
    reached = 0
    for k in range(count):
        positions[k] = starts[k]
    while True:
        best = 0
        for k in range(count):
            if live(table, k, positions[k], width, key, key_width):
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
                if below(load(table[at + L_TIMES] + table[at + L_TIME_STRIDE] * p), time, shape):
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
def _add(diff: int, sign: int, sums: Words) -> None:
    for d in range(len(sums)):
        sums[d] += sign * load(diff + 8 * d)


@kernel
def _write(vals: Words, sums: Words) -> bool:
    """Appends a segment's only value, of no words, if its sums are not all zero."""
    n = vals[B_COUNT]
    for d in range(len(sums)):
        if sums[d] != 0:
            for e in range(len(sums)):
                store(vals[B_DIFFS] + 8 * (len(sums) * n + e), sums[e])
            vals[B_COUNT] = n + 1
            return True
    return False


@kernel
def counts_total(
    trace: Words, delta: Words, nothing: Words, heads: Words, offsets: Words, vals: Words, fresh: bool, stats: Words,
) -> None:  # fmt: skip
    """``segments_total`` for arrangements without values: one pass over a key's history serves all of its segments.

    The caller has made room for two heads and vals for each update of the delta.
    """
    width = trace[T_WIDTH]
    order = trace[T_ORDER]
    table, count = layers(trace, nothing, nothing)
    cursors = np.zeros(count, np.int64)
    sums = np.zeros(trace[T_DIFF_WIDTH], np.int64)
    heads[B_COUNT] = 0
    vals[B_COUNT] = 0
    store(offsets[B_ROWS], 0)
    bytes_a_diff = 8 * trace[T_DIFF_WIDTH]
    visited = 0
    seeks = 0
    i = 0
    while i < delta[B_COUNT]:
        key = delta[B_ROWS] + 8 * width * i
        first = i
        sums[:] = 0
        while i < delta[B_COUNT] and compare(key, delta[B_ROWS] + 8 * width * i, 0, width, 0) == 0:
            _add(delta[B_DIFFS] + bytes_a_diff * i, -1, sums)
            i += 1
        for k in range(count):
            at = k * LAYER_WORDS
            if absent(table, at, key, width):
                continue
            p = seek(table[at + L_ROWS], table[at + L_COUNT], width, table[at + L_FENCE], cursors[k], key, width, order)
            cursors[k] = p
            while live(table, k, p, width, key, width):
                _add(table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p, 1, sums)
                p += 1
            visited += p - cursors[k]
        seeks += count
        if not fresh and _write(vals, sums):
            head(heads, offsets, vals, key, width, load(delta[B_TIMES] + 8 * first), -1, -1)
        for e in range(first, i):
            _add(delta[B_DIFFS] + bytes_a_diff * e, 1, sums)
            if _write(vals, sums):
                following = load(delta[B_TIMES] + 8 * (e + 1)) if e + 1 < i else -1
                head(heads, offsets, vals, key, width, load(delta[B_TIMES] + 8 * e), 1, following)
    stats[S_SEEKS] += seeks
    stats[S_HISTORY] += visited
    stats[S_SEGMENTS] += heads[B_COUNT]


@kernel
def _count(out: Words, key: int, key_width: int, value: int, time: int, diff: int) -> None:
    n = out[B_COUNT]
    row = out[B_ROWS] + 8 * (key_width + 1) * n
    copy_words(key, row, key_width)
    store(row + 8 * key_width, value)
    store(out[B_TIMES] + 8 * n, time)
    store(out[B_DIFFS] + 8 * n, diff)
    out[B_COUNT] = n + 1


@kernel
def count_differences(trace: Words, delta: Words, nothing: Words, out: Words, fresh: bool, stats: Words) -> bool:
    """Outside loops, for arrangements without values: appends [key | count] with diff -1 for each old count and 1 for
    each new one.

    ``trace`` already includes the delta; ``fresh``: it was empty before. ``out`` is empty and has room for two updates
    per update of the delta. Returns whether ``out`` is sorted and consolidated, which only keys with several times
    prevent.
    """
    width = trace[T_WIDTH]
    order = trace[T_ORDER]
    table, count = layers(trace, nothing, nothing)
    cursors = np.zeros(count, np.int64)
    ordered = True
    visited = 0
    keys = 0
    ahead = hints(table, count, delta[B_COUNT], order)
    window = -AHEAD
    i = 0
    while i < delta[B_COUNT]:
        key = delta[B_ROWS] + 8 * width * i
        first = i
        if len(ahead) != 0 and not fresh:
            window = aim(table, count, width, delta, i, width, ahead, window, cursors)
        total = 0
        while i < delta[B_COUNT] and (i == first or compare(key, delta[B_ROWS] + 8 * width * i, 0, width, 0) == 0):
            total -= load(delta[B_DIFFS] + 8 * i)
            i += 1
        if fresh:
            total = 0
        else:
            for k in range(count):
                at = k * LAYER_WORDS
                if absent(table, at, key, width):
                    continue
                rows = table[at + L_ROWS]
                p = seek(rows, table[at + L_COUNT], width, table[at + L_FENCE], cursors[k], key, width, order)
                cursors[k] = p
                while live(table, k, p, width, key, width):
                    total += load(table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p)
                    p += 1
                visited += p - cursors[k]
        keys += 1
        ordered = ordered and i == first + 1
        for e in range(first, i):
            before = total
            total += load(delta[B_DIFFS] + 8 * e)
            time = load(delta[B_TIMES] + 8 * e)
            if 0 < total < before:
                _count(out, key, width, total, time, 1)
            if before > 0:
                _count(out, key, width, before, time, -1)
            if total > 0 and total > before:
                _count(out, key, width, total, time, 1)
    stats[S_SEEKS] += count * keys
    stats[S_HISTORY] += visited
    stats[S_SEGMENTS] += out[B_COUNT]
    return ordered


@kernel
def head(
    heads: Words, offsets: Words, vals: Words, key: int, key_width: int, time: int, sign: int, following: int,
) -> None:  # fmt: skip
    n = heads[B_COUNT]
    copy_words(key, heads[B_ROWS] + 8 * key_width * n, key_width)
    store(heads[B_TIMES] + 8 * n, time)
    store(heads[B_DIFFS] + 16 * n, sign)
    store(heads[B_DIFFS] + 16 * n + 8, following)
    store(offsets[B_ROWS] + 8 * (n + 1), vals[B_COUNT])
    heads[B_COUNT] = n + 1


@kernel
def segments_total(
    trace: Words, delta: Words, nothing: Words, heads: Words, offsets: Words, vals: Words, limit: int, fresh: bool,
    stats: Words,
) -> bool:  # fmt: skip
    """Outside loops: for each key of the delta, its segment before (sign -1) and at each of its times.

    ``trace`` already includes the delta; no history is later than the delta's times. ``fresh``: the trace was empty
    before.
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
    ahead = hints(table, count, delta[B_COUNT], order)
    window = -AHEAD
    i = 0
    while i < delta[B_COUNT]:
        key = delta[B_ROWS] + 8 * width * i
        if len(ahead) != 0:
            window = aim(table, count, width, delta, i, key_width, ahead, window, starts)
        begin, i = i, rows_from(delta, i, key, width, key_width)
        if i - begin > len(now):
            now = np.empty(2 * (i - begin), np.int64)
        n_now = put_times(delta, begin, i, now, 0)
        sort_few(now, n_now)
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
                head(heads, offsets, vals, key, key_width, now[0], -1, -1)
        for e in range(n_now):
            first = vals[B_COUNT]
            visited = _walk(trace, table, count - 1, starts, positions, key, now[e], limit, vals, sums)
            if visited < 0:
                return False
            stats[S_HISTORY] += visited
            if vals[B_COUNT] > first:
                head(heads, offsets, vals, key, key_width, now[e], 1, now[e + 1] if e + 1 < n_now else -1)
    stats[S_SEGMENTS] += heads[B_COUNT]
    return True


@kernel
def differences_total(heads: Words, segment: Words, vals: Words, target: Words) -> int:
    """Appends [key | val] of a reducer's rows to the target, which has room for two of each, by the segments' signs."""
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
    return int(n)


@inlined
def segments_history(
    trace: Words, table: Words, count: int, cursors: Words, key: int, since: int, times: Words
) -> tuple[int, int]:  # fmt: skip
    """(entries, updates visited): the distinct times of a key's updates, raised to ``since``; -1 if they do not fit.

    ``cursors`` int64[count or more]: advanced to the key's first row in each layer.
    """
    width, key_width = trace[T_WIDTH], trace[T_KEY_WIDTH]
    order, shape = trace[T_ORDER], trace[T_SHAPE]
    n = 0
    visited = 0
    for k in range(count):
        at = k * LAYER_WORDS
        rows, total = table[at + L_ROWS], table[at + L_COUNT]
        p = seek(rows, total, width, table[at + L_FENCE], cursors[k], key, key_width, order)
        cursors[k] = p
        while live(table, k, p, width, key, key_width):
            time = advance(load(table[at + L_TIMES] + table[at + L_TIME_STRIDE] * p), since, shape)
            visited += 1
            p += 1
            if n == len(times):
                return -1, visited
            n = put(times, n, time)
    return n, visited


@inlined
def emit_segments(
    heads: Words, offsets: Words, vals: Words, key: int, now: Words, n_now: int, trace: Words, table: Words, count: int,
    cursors: Words, limit: int, sums: Words, stats: Words,
) -> bool:  # fmt: skip
    """Appends a segment, possibly empty, for each time of ``now``. False if ``vals`` has no room.

    ``heads`` has room, ``offsets`` for one more. ``cursors``: as left by ``segments_history``, followed by as many
    scratch words; ``sums``: scratch, at least one word per diff word.
    """
    positions = cursors[count:]
    for e in range(n_now):
        visited = _walk(trace, table, count, cursors, positions, key, now[e], limit, vals, sums)
        if visited < 0:
            return False
        stats[S_HISTORY] += visited
        head(heads, offsets, vals, key, trace[T_KEY_WIDTH], now[e], 1, -1)
    return True


@kernel
def _tidy(block: Words, start: int, order: int) -> None:
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
def _subtract(
    table: Words, count: int, cursors: Words, width: int, key: int, key_width: int, order: int, time: int,
    shape: int, out: Words,
) -> bool:  # fmt: skip
    """Appends the negated accumulation of a key in the output trace at ``time``. False if there is no room."""
    for k in range(count):
        at = k * LAYER_WORDS
        p = seek(table[at + L_ROWS], table[at + L_COUNT], width, table[at + L_FENCE], cursors[k], key, key_width, order)
        cursors[k] = p
        while live(table, k, p, width, key, key_width):
            if below(load(table[at + L_TIMES] + table[at + L_TIME_STRIDE] * p), time, shape):
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
def differences_partial(heads: Words, segment: Words, vals: Words, output: Words, nothing: Words, out: Words) -> bool:
    """Appends to ``out`` the reducer's rows minus earlier output: that in the output trace and, from this call, in
    ``out``.

    ``segment`` is ascending and names heads. Returns False, with ``out`` as found, when there is no room.
    """
    key_width = heads[B_WIDTH]
    width = output[T_WIDTH]
    shape = output[T_SHAPE]
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
        full = not _subtract(table, count, cursors, width, key, key_width, order, time, shape, out)
        for i in range(group, start):
            if below(load(out[B_TIMES] + 8 * i), time, shape):
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
