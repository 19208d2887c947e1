"""Reduce, outside of loops, for reducers that need only rows at some ranks of a group, found by search instead of a
scan.

A *window* is (kind, a, b), WINDOW_WORDS words: ROWS the rows of ranks a … b-1; CONTINUOUS and DISCRETE the rows of the
percentile whose fraction is the double with the bits a; PEERS and GROUPS the rows whose peers (rows with equal first a
words) are preceded by fewer than b rows, or fewer than b groups of peers. A group is *flagged* when the first word of
its values is 0 for the rows that count and something greater for those that do not.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.codes import WINDOW_DIFFS
from ivm.kernels.history import put_times, rows_from, sort_few
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
    L_FILTER,
    L_RANKS,
    L_ROWS,
    L_SIGN,
    LAYER_WORDS,
    T_KEY_WIDTH,
    T_ORDER,
    T_WIDTH,
    copy_words,
    load,
    store,
    where,
)
from ivm.kernels.order import compare
from ivm.kernels.rank import (
    SEARCH_WORDS,
    W_AFTER,
    W_AT,
    W_END,
    W_MIDDLE,
    W_START,
    after,
    place,
    prepare,
    rank_at,
    select,
)  # fmt: skip
from ivm.kernels.reduce import head, live
from ivm.kernels.seek import layers, seek
from ivm.kernels.sort import permutation
from ivm.rows import Words

ROWS: Final = 0
CONTINUOUS: Final = 1
DISCRETE: Final = 2
PEERS: Final = 3
GROUPS: Final = 4
WINDOW_WORDS: Final = 3

_DEAD: Final = 32
_BEFORE: Final = -(2**63)


@kernel
def cut(delta: Words, first: int, stop: int, time: int, width: int, table: Words, slot: int, copy: Words) -> None:
    """Writes the delta's updates first … stop-1 that are later than ``time`` as the negated layer ``slot``."""
    rows = where(copy)
    diffs = rows + 8 * width * (stop - first)
    n = 0
    for i in range(first, stop):
        if load(delta[B_TIMES] + 8 * i) > time:
            copy_words(delta[B_ROWS] + 8 * width * i, rows + 8 * width * n, width)
            store(diffs + 8 * n, load(delta[B_DIFFS] + 8 * i))
            n += 1
    at = slot * LAYER_WORDS
    table[at + L_COUNT] = n
    table[at + L_ROWS] = rows
    table[at + L_DIFFS] = diffs
    table[at + L_DIFF_STRIDE] = 8
    table[at + L_SIGN] = -1
    table[at + L_FENCE] = 0
    table[at + L_FILTER] = 0
    table[at + L_RANKS] = 0


@kernel
def _least(table: Words, count: int, width: int, key: int, key_width: int, order: int, work: Words) -> int:
    """The least of the rows at W_AT with the key, 0 if there is none."""
    best = 0
    for k in range(count):
        p = work[k * SEARCH_WORDS + W_AT]
        if live(table, k, p, width, key, key_width):
            row = table[k * LAYER_WORDS + L_ROWS] + 8 * width * p
            if best == 0 or compare(row, best, key_width, width, order) < 0:
                best = row
    return best


@kernel
def _take(table: Words, count: int, width: int, row: int, work: Words, stats: Words) -> int:
    """Moves W_AT past the row. Returns its count."""
    total = 0
    for k in range(count):
        at = k * LAYER_WORDS
        w = k * SEARCH_WORDS
        p = work[w + W_AT]
        start = p
        while p < table[at + L_COUNT] and compare(table[at + L_ROWS] + 8 * width * p, row, 0, width, 0) == 0:
            total += load(table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p) * table[at + L_SIGN]
            p += 1
        stats[S_HISTORY] += p - start
        work[w + W_AT] = p
    return total


@kernel
def following(
    trace: Words, table: Words, count: int, key: int, work: Words, sums: Words, rank: int, stats: Words,
) -> tuple[int, int]:  # fmt: skip
    """Moves past the key's next present row, the one of rank ``rank``. Returns (the row, its count), or (0, 0).

    Long runs of rows that cancel out are skipped by search; ``sums`` may be empty before ``prepare``.
    """
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    order = trace[T_ORDER]
    dead = 0
    while True:
        row = _least(table, count, width, key, key_width, order, work)
        if row == 0:
            return 0, 0
        n = _take(table, count, width, row, work, stats)
        if n > 0:
            return row, n
        dead += 1
        if dead == _DEAD:
            if len(sums) == 0:
                sums = prepare(table, count, width, key, key_width, order, work)
            _, found, steps = select(table, count, width, order, work, sums, rank)
            stats[S_SEEKS] += count * steps
            if found == 0:
                return 0, 0
            dead = 0


