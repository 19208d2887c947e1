"""Random dataflows against the recomputing oracle."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from ivm.dataflow import Dataflow
from ivm.graph import Arrange, Concat, FlatMap, Gather, Input, Mapped, Order, Project
from ivm.kernels.memory import address
from ivm.operators import loop
from ivm.rows import Words
from ivm.runtime import operator
from ivm.trace import batch, spine
from ivm.trace.batch import BIG, Block
from ivm.trace.spine import Spine
from storage.dictionary import Dictionary
from tests.support.ivm_random import CONSTANT, Pair


def run(pair: Pair, steps: int, loops: int, negative: bool = False, pausing: bool = False) -> None:
    """``pausing``: every step advances one operator at a time."""
    pool = [pair.input(), pair.input(), pair.add(CONSTANT)]
    pair.grow(pool, pair.rng.randrange(1, 6))
    for _ in range(loops):
        pair.loop(pool)
    pair.grow(pool, 3)
    for node in pair.rng.sample(pool, min(4, len(pool))):
        pair.output(node)
    pair.engine.hydrate()
    pair.remember(0)
    pair.check([0])
    at = 1
    for _ in range(steps):
        ordinals = []
        for _ in range(pair.rng.choice([1, 1, 3])):
            pair.feed(at, 4, negative)
            pair.remember(at)
            ordinals.append(at)
            at += 1
        while not pair.engine.step(0.0 if pausing else math.inf):
            assert pausing
        pair.check(ordinals)
        if pair.rng.random() < 0.4:
            pair.feed(at - 1, 3, negative)
            pair.remember(at - 1)
            pair.engine.step()
            pair.check([at - 1])
        if pair.rng.random() < 0.5:
            pair.engine.allow_compaction(at - pair.rng.randrange(1, 3))


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    run(Pair(seed), 8, 0, negative=seed % 2 == 0)


@pytest.mark.parametrize("seed", range(40))
def test_random_loops(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spine, "FUEL", 1 + seed % 9)
    run(Pair(seed), 6, 1 + seed % 2)


@pytest.mark.parametrize("seed", range(40))
def test_random_prioritised_loops(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spine, "FUEL", 1 + seed % 9)
    run(Pair(seed, prioritised=True), 6, 1 + seed % 2, pausing=seed % 4 == 3)


@pytest.mark.parametrize("seed", range(30))
def test_large_blocks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large blocks are freed, or become layers, before the pass ends; here all but the smallest are large."""
    for module in (batch, operator, spine, loop):
        monkeypatch.setattr(module, "BIG", 2)
    monkeypatch.setattr(spine, "_DIRECT", 2)
    run(Pair(900 + seed), 8, seed % 3, negative=seed % 2 == 0)


def test_a_large_block_goes_when_its_only_reader_has_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Dataflow()
    given = flow.add(Input(2))
    kept = flow.add(Arrange(given, Gather((0, 1)), 2))
    turned = flow.add(Project(given, Gather((1, 0))))
    both = flow.add(Concat((given, turned)))
    flow.retain(kept)
    flow.retain(flow.add(Arrange(both, Gather((0, 1)), 1)))
    flow.hydrate()
    found = []
    insert = Spine.insert

    def watched(self: Spine, block: Block, lasting: bool = False) -> None:
        large = [flow._operators[node].out.room > BIG for node in (given, turned, both)]
        insert(self, block, lasting)
        found.append([*large, np.shares_memory(self.parts[-1].rows, block.rows)])

    monkeypatch.setattr(Spine, "insert", watched)
    count = 2 * BIG
    rows = np.arange(2 * count).reshape(count, 2)
    flow.feed(given, rows, np.arange(count) % 2 + 1, np.ones(count, np.int64))
    flow.step()
    assert found == [[True, False, False, True], [True, False, False, True]], "only the input has other readers"
    assert np.array_equal(flow.publish()[kept].rows_at(2)[0], rows)
    assert all(operator.out.room <= BIG for operator in flow._operators.values())


@pytest.mark.parametrize("seed", range(20))
def test_steps_that_pause(seed: int) -> None:
    run(Pair(seed), 6, 1 + seed % 2, pausing=True)


GUARD, CANARY = 8, 0x5AFE_5AFE_5AFE_5AFE


@pytest.mark.parametrize("seed", range(12))
def test_kernels_write_within_their_blocks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds checks do not cover raw addresses, so canaries surround every block's arrays, with no spare room."""
    guarded: list[tuple[Words, list[int]]] = []

    def allocate(self: Block, room: int) -> None:
        sizes = [room * self.width, room, room * self.diff_width]
        buffer = np.full(sum(sizes) + 4 * GUARD, CANARY, np.int64)
        starts = [GUARD, 2 * GUARD + sizes[0], 3 * GUARD + sizes[0] + sizes[1]]
        parts = [buffer[start : start + size] for start, size in zip(starts, sizes, strict=True)]
        self._buffer = buffer
        self._rows, self._times = parts[0].reshape(room, self.width), parts[1]
        self._diffs = parts[2].reshape(room, self.diff_width)
        self.room = room
        base = address(buffer)
        self.d[:] = (self.n, self.width, *(base + 8 * start for start in starts), room, self.diff_width)
        guarded.append((buffer, [0, *(start + size for start, size in zip(starts, sizes, strict=True))]))

    monkeypatch.setattr(Block, "_allocate", allocate)
    monkeypatch.setattr(Block.__init__, "__defaults__", (1, 1))
    run(Pair(700 + seed), 4, seed % 3)
    assert len(guarded) > 50
    for buffer, zones in guarded:
        for zone in zones:
            assert (buffer[zone : zone + GUARD] == CANARY).all()


def test_values_interned_in_the_same_pass_can_be_ordered() -> None:
    """A FlatMap may intern what an ordered arrangement after it compares, past the arena's growth."""

    @dataclass(frozen=True)
    class Interning:
        out_width: int = 2
        diff_width: int = 1

        def __call__(self, rows: Words) -> Mapped:
            ids = dictionary.intern([str(word).encode() for word in rows[:, 0].tolist()])
            return Mapped(np.stack([np.zeros_like(ids), ids], axis=1))

    dictionary = Dictionary(bytes(16))
    flow = Dataflow(dictionary.arena)
    source = flow.add(Input(1))
    mapped = flow.add(FlatMap(source, Interning()))
    arranged = flow.add(Arrange(mapped, Gather((0, 1)), 1, (Order.WORD, Order.BYTES)))
    flow.retain(arranged)
    flow.hydrate()
    for ordinal in range(1, 4):
        rows = np.arange(ordinal * 5000, (ordinal + 1) * 5000, dtype=np.int64)[:, None]
        flow.feed(source, rows, np.full(5000, ordinal, np.int64), np.ones(5000, np.int64))
        flow.step()
    found, _ = flow.publish()[arranged].rows_at(3)
    assert dictionary.lookup(found[:, 1]) == sorted(str(i).encode() for i in range(5000, 20000))
