"""The driver of every reduction inside loops: at which times a key's output may change, and what happens there.

``reduce_partial`` runs one pass of an operator, at one loop vector. It finds each touched key's *interesting times*,
and hands the key, its history and those times to a *tactic*: THRESHOLDS (``ivm.kernels.threshold``), FIRSTS
(``ivm.kernels.first``), SUMS (``ivm.kernels.accumulate``) or SEGMENTS (``ivm.kernels.reduce``). Tactics compute; only
the driver reasons about times, room and rollback. The idea is McSherry et al., Differential dataflow, CIDR 2013,
section 3.3; the division of work is that of ``reduce_with_tactic`` in differential-dataflow.

What the parameters ``option`` and ``given`` of ``reduce_partial`` are, by tactic:

- THRESHOLDS: ``option`` is DISTINCT or POSITIVE; a row is its own key.
- FIRSTS: ``given`` has the value's words to emit, a permutation of all; ``option`` 1 complements each.
- SUMS: ``given`` is a formula of the sums; a row is its own key.
- SEGMENTS: ``out`` gets heads [key], of two diff words, ``offsets`` and ``vals`` the segments (see
  ``ivm.kernels.reduce``); ``option`` is the limit; ``given`` is the descriptor of another trace of what was
  emitted, that of the reducer's errors. Nothing is emitted.

Definitions. A time is a vector (ordinal, round, …), see ``ivm.kernels.times``; <= is the product order, v the join. A
key's history is its updates (value, time, diff); acc(t) adds up those at times <= t. For a reduction F the output O is
defined by: the sum of O(s) over s <= t is F(acc(t)), for all t. O(t) is then the *mixed difference* of F(acc) over the
corners of t: each coordinate either t's or one less, with the sign of how many are less. A step takes updates at some
ordinals, and runs passes at loop vectors in lexicographic order. A pass at w brings its *delta*: the updates of the
step with loop vector w. The trace holds the delta already.

1. **Where output can be.** Let u be the join of the history's times <= t. If u is not t, some coordinate of u is less
   than t's. Lowering that coordinate of a corner by one leaves acc as it is and turns the sign, so corners cancel in
   pairs and O(t) = 0. If no update of the step is <= t, then O(t) is as it was. So O can have changed only at joins of
   the history's times that include a time of the step's updates, or where it was not 0 before.
2. **Closing under join.** Times of one pass share a loop vector, so they are totally ordered by their ordinals and a
   join of several is one of them. Joining each of them with the history's times, and the results again, hence gives
   all joins that 1 asks for (``_close``).
3. **Owing.** The join of a time at w with another has loop vector w, and is interesting now, or a vector after w, and
   is *owed*: the key is kept at that time for the pass at that vector. There it is one of the times to close under
   join. All updates <= t have loop vectors that are, coordinate by coordinate, <= that of t, so they come in passes
   before t's, or in t's own: what is emitted at t is final for this step, and each time is evaluated once.
4. **No join is missed.** Let o be an ordinal of the step, and let a *slot* be a value and a loop vector, with the sum
   of its diffs before o, or its diff at o. A slot changes in one pass only, that of its vector. Take t at ordinal o
   with O(t) not 0 in the end: t is the join of slots that are not 0 in the end (1). Of those that the step touches
   let z be the one that comes last. In z's pass its time is in the delta and all of the others are in the history, for
   good: closing gives t, or a time owed from which later passes reach t by the same slots.
5. **Since.** Times in the history are raised to the ordinal before the least of the pass's times for the key, and equal
   ones added up. At the ordinals from that least one on, and at the corners one below, no accumulation changes; so one
   entry stands for all older epochs. It must be the ordinal *before* the least: 4 needs what the step retracts apart
   from what it retracts it from, and a mixed difference needs what came before apart from what is new. For a tactic
   that compares with what was emitted, the least ordinal itself would do for the sums, but not for 4: with four loops,
   three old updates that a step retracts one after the other would leave the join of all three uncorrected. Compaction
   of the traces raises times in the same way, to an ordinal that is less than all new ones.
6. **Fed again.** Where a step feeds an ordinal that an earlier step has fed (``again``), updates may vanish from the
   history, in the trace itself, and O at that very ordinal may be something before and 0 in the end. Then the times of
   what was emitted belong to the history that the new times are joined with: if O(t) has changed, an update d of
   the step is <= t, and if O(t) was not 0, t itself was emitted, and d v t = t. (If O(t) was 0 and is not, use 4,
   with the slots that vanish below t beside the others.) Mixed differences would be wrong there, since O(t) is not 0 at
   first: tactics then subtract what was emitted (THRESHOLDS, SEGMENTS) or are not used (FIRSTS, SUMS). Of a row that
   only one update of the pass knows, all else has been retracted, by passes to which this applied: what was emitted
   for it has cancelled out, or is owed by them, and need not be read.
7. **Rolling back.** A pass appends behind the counts of ``out``, ``offsets``, ``vals`` and ``owed_out`` and writes
   nothing else; the output's trace gets ``out`` at the very end, at once or not at all. Words behind a count mean
   nothing. So setting the counts back undoes a pass at any point, and the pass can run again with more room.

F may see negative sums at times that are not final yet, and is total: it never fails because of them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.accumulate import FAILED, FULL, emit_results, sum_corners, sums_history
from ivm.kernels.arrange import put_small
from ivm.kernels.cache import inlined, kernel
from ivm.kernels.codes import WIDTH_BITS
from ivm.kernels.first import emit_firsts, first_history
from ivm.kernels.history import gather_history, put, put_times, rows_from, sort_few
from ivm.kernels.join import S_HISTORY, S_SEEKS, S_SEGMENTS
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFFS,
    B_ROOM,
    B_ROWS,
    B_TIMES,
    T_DIFF_WIDTH,
    T_KEY_WIDTH,
    T_ORDER,
    T_SHAPE,
    T_WIDTH,
    borrowed,
    copy_words,
    load,
    part,
    store,
)
from ivm.kernels.order import compare
from ivm.kernels.reduce import emit_segments, segments_history
from ivm.kernels.seek import AHEAD, aim, hints, layers
from ivm.kernels.threshold import correct_row, emit_row, threshold_history
from ivm.kernels.times import all_bits, loops, lub, rounds
from ivm.rows import Words

__all__ = ["FAILED", "FIRSTS", "FULL", "SEGMENTS", "SUMS", "THRESHOLDS", "reduce_partial"]

THRESHOLDS: Final = 0
FIRSTS: Final = 1
SUMS: Final = 2
SEGMENTS: Final = 3

_LIST: Final = 32
"""Entries that a key's lists have room for at first."""


