"""Kernels of the arena: intern bytes, find them by id, compare them.

An arena is told to kernels by a *descriptor*, int64[DESCRIPTOR_WORDS], that holds raw addresses; whoever calls keeps
the ``Arena`` alive. Its table has ``mask + 1`` slots (a power of two) of four words, open addressing with linear
probing on ``id >> 1``:

    id (0: free) | address of the bytes | length | prefix: the first eight bytes as an order-preserving int64

Invariant: a slot's id is stored after its other words, and slots are never cleared or moved within a table, so that
readers need no lock (x86 keeps the order of stores). A table that grows is a new table; readers of the old one see
what was there when they fetched it. A scratch arena looks in its own table first, then in its parent's.

Ids are SipHash-1-3 (Aumasson and Bernstein 2012) of the value under the database's secret, forced odd, the key changed
in each round: a value whose proposal is held by other bytes proposes again in the next round.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ivm.kernels.cache import kernel

Words = NDArray[np.int64]
Bytes = NDArray[np.uint8]

TABLE: Final = 0
MASK: Final = 1
PARENT_TABLE: Final = 2
PARENT_MASK: Final = 3
DESCRIPTOR_WORDS: Final = 4
USED: Final = 4
JOURNAL: Final = 5
JOURNAL_USED: Final = 6
JOURNAL_CAPACITY: Final = 7
CHUNK: Final = 8
CHUNK_USED: Final = 9
CHUNK_CAPACITY: Final = 10
KEY0: Final = 11
KEY1: Final = 12
ID_MASK: Final = 13
STATE_WORDS: Final = 14
SLOT_BYTES: Final = 32

_WORD = ir.IntType(64)
_RAW_COPY: Any = cgutils.raw_memcpy


def _load_word(_typing: Any, _address: Any) -> Any:
    """The int64 at an address, which need not be aligned."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], _WORD.as_pointer()), align=1)

    return types.int64(types.int64), codegen


def _store_word(_typing: Any, _address: Any, _value: Any) -> Any:
    """Stores an int64 at an aligned address."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        builder.store(args[1], builder.inttoptr(args[0], _WORD.as_pointer()), align=8)
        return _context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


def _load_byte(_typing: Any, _address: Any) -> Any:
    """The byte at an address as an int64."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        byte = builder.load(builder.inttoptr(args[0], ir.IntType(8).as_pointer()))
        return builder.zext(byte, _WORD)

    return types.int64(types.int64), codegen


def _copy_bytes(_typing: Any, _target: Any, _source: Any, _length: Any) -> Any:
    """memcpy between addresses."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        target_pointer, source_pointer = (builder.inttoptr(a, pointer) for a in args[:2])
        _RAW_COPY(builder, target_pointer, source_pointer, args[2], 1)
        return _context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


load_word: Any = intrinsic(_load_word)
store_word: Any = intrinsic(_store_word)
load_byte: Any = intrinsic(_load_byte)
copy_bytes: Any = intrinsic(_copy_bytes)


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
def byte_prefix(address: int, length: int) -> int:
    """The first eight bytes (zeros after a shorter value) as an int64 that orders as they do."""
    word = np.uint64(0)
    for at in range(min(length, 8)):
        word |= np.uint64(load_byte(address + at)) << np.uint64(56 - 8 * at)
    return np.int64(word ^ np.uint64(0x8000000000000000))  # type: ignore[return-value]


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
def resolve(descriptor: Words, ident: int) -> int:
    """The address of an id's slot, in the arena or its parent, 0 if there is none."""
    at = find_slot(descriptor[TABLE], descriptor[MASK], ident)
    if at == 0:
        at = find_slot(descriptor[PARENT_TABLE], descriptor[PARENT_MASK], ident)
    return at


@kernel
def _holds(slot: int, address: int, length: int) -> bool:
    length_held: int = load_word(slot + 16)
    return length_held == length and _equal_bytes(load_word(slot + 8), address, length)


@kernel
def _has_room(state: Words, length: int) -> bool:
    if (state[USED] + 1) * 3 > (state[MASK] + 1) * 2 or state[JOURNAL_USED] >= state[JOURNAL_CAPACITY]:
        return False
    return bool(state[CHUNK_USED] + length <= state[CHUNK_CAPACITY])


@kernel
def _put(table: int, mask: int, ident: int, address: int, length: int, prefix: int) -> None:
    slot = (ident >> 1) & mask
    while load_word(table + slot * SLOT_BYTES) != 0:
        slot = (slot + 1) & mask
    at = table + slot * SLOT_BYTES
    store_word(at + 8, address)
    store_word(at + 16, length)
    store_word(at + 24, prefix)
    store_word(at, ident)


