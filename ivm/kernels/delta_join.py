"""One path of a delta join: each update of one input, extended by the other inputs' rows, shape first.

A *path* binds one row for each of its slots: slot 0 is the update, every other slot a row of a trace. Slots come in
stages. A stage of one slot looks the slot's key up (a half-join). In a stage of several slots, all of them have the
same next word behind their keys: the slot with the fewest rows proposes its own, and the others look up their key and
the proposed word (the generic join of worst-case optimal join algorithms; Ngo, Ré, Rudra, *Skew strikes back*, 2013;
Ammar et al., *Distributed evaluation of subgraph queries using worst-case optimal and low-memory dataflows*, 2018).
Partial bindings are never materialized, so no state ever has the size of an intermediate result.

A slot may have a *span*, which takes only some of the rows that begin with its key (``ivm.kernels.spans``).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.join import S_MATCHES, S_OVERFLOWS, S_SEEKS, too_many
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFFS,
    B_ROOM,
    B_ROWS,
    B_TIMES,
    B_WIDTH,
    HEAD,
    L_COUNT,
    L_DIFF_STRIDE,
    L_DIFFS,
    L_FENCE,
    L_ROWS,
    L_SIGN,
    L_TIME_STRIDE,
    L_TIMES,
    LAYER_WORDS,
    T_LAYERS,
    load,
    store,
    where,
)
from ivm.kernels.path import (
    E_CURSOR,
    E_END,
    E_PEAKS,
    E_START,
    ENTRY_WORDS,
    G_BITS,
    G_KEYS,
    G_SLOTS,
    G_WORDS,
    PATH_HEAD,
    R_CELL,
    R_MINUS,
    R_PEAKS,
    R_SHAPE,
    SLOT_WORDS,
    SOURCE_WORDS,
    V_END,
    V_FIRST,
    V_KEPT,
    V_KEY,
    V_KEY_WIDTH,
    V_NULL_COUNT,
    V_NULLS,
    V_REACH,
    V_SPAN,
    V_WIDTH,
    W_DIFF,
    W_FIRST,
    W_LAST,
    W_LAYER,
    W_POSITION,
    W_PROPOSED,
    W_ROW,
    W_SLOT,
    W_SOUGHT,
    W_STOP,
    W_TIME,
    WALK_WORDS,
    end_of,
    get,
    put,
    word_of,
)  # fmt: skip
from ivm.kernels.seek import add_block, lacks, seek
from ivm.kernels.spans import find_span, reaching, sum_up
from ivm.kernels.times import lub, rounds, wrap
from ivm.rows import Words

FULL: Final = -1
LATER_FULL: Final = -2
BUSY: Final = -3


@kernel
def _entries(sources: int, slots: int) -> int:
    """The most layers that all slots have together."""
    count = 0
    for s in range(1, slots):
        count += load(load(get(sources, s * SOURCE_WORDS + R_CELL)) + 8 * T_LAYERS) + 1
    return count


@kernel
def _list_layers(sources: int, slots: int, table: int, walk: int) -> None:
    """Writes the layers of all slots' traces to the table."""
    count = 0
    for s in range(1, slots):
        put(walk, s * WALK_WORDS + W_FIRST, count)
        trace = load(get(sources, s * SOURCE_WORDS + R_CELL))
        cell = get(sources, s * SOURCE_WORDS + R_PEAKS)
        peaks = 0 if cell == 0 else load(cell)
        for k in range(load(trace + 8 * T_LAYERS)):
            at = trace + 8 * (HEAD + LAYER_WORDS * k)
            if load(at + 8 * L_COUNT) != 0:
                for j in range(LAYER_WORDS):
                    put(table, count * ENTRY_WORDS + j, load(at + 8 * j))
                if peaks != 0:
                    put(table, count * ENTRY_WORDS + E_PEAKS, get(peaks, k))
                count += 1
        minus = get(sources, s * SOURCE_WORDS + R_MINUS)
        if minus != 0 and load(minus) != 0:
            add_block(table + 8 * ENTRY_WORDS * count, minus)
            count += 1
        put(walk, s * WALK_WORDS + W_LAST, count)


