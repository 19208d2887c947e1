"""As-of joins: for each left row the right row of its key that comes last before it, in the arrangements' order.

Both arrangements begin with the same ``prefix`` words in the same order: the key, then the words of the row's *point*.
A left row's match is at the greatest point not after its own (``strict``: before it) among the right rows present; of
several rows at that point it is the first.

Outside loops only, where times are totally ordered. The contents before a time are the trace up to the previous time
or, for the first time of the pass, the trace without this pass's updates. The output changes where left rows change,
which find their match by a seek (``asof_left``), and where the match of existing left rows changes (``asof_right``): a
right row that is added or retracted affects the left rows up to the next point with a right row. Long runs of retracted
rows, on either side, are skipped by rank (``ivm.kernels.skip``).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.blocks import gather_row
from ivm.kernels.cache import kernel
from ivm.kernels.join import S_HISTORY, S_MATCHES, S_SEEKS
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
    L_SIGN,
    L_TIME_STRIDE,
    L_TIMES,
    LAYER_WORDS,
    T_KEY_WIDTH,
    T_ORDER,
    T_WIDTH,
    load,
    store,
)
from ivm.kernels.order import compare
from ivm.kernels.seek import absent, layers, seek
from ivm.kernels.skip import FEW, Skip, aim, last_there, moved_to, next_there, skip_of
from ivm.rows import Words

ALWAYS: Final = (1 << 63) - 1
"""After every time."""
NEVER: Final = -(1 << 63)
"""Before every time."""


@kernel
def _row(table: Words, k: int, width: int, position: int) -> int:
    return int(table[k * LAYER_WORDS + L_ROWS] + 8 * width * position)


@kernel
def _sought(
    table: Words, count: int, width: int, order: int, row: int, key_width: int, prefix: int, starts: Words
) -> None:
    """Advances ``starts`` to the first rows whose prefix is not less than the row's; in layers without a row of its key
    they stay."""
    for k in range(count):
        at = k * LAYER_WORDS
        if not absent(table, at, row, key_width):
            starts[k] = seek(
                table[at + L_ROWS], table[at + L_COUNT], width, table[at + L_FENCE], starts[k], row, prefix, order
            )


@kernel
def _skip(rows: int, count: int, width: int, start: int, row: int, prefix: int) -> int:
    """The first position from ``start`` on without the row's prefix; the rows that have it come first."""
    low = start
    step = 1
    while low + step <= count and compare(rows + 8 * width * (low + step - 1), row, 0, prefix, 0) == 0:
        low += step
        step *= 2
    high = min(low + step, count)
    while low < high:
        middle = (low + high) >> 1
        if compare(rows + 8 * width * middle, row, 0, prefix, 0) == 0:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _skipped(table: Words, count: int, width: int, row: int, prefix: int, positions: Words) -> None:
    """Moves positions past rows with the row's prefix."""
    for k in range(count):
        at = k * LAYER_WORDS
        positions[k] = _skip(table[at + L_ROWS], table[at + L_COUNT], width, positions[k], row, prefix)


@kernel
def _skip_back(rows: int, width: int, stop: int, row: int, prefix: int) -> int:
    """The first of the positions before ``stop``, without a gap, that have the row's prefix; ``stop`` if none has."""
    high = stop
    step = 1
    while high - step >= 0 and compare(rows + 8 * width * (high - step), row, 0, prefix, 0) == 0:
        high -= step
        step *= 2
    low = max(high - step + 1, 0)
    while low < high:
        middle = (low + high) >> 1
        if compare(rows + 8 * width * middle, row, 0, prefix, 0) == 0:
            high = middle
        else:
            low = middle + 1
    return high


@kernel
def least_row(table: Words, count: int, width: int, order: int, row: int, shared: int, positions: Words) -> int:
    """The address of the least row at the positions that shares the row's first words; 0 when there is none."""
    best = 0
    for k in range(count):
        if positions[k] < table[k * LAYER_WORDS + L_COUNT]:
            other = _row(table, k, width, positions[k])
            if compare(other, row, 0, shared, 0) == 0 and (best == 0 or compare(other, best, shared, width, order) < 0):
                best = other
    return best


@kernel
def counted(table: Words, count: int, width: int, row: int, positions: Words, time: int, stats: Words) -> int:
    """The row's count up to a time; positions move past it."""
    total = 0
    for k in range(count):
        at = k * LAYER_WORDS
        p = positions[k]
        while p < table[at + L_COUNT] and compare(_row(table, k, width, p), row, 0, width, 0) == 0:
            if load(table[at + L_TIMES] + table[at + L_TIME_STRIDE] * p) <= time:
                total += load(table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * p) * table[at + L_SIGN]
            p += 1
            stats[S_HISTORY] += 1
        positions[k] = p
    return total