@inlined
def _next_key(delta: Words, i: int, owed: Words, j: int, width: int, key_width: int, order: int) -> int:
    """The address of the lesser of two keys: that of the delta's row i, of ``width`` words, and row j of ``owed``."""
    row: int = delta[B_ROWS] + 8 * width * i
    other: int = owed[B_ROWS] + 8 * key_width * j
    if i >= delta[B_COUNT] or (j < owed[B_COUNT] and compare(other, row, 0, key_width, order) < 0):
        return other
    return row


@inlined
def _least_ordinal(now: Words, count: int, shape: int) -> int:
    shift = all_bits(shape)
    least = now[0] >> shift
    for k in range(1, count):
        least = min(least, now[k] >> shift)
    return int(least)


@inlined
def _close(
    now: Words, now_count: int, later: Words, history: Words, history_count: int, shape: int, vector: int
) -> int:  # fmt: skip
    """Closes the times ``now``, all at the loop vector, under join with a history's times; sorts them.

    Joins at later vectors go to ``later``. Returns both counts, the second shifted by 32 bits; -1 when a list is full,
    and ``now`` is good to begin with again.
    """
    later_count = 0
    i = 0
    while i < now_count:
        for j in range(history_count):
            if now_count == len(now) or later_count == len(later):
                return -1
            time = lub(now[i], history[j], shape)
            if rounds(time, shape) == vector:
                now_count = put(now, now_count, time)
            else:
                later_count = put(later, later_count, time)
        i += 1
    sort_few(now, now_count)
    return now_count | later_count << 32


