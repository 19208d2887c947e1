"""A flat map of a large block, run part by part: the same rows, weights and errors; weighed rows are added up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from ivm.dataflow import Dataflow
from ivm.graph import FlatMap, Input, Mapped
from ivm.operators import linear
from ivm.operators.linear import FlatMapOperator
from ivm.rows import Words
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block


@dataclass(frozen=True)
class Weighed:
    """Keeps rows by their number modulo ``groups``, except every fifth; every tenth fails."""

    groups: int
    out_width: int = 1
    diff_width: int = 2

    def __call__(self, rows: Words, /) -> Mapped:
        kept, failed = np.flatnonzero(rows[:, 0] % 5), np.flatnonzero(rows[:, 0] % 10 == 0)
        numbers = rows[kept]
        weights = np.concatenate([np.ones_like(numbers), numbers], axis=1)
        return Mapped(numbers % self.groups, kept, weights, rows[failed] + 1, failed)


def evaluated(function: Weighed, given: Block) -> FlatMapOperator:
    flow = Dataflow()
    operator = flow._operators[flow.add(FlatMap(flow.add(Input(1)), function))]
    assert isinstance(operator, FlatMapOperator)
    assert operator._evaluate(given)
    return operator


def arrays(block: Block) -> list[list[object]]:
    return [array.tolist() for array in sorted_block(block).arrays()]


@pytest.mark.parametrize(("groups", "made"), [(3, 10 * 3 * 2), (1 << 40, 800)])
def test_parts_give_the_same(monkeypatch: pytest.MonkeyPatch, groups: int, made: int) -> None:
    """Groups that recur in each part are added up; if all rows differ, that is not tried again."""
    numbers = np.arange(1000)
    given = Block.of(numbers.reshape(-1, 1), numbers % 2, np.where(numbers % 7, 1, -2))
    whole = evaluated(Weighed(groups), given)
    assert whole.out.n == 800
    monkeypatch.setattr(linear, "AT_ONCE", 100)
    parts = evaluated(Weighed(groups), given)
    assert parts.out.n == made
    assert arrays(parts.out) == arrays(whole.out)
    assert arrays(parts.errors) == arrays(whole.errors)
    assert parts.errors.n == 100
