"""As-of joins in the engine: random histories against the recomputing oracle, and how work grows."""

from __future__ import annotations

import numpy as np
import pytest

from ivm.dataflow import Dataflow
from ivm.errors import SqlError
from ivm.graph import Arrange, AsOf, Concat, Gather, Input, NodeId, Output, Variable
from ivm.spine import Spine
from tests.ivm_model import clean
from tests.ivm_random import SAME, SWAP, Pair

KEYED = Gather((1, 2))
WIDE = Gather((-1, 0, 1))


def joins(pair: Pair, left: NodeId, right: NodeId) -> None:
    """Keyed and not, inner and left, strict and not; with ties and without."""
    for strict in (False, True):
        one, two = pair.add(Arrange(left, SAME, 1)), pair.add(Arrange(right, SWAP, 1))
        pair.output(pair.add(AsOf(one, two, KEYED, 2, strict, (0, 9))))
        wide, other = pair.add(Arrange(left, WIDE, 1)), pair.add(Arrange(right, WIDE, 1))
        pair.output(pair.add(AsOf(wide, other, Gather((2, 4)), 2, strict, None if strict else (0, 8, 9))))


def hydrated(pair: Pair) -> None:
    """What came late holds what it should; at which past times is its own affair."""
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
    """One symbol: quotes at even points and, between them, trades; all in one group."""

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
        self.at += 1
        before = self.flow.counters
        self.flow.feed(node, np.array([row], np.int64), self.at, np.array([diff], np.int64))
        self.flow.step()
        self.flow.allow_compaction(self.at)
        used = self.flow.counters - before
        return used.matches + used.history + used.seeks, len(self.flow.changes(self.out).rows)


def work(quotes: int) -> int:
    """The most that one of some changes costs, all over a group."""
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
