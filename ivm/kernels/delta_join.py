"""One path of a delta join: each update of one input, extended by the other inputs' rows, shape first.

A *path* binds one row for each of its slots: slot 0 is the update, every other slot a row of a trace. Slots come in
stages. A stage of one slot looks the slot's key up (a half-join). In a stage of several slots, all of them have the
same next word behind their keys: the slot with the fewest rows proposes its own, and the others look up their key and
the proposed word (the generic join of worst-case optimal join algorithms; Ngo, Ré, Rudra, *Skew strikes back*, 2013;
Ammar et al., *Distributed evaluation of subgraph queries using worst-case optimal and low-memory dataflows*, 2018).
Partial bindings are never materialized, so no state ever has the size of an intermediate result.
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
from ivm.kernels.order import compare
from ivm.kernels.seek import add_block, lacks, seek
from ivm.kernels.times import lub, rounds, wrap
from ivm.rows import Words

# A path: a head, SLOT_WORDS for each slot, then lists. A reference to a word is slot << SLOT_SHIFT | word.
G_SLOTS: Final = 0
G_WORDS: Final = 1
"""The list of the output's words (a reference each, -1: zero): index and length."""
G_BITS: Final = 3
"""Likewise the list of its bits: reference, bit, output word, output bit."""
G_KEYS: Final = 5
"""The total words of all keys."""
PATH_HEAD: Final = 6
# A slot: the first slot of its stage and the one after its last, its row's width, its key's list of references and
# how many, its list of (reference, bit) that must not be set and how many, and where its key is kept.
V_FIRST: Final = 0
V_END: Final = 1
V_WIDTH: Final = 2
V_KEY: Final = 3
V_KEY_WIDTH: Final = 4
V_NULLS: Final = 5
V_NULL_COUNT: Final = 6
V_KEPT: Final = 7
SLOT_WORDS: Final = 8
SLOT_SHIFT: Final = 16

# What a slot reads in a pass: the address of its trace's cell, the shape of the trace's loops, and the address of the
# block to subtract, or 0.
R_CELL: Final = 0
R_SHAPE: Final = 1
R_MINUS: Final = 2
SOURCE_WORDS: Final = 3

# The walk, for each slot: its layers in the table, whether its key was sought, the word last proposed to it, its row's
# address. For each place in the order in which slots are bound, which differs from theirs within a stage: the slot, the
# join of all times and the product of all diffs so far, the layer, and where in it the walk is and is to stop.
W_FIRST: Final = 0
W_LAST: Final = 1
W_SOUGHT: Final = 2
W_PROPOSED: Final = 3
W_ROW: Final = 4
W_SLOT: Final = 5
W_TIME: Final = 6
W_DIFF: Final = 7
W_LAYER: Final = 8
W_POSITION: Final = 9
W_STOP: Final = 10
WALK_WORDS: Final = 11
# The table's entry of a layer: the layer; its rows that begin with the slot's key, from and to; how far an ascending
# search for proposed words has come.
E_START: Final = LAYER_WORDS
E_END: Final = LAYER_WORDS + 1
E_CURSOR: Final = LAYER_WORDS + 2
ENTRY_WORDS: Final = LAYER_WORDS + 3

FULL: Final = -1
LATER_FULL: Final = -2
BUSY: Final = -3

# Below, paths, sources, tables, walks, kept keys and counts are addresses: calls then pass a few registers.


@kernel
def _get(array: int, index: int) -> int:
    return load(array + 8 * index)


@kernel
def _set(array: int, index: int, value: int) -> None:
    store(array + 8 * index, value)


@kernel
def _entries(sources: int, slots: int) -> int:
    """The most layers that all slots have together."""
    count = 0
    for s in range(1, slots):
        count += load(load(_get(sources, s * SOURCE_WORDS + R_CELL)) + 8 * T_LAYERS) + 1
    return count