@kernel
def _value(vals: Words, row: int, words: int, count: int, number: int, rank: int, total: int) -> bool:
    """Appends a value with its WINDOW_DIFFS. False if there is no room."""
    n = vals[B_COUNT]
    if n >= vals[B_ROOM]:
        return False
    target = vals[B_ROWS] + 8 * words * n
    if row == 0:
        for k in range(words):
            store(target + 8 * k, 0)
    else:
        copy_words(row, target, words)
    diffs = vals[B_DIFFS] + 8 * WINDOW_DIFFS * n
    store(diffs, count)
    store(diffs + 8, number)
    store(diffs + 16, rank)
    store(diffs + 24, total)
    vals[B_COUNT] = n + 1
    return True


@kernel
def _emit(
    trace: Words, table: Words, count: int, key: int, work: Words, sums: Words, first: int, last: int, number: int,
    total: int, vals: Words, stats: Words,
) -> bool:  # fmt: skip
    """Appends the key's rows of ranks first … last-1. False if there is no room."""
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    rank = 0
    if first == 0:
        _rewind(count, work)
    else:
        rank, found, steps = select(table, count, width, trace[T_ORDER], work, sums, first)
        stats[S_SEEKS] += count * steps
        if found == 0:
            return True
    while rank < last:
        row, n = following(trace, table, count, key, work, sums, rank, stats)
        if row == 0:
            return True
        low = max(rank, first)
        rank += n
        shown = min(rank, last) - low
        if shown > 0 and not _value(vals, row + 8 * key_width, width - key_width, shown, number, low, total):
            return False
    return True


@kernel
def _rewind(count: int, work: Words) -> None:
    """Moves W_AT to the key's first rows."""
    for k in range(count):
        work[k * SEARCH_WORDS + W_AT] = work[k * SEARCH_WORDS + W_START]


@kernel
def _emit_peers(
    trace: Words, table: Words, count: int, key: int, work: Words, sums: Words, by_rows: bool, words: int, limit: int,
    number: int, total: int, vals: Words, stats: Words,
) -> bool:  # fmt: skip
    """Appends the rows of a window by peers. False if there is no room."""
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    _rewind(count, work)
    rank = 0
    groups = 0
    previous = 0
    while True:
        row, n = following(trace, table, count, key, work, sums, rank, stats)
        if row == 0:
            return True
        if previous == 0 or compare(row, previous, key_width, key_width + words, trace[T_ORDER]) != 0:
            if (rank if by_rows else groups) >= limit:
                return True
            groups += 1
        previous = row
        if not _value(vals, row + 8 * key_width, width - key_width, n, number, rank, total):
            return False
        rank += n


@kernel
def _bounds(kind: int, a: int, b: int, fraction: float, total: int) -> tuple[int, int]:
    """The ranks of a window of a group in which ``total`` rows count."""
    if kind == ROWS:
        return a, min(b, total)
    if kind == CONTINUOUS:
        at = fraction * (total - 1)
        return math.floor(at), min(math.ceil(at) + 1, total)
    first = max(math.ceil(fraction * total), 1) - 1
    return first, min(first + 1, total)


