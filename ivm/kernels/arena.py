"""Kernels of the arena: find values by id, compare them.

An arena is told to kernels by a *descriptor*, int64[DESCRIPTOR_WORDS], that holds raw addresses; whoever calls keeps
the ``Arena`` alive. Its table has ``mask + 1`` slots (a power of two) of two words, open addressing with linear
probing on ``id >> 1``:

    id (0: free) | what it names: from the low bits on, the address of the bytes (48), their number (12), flags (3)

Where 12 bits are too few they are all ones, and the number stands in the word before the bytes.

Invariant: a slot's id is stored after its other word, and slots are never cleared or moved within a table, so that
readers need no lock (x86 keeps the order of stores); flags change under the writers' lock. A table that grows, or that
dead values leave, is followed by a new one: while slots move there a few at a time, new values come to it and readers
look in both. A scratch arena looks in its own table first, then in its parent's.

Flags: a *colour* that says whether a value was seen since a sweep began, *dead* (a sweep has found no reference; who
still has the id may look it up, interning the value again revives it), *reserved* (no value, but one that proposed this
id once lives under the proposal of a later round: it would be missed if another came to be here).

This file is what readers need; ``ivm.kernels.interning`` has what writers do and how ids are proposed.
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
"""A parent's table, mask, old table and mask stand at ``PARENT``."""
SLOT_WORDS: Final = 2
SLOT_BYTES: Final = 8 * SLOT_WORDS
NAMED: Final = 8
ADDRESS_BITS: Final = 48
ADDRESS_MASK: Final = (1 << ADDRESS_BITS) - 1
MANY: Final = (1 << 12) - 1
"""From so many bytes on, their number stands before them."""
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
    """Where the bytes of a slot's value are."""
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
    """Where each value's bytes start when packed, into ``offsets`` int64[n + 1]; returns how many ids are unknown."""
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
    """Copies the values' bytes to where ``measure`` put them."""
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
