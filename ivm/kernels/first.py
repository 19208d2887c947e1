"""The tactic FIRSTS of ``ivm.kernels.interesting``: each group's first value, for min, max and the like.

F is the first value, in the trace's order, whose count is positive. The output at a time is F's mixed difference over
the time's corners (a Möbius inversion), so the earlier output is not read. Each coordinate doubles the number of
corners, so this is for loops that are not nested deeply.
"""

from __future__ import annotations

from ivm.kernels.cache import inlined, kernel
from ivm.kernels.codes import WIDTH_BITS
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFFS,
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
    copy_words,
    load,
    store,
)
from ivm.kernels.order import compare
from ivm.kernels.seek import absent, seek
from ivm.kernels.sort import compare_updates
from ivm.kernels.times import advance, last_mask, unwrap
from ivm.rows import Words


@kernel
def _start(
    table: Words, count: int, cursors: Words, active: Words, width: int, key: int, key_width: int, order: int
) -> int:  # fmt: skip
    """Lists the layers that have the key, each with the position where its rows begin. Returns their number."""
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

    ``rows`` gets addresses, one for all updates of a value. The count is -1 if the lists are too short.
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
    """The coordinates in which one time is below another, as bits; -1 if it is above in any."""
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
    out: Words, time: int, shape: int, rows: Words, times: Words, diffs: Words, count: int, room: Words,
    key_width: int, words: Words, complement: bool,
) -> None:  # fmt: skip
    """``_difference`` at any depth. A corner is the set, as bits, of the coordinates that are one less than the time's;
    ``room`` has two words for each."""
    corners = len(room) >> 1
    firsts, sums = room[:corners], room[corners:]
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


@inlined
def first_history(
    trace: Words, table: Words, count: int, cursors: Words, key: int, since: int, rows: Words, times: Words,
    diffs: Words,
) -> tuple[int, int]:  # fmt: skip
    """(entries, updates visited): a key's updates in order of values, consolidated; -1 if a list is too short.

    ``rows`` gets the address of a row for each entry, the same one for all entries of a value. ``cursors`` int64[3 *
    count]: where the search of each layer begins, then scratch room.
    """
    width, key_width = trace[T_WIDTH], trace[T_KEY_WIDTH]
    order, shape = trace[T_ORDER], trace[T_SHAPE]
    active = cursors[count:]
    found = _start(table, count, cursors, active, width, key, key_width, order)
    return _group(table, active, found, width, key, key_width, order, since, shape, rows, times, diffs)


@inlined
def emit_firsts(
    out: Words, now: Words, n_now: int, rows: Words, times: Words, diffs: Words, n: int, trace: Words, words: Words,
    complement: int, sums: Words, order: int,
) -> None:  # fmt: skip
    """Appends the mixed differences of a key's first value at each time of ``now``, sorted by ``order``.

    ``rows``, ``times``, ``diffs``: the key's history, n entries; ``sums``: int64[2 * corners] to work in. ``out`` has
    room for an update at each corner of each time.
    """
    shape, key_width = trace[T_SHAPE], trace[T_KEY_WIDTH]
    start = out[B_COUNT]
    for e in range(n_now):
        if shape >> WIDTH_BITS == 0:
            _difference(out, now[e], shape, rows, times, diffs, n, key_width, words, complement != 0)
        else:
            _nested_difference(out, now[e], shape, rows, times, diffs, n, sums, key_width, words, complement != 0)
    sort_tail(out, start, order)