@kernel
def _segment(
    trace: Words, table: Words, count: int, key: int, work: Words, windows: Words, fractions: Words, flagged: bool,
    vals: Words, stats: Words,
) -> bool:  # fmt: skip
    """Appends the rows of a key in all windows. False if there is no room."""
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    order = trace[T_ORDER]
    sums = work[:0]
    total = 1 << 62
    if flagged or len(windows) > WINDOW_WORDS or windows[0] != ROWS or windows[1] != 0:
        sums = prepare(table, count, width, key, key_width, order, work)
        total = rank_at(table, count, work, sums, W_END)
        stats[S_SEEKS] += 2 * count
    if flagged:
        group = total
        probe = np.empty(key_width + 1, np.int64)
        for k in range(key_width):
            probe[k] = load(key + 8 * k)
        probe[key_width] = 1
        place(table, count, width, order, work, where(probe), key_width + 1, W_START, W_END)
        total = rank_at(table, count, work, sums, W_MIDDLE)
        if total <= 0:
            return group <= 0 or _value(vals, 0, width - key_width, 0, -1, 0, 0)
    if total <= 0:
        return True
    reals = fractions.view(np.float64)
    for i in range(len(windows) // WINDOW_WORDS):
        w = i * WINDOW_WORDS
        if windows[w] >= PEERS:
            by_rows = windows[w] == PEERS
            words, limit = windows[w + 1], windows[w + 2]
            if not _emit_peers(trace, table, count, key, work, sums, by_rows, words, limit, i, total, vals, stats):
                return False
            continue
        first, last = _bounds(windows[w], windows[w + 1], windows[w + 2], reals[i], total)
        if not _emit(trace, table, count, key, work, sums, first, last, i, total, vals, stats):
            return False
    return True


@kernel
def windows_total(
    trace: Words, delta: Words, nothing: Words, heads: Words, offsets: Words, vals: Words, windows: Words,
    fractions: Words, flagged: bool, fresh: bool, stats: Words,
) -> bool:  # fmt: skip
    """``segments_total`` restricted to the rows in windows. ``vals`` has WINDOW_DIFFS diffs, ``fractions`` the bits of
    each window's fraction.

    Cost for each key and time: a search for each window, and the rows in them; no other row of the group is read.
    """
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    order = trace[T_ORDER]
    table, count = layers(trace, nothing, nothing)
    work = np.zeros((count + 1) * SEARCH_WORDS, np.int64)
    now = np.empty(16, np.int64)
    copy = np.empty(64, np.int64)
    heads[B_COUNT] = 0
    vals[B_COUNT] = 0
    store(offsets[B_ROWS], 0)
    i = 0
    while i < delta[B_COUNT]:
        key = delta[B_ROWS] + 8 * width * i
        begin, i = i, rows_from(delta, i, key, width, key_width)
        if i - begin > len(now):
            now = np.empty(2 * (i - begin), np.int64)
        n_now = put_times(delta, begin, i, now, 0)
        sort_few(now, n_now)
        if len(copy) < (width + 1) * (i - begin):
            copy = np.empty(2 * (width + 1) * (i - begin), np.int64)
        seek_key(table, count, work, width, key, key_width, order)
        stats[S_SEEKS] += count
        if heads[B_COUNT] + n_now + 1 >= heads[B_ROOM]:
            return False
        for e in range(1 if fresh else 0, n_now + 1):
            cut(delta, begin, i, _BEFORE if e == 0 else now[e - 1], width, table, count, copy)
            found = vals[B_COUNT]
            if not _segment(trace, table, count + 1, key, work, windows, fractions, flagged, vals, stats):
                return False
            if vals[B_COUNT] > found and e == 0:
                head(heads, offsets, vals, key, key_width, now[0], -1, -1)
            elif vals[B_COUNT] > found:
                head(heads, offsets, vals, key, key_width, now[e - 1], 1, now[e] if e < n_now else -1)
    stats[S_SEGMENTS] += heads[B_COUNT]
    return True


@kernel
def seek_key(table: Words, count: int, work: Words, width: int, key: int, key_width: int, order: int) -> None:
    """Advances every layer's start to the key; that of the layer ``count``, the cut, is its first row."""
    for k in range(count):
        at = k * LAYER_WORDS
        w = k * SEARCH_WORDS
        rows = table[at + L_ROWS]
        start = work[w + W_START]
        work[w + W_START] = seek(rows, table[at + L_COUNT], width, table[at + L_FENCE], start, key, key_width, order)
    work[count * SEARCH_WORDS + W_START] = 0


# -- changes -------------------------------------------------------------------------------------------------------


@kernel
def _collect(
    trace: Words, table: Words, count: int, key: int, work: Words, sums: Words, first: int, last: int, rows: Words,
    found: int, stats: Words,
) -> int:  # fmt: skip
    """Appends the key's whole rows that have a rank in first … last-1. Returns the new count, -1 if there is no
    room."""
    width = trace[T_WIDTH]
    rank, there, steps = select(table, count, width, trace[T_ORDER], work, sums, max(first, 0))
    stats[S_SEEKS] += count * steps
    while there > 0 and rank < last:
        row, n = following(trace, table, count, key, work, sums, rank, stats)
        if row == 0:
            return found
        if (found + 1) * width > len(rows):
            return -1
        copy_words(row, where(rows) + 8 * width * found, width)
        found += 1
        rank += n
    return found


@kernel
def _clipped(
    table: Words, count: int, width: int, order: int, work: Words, sums: Words, row: int, first: int, last: int,
) -> int:  # fmt: skip
    """How many of the row's copies have ranks first … last-1."""
    place(table, count, width, order, work, row, width, W_START, W_END)
    after(table, count, width, work, row, W_END)
    low = rank_at(table, count, work, sums, W_MIDDLE)
    high = rank_at(table, count, work, sums, W_AFTER)
    return max(min(high, last) - max(low, first), 0)


@kernel
def _changed(
    trace: Words, tables: tuple[Words, Words], works: tuple[Words, Words], count: int, key: int, delta: Words,
    begin: int, stop: int, time: int, first: int, last: int, vals: Words, stats: Words,
) -> tuple[int, int]:  # fmt: skip
    """Finds the rows whose counts in the window the updates at ``time`` change: appends those that were in it, then
    those that are in it now. Returns (the end of the first, the end of the second), or (-1, -1) if there is no room."""
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    order = trace[T_ORDER]
    sums = (
        prepare(tables[0], count, width, key, key_width, order, works[0]),
        prepare(tables[1], count, width, key, key_width, order, works[1]),
    )
    own = 0
    shift = 0
    for i in range(begin, stop):
        if load(delta[B_TIMES] + 8 * i) == time:
            own += 1
            shift += abs(load(delta[B_DIFFS] + 8 * i))
    rows = np.empty((own + 8 * shift + 8) * width, np.int64)
    n = 0
    for i in range(begin, stop):
        if load(delta[B_TIMES] + 8 * i) == time:
            copy_words(delta[B_ROWS] + 8 * width * i, where(rows) + 8 * width * n, width)
            n += 1
    for side in range(2):
        for edge in range(2):
            at = first if edge == 0 else last
            if at > 0:
                n = _collect(
                    trace, tables[side], count, key, works[side], sums[side], at - shift, at + shift, rows, n, stats
                )
                assert n >= 0
    times = np.zeros(n, np.int64)
    perm = permutation(where(rows), where(times), width, order, n)
    kept = 0
    for side in range(2):
        for i in range(n):
            row = where(rows) + 8 * width * perm[i]
            if i > 0 and compare(row, where(rows) + 8 * width * perm[i - 1], 0, width, 0) == 0:
                continue
            before = _clipped(tables[0], count, width, order, works[0], sums[0], row, first, last)
            now = _clipped(tables[1], count, width, order, works[1], sums[1], row, first, last)
            stats[S_SEEKS] += 2 * count
            here = before if side == 0 else now
            changed = before != now and here > 0
            if changed and not _value(vals, row + 8 * key_width, width - key_width, here, 0, first, 0):
                return -1, -1
        if side == 0:
            kept = vals[B_COUNT]
    return kept, vals[B_COUNT]


@kernel
def changes_total(
    trace: Words, delta: Words, nothing: Words, heads: Words, offsets: Words, vals: Words, first: int, last: int,
    stats: Words,
) -> bool:  # fmt: skip
    """Like ``windows_total`` for one window of ranks first … last-1, but only with the rows whose counts in it the
    delta changes: each time has a segment of the old rows (sign -1) and one of the new rows.

    Cost: searches for each update, however many rows the window has.
    """
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    order = trace[T_ORDER]
    before, count = layers(trace, nothing, nothing)
    tables = (before, before.copy())
    works = (np.zeros((count + 1) * SEARCH_WORDS, np.int64), np.zeros((count + 1) * SEARCH_WORDS, np.int64))
    now = np.empty(16, np.int64)
    heads[B_COUNT] = 0
    vals[B_COUNT] = 0
    store(offsets[B_ROWS], 0)
    i = 0
    while i < delta[B_COUNT]:
        key = delta[B_ROWS] + 8 * width * i
        begin, i = i, rows_from(delta, i, key, width, key_width)
        if i - begin > len(now):
            now = np.empty(2 * (i - begin), np.int64)
        n_now = put_times(delta, begin, i, now, 0)
        sort_few(now, n_now)
        copies = (np.empty((width + 1) * (i - begin), np.int64), np.empty((width + 1) * (i - begin), np.int64))
        for side in range(2):
            seek_key(tables[side], count, works[side], width, key, key_width, order)
        stats[S_SEEKS] += 2 * count
        if heads[B_COUNT] + 2 * n_now + 1 >= heads[B_ROOM]:
            return False
        for e in range(n_now):
            cut(delta, begin, i, _BEFORE if e == 0 else now[e - 1], width, tables[0], count, copies[0])
            cut(delta, begin, i, now[e], width, tables[1], count, copies[1])
            found = vals[B_COUNT]
            went, came = _changed(
                trace, tables, works, count + 1, key, delta, begin, i, now[e], first, last, vals, stats
            )
            if went < 0:
                return False
            if went > found:
                vals[B_COUNT] = went
                head(heads, offsets, vals, key, key_width, now[e], -1, -1)
                vals[B_COUNT] = came
            if came > went:
                head(heads, offsets, vals, key, key_width, now[e], 1, -1)
    stats[S_SEGMENTS] += heads[B_COUNT]
    return True
