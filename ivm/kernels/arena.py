"""Kernels of the arena: find values by id, compare them.

Kernels get an arena as a *descriptor*, int64[DESCRIPTOR_WORDS], of raw addresses; the caller keeps the ``Arena`` alive.
Its table has ``mask + 1`` slots (a power of two) of two words, open addressing with linear probing on ``id >> 1``:

    id (0: free) | what it names: from the low bits on, the address of the bytes (48), their number (12), flags (3)

A number that does not fit in 12 bits is stored in the word before the bytes, and the 12 bits are all ones.

Invariant: a slot's id is stored after its other word, and slots are never cleared or moved within a table, so that
readers need no lock (x86 keeps the order of stores); flags change under the writers' lock. When a table grows, or loses
its dead values, a new one follows it: slots move there a few at a time, while new values go to the new table and
readers search both. A scratch arena searches its own table first, then its parent's.

Flags: a *colour* that says whether a value was seen since a sweep began; *dead* (a sweep has found no reference;
readers that still have the id may look it up, and interning the value again revives it); *reserved* (no value has this
id, but one that proposed it lives under a later round's proposal and would not be found if another value took the id).

This file has the readers' kernels; ``ivm.kernels.interning`` has the writers', and how ids are proposed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.memory import Bytes, copy_bytes, load_byte, load_word, where_bytes
from ivm.rows import Words

TABLE: Final = 0
MASK: Final = 1
OLD: Final = 2
OLD_MASK: Final = 3
PARENT: Final = 4
DESCRIPTOR_WORDS: Final = 8
"""A parent's table, mask, old table and old mask are at ``PARENT``."""
SLOT_WORDS: Final = 2
SLOT_BYTES: Final = 8 * SLOT_WORDS
NAMED: Final = 8
ADDRESS_BITS: Final = 48
ADDRESS_MASK: Final = (1 << ADDRESS_BITS) - 1
MANY: Final = (1 << 12) - 1
"""From this many bytes on, their number is stored before them."""
COLOUR_FLAG: Final = 1 << 62
DEAD_FLAG: Final = 1 << 61
RESERVED_FLAG: Final = 1 << 60
FLAGS: Final = COLOUR_FLAG | DEAD_FLAG | RESERVED_FLAG


@kernel
def find_slot(table: int, mask: int, ident: int) -> int:
    """The address of an id's slot in a table, 0 if it has none."""
    if table == 0:
        return 0
    slot = (ident >> 1) & mask
    while True:
        at = table + slot * SLOT_BYTES
        held = load_word(at)
        if held == ident:
            return at
        if held == 0:
            return 0
        slot = (slot + 1) & mask


@kernel
def find_in(descriptor: Words, at: int, ident: int) -> int:
    """The address of an id's slot in one of an arena's two tables."""
    slot = find_slot(descriptor[at], descriptor[at + 1], ident)
    return slot if slot != 0 else find_slot(descriptor[at + 2], descriptor[at + 3], ident)


@kernel
def resolve(descriptor: Words, ident: int) -> int:
    """The address of an id's slot, in the arena or its parent, 0 if there is none."""
    slot = find_in(descriptor, TABLE, ident)
    return slot if slot != 0 else find_in(descriptor, PARENT, ident)


@kernel
def bytes_of(slot: int) -> int:
    """The address of a slot's bytes."""
    return load_word(slot + NAMED) & ADDRESS_MASK


@kernel
def length_of(slot: int) -> int:
    """How many bytes a slot's value has."""
    named = load_word(slot + NAMED)
    length = (named >> ADDRESS_BITS) & MANY
    if length == MANY:
        length = load_word((named & ADDRESS_MASK) - 8)
    return length


@kernel
def is_dead(slot: int) -> bool:
    return (load_word(slot + NAMED) & DEAD_FLAG) != 0


@kernel
def is_reserved(slot: int) -> bool:
    return (load_word(slot + NAMED) & RESERVED_FLAG) != 0


@kernel
def _ordered_word(address: int) -> int:
    """The eight bytes at an address as an int64 that orders as they do."""
    x = np.uint64(load_word(address))
    x = (x & np.uint64(0x00FF00FF00FF00FF)) << np.uint64(8) | (x >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    x = (x & np.uint64(0x0000FFFF0000FFFF)) << np.uint64(16) | (x >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    x = x << np.uint64(32) | x >> np.uint64(32)
    return np.int64(x ^ np.uint64(0x8000000000000000))  # type: ignore[return-value]


@kernel
def byte_prefix(address: int, length: int) -> int:
    """The first eight bytes (zeros after a shorter value) as an int64 that orders as they do."""
    if length >= 8:
        return _ordered_word(address)
    word = np.uint64(0)
    for at in range(length):
        word |= np.uint64(load_byte(address + at)) << np.uint64(56 - 8 * at)
    return np.int64(word ^ np.uint64(0x8000000000000000))  # type: ignore[return-value]


@kernel
def measure(descriptor: Words, ids: Words, offsets: Words) -> int:
    """Writes the offsets of the values' packed bytes to ``offsets`` int64[n + 1]. Returns how many ids are unknown."""
    total, unknown = np.int64(0), 0
    for i in range(len(ids)):
        offsets[i] = total
        slot = resolve(descriptor, ids[i])
        if slot == 0 or is_reserved(slot):
            unknown += 1
        else:
            total += length_of(slot)
    offsets[len(ids)] = total
    return unknown


@kernel
def gather(descriptor: Words, ids: Words, offsets: Words, data: Bytes) -> None:
    """Copies the values' bytes to the offsets from ``measure``."""
    base = where_bytes(data)
    for i in range(len(ids)):
        slot = resolve(descriptor, ids[i])
        copy_bytes(base + offsets[i], bytes_of(slot), offsets[i + 1] - offsets[i])


@kernel
def prefixes(descriptor: Words, ids: Words, out: Words) -> None:
    """The order-preserving prefix word of each id's bytes."""
    for i in range(len(ids)):
        slot = resolve(descriptor, ids[i])
        out[i] = byte_prefix(bytes_of(slot), length_of(slot))


@kernel
def compare_ids(descriptor: Words, a: int, b: int) -> int:
    """-1, 0 or 1 as the bytes of id ``a`` sort before, equal to or after those of ``b`` (memcmp, shorter first)."""
    if a == b:
        return 0
    left, right = resolve(descriptor, a), resolve(descriptor, b)
    assert left != 0, "an id that the arena does not have"
    assert right != 0, "an id that the arena does not have"
    left_length, right_length = length_of(left), length_of(right)
    left_bytes, right_bytes = bytes_of(left), bytes_of(right)
    both = min(left_length, right_length)
    whole = both & ~7
    for at in range(0, whole, 8):
        if load_word(left_bytes + at) != load_word(right_bytes + at):
            return -1 if _ordered_word(left_bytes + at) < _ordered_word(right_bytes + at) else 1
    for at in range(whole, both):
        x, y = load_byte(left_bytes + at), load_byte(right_bytes + at)
        if x != y:
            return -1 if x < y else 1
    if left_length == right_length:
        return 0
    return -1 if left_length < right_length else 1


@kernel
def compare_many(descriptor: Words, left: Words, right: Words, out: Words) -> None:
    """``compare_ids`` of each pair."""
    for i in range(len(out)):
        out[i] = compare_ids(descriptor, left[i], right[i])
