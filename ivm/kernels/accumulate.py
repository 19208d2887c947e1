"""Sums of each touched group, and what a formula makes of them: count, sum and the like without a call of Python.

Groups have no values, only diffs of several words. A formula takes a group's sums for a row, and keeps it where the
group has a result. Inside loops differences are mixed ones, as in ``ivm.kernels.first``: the output is not read.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.arrange import put_small
from ivm.kernels.cache import kernel
from ivm.kernels.codes import H_WIDTH
from ivm.kernels.first import sort_tail, times_less
from ivm.kernels.formula import apply_formula
from ivm.kernels.history import close, least_ordinal, longer, next_row, put_times, rows_from
from ivm.kernels.join import S_HISTORY, S_SEEKS, S_SEGMENTS
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFFS,
    B_ROOM,
    B_ROWS,
    B_TIMES,
    L_COUNT,
    L_DIFF_STRIDE,
    L_DIFFS,
    L_FENCE,
    L_ROWS,
    L_TIME_STRIDE,
    L_TIMES,
    LAYER_WORDS,
    T_DIFF_WIDTH,
    T_ORDER,
    T_SHAPE,
    T_WIDTH,
    Words,
    copy_words,
    load,
    store,
    where,
)  # fmt: skip
from ivm.kernels.order import compare
from ivm.kernels.seek import absent, layers, seek
from ivm.kernels.times import advance, loops

FAILED: Final = -2


@kernel
def _history(
    table: Words, count: int, cursors: Words, width: int, order: int, key: int, since: int, shape: int, diff_width: int,
    times: Words, diffs: Words,
) -> tuple[int, int]:  # fmt: skip
    """(count, updates visited): a key's updates by time, those of one time added up in ``diffs``, ``diff_width`` words
    each; the count is -1 where the lists are too short."""
    found = 0
    visited = 0
    for k in range(count):
        at = k * LAYER_WORDS
        if absent(table, at, key, width):
            continue
        rows = table[at + L_ROWS]
        total = table[at + L_COUNT]
        p = seek(rows, total, width, table[at + L_FENCE], cursors[k], key, width, order)
        cursors[k] = p
        first = found
        while p < total and compare(rows + 8 * width * p, key, 0, width, 0) == 0:
            time = advance(load(table[at + L_TIMES] + table[at + L_TIME_STRIDE] * p), since, shape)
            if found == first or times[found - 1] != time:
                if found == len(times):
                    return -1, visited
                times[found] = time
                diffs[found * diff_width : (found + 1) * diff_width] = 0
                found += 1
            diff = table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p
            for d in range(diff_width):
                diffs[(found - 1) * diff_width + d] += load(diff + 8 * d)
            p += 1
            visited += 1
    return _added_up(times, diffs, diff_width, found), visited


@kernel
def _added_up(times: Words, diffs: Words, diff_width: int, count: int) -> int:
    """Sorts by time, adds equal times up and drops zeros, in place; returns the new count."""
    perm = np.argsort(times[:count]) if count > 64 else np.arange(count)
    for i in range(1, count if count <= 64 else 0):
        x = perm[i]
        j = i
        while j > 0 and times[perm[j - 1]] > times[x]:
            perm[j] = perm[j - 1]
            j -= 1
        perm[j] = x
    given_times, given_diffs = times[:count].copy(), diffs[: count * diff_width].copy()
    out = 0
    i = 0
    while i < count:
        time = given_times[perm[i]]
        base = out * diff_width
        diffs[base : base + diff_width] = 0
        while i < count and given_times[perm[i]] == time:
            for d in range(diff_width):
                diffs[base + d] += given_diffs[perm[i] * diff_width + d]
            i += 1
        times[out] = time
        for d in range(diff_width):
            if diffs[base + d] != 0:
                out += 1
                break
    return out


@kernel
def _same(values: Words, width: int, a: int, b: int) -> bool:
    """Whether two results are equal."""
    k = 0
    while k < width and values[a * width + k] == values[b * width + k]:
        k += 1
    return k == width


@kernel
def _append(
    out: Words, key: int, key_width: int, values: Words, width: int, which: int, time: int, diff: int
) -> None:  # fmt: skip
    n = out[B_COUNT]
    to = out[B_ROWS] + 8 * (key_width + width) * n
    copy_words(key, to, key_width)
    for k in range(width):
        store(to + 8 * (key_width + k), values[which * width + k])
    store(out[B_TIMES] + 8 * n, time)
    store(out[B_DIFFS] + 8 * n, diff)
    out[B_COUNT] = n + 1


@kernel
def _results(formula: Words, sums: Words, diff_width: int, count: int, values: Words, place: Words) -> bool:
    """Each sum's result: where it stands among the values, -1 for none. False where the formula fails."""
    sources = np.empty(count, np.int64)
    made = apply_formula(formula, where(sums), diff_width, count, where(values), sources, 0)
    if made < 0:
        return False
    place[:count] = -1
    for n in range(made):
        place[sources[n]] = n
    return True


