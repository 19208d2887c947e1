"""The work of a one-row change does not grow with the state: counters at 10,000 and at 1,000,000 rows."""

from __future__ import annotations

import numpy as np
import pytest

from ivm.dataflow import Counters, Dataflow
from ivm.graph import Arrange, CountRows, Gather, Input, Join, Keep, NodeId, Output, Reduce, Threshold

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
    """One commit of these rows, published, with nothing kept of the past."""
    flow.feed(given, rows, np.full(len(rows), at, np.int64), np.full(len(rows), diff, np.int64))
    flow.step()
    flow.publish()
    flow.allow_compaction(at)


def spent(count: int, steps: int = 400) -> Counters:
    """What one-row removals and insertions cost at this size, together."""
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
    # One more layer for each factor of the spine's ratio, and its merges' fuel.
    for name in ("seeks", "merged"):
        assert getattr(many, name) <= 4 * getattr(few, name) + 16, name


@pytest.mark.parametrize("count", [FEW])
def test_counting_is_done_in_a_kernel(count: int) -> None:
    """A change of one row reads one key's history, whatever the number of keys."""
    flow, given = growing(count)
    before = flow.counters
    feed(flow, given, 2, np.array([[17, 68]], np.int64), -1)
    assert 0 < (flow.counters - before).history < 16