@kernel
def _live(
    table: Words, count: int, width: int, order: int, row: int, prefix: int, starts: Words, positions: Words, time: int,
    skip: Skip, stats: Words,
) -> int:  # fmt: skip
    """The first row of the row's point that is present at a time, from ``starts`` on; 0 if none is."""
    for k in range(count):
        positions[k] = starts[k]
    begun = stats[S_HISTORY]
    while True:
        best = least_row(table, count, width, order, row, prefix, positions)
        if best == 0 or counted(table, count, width, best, positions, time, stats) > 0:
            return best
        if stats[S_HISTORY] - begun > FEW:
            best = next_there(skip, best, stats)
            return best if best != 0 and compare(best, row, 0, prefix, 0) == 0 else 0


@kernel
def last_before(
    table: Words, count: int, width: int, order: int, row: int, key_width: int, prefix: int, ends: Words,
    positions: Words, time: int, skip: Skip, stats: Words,
) -> int:  # fmt: skip
    """The match of a row, where ``ends`` bounds the rows of its key before it: the first row present at the time of the
    last point that has one; 0 if there is none. Changes ``ends``."""
    begun = stats[S_HISTORY]
    while True:
        best = 0
        for k in range(count):
            if ends[k] > 0:
                other = _row(table, k, width, ends[k] - 1)
                later = best == 0 or compare(other, best, key_width, prefix, order) > 0
                if later and compare(other, row, 0, key_width, 0) == 0:
                    best = other
        if best == 0:
            return 0
        for k in range(count):
            ends[k] = _skip_back(table[k * LAYER_WORDS + L_ROWS], width, ends[k], best, prefix)
        found = _live(table, count, width, order, best, prefix, ends, positions, time, skip, stats)
        if found != 0:
            return found
        if stats[S_HISTORY] - begun > FEW:
            return last_there(skip, best, prefix, stats)


@kernel
def _emit(left: int, right: int, none: int, out: Words, program: Words, time: int, diff: int) -> None:
    """Appends a left row with its match. 0: no match; then ``none`` is used, if such left rows are kept."""
    if right == 0:
        if none == 0:
            return
        right = none
    n = out[B_COUNT]
    if gather_row(left, right, program, out[B_ROWS] + 8 * out[B_WIDTH] * n):
        store(out[B_TIMES] + 8 * n, time)
        store(out[B_DIFFS] + 8 * n, diff)
        out[B_COUNT] = n + 1


@kernel
def asof_left(
    delta: Words, start: int, right: Words, right_delta: Words, nothing: Words, out: Words, program: Words, none: int,
    prefix: int, strict: bool, stats: Words,
) -> int:  # fmt: skip
    """Appends the delta's left rows, from ``start`` on, with their matches at their own times.

    ``right`` already includes this pass's updates, ``right_delta``. ``none``: the address of a right row for rows
    without a match, 0 if they are dropped. Returns the index reached, less than the delta's count if ``out`` is full.
    """
    width = delta[B_WIDTH]
    other_width = right[T_WIDTH]
    key_width = right[T_KEY_WIDTH]
    order = right[T_ORDER]
    table, count = layers(right, nothing, nothing)
    starts = np.zeros(count, np.int64)
    ends = np.zeros(count, np.int64)
    positions = np.zeros(count, np.int64)
    skip = skip_of(right, table, count, right_delta, 0)
    previous = 0
    previous_time = 0
    match = 0
    for i in range(start, delta[B_COUNT]):
        if out[B_COUNT] >= out[B_ROOM]:
            return i
        row = delta[B_ROWS] + 8 * width * i
        time = load(delta[B_TIMES] + 8 * i)
        if previous == 0 or time != previous_time or compare(row, previous, 0, prefix, 0) != 0:
            _sought(table, count, other_width, order, row, key_width, prefix, starts)
            stats[S_SEEKS] += count
            match = 0
            aim(skip, time)
            if not strict:
                match = _live(table, count, other_width, order, row, prefix, starts, positions, time, skip, stats)
            if match == 0:
                for k in range(count):
                    ends[k] = starts[k]
                match = last_before(
                    table, count, other_width, order, row, key_width, prefix, ends, positions, time, skip, stats
                )
        previous = row
        previous_time = time
        stats[S_MATCHES] += 1
        _emit(row, match, none, out, program, time, load(delta[B_DIFFS] + 8 * i))
    return int(delta[B_COUNT])


