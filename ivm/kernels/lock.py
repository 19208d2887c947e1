"""Locked joins (FOR SYSTEM_TIME AS OF PROCTIME()): each copy of a left row keeps the matches that the right side held
when it arrived.

A *lock* is a number of copies of a left row that arrived at one time. The state, an arrangement [left row | number |
part | right row], holds for each lock a row of part MARKER, counted by its copies, and either its matches (MATCH), each
counted by copies times occurrences, or one row of part ALONE. Locks of equal left rows are numbered in order of
arrival; a retraction removes copies of the least number first.
"""

from __future__ import annotations

import numpy as np

from ivm.kernels.asof import ALWAYS, NEVER, counted, last_before, least_row
from ivm.kernels.cache import kernel
from ivm.kernels.codes import ALONE, MARKER, MATCH
from ivm.kernels.join import S_HISTORY, S_MATCHES, S_SEEKS
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFFS,
    B_ROOM,
    B_ROWS,
    B_TIMES,
    B_WIDTH,
    L_COUNT,
    L_FENCE,
    L_ROWS,
    LAYER_WORDS,
    T_KEY_WIDTH,
    T_ORDER,
    T_WIDTH,
    copy_words,
    load,
    store,
    where,
)
from ivm.kernels.seek import layers, seek
from ivm.kernels.skip import FEW, Skip, moved_to, next_there, skip_of
from ivm.rows import Words


@kernel
def _find(table: Words, count: int, width: int, row: int, words: int, order: int, positions: Words) -> None:
    """Moves positions to the first rows whose first words are not less than the row's."""
    for k in range(count):
        at = k * LAYER_WORDS
        positions[k] = seek(table[at + L_ROWS], table[at + L_COUNT], width, table[at + L_FENCE], 0, row, words, order)


@kernel
def _emit(out: Words, left: int, words: int, number: int, part: int, right: int, time: int, diff: int) -> None:
    """Appends a row of the state; ``right``: the address of its right words."""
    n = out[B_COUNT]
    width = out[B_WIDTH]
    row = out[B_ROWS] + 8 * width * n
    copy_words(left, row, words)
    store(row + 8 * words, number)
    store(row + 8 * (words + 1), part)
    copy_words(right, row + 8 * (words + 2), width - words - 2)
    store(out[B_TIMES] + 8 * n, time)
    store(out[B_DIFFS] + 8 * n, diff)
    out[B_COUNT] = n + 1


@kernel
def _lock(
    row: int, copies: int, key_width: int, words: int, table: Words, count: int, positions: Words, ends: Words,
    probe: Words, skip: Skip, right: Words, right_table: Words, right_count: int, right_positions: Words,
    right_skip: Skip, out: Words, none: int, time: int, stats: Words,
) -> bool:  # fmt: skip
    """Appends a new lock of a left row: marker and matches. False if there is no room."""
    width = out[B_WIDTH]
    mine = row + 8 * key_width
    copy_words(mine, where(probe), words)
    probe[words] = ALWAYS
    _find(table, count, width, where(probe), words + 1, 0, ends)
    newest = last_before(table, count, width, 0, where(probe), words, words + 1, ends, positions, ALWAYS, skip, stats)
    number = 0 if newest == 0 else load(newest + 8 * words) + 1
    if out[B_COUNT] + 2 > out[B_ROOM]:
        return False
    _emit(out, mine, words, number, MARKER, none, time, copies)
    right_width = right[T_WIDTH]
    _find(right_table, right_count, right_width, row, key_width, right[T_ORDER], right_positions)
    stats[S_SEEKS] += count + right_count
    alone = True
    begun = stats[S_HISTORY]
    while True:
        found = least_row(right_table, right_count, right_width, right[T_ORDER], row, key_width, right_positions)
        if found == 0:
            break
        times = counted(right_table, right_count, right_width, found, right_positions, time, stats)
        if times <= 0 and stats[S_HISTORY] - begun > FEW:
            found = next_there(right_skip, found, stats)
            if found == 0:
                break
            moved_to(right_table, right_count, right_width, right[T_ORDER], found, right_positions)
            begun = stats[S_HISTORY]
        if times > 0:
            if out[B_COUNT] >= out[B_ROOM]:
                return False
            begun = stats[S_HISTORY]
            alone = False
            stats[S_MATCHES] += 1
            _emit(out, mine, words, number, MATCH, found + 8 * key_width, time, copies * times)
    if alone:
        _emit(out, mine, words, number, ALONE, none, time, copies)
    return True


