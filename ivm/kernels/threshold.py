"""Threshold: a row's count c becomes 1 if c > 0 (distinct), or max(c, 0) (positive)."""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.arrange import put_small
from ivm.kernels.cache import kernel
from ivm.kernels.codes import WIDTH_BITS
from ivm.kernels.history import (
    close,
    consolidate_history,
    gather_history,
    least_ordinal,
    longer,
    next_row,
    put_times,
    rows_from,
)
from ivm.kernels.join import S_HISTORY, S_SEEKS
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFFS,
    B_ROOM,
    B_ROWS,
    B_TIMES,
    T_ORDER,
    T_SHAPE,
    T_WIDTH,
    Words,
    copy_words,
    load,
    store,
)  # fmt: skip
from ivm.kernels.order import compare
from ivm.kernels.seek import AHEAD, aim, hints, layers
from ivm.kernels.times import below

DISTINCT: Final = 0
POSITIVE: Final = 1


@kernel
def _kept(count: int, keep: int) -> int:
    if count <= 0:
        return 0
    return 1 if keep == DISTINCT else count


@kernel
def _append(block: Words, row: int, width: int, time: int, diff: int) -> None:
    n = block[B_COUNT]
    copy_words(row, block[B_ROWS] + 8 * width * n, width)
    store(block[B_TIMES] + 8 * n, time)
    store(block[B_DIFFS] + 8 * n, diff)
    block[B_COUNT] = n + 1


@kernel
def threshold_total(trace: Words, delta: Words, nothing: Words, out: Words, keep: int, stats: Words) -> int:
    """Outside loops: ``trace`` holds the delta already, and no history is later than the delta's times.

    Appends to ``out``, which has room for as many updates as the delta; returns its count.
    """
    width = trace[T_WIDTH]
    table, count = layers(trace, nothing, nothing)
    cursors = np.zeros(count, np.int64)
    times = np.empty(64, np.int64)
    diffs = np.empty(64, np.int64)
    i = 0
    while i < delta[B_COUNT]:
        row = delta[B_ROWS] + 8 * width * i
        n = gather_history(table, count, cursors, width, width, trace[T_ORDER], row, 0, 0, times, diffs)
        if n > len(times):
            times = np.empty(2 * n, np.int64)
            diffs = np.empty(2 * n, np.int64)
            gather_history(table, count, cursors, width, width, trace[T_ORDER], row, 0, 0, times, diffs)
        stats[S_SEEKS] += count
        stats[S_HISTORY] += n
        total = 0
        for k in range(n):
            total += diffs[k]
        stop = i
        while stop < delta[B_COUNT] and compare(row, delta[B_ROWS] + 8 * width * stop, 0, width, 0) == 0:
            total -= load(delta[B_DIFFS] + 8 * stop)
            stop += 1
        for k in range(i, stop):
            before = _kept(total, keep)
            total += load(delta[B_DIFFS] + 8 * k)
            after = _kept(total, keep)
            if after != before:
                _append(out, row, width, load(delta[B_TIMES] + 8 * k), after - before)
        i = stop
    return int(out[B_COUNT])


@kernel
def _correct(
    row: int, now: Words, n_now: int, times: Words, diffs: Words, n: int, out_times: Words, out_diffs: Words,
    n_out: int, out: Words, keep: int, width: int, shape: int,
) -> None:  # fmt: skip
    """Emits f(input) - output for one row at each time of ``now``; the output's history has room and grows."""
    for e in range(n_now):
        time = now[e]
        total = 0
        for k in range(n):
            if below(times[k], time, shape):
                total += diffs[k]
        change = _kept(total, keep)
        for k in range(n_out):
            if below(out_times[k], time, shape):
                change -= out_diffs[k]
        if change != 0:
            _append(out, row, width, time, change)
            out_times[n_out] = time
            out_diffs[n_out] = change
            n_out += 1


@kernel
def _inverse(
    row: int, now: Words, n_now: int, times: Words, diffs: Words, n: int, out: Words, keep: int, width: int,
    bits: int,
) -> None:  # fmt: skip
    """Emits one row's differences at each time of ``now``, of one round of so many bits, from its input's
    history alone.

    What is emitted sums up to F(ordinal, round) = f(input up to there) at every time, so the difference at a time is
    F's mixed difference there (Möbius inversion): F(o, r) - F(before o, r) - F(o, before r) + F(before o, before r).
    """
    mask = (1 << bits) - 1
    for e in range(n_now):
        ordinal = now[e] >> bits
        turn = now[e] & mask
        here = 0
        earlier = 0
        inner = 0
        both = 0
        for k in range(n):
            then = times[k] >> bits
            if then > ordinal:
                break
            if (times[k] & mask) > turn:
                continue
            here += diffs[k]
            if then < ordinal:
                earlier += diffs[k]
            if (times[k] & mask) < turn:
                inner += diffs[k]
                if then < ordinal:
                    both += diffs[k]
        change = _kept(here, keep) - _kept(earlier, keep) - _kept(inner, keep) + _kept(both, keep)
        if change != 0:
            _append(out, row, width, now[e], change)


