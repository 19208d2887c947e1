"""One path of a delta join: each update of one input, extended by the other inputs' rows, depth first.

A *path* binds one row for each of its slots: slot 0 is the update, every other slot a row of a trace. Slots come in
stages. A stage of one slot looks the slot's key up (a half-join). In a stage of several slots, all of them have the
same next word behind their keys: the slot with the fewest rows proposes its own, and the others look up their key and
the proposed word (the generic join of worst-case optimal join algorithms; Ngo, Ré, Rudra, *Skew strikes back*, 2013;
Ammar et al., *Distributed evaluation of subgraph queries using worst-case optimal and low-memory dataflows*, 2018).
Nothing that is bound in part is ever written down, so that no state is of intermediate size, not even for a moment.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.join import S_MATCHES, S_SEEKS
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
    Words,
    load,
    store,
    where,
)  # fmt: skip
from ivm.kernels.order import compare
from ivm.kernels.seek import absent, add_block, seek
from ivm.kernels.times import lub, rounds, wrap

# A path: a head, SLOT_WORDS for each slot, then lists. A reference to a word is its slot << SLOT_SHIFT | word.
G_SLOTS: Final = 0
G_WORDS: Final = 1
"""Where the output's words are listed (a reference each, -1: zero), and how many."""
G_BITS: Final = 3
"""Likewise its bits: reference, bit, output word, output bit."""
G_KEYS: Final = 5
"""How many words all keys have."""
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

# What a slot reads in a pass: the address of its trace's cell, the depth of the trace's loops, and the address of the
# block that does not count yet, or 0.
R_CELL: Final = 0
R_DEPTH: Final = 1
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


@kernel
def _entries(sources: Words, slots: int) -> int:
    """How many layers all slots have at most."""
    count = 0
    for s in range(1, slots):
        count += load(load(sources[s * SOURCE_WORDS + R_CELL]) + 8 * T_LAYERS) + 1
    return count


@kernel
def _list_layers(sources: Words, slots: int, table: Words, walk: Words) -> None:
    """Lists the layers of all slots' traces."""
    count = 0
    for s in range(1, slots):
        walk[s * WALK_WORDS + W_FIRST] = count
        trace = load(sources[s * SOURCE_WORDS + R_CELL])
        for k in range(load(trace + 8 * T_LAYERS)):
            at = trace + 8 * (HEAD + LAYER_WORDS * k)
            if load(at + 8 * L_COUNT) != 0:
                for j in range(LAYER_WORDS):
                    table[count * ENTRY_WORDS + j] = load(at + 8 * j)
                count += 1
        minus = sources[s * SOURCE_WORDS + R_MINUS]
        if minus != 0 and load(minus) != 0:
            add_block(table, count * ENTRY_WORDS, minus)
            count += 1
        walk[s * WALK_WORDS + W_LAST] = count


@kernel
def _word(walk: Words, reference: int) -> int:
    """A word of a row that is bound."""
    return load(walk[(reference >> SLOT_SHIFT) * WALK_WORDS + W_ROW] + 8 * (reference & ((1 << SLOT_SHIFT) - 1)))


@kernel
def _end(rows: int, total: int, width: int, start: int, key: int, key_width: int) -> int:
    """The row after those from ``start`` on that begin with the key."""
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
def _find(path: Words, table: Words, walk: Words, kept: Words, slot: int, stats: Words) -> int:
    """How many rows of a slot begin with its key: those from E_START to E_END of each layer. A key that is the last one
    is not sought again, a greater one from there on."""
    at = PATH_HEAD + SLOT_WORDS * slot
    own = slot * WALK_WORDS
    width = path[at + V_WIDTH]
    key_width = path[at + V_KEY_WIDTH]
    place = path[at + V_KEPT]
    fresh = walk[own + W_SOUGHT] == 0
    c = 1 if fresh else 0
    for k in range(key_width):
        word = _word(walk, path[path[at + V_KEY] + k])
        if c == 0 and word != kept[place + k]:
            c = 1 if word > kept[place + k] else -1
        kept[place + k] = word
    walk[own + W_SOUGHT] = 1
    found = 0
    key = where(kept) + 8 * place
    for k in range(walk[own + W_FIRST], walk[own + W_LAST]):
        entry = k * ENTRY_WORDS
        if c != 0:
            start = 0 if fresh or c < 0 else table[entry + E_START]
            end = start
            if not absent(table, entry, key, key_width):
                rows = table[entry + L_ROWS]
                total = table[entry + L_COUNT]
                start = seek(rows, total, width, table[entry + L_FENCE], start, key, key_width, 0)
                end = _end(rows, total, width, start, key, key_width)
                stats[S_SEEKS] += 1
            table[entry + E_START] = start
            table[entry + E_END] = end
        found += table[entry + E_END] - table[entry + E_START]
    return found