@kernel
def _lists(
    room: Words, count: int, diff_width: int
) -> tuple[Words, Words, Words, Words, Words, Words, Words, Words]:  # fmt: skip
    """Eight lists in one array: now, later, seen, rows and times of ``count`` words, diffs of ``diff_width`` times
    that, and the times and diffs of what was emitted, of twice that: ``correct_row`` appends to them."""
    return (
        part(room, 0, count),
        part(room, count, count),
        part(room, 2 * count, count),
        part(room, 3 * count, count),
        part(room, 4 * count, count),
        part(room, 5 * count, 2 * count),
        part(room, 7 * count, 2 * count),
        part(room, 9 * count, count * diff_width),
    )


@inlined
def _history(
    tactic: int, trace: Words, table: Words, count: int, cursors: Words, key: int, since: int, rows: Words,
    times: Words, diffs: Words,
) -> tuple[int, int]:  # fmt: skip
    """(entries, updates visited): the key's history as the tactic wants it, its times raised to ``since``.

    ``times`` int64[n]; ``diffs`` int64[n * diff words] but for SEGMENTS; ``rows`` int64[n], addresses, for FIRSTS. The
    first is -1 when a list is too short.
    """
    if tactic == THRESHOLDS:
        return threshold_history(trace, table, count, cursors, key, since, times, diffs)
    if tactic == FIRSTS:
        return first_history(trace, table, count, cursors, key, since, rows, times, diffs)
    if tactic == SUMS:
        return sums_history(trace, table, count, cursors, key, since, times, diffs)
    return segments_history(trace, table, count, cursors, key, since, times)


@inlined
def _times_to_join(tactic: int, times: Words, count: int, emitted_times: Words, emitted: int, seen: Words) -> int:
    """Lists in ``seen`` the times to join with: the history's and those of what was emitted. Returns how many; -1 when
    ``seen`` is full."""
    if count > len(seen):
        return -1
    found = count
    if tactic == FIRSTS:  # one entry for each value
        found = 0
        for k in range(count):
            found = put(seen, found, times[k])
    else:
        for k in range(count):
            seen[k] = times[k]
    for k in range(emitted):
        if found == len(seen):
            return -1
        found = put(seen, found, emitted_times[k])
    return found


@inlined
def _emitted(
    tactic: int, output: Words, table: Words, count: int, cursors: Words, given: Words, failed: Words,
    failed_count: int, failed_cursors: Words, key: int, key_width: int, since: int, times: Words, diffs: Words,
    most: int, stats: Words,
) -> int:  # fmt: skip
    """Lists the updates that were emitted for a key, their times raised to ``since``. Returns how many; what is beyond
    ``most`` is not listed.

    ``table``: layers of ``output``; ``failed``: for SEGMENTS, layers of ``given``, else none.
    """
    shape = output[T_SHAPE]
    found = gather_history(
        table, count, cursors, output[T_WIDTH], key_width, output[T_ORDER], key, since, shape, times, diffs
    )
    if tactic == SEGMENTS and failed_count != 0 and found <= most:
        found += gather_history(
            failed, failed_count, failed_cursors, given[T_WIDTH], key_width, given[T_ORDER], key, since, shape,
            part(times, found, most), part(diffs, found, most),
        )  # fmt: skip
    stats[S_SEEKS] += count + failed_count
    stats[S_HISTORY] += found
    return found


