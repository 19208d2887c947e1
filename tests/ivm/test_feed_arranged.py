"""Rows arranged beside a dataflow enter it, without copies, as if they had been fed: random graphs, some with loops."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from ivm.dataflow import Dataflow
from ivm.graph import Arrange, Gather, Input, NodeId
from ivm.rows import Words
from ivm.trace.batch import Batch
from tests.ivm.test_dataflow import run
from tests.support.ivm_random import SWAP, Pair


class ArrangedPair(Pair):
    """Sometimes an input gets distinct rows in its arrangement's form instead of single updates."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.kept: dict[NodeId, NodeId] = {}
        self.fed: set[NodeId] = set()
        self.whole: set[NodeId] = set()
        self.given: list[tuple[Words, Words]] = []

    def input(self) -> NodeId:
        node = super().input()
        self.kept[node] = self.engine.add(Arrange(node, SWAP, 1))
        return node

    def feed(self, at: int, rows: int, negative: bool = False) -> None:
        inputs, rng = self.inputs, self.rng
        chosen = [node for node in inputs if rng.random() < 0.4]
        if self.whole or self.fed.intersection(chosen):
            self.engine.step()
            self.fed.clear()
            self.whole.clear()
        self.inputs = [node for node in inputs if node not in chosen]
        super().feed(at, rows, negative)
        self.fed.update(self.inputs)
        self.inputs = inputs
        for node in chosen:
            found = {(rng.randrange(6), rng.randrange(6)) for _ in range(rng.randrange(1, 8))}
            for row in found:
                held = self.model.inputs[node]
                held[row] += 1
                if held[row] == 0:
                    del held[row]
            arranged = np.array(sorted((b, a) for a, b in found), np.int64)
            self.engine.feed_arranged(node, self.kept[node], Batch.of_rows(arranged, fenced=True), at)
            self.whole.add(node)
            self.given.append((arranged, arranged.copy()))


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    pair = ArrangedPair(seed)
    run(pair, 10, loops=seed % 3, negative=seed % 2 == 0, pausing=seed % 5 == 0)
    assert len(pair.given) > 2
    assert all((rows == copy).all() for rows, copy in pair.given), "nobody has written to them"


def test_an_arrangement_that_nobody_else_reads_takes_the_rows_where_they_are() -> None:
    count = 1 << 18
    flow = Dataflow()
    source = flow.add(Input(2))
    kept = flow.add(Arrange(source, Gather((0, 1)), 1))
    flow.retain(kept)
    flow.hydrate()
    rows = np.stack([np.arange(count), np.arange(count)], axis=1)
    batch = Batch.of_rows(rows, fenced=True)
    tracemalloc.start()
    try:
        flow.feed_arranged(source, kept, batch, 1)
        flow.step()
        version = flow.publish()[kept]
        assert tracemalloc.get_traced_memory()[1] < rows.nbytes // 50
    finally:
        tracemalloc.stop()
    assert version.batches[0].rows.base is rows or np.shares_memory(version.batches[0].rows, rows)
    found, _, _ = version.lookup(np.array([[7], [count - 1], [count]]), 1)
    assert found.tolist() == [[7, 7], [count - 1, count - 1]]
    assert not len(version.lookup(np.array([[7]]), 0)[0])
    flow.feed(source, np.array([[7, 7], [count, 3]]), 2, np.array([-1, 1]))
    flow.step()
    later = flow.publish()[kept]
    assert later.lookup(np.array([[7], [count]]), 2)[0].tolist() == [[count, 3]]
    assert len(version.lookup(np.array([[7]]), 1)[0]) == 1