@kernel
def _null(path: Words, slot: int, walk: Words) -> bool:
    """Whether the slot's row has a NULL where it may have none."""
    at = PATH_HEAD + SLOT_WORDS * slot
    first = path[at + V_NULLS]
    for k in range(path[at + V_NULL_COUNT]):
        if (_word(walk, path[first + 2 * k]) >> path[first + 2 * k + 1]) & 1 != 0:
            return True
    return False


@kernel
def _emit(path: Words, walk: Words, target: Words, time: int, diff: int) -> None:
    """Appends the row of all that is bound."""
    n = target[B_COUNT]
    row = target[B_ROWS] + 8 * target[B_WIDTH] * n
    first = path[G_WORDS]
    for k in range(path[G_WORDS + 1]):
        reference = path[first + k]
        store(row + 8 * k, 0 if reference < 0 else _word(walk, reference))
    first = path[G_BITS]
    for k in range(path[G_BITS + 1]):
        entry = first + 4 * k
        place = row + 8 * path[entry + 2]
        bit = (_word(walk, path[entry]) >> path[entry + 1]) & 1
        store(place, load(place) | (bit << path[entry + 3]))
    store(target[B_TIMES] + 8 * n, time)
    store(target[B_DIFFS] + 8 * n, diff)
    target[B_COUNT] = n + 1


@kernel
def _rewind(walk: Words, table: Words, slot: int) -> None:
    """Lets the search for proposed words begin again."""
    for m in range(walk[slot * WALK_WORDS + W_FIRST], walk[slot * WALK_WORDS + W_LAST]):
        table[m * ENTRY_WORDS + E_CURSOR] = table[m * ENTRY_WORDS + E_START]


@kernel
def _enter(path: Words, table: Words, walk: Words, kept: Words, d: int, stats: Words) -> bool:
    """Begins with the slot at place d; False when there is nothing. At a stage's first the slot with the fewest rows is
    put, which proposes; the others get the word that it proposes."""
    at = PATH_HEAD + SLOT_WORDS * d
    opener = path[at + V_FIRST]
    if opener == d:
        fewest = -1
        best = d
        for k in range(d, path[at + V_END]):
            walk[k * WALK_WORDS + W_SLOT] = k
            found = _find(path, table, walk, kept, k, stats)
            if found == 0:
                return False
            if fewest < 0 or found < fewest:
                fewest = found
                best = k
        walk[d * WALK_WORDS + W_SLOT] = best
        walk[best * WALK_WORDS + W_SLOT] = d
        for k in range(d + 1, path[at + V_END]):
            s = walk[k * WALK_WORDS + W_SLOT]
            walk[s * WALK_WORDS + W_PROPOSED] = 0
            _rewind(walk, table, s)
    s = walk[d * WALK_WORDS + W_SLOT]
    if opener != d:
        proposer = walk[opener * WALK_WORDS + W_SLOT]
        word = load(walk[proposer * WALK_WORDS + W_ROW] + 8 * path[PATH_HEAD + SLOT_WORDS * proposer + V_KEY_WIDTH])
        if word < walk[s * WALK_WORDS + W_PROPOSED]:
            _rewind(walk, table, s)
        walk[s * WALK_WORDS + W_PROPOSED] = word
    walk[d * WALK_WORDS + W_LAYER] = walk[s * WALK_WORDS + W_FIRST] - 1
    walk[d * WALK_WORDS + W_POSITION] = 0
    walk[d * WALK_WORDS + W_STOP] = 0
    return True