@kernel
def _list_layers(sources: int, slots: int, table: int, walk: int) -> None:
    """Writes the layers of all slots' traces to the table."""
    count = 0
    for s in range(1, slots):
        _set(walk, s * WALK_WORDS + W_FIRST, count)
        trace = load(_get(sources, s * SOURCE_WORDS + R_CELL))
        for k in range(load(trace + 8 * T_LAYERS)):
            at = trace + 8 * (HEAD + LAYER_WORDS * k)
            if load(at + 8 * L_COUNT) != 0:
                for j in range(LAYER_WORDS):
                    _set(table, count * ENTRY_WORDS + j, load(at + 8 * j))
                count += 1
        minus = _get(sources, s * SOURCE_WORDS + R_MINUS)
        if minus != 0 and load(minus) != 0:
            add_block(table + 8 * ENTRY_WORDS * count, minus)
            count += 1
        _set(walk, s * WALK_WORDS + W_LAST, count)


@kernel
def _word(walk: int, reference: int) -> int:
    """A word of a bound row."""
    return load(_get(walk, (reference >> SLOT_SHIFT) * WALK_WORDS + W_ROW) + 8 * (reference & ((1 << SLOT_SHIFT) - 1)))


@kernel
def _end(rows: int, total: int, width: int, start: int, key: int, key_width: int) -> int:
    """The first row after those from ``start`` on that begin with the key."""
    low = start
    step = 1
    while low + step <= total and compare(rows + 8 * width * (low + step - 1), key, 0, key_width, 0) == 0:
        low += step
        step *= 2
    high = min(low + step - 1, total)
    while low < high:
        middle = (low + high) >> 1
        if compare(rows + 8 * width * middle, key, 0, key_width, 0) == 0:
            low = middle + 1
        else:
            high = middle
    return low


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
    own = slot * WALK_WORDS
    width = _get(path, at + V_WIDTH)
    key_width = _get(path, at + V_KEY_WIDTH)
    place = _get(path, at + V_KEPT)
    fresh = _get(walk, own + W_SOUGHT) == 0
    c = 1 if fresh else 0
    for k in range(key_width):
        word = _word(walk, _get(path, _get(path, at + V_KEY) + k))
        if c == 0 and word != _get(kept, place + k):
            c = 1 if word > _get(kept, place + k) else -1
        _set(kept, place + k, word)
    _set(walk, own + W_SOUGHT, 1)
    found = 0
    key = kept + 8 * place
    for k in range(_get(walk, own + W_FIRST), _get(walk, own + W_LAST)):
        entry = k * ENTRY_WORDS
        if c != 0:
            start = 0 if fresh or c < 0 else _get(table, entry + E_START)
            end = start
            if not lacks(table + 8 * entry, key, key_width):
                rows = _get(table, entry + L_ROWS)
                total = _get(table, entry + L_COUNT)
                start = seek(rows, total, width, _get(table, entry + L_FENCE), start, key, key_width, 0)
                end = _end(rows, total, width, start, key, key_width)
                _set(stats, S_SEEKS, _get(stats, S_SEEKS) + 1)
            _set(table, entry + E_START, start)
            _set(table, entry + E_END, end)
        found += _get(table, entry + E_END) - _get(table, entry + E_START)
    return found


@kernel
def _null(path: int, slot: int, walk: int) -> bool:
    """Whether the slot's row has a NULL that drops the combination."""
    at = PATH_HEAD + SLOT_WORDS * slot
    first = _get(path, at + V_NULLS)
    for k in range(_get(path, at + V_NULL_COUNT)):
        if (_word(walk, _get(path, first + 2 * k)) >> _get(path, first + 2 * k + 1)) & 1 != 0:
            return True
    return False


