"""One key's rows in order, at one time, outside of loops: found by rank, read by rank, and where they stand in layers.

A side is (table, count, work, sums): the layers minus the updates of later times, and the state of a search by rank
(``ivm.kernels.rank``). Rows that cancel out are skipped.
"""

from __future__ import annotations

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.join import S_HISTORY, S_SEEKS
from ivm.kernels.memory import (
    B_ROWS,
    L_DIFF_STRIDE,
    L_DIFFS,
    L_ROWS,
    L_SIGN,
    LAYER_WORDS,
    T_KEY_WIDTH,
    T_ORDER,
    T_WIDTH,
    copy_words,
    load,
    where,
)
from ivm.kernels.order import compare
from ivm.kernels.rank import SEARCH_WORDS, W_AT, W_END, W_MIDDLE, W_START, prepare, rank_at, select
from ivm.kernels.seek import bisect, layers
from ivm.kernels.windows import cut, following, seek_key
from ivm.rows import Words


@kernel
def side_of(
    trace: Words, nothing: Words, delta: Words, first: int, stop: int, time: int, copy: Words
) -> tuple[Words, int, Words, Words]:
    """The side of the key of the delta's updates first … stop-1, without those that are later than ``time``.

    ``copy`` has room for these updates and must live as long as the side. Cost: a search in each layer, and the key's
    rows in layers without sums.
    """
    width = trace[T_WIDTH]
    key_width = trace[T_KEY_WIDTH]
    key = delta[B_ROWS] + 8 * width * first
    table, count = layers(trace, nothing, nothing)
    work = np.zeros((count + 1) * SEARCH_WORDS, np.int64)
    seek_key(table, count, work, width, key, key_width, trace[T_ORDER])
    cut(delta, first, stop, time, width, table, count, copy)
    sums = prepare(table, count + 1, width, key, key_width, trace[T_ORDER], work)
    return table, count + 1, work, sums


@kernel
def total_of(table: Words, count: int, work: Words, sums: Words) -> int:
    """How many rows the side has."""
    return rank_at(table, count, work, sums, W_END)


@kernel
def ranks_of(
    trace: Words, table: Words, count: int, work: Words, sums: Words, probes: Words, width: int, words: int,
    behind: bool, out: Words, stats: Words,
) -> None:  # fmt: skip
    """For each probe (``width`` words, flat): how many rows are less in their first ``words`` words, or not greater
    (``behind``)."""
    row_width = trace[T_WIDTH]
    order = trace[T_ORDER]
    for i in range(len(out)):
        probe = where(probes) + 8 * width * i
        for k in range(count):
            w = k * SEARCH_WORDS
            rows = table[k * LAYER_WORDS + L_ROWS]
            low = work[w + W_START]
            high = work[w + W_END]
            if not behind:
                low = bisect(rows, row_width, low, high, probe, words, order)
            while behind and low < high:
                middle = (low + high) >> 1
                if compare(rows + 8 * row_width * middle, probe, 0, words, order) <= 0:
                    low = middle + 1
                else:
                    high = middle
            work[w + W_MIDDLE] = low
        out[i] = rank_at(table, count, work, sums, W_MIDDLE)
    stats[S_SEEKS] += count * len(out)


@kernel
def rows_of(
    trace: Words, table: Words, count: int, work: Words, sums: Words, key: int, first: int, last: int, rows: Words,
    counts: Words, stats: Words,
) -> tuple[int, int]:  # fmt: skip
    """Reads the whole rows that have a rank in first … last-1, with their counts. Returns (how many, the rank of the
    first one)."""
    width = trace[T_WIDTH]
    rank, there, steps = select(table, count, width, trace[T_ORDER], work, sums, first)
    stats[S_SEEKS] += count * steps
    begin = rank
    found = 0
    while there > 0 and rank < last:
        row, n = following(trace, table, count, key, work, sums, rank, stats)
        if row == 0:
            break
        copy_words(row, where(rows) + 8 * width * found, width)
        counts[found] = n
        found += 1
        rank += n
    return found, begin


@kernel
def spots_of(
    trace: Words, table: Words, count: int, work: Words, sums: Words, ranks: Words, out: Words, stats: Words
) -> None:
    """For each rank: the rank of the row that it falls on, that row's count (0: past the last row), and the position of
    the first row of each layer that is not less. ``out``: int64[n, 2 + count], flat."""
    for i in range(len(ranks)):
        at = i * (2 + count)
        rank, there, steps = select(table, count, trace[T_WIDTH], trace[T_ORDER], work, sums, ranks[i])
        stats[S_SEEKS] += count * steps
        out[at] = rank if there > 0 else ranks[i]
        out[at + 1] = there
        for k in range(count):
            w = k * SEARCH_WORDS
            out[at + 2 + k] = work[w + W_AT] if there > 0 else work[w + W_END]


@kernel
def layer_rows(
    trace: Words, table: Words, k: int, first: int, last: int, rows: Words, diffs: Words, stats: Words
) -> None:
    """Copies a layer's rows first … last-1, and their diffs with the layer's sign."""
    width = trace[T_WIDTH]
    at = k * LAYER_WORDS
    for p in range(first, last):
        copy_words(table[at + L_ROWS] + 8 * width * p, where(rows) + 8 * width * (p - first), width)
        diffs[p - first] = load(table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p) * table[at + L_SIGN]
    stats[S_HISTORY] += last - first


@kernel
def starts_of(table: Words, count: int, work: Words, out: Words) -> None:
    """Where the key's rows begin in each layer."""
    for k in range(count):
        out[k] = work[k * SEARCH_WORDS + W_START]