@kernel
def times_of(delta: Words, other: Words) -> Words:
    """The distinct times of two blocks, ascending."""
    n = delta[B_COUNT]
    times = np.empty(n + other[B_COUNT], np.int64)
    for i in range(n):
        times[i] = load(delta[B_TIMES] + 8 * i)
    for i in range(other[B_COUNT]):
        times[n + i] = load(other[B_TIMES] + 8 * i)
    times.sort()
    found = 0
    for i in range(len(times)):
        if found == 0 or times[found - 1] != times[i]:
            times[found] = times[i]
            found += 1
    return times[:found].copy()


@kernel
def in_time_order(delta: Words) -> Words:
    """The indexes of a block's updates, sorted by time (stable)."""
    times = np.empty(delta[B_COUNT], np.int64)
    for i in range(len(times)):
        times[i] = load(delta[B_TIMES] + 8 * i)
    return np.argsort(times, kind="mergesort")


@kernel
def _bound(
    table: Words, count: int, width: int, order: int, row: int, following: int, key_width: int, prefix: int,
    positions: Words, scratch: Words, time: int, skip: Skip, stats: Words,
) -> int:  # fmt: skip
    """The next point of the key that has a row at the time, or ``following`` (0: none) if that comes first; 0: none.

    ``positions`` start at the row's own point, and are moved.
    """
    _skipped(table, count, width, row, prefix, positions)
    begun = stats[S_HISTORY]
    while True:
        best = least_row(table, count, width, order, row, key_width, positions)
        if best != 0 and stats[S_HISTORY] - begun > FEW:
            best = next_there(skip, best, stats)
        if best == 0 or (following != 0 and compare(best, following, key_width, prefix, order) >= 0):
            return following
        if stats[S_HISTORY] - begun > FEW:
            return best
        if _live(table, count, width, order, best, prefix, positions, scratch, time, skip, stats) != 0:
            return best
        _skipped(table, count, width, best, prefix, positions)


@kernel
def _matches(
    table: Words, count: int, after_count: int, then_count: int, width: int, order: int, row: int, key_width: int,
    prefix: int, starts: Words, ends: Words, positions: Words, here: int, was: int, chained: bool, old: int, new: int,
    time: int, then: int, skips: tuple[Skip, Skip], stats: Words,
) -> tuple[int, int]:  # fmt: skip
    """The matches of left rows from a point on, before and now. ``chained``: up to the point the match was ``old``, and
    is ``new``. ``skips``: over the earlier contents, and over the present ones."""
    if was != 0:
        old = was
    elif not chained:
        for k in range(count):
            ends[k] = starts[k]
        old = last_before(
            table, then_count, width, order, row, key_width, prefix, ends, positions, then, skips[0], stats
        )
    if here != 0:
        new = here
    elif not chained:
        for k in range(count):
            ends[k] = starts[k]
        new = last_before(
            table, after_count, width, order, row, key_width, prefix, ends, positions, time, skips[1], stats
        )
    return old, new


@kernel
def _following(delta: Words, sequence: Words, start: int, key_width: int, prefix: int) -> tuple[int, int]:
    """(where the updates of one point and time end in the sequence, the row of the key's next point at that time or
    0)."""
    width = delta[B_WIDTH]
    row = delta[B_ROWS] + 8 * width * sequence[start]
    time = load(delta[B_TIMES] + 8 * sequence[start])
    j = start + 1
    while j < len(sequence) and load(delta[B_TIMES] + 8 * sequence[j]) == time:
        other = delta[B_ROWS] + 8 * width * sequence[j]
        if compare(other, row, 0, prefix, 0) != 0:
            return j, other if compare(other, row, 0, key_width, 0) == 0 else 0
        j += 1
    return j, 0


@kernel
def _left_before(
    table: Words, count: int, width: int, row: int, bound: int, prefix: int, strict: bool, left: Words, positions: Words
) -> int:
    """The next left row of the key if it is before the bound (``strict``: or at it; bound 0: unbounded); else 0."""
    order = left[T_ORDER]
    key_width = left[T_KEY_WIDTH]
    mine = least_row(table, count, width, order, row, key_width, positions)
    if mine != 0 and bound != 0:
        c = compare(mine, bound, key_width, prefix, order)
        if c > 0 or (c == 0 and not strict):
            return 0
    return mine


@kernel
def _correct(
    table: Words, count: int, width: int, row: int, bound: int, prefix: int, strict: bool, left: Words,
    positions: Words, old: int, new: int, none: int, out: Words, program: Words, time: int, then: int, skip: Skip,
    stats: Words,
) -> bool:  # fmt: skip
    """Moves the earlier left rows, up to the bound, from one match to another. False: no room."""
    begun = stats[S_HISTORY]
    while True:
        mine = _left_before(table, count, width, row, bound, prefix, strict, left, positions)
        if mine == 0:
            return True
        diff = counted(table, count, width, mine, positions, then, stats)
        if diff == 0:
            if stats[S_HISTORY] - begun > FEW:
                following = next_there(skip, mine, stats)
                if following == 0:
                    return True
                moved_to(table, count, width, left[T_ORDER], following, positions)
                begun = stats[S_HISTORY]
            continue
        begun = stats[S_HISTORY]
        if out[B_COUNT] + 2 > out[B_ROOM]:
            return False
        _emit(mine, old, none, out, program, time, -diff)
        _emit(mine, new, none, out, program, time, diff)
        stats[S_MATCHES] += 1


