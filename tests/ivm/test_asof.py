"""As-of joins in the engine: random histories against the recomputing oracle, and how work grows."""

from __future__ import annotations

import numpy as np
import pytest

from ivm.dataflow import Dataflow
from ivm.errors import SqlError
from ivm.graph import Arrange, AsOf, Concat, Gather, Input, NodeId, Output, Variable
from ivm.trace.spine import ROOM, Spine
from tests.support.ivm_model import clean
from tests.support.ivm_random import SAME, SWAP, Pair

KEYED = Gather((1, 2))
WIDE = Gather((-1, 0, 1))


def joins(pair: Pair, left: NodeId, right: NodeId) -> None:
    """As-of joins with and without a key, inner and left, strict or not, with and without ties."""
    for strict in (False, True):
        one, two = pair.add(Arrange(left, SAME, 1)), pair.add(Arrange(right, SWAP, 1))
        pair.output(pair.add(AsOf(one, two, KEYED, 2, strict, (0, 9))))
        wide, other = pair.add(Arrange(left, WIDE, 1)), pair.add(Arrange(right, WIDE, 1))
        pair.output(pair.add(AsOf(wide, other, Gather((2, 4)), 2, strict, None if strict else (0, 8, 9))))


def hydrated(pair: Pair) -> None:
    """A node added late holds the right contents; at which past times is not checked."""
    for out in pair.outputs:
        changes = pair.engine.changes(out)
        for row, diff in zip(map(tuple, changes.rows.tolist()), changes.diffs.tolist(), strict=True):
            pair.emitted[out][row] += diff
        assert clean(pair.emitted[out]) == pair.model.value(out)


def play(seed: int, steps: int) -> None:
    pair = Pair(seed)
    rng = pair.rng
    left, right = pair.input(), pair.input()
    late = rng.random() < 0.3
    if not late:
        joins(pair, left, right)
    pair.engine.hydrate()
    pair.remember(0)
    pair.check([0])
    at = 1
    negative = seed % 5 == 0
    for step in range(steps):
        if late and step == 1:
            joins(pair, left, right)
            pair.engine.hydrate()
            hydrated(pair)
        ordinals = []
        for _ in range(rng.choice([1, 1, 3])):
            pair.feed(at, rng.choice([1, 3, 12]), negative)
            pair.remember(at)
            ordinals.append(at)
            at += 1
        pair.engine.step()
        pair.check(ordinals)
        if rng.random() < 0.4:
            pair.feed(at - 1, 3, negative)
            pair.remember(at - 1)
            pair.engine.step()
            pair.check([at - 1])
        if rng.random() < 0.5:
            pair.engine.allow_compaction(at - rng.randrange(1, 3))


@pytest.mark.parametrize("seed", range(60))
def test_random_histories(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spine, "FUEL", 1 + seed % 9)
    play(seed, 6)


class Sliding:
    """Long runs of rows of one key are added and removed at either end and in between, one or many rows per commit."""

    def __init__(self, seed: int) -> None:
        self.pair = Pair(seed)
        self.rng = self.pair.rng
        self.left, self.right = self.pair.input(), self.pair.input()
        joins(self.pair, self.left, self.right)
        self.pair.engine.hydrate()
        self.at = 0

    def change(self, node: NodeId) -> list[tuple[tuple[int, int], int]]:
        """Changes rows at the ends of a run, or a whole run; ``joins`` reads left rows one way and right rows both."""
        rng, held = self.rng, sorted(self.pair.model.inputs[node])
        start, count = rng.randrange(300), rng.choice([1, 3, 40, 90])
        if rng.random() < 0.6 and held:
            start = rng.choice([0, len(held) - count, rng.randrange(len(held))])
            return [(row, -self.pair.model.inputs[node][row]) for row in held[max(start, 0) :][:count]]
        key = rng.choice([0, 0, 0, 1])
        new = [(key, p) if rng.random() < 0.7 else (p, key) for p in range(start, start + count)]
        return [(row, rng.choice([1, 1, 2])) for row in new]

    def commit(self, at: int) -> None:
        for node in self.rng.choice([(self.left,), (self.right,), (self.right,), (self.left, self.right)]):
            for row, diff in self.change(node):
                self.pair.engine.feed(node, np.array([row]), at, np.array([diff]))
                held = self.pair.model.inputs[node]
                held[row] += diff
                if not held[row]:
                    del held[row]
        self.pair.remember(at)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            ordinals = [self.at + 1 + i for i in range(self.rng.choice([1, 2, 5]))]
            for at in ordinals:
                self.commit(at)
            self.at = ordinals[-1]
            self.pair.engine.step()
            self.pair.check(ordinals)
            if self.rng.random() < 0.3:
                self.commit(self.at)
                self.pair.engine.step()
                self.pair.check([self.at])
            if self.rng.random() < 0.2:
                self.pair.engine.allow_compaction(self.at)


