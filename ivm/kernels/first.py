"""The first value of each touched group, in a loop: min, max and the like without a call of Python.

What is emitted sums up to F(ordinal, round, …), the group's first value with a positive count up to there, so that the
difference at a time is F's mixed difference (Möbius inversion, as in ``ivm.kernels.threshold``): the output's own
history is not read. Each coordinate doubles the corners of that difference: for loops that are not nested deep.
"""

from __future__ import annotations

import numpy as np

from ivm.kernels.arrange import put_small
from ivm.kernels.cache import kernel
from ivm.kernels.codes import WIDTH_BITS
from ivm.kernels.history import close, least_ordinal, longer, next_row, put, put_times, rows_from
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
    L_TIME_STRIDE,
    L_TIMES,
    LAYER_WORDS,
    T_KEY_WIDTH,
    T_ORDER,
    T_SHAPE,
    T_WIDTH,
    Words,
    copy_words,
    load,
    store,
)  # fmt: skip
from ivm.kernels.order import compare
from ivm.kernels.seek import absent, layers, seek
from ivm.kernels.sort import compare_updates
from ivm.kernels.times import advance, last_mask, loops, unwrap


@kernel
def _start(
    table: Words, count: int, cursors: Words, active: Words, width: int, key: int, key_width: int, order: int
) -> int:  # fmt: skip
    """Lists the layers that have the key, each with the position at which its rows begin; their number."""
    found = 0
    for k in range(count):
        at = k * LAYER_WORDS
        if absent(table, at, key, key_width):
            continue
        rows = table[at + L_ROWS]
        p = seek(rows, table[at + L_COUNT], width, table[at + L_FENCE], cursors[k], key, key_width, order)
        cursors[k] = p
        if p < table[at + L_COUNT] and compare(rows + 8 * width * p, key, 0, key_width, 0) == 0:
            active[2 * found] = k
            active[2 * found + 1] = p
            found += 1
    return found


@kernel
def _group(
    table: Words, active: Words, found: int, width: int, key: int, key_width: int, order: int, since: int, shape: int,
    rows: Words, times: Words, diffs: Words,
) -> tuple[int, int]:  # fmt: skip
    """(count, updates visited): a key's updates in ascending order of values, equal ones added up, zeros dropped.

    ``rows`` gets addresses, one for all updates of a value. The count is -1 where the lists are too short.
    """
    count = 0
    visited = 0
    while found > 0:
        best = 0
        for a in range(found):
            at = active[2 * a] * LAYER_WORDS
            row = table[at + L_ROWS] + 8 * width * active[2 * a + 1]
            if best == 0 or compare(row, best, key_width, width, order) < 0:
                best = row
        first = count
        a = 0
        while a < found:
            at = active[2 * a] * LAYER_WORDS
            p = active[2 * a + 1]
            total = table[at + L_COUNT]
            while p < total and compare(table[at + L_ROWS] + 8 * width * p, best, 0, width, 0) == 0:
                time = advance(load(table[at + L_TIMES] + table[at + L_TIME_STRIDE] * p), since, shape)
                diff = load(table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p)
                visited += 1
                p += 1
                e = first
                while e < count and times[e] != time:
                    e += 1
                if e == count:
                    if count == len(times):
                        return -1, visited
                    rows[e] = best
                    times[e] = time
                    diffs[e] = 0
                    count += 1
                diffs[e] += diff
            if p < total and compare(table[at + L_ROWS] + 8 * width * p, key, 0, key_width, 0) == 0:
                active[2 * a + 1] = p
                a += 1
            else:
                found -= 1
                active[2 * a] = active[2 * found]
                active[2 * a + 1] = active[2 * found + 1]
        kept = first
        for e in range(first, count):
            if diffs[e] != 0:
                rows[kept] = rows[e]
                times[kept] = times[e]
                diffs[kept] = diffs[e]
                kept += 1
        count = kept
    return count, visited


@kernel
def _append(
    out: Words, row: int, key_width: int, words: Words, complement: bool, time: int, diff: int
) -> None:  # fmt: skip
    n = out[B_COUNT]
    to = out[B_ROWS] + 8 * out[B_WIDTH] * n
    copy_words(row, to, key_width)
    for k in range(len(words)):
        word = load(row + 8 * (key_width + words[k]))
        store(to + 8 * (key_width + k), ~word if complement else word)
    store(out[B_TIMES] + 8 * n, time)
    store(out[B_DIFFS] + 8 * n, diff)
    out[B_COUNT] = n + 1