@kernel
def accumulate_total(
    trace: Words, delta: Words, nothing: Words, out: Words, formula: Words, fresh: bool, stats: Words
) -> bool:  # fmt: skip
    """Outside loops: appends [key | result] where it goes and where it comes, sorted and consolidated.

    ``trace`` holds the delta already; ``fresh``: nothing stood before. ``out`` is empty and has room for two updates
    for each of the delta. False where the formula fails.
    """
    width = trace[T_WIDTH]
    order = trace[T_ORDER]
    diff_width = trace[T_DIFF_WIDTH]
    table, count = layers(trace, nothing, nothing)
    cursors = np.zeros(count, np.int64)
    n_delta = delta[B_COUNT]
    sums = np.zeros(2 * n_delta * diff_width, np.int64)
    entries = 0
    visited = 0
    keys = 0
    i = 0
    while i < n_delta:
        key = delta[B_ROWS] + 8 * width * i
        first, i = i, rows_from(delta, i, key, width, width)
        base = entries * diff_width
        if not fresh:
            for e in range(first, i):
                for d in range(diff_width):
                    sums[base + d] -= load(delta[B_DIFFS] + 8 * (diff_width * e + d))
            for k in range(count):
                at = k * LAYER_WORDS
                if absent(table, at, key, width):
                    continue
                rows = table[at + L_ROWS]
                p = seek(rows, table[at + L_COUNT], width, table[at + L_FENCE], cursors[k], key, width, order)
                cursors[k] = p
                while p < table[at + L_COUNT] and compare(rows + 8 * width * p, key, 0, width, 0) == 0:
                    diff = table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p
                    for d in range(diff_width):
                        sums[base + d] += load(diff + 8 * d)
                    p += 1
                visited += p - cursors[k]
        for e in range(first, i):
            base += diff_width
            for d in range(diff_width):
                sums[base + d] = sums[base - diff_width + d] + load(delta[B_DIFFS] + 8 * (diff_width * e + d))
        entries += 1 + i - first
        keys += 1
    place = np.empty(entries, np.int64)
    values = np.empty(entries * formula[H_WIDTH], np.int64)
    if not _results(formula, sums, diff_width, entries, values, place):
        return False
    stats[S_SEEKS] += count * keys
    stats[S_HISTORY] += visited
    stats[S_SEGMENTS] += entries
    _emit_total(delta, width, out, values, formula[H_WIDTH], place)
    return True


@kernel
def _emit_total(delta: Words, width: int, out: Words, values: Words, out_width: int, place: Words) -> None:
    """The differences between one entry and the next, for each update of the delta."""
    i = 0
    entry = 0
    while i < delta[B_COUNT]:
        key = delta[B_ROWS] + 8 * width * i
        first, i = i, rows_from(delta, i, key, width, width)
        start = out[B_COUNT]
        for e in range(first, i):
            before, after = place[entry], place[entry + 1]
            entry += 1
            if before >= 0 and after >= 0 and _same(values, out_width, before, after):
                continue
            time = load(delta[B_TIMES] + 8 * e)
            if before >= 0:
                _append(out, key, width, values, out_width, before, time, -1)
            if after >= 0:
                _append(out, key, width, values, out_width, after, time, 1)
        entry += 1
        sort_tail(out, start, 0)


@kernel
def _corners(
    sums: Words, head: int, corners: int, diff_width: int, time: int, shape: int, times: Words, diffs: Words, n: int
) -> None:  # fmt: skip
    """The sums at a time and at each of the corners just below it: a corner is a set of coordinates."""
    base = head * corners * diff_width
    sums[base : base + corners * diff_width] = 0
    for k in range(n):
        less = times_less(times[k], time, shape)
        if less >= 0:
            for corner in range(corners):
                if corner & ~less == 0:
                    for d in range(diff_width):
                        sums[base + corner * diff_width + d] += diffs[k * diff_width + d]


@kernel
def _emit(
    out: Words, key: int, key_width: int, time: int, values: Words, out_width: int, place: Words, base: int,
    corners: int,
) -> bool:  # fmt: skip
    """The mixed difference of the results at a time's corners; False when there is no room."""
    if out[B_COUNT] + corners > out[B_ROOM]:
        return False
    for corner in range(corners):
        result = place[base + corner]
        if result < 0:
            continue
        change = 0
        for other in range(corner, corners):
            if place[base + other] >= 0 and _same(values, out_width, result, place[base + other]):
                sign = 1
                bits = other
                while bits != 0:
                    bits &= bits - 1
                    sign = -sign
                change += sign
                place[base + other] = -1
        if change != 0:
            _append(out, key, key_width, values, out_width, result, time, change)
    return True


