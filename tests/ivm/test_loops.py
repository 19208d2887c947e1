"""Loops: deletions that cut cycles, limits, cancellation, nested loops that end by themselves."""

from __future__ import annotations

import math
import random
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest

from ivm.dataflow import Dataflow
from ivm.errors import SqlError
from ivm.graph import (
    Arrange,
    Concat,
    Constant,
    FlatMap,
    Gather,
    Input,
    Join,
    Keep,
    Leave,
    Mapped,
    NodeId,
    Output,
    Reduce,
    Threshold,
    Variable,
)
from ivm.kernels import run as kernels
from ivm.rows import Words
from ivm.runtime import program_run as running
from ivm.trace.spine import Spine
from tests.support.ivm_model import Least

SAME = Gather((0, 1))


def feed(flow: Dataflow, node: NodeId, at: int, updates: list[tuple[tuple[int, ...], int]]) -> None:
    flow.feed(node, np.array([u[0] for u in updates]), np.full(len(updates), at), np.array([u[1] for u in updates]))


def closure(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    found = set(edges)
    while True:
        more = {(a, d) for a, b in found for c, d in edges if b == c} - found
        if not more:
            return found
        found |= more


def transitive(flow: Dataflow, given: NodeId, nonlinear: bool) -> NodeId:
    """Pairs connected by a path; the variable is joined with the edges, or with itself."""
    scope = flow.scope()
    paths = flow.add(Variable(scope, 2))
    if nonlinear:
        # One side has the body's layout and is aliased to it, the other gets an arrangement of its own.
        by_end = flow.add(Arrange(paths, Gather((1, 0)), 1))
        step = flow.add(Join(by_end, flow.add(Arrange(paths, SAME, 1)), Gather((1, 2))))
    else:
        by_start = flow.add(Arrange(given, SAME, 1))
        step = flow.add(Join(flow.add(Arrange(paths, Gather((1, 0)), 1)), by_start, Gather((1, 2))))
    both = flow.add(Concat((given, step)))
    body = flow.add(Threshold(flow.add(Arrange(both, SAME, 2)), Keep.DISTINCT))
    flow.connect(paths, body)
    return flow.add(Output(flow.add(Leave(body))))


@pytest.mark.parametrize("seed", range(6))
def test_transitive_closure_under_churn(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spine, "FUEL", 1 + seed)
    monkeypatch.setattr(running, "PASSES", (1, 3, 256)[seed % 3])
    runs = Counter[int]()

    def run_program(*given: Any) -> int:
        found = kernels.run_program(*given)
        runs[min(found, 0)] += 1
        return found

    monkeypatch.setattr(running, "run_program", run_program)
    rng = random.Random(seed)
    flow = Dataflow()
    given = flow.add(Input(2))
    flow.add(Arrange(given, SAME, 2))
    outputs = [transitive(flow, given, False), transitive(flow, given, True)]
    flow.hydrate()
    edges: set[tuple[int, int]] = set()
    at = 0
    for _ in range(40):
        expected = {}
        for _ in range(rng.choice([1, 1, 4])):
            at += 1
            updates = []
            for _ in range(rng.randrange(1, 4)):
                edge = (rng.randrange(9), rng.randrange(9))
                updates.append((edge, -1 if edge in edges else 1))
                edges ^= {edge}
            feed(flow, given, at, updates)
            expected[at] = closure(edges)
        while not flow.step(0.0 if seed % 2 else math.inf):
            pass
        root = flow.publish()
        for output in outputs:
            for ordinal, pairs in expected.items():
                rows, diffs = root[output].rows_at(ordinal)
                assert set(map(tuple, rows.tolist())) == pairs
                assert (diffs == 1).all()
        if rng.random() < 0.7:
            flow.allow_compaction(at)
    assert runs.total() > 20, "loops of joins and thresholds are compiled"
    assert runs[0] > 0, "what has no room goes on in Python"
    assert (runs[kernels.PAUSED] > 0) == (seed % 3 < 2)


def test_least_label_with_a_reduce_as_the_body() -> None:
    """Connected components: the loop's body is a Reduce, whose trace the variable's arrangement is aliased to."""
    rng = random.Random(5)
    flow = Dataflow()
    given = flow.add(Input(2))
    scope = flow.scope()
    labels = flow.add(Variable(scope, 2))
    edges = flow.add(Arrange(given, SAME, 1))
    pushed = flow.add(Join(flow.add(Arrange(labels, SAME, 1)), edges, Gather((2, 1))))
    own = flow.add(FlatMap(given, Own()))
    body = flow.add(Reduce(flow.add(Arrange(flow.add(Concat((pushed, own))), SAME, 1)), Least()))
    flow.connect(labels, body)
    output = flow.add(Output(flow.add(Leave(body))))
    flow.hydrate()
    held: list[tuple[int, int]] = []
    for at in range(1, 60):
        if held and rng.random() < 0.45:
            a, b = held.pop(rng.randrange(len(held)))
            diff = -1
        else:
            a, b = rng.randrange(12), rng.randrange(12)
            held.append((a, b))
            diff = 1
        feed(flow, given, at, [((a, b), diff), ((b, a), diff)])
        flow.step()
        flow.allow_compaction(at)
        rows, diffs = flow.publish()[output].rows_at(at)
        assert dict(rows.tolist()) == components(held)
        assert (diffs == 1).all()


def components(edges: list[tuple[int, int]]) -> dict[int, int]:
    label = {x: x for edge in edges for x in edge}
    for _ in label:
        for a, b in edges:
            label[a] = label[b] = min(label[a], label[b])
    return label


class Own:
    """Maps each edge to its start, labelled with itself."""

    out_width = 2
    diff_width = 1

    def __call__(self, rows: Words) -> Mapped:
        return Mapped(np.stack([rows[:, 0], rows[:, 0]], axis=1))


class Successor:
    """n becomes n + 1: a loop that never ends."""

    out_width = 1
    diff_width = 1

    def __call__(self, rows: Words) -> Mapped:
        return Mapped(rows + 1)


def counting(flow: Dataflow, given: NodeId, limit: int | None, return_at_limit: bool = False) -> NodeId:
    scope = flow.scope(None, limit, return_at_limit)
    numbers = flow.add(Variable(scope, 1))
    body = flow.add(Concat((given, flow.add(FlatMap(numbers, Successor())))))
    flow.connect(numbers, body)
    return flow.add(Output(flow.add(Leave(body))))


def test_a_loop_past_its_limit_fails_alone() -> None:
    flow = Dataflow()
    given = flow.add(Input(1))
    whole = flow.add(Output(given))
    bad = counting(flow, given, 10)
    good = counting(flow, given, 10, return_at_limit=True)
    flow.hydrate()
    feed(flow, given, 1, [((5,), 1)])
    flow.step()
    failure = flow.failure(bad)
    assert failure is not None
    assert failure.sqlstate == "54001"
    assert flow.failure(good) is None
    assert flow.failure(whole) is None
    feed(flow, given, 2, [((50,), 1), ((5,), -1)])
    flow.step()
    root = flow.publish()
    assert root[good].rows_at(2)[0][:, 0].tolist() == list(range(50, 60))
    assert root[good].rows_at(1)[0][:, 0].tolist() == list(range(5, 15))
    assert root[whole].rows_at(2)[0].tolist() == [[50]]


def test_cancelling_ends_a_loop() -> None:
    flow = Dataflow()
    given = flow.add(Constant(1, ((1,),)))
    output = counting(flow, given, None)
    timer = threading.Timer(0.2, flow.cancel.set)
    timer.start()
    with pytest.raises(SqlError) as raised:
        flow.hydrate()
    assert raised.value.sqlstate == "57014"
    flow.cancel.clear()
    flow.release(output)
    other = flow.add(Input(1))
    whole = flow.add(Output(other))
    flow.hydrate()
    feed(flow, other, 1, [((7,), 1)])
    flow.step()
    assert flow.changes(whole).rows.tolist() == [[7]]


def test_a_released_loop_is_freed() -> None:
    flow = Dataflow()
    given = flow.add(Input(2))
    table = flow.add(Arrange(given, SAME, 2))
    flow.retain(table)
    flow.hydrate()
    feed(flow, given, 1, [((1, 2), 1), ((2, 3), 1)])
    flow.step()
    before = set(flow._operators)
    for _ in range(2):
        outputs = [transitive(flow, given, nonlinear) for nonlinear in (False, True)]
        flow.hydrate()
        root = flow.publish()
        assert [len(root[output].rows_at(1)[0]) for output in outputs] == [3, 3]
        for output in outputs:
            flow.release(output)
        assert set(flow._operators) == before
        assert set(flow._root.members.values()) == {flow._operators[node] for node in before}
    feed(flow, given, 2, [((3, 4), 1)])
    flow.step()
    assert len(flow.publish()[table].rows_at(2)[0]) == 3