@kernel
def _difference(
    out: Words, time: int, bits: int, rows: Words, times: Words, diffs: Words, count: int, key_width: int,
    words: Words, complement: bool,
) -> None:  # fmt: skip
    """Appends the mixed difference of the first value at one time, of one round of so many bits."""
    mask = (1 << bits) - 1
    ordinal = time >> bits
    turn = time & mask
    here, earlier, inner, both = 0, 0, 0, 0
    k = 0
    while k < count and (here == 0 or earlier == 0 or inner == 0 or both == 0):
        row = rows[k]
        a, b, c, d = 0, 0, 0, 0
        while k < count and rows[k] == row:
            then = times[k] >> bits
            round_ = times[k] & mask
            if then <= ordinal and round_ <= turn:
                a += diffs[k]
                if then < ordinal:
                    b += diffs[k]
                if round_ < turn:
                    c += diffs[k]
                    if then < ordinal:
                        d += diffs[k]
            k += 1
        if here == 0 and a > 0:
            here = row
        if earlier == 0 and b > 0:
            earlier = row
        if inner == 0 and c > 0:
            inner = row
        if both == 0 and d > 0:
            both = row
    if (here == earlier and inner == both) or (here == inner and earlier == both):
        return
    if here != 0:
        _append(out, here, key_width, words, complement, time, 1 + int(here == both))
    if both not in (0, here):
        _append(out, both, key_width, words, complement, time, 1)
    if earlier != 0:
        _append(out, earlier, key_width, words, complement, time, -1 - int(earlier == inner))
    if inner not in (0, earlier):
        _append(out, inner, key_width, words, complement, time, -1)


@kernel
def times_less(then: int, time: int, shape: int) -> int:
    """The coordinates in which one time is below another, as bits; -1 where it is above in one."""
    less = 0
    place = 0
    while shape != 0:
        mask = last_mask(shape)
        a, b = then & mask, time & mask
        if a > b:
            return -1
        less |= int(a < b) << place
        place += 1
        then = unwrap(then, shape)
        time = unwrap(time, shape)
        shape >>= WIDTH_BITS
    return -1 if then > time else less | int(then < time) << place


@kernel
def _nested_difference(
    out: Words, time: int, shape: int, rows: Words, times: Words, diffs: Words, count: int, firsts: Words, sums: Words,
    key_width: int, words: Words, complement: bool,
) -> None:  # fmt: skip
    """``_difference`` at any depth. A corner is the set of coordinates that are just below the time's; ``firsts`` and
    ``sums`` have a word for each."""
    corners = len(firsts)
    firsts[:] = 0
    missing = corners
    k = 0
    while k < count and missing > 0:
        row = rows[k]
        sums[:] = 0
        while k < count and rows[k] == row:
            less = times_less(times[k], time, shape)
            if less >= 0:
                for corner in range(corners):
                    if corner & ~less == 0:
                        sums[corner] += diffs[k]
            k += 1
        for corner in range(corners):
            if firsts[corner] == 0 and sums[corner] > 0:
                firsts[corner] = row
                missing -= 1
    for corner in range(corners):
        row = firsts[corner]
        if row == 0:
            continue
        change = 0
        for other in range(corner, corners):
            if firsts[other] == row:
                sign = 1
                bits = other
                while bits != 0:
                    bits &= bits - 1
                    sign = -sign
                change += sign
                firsts[other] = 0
        if change != 0:
            _append(out, row, key_width, words, complement, time, change)


@kernel
def sort_tail(block: Words, start: int, order: int) -> None:
    """Sorts a few updates from ``start`` on by (row, time), in place."""
    width = block[B_WIDTH]
    rows, times, diffs = block[B_ROWS], block[B_TIMES], block[B_DIFFS]
    for i in range(start + 1, block[B_COUNT]):
        j = i
        while j > start and compare_updates(rows, times, width, order, j - 1, j) > 0:
            for k in range(width):
                a = rows + 8 * (width * j + k)
                x = load(a)
                store(a, load(a - 8 * width))
                store(a - 8 * width, x)
            for column in (times, diffs):
                x = load(column + 8 * j)
                store(column + 8 * j, load(column + 8 * (j - 1)))
                store(column + 8 * (j - 1), x)
            j -= 1


