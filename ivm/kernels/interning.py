"""Kernels of the arena's writers: intern bytes, move tables, mark used values, drop unused ones.

``ivm.kernels.arena`` describes layout and flags. ``state`` is int64[STATE_WORDS], the descriptor first; the caller
holds the arena's lock unless stated otherwise.

Ids are SipHash-1-3 (Aumasson and Bernstein 2012) of the value under the database's secret, forced odd, the key changed
in each round: a value whose proposed id belongs to other bytes proposes again in the next round.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.arena import (
    ADDRESS_BITS,
    COLOUR_FLAG,
    DEAD_FLAG,
    FLAGS,
    MANY,
    MASK,
    NAMED,
    OLD,
    OLD_MASK,
    PARENT,
    RESERVED_FLAG,
    SLOT_BYTES,
    TABLE,
    bytes_of,
    find_in,
    find_slot,
    is_dead,
    is_reserved,
    length_of,
    resolve,
)  # fmt: skip
from ivm.kernels.cache import kernel
from ivm.kernels.memory import Bytes, copy_bytes, load_byte, load_word, prefetch, store_word, where_bytes
from ivm.rows import Words

USED: Final = 8
JOURNAL: Final = 9
JOURNAL_USED: Final = 10
JOURNAL_CAPACITY: Final = 11
CHUNK: Final = 12
CHUNK_USED: Final = 13
CHUNK_CAPACITY: Final = 14
KEY0: Final = 15
KEY1: Final = 16
ID_MASK: Final = 17
COLOUR: Final = 18
DEAD_COUNT: Final = 19
RESERVED_COUNT: Final = 20
OLD_AT: Final = 21
"""The next slot of the old table to move."""
DROPPING: Final = 22
"""Whether dead values stay behind in the old table."""
LEFT: Final = 23
"""The address of the sorted list of address ranges (begin, end) whose bytes move too; ``LEFT + 1``: their number."""
STATE_WORDS: Final = 25
MOVED_WITH_EACH: Final = 6
"""Slots that move with every new value while there are two tables, so that a table of twice the size is never full
before all have moved."""
MOST_ROUNDS: Final = 1 << 12
AHEAD: Final = 16
"""Values whose slots are prefetched before the first of them is looked up, so that cache misses overlap."""
NUMBER_BYTES: Final = 16
"""The most bytes that a long value's length takes before it, including alignment."""


