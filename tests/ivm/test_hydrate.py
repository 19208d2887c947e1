"""Nodes added late hold the same as nodes that were there from the start; released nodes are gone."""

from __future__ import annotations

import numpy as np
import pytest

from ivm.dataflow import Dataflow
from ivm.graph import Arrange, Gather, Input, Join, Keep, NodeId, Output, Reduce, Threshold
from tests.support.ivm_model import Count
from tests.support.ivm_random import CONSTANT, SAME, SWAP, Pair, step


@pytest.mark.parametrize("seed", range(30))
def test_late_nodes_hold_what_early_ones_do(seed: int) -> None:
    pair = Pair(500 + seed)
    rng = pair.rng
    pool = [pair.input(), pair.input(), pair.add(CONSTANT)]
    pair.grow(pool, 3)
    if seed % 3 == 0:
        pair.loop(pool)
        for node in pool[-2:]:
            pair.output(node)
    pair.output(rng.choice(pool))
    pair.engine.hydrate()
    pair.remember(0)
    pair.check([0])
    at = 1
    for wave in range(3):
        for _ in range(3):
            at = step(pair, at, rng.choice([1, 2]))
            if rng.random() < 0.5:
                pair.engine.allow_compaction(at - rng.randrange(1, 3))
        outputs = len(pair.outputs)
        pair.grow(pool, 4)
        if wave % 2 == seed % 2:
            pair.loop(pool)
        for node in rng.sample(pool, 3):
            pair.output(node)
        pair.engine.hydrate()
        newest = at - 1
        root = pair.engine.publish()
        for out in pair.outputs[outputs:]:
            changes = pair.engine.changes(out)
            assert (changes.times <= newest).all()
            for row, diff in zip(map(tuple, changes.rows.tolist()), changes.diffs.tolist(), strict=True):
                pair.emitted[out][row] += diff
            expected = pair.model.value(out)
            assert {row: diff for row, diff in pair.emitted[out].items() if diff} == expected
            rows, diffs = root[out].rows_at(newest)
            assert dict(zip(map(tuple, rows.tolist()), diffs.tolist(), strict=True)) == expected


def test_released_nodes_are_freed() -> None:
    flow = Dataflow()
    given = flow.add(Input(2))
    arranged = flow.add(Arrange(given, SAME, 1))
    flow.retain(arranged)
    flow.hydrate()
    before = set(flow._operators)
    outputs: list[NodeId] = []
    for _ in range(2):
        swapped = flow.add(Arrange(given, SWAP, 1))
        joined = flow.add(Join(arranged, swapped, Gather((1, 2))))
        outputs.append(flow.add(Output(flow.add(Threshold(flow.add(Arrange(joined, SAME, 2)), Keep.DISTINCT)))))
    flow.hydrate()
    for at, row in enumerate([(1, 2), (2, 3), (3, 1)], 1):
        flow.feed(given, np.array([row]), np.array([at]), np.array([1]))
        flow.step()
    assert len(flow.publish()[outputs[0]].rows_at(3)[0]) == 3
    for output in outputs:
        flow.release(output)
    assert set(flow._operators) == before
    assert set(flow.publish()) == {arranged}
    flow.feed(given, np.array([[5, 5]]), np.array([4]), np.array([1]))
    flow.step()
    assert len(flow.publish()[arranged].rows_at(4)[0]) == 4


def test_a_retained_reduce_keeps_its_rows() -> None:
    flow = Dataflow()
    given = flow.add(Input(2))
    flow.add(Arrange(given, SAME, 1))
    reduced = flow.add(Reduce(flow.add(Arrange(given, Gather((0,)), 1)), Count()))
    flow.hydrate()
    flow.feed(given, np.array([[1, 2], [1, 3], [2, 2]]), np.array([1, 1, 2]), np.array([1, 1, 1]))
    flow.step()
    flow.retain(reduced)
    assert flow.publish()[reduced].rows_at(1)[0].tolist() == [[1, 2]]
    flow.feed(given, np.array([[2, 9]]), np.array([3]), np.array([1]))
    flow.step()
    assert flow.publish()[reduced].rows_at(3)[0].tolist() == [[1, 2], [2, 2]]