@kernel
def first_partial(
    trace: Words, delta: Words, owed: Words, output: Words, nothing: Words, out: Words, owed_out: Words, words: Words,
    complement: bool, vector: int, stats: Words,
) -> int:  # fmt: skip
    """At one loop vector: the differences of [key | the first value's ``words``] at the delta's and the owed times, and
    at their joins with history. ``words`` is a permutation of the values' words, each complemented where so said.

    ``trace`` holds the delta already; ``owed``, keys alone, is sorted like it. Appends to ``out`` (empty
    before, sorted in the end), and keys at later times to ``owed_out``; returns both blocks' counts, the second shifted
    by 32 bits, with bit 31 set where ``out`` is in the output already; or -1, with both as found, when there is no
    room. Cost: the touched groups.
    """
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    order = trace[T_ORDER]
    shape = trace[T_SHAPE]
    corners = 2 << loops(shape)
    firsts = np.empty(corners, np.int64)
    sums = np.empty(corners, np.int64)
    table, count = layers(trace, nothing, nothing)
    cursors = np.zeros(count, np.int64)
    active = np.empty(2 * count + 2, np.int64)
    rows = np.empty(64, np.int64)
    times = np.empty(64, np.int64)
    diffs = np.empty(64, np.int64)
    seen = np.empty(64, np.int64)
    now = np.empty(32, np.int64)
    later = np.empty(32, np.int64)
    owed_found = owed_out[B_COUNT]
    i, j = 0, 0
    while i < delta[B_COUNT] or j < owed[B_COUNT]:
        key = next_row(delta, i, owed, j, width, key_width, order)
        first, i = i, rows_from(delta, i, key, width, key_width)
        first_owed, j = j, rows_from(owed, j, key, key_width, key_width)
        if i - first + j - first_owed > len(now):
            now = np.empty(2 * (i - first + j - first_owed), np.int64)
        n_now = put_times(delta, first, i, now, 0)
        n_now = put_times(owed, first_owed, j, now, n_now)
        since = least_ordinal(now, n_now, shape) - 1
        found = _start(table, count, cursors, active, width, key, key_width, order)
        n, visited = _group(table, active, found, width, key, key_width, order, since, shape, rows, times, diffs)
        while n < 0:
            rows, times, diffs = longer(rows, 0), longer(times, 0), longer(diffs, 0)
            seen = longer(seen, 0)
            found = _start(table, count, cursors, active, width, key, key_width, order)
            n, visited = _group(table, active, found, width, key, key_width, order, since, shape, rows, times, diffs)
        stats[S_SEEKS] += count
        stats[S_HISTORY] += visited
        n_seen = 0
        for k in range(n):
            n_seen = put(seen, n_seen, times[k])
        counts = close(now, n_now, later, seen, n_seen, shape, vector)
        while counts < 0:
            now = longer(now, n_now)
            later = longer(later, 0)
            counts = close(now, n_now, later, seen, n_seen, shape, vector)
        n_now = counts & 0xFFFFFFFF
        n_later = counts >> 32
        if out[B_COUNT] + corners * n_now > out[B_ROOM] or owed_out[B_COUNT] + n_later > owed_out[B_ROOM]:
            out[B_COUNT] = 0
            owed_out[B_COUNT] = owed_found
            return -1
        start = out[B_COUNT]
        for e in range(n_now):
            if shape >> WIDTH_BITS == 0:
                _difference(out, now[e], shape, rows, times, diffs, n, key_width, words, complement)
            else:
                _nested_difference(
                    out, now[e], shape, rows, times, diffs, n, firsts, sums, key_width, words, complement
                )
        stats[S_SEGMENTS] += n_now
        sort_tail(out, start, output[T_ORDER])
        for k in range(n_later):
            to = owed_out[B_COUNT]
            copy_words(key, owed_out[B_ROWS] + 8 * key_width * to, key_width)
            store(owed_out[B_TIMES] + 8 * to, later[k])
            store(owed_out[B_DIFFS] + 8 * to, 1)
            owed_out[B_COUNT] = to + 1
    kept = out[B_COUNT] == 0 or put_small(output, out)
    return int(out[B_COUNT] | int(kept) << 31 | owed_out[B_COUNT] << 32)