@kernel
def _emit(path: int, walk: int, target: Words, time: int, diff: int) -> None:
    """Appends the output row of the bound rows."""
    n = target[B_COUNT]
    row = target[B_ROWS] + 8 * target[B_WIDTH] * n
    first = _get(path, G_WORDS)
    for k in range(_get(path, G_WORDS + 1)):
        reference = _get(path, first + k)
        store(row + 8 * k, 0 if reference < 0 else _word(walk, reference))
    first = _get(path, G_BITS)
    for k in range(_get(path, G_BITS + 1)):
        entry = first + 4 * k
        place = row + 8 * _get(path, entry + 2)
        bit = (_word(walk, _get(path, entry)) >> _get(path, entry + 1)) & 1
        store(place, load(place) | (bit << _get(path, entry + 3)))
    store(target[B_TIMES] + 8 * n, time)
    store(target[B_DIFFS] + 8 * n, diff)
    target[B_COUNT] = n + 1


@kernel
def _rewind(walk: int, table: int, slot: int) -> None:
    """Restarts the search for proposed words."""
    for m in range(_get(walk, slot * WALK_WORDS + W_FIRST), _get(walk, slot * WALK_WORDS + W_LAST)):
        _set(table, m * ENTRY_WORDS + E_CURSOR, _get(table, m * ENTRY_WORDS + E_START))


@kernel
def _enter(path: int, table: int, walk: int, kept: int, d: int, stats: int) -> bool:
    """Starts the slot at place d. False if it has no rows. The slot with the fewest rows comes first in its stage and
    proposes; the others get the word that it proposes."""
    at = PATH_HEAD + SLOT_WORDS * d
    opener = _get(path, at + V_FIRST)
    if opener == d:
        fewest = -1
        best = d
        for k in range(d, _get(path, at + V_END)):
            _set(walk, k * WALK_WORDS + W_SLOT, k)
            found = _find(path, table, walk, kept, k, stats)
            if found == 0:
                return False
            if fewest < 0 or found < fewest:
                fewest = found
                best = k
        _set(walk, d * WALK_WORDS + W_SLOT, best)
        _set(walk, best * WALK_WORDS + W_SLOT, d)
        for k in range(d + 1, _get(path, at + V_END)):
            s = _get(walk, k * WALK_WORDS + W_SLOT)
            _set(walk, s * WALK_WORDS + W_PROPOSED, 0)
            _rewind(walk, table, s)
    s = _get(walk, d * WALK_WORDS + W_SLOT)
    if opener != d:
        proposer = _get(walk, opener * WALK_WORDS + W_SLOT)
        word = load(
            _get(walk, proposer * WALK_WORDS + W_ROW) + 8 * _get(path, PATH_HEAD + SLOT_WORDS * proposer + V_KEY_WIDTH)
        )
        if word < _get(walk, s * WALK_WORDS + W_PROPOSED):
            _rewind(walk, table, s)
        _set(walk, s * WALK_WORDS + W_PROPOSED, word)
    _set(walk, d * WALK_WORDS + W_LAYER, _get(walk, s * WALK_WORDS + W_FIRST) - 1)
    _set(walk, d * WALK_WORDS + W_POSITION, 0)
    _set(walk, d * WALK_WORDS + W_STOP, 0)
    return True


@kernel
def _next_layer(path: int, table: int, walk: int, d: int, stats: int) -> bool:
    """Moves to the next layer with rows for the slot at place d, if there is one."""
    here = d * WALK_WORDS
    s = _get(walk, here + W_SLOT)
    own = PATH_HEAD + SLOT_WORDS * s
    opening = _get(path, PATH_HEAD + SLOT_WORDS * d + V_FIRST) == d
    stride = 8 * _get(path, own + V_WIDTH)
    word = _get(walk, s * WALK_WORDS + W_PROPOSED)
    for m in range(_get(walk, here + W_LAYER) + 1, _get(walk, s * WALK_WORDS + W_LAST)):
        entry = m * ENTRY_WORDS
        p = _get(table, entry + (E_START if opening else E_CURSOR))
        stop = _get(table, entry + E_END)
        if p >= stop:
            continue
        if not opening:
            column = _get(table, entry + L_ROWS) + 8 * _get(path, own + V_KEY_WIDTH)
            p = _reach(column, stride, p, stop, word)
            _set(table, entry + E_CURSOR, p)
            last = p
            while last < stop and load(column + stride * last) == word:
                last += 1
            stop = last
            _set(stats, S_SEEKS, _get(stats, S_SEEKS) + 1)
        if p < stop:
            _set(walk, here + W_LAYER, m)
            _set(walk, here + W_POSITION, p)
            _set(walk, here + W_STOP, stop)
            return True
    return False


