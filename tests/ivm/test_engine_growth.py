"""The work of a one-row change does not grow with the state: counters at 10,000 and at 1,000,000 rows."""

from __future__ import annotations

import numpy as np
import pytest

from ivm.dataflow import Counters, Dataflow
from ivm.graph import (
    Arrange,
    Concat,
    CountRows,
    Gather,
    Input,
    Join,
    Keep,
    Leave,
    NodeId,
    Output,
    Reduce,
    Threshold,
    Variable,
)  # fmt: skip
from ivm.trace.spine import most_merged

FEW, MANY = 10_000, 1_000_000
KEYS_A_ROW = 4


def growing(count: int) -> tuple[Dataflow, NodeId]:
    """A table of (key, number), four rows a key: joined with itself by key, counted by key, and made distinct."""
    flow = Dataflow()
    given = flow.add(Input(2))
    rows = flow.add(Arrange(given, Gather((0, 1)), 1))
    keys = flow.add(Arrange(given, Gather((0,)), 1))
    flow.add(Output(flow.add(Join(rows, rows, Gather((0, 1, 2))))))
    flow.add(Output(flow.add(Reduce(keys, CountRows()))))
    flow.add(Output(flow.add(Threshold(keys, Keep.DISTINCT))))
    flow.hydrate()
    number = np.arange(count, dtype=np.int64)
    feed(flow, given, 1, np.stack([number // KEYS_A_ROW, number], axis=1), 1)
    return flow, given


def feed(flow: Dataflow, given: NodeId, at: int, rows: np.ndarray, diff: int) -> None:
    """Commits and publishes these rows, keeping no history."""
    flow.feed(given, rows, np.full(len(rows), at, np.int64), np.full(len(rows), diff, np.int64))
    flow.step()
    flow.publish()
    flow.allow_compaction(at)


def spent(count: int, steps: int = 400) -> Counters:
    """The total cost of one-row deletions and insertions at this size."""
    flow, given = growing(count)
    before = flow.counters
    for step in range(steps):
        number = step * 7919 % count
        row = np.array([[number // KEYS_A_ROW, number]], np.int64)
        feed(flow, given, 2 + 2 * step, row, -1)
        feed(flow, given, 3 + 2 * step, row, 1)
    return flow.counters - before


def test_one_row_costs_the_same_in_a_large_state() -> None:
    few, many = spent(FEW), spent(MANY)
    assert few.matches > 0
    assert few.history > 0
    for name in ("matches", "history", "segments"):
        assert getattr(many, name) <= 1.1 * getattr(few, name) + 16, name
    # One more layer for each factor of the spine's ratio, and the fuel of its merges.
    for name in ("seeks", "merged"):
        assert getattr(many, name) <= 4 * getattr(few, name) + 16, name


@pytest.mark.parametrize("count", [FEW])
def test_counting_is_done_in_a_kernel(count: int) -> None:
    """A change of one row reads one key's history, whatever the number of keys."""
    flow, given = growing(count)
    before = flow.counters
    feed(flow, given, 2, np.array([[17, 68]], np.int64), -1)
    assert 0 < (flow.counters - before).history < 16


def reaching(edges: np.ndarray) -> tuple[Dataflow, NodeId]:
    """The nodes that node 0 reaches over these edges (McSherry's roadmap of 2016: 1,000 nodes, 2,000 edges)."""
    flow = Dataflow()
    given, roots = flow.add(Input(2)), flow.add(Input(1))
    by_source = flow.add(Arrange(given, Gather((0, 1)), 1))
    scope = flow.scope()
    reached = flow.add(Variable(scope, 1))
    step = flow.add(Join(flow.add(Arrange(reached, Gather((0,)), 1)), by_source, Gather((1,))))
    either = flow.add(Arrange(flow.add(Concat((roots, step))), Gather((0,)), 1))
    body = flow.add(Threshold(either, Keep.DISTINCT))
    flow.connect(reached, body)
    flow.add(Output(flow.add(Leave(body))))
    flow.hydrate()
    flow.feed(roots, np.zeros((1, 1), np.int64), 1, np.ones(1, np.int64))
    feed(flow, given, 1, edges, 1)
    return flow, given


def test_latency_does_not_grow_with_the_updates_that_were() -> None:
    count, window, turns = 2_000, 1_500, 8
    edges = np.random.default_rng(5).integers(0, 1_000, (count + turns * window, 2))
    flow, given = reaching(edges[:count])
    works = []
    most = 0
    for turn in range(turns):
        before = flow.counters
        for u in range(turn * window, (turn + 1) * window):
            merged = flow.counters.merged
            flow.feed(given, edges[[u, count + u]], 2 + u, np.array([-1, 1], np.int64))
            flow.step()
            flow.publish()
            flow.allow_compaction(2 + u)
            most = max(most, flow.counters.merged - merged)
        works.append(flow.counters - before)
    for name in ("matches", "seeks", "history", "merged"):
        early, late = (sum(getattr(work, name) for work in part) for part in (works[1:4], works[-3:]))
        assert late <= 1.5 * early, name
    assert most <= 4 * most_merged(64, levels=2), "four arrangements of two levels"


def test_rows_merged_in_a_step_are_bounded() -> None:
    """The state is a thousand times larger than what one step may merge, and keeps growing."""
    flow, given = growing(300_000)
    most = 0
    for step in range(3_000):
        before = flow.counters.merged
        feed(flow, given, 2 + step, np.array([[step % 100_000, 1_000_000 + step]], np.int64), 1)
        most = max(most, flow.counters.merged - before)
    assert 0 < most <= 5 * most_merged(1, levels=4), "five arrangements"
    assert most_merged(1, levels=4) < 70_000