@kernel
def _diff(block: Words, i: int) -> int:
    return load(block[B_DIFFS] + 8 * i)


@kernel
def threshold_partial(
    trace: Words, delta: Words, owed: Words, output: Words, nothing: Words, out: Words, owed_out: Words, keep: int,
    vector: int, again: bool, stats: Words,
) -> int:  # fmt: skip
    """Inside loops, at one loop vector: corrections at the delta's and the owed times, and at their joins with history.

    ``trace`` holds the delta already, ``output`` what was emitted before; ``owed`` is sorted like the delta. Appends
    corrections to ``out`` (empty before) and later times to ``owed_out``; returns both blocks' counts, the second
    shifted by 32 bits, with bit 31 set where ``out`` is in the output already; or -1, with both as found, when there
    is no room. The output is read only in nested loops, and where ``again`` says that something may have been emitted
    at these very times before.
    """
    width = trace[T_WIDTH]
    shape = trace[T_SHAPE]
    order = trace[T_ORDER]
    inverting = shape >> WIDTH_BITS == 0 and not again
    table, count = layers(trace, nothing, nothing)
    out_table, out_count = layers(output, nothing, nothing)
    cursors = np.zeros(count, np.int64)
    out_cursors = np.zeros(out_count, np.int64)
    times = np.empty(64, np.int64)
    diffs = np.empty(64, np.int64)
    out_times = np.empty(128, np.int64)
    out_diffs = np.empty(128, np.int64)
    now = np.empty(32, np.int64)
    later = np.empty(32, np.int64)
    found, owed_found = out[B_COUNT], owed_out[B_COUNT]
    ahead = hints(table, count, delta[B_COUNT], order)
    window, i, j = -AHEAD, 0, 0
    while i < delta[B_COUNT] or j < owed[B_COUNT]:
        row = next_row(delta, i, owed, j, width, width, order)
        if len(ahead) != 0 and row == delta[B_ROWS] + 8 * width * i:
            window = aim(table, count, width, delta, i, width, ahead, window, cursors)
        first, i = i, rows_from(delta, i, row, width, width)
        first_owed, j = j, rows_from(owed, j, row, width, width)
        if i - first + j - first_owed > len(now):
            now = np.empty(2 * (i - first + j - first_owed), np.int64)
        n_now = put_times(owed, first_owed, j, now, put_times(delta, first, i, now, 0))
        since = least_ordinal(now, n_now, shape) - (1 if inverting else 0)
        n = gather_history(table, count, cursors, width, width, order, row, since, shape, times, diffs)
        if n > len(times):
            times = np.empty(2 * n, np.int64)
            diffs = np.empty(2 * n, np.int64)
            gather_history(table, count, cursors, width, width, order, row, since, shape, times, diffs)
        stats[S_SEEKS] += count
        stats[S_HISTORY] += n
        # A row that only this delta knows has emitted nothing, or what it emitted has cancelled out.
        new = n == 1 and j == first_owed and i == first + 1 and times[0] == now[0] and diffs[0] == _diff(delta, first)
        n = consolidate_history(times, diffs, n)
        counts = close(now, n_now, later, times, n, shape, vector)
        while counts < 0:
            now = longer(now, n_now)
            later = longer(later, 0)
            counts = close(now, n_now, later, times, n, shape, vector)
        n_now = counts & 0xFFFFFFFF
        n_out = 0
        if not new and not inverting:
            n_out = gather_history(
                out_table, out_count, out_cursors, width, width, order, row, since, shape, out_times, out_diffs
            )
            stats[S_SEEKS] += out_count
            stats[S_HISTORY] += n_out
        if n_out + n_now > len(out_times):
            out_times = np.empty(2 * (n_out + n_now), np.int64)
            out_diffs = np.empty(2 * (n_out + n_now), np.int64)
            gather_history(
                out_table, out_count, out_cursors, width, width, order, row, since, shape, out_times, out_diffs
            )
        if out[B_COUNT] + n_now > out[B_ROOM] or owed_out[B_COUNT] + (counts >> 32) > owed_out[B_ROOM]:
            out[B_COUNT] = found
            owed_out[B_COUNT] = owed_found
            return -1
        if inverting:
            _inverse(row, now, n_now, times, diffs, n, out, keep, width, shape)
        else:
            _correct(row, now, n_now, times, diffs, n, out_times, out_diffs, n_out, out, keep, width, shape)
        for k in range(counts >> 32):
            _append(owed_out, row, width, later[k], 1)
    kept = out[B_COUNT] == 0 or put_small(output, out)
    return int(out[B_COUNT] | int(kept) << 31 | owed_out[B_COUNT] << 32)