@kernel
def _run(
    delta: Words, path: int, sources: int, table: int, walk: int, kept: int, out: Words, later: Words, state: Words,
    stats: int, shape: int, vector: int, work: int,
) -> int:  # fmt: skip
    """``delta_join`` with room for its tables."""
    slots = _get(path, G_SLOTS)
    spent = _get(stats, S_SEEKS) + _get(stats, S_MATCHES)
    for i in range(state[0], delta[B_COUNT]):
        state[0] = i
        if _get(stats, S_SEEKS) + _get(stats, S_MATCHES) - spent > work:
            return BUSY
        _set(walk, W_ROW, delta[B_ROWS] + 8 * delta[B_WIDTH] * i)
        _set(walk, W_TIME, load(delta[B_TIMES] + 8 * i))
        _set(walk, W_DIFF, load(delta[B_DIFFS] + 8 * i))
        if _null(path, 0, walk):
            continue
        had = out[B_COUNT]
        had_later = later[B_COUNT]
        d = 1 if _enter(path, table, walk, kept, 1, stats) else 0
        while d > 0:
            here = d * WALK_WORDS
            used_up = _get(walk, here + W_POSITION) >= _get(walk, here + W_STOP)
            if used_up and not _next_layer(path, table, walk, d, stats):
                d -= 1
                continue
            s = _get(walk, here + W_SLOT)
            entry = _get(walk, here + W_LAYER) * ENTRY_WORDS
            p = _get(walk, here + W_POSITION)
            _set(walk, here + W_POSITION, p + 1)
            width = _get(path, PATH_HEAD + SLOT_WORDS * s + V_WIDTH)
            _set(walk, s * WALK_WORDS + W_ROW, _get(table, entry + L_ROWS) + 8 * width * p)
            _set(stats, S_MATCHES, _get(stats, S_MATCHES) + 1)
            if _null(path, s, walk):
                continue
            if d + 1 < slots:
                # Most proposed words find no match: only matches need the rest.
                if not _enter(path, table, walk, kept, d + 1, stats):
                    continue
                if not _next_layer(path, table, walk, d + 1, stats):
                    continue
            time = load(_get(table, entry + L_TIMES) + _get(table, entry + L_TIME_STRIDE) * p)
            time = wrap(time, _get(sources, s * SOURCE_WORDS + R_SHAPE), shape)
            time = lub(_get(walk, here - WALK_WORDS + W_TIME), time, shape)
            diff = load(_get(table, entry + L_DIFFS) + _get(table, entry + L_DIFF_STRIDE) * p)
            before = _get(table, entry + L_SIGN) * _get(walk, here - WALK_WORDS + W_DIFF)
            if too_many(diff, before):
                _set(stats, S_OVERFLOWS, _get(stats, S_OVERFLOWS) + 1)
            diff *= before
            if d + 1 < slots:
                _set(walk, here + W_TIME, time)
                _set(walk, here + W_DIFF, diff)
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
    result = _run(
        delta, where(path), where(sources), where(table), where(walk), where(kept), out, later, state, where(stats),
        shape, vector, work,
    )  # fmt: skip
    # An array lives until it is named for the last time.
    kept[0] = len(table) + len(walk)
    return result
