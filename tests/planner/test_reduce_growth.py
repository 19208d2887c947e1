"""A change in a group costs searches, not a scan of it: counters at groups of 10,000 and of 1,000,000 rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ivm.dataflow import Counters
from ivm.words import FLOAT8, INT8, ColumnType
from planner.expr.scalar import Aggregate, Call, Column, Literal, SortKey
from planner.logical.nodes import Get, Reduce, Rel, TopK
from tests.support.planner_bench import World

FEW, MANY = 10_000, 1_000_000
STEPS = 100
TABLE = (ColumnType(INT8, False), ColumnType(INT8, False))
GET = Get(1, TABLE)
GROUP, VALUE = Column(0, INT8, False), Column(1, INT8, False)
ORDER = (SortKey(VALUE),)


def reduce(function: str, *args: Call | Column | Literal, order: tuple[SortKey, ...] = ()) -> Rel:
    return Reduce(GET, (GROUP,), (Aggregate(function, args, args[0].type, True, False, None, order),))


def by_fraction() -> Rel:
    value = Call("cast", (VALUE,), FLOAT8, False)
    return reduce("percentile_cont(float8,float8)", value, Literal(0.5, FLOAT8), order=(SortKey(value),))


VIEWS: dict[str, Callable[[], Rel]] = {
    "median": by_fraction,
    "percentile_disc": lambda: reduce("percentile_disc(anyelement,float8)", VALUE, Literal(0.99, FLOAT8), order=ORDER),
    "mode": lambda: reduce("mode(anyelement)", VALUE, order=ORDER),
    "min": lambda: reduce("min(int8)", VALUE),
    "max": lambda: reduce("max(int8)", VALUE),
    "bit_and": lambda: reduce("bit_and(int8)", VALUE),
    "variance": lambda: reduce("variance(int8)", VALUE),
    "top 10": lambda: TopK(GET, (GROUP,), ORDER, Literal(10, INT8), None),
    "top 3,000": lambda: TopK(GET, (GROUP,), ORDER, Literal(3000, INT8), None),
    "5 from 5,000 on": lambda: TopK(GET, (GROUP,), ORDER, Literal(5, INT8), Literal(5000, INT8)),
    "all but 9,000": lambda: TopK(GET, (GROUP,), ORDER, None, Literal(9000, INT8)),
    "distinct on": lambda: TopK(GET, (GROUP,), ORDER, Literal(1, INT8), None),
}  # fmt: skip


def feed(world: World, rows: np.ndarray, diff: int) -> None:
    world.ordinal += 1
    flow = world.dataflow
    count = len(rows)
    flow.feed(world.renderer.input(1), rows, np.full(count, world.ordinal), np.full(count, diff))
    flow.step()
    flow.publish()
    flow.allow_compaction(world.ordinal)


def spent(view: Rel, count: int, at: Callable[[int], int]) -> Counters:
    """The cost of deleting rows of one group and inserting half of them again."""
    world = World({1: (TABLE, ())})
    world.install(100, view)
    numbers = np.arange(count, dtype=np.int64)
    feed(world, np.stack([numbers * 0, 2 * numbers], axis=1), 1)
    before = world.dataflow.counters
    for step in range(STEPS):
        row = np.array([[0, 2 * at(step)]], np.int64)
        feed(world, row, -1)
        if step % 2:
            feed(world, row, 1)
    return world.dataflow.counters - before


def anywhere(count: int) -> Callable[[int], int]:
    return lambda step: step * 7919 % count


@pytest.mark.parametrize("name", VIEWS)
def test_one_row_of_a_group_costs_searches(name: str) -> None:
    few, many = (spent(VIEWS[name](), n, anywhere(n)) for n in (FEW, MANY))
    assert few.history > 0
    assert many.history <= 1.2 * few.history + 16
    assert many.segments <= 1.2 * few.segments + 16
    assert many.seeks <= 4 * few.seeks + 16
    assert many.history + many.seeks < STEPS * 3000


@pytest.mark.parametrize("name", ["min", "max", "distinct on", "top 10", "mode"])
def test_the_present_extreme_goes_again_and_again(name: str) -> None:
    """Rows that cancel out at the end of a group are not scanned."""
    last = name == "max"
    few, many = (spent(VIEWS[name](), n, lambda step, n=n: n - 1 - step if last else step) for n in (FEW, MANY))
    assert many.history <= 1.2 * few.history + 16
    assert many.history < STEPS * 200
