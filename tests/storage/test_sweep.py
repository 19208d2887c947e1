"""Sweeps of the dictionary against a model: referenced values decode and keep their ids, the rest is removed."""

from __future__ import annotations

import threading
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivm.sweep import Sweep
from storage.dictionary import Dictionary
from tests.support.profiles import scaled

SECRET = bytes(range(16))


def swept(dictionary: Dictionary, living: list[int]) -> list[int]:
    """Runs a whole sweep with nothing concurrent; gives the ids that were declared dead."""
    sweep = Sweep(dictionary.arena)
    sweep.begin()
    dictionary.forget_recent()
    sweep.see(np.array(living, np.int64))
    dead: list[int] = []
    while (found := sweep.condemn(100)) is not None:
        dead += found.tolist()
    sweep.start_generation()
    assert sweep.released
    sweep.drop()
    sweep.start_generation()
    return dead


def test_no_chunk_of_dead_values_stays() -> None:
    """Not even the one that is being filled; and the next ones are as small as the first."""
    dictionary = Dictionary(SECRET)
    (kept,) = dictionary.intern([b"kept"]).tolist()
    for turn in range(3):
        for i in range(8):
            dictionary.intern([b"%d %d " % (turn, i) * 500_000])
        assert dictionary.arena.byte_size > 15 << 20
        swept(dictionary, [kept])
        assert dictionary.arena.byte_size < 1 << 20
        assert dictionary.lookup_one(kept) == b"kept"


def test_a_long_journal_is_not_kept() -> None:
    dictionary = Dictionary(SECRET)
    ids = dictionary.intern([b"%d" % i for i in range(300_000)])
    assert len(dictionary.arena._journal) > 250_000
    assert dictionary.arena.drain_journal().tolist() == ids.tolist()
    assert len(dictionary.arena._journal) < 1000
    assert dictionary.arena.drain_journal().tolist() == []
    (other,) = dictionary.intern([b"other"]).tolist()
    assert dictionary.arena.drain_journal().tolist() == [other]