@kernel
def _reach(column: int, stride: int, start: int, end: int, word: int) -> int:
    """The first row from ``start`` on whose word in a column is not less than ``word``; the column ascends."""
    if start >= end or load(column + stride * start) >= word:
        return start
    low = start + 1
    step = 1
    while low + step < end and load(column + stride * (low + step)) < word:
        low += step
        step *= 2
    high = min(low + step, end)
    while low < high:
        middle = (low + high) >> 1
        if load(column + stride * middle) < word:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _find(path: int, table: int, walk: int, kept: int, slot: int, stats: int) -> int:
    """How many rows of a slot begin with its key: those from E_START to E_END of each layer. The previous key is not
    searched again; the search for a greater one starts there."""
    at = PATH_HEAD + SLOT_WORDS * slot
    if get(path, at + V_SPAN) != 0:
        return int(find_span(path, table, walk, kept, slot, stats))
    own = slot * WALK_WORDS
    width = get(path, at + V_WIDTH)
    key_width = get(path, at + V_KEY_WIDTH)
    place = get(path, at + V_KEPT)
    fresh = get(walk, own + W_SOUGHT) == 0
    c = 1 if fresh else 0
    for k in range(key_width):
        word = word_of(walk, get(path, get(path, at + V_KEY) + k))
        if c == 0 and word != get(kept, place + k):
            c = 1 if word > get(kept, place + k) else -1
        put(kept, place + k, word)
    put(walk, own + W_SOUGHT, 1)
    found = 0
    key = kept + 8 * place
    for k in range(get(walk, own + W_FIRST), get(walk, own + W_LAST)):
        entry = k * ENTRY_WORDS
        if c != 0:
            start = 0 if fresh or c < 0 else get(table, entry + E_START)
            end = start
            if not lacks(table + 8 * entry, key, key_width):
                rows = get(table, entry + L_ROWS)
                total = get(table, entry + L_COUNT)
                start = seek(rows, total, width, get(table, entry + L_FENCE), start, key, key_width, 0)
                end = end_of(rows, total, width, start, key, key_width)
                put(stats, S_SEEKS, get(stats, S_SEEKS) + 1)
            put(table, entry + E_START, start)
            put(table, entry + E_END, end)
        found += get(table, entry + E_END) - get(table, entry + E_START)
    return found


@kernel
def _null(path: int, slot: int, walk: int) -> bool:
    """Whether the slot's row has a NULL that drops the combination."""
    at = PATH_HEAD + SLOT_WORDS * slot
    first = get(path, at + V_NULLS)
    for k in range(get(path, at + V_NULL_COUNT)):
        if (word_of(walk, get(path, first + 2 * k)) >> get(path, first + 2 * k + 1)) & 1 != 0:
            return True
    return False


@kernel
def _emit(path: int, walk: int, target: Words, time: int, diff: int) -> None:
    """Appends the output row of the bound rows."""
    n = target[B_COUNT]
    row = target[B_ROWS] + 8 * target[B_WIDTH] * n
    first = get(path, G_WORDS)
    for k in range(get(path, G_WORDS + 1)):
        reference = get(path, first + k)
        store(row + 8 * k, 0 if reference < 0 else word_of(walk, reference))
    first = get(path, G_BITS)
    for k in range(get(path, G_BITS + 1)):
        entry = first + 4 * k
        place = row + 8 * get(path, entry + 2)
        bit = (word_of(walk, get(path, entry)) >> get(path, entry + 1)) & 1
        store(place, load(place) | (bit << get(path, entry + 3)))
    store(target[B_TIMES] + 8 * n, time)
    store(target[B_DIFFS] + 8 * n, diff)
    target[B_COUNT] = n + 1


@kernel
def _rewind(walk: int, table: int, slot: int) -> None:
    """Restarts the search for proposed words."""
    for m in range(get(walk, slot * WALK_WORDS + W_FIRST), get(walk, slot * WALK_WORDS + W_LAST)):
        put(table, m * ENTRY_WORDS + E_CURSOR, get(table, m * ENTRY_WORDS + E_START))