@kernel
def _aimed(skips: tuple[Skip, Skip], left: Skip, then: int, time: int) -> None:
    """Aims the skips at the earlier contents (on the left, too), and at the present ones."""
    aim(skips[0], then)
    aim(left, then)
    aim(skips[1], time)


@kernel
def asof_right(
    delta: Words, sequence: Words, start: int, times: Words, fresh: bool, left: Words, left_delta: Words, right: Words,
    nothing: Words, out: Words, program: Words, none: int, prefix: int, strict: bool, stats: Words,
) -> int:  # fmt: skip
    """Appends corrections for left rows present before each time of the delta, whose match it changes.

    ``sequence``: the indexes of the delta's updates in order of time, processed from ``start`` on; ``times``: those of
    both deltas; ``fresh``: there were no contents before the first of them. Both traces already include this pass's
    updates. Returns the index reached in the sequence, less than its length if ``out`` is full.
    """
    width = right[T_WIDTH]
    left_width = left[T_WIDTH]
    key_width = right[T_KEY_WIDTH]
    order = right[T_ORDER]
    table, count = layers(right, delta, nothing)
    left_table, left_count = layers(left, left_delta, nothing)
    after_count = count - 1 if delta[B_COUNT] != 0 else count
    left_after_count = left_count - 1 if left_delta[B_COUNT] != 0 else left_count
    starts = np.zeros(count, np.int64)
    ends = np.zeros(count, np.int64)
    positions = np.zeros(count, np.int64)
    left_positions = np.zeros(left_count, np.int64)
    skips = (skip_of(right, table, after_count, delta, NEVER), skip_of(right, table, after_count, delta, NEVER))
    left_skip = skip_of(left, left_table, left_after_count, left_delta, NEVER)
    chained = False
    old = new = e = 0
    j = start
    while j < len(sequence):
        row = delta[B_ROWS] + 8 * width * sequence[j]
        time = load(delta[B_TIMES] + 8 * sequence[j])
        first = j
        emitted = out[B_COUNT]
        j, following = _following(delta, sequence, j, key_width, prefix)
        while times[e] < time:
            e += 1
            chained = False
            starts[:] = 0
            left_positions[:] = 0
        if fresh and e == 0:
            continue
        then = ALWAYS if e == 0 else times[e - 1]
        then_count, then_left = (count, left_count) if e == 0 else (after_count, left_after_count)
        _aimed(skips, left_skip, NEVER if e == 0 else then, time)
        _sought(table, count, width, order, row, key_width, prefix, starts)
        stats[S_SEEKS] += count
        here = _live(table, after_count, width, order, row, prefix, starts, positions, time, skips[1], stats)
        was = _live(table, then_count, width, order, row, prefix, starts, positions, then, skips[0], stats)
        known = following != 0 or chained
        if known:
            old, new = _matches(
                table, count, after_count, then_count, width, order, row, key_width, prefix, starts, ends, positions,
                here, was, chained, old, new, time, then, skips, stats,
            )  # fmt: skip
        ends[:] = starts
        bound = _bound(
            table, after_count, width, order, row, following, key_width, prefix, ends, positions, time, skips[1], stats
        )
        chained = following != 0 and bound == following
        if here != 0 and was != 0 and compare(here, was, prefix, width, 0) == 0:
            continue
        _sought(left_table, then_left, left_width, order, row, key_width, prefix, left_positions)
        stats[S_SEEKS] += then_left
        if strict:
            _skipped(left_table, then_left, left_width, row, prefix, left_positions)
        if _left_before(left_table, then_left, left_width, row, bound, prefix, strict, left, left_positions) == 0:
            continue
        if not known:
            old, new = _matches(
                table, count, after_count, then_count, width, order, row, key_width, prefix, starts, ends, positions,
                here, was, False, 0, 0, time, then, skips, stats,
            )  # fmt: skip
        if old == new or (old != 0 and new != 0 and compare(old, new, 0, width, 0) == 0):
            continue
        if not _correct(
            left_table, then_left, left_width, row, bound, prefix, strict, left, left_positions, old, new, none, out,
            program, time, then, left_skip, stats,
        ):  # fmt: skip
            out[B_COUNT] = emitted
            return first
    return len(sequence)
