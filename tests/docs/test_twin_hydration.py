"""Contents after Spark's hydration equal the engine's, for the demo's views, W1, W3, W8 and TPC-H's 22, on little data.
Spark's exchange is ``tests.support.spark_fake``'s; ``make spark-hydration`` does it on a cluster, on whole data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.workloads import STRONG
from ivm.trace.batch import Block
from planner.distributed import hydration
from planner.distributed.progress import received
from tests.programs.twin_hydration import compared, scenario
from tests.support.contents import Held, different
from tests.support.sessions import Client, Server
from tests.support.spark_fake import FakeSpark

SMALL = {"demo": 40, "W1": 5, "W3": 4000, "W8": 2000, "tpch": 1}
VIEWS = {"demo": 7, "W1": 1, "W3": 1, "W8": 1, "tpch": 22}
SCALE = 0.002


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    for part in ("files", "shared"):
        (tmp_path / part).mkdir()
    server = Server(tmp_path / "data", (tmp_path / "files",))
    server.coordinator.spark._session = FakeSpark(tmp_path / "shared")  # type: ignore[assignment]
    client = server.client()
    yield client
    client.close()
    server.close()


@pytest.mark.parametrize("name", SMALL)
def test_contents_are_the_engines(client: Client, tmp_path: Path, name: str) -> None:
    with compared() as found:
        scenario(name, tmp_path / "files", SMALL[name], SCALE).run(client)
    assert [view.view for view in found if view.different] == []
    assert len(found) == VIEWS[name]
    assert all(view.arrangements > 1 for view in found)
    assert sum(view.updates for view in found) > 200


def test_one_row_more_is_seen(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = hydration.fill

    def more(flow: hydration.Detached, contents: dict[hydration.NodeId, list[hydration.Contents]]) -> None:
        node, (first, *_) = next((node, found) for node, found in contents.items() if found)
        width, diff_width = next(iter(first())).width, next(iter(first())).diff_width
        row = Block.of(np.zeros((1, width), np.int64), np.zeros(1, np.int64), np.ones((1, diff_width), np.int64))
        fill(flow, contents | {node: [lambda: [*first(), row]]})

    monkeypatch.setattr(hydration, "fill", more)
    with compared() as found:
        client.run("CREATE TABLE t (k int, x int)")
        client.run("INSERT INTO t SELECT i % 7, i FROM generate_series(1, 100) i")
        client.run("CREATE MATERIALIZED VIEW v WITH (HYDRATE = spark) AS SELECT k, max(x) AS m FROM t GROUP BY k")
    assert len(found[0].different) == 1


def test_every_way_to_differ_is_seen() -> None:
    def block(*rows: tuple[int, int, int]) -> Block:
        table = np.array(rows, np.int64).reshape(-1, 3)
        return Block.of(table[:, :1].copy(), table[:, 1].copy(), table[:, 2:].copy())

    one: Held = {3: [block((1, 0, 1), (2, 1, 1))], 4: []}
    assert different(one, {3: [block((1, 0, 1), (2, 1, 1))], 4: []}) == []
    for other in (
        block((1, 0, 1)),
        block((1, 0, 1), (2, 2, 1)),
        block((1, 0, 1), (2, 1, 2)),
        block((1, 0, 1), (3, 1, 1)),
    ):
        assert different(one, {3: [other], 4: []}) == [3]
    assert different(one, {3: one[3]}) == [4]
    assert different(one, {3: [*one[3], block()], 4: []}) == [3]


def test_what_a_cyclic_join_moves_follows_its_rows(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """All nodes get one label: comparing all pairs of nodes first would be quadratic."""
    moved: list[int] = []
    run = hydration.Hydration.run

    def counted(self: hydration.Hydration) -> None:
        run(self)
        moved.append(sum(received(self.folder, step) for step in range(1, self.steps.count + 1)))

    monkeypatch.setattr(hydration.Hydration, "run", counted)
    client.run("CREATE TABLE edges (src bigint NOT NULL, dst bigint NOT NULL)")
    client.run("INSERT INTO edges SELECT 0, i FROM generate_series(1, 600) i UNION ALL SELECT i, 0 "
               "FROM generate_series(1, 600) i")  # fmt: skip
    with compared() as found:
        client.run(f"CREATE MATERIALIZED VIEW strong WITH (HYDRATE = spark) AS {STRONG}")
    assert [view.different for view in found] == [()]
    assert client.rows("SELECT count(*) FROM strong") == [("1200",)]
    assert moved[0] < 40 * 1200