@kernel
def _enter(path: int, table: int, walk: int, kept: int, d: int, stats: int) -> bool:
    """Starts the slot at place d. False if it has no rows. The slot with the fewest rows comes first in its stage and
    proposes; the others get the word that it proposes."""
    at = PATH_HEAD + SLOT_WORDS * d
    opener = get(path, at + V_FIRST)
    if opener == d:
        fewest = -1
        best = d
        for k in range(d, get(path, at + V_END)):
            put(walk, k * WALK_WORDS + W_SLOT, k)
            found = _find(path, table, walk, kept, k, stats)
            if found == 0:
                return False
            if fewest < 0 or found < fewest:
                fewest = found
                best = k
        put(walk, d * WALK_WORDS + W_SLOT, best)
        put(walk, best * WALK_WORDS + W_SLOT, d)
        for k in range(d + 1, get(path, at + V_END)):
            s = get(walk, k * WALK_WORDS + W_SLOT)
            put(walk, s * WALK_WORDS + W_PROPOSED, 0)
            _rewind(walk, table, s)
    s = get(walk, d * WALK_WORDS + W_SLOT)
    if opener != d:
        proposer = get(walk, opener * WALK_WORDS + W_SLOT)
        word = load(
            get(walk, proposer * WALK_WORDS + W_ROW) + 8 * get(path, PATH_HEAD + SLOT_WORDS * proposer + V_KEY_WIDTH)
        )
        if word < get(walk, s * WALK_WORDS + W_PROPOSED):
            _rewind(walk, table, s)
        put(walk, s * WALK_WORDS + W_PROPOSED, word)
    put(walk, d * WALK_WORDS + W_LAYER, get(walk, s * WALK_WORDS + W_FIRST) - 1)
    put(walk, d * WALK_WORDS + W_POSITION, 0)
    put(walk, d * WALK_WORDS + W_STOP, 0)
    return True


@kernel
def _next_layer(path: int, table: int, walk: int, d: int, stats: int) -> bool:
    """Moves to the next layer with rows for the slot at place d, if there is one."""
    here = d * WALK_WORDS
    s = get(walk, here + W_SLOT)
    own = PATH_HEAD + SLOT_WORDS * s
    opening = get(path, PATH_HEAD + SLOT_WORDS * d + V_FIRST) == d
    stride = 8 * get(path, own + V_WIDTH)
    word = get(walk, s * WALK_WORDS + W_PROPOSED)
    for m in range(get(walk, here + W_LAYER) + 1, get(walk, s * WALK_WORDS + W_LAST)):
        entry = m * ENTRY_WORDS
        p = get(table, entry + (E_START if opening else E_CURSOR))
        stop = get(table, entry + E_END)
        if p >= stop:
            continue
        if not opening:
            column = get(table, entry + L_ROWS) + 8 * get(path, own + V_KEY_WIDTH)
            p = _reach(column, stride, p, stop, word)
            put(table, entry + E_CURSOR, p)
            last = p
            while last < stop and load(column + stride * last) == word:
                last += 1
            stop = last
            put(stats, S_SEEKS, get(stats, S_SEEKS) + 1)
        if p < stop:
            put(walk, here + W_LAYER, m)
            put(walk, here + W_POSITION, p)
            put(walk, here + W_STOP, stop)
            return True
    return False


