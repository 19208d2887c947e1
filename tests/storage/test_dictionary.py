"""Interning: ids are stable, found by value, equal in every process; collisions are resolved in rounds."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivm.errors import SqlError
from ivm.kernels import arena as kernels
from ivm.sweep import Sweep
from storage.dictionary import Dictionary
from tests.support.profiles import scaled

SECRET = bytes(range(16))
VALUES = st.lists(st.binary(max_size=40) | st.binary(min_size=0, max_size=3), max_size=60)
PREFIXES = (b"", b"seven..", b"eight...", b"sixteen bytes...", b"seventeen bytes..")


def packed(values: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    return np.frombuffer(b"".join(values), np.uint8).copy(), offsets


def sip_hash_twin(key: bytes, data: bytes) -> int:
    """SipHash-1-3 by the paper, in Python integers."""
    mask = 2**64 - 1
    k0, k1 = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rotate(x: int, bits: int) -> int:
        return ((x << bits) | (x >> (64 - bits))) & mask

    def turn() -> None:
        v[0] = (v[0] + v[1]) & mask
        v[2] = (v[2] + v[3]) & mask
        v[1], v[3] = rotate(v[1], 13) ^ v[0], rotate(v[3], 16) ^ v[2]
        v[0] = rotate(v[0], 32)
        v[2], v[0] = (v[2] + v[1]) & mask, (v[0] + v[3]) & mask
        v[1], v[3] = rotate(v[1], 17) ^ v[2], rotate(v[3], 21) ^ v[0]
        v[2] = rotate(v[2], 32)

    whole = len(data) // 8 * 8
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, whole, 8)]
    words.append(int.from_bytes(data[whole:], "little") | (len(data) & 255) << 56)
    for word in words:
        v[3] ^= word
        turn()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(3):
        turn()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


@given(VALUES)
def test_lookup_inverts_intern(values: list[bytes]) -> None:
    dictionary = Dictionary(SECRET)
    ids = dictionary.intern(values)
    assert dictionary.lookup(ids) == values
    assert all(i & 1 for i in ids.tolist())
    assert len(set(ids.tolist())) == len(set(values))
    assert (dictionary.intern_packed(*packed(values)) == ids).all()
    data, offsets = dictionary.packed(ids)
    assert data.tobytes() == b"".join(values)
    assert offsets.tolist() == np.cumsum([0, *map(len, values)]).tolist()


@given(st.binary(min_size=16, max_size=16), st.lists(st.binary(max_size=40), max_size=20, unique=True))
@settings(max_examples=scaled(40))
def test_ids_are_keyed_hashes(secret: bytes, values: list[bytes]) -> None:
    ids = Dictionary(secret).intern_packed(*packed(values))
    wanted = [np.uint64(sip_hash_twin(secret, v) | 1).astype(np.int64) for v in values]
    assert ids.tolist() == [int(w) for w in wanted]


@given(st.permutations(range(40)))
@settings(max_examples=scaled(30))
def test_collisions_are_settled(order: list[int]) -> None:
    """With six bits of id, forty values collide all the time, in any order, and stay distinct."""
    values = [b"value %d" % i for i in order]
    dictionary = Dictionary(SECRET, id_bits=6)
    ids = dictionary.intern(values)
    assert len(set(ids.tolist())) == len(values)
    assert dictionary.lookup(ids) == values
    assert (dictionary.intern(values[::-1])[::-1] == ids).all()


def test_growth_keeps_everything() -> None:
    dictionary = Dictionary(SECRET)
    values = [b"%d" % i * (1 + i % 7) for i in range(30_000)]
    old = dictionary.arena.descriptor
    first = dictionary.intern(values[:100])
    before = dictionary.arena.descriptor
    ids = dictionary.intern(values)
    assert (ids[:100] == first).all()
    assert dictionary.lookup(ids) == values
    assert len(dictionary) == len(set(values))
    # a descriptor fetched earlier still finds the earlier value
    assert all(kernels.resolve(before, int(i)) for i in first)
    assert kernels.resolve(old, int(first[0])) != 0


def test_large_and_empty_values() -> None:
    dictionary = Dictionary(SECRET)
    values = [b"", b"x" * 3_000_000, b"\0", b"\0\0"]
    assert dictionary.lookup(dictionary.intern(values)) == values


def test_lengths_that_a_slot_has_no_room_for() -> None:
    """From 4,095 bytes on, the length is stored before the bytes, which need not be word-aligned."""
    dictionary = Dictionary(SECRET)
    values = [bytes([65 + k]) * length for k, length in enumerate([3, *range(4090, 4101), 5, 16_383, 16_384, 16_385])]
    ids = dictionary.intern(values)
    assert dictionary.lookup(ids) == values
    assert (dictionary.intern_packed(*packed(values)) == ids).all()
    assert dictionary.arena.compare(ids[:-1], ids[1:]).tolist() == [-1] * (len(ids) - 1)
    longer = dictionary.intern([value + b"!" for value in values])
    assert dictionary.arena.compare(ids, longer).tolist() == [-1] * len(ids)
    sweep = Sweep(dictionary.arena)
    sweep.begin()
    sweep.see(ids)
    dictionary.forget_recent()
    left = 0
    while (dead := sweep.condemn(1 << 15)) is not None:
        left += len(dead)
    assert left == len(longer)
    sweep.start_generation()
    sweep.drop()
    assert dictionary.lookup(ids) == values


def test_one_slot_takes_two_words() -> None:
    arena = Dictionary(SECRET).arena
    arena.intern(*packed([b"%d" % i for i in range(5000)]))
    assert arena.table.nbytes == 16 * 8192, "the least power of two that 5,000 values fill by less than two thirds"


@given(VALUES, VALUES)
@settings(max_examples=scaled(40))
def test_scratch(shared: list[bytes], own: list[bytes]) -> None:
    parent = Dictionary(SECRET)
    ids = parent.intern(shared)
    scratch = parent.scratch()
    assert (scratch.intern(shared) == ids).all()
    mine = scratch.intern(own)
    assert len(scratch) == len(set(own) - set(shared))
    assert len(parent) == len(set(shared))
    assert scratch.lookup(np.concatenate([ids, mine])) == shared + own
    # the parent later assigns the same ids itself, and the scratch dictionary sees what the parent gets
    assert (parent.intern(own) == mine).all()
    later = parent.intern([b"later %d" % i for i in range(3000)])
    assert scratch.lookup(later)[0] == b"later 0"
    assert (scratch.intern(shared + own) == np.concatenate([ids, mine])).all()


@given(VALUES)
def test_drain_and_load(values: list[bytes]) -> None:
    first, second = Dictionary(SECRET, id_bits=9), Dictionary(SECRET, id_bits=9)
    ids = first.intern(values)
    for entries in first.drain_new():
        assert len(entries[0]) == len(set(values))
        assert (second.load(*entries) == entries[0]).all()
        assert len(second.load(*entries)) == 0
    assert first.drain_new() == []
    assert second.drain_new() == []
    assert (second.intern(values) == ids).all()
    assert second.drain_new() == []


def test_load_refuses_two_values_of_one_id() -> None:
    dictionary = Dictionary(SECRET)
    ids = dictionary.intern([b"a"])
    dictionary.drain_new()
    with pytest.raises(SqlError) as caught:
        dictionary.load(ids, *packed([b"b"]))
    assert caught.value.sqlstate == "XX001"


def test_unknown_id() -> None:
    with pytest.raises(AssertionError):
        Dictionary(SECRET).lookup(np.array([12345]))


@given(st.lists(st.builds(bytes.__add__, st.sampled_from(PREFIXES), st.binary(max_size=12)), min_size=2, max_size=30))
def test_compare_is_memcmp(values: list[bytes]) -> None:
    dictionary = Dictionary(SECRET)
    values = [*values, *values[:3]]
    ids = dictionary.intern(values)
    others = values[1:] + values[:1]
    signs = dictionary.arena.compare(ids, np.roll(ids, -1))
    assert signs.tolist() == [(a > b) - (a < b) for a, b in zip(values, others, strict=True)]
    prefixes = dictionary.arena.prefixes(ids).tolist()
    for (a, p), (b, q) in zip(
        zip(values, prefixes, strict=True), zip(others, prefixes[1:] + prefixes[:1], strict=True), strict=True
    ):
        if a[:8] != b[:8] and p != q:
            assert (p < q) == (a < b)


def test_threads_agree() -> None:
    dictionary = Dictionary(SECRET)
    values = [b"v%d" % i for i in range(4000)]
    results: list[np.ndarray] = []

    def work(step: int) -> None:
        ids = np.concatenate([dictionary.intern(values[i : i + step]) for i in range(0, len(values), step)])
        assert dictionary.lookup(ids) == values
        results.append(ids)

    threads = [threading.Thread(target=work, args=(step,)) for step in (1, 7, 100, 4000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all((r == results[0]).all() for r in results)
    assert len(dictionary) == len(values)