@kernel
def _next_layer(path: Words, table: Words, walk: Words, d: int, stats: Words) -> bool:
    """Goes on to the next layer with rows for the slot at place d, if there is one."""
    here = d * WALK_WORDS
    s = walk[here + W_SLOT]
    own = PATH_HEAD + SLOT_WORDS * s
    opening = path[PATH_HEAD + SLOT_WORDS * d + V_FIRST] == d
    for m in range(walk[here + W_LAYER] + 1, walk[s * WALK_WORDS + W_LAST]):
        entry = m * ENTRY_WORDS
        p = table[entry + E_START]
        stop = table[entry + E_END]
        if not opening:
            stride = 8 * path[own + V_WIDTH]
            column = table[entry + L_ROWS] + 8 * path[own + V_KEY_WIDTH]
            word = walk[s * WALK_WORDS + W_PROPOSED]
            p = _reach(column, stride, table[entry + E_CURSOR], stop, word)
            table[entry + E_CURSOR] = p
            last = p
            while last < stop and load(column + stride * last) == word:
                last += 1
            stop = last
            stats[S_SEEKS] += 1
        if p < stop:
            walk[here + W_LAYER] = m
            walk[here + W_POSITION] = p
            walk[here + W_STOP] = stop
            return True
    return False


@kernel
def delta_join(
    delta: Words, path: Words, sources: Words, out: Words, later: Words, state: Words, stats: Words, depth: int,
    vector: int, work: int,
) -> int:  # fmt: skip
    """Appends what the updates of ``delta`` from number ``state[0]`` on are part of, at the join of all times.

    What is at the loop vector ``vector`` goes to ``out``, the rest to ``later``. Returns both blocks' counts, the
    second shifted by 32 bits; FULL or LATER_FULL (nothing of the update ``state[0]`` has been emitted), or BUSY after
    about ``work`` seeks and rows. Cost: for each update the seeks of the stages' keys, and the rows bound.
    """
    slots = path[G_SLOTS]
    table = np.zeros(_entries(sources, slots) * ENTRY_WORDS, np.int64)
    walk = np.zeros(slots * WALK_WORDS, np.int64)
    kept = np.empty(path[G_KEYS] + 1, np.int64)
    _list_layers(sources, slots, table, walk)
    spent = stats[S_SEEKS] + stats[S_MATCHES]
    for i in range(state[0], delta[B_COUNT]):
        state[0] = i
        if stats[S_SEEKS] + stats[S_MATCHES] - spent > work:
            return BUSY
        walk[W_ROW] = delta[B_ROWS] + 8 * delta[B_WIDTH] * i
        walk[W_TIME] = load(delta[B_TIMES] + 8 * i)
        walk[W_DIFF] = load(delta[B_DIFFS] + 8 * i)
        if _null(path, 0, walk):
            continue
        had = out[B_COUNT]
        had_later = later[B_COUNT]
        d = 1 if _enter(path, table, walk, kept, 1, stats) else 0
        while d > 0:
            here = d * WALK_WORDS
            if walk[here + W_POSITION] >= walk[here + W_STOP] and not _next_layer(path, table, walk, d, stats):
                d -= 1
                continue
            s = walk[here + W_SLOT]
            entry = walk[here + W_LAYER] * ENTRY_WORDS
            p = walk[here + W_POSITION]
            walk[here + W_POSITION] = p + 1
            walk[s * WALK_WORDS + W_ROW] = table[entry + L_ROWS] + 8 * path[PATH_HEAD + SLOT_WORDS * s + V_WIDTH] * p
            stats[S_MATCHES] += 1
            if _null(path, s, walk):
                continue
            time = wrap(
                load(table[entry + L_TIMES] + table[entry + L_TIME_STRIDE] * p),
                sources[s * SOURCE_WORDS + R_DEPTH],
                depth,
            )
            time = lub(walk[here - WALK_WORDS + W_TIME], time, depth)
            diff = load(table[entry + L_DIFFS] + table[entry + L_DIFF_STRIDE] * p) * table[entry + L_SIGN]
            diff *= walk[here - WALK_WORDS + W_DIFF]
            if d + 1 < slots:
                walk[here + W_TIME] = time
                walk[here + W_DIFF] = diff
                if _enter(path, table, walk, kept, d + 1, stats):
                    d += 1
                continue
            now = depth == 0 or rounds(time, depth) == vector
            target = out if now else later
            if target[B_COUNT] >= target[B_ROOM]:
                out[B_COUNT] = had
                later[B_COUNT] = had_later
                return FULL if now else LATER_FULL
            _emit(path, walk, target, time, diff)
    state[0] = 0
    return int(out[B_COUNT] | later[B_COUNT] << 32)
