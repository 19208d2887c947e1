"""Skipping retracted rows that are not merged away yet: after a few of them the next present row is found by rank
(``ivm.kernels.rank``), however many lie between.

A *skip* is the trace's layers plus a negated layer with those updates of the pass's delta that have one key and are
later than one time. It is made for a key and a time on first use, and kept until others are requested. Rows are present
by the sum of their diffs, so a key's rows must not have negative counts if more than FEW rows are skipped.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.join import S_HISTORY, S_SEEKS
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFFS,
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
    W_AT,
    W_END,
    W_MIDDLE,
    W_START,
    add_up,
    ends,
    place,
    rank_at,
    select,
)  # fmt: skip
from ivm.kernels.seek import bisect, seek
from ivm.rows import Words

FEW: Final = 32
"""Rows that are skipped one by one before a search begins."""

# A skip's source: how many layers, words of a row and of a key, the order; what it is made for: the address of a row
# with the key (0: nothing yet) and the time; and the time that is requested.
K_COUNT: Final = 0
K_WIDTH: Final = 1
K_KEY_WIDTH: Final = 2
K_ORDER: Final = 3
K_KEY: Final = 4
K_TIME: Final = 5
K_AIM: Final = 6

Skip = tuple[Words, Words, Words, Words, Words, Words]
"""Layers, the search's words, running sums, the delta, a copy of part of it, the skip's source and what it is made
for."""


@kernel
def skip_of(trace: Words, table: Words, count: int, delta: Words, time: int) -> Skip:
    """A skip over the trace's ``count`` layers, which already include the delta's updates, as of a time."""
    held = np.empty((count + 1) * LAYER_WORDS, np.int64)
    room = delta[B_COUNT] + 1
    for k in range(count):
        at = k * LAYER_WORDS
        for j in range(LAYER_WORDS):
            held[at + j] = table[at + j]
        if held[at + L_DIFF_STRIDE] != 0 and held[at + L_RANKS] == 0:
            room += held[at + L_COUNT] + 1
    work = np.zeros((count + 1) * SEARCH_WORDS, np.int64)
    copy = np.empty((trace[T_WIDTH] + 1) * delta[B_COUNT], np.int64)
    made = np.zeros(7, np.int64)
    made[K_COUNT] = count
    made[K_WIDTH] = trace[T_WIDTH]
    made[K_KEY_WIDTH] = trace[T_KEY_WIDTH]
    made[K_ORDER] = trace[T_ORDER]
    made[K_AIM] = time
    return held, work, np.empty(room, np.int64), delta, copy, made


@kernel
def aim(skip: Skip, time: int) -> None:
    """Requests the rows as of a time from now on."""
    skip[5][K_AIM] = time


@kernel
def _cut(skip: Skip, key: int) -> None:
    """Writes the delta's updates of the key later than the time as the last layer, negated."""
    table, _, _, delta, copy, made = skip
    width = made[K_WIDTH]
    key_width = made[K_KEY_WIDTH]
    rows = where(copy)
    diffs = rows + 8 * width * delta[B_COUNT]
    n = 0
    first = bisect(delta[B_ROWS], width, 0, delta[B_COUNT], key, key_width, made[K_ORDER])
    for i in range(first, delta[B_COUNT]):
        row = delta[B_ROWS] + 8 * width * i
        if compare(row, key, 0, key_width, 0) != 0:
            break
        if load(delta[B_TIMES] + 8 * i) > made[K_AIM]:
            copy_words(row, rows + 8 * width * n, width)
            store(diffs + 8 * n, load(delta[B_DIFFS] + 8 * i))
            n += 1
    at = made[K_COUNT] * LAYER_WORDS
    table[at + L_COUNT] = n
    table[at + L_ROWS] = rows
    table[at + L_DIFFS] = diffs
    table[at + L_DIFF_STRIDE] = 8
    table[at + L_SIGN] = -1
    table[at + L_FENCE] = 0
    table[at + L_FILTER] = 0
    table[at + L_RANKS] = 0


@kernel
def _make(skip: Skip, key: int, stats: Words) -> None:
    """Prepares the skip for a key and the time, unless it is prepared already. Cost: a search in each layer, and the
    key's rows in the small one and in the delta."""
    table, work, sums, _, _, made = skip
    width = made[K_WIDTH]
    key_width = made[K_KEY_WIDTH]
    order = made[K_ORDER]
    count = made[K_COUNT] + 1
    if made[K_KEY] != 0 and made[K_TIME] == made[K_AIM] and compare(made[K_KEY], key, 0, key_width, 0) == 0:
        return
    _cut(skip, key)
    for k in range(count):
        at = k * LAYER_WORDS
        work[k * SEARCH_WORDS + W_START] = seek(
            table[at + L_ROWS], table[at + L_COUNT], width, table[at + L_FENCE], 0, key, key_width, order
        )
    stats[S_HISTORY] += ends(table, count, width, key, key_width, order, work)
    stats[S_SEEKS] += count
    add_up(table, count, work, sums)
    made[K_KEY] = key
    made[K_TIME] = made[K_AIM]


@kernel
def _rank(skip: Skip, row: int, words: int) -> int:
    """How many rows of the key lie before those with the row's first words."""
    table, work, sums, _, _, made = skip
    count = made[K_COUNT] + 1
    place(table, count, made[K_WIDTH], made[K_ORDER], work, row, words, W_START, W_END)
    return rank_at(table, count, work, sums, W_MIDDLE)


@kernel
def _at_rank(skip: Skip, rank: int, stats: Words) -> int:
    """The address, in the trace, of the row that a rank falls on; 0: none."""
    table, work, sums, _, _, made = skip
    width = made[K_WIDTH]
    order = made[K_ORDER]
    count = made[K_COUNT] + 1
    _, there, steps = select(table, count, width, order, work, sums, rank)
    stats[S_SEEKS] += count * steps
    if there <= 0:
        return 0
    best = 0
    for k in range(count - 1):
        w = k * SEARCH_WORDS
        if work[w + W_AT] < work[w + W_END]:
            row = table[k * LAYER_WORDS + L_ROWS] + 8 * width * work[w + W_AT]
            if best == 0 or compare(row, best, 0, width, order) < 0:
                best = row
    return best


@kernel
def next_there(skip: Skip, row: int, stats: Words) -> int:
    """The first row from this one on, of its key, that is present at the time; 0: none.

    Cost: logarithmic in the key's rows; once for a key and time, those of the small layer and the delta.
    """
    _make(skip, row, stats)
    return _at_rank(skip, _rank(skip, row, skip[5][K_WIDTH]), stats)


@kernel
def last_there(skip: Skip, row: int, prefix: int, stats: Words) -> int:
    """The first row, present at the time, of the last point before the row's own that has one, in its key; 0: none.

    Rows are at one point if their first ``prefix`` words are equal. Cost: as ``next_there``.
    """
    _make(skip, row, stats)
    rank = _rank(skip, row, prefix)
    if rank <= 0:
        return 0
    last = _at_rank(skip, rank - 1, stats)
    if last == 0:
        return 0
    return _at_rank(skip, _rank(skip, last, prefix), stats)


@kernel
def moved_to(table: Words, count: int, width: int, order: int, row: int, positions: Words) -> None:
    """Advances positions to the first rows that are not less than the row."""
    for k in range(count):
        at = k * LAYER_WORDS
        positions[k] = seek(
            table[at + L_ROWS], table[at + L_COUNT], width, table[at + L_FENCE], positions[k], row, width, order
        )
