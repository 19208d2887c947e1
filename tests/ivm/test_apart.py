"""Equal rows set apart by a number: as many rows as their diffs say, no two alike."""

from __future__ import annotations

import numpy as np

from ivm.dataflow import Dataflow
from ivm.graph import Apart, Consolidate, Output, Rows
from ivm.operators.linear import set_apart


def test_each_row_as_often_as_its_diff_says() -> None:
    flow = Dataflow(once=True)
    rows = np.array([[1, 7], [2, 8], [1, 7], [3, 9], [3, 9]])
    given = flow.add(Rows(rows, np.array([2, 1, 1, 1, -1])))
    out = flow.add(Output(flow.add(Apart(flow.add(Consolidate(given)), 0))))
    flow.hydrate()
    changes = flow.changes(out)
    assert changes.diffs.ravel().tolist() == [1, 1, 1, 1]
    assert sorted(changes.rows[:, :2].tolist()) == [[1, 7], [1, 7], [1, 7], [2, 8]]
    assert len(set(changes.rows[:, 2].tolist())) == 4


def test_numbers_go_on() -> None:
    whole, source = set_apart(np.array([[5], [6]]), np.array([2, -1]), 10)
    assert whole.tolist() == [[5, 10], [5, 11], [6, 12]]
    assert source.tolist() == [0, 0, 1]
