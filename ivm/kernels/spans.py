"""Spans: a slot of a delta join's path that takes a range of its key's rows, and of these those that reach far enough.

Of the rows that begin with the slot's key, the next word lies between two bounds, and the word after that is not less
than a third (or is greater). Intervals with their start behind the key and their end behind the start are so found by
what they contain or overlap. Where they start is a range of the sorted rows; of these, ``ivm.kernels.peaks`` finds
those that end late enough.
"""

from __future__ import annotations

from typing import Final

from ivm.kernels.cache import kernel
from ivm.kernels.join import S_SEEKS
from ivm.kernels.memory import FENCE, L_COUNT, L_FENCE, L_ROWS
from ivm.kernels.path import (
    E_END,
    E_PEAKS,
    E_START,
    ENTRY_WORDS,
    PATH_HEAD,
    SLOT_WORDS,
    V_KEPT,
    V_KEY,
    V_KEY_WIDTH,
    V_LOWER,
    V_REACH,
    V_SPAN,
    V_STRICT,
    V_UPPER,
    V_WIDTH,
    W_FIRST,
    W_LAST,
    W_SOUGHT,
    WALK_WORDS,
    end_of,
    get,
    put,
    word_of,
)  # fmt: skip
from ivm.kernels.peaks import climb, extend_peaks
from ivm.kernels.seek import lacks, seek

_UNSUMMED: Final = 8 * FENCE
"""Layers without peaks get some for a call from this many rows on."""
_LEAST: Final = -(2**63)
_GREATEST: Final = 2**63 - 1


@kernel
def sum_up(path: int, slots: int, table: int, walk: int, peaks: int) -> int:
    """How many words the peaks of the large layers take that have none and need them; filled in at ``peaks`` if that is
    not 0."""
    room = 0
    for s in range(1, slots):
        at = PATH_HEAD + SLOT_WORDS * s
        if get(path, at + V_SPAN) == 0 or get(path, at + V_REACH) < 0:
            continue
        width = get(path, at + V_WIDTH)
        word = get(path, at + V_KEY_WIDTH) + 1
        for k in range(get(walk, s * WALK_WORDS + W_FIRST), get(walk, s * WALK_WORDS + W_LAST)):
            entry = k * ENTRY_WORDS
            count = get(table, entry + L_COUNT)
            if get(table, entry + E_PEAKS) != 0 or count < _UNSUMMED:
                continue
            if peaks != 0:
                extend_peaks(get(table, entry + L_ROWS), width, word, count, peaks + 8 * room, 1)
                put(table, entry + E_PEAKS, peaks + 8 * room)
            room += count // FENCE + 1
    return room


@kernel
def find_span(path: int, table: int, walk: int, kept: int, slot: int, stats: int) -> int:
    """``_find`` of a slot with a span, whose words to reach are not looked at yet. The search for a key and lower bound
    that are not less than the last ones starts there."""
    at = PATH_HEAD + SLOT_WORDS * slot
    own = slot * WALK_WORDS
    width = get(path, at + V_WIDTH)
    key_width = get(path, at + V_KEY_WIDTH)
    place = get(path, at + V_KEPT)
    strict = get(path, at + V_STRICT)
    fresh = get(walk, own + W_SOUGHT) == 0
    back = False
    on = fresh
    for k in range(key_width):
        word = word_of(walk, get(path, get(path, at + V_KEY) + k))
        if not on and word != get(kept, place + k):
            on = True
            back = word < get(kept, place + k)
        put(kept, place + k, word)
    put(walk, own + W_SOUGHT, 1)
    lower = _LEAST
    upper = _GREATEST
    least = _LEAST
    nothing = False
    if get(path, at + V_LOWER) >= 0:
        lower = word_of(walk, get(path, at + V_LOWER))
        if strict & 1 != 0:
            nothing |= lower == _GREATEST
            lower += 1
    if get(path, at + V_UPPER) >= 0:
        upper = word_of(walk, get(path, at + V_UPPER))
        if strict & 2 != 0:
            nothing |= upper == _LEAST
            upper -= 1
    if get(path, at + V_REACH) >= 0:
        least = word_of(walk, get(path, at + V_REACH))
        if strict & 4 != 0:
            nothing |= least == _GREATEST
            least += 1
    nothing |= lower > upper
    if nothing:
        put(walk, own + W_SOUGHT, 0)
        return 0
    if not on and lower < get(kept, place + key_width + 1):
        back = True
    put(kept, place + key_width + 1, lower)
    put(kept, place + key_width + 2, least)
    key = kept + 8 * place
    found = 0
    for k in range(get(walk, own + W_FIRST), get(walk, own + W_LAST)):
        entry = k * ENTRY_WORDS
        start = 0 if fresh or back else get(table, entry + E_START)
        end = start
        if not lacks(table + 8 * entry, key, key_width):
            rows = get(table, entry + L_ROWS)
            total = get(table, entry + L_COUNT)
            fence = get(table, entry + L_FENCE)
            put(kept, place + key_width, lower)
            start = seek(rows, total, width, fence, start, key, key_width + 1, 0)
            if upper == _GREATEST:
                end = end_of(rows, total, width, start, key, key_width)
            else:
                put(kept, place + key_width, upper + 1)
                end = seek(rows, total, width, fence, start, key, key_width + 1, 0)
            put(stats, S_SEEKS, get(stats, S_SEEKS) + 2)
        put(table, entry + E_START, start)
        put(table, entry + E_END, end)
        found += end - start
    return found


@kernel
def reaching(
    path: int, table: int, walk: int, kept: int, slot: int, entry: int, start: int, stop: int, stats: int
) -> int:  # fmt: skip
    """The first of a layer's rows start … stop-1 that reaches as far as the slot's span asks, or ``stop``."""
    at = PATH_HEAD + SLOT_WORDS * slot
    key_width = get(path, at + V_KEY_WIDTH)
    least = get(kept, get(path, at + V_KEPT) + key_width + 2)
    put(stats, S_SEEKS, get(stats, S_SEEKS) + 1)
    return int(
        climb(
            get(table, entry + L_ROWS), get(path, at + V_WIDTH), key_width + 1, get(table, entry + L_COUNT),
            get(table, entry + E_PEAKS), start, stop, least,
        )
    )  # fmt: skip
