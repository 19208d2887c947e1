"""The layout of a path of a delta join and of the walk along it, for ``ivm.kernels.delta_join``."""

from __future__ import annotations

from typing import Final

from ivm.kernels.cache import kernel
from ivm.kernels.memory import LAYER_WORDS, load, store
from ivm.kernels.order import compare

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
# how many, its list of (reference, bit) that must not be set and how many, and where its key is kept. Its span: whether
# it has one, the references of its bounds (-1: none), and which of them exclude equal words: 1, 2 and 4.
V_FIRST: Final = 0
V_END: Final = 1
V_WIDTH: Final = 2
V_KEY: Final = 3
V_KEY_WIDTH: Final = 4
V_NULLS: Final = 5
V_NULL_COUNT: Final = 6
V_KEPT: Final = 7
V_SPAN: Final = 8
V_LOWER: Final = 9
V_UPPER: Final = 10
V_REACH: Final = 11
V_STRICT: Final = 12
SLOT_WORDS: Final = 13
SPAN_KEPT: Final = 3
"""The words kept behind the key of a slot with a span: room for a bound while it is sought, the lower bound last
sought, and the least word to reach."""
SLOT_SHIFT: Final = 16

# What a slot reads in a pass: the address of its trace's cell, the shape of the trace's loops, the address of the block
# to subtract, or 0, and the address of the cell that holds the address of the peaks of each layer (0: it reads none).
R_CELL: Final = 0
R_SHAPE: Final = 1
R_MINUS: Final = 2
R_PEAKS: Final = 3
SOURCE_WORDS: Final = 4

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
# search for proposed words has come, the address of its peaks or 0.
E_START: Final = LAYER_WORDS
E_END: Final = LAYER_WORDS + 1
E_CURSOR: Final = LAYER_WORDS + 2
E_PEAKS: Final = LAYER_WORDS + 3
ENTRY_WORDS: Final = LAYER_WORDS + 4
# In kernels, paths, sources, tables, walks, kept keys and counts are addresses: calls then pass a few registers.


@kernel
def get(array: int, index: int) -> int:
    return load(array + 8 * index)


@kernel
def put(array: int, index: int, value: int) -> None:
    store(array + 8 * index, value)


@kernel
def word_of(walk: int, reference: int) -> int:
    """A word of a bound row."""
    return load(get(walk, (reference >> SLOT_SHIFT) * WALK_WORDS + W_ROW) + 8 * (reference & ((1 << SLOT_SHIFT) - 1)))


@kernel
def end_of(rows: int, total: int, width: int, start: int, key: int, key_width: int) -> int:
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