@kernel
def _run(
    delta: Words, path: int, sources: int, table: int, walk: int, kept: int, out: Words, later: Words, state: Words,
    stats: int, shape: int, vector: int, work: int,
) -> int:  # fmt: skip
    """``delta_join`` with room for its tables."""
    slots = get(path, G_SLOTS)
    spent = get(stats, S_SEEKS) + get(stats, S_MATCHES)
    for i in range(state[0], delta[B_COUNT]):
        state[0] = i
        if get(stats, S_SEEKS) + get(stats, S_MATCHES) - spent > work:
            return BUSY
        put(walk, W_ROW, delta[B_ROWS] + 8 * delta[B_WIDTH] * i)
        put(walk, W_TIME, load(delta[B_TIMES] + 8 * i))
        put(walk, W_DIFF, load(delta[B_DIFFS] + 8 * i))
        if _null(path, 0, walk):
            continue
        had = out[B_COUNT]
        had_later = later[B_COUNT]
        d = 1 if _enter(path, table, walk, kept, 1, stats) else 0
        while d > 0:
            here = d * WALK_WORDS
            used_up = get(walk, here + W_POSITION) >= get(walk, here + W_STOP)
            if used_up and not _next_layer(path, table, walk, d, stats):
                d -= 1
                continue
            s = get(walk, here + W_SLOT)
            entry = get(walk, here + W_LAYER) * ENTRY_WORDS
            p = get(walk, here + W_POSITION)
            width = get(path, PATH_HEAD + SLOT_WORDS * s + V_WIDTH)
            if get(path, PATH_HEAD + SLOT_WORDS * s + V_REACH) >= 0:
                p = reaching(path, table, walk, kept, s, entry, p, get(walk, here + W_STOP), stats)
                if p >= get(walk, here + W_STOP):
                    put(walk, here + W_POSITION, p)
                    continue
            put(walk, here + W_POSITION, p + 1)
            put(walk, s * WALK_WORDS + W_ROW, get(table, entry + L_ROWS) + 8 * width * p)
            put(stats, S_MATCHES, get(stats, S_MATCHES) + 1)
            if _null(path, s, walk):
                continue
            if d + 1 < slots:
                # Most proposed words find no match: only matches need the rest.
                if not _enter(path, table, walk, kept, d + 1, stats):
                    continue
                if not _next_layer(path, table, walk, d + 1, stats):
                    continue
            time = load(get(table, entry + L_TIMES) + get(table, entry + L_TIME_STRIDE) * p)
            time = wrap(time, get(sources, s * SOURCE_WORDS + R_SHAPE), shape)
            time = lub(get(walk, here - WALK_WORDS + W_TIME), time, shape)
            diff = load(get(table, entry + L_DIFFS) + get(table, entry + L_DIFF_STRIDE) * p)
            before = get(table, entry + L_SIGN) * get(walk, here - WALK_WORDS + W_DIFF)
            if too_many(diff, before):
                put(stats, S_OVERFLOWS, get(stats, S_OVERFLOWS) + 1)
            diff *= before
            if d + 1 < slots:
                put(walk, here + W_TIME, time)
                put(walk, here + W_DIFF, diff)
                d += 1
                continue
            now = shape == 0 or rounds(time, shape) == vector
            target = out if now else later
            if target[B_COUNT] >= target[B_ROOM]:
                out[B_COUNT] = had
                later[B_COUNT] = had_later
                return FULL if now else LATER_FULL
            _emit(path, walk, target, time, diff)
    state[0] = 0
    return int(out[B_COUNT] | later[B_COUNT] << 32)


@kernel
def delta_join(
    delta: Words, path: Words, sources: Words, out: Words, later: Words, state: Words, stats: Words, shape: int,
    vector: int, work: int,
) -> int:  # fmt: skip
    """Appends the combinations of the updates of ``delta`` from index ``state[0]`` on, at the join of all times.

    Those at the loop vector ``vector`` go to ``out``, the rest to ``later``. Returns both blocks' counts, the second
    shifted by 32 bits; FULL or LATER_FULL (nothing of the update ``state[0]`` has been emitted), or BUSY after about
    ``work`` seeks and rows. Cost: for each update the seeks of the stages' keys, and the rows bound.
    """
    slots = path[G_SLOTS]
    table = np.zeros(_entries(where(sources), slots) * ENTRY_WORDS, np.int64)
    walk = np.zeros(slots * WALK_WORDS, np.int64)
    kept = np.zeros(path[G_KEYS] + 1, np.int64)
    _list_layers(where(sources), slots, where(table), where(walk))
    peaks = np.empty(sum_up(where(path), slots, where(table), where(walk), 0), np.int64)
    if len(peaks):
        sum_up(where(path), slots, where(table), where(walk), where(peaks))
    result = _run(
        delta, where(path), where(sources), where(table), where(walk), where(kept), out, later, state, where(stats),
        shape, vector, work,
    )  # fmt: skip
    # An array lives until it is named for the last time.
    kept[0] = len(table) + len(walk) + len(peaks)
    return result