@kernel
def _rotate(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@kernel
def _sip_round(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    v0 += v1
    v2 += v3
    v1 = _rotate(v1, 13) ^ v0
    v3 = _rotate(v3, 16) ^ v2
    v0 = _rotate(v0, 32)
    v2 += v1
    v0 += v3
    v1 = _rotate(v1, 17) ^ v2
    v3 = _rotate(v3, 21) ^ v0
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@kernel
def sip_hash(address: int, length: int, key0: int, key1: int) -> int:
    """SipHash-1-3 of the bytes at an address, as an int64."""
    k0, k1 = np.uint64(key0), np.uint64(key1)
    v0 = k0 ^ np.uint64(0x736F6D6570736575)
    v1 = k1 ^ np.uint64(0x646F72616E646F6D)
    v2 = k0 ^ np.uint64(0x6C7967656E657261)
    v3 = k1 ^ np.uint64(0x7465646279746573)
    whole = length & ~7
    for at in range(0, whole, 8):
        word = np.uint64(load_word(address + at))
        v3 ^= word
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
        v0 ^= word
    last = np.uint64(length & 255) << np.uint64(56)
    for at in range(whole, length):
        last |= np.uint64(load_byte(address + at)) << np.uint64((at - whole) * 8)
    v3 ^= last
    v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    v0 ^= last
    v2 ^= np.uint64(0xFF)
    for _ in range(3):
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
    return np.int64(v0 ^ v1 ^ v2 ^ v3)  # type: ignore[return-value]


@kernel
def _equal_bytes(a: int, b: int, length: int) -> bool:
    whole = length & ~7
    for at in range(0, whole, 8):
        if load_word(a + at) != load_word(b + at):
            return False
    for at in range(whole, length):  # noqa: SIM110 (numba compiles no generators in all())
        if load_byte(a + at) != load_byte(b + at):
            return False
    return True


@kernel
def _holds(slot: int, address: int, length: int) -> bool:
    if is_reserved(slot) or length_of(slot) != length:
        return False
    return _equal_bytes(bytes_of(slot), address, length)


@kernel
def _fits(state: Words, length: int) -> bool:
    """Whether the chunk has room for ``length`` bytes."""
    number = NUMBER_BYTES if length >= MANY else 0
    return bool(state[CHUNK_USED] + number + length <= state[CHUNK_CAPACITY])


@kernel
def _has_room(state: Words, length: int) -> bool:
    if (state[USED] + 1) * 3 > (state[MASK] + 1) * 2 or state[JOURNAL_USED] >= state[JOURNAL_CAPACITY]:
        return False
    return _fits(state, length)


@kernel
def _put(state: Words, ident: int, named: int) -> None:
    """Fills the id's slot in the table: a free or a reserved one."""
    at = find_slot(state[TABLE], state[MASK], ident)
    if at == 0:
        slot = (ident >> 1) & state[MASK]
        while load_word(state[TABLE] + slot * SLOT_BYTES) != 0:
            slot = (slot + 1) & state[MASK]
        at = state[TABLE] + slot * SLOT_BYTES
        state[USED] += 1
    else:
        state[RESERVED_COUNT] -= 1
    store_word(at + NAMED, named)
    store_word(at, ident)


@kernel
def _note(state: Words, ident: int) -> None:
    """Appends an id to the journal, which has room."""
    store_word(state[JOURNAL] + state[JOURNAL_USED] * 8, ident)
    state[JOURNAL_USED] += 1


@kernel
def _copied(state: Words, address: int, length: int) -> int:
    """Copies the bytes to the end of the chunk, which has room. Returns the slot's second word, without flags."""
    target = state[CHUNK] + state[CHUNK_USED]
    if length >= MANY:
        target = ((target + 7) & ~7) + 8
        store_word(target - 8, length)
    copy_bytes(target, address, length)
    state[CHUNK_USED] = target + length - state[CHUNK]
    return target | min(length, MANY) << ADDRESS_BITS  # type: ignore[no-any-return]


@kernel
def _insert(state: Words, ident: int, address: int, length: int) -> None:
    _put(state, ident, _copied(state, address, length) | state[COLOUR])
    _note(state, ident)
    if state[OLD] != 0:
        move_slots(state, MOVED_WITH_EACH)


@kernel
def _reserve(state: Words, ident: int) -> None:
    """Reserves an id permanently, unless a value has it."""
    if find_slot(state[TABLE], state[MASK], ident) != 0:
        return
    if state[OLD] != 0:
        old = find_slot(state[OLD], state[OLD_MASK], ident)
        if old != 0 and not is_dead(old) and not is_reserved(old):
            return  # that value will move here itself
    state[RESERVED_COUNT] += 1
    _put(state, ident, RESERVED_FLAG)


@kernel
def propose(state: Words, address: int, length: int, turn: int) -> int:
    """The id that a value proposes in a round."""
    return (sip_hash(address, length, state[KEY0] ^ turn, state[KEY1]) & state[ID_MASK]) | 1  # type: ignore[no-any-return]


@kernel
def _turn_of(state: Words, ident: int, address: int, length: int) -> int:
    """The round in which a value proposes an id; also 0 if it never does, as with ids not made by this scheme."""
    for turn in range(MOST_ROUNDS):
        if propose(state, address, length, turn) == ident:
            return turn
    return 0


@kernel
def _reserve_earlier(state: Words, ident: int, address: int, length: int) -> None:
    """Reserves the ids that a value proposed before the one it has."""
    for turn in range(_turn_of(state, ident, address, length)):
        _reserve(state, propose(state, address, length, turn))


@kernel
def _leaves(state: Words, address: int) -> bool:
    """Whether the bytes at an address lie in a chunk to be retired."""
    ranges, low, high = state[LEFT], np.int64(0), state[LEFT + 1]
    while low < high:
        middle = (low + high) >> 1
        if load_word(ranges + middle * 16 + 8) <= address:
            low = middle + 1
        else:
            high = middle
    return low < state[LEFT + 1] and load_word(ranges + low * 16) <= address


@kernel
def move_slots(state: Words, count: int) -> int:
    """Moves the next slots of the old table. Returns 0, or the bytes for the next value if the chunk lacks room."""
    stop = min(state[OLD_AT] + count, state[OLD_MASK] + 1)
    while state[OLD_AT] < stop:
        at = state[OLD] + state[OLD_AT] * SLOT_BYTES
        ident, named = load_word(at), load_word(at + NAMED)
        gone = ident == 0 or (state[DROPPING] != 0 and (named & (RESERVED_FLAG | DEAD_FLAG)) != 0)
        taken = 0 if gone else find_slot(state[TABLE], state[MASK], ident)
        if not gone and (taken == 0 or is_reserved(taken)):
            if state[DROPPING] != 0:
                address, length = bytes_of(at), length_of(at)
                if _leaves(state, address):
                    if not _fits(state, length):
                        return length
                    named = _copied(state, address, length) | (named & FLAGS)
                _reserve_earlier(state, ident, address, length)
            _put(state, ident, named)
            state[USED] -= 1  # already counted in the old table, as was a reserved slot
        state[OLD_AT] += 1
    return 0


@kernel
def _see(state: Words, ident: int, slot: int) -> None:
    """Marks a value of this arena as used: gives it the present colour, and revives it. The journal has room."""
    named = load_word(slot + NAMED)
    if (named & DEAD_FLAG) != 0:
        state[DEAD_COUNT] -= 1
        _note(state, ident)
    store_word(slot + NAMED, (named & ~(COLOUR_FLAG | DEAD_FLAG)) | state[COLOUR])


@kernel
def _is_seen(state: Words, slot: int) -> bool:
    return (load_word(slot + NAMED) & (COLOUR_FLAG | DEAD_FLAG)) == state[COLOUR]  # type: ignore[no-any-return]


@kernel
def _stays_behind(state: Words, slot: int) -> bool:
    """Whether a slot belongs to a dead value that will not move to the new table."""
    return state[DROPPING] != 0 and is_dead(slot)


@kernel
def _try_id(state: Words, ident: int, address: int, length: int) -> int:
    """The outcome of a proposal: 1 it is the value's id, 0 it is free for it, -1 it is another's, -2 room is needed
    first."""
    slot = find_slot(state[TABLE], state[MASK], ident)
    if slot == 0 and state[OLD] != 0:
        slot = find_slot(state[OLD], state[OLD_MASK], ident)
        if slot != 0 and _stays_behind(state, slot):
            if _holds(slot, address, length):
                return 0
            if not _has_room(state, 0):
                return -2
            _reserve(state, ident)  # a living value may have proposed this id and gone on
            return -1
    if slot != 0:
        if not _holds(slot, address, length):
            return -1
        if not _is_seen(state, slot):
            if state[JOURNAL_USED] >= state[JOURNAL_CAPACITY]:
                return -2
            _see(state, ident, slot)
        return 1
    slot = find_in(state, PARENT, ident)
    if slot == 0:
        return 0
    if not _holds(slot, address, length):
        return -1
    return 0 if is_dead(slot) else 1


@kernel
def _propose_some(state: Words, base: int, offsets: Words, ids: Words, start: int) -> int:
    """Writes the next values' first proposals to ``ids``, and prefetches their slots. Returns where it stopped."""
    stop = min(start + AHEAD, len(ids))
    for i in range(start, stop):
        ids[i] = propose(state, base + offsets[i], offsets[i + 1] - offsets[i], 0)
        slot = ids[i] >> 1
        prefetch(state[TABLE] + (slot & state[MASK]) * SLOT_BYTES)
        if state[OLD] != 0:
            prefetch(state[OLD] + (slot & state[OLD_MASK]) * SLOT_BYTES)
    return stop


@kernel
def intern_values(state: Words, data: Bytes, offsets: Words, ids: Words, start: int) -> int:
    """Writes the ids of values ``start``.. into ``ids``, adding values that are new.

    Value i is ``data[offsets[i]:offsets[i+1]]``. Returns the index reached: less than ``len(ids)`` if the value there
    needs room that the table, the journal or the chunk does not have.
    """
    base = where_bytes(data)
    proposed = start
    for i in range(start, len(ids)):
        if i == proposed:
            proposed = _propose_some(state, int(base), offsets, ids, i)
        address, length = base + offsets[i], offsets[i + 1] - offsets[i]
        turn = 0
        ident = ids[i]
        found = _try_id(state, ident, address, length)
        while found == -1:
            turn += 1
            ident = propose(state, address, length, turn)
            found = _try_id(state, ident, address, length)
        if found == -2 or (found == 0 and not _has_room(state, length)):
            return i
        if found == 0:
            _insert(state, ident, address, length)
        ids[i] = ident
    return len(ids)


@kernel
def load_values(state: Words, data: Bytes, offsets: Words, ids: Words, start: int) -> int:
    """Adds values under given ids, as ``intern_values`` does; -1 - i if value i's id is held by other bytes."""
    base = where_bytes(data)
    for i in range(start, len(ids)):
        address, length = base + offsets[i], offsets[i + 1] - offsets[i]
        slot = resolve(state, ids[i])
        if slot == 0 or is_reserved(slot):
            if not _has_room(state, length):
                return i
            if propose(state, address, length, 0) != ids[i]:
                if (state[USED] + 65) * 3 > (state[MASK] + 1) * 2:
                    return i
                _reserve_earlier(state, ids[i], address, length)
            _insert(state, ids[i], address, length)
        elif not _holds(slot, address, length):
            return -1 - i
    return len(ids)


@kernel
def see_words(state: Words, words: Words, start: int) -> int:
    """Marks the values of ids among the words as used, and revives dead ones. Returns the index reached, less than the
    number of words if room is needed first."""
    for i in range(start, len(words)):
        ident = words[i]
        if (ident & 1) == 0:
            continue
        slot = find_in(state, TABLE, ident)
        if slot == 0 or is_reserved(slot) or _is_seen(state, slot):
            continue
        length = length_of(slot)
        if not _has_room(state, length):
            return i
        if _stays_behind(state, slot) and find_slot(state[TABLE], state[MASK], ident) == 0:
            _insert(state, ident, bytes_of(slot), length)
        else:
            _see(state, ident, slot)
    return len(words)


@kernel
def unseen(descriptor: Words, colour: int, words: Words, out: Words) -> int:
    """Writes to ``out`` the words that are ids of values not of this colour. Returns how many. Needs no lock."""
    count = 0
    for i in range(len(words)):
        ident = words[i]
        if (ident & 1) != 0:
            slot = find_in(descriptor, TABLE, ident)
            if slot != 0 and (load_word(slot + NAMED) & (COLOUR_FLAG | DEAD_FLAG)) != colour:
                out[count] = ident
                count += 1
    return count


@kernel
def condemn(state: Words, start: int, stop: int, out: Words) -> int:
    """Declares dead the values in slots start … stop-1 without the present colour. Writes their ids to ``out``; returns
    how many."""
    count = 0
    for slot in range(start, stop):
        at = state[TABLE] + slot * SLOT_BYTES
        ident, named = load_word(at), load_word(at + NAMED)
        if ident == 0 or (named & (RESERVED_FLAG | DEAD_FLAG)) != 0 or (named & COLOUR_FLAG) == state[COLOUR]:
            continue
        store_word(at + NAMED, named | DEAD_FLAG)
        state[DEAD_COUNT] += 1
        out[count] = ident
        count += 1
    return count


@kernel
def keep_living(descriptor: Words, ids: Words, out: Words) -> int:
    """Writes to ``out`` the indexes in ``ids`` of those that are not dead. Returns how many. Needs no lock."""
    count = 0
    for i in range(len(ids)):
        slot = find_in(descriptor, TABLE, ids[i])
        if slot != 0 and (load_word(slot + NAMED) & (DEAD_FLAG | RESERVED_FLAG)) == 0:
            out[count] = i
            count += 1
    return count


@kernel
def weigh(table: int, start: int, stop: int, ranges: Words, sizes: Words) -> None:
    """Adds the sizes of living values in slots start … stop-1 to ``sizes`` of the range that contains their bytes;
    ``ranges`` int64[2n]: begin and end of each, sorted."""
    for slot in range(start, stop):
        at = table + slot * SLOT_BYTES
        if load_word(at) == 0 or (load_word(at + NAMED) & (RESERVED_FLAG | DEAD_FLAG)) != 0:
            continue
        address, low, high = bytes_of(at), 0, len(sizes)
        while low < high:
            middle = (low + high) >> 1
            if ranges[2 * middle + 1] <= address:
                low = middle + 1
            else:
                high = middle
        if low < len(sizes):
            sizes[low] += length_of(at)
