"""A switch: readers of a node read another one from some step on, and get only the difference."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from ivm.dataflow import Changes, Dataflow, Exchange
from ivm.graph import (
    Arrange,
    Concat,
    Gather,
    Input,
    Join,
    Keep,
    Leave,
    Negate,
    NodeId,
    Output,
    Project,
    Switch,
    Threshold,
    Variable,
)  # fmt: skip

Rows = Counter[tuple[int, ...]]
SWAPPED = Gather((1, 0))


class Flow:
    """Two inputs, and what reads one node: a copy, a join, a union with itself and a closure."""

    def __init__(self) -> None:
        self.flow = Dataflow()
        self.a, self.b = self.flow.add(Input(2)), self.flow.add(Input(2))
        self.tables = [self.a, self.b, *(self.flow.add(Arrange(n, Gather((0, 1)), 2)) for n in (self.a, self.b))]
        for node in self.tables[2:]:
            self.flow.retain(node)
        self.outputs: list[NodeId] = []
        self.held: list[Rows] = []

    def read(self, node: NodeId) -> None:
        add = self.flow.add
        forward, backward = add(Arrange(node, Gather((0, 1)), 1)), add(Arrange(node, SWAPPED, 1))
        other = add(Arrange(self.b, Gather((0, 1)), 1))
        joined, twice = add(Join(backward, other, Gather((1, 2)))), add(Concat((node, node)))
        scope = self.flow.scope()
        variable = add(Variable(scope, 2))
        reached = add(Join(add(Arrange(variable, SWAPPED, 1)), forward, Gather((1, 2))))
        distinct = add(Threshold(add(Arrange(add(Concat((node, reached))), Gather((0, 1)), 2)), Keep.DISTINCT))
        body = add(Project(distinct, Gather((0, 1))))
        self.flow.connect(variable, body)
        left = add(Leave(body))
        self.outputs = [add(Output(n)) for n in (node, joined, twice, left)]
        self.held = [Counter() for _ in self.outputs]

    def feed(self, random: Random, at: int) -> None:
        for node in (self.a, self.b):
            rows = np.array([[random.randrange(5), random.randrange(5)] for _ in range(4)])
            self.flow.feed(node, rows, at, np.ones(4, np.int64))
        self.flow.step()

    def drain(self) -> list[Rows]:
        for held, output in zip(self.held, self.outputs, strict=True):
            _added(held, self.flow.changes(output))
        return [Counter({row: n for row, n in held.items() if n}) for held in self.held]


def _added(held: Rows, changes: Changes) -> Rows:
    for row, diff in zip(changes.rows.tolist(), changes.diffs.tolist(), strict=True):
        held[tuple(row)] += diff
    return held


def _contents(flow: Dataflow, node: NodeId) -> Rows:
    output = flow.add(Output(node))
    flow.hydrate()
    changes = flow.changes(output)
    flow.release(output)
    return _added(Counter(), changes)


def _difference(new: Rows, old: Rows) -> tuple[np.ndarray, np.ndarray]:
    rows = sorted({*new, *old})
    diffs = np.array([new[row] - old[row] for row in rows], np.int64)
    return np.array(rows, np.int64).reshape(-1, 2)[diffs != 0], diffs[diffs != 0]


@pytest.mark.parametrize("seed", range(8))
def test_readers_go_on_with_another_source(seed: int) -> None:
    random, one, other = Random(seed), Flow(), Flow()
    flow, add = one.flow, one.flow.add
    old = add(Project(one.a, SWAPPED))
    one.read(old)
    other.read(other.b)
    flow.hydrate()
    other.flow.hydrate()
    for at in range(1, 4):
        for each in (one, other):
            each.feed(Random(100 * seed + at), at)
    one.drain()
    new = add(Concat((one.b, add(Project(one.a, SWAPPED)), add(Negate(old)))))  # b's rows, over the old node too
    flow.hydrate()
    flow.retain(new)
    assert flow.readers(old) is not None
    switch = add(Switch(old))
    flow.hydrate()
    own = _inputs_of(one, new)
    flow.reread(old, switch, lambda node: node not in own)
    kept_operators = {output: flow.operator(output) for output in one.outputs}
    rows, diffs = _difference(_contents(flow, new), _contents(flow, old))
    flow.exchange([Exchange(switch, new, rows, diffs)], 4)
    flow.release(new)
    for each in (one, other):
        each.feed(Random(100 * seed + 4), 4)
    for at in range(5, 8):
        assert one.drain() == other.drain()
        for each in (one, other):
            each.feed(Random(100 * seed + at), at)
    assert one.drain() == other.drain()
    assert all(flow.operator(output) is operator for output, operator in kept_operators.items())
    late = add(Output(switch))
    flow.hydrate()
    assert _contents(flow, switch) == one.drain()[0]
    flow.release(late)
    random.shuffle(one.outputs)
    for output in one.outputs:
        flow.release(output)
    assert set(flow.nodes()) == set(one.tables)


def _inputs_of(one: Flow, node: NodeId) -> set[NodeId]:
    """The nodes that a node reads, and what these read."""
    found: set[NodeId] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            waiting += [o.id for o in one.flow.operator(current).inputs()]
    return found


def test_an_arrangement_whose_trace_is_read_has_no_readers_to_move() -> None:
    flow = Dataflow()
    arranged = flow.add(Arrange(flow.add(Input(1)), Gather((0,)), 1))
    flow.add(Output(flow.add(Threshold(arranged, Keep.DISTINCT))))
    flow.hydrate()
    assert flow.readers(arranged) is None
