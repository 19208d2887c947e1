"""Sums of each touched group, turned into results by a formula: count, sum and the like.

Groups have no values, only diffs of one or more words. A formula (``ivm.kernels.formula``) gets a group's sums as a
row, and keeps the row if the group has a result. ``accumulate_total`` is the whole operator outside loops; the rest is
the tactic SUMS of ``ivm.kernels.interesting``, which emits mixed differences and does not read the output.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.cache import inlined, kernel
from ivm.kernels.codes import H_WIDTH
from ivm.kernels.first import sort_tail, times_less
from ivm.kernels.formula import apply_formula
from ivm.kernels.history import rows_from
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
    copy_words,
    load,
    store,
    where,
)
from ivm.kernels.order import compare
from ivm.kernels.seek import absent, layers, seek
from ivm.kernels.times import advance, loops
from ivm.rows import Words

FULL: Final = -1
FAILED: Final = -2


@inlined
def sums_history(
    trace: Words, table: Words, count: int, cursors: Words, key: int, since: int, times: Words, diffs: Words
) -> tuple[int, int]:  # fmt: skip
    """(entries, updates visited): a key's history in order of time, consolidated; -1 if a list is too short.

    ``diffs`` int64[n * diff words] for ``times`` int64[n].
    """
    width, diff_width = trace[T_WIDTH], trace[T_DIFF_WIDTH]
    order, shape = trace[T_ORDER], trace[T_SHAPE]
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
    """Sorts by time, adds up equal times and drops zeros, in place. Returns the new count."""
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
    """Computes each sum's result: ``place`` gets its index among the values, -1 for none. False if the formula
    fails."""
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
    """Outside loops: appends [key | result] with diff -1 for each old result and 1 for each new one, sorted and
    consolidated.

    ``trace`` already includes the delta; ``fresh``: it was empty before. ``out`` is empty and has room for two updates
    per update of the delta. False if the formula fails.
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
    """Appends the differences between successive entries, for each update of the delta."""
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


@inlined
def sum_corners(
    key: int, now: Words, n_now: int, times: Words, diffs: Words, n: int, trace: Words, n_heads: int, heads: Words,
    sums: Words,
) -> None:  # fmt: skip
    """Adds a head (the key's address and a time) with its sums for each time of ``now``, after ``n_heads`` existing
    ones.

    ``times``, ``diffs``: the key's history, n entries. ``heads`` int64[2 * n]; ``sums`` int64[n * corners * diff
    words]: a corner is the set, as bits, of the coordinates that are one less than the time's.
    """
    diff_width, shape = trace[T_DIFF_WIDTH], trace[T_SHAPE]
    corners = 2 << loops(shape)
    for e in range(n_now):
        heads[2 * (n_heads + e)] = key
        heads[2 * (n_heads + e) + 1] = now[e]
        base = (n_heads + e) * corners * diff_width
        sums[base : base + corners * diff_width] = 0
        for k in range(n):
            less = times_less(times[k], now[e], shape)
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
    """Appends the mixed difference of the results at a time's corners. False if there is no room."""
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
def emit_results(out: Words, heads: Words, n_heads: int, sums: Words, trace: Words, formula: Words) -> int:
    """Appends the mixed differences of all heads' results, sorted. Returns 0, or FULL or FAILED with only some
    appended."""
    width, diff_width = trace[T_WIDTH], trace[T_DIFF_WIDTH]
    corners = 2 << loops(trace[T_SHAPE])
    place = np.empty(n_heads * corners, np.int64)
    values = np.empty(n_heads * corners * formula[H_WIDTH], np.int64)
    if not _results(formula, sums, diff_width, n_heads * corners, values, place):
        return FAILED
    start = 0
    for h in range(n_heads):
        key, time = heads[2 * h], heads[2 * h + 1]
        if h != 0 and key != heads[2 * h - 2]:
            sort_tail(out, start, 0)
            start = out[B_COUNT]
        if not _emit(out, key, width, time, values, formula[H_WIDTH], place, h * corners, corners):
            return FULL
    sort_tail(out, start, 0)
    return 0