@inlined
def _interesting(
    tactic: int, again: bool, trace: Words, output: Words, given: Words, table: Words, count: int, cursors: Words,
    emitted: Words, emitted_count: int, emitted_cursors: Words, failed: Words, failed_count: int, failed_cursors: Words,
    key: int, alone: int, vector: int, now: Words, n_now: int, later: Words, seen: Words, rows: Words, times: Words,
    diffs: Words, emitted_times: Words, emitted_diffs: Words, stats: Words,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """A key's history and interesting times: (entries of the history, updates visited, times in ``now``, in ``later``,
    entries in ``emitted_times``).

    ``now`` has the pass's times for the key. The first is -1 when a list is too short: then longer ones are needed, and
    ``now`` still begins with what was given. ``alone``: the diff of the pass's only update of the key; 0: it has
    others.
    """
    shape = trace[T_SHAPE]
    since = _least_ordinal(now, n_now, shape) - 1
    n, visited = _history(tactic, trace, table, count, cursors, key, since, rows, times, diffs)
    if n < 0:
        return -1, visited, 0, 0, 0
    n_emitted = 0
    fresh = tactic == THRESHOLDS and alone != 0 and visited == 1 and times[0] == now[0] and diffs[0] == alone
    if emitted_count + failed_count != 0 and not fresh:
        n_emitted = _emitted(
            tactic, output, emitted, emitted_count, emitted_cursors, given, failed, failed_count, failed_cursors, key,
            trace[T_KEY_WIDTH], since, emitted_times, emitted_diffs, len(now), stats,
        )  # fmt: skip
        if n_emitted > len(now):
            return -1, visited, 0, 0, 0
    n_seen = _times_to_join(tactic, times, n, emitted_times, n_emitted if again else 0, seen)
    if n_seen < 0:
        return -1, visited, 0, 0, 0
    counts = _close(now, n_now, later, seen, n_seen, shape, vector)
    if counts < 0:
        return -1, visited, 0, 0, 0
    return n, visited, counts & 0xFFFFFFFF, counts >> 32, n_emitted


@inlined
def _owe(owed_out: Words, key: int, key_width: int, later: Words, count: int) -> None:
    """Appends the key at each of the later times, with diff 1; there is room."""
    for k in range(count):
        n = owed_out[B_COUNT]
        copy_words(key, owed_out[B_ROWS] + 8 * key_width * n, key_width)
        store(owed_out[B_TIMES] + 8 * n, later[k])
        store(owed_out[B_DIFFS] + 8 * n, 1)
        owed_out[B_COUNT] = n + 1


@kernel
def _roll_back(out: Words, owed_out: Words, owed_found: int, why: int) -> int:
    """Undoes a pass; returns why."""
    out[B_COUNT] = 0
    owed_out[B_COUNT] = owed_found
    return why


@kernel
def _commit(tactic: int, output: Words, out: Words, owed_out: Words) -> int:
    """Inserts what was emitted if it is small; what ``reduce_partial`` returns."""
    kept = out[B_COUNT] == 0 or (tactic != SEGMENTS and put_small(output, out))
    return int(out[B_COUNT] | int(kept) << 31 | owed_out[B_COUNT] << 32)


@inlined
def _emit(
    tactic: int, out: Words, offsets: Words, vals: Words, key: int, now: Words, n_now: int, rows: Words, times: Words,
    diffs: Words, n: int, trace: Words, table: Words, count: int, cursors: Words, given: Words, option: int,
    sums: Words, order: int, stats: Words,
) -> bool:  # fmt: skip
    """What a tactic that needs no more than the key's history makes of it; False when a block has no room."""
    if tactic == THRESHOLDS:
        emit_row(out, key, now, n_now, times, diffs, n, option, trace[T_WIDTH], trace[T_SHAPE])
        return True
    if tactic == FIRSTS:
        emit_firsts(out, now, n_now, rows, times, diffs, n, trace, given, option, sums, order)
        return True
    return emit_segments(out, offsets, vals, key, now, n_now, trace, table, count, cursors, option, sums, stats)


@kernel
def _heads(room: Words, count: int, words: int) -> tuple[Words, Words]:
    """Lists for SUMS in one array: two words for each head, and ``words`` sums for each; others have the second to
    work in."""
    return part(room, 0, 2 * count), part(room, 2 * count, count * words)


@kernel
def _more_heads(heads: Words, sums: Words, count: int, n_now: int, words: int) -> Words:
    """Room for twice as many heads as ``count`` and ``n_now`` others are, with the first ``count`` of both lists."""
    room = 2 * (count + n_now)
    more = np.empty(room * (2 + words), np.int64)
    more[: 2 * count] = heads[: 2 * count]
    more[2 * room : 2 * room + count * words] = sums[: count * words]
    return more


@inlined
def _drive(
    tactic: int, trace: Words, delta: Words, owed: Words, output: Words, nothing: Words, out: Words, owed_out: Words,
    offsets: Words, vals: Words, given: Words, option: int, vector: int, again: bool, stats: Words,
) -> int:  # fmt: skip
    """``reduce_partial``."""
    width, key_width, order, shape = trace[T_WIDTH], trace[T_KEY_WIDTH], trace[T_ORDER], trace[T_SHAPE]
    diff_width, corners = trace[T_DIFF_WIDTH], 2 << loops(shape)
    sums_width = corners * diff_width
    per_time = corners if tactic == FIRSTS else int(tactic != SUMS)
    corrects = tactic == THRESHOLDS and (again or shape >> WIDTH_BITS != 0)
    own_table, count = layers(trace, nothing, nothing)
    joins = again and tactic == SEGMENTS
    own_emitted, emitted_count = layers(output, nothing, nothing) if corrects or joins else (own_table, 0)
    own_failed, failed_count = layers(given, nothing, nothing) if joins else (own_table, 0)
    table, emitted, failed = borrowed(own_table), borrowed(own_emitted), borrowed(own_failed)
    own_places = np.zeros(3 * count + emitted_count + failed_count, np.int64)
    cursors, emitted_cursors = part(own_places, 0, 3 * count), part(own_places, 3 * count, emitted_count)
    failed_cursors = part(own_places, 3 * count + emitted_count, failed_count)
    room = _LIST
    own_lists = np.empty((9 + diff_width) * room, np.int64)
    now, later, seen, rows, times, emitted_times, emitted_diffs, diffs = _lists(own_lists, room, diff_width)
    n_heads, head_room = 0, delta[B_COUNT] + owed[B_COUNT] + 8 if tactic == SUMS else 2
    own_heads = np.empty(head_room * (2 + sums_width), np.int64)
    heads, sums = _heads(own_heads, head_room, sums_width)
    owed_found, segments = owed_out[B_COUNT], 0
    ahead = hints(table, count, delta[B_COUNT], order)
    if tactic == SEGMENTS:
        vals[B_COUNT] = 0
        store(offsets[B_ROWS], 0)
    window, i, j = -AHEAD, 0, 0
    while i < delta[B_COUNT] or j < owed[B_COUNT]:
        key = _next_key(delta, i, owed, j, width, key_width, order)
        if len(ahead) != 0 and key == delta[B_ROWS] + 8 * width * i:
            window = aim(table, count, width, delta, i, key_width, ahead, window, cursors)
        first, i = i, rows_from(delta, i, key, width, key_width)
        first_owed, j = j, rows_from(owed, j, key, key_width, key_width)
        alone = load(delta[B_DIFFS] + 8 * first) if i == first + 1 and j == first_owed else 0
        n, visited, n_now, n_later, n_emitted = -1, 0, 0, 0, 0
        while n < 0:
            if i - first + j - first_owed <= room:
                n_now = put_times(owed, first_owed, j, now, put_times(delta, first, i, now, 0))
                n, visited, n_now, n_later, n_emitted = _interesting(
                    tactic, again, trace, output, given, table, count, cursors, emitted, emitted_count, emitted_cursors,
                    failed, failed_count, failed_cursors, key, alone, vector, now, n_now, later, seen, rows, times,
                    diffs, emitted_times, emitted_diffs, stats,
                )  # fmt: skip
            if n < 0:
                room *= 2
                own_lists = np.empty((9 + diff_width) * room, np.int64)
                now, later, seen, rows, times, emitted_times, emitted_diffs, diffs = _lists(own_lists, room, diff_width)
        stats[S_SEEKS] += count
        stats[S_HISTORY] += visited
        segments += n_now
        if out[B_COUNT] + per_time * n_now > out[B_ROOM] or owed_out[B_COUNT] + n_later > owed_out[B_ROOM]:
            return _roll_back(out, owed_out, owed_found, FULL)
        if tactic == SUMS:
            if n_heads + n_now > head_room:
                own_heads = _more_heads(heads, sums, n_heads, n_now, sums_width)
                head_room = 2 * (n_heads + n_now)
                heads, sums = _heads(own_heads, head_room, sums_width)
            sum_corners(key, now, n_now, times, diffs, n, trace, n_heads, heads, sums)
            n_heads += n_now
        elif corrects:
            earlier = (emitted_times, emitted_diffs, n_emitted)
            correct_row(out, key, now, n_now, times, diffs, n, option, width, shape, *earlier)
        elif not _emit(
            tactic, out, offsets, vals, key, now, n_now, rows, times, diffs, n, trace, table, count, cursors, given,
            option, sums, output[T_ORDER], stats,
        ):  # fmt: skip
            return _roll_back(out, owed_out, owed_found, FULL)
        _owe(owed_out, key, key_width, later, n_later)
    if tactic == SUMS:
        result = emit_results(out, heads, n_heads, sums, trace, given)
        if result < 0:
            return _roll_back(out, owed_out, owed_found, result)
    stats[S_SEGMENTS] += 0 if tactic == THRESHOLDS else segments
    result = _commit(tactic, output, out, owed_out)
    # The arrays behind the views live until their last mention.
    kept = len(own_table) + len(own_emitted) + len(own_failed) + len(own_places) + len(own_lists) + len(own_heads)
    return result + 0 * kept


@kernel
def reduce_partial(
    tactic: int, trace: Words, delta: Words, owed: Words, output: Words, nothing: Words, out: Words, owed_out: Words,
    offsets: Words, vals: Words, given: Words, option: int, vector: int, again: bool, stats: Words,
) -> int:  # fmt: skip
    """One pass of a reduction inside loops, at one loop vector, over the keys of the delta and of ``owed``.

    All arrays are int64[]. ``trace``: the input's trace descriptor, which holds the delta already; ``delta``: a block
    of [key | value], sorted; ``owed``: a block of keys at times of this vector, sorted alike; ``output``: the
    descriptor of the trace of what was emitted before; ``nothing``: an empty block. ``out``, an empty block, gets
    what is emitted, sorted; ``owed_out`` has the keys at later times appended. ``again``: an ordinal of this step was
    fed before (never with FIRSTS and SUMS). What ``option``, ``given``, ``offsets`` and ``vals`` are depends on the
    tactic, see above.

    Returns the count of ``out``, plus 2^31 where ``out`` is in the output's trace already (or empty), plus 2^32 times
    the count of ``owed_out``. Or, with both blocks as found, FULL when a block has no room, FAILED where the formula
    fails. Cost: the histories of the touched keys.
    """
    # Views that count no references to what the caller holds: counting took more time than the work on a key.
    return _drive(
        tactic, borrowed(trace), borrowed(delta), borrowed(owed), borrowed(output), borrowed(nothing), borrowed(out),
        borrowed(owed_out), borrowed(offsets), borrowed(vals), borrowed(given), option, vector, again, borrowed(stats),
    )  # fmt: skip
