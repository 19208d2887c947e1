"""Threshold: a row's count c becomes 1 if c > 0 (DISTINCT), or max(c, 0) (POSITIVE).

``threshold_total`` is the whole operator outside loops; the rest is the tactic THRESHOLDS of
``ivm.kernels.interesting``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.cache import inlined, kernel
from ivm.kernels.history import consolidate_history, gather_history
from ivm.kernels.join import S_HISTORY, S_SEEKS
from ivm.kernels.memory import B_COUNT, B_DIFFS, B_ROWS, B_TIMES, T_ORDER, T_SHAPE, T_WIDTH, copy_words, load, store
from ivm.kernels.order import compare
from ivm.kernels.seek import layers
from ivm.kernels.times import below
from ivm.rows import Words

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


@inlined
def threshold_history(
    trace: Words, table: Words, count: int, cursors: Words, row: int, since: int, times: Words, diffs: Words
) -> tuple[int, int]:  # fmt: skip
    """(entries, updates visited): a row's history in order of time, consolidated; -1 if there is no room."""
    width = trace[T_WIDTH]
    order, shape = trace[T_ORDER], trace[T_SHAPE]
    visited = gather_history(table, count, cursors, width, width, order, row, since, shape, times, diffs)
    if visited > len(times):
        return -1, visited
    return consolidate_history(times, diffs, visited), visited


@kernel
def correct_row(
    out: Words, row: int, now: Words, n_now: int, times: Words, diffs: Words, n: int, keep: int, width: int, shape: int,
    earlier_times: Words, earlier: Words, found: int,
) -> None:  # fmt: skip
    """Appends f(input) minus what was emitted before, for one row at each time of ``now``, ascending.

    ``times``, ``diffs``: the row's history, n entries. ``earlier_times``, ``earlier``: the ``found`` updates emitted
    before, with room for as many more as ``now`` has; they are appended to.
    """
    for e in range(n_now):
        time = now[e]
        total = 0
        for k in range(n):
            if below(times[k], time, shape):
                total += diffs[k]
        change = _kept(total, keep)
        for k in range(found):
            if below(earlier_times[k], time, shape):
                change -= earlier[k]
        if change != 0:
            _append(out, row, width, time, change)
            earlier_times[found] = time
            earlier[found] = change
            found += 1


@inlined
def emit_row(
    out: Words, row: int, now: Words, n_now: int, times: Words, diffs: Words, n: int, keep: int, width: int, bits: int
) -> None:  # fmt: skip
    """Appends one row's mixed difference at each time of ``now``, of one loop of ``bits`` bits; the output is not read.

    ``times``, ``diffs``: the row's history, n entries in the order of time. With F(o, r) = f(input up to there) the
    difference is F(o, r) - F(before o, r) - F(o, before r) + F(before o, before r): a Möbius inversion.
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