@kernel
def _insert(state: Words, ident: int, address: int, length: int) -> None:
    target = state[CHUNK] + state[CHUNK_USED]
    copy_bytes(target, address, length)
    state[CHUNK_USED] += length
    _put(state[TABLE], state[MASK], ident, target, length, byte_prefix(target, length))
    state[USED] += 1
    store_word(state[JOURNAL] + state[JOURNAL_USED] * 8, ident)
    state[JOURNAL_USED] += 1


@kernel
def intern_values(state: Words, data: Bytes, offsets: Words, ids: Words, start: int) -> int:
    """Writes the ids of values ``start``.. into ``ids``, adding values that are new.

    Value i is ``data[offsets[i]:offsets[i+1]]``. Returns how far it came: less than ``len(ids)`` when the value
    there needs room that the table, the journal or the chunk does not have.
    """
    base = np.int64(data.ctypes.data)
    for i in range(start, len(ids)):
        address, length = base + offsets[i], offsets[i + 1] - offsets[i]
        turn = 0
        while True:
            ident = (sip_hash(address, length, state[KEY0] ^ turn, state[KEY1]) & state[ID_MASK]) | 1
            slot = resolve(state, ident)
            if slot == 0:
                if not _has_room(state, length):
                    return i
                _insert(state, ident, address, length)
                break
            if _holds(slot, address, length):
                break
            turn += 1
        ids[i] = ident
    return len(ids)


@kernel
def load_values(state: Words, data: Bytes, offsets: Words, ids: Words, start: int) -> int:
    """Adds values under given ids, as ``intern_values`` does; -1 - i if value i's id is held by other bytes."""
    base = np.int64(data.ctypes.data)
    for i in range(start, len(ids)):
        address, length = base + offsets[i], offsets[i + 1] - offsets[i]
        slot = resolve(state, ids[i])
        if slot == 0:
            if not _has_room(state, length):
                return i
            _insert(state, ids[i], address, length)
        elif not _holds(slot, address, length):
            return -1 - i
    return len(ids)


@kernel
def rehash(old: int, old_mask: int, new: int, new_mask: int) -> None:
    """Copies the slots of a table into an empty, larger one."""
    for slot in range(old_mask + 1):
        at = old + slot * SLOT_BYTES
        if load_word(at) != 0:
            _put(new, new_mask, load_word(at), load_word(at + 8), load_word(at + 16), load_word(at + 24))


@kernel
def measure(descriptor: Words, ids: Words, offsets: Words) -> int:
    """Where each value's bytes start when packed, into ``offsets`` int64[n + 1]; returns how many ids are unknown."""
    total, unknown = np.int64(0), 0
    for i in range(len(ids)):
        offsets[i] = total
        slot = resolve(descriptor, ids[i])
        if slot == 0:
            unknown += 1
        else:
            total += load_word(slot + 16)
    offsets[len(ids)] = total
    return unknown


@kernel
def gather(descriptor: Words, ids: Words, offsets: Words, data: Bytes) -> None:
    """Copies the values' bytes to where ``measure`` put them."""
    base = np.int64(data.ctypes.data)
    for i in range(len(ids)):
        slot = resolve(descriptor, ids[i])
        copy_bytes(base + offsets[i], load_word(slot + 8), offsets[i + 1] - offsets[i])


@kernel
def prefixes(descriptor: Words, ids: Words, out: Words) -> None:
    """The order-preserving prefix word of each id's bytes."""
    for i in range(len(ids)):
        out[i] = load_word(resolve(descriptor, ids[i]) + 24)


@kernel
def compare_ids(descriptor: Words, a: int, b: int) -> int:
    """-1, 0 or 1 as the bytes of id ``a`` sort before, equal to or after those of ``b`` (memcmp, shorter first)."""
    if a == b:
        return 0
    left, right = resolve(descriptor, a), resolve(descriptor, b)
    assert left != 0, "an id that the arena does not have"
    assert right != 0, "an id that the arena does not have"
    left_prefix, right_prefix = load_word(left + 24), load_word(right + 24)
    if left_prefix != right_prefix:
        return -1 if left_prefix < right_prefix else 1
    left_length, right_length = load_word(left + 16), load_word(right + 16)
    left_bytes, right_bytes = load_word(left + 8), load_word(right + 8)
    for at in range(8, min(left_length, right_length)):
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
