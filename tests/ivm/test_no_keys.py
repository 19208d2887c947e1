"""Joins and groups without keys, over layers so large that keys would be sought ahead in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ivm.dataflow import Dataflow
from ivm.graph import Arrange, Gather, Input, Join, NodeId, Output, Reduce, Reduced
from ivm.rows import Words
from tests.ivm.test_engine_growth import feed

ROWS = 50_000


@dataclass(frozen=True, slots=True)
class SumAll:
    """The number of values and their sum, from whole groups."""

    out_width: int = 2
    limit: int | None = None

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        counted = np.add.reduceat(diffs[:, 0], offsets[:-1])
        added = np.add.reduceat(vals[:, 0] * diffs[:, 0], offsets[:-1])
        return Reduced(np.arange(len(keys)), np.stack([counted, added], axis=1))


def column(*numbers: int) -> Words:
    return np.array(numbers, np.int64).reshape(-1, 1)


def keyless(flow: Dataflow) -> tuple[NodeId, NodeId]:
    given = flow.add(Input(1))
    return given, flow.add(Arrange(given, Gather((0,)), 0))


def test_a_group_without_key() -> None:
    flow = Dataflow()
    given, rows = keyless(flow)
    sums = flow.add(Output(flow.add(Reduce(rows, SumAll()))))
    flow.hydrate()
    feed(flow, given, 1, np.arange(ROWS, dtype=np.int64).reshape(-1, 1), 1)
    total = ROWS * (ROWS - 1) // 2
    for at, (added, diff) in enumerate(
        [(column(5, 20_000, 40_000, 49_000, 49_999), -1), (column(*range(70_000, 70_009)), 1)]
    ):
        feed(flow, given, 2 + at, added, diff)
        total += diff * int(added.sum())
        found, diffs = flow.publish()[sums].rows_at(2 + at)
        assert found.tolist() == [[ROWS - 5 + 9 * at, total]]
        assert diffs.tolist() == [1]


def test_a_join_without_key() -> None:
    flow = Dataflow()
    many, left = keyless(flow)
    few, right = keyless(flow)
    pairs = flow.add(Output(flow.add(Join(left, right, Gather((0, 1))))))
    flow.hydrate()
    feed(flow, many, 1, np.arange(ROWS, dtype=np.int64).reshape(-1, 1), 1)
    for at, start in enumerate((20_000, 45_000)):
        added = column(*range(start, start + 4))
        feed(flow, few, 2 + 2 * at, added, 1)
        found, diffs = flow.publish()[pairs].rows_at(2 + 2 * at)
        assert len(found) == 4 * ROWS
        assert (diffs == 1).all()
        feed(flow, few, 3 + 2 * at, added, -1)
        assert not len(flow.publish()[pairs].rows_at(3 + 2 * at)[0])
