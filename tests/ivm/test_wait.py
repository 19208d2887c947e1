"""Waiting for a moment, against the naive meaning: an update counts from the first ordinal at which its moment has
come."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from ivm.dataflow import Dataflow
from ivm.graph import Arrange, Gather, Input, NodeId, Output, Wait
from ivm.hydration.detached import detach
from ivm.moments import NEVER

Row = tuple[int, ...]


class Model:
    """What a Wait holds: each update with its ordinal, and the moment of each ordinal."""

    def __init__(self) -> None:
        self.updates: list[tuple[int, Row, int]] = []
        self.moments: dict[int, int] = {}

    def moment(self, ordinal: int) -> int:
        return max((m for o, m in self.moments.items() if o <= ordinal), default=-NEVER)

    def at(self, ordinal: int) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for at, row, diff in self.updates:
            if at <= ordinal and row[0] <= self.moment(ordinal):
                found[row] += diff
        return Counter({row: n for row, n in found.items() if n})


class Seen:
    """The accumulated changes of an Output."""

    def __init__(self, flow: Dataflow, node: NodeId) -> None:
        self.flow, self.node = flow, node
        self.updates: list[tuple[int, Row, int]] = []

    def drain(self) -> None:
        rows, times, diffs = self.flow.changes(self.node)
        self.updates += zip(times.tolist(), map(tuple, rows.tolist()), diffs.tolist(), strict=True)

    def at(self, ordinal: int) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for at, row, diff in self.updates:
            if at <= ordinal:
                found[row] += diff
        return Counter({row: n for row, n in found.items() if n})


def _feed(flow: Dataflow, table: NodeId, model: Model, ordinal: int, updates: list[tuple[Row, int]]) -> None:
    rows = np.array([row for row, _ in updates], np.int64).reshape(len(updates), 2)
    flow.feed(table, rows, ordinal, np.array([diff for _, diff in updates], np.int64))
    model.updates += [(ordinal, row, diff) for row, diff in updates]


def _random_updates(rng: random.Random, present: Counter[Row], now: int) -> list[tuple[Row, int]]:
    updates = []
    for _ in range(rng.randint(0, 6)):
        if present and rng.random() < 0.4:
            row = rng.choice(sorted(present))
            present[row] -= 1
            present += Counter()
            updates.append((row, -1))
        else:
            row = rng.choice([now - 5, now, now + rng.randint(1, 30), NEVER]), rng.randint(0, 2)
            present[row] += 1
            updates.append((row, 1))
    return updates


@pytest.mark.parametrize("seed", range(12))
def test_random_histories(seed: int) -> None:
    rng = random.Random(seed)
    flow = Dataflow()
    table = flow.add(Input(2))
    flow.add(Arrange(table, Gather((0, 1)), 2))
    seen = [Seen(flow, flow.add(Output(flow.add(Wait(table, 0)))))]
    flow.hydrate()
    model, present, now, ordinal, created = Model(), Counter[Row](), 0, 0, [0]
    for step in range(25):
        for _ in range(rng.randint(1, 4)):  # several ordinals in one step
            ordinal += 1
            now += rng.randint(0, 12)
            model.moments[ordinal] = now
            flow.set_moment(ordinal, now)
            updates = _random_updates(rng, present, now)
            _feed(flow, table, model, ordinal, updates)
            if rng.random() < 0.2:  # rolled back: the opposite, at the same ordinal
                undone = [(row, -diff) for row, diff in updates]
                if rng.random() < 0.5:
                    flow.step()
                _feed(flow, table, model, ordinal, undone)
                for row, diff in undone:
                    present[row] += diff
                present += Counter()
        flow.step()
        for one in seen:
            one.drain()
        for one, since in zip(seen, created, strict=True):
            for at in range(max(since, ordinal - 6), ordinal + 1):
                assert one.at(at) == model.at(at), (seed, step, at)
        if step in (8, 16):  # a reader of the same node, and another node, that come later
            late = Seen(flow, flow.add(Output(flow.add(Wait(table, 0)))))
            flow.hydrate()
            late.drain()
            seen.append(late)
            created.append(ordinal)


def test_next_moment_and_due_moments() -> None:
    flow = Dataflow()
    table = flow.add(Input(2))
    flow.add(Output(flow.add(Wait(table, 0))))
    flow.hydrate()
    assert flow.next_moment == NEVER
    flow.set_moment(1, 10)
    flow.feed(table, np.array([[5, 1], [20, 1], [20, 2], [30, 1], [NEVER, 1]]), 1, np.ones(5, np.int64))
    flow.step()
    assert flow.next_moment == 20
    assert flow.due_moments(25).tolist() == [20]
    assert flow.due_moments(30).tolist() == [20, 30]
    flow.feed(table, np.array([[20, 1], [20, 2]]), 2, -np.ones(2, np.int64))
    flow.step()
    assert flow.due_moments(25).tolist() == []  # they have gone before their moment
    assert flow.next_moment == 30


def test_a_node_hydrated_beside_the_dataflow_catches_up() -> None:
    flow = Dataflow()
    table = flow.add(Input(2))
    flow.retain(flow.add(Arrange(table, Gather((0, 1)), 2)))
    flow.hydrate()
    flow.set_moment(1, 10)
    flow.feed(table, np.array([[5, 1], [20, 1], [30, 1]]), 1, np.ones(3, np.int64))
    flow.step()
    beside, output = detach(flow, lambda new: new.add(Output(new.add(Wait(table, 0)))))
    beside.advance()
    beside.run()
    flow.set_moment(2, 20)  # the clock goes on meanwhile
    flow.feed(table, np.array([[15, 7]]), 2, np.ones(1, np.int64))
    flow.step()
    beside.advance()
    beside.run()
    flow.set_moment(3, 25)
    beside.advance()
    beside.attach()
    assert flow.next_moment == 30
    flow.set_moment(4, 31)
    flow.step()
    seen = Seen(flow, output)
    seen.drain()
    assert seen.at(1) == {(5, 1): 1}
    assert seen.at(2) == {(5, 1): 1, (20, 1): 1, (15, 7): 1}
    assert seen.at(3) == seen.at(2)
    assert seen.at(4) == seen.at(2) + Counter({(30, 1): 1})


def test_a_tick_costs_what_is_due() -> None:
    """The updates that a tick reads do not grow with what waits."""
    touched = []
    for waiting in (1_000, 100_000):
        flow = Dataflow()
        table = flow.add(Input(2))
        view = flow.add(Output(flow.add(Wait(table, 0))))
        flow.hydrate()
        rows = np.column_stack([np.arange(1, waiting + 1), np.zeros(waiting, np.int64)])
        flow.feed(table, rows, 1, np.ones(waiting, np.int64))
        flow.set_moment(1, 0)
        flow.step()
        flow.changes(view)
        before = flow.counters
        for tick in range(1, 21):
            flow.set_moment(tick + 1, tick)
            flow.step()
        assert len(flow.changes(view).times) == 20
        touched.append(flow.counters.merged - before.merged)
    assert touched[1] <= touched[0] + 4_096