class Model:
    """A dictionary, what refers to its values, and what a store behind it has of them."""

    def __init__(self, seed: int, id_bits: int) -> None:
        self.random = Random(seed)
        self.id_bits = id_bits
        self.dictionary = Dictionary(SECRET, id_bits=id_bits)
        self.references: dict[bytes, int] = {}
        """Rows: the value and the id that they name."""
        self.holders: list[tuple[object, dict[bytes, int]]] = []
        """Cursors: what they hold and the rows that they still show."""
        self.stored: dict[int, bytes] = {}
        self.sweep: Sweep | None = None
        self.seen: list[int] = []
        self.stage = 0

    def value(self) -> bytes:
        return b"value %d" % self.random.randrange(30) * self.random.choice((1, 1, 1, 40))

    def act(self) -> None:
        getattr(self, self.random.choice(("add", "add", "add", "remove", "remove", "copy", "hold", "release", "restart",
                                          "advance", "advance", "advance", "advance")))()  # fmt: skip

    def add(self) -> None:
        values = [self.value() for _ in range(self.random.randrange(1, 30))]
        for value, ident in zip(values, self.dictionary.intern(values).tolist(), strict=True):
            assert self.references.setdefault(value, ident) == ident, "the id of a living value has changed"
        self.commit()

    def commit(self) -> None:
        for ids, data, offsets in self.dictionary.drain_new():
            for i, ident in enumerate(ids.tolist()):
                self.stored[ident] = data[offsets[i] : offsets[i + 1]].tobytes()

    def remove(self) -> None:
        for value in self.random.sample(sorted(self.references), len(self.references) // 2):
            del self.references[value]

    def hold(self) -> None:
        self.holders.append((Dictionary(SECRET, self.dictionary, self.id_bits), dict(self.references)))

    def copy(self) -> None:
        """Inserts rows that a cursor still sees again, by their words."""
        if self.holders:
            rows = self.random.choice(self.holders)[1]
            for value, ident in rows.items():
                if self.references.get(value, ident) == ident and ident not in self.references.values():
                    self.references[value] = ident
            self.dictionary.see(np.array(list(rows.values()), np.int64))
            self.commit()

    def release(self) -> None:
        if self.holders:
            self.holders.pop(self.random.randrange(len(self.holders)))

    def restart(self) -> None:
        if self.random.random() < 0.2:
            self.dictionary = Dictionary(SECRET, id_bits=self.id_bits)
            entries = self.random.sample(sorted(self.stored.items()), len(self.stored))
            offsets = np.cumsum([0, *(len(v) for _, v in entries)]).astype(np.int64)
            data = np.frombuffer(bytearray(b"".join(v for _, v in entries)), np.uint8)
            self.dictionary.load(np.array([i for i, _ in entries], np.int64), data, offsets)
            self.holders, self.sweep, self.stage = [], None, 0

    def advance(self) -> None:
        """Runs one stage of a sweep, or a part of one."""
        self.stage = (self._begin, self._see, self._condemn, self._drop)[self.stage]()

    def _begin(self) -> int:
        self.sweep = Sweep(self.dictionary.arena)
        self.sweep.begin()
        self.dictionary.forget_recent()
        self.seen = list(self.references.values())
        return 1

    def _see(self) -> int:
        assert self.sweep is not None
        part, self.seen = self.seen[:7], self.seen[7:]
        self.sweep.see(np.array(part, np.int64))
        return 1 if self.seen else 2

    def _condemn(self) -> int:
        assert self.sweep is not None
        dead = self.sweep.condemn(300)
        if dead is None:
            self.sweep.start_generation()
            return 3
        for ident in dead.tolist():
            del self.stored[ident]
        return 2

    def _drop(self) -> int:
        assert self.sweep is not None
        if not self.sweep.released:
            return self.random.choice((3, 0))
        self.sweep.drop()
        self.sweep.start_generation()
        self.dictionary.forget_recent()
        return 0

    def check(self) -> None:
        ids = list(self.references.values())
        assert len(set(ids)) == len(ids)
        assert self.dictionary.lookup(np.array(ids, np.int64)) == list(self.references)
        assert all(self.stored[i] == v for v, i in self.references.items())
        for holder, rows in self.holders:
            assert isinstance(holder, Dictionary)
            assert holder.lookup(np.array(list(rows.values()), np.int64)) == list(rows)
            assert holder.intern(list(rows)).tolist() == list(rows.values())


@given(st.integers(0, 2**32), st.sampled_from((8, 9, 63)))
@settings(max_examples=scaled(60))
def test_random_sweeps(seed: int, id_bits: int) -> None:
    model = Model(seed, id_bits)
    for _ in range(60):
        model.act()
        model.check()
    model.holders.clear()
    while model.stage:
        model.advance()
    dead = swept(model.dictionary, list(model.references.values()))
    model.check()
    assert not set(dead) & set(model.references.values())
    assert len(model.dictionary) == len(model.references)
    assert model.dictionary.arena.dead == 0


def test_a_contested_id_goes_to_nobody_else() -> None:
    """Two values propose one id and the first one dies: the second keeps its id, and the first gets another when it
    is interned again."""
    dictionary = Dictionary(SECRET, id_bits=5)
    values = [b"%d" % i for i in range(20)]
    ids = dict(zip(values, dictionary.intern(values).tolist(), strict=True))
    alone = {v: int(Dictionary(SECRET, id_bits=5).intern([v])[0]) for v in values}
    second = next(v for v in values if alone[v] != ids[v])
    swept(dictionary, [ids[second]])
    assert len(dictionary) == 1
    assert dictionary.intern([second]).tolist() == [ids[second]]
    again = dictionary.intern(values).tolist()
    assert alone[second] not in again
    assert dictionary.lookup(np.array(again)) == values


def test_memory_is_given_back() -> None:
    dictionary = Dictionary(SECRET)
    sizes = []
    for turn in range(20):
        ids = dictionary.intern([b"%d of turn %d " % (i, turn) * 10 for i in range(2000)])
        swept(dictionary, ids.tolist())
        assert len(dictionary) == 2000
        sizes.append(dictionary.arena.byte_size)
    assert max(sizes) < 3 * sizes[0]


def test_a_holder_keeps_what_it_has() -> None:
    dictionary = Dictionary(SECRET)
    ids = dictionary.intern([b"a", b"b", b"c"])
    cursor = dictionary.scratch()
    sweep = Sweep(dictionary.arena)
    sweep.begin()
    dictionary.forget_recent()
    sweep.see(ids[:1])
    dead: list[int] = []
    while (found := sweep.condemn(64)) is not None:
        dead += found.tolist()
    assert sorted(dead) == sorted(ids[1:].tolist())
    sweep.start_generation()
    assert not sweep.released
    assert cursor.lookup(ids) == [b"a", b"b", b"c"]
    dictionary.drain_new()
    assert dictionary.intern([b"b"]).tolist() == [ids[1]], "it comes back with the id that it had"
    assert [e[0].tolist() for e in dictionary.drain_new()] == [[ids[1]]], "and is logged again"
    assert (len(dictionary), dictionary.arena.dead) == (2, 1)
    later = dictionary.scratch()
    assert later.intern([b"c"]).tolist() == [ids[2]]
    del cursor
    assert sweep.released
    sweep.drop()
    sweep.start_generation()
    assert later.lookup(ids[2:]) == [b"c"], "one that came later has it for itself"
    assert dictionary.lookup(ids[:2]) == [b"a", b"b"]
    with pytest.raises(AssertionError):
        dictionary.lookup_one(int(ids[2]))


def test_threads_beside_a_sweep() -> None:
    """Interning, growing and decoding go on during repeated sweeps."""
    dictionary = Dictionary(SECRET)
    kept = [b"kept %d" % i for i in range(3000)]
    ids = dictionary.intern(kept)
    stop = threading.Event()
    wrong: list[str] = []

    def work(number: int) -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            scratch = dictionary.scratch()
            values = [b"%d %d %d" % (number, turn, i) for i in range(300)]
            own = dictionary.intern(values)
            if scratch.lookup(np.concatenate([ids, own])) != kept + values:
                wrong.append(f"thread {number}, turn {turn}")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            sweep = Sweep(dictionary.arena)
            sweep.begin()
            dictionary.forget_recent()
            sweep.see(ids)
            while sweep.condemn(1 << 12) is not None:
                pass
            sweep.start_generation()
            while not sweep.released:
                stop.wait(0.001)
            sweep.drop()
            sweep.start_generation()
            dictionary.forget_recent()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert dictionary.lookup(ids) == kept
    assert (dictionary.intern(kept) == ids).all()
