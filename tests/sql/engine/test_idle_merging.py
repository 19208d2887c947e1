"""Merging continues while the engine is idle, in bounded slices, without changing the contents."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np

from ivm.trace.batch import BIG, Block
from ivm.trace.shards import sorted_block
from ivm.trace.spine import MOST_FILLED, Spine, lend
from sql.coordination import idle
from tests.support.sessions import Server

LARGEST_GROUP = 4
"""Updates of one row in what these tests insert, at most."""


def grown(batches: int, size: int) -> Spine:
    """A spine with unfinished merges."""
    rng = np.random.default_rng(batches)
    spine = Spine(2, 1)
    for turn in range(batches):
        rows = np.column_stack([rng.integers(0, 1 << 40, size), np.arange(size) + turn * size])
        spine.insert(sorted_block(Block.of(rows, np.full(size, turn), np.ones((size, 1), np.int64))))
        if turn > batches - 3 and spine.merging:
            break
    assert spine.merging
    return spine


def contents(spine: Spine) -> list[list[list[int]]]:
    return [part.tolist() for part in spine.contents(0).arrays()]


def test_lent_fuel_ends_merges_in_slices() -> None:
    spine = grown(40, 3_000)
    held, layers = contents(spine), len(spine.parts)
    spines = [spine]
    most = 0
    while spines:
        before = spine.merged
        lend(spines, 1_000)
        most = max(most, spine.merged - before)
    assert not spine.merging
    assert most <= 1_000 + LARGEST_GROUP
    assert len(spine.parts) < layers, "fewer layers to search"
    assert contents(spine) == held
    for part in spine.parts:
        part.check()


def test_runs_that_fill_a_spine_are_layers_until_it_rests() -> None:
    """Twenty large runs and some small ones give few layers, whose merging is left for later."""
    rng = np.random.default_rng(1)
    sizes = [*rng.integers(BIG + 1, 2 * BIG, 20).tolist(), 10, 2_000]
    runs = [sorted_block(Block.of(rng.integers(0, 1000, (n, 2)), np.ones(n), np.ones((n, 1)))) for n in sizes]
    spine, expected = Spine(2, 1), Spine(2, 1)
    spine.fill(runs)
    for run in runs:
        expected.insert(run)
    held = contents(expected)
    assert contents(spine) == held
    assert 1 < len(spine.parts) <= MOST_FILLED + 1
    assert spine.merging
    spine.insert(runs[-1])
    expected.insert(runs[-1])
    spines = [spine]
    while spines:
        lend(spines, 10_000)
    assert not spine.merging
    assert contents(spine) == contents(expected) != held
    for part in spine.parts:
        part.check()


def test_what_was_lent_need_not_be_merged_by_steps() -> None:
    one, other = grown(40, 3_000), grown(40, 3_000)
    spines = [other]
    while spines:
        lend(spines, 1_000)
    started = one.merged, other.merged
    assert started[1] > started[0]
    for at in range(600):
        row = Block.of(np.array([[at, at]], np.int64), np.zeros(1, np.int64), np.ones((1, 1), np.int64))
        one.insert(row)
        other.insert(row)
    assert other.merged - started[1] < one.merged - started[0]
    assert contents(one) == contents(other)


def test_the_server_merges_while_it_rests(tmp_path: Path) -> None:
    server = Server(tmp_path)
    client = server.client()
    client.results("CREATE TABLE t (k int, v int)")
    client.results("CREATE MATERIALIZED VIEW rows AS SELECT k, v FROM t WHERE v >= 0")
    for turn in range(2):  # the second is due to be merged with the first
        low = turn * 20_000
        client.results(f"INSERT INTO t SELECT g * 7919 % 100003, g FROM generate_series({low}, {low + 19_999}) AS g")
    merging = server.coordinator.engine.dataflow.merging

    async def rested() -> None:
        while not server.coordinator.jobs.merging.slices or merging():
            await asyncio.sleep(idle.REST_SECONDS)

    server.run(rested())
    assert client.rows("SELECT count(*), sum(v), sum(k) FROM rows") == client.rows(
        "SELECT count(*), sum(v), sum(k) FROM t"
    )
    client.results("DELETE FROM t WHERE v < 10")
    assert client.rows("SELECT count(*), min(v) FROM rows") == [("39990", "10")], "the next step goes on from there"
    server.close()