@kernel
def _unlock(
    row: int, copies: int, key_width: int, words: int, table: Words, count: int, positions: Words, skip: Skip,
    out: Words, time: int, stats: Words,
) -> bool:  # fmt: skip
    """Retracts the state of the oldest copies of a left row. False if there is no room."""
    width = out[B_WIDTH]
    mine = row + 8 * key_width
    _find(table, count, width, mine, words, 0, positions)
    stats[S_SEEKS] += count
    left = copies
    held = 0
    taken = 0
    begun = stats[S_HISTORY]
    while True:
        found = least_row(table, count, width, 0, mine, words, positions)
        if found == 0:
            return True
        total = counted(table, count, width, found, positions, ALWAYS, stats)
        if total <= 0:
            if stats[S_HISTORY] - begun > FEW:
                found = next_there(skip, found, stats)
                if found == 0:
                    return True
                moved_to(table, count, width, 0, found, positions)
                begun = stats[S_HISTORY]
            continue
        begun = stats[S_HISTORY]
        part = load(found + 8 * (words + 1))
        if part == MARKER:
            held = total
            taken = min(left, held)
            left -= taken
            if taken == 0:
                return True
        if out[B_COUNT] >= out[B_ROOM]:
            return False
        right = found + 8 * (words + 2)
        _emit(out, mine, words, load(found + 8 * words), part, right, time, -(total // held) * taken)


@kernel
def lock(
    delta: Words, start: int, key_width: int, state: Words, minus: Words, right: Words, right_delta: Words,
    nothing: Words, out: Words, none: int, time: int, stats: Words,
) -> int:  # fmt: skip
    """Appends the changes to the state caused by left updates [key | row] of one time, from ``start`` on.

    ``state`` is read minus a block: the earlier changes of this same time. ``right`` is read up to the time; it already
    includes ``right_delta``, which has later updates. ``none``: the address of the right words of markers and of rows
    without a match. Returns the index reached, less than the delta's count if ``out`` is full.
    """
    width = delta[B_WIDTH]
    words = width - key_width
    assert right[T_KEY_WIDTH] == key_width
    table, count = layers(state, minus, nothing)
    right_table, right_count = layers(right, nothing, nothing)
    positions = np.zeros(count, np.int64)
    ends = np.zeros(count, np.int64)
    right_positions = np.zeros(right_count, np.int64)
    probe = np.zeros(words + 1, np.int64)
    skip = skip_of(state, table, count - 1 if minus[B_COUNT] != 0 else count, minus, NEVER)
    right_skip = skip_of(right, right_table, right_count, right_delta, time)
    for i in range(start, delta[B_COUNT]):
        emitted = out[B_COUNT]
        row = delta[B_ROWS] + 8 * width * i
        diff = load(delta[B_DIFFS] + 8 * i)
        if diff > 0:
            whole = _lock(
                row, diff, key_width, words, table, count, positions, ends, probe, skip, right, right_table,
                right_count, right_positions, right_skip, out, none, time, stats,
            )  # fmt: skip
        else:
            whole = _unlock(row, -diff, key_width, words, table, count, positions, skip, out, time, stats)
        if not whole:
            out[B_COUNT] = emitted
            return i
    return int(delta[B_COUNT])