@pytest.mark.parametrize("seed", range(16))
def test_long_runs_that_are_gone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spine, "FUEL", 1)
    Sliding(seed).run(12)


def test_refused_in_a_loop() -> None:
    flow = Dataflow()
    source = flow.add(Input(2))
    loop = flow.scope()
    variable = flow.add(Variable(loop, 2))
    inside = flow.add(Arrange(flow.add(Concat((source, variable))), SAME, 1))
    outside = flow.add(Arrange(source, SAME, 1))
    with pytest.raises(SqlError) as raised:
        flow.add(AsOf(inside, outside, KEYED, 2, False))
    assert raised.value.sqlstate == "0A000"


class Quotes:
    """One symbol, hence one group: quotes at even points, trades between them."""

    def __init__(self, quotes: int) -> None:
        self.flow = Dataflow()
        self.trades, self.prices = self.flow.add(Input(2)), self.flow.add(Input(3))
        one = self.flow.add(Arrange(self.trades, SAME, 1))
        two = self.flow.add(Arrange(self.prices, Gather((0, 1, 2)), 1))
        self.out = self.flow.add(Output(self.flow.add(AsOf(one, two, Gather((1, 3)), 2, False))))
        points = np.arange(0, 2 * quotes, 2, dtype=np.int64)
        zero = np.zeros_like(points)
        self.flow.feed(self.prices, np.stack([zero, points, points], axis=1), 1, zero + 1)
        self.flow.feed(self.trades, np.stack([zero, points + 1], axis=1), 1, zero + 1)
        self.flow.hydrate()
        self.flow.step()
        assert len(self.flow.changes(self.out).rows) == quotes
        self.at = 1

    def change(self, node: NodeId, row: tuple[int, ...], diff: int) -> tuple[int, int]:
        """(work of the kernels, updates of the output) of one commit."""
        return self.changes((node, row, diff))

    def changes(self, *many: tuple[NodeId, tuple[int, ...], int]) -> tuple[int, int]:
        """As ``change``, for several updates in one commit."""
        self.at += 1
        before = self.flow.counters
        for node, row, diff in many:
            self.flow.feed(node, np.array([row], np.int64), self.at, np.array([diff], np.int64))
        self.flow.step()
        self.flow.allow_compaction(self.at)
        used = self.flow.counters - before
        return used.matches + used.history + used.seeks, len(self.flow.changes(self.out).rows)


def work(quotes: int) -> int:
    """The highest cost of a single change, over changes all over a group."""
    held = Quotes(quotes)
    most = 0
    for k in range(1, 40):
        point = 2 * (k * quotes // 40)
        for node, row, diff, changed in (
            (held.prices, (0, point + 1, 7), 1, 2),
            (held.prices, (0, point + 1, 7), -1, 2),
            (held.prices, (0, point, point), -1, 2),
            (held.prices, (0, point, point), 1, 2),
            (held.trades, (0, point), 1, 1),
            (held.trades, (0, point), -1, 1),
        ):
            used, found = held.change(node, row, diff)
            assert found == changed
            most = max(most, used)
    return most


def test_a_change_costs_no_scan_of_its_group() -> None:
    assert work(1_000_000) <= 2 * work(10_000)


def slides(window: int, count: int) -> list[int]:
    """The work of each commit of a series that adds the newest quote with a trade and removes the oldest quote."""
    held = Quotes(window)
    used = []
    for k in range(count):
        old, new = 2 * k, 2 * (window + k)
        work, found = held.changes(
            (held.prices, (0, new, new), 1), (held.trades, (0, new + 1), 1), (held.prices, (0, old, old), -1)
        )
        assert found == 2  # the newest trade, and the oldest quote's trade, which has no match any more
        used.append(work)
    return used


def test_a_sliding_window_costs_no_walk_over_what_is_gone() -> None:
    """Thousands of the oldest rows are deleted but not merged away yet. A slide costs the same with a hundred times as
    many: at most what a search by rank reads of the small layer, besides its seeks."""
    small, large = slides(1_000, 6_000), slides(100_000, 6_000)
    assert max(small) <= ROOM + 400
    assert max(large) <= ROOM + 400
    assert sum(large) <= 1.2 * sum(small)


def test_trades_that_are_gone_cost_no_walk() -> None:
    """Trades of one quote come and go; a change of the quote costs only its present trades."""
    held = Quotes(4)
    for k in range(10, 8_010):
        held.change(held.trades, (0, 10 * k), 1)
    for k in range(10, 8_000):
        held.change(held.trades, (0, 10 * k), -1)
    used = [held.change(held.prices, (0, 8, 8), diff) for diff in (1, -1)]
    assert [found for _, found in used] == [20, 20]
    assert max(work for work, _ in used) <= ROOM + 400
