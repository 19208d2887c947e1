"""Threshold: a row's count c becomes 1 if c > 0 (distinct), or max(c, 0) (positive)."""

from __future__ import annotations

from typing import Final

from ivm.kernels.cache import kernel
from ivm.kernels.memory import (
    B_COUNT, B_DIFFS, B_ROOM, B_ROWS, B_TIMES, T_DEPTH, T_ORDER, T_WIDTH, copy_words, load, store,
)  # fmt: skip
from ivm.kernels.history import close, consolidate_history, gather_history, grow, put
from ivm.kernels.join import S_HISTORY, S_SEEKS
from ivm.kernels.order import compare
from ivm.kernels.seek import layers
from ivm.kernels.times import ROUND_BITS, below
import numpy as np

DISTINCT: Final = 0
POSITIVE: Final = 1


@kernel
def _kept(count, keep):  # type: ignore[no-untyped-def]
    if count <= 0:
        return 0
    return 1 if keep == DISTINCT else count


@kernel
def _append(block, row, width, time, diff):  # type: ignore[no-untyped-def]
    n = block[B_COUNT]
    copy_words(row, block[B_ROWS] + 8 * width * n, width)
    store(block[B_TIMES] + 8 * n, time)
    store(block[B_DIFFS] + 8 * n, diff)
    block[B_COUNT] = n + 1


@kernel
def threshold_total(trace, delta, nothing, out, keep, stats):  # type: ignore[no-untyped-def]
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
        times, diffs, n = gather_history(
            table, count, cursors, width, width, trace[T_ORDER], row, 0, 0, times, diffs
        )
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
    return out[B_COUNT]


@kernel
def threshold_partial(  # type: ignore[no-untyped-def]
    trace, delta, owed, output, nothing, out, owed_out, keep, vector, stats
):
    """Inside loops, at one loop vector: corrections at the delta's and the owed times, and at their joins with history.

    ``trace`` holds the delta already, ``output`` what was emitted before; ``owed`` is sorted like the delta. Appends
    corrections to ``out`` and later times to ``owed_out``; returns False, with both as found, when there is no room.
    """
    width = trace[T_WIDTH]
    depth = trace[T_DEPTH]
    order = trace[T_ORDER]
    shift = depth * ROUND_BITS[depth]
    table, count = layers(trace, nothing, nothing)
    out_table, out_count = layers(output, nothing, nothing)
    cursors = np.zeros(count, np.int64)
    out_cursors = np.zeros(out_count, np.int64)
    times = np.empty(64, np.int64)
    diffs = np.empty(64, np.int64)
    out_times = np.empty(64, np.int64)
    out_diffs = np.empty(64, np.int64)
    now = np.empty(16, np.int64)
    later = np.empty(16, np.int64)
    found = out[B_COUNT]
    owed_found = owed_out[B_COUNT]
    i = 0
    j = 0
    while i < delta[B_COUNT] or j < owed[B_COUNT]:
        row = delta[B_ROWS] + 8 * width * i
        other = owed[B_ROWS] + 8 * width * j
        if i >= delta[B_COUNT] or (j < owed[B_COUNT] and compare(other, row, 0, width, order) < 0):
            row = other
        n_now = 0
        first = i
        first_owed = j
        while i < delta[B_COUNT] and compare(row, delta[B_ROWS] + 8 * width * i, 0, width, 0) == 0:
            now, n_now = put(now, n_now, load(delta[B_TIMES] + 8 * i))
            i += 1
        while j < owed[B_COUNT] and compare(row, owed[B_ROWS] + 8 * width * j, 0, width, 0) == 0:
            now, n_now = put(now, n_now, load(owed[B_TIMES] + 8 * j))
            j += 1
        since = now[0] >> shift
        for k in range(1, n_now):
            since = min(since, now[k] >> shift)
        times, diffs, n = gather_history(table, count, cursors, width, width, order, row, since, depth, times, diffs)
        stats[S_SEEKS] += count
        stats[S_HISTORY] += n
        # A row that only this delta knows has emitted nothing, or what it emitted has cancelled out.
        new = n == 1 and j == first_owed and i == first + 1 and times[0] == now[0]
        new = new and diffs[0] == load(delta[B_DIFFS] + 8 * first)
        n = consolidate_history(times, diffs, n)
        n_out = 0
        if not new:
            out_times, out_diffs, n_out = gather_history(
                out_table, out_count, out_cursors, width, width, order, row, since, depth, out_times, out_diffs
            )
            stats[S_SEEKS] += out_count
            stats[S_HISTORY] += n_out
        now, n_now, later, n_later = close(now, n_now, later, 0, times, n, depth, vector)
        if out[B_COUNT] + n_now > out[B_ROOM] or owed_out[B_COUNT] + n_later > owed_out[B_ROOM]:
            out[B_COUNT] = found
            owed_out[B_COUNT] = owed_found
            return False
        for e in range(n_now):
            time = now[e]
            total = 0
            for k in range(n):
                if below(times[k], time, depth):
                    total += diffs[k]
            change = _kept(total, keep)
            for k in range(n_out):
                if below(out_times[k], time, depth):
                    change -= out_diffs[k]
            if change != 0:
                _append(out, row, width, time, change)
                out_times = grow(out_times, n_out)
                out_diffs = grow(out_diffs, n_out)
                out_times[n_out] = time
                out_diffs[n_out] = change
                n_out += 1
        for k in range(n_later):
            _append(owed_out, row, width, later[k], 1)
    return True