@kernel
def _owe(owed_out: Words, key: int, width: int, later: Words, count: int) -> None:
    """Appends a key at each of some later times."""
    for k in range(count):
        to = owed_out[B_COUNT]
        copy_words(key, owed_out[B_ROWS] + 8 * width * to, width)
        store(owed_out[B_TIMES] + 8 * to, later[k])
        store(owed_out[B_DIFFS] + 8 * to, 1)
        owed_out[B_COUNT] = to + 1


@kernel
def accumulate_partial(
    trace: Words, delta: Words, owed: Words, output: Words, nothing: Words, out: Words, owed_out: Words, formula: Words,
    vector: int, stats: Words,
) -> int:  # fmt: skip
    """At one loop vector: the differences of [key | result] at the delta's and the owed times, and at their joins with
    history.

    ``trace`` holds the delta already; ``owed``, keys alone, is sorted like it. Appends to ``out`` (empty before, sorted
    in the end), and keys at later times to ``owed_out``; returns both blocks' counts, the second shifted by 32 bits,
    with bit 31 set where ``out`` is in the output already; or, with both as found, -1 when there is no room, FAILED
    where the formula fails. Cost: the histories of the touched groups.
    """
    width = trace[T_WIDTH]
    order = trace[T_ORDER]
    shape = trace[T_SHAPE]
    diff_width = trace[T_DIFF_WIDTH]
    corners = 2 << loops(shape)
    table, count = layers(trace, nothing, nothing)
    cursors = np.zeros(count, np.int64)
    times = np.empty(32, np.int64)
    diffs = np.empty(32 * diff_width, np.int64)
    now = np.empty(32, np.int64)
    later = np.empty(32, np.int64)
    most = delta[B_COUNT] + owed[B_COUNT] + 8
    sums = np.empty(most * corners * diff_width, np.int64)
    head_keys = np.empty(most, np.int64)
    head_times = np.empty(most, np.int64)
    owed_found = owed_out[B_COUNT]
    heads, i, j = 0, 0, 0
    while i < delta[B_COUNT] or j < owed[B_COUNT]:
        key = next_row(delta, i, owed, j, width, width, order)
        first, i = i, rows_from(delta, i, key, width, width)
        first_owed, j = j, rows_from(owed, j, key, width, width)
        if i - first + j - first_owed > len(now):
            now = np.empty(2 * (i - first + j - first_owed), np.int64)
        n_now = put_times(owed, first_owed, j, now, put_times(delta, first, i, now, 0))
        since = least_ordinal(now, n_now, shape) - 1
        n, visited = _history(table, count, cursors, width, order, key, since, shape, diff_width, times, diffs)
        while n < 0:
            times, diffs = longer(times, 0), longer(diffs, 0)
            n, visited = _history(table, count, cursors, width, order, key, since, shape, diff_width, times, diffs)
        stats[S_SEEKS] += count
        stats[S_HISTORY] += visited
        counts = close(now, n_now, later, times, n, shape, vector)
        while counts < 0:
            now = longer(now, n_now)
            later = longer(later, 0)
            counts = close(now, n_now, later, times, n, shape, vector)
        n_now = counts & 0xFFFFFFFF
        n_later = counts >> 32
        if owed_out[B_COUNT] + n_later > owed_out[B_ROOM]:
            owed_out[B_COUNT] = owed_found
            return -1
        while heads + n_now > len(head_keys):
            head_keys, head_times = longer(head_keys, heads), longer(head_times, heads)
            sums = longer(sums, heads * corners * diff_width)
        for e in range(n_now):
            head_keys[heads] = key
            head_times[heads] = now[e]
            _corners(sums, heads, corners, diff_width, now[e], shape, times, diffs, n)
            heads += 1
        _owe(owed_out, key, width, later, n_later)
    place = np.empty(heads * corners, np.int64)
    values = np.empty(heads * corners * formula[H_WIDTH], np.int64)
    if not _results(formula, sums, diff_width, heads * corners, values, place):
        owed_out[B_COUNT] = owed_found
        return FAILED
    stats[S_SEGMENTS] += heads
    start = 0
    for h in range(heads):
        if h != 0 and head_keys[h] != head_keys[h - 1]:
            sort_tail(out, start, 0)
            start = out[B_COUNT]
        if not _emit(out, head_keys[h], width, head_times[h], values, formula[H_WIDTH], place, h * corners, corners):
            out[B_COUNT] = 0
            owed_out[B_COUNT] = owed_found
            return -1
    sort_tail(out, start, 0)
    kept = out[B_COUNT] == 0 or put_small(output, out)
    return int(out[B_COUNT] | int(kept) << 31 | owed_out[B_COUNT] << 32)
