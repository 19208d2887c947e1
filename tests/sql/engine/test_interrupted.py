"""Steps interrupted inside a transaction: rolling it back repairs what the interruption broke."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ivm.operators.reduce import ReduceOperator
from sql.engine.guard import Watch
from tests.support.sessions import Client, Server

STEP = "SELECT 1 UNION ALL SELECT y FROM r JOIN e ON e.x = r.n"


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("interrupted") / "data")
    client = server.client()
    client.run("CREATE TABLE e (x int, y int)")
    client.run("INSERT INTO e VALUES (1, 2), (2, 3)")
    client.run(f"CREATE MATERIALIZED VIEW r AS WITH RECURSIVE r(n) AS ({STEP}) SELECT * FROM r")
    client.run(f"CREATE MATERIALIZED VIEW most AS WITH RECURSIVE r(n) AS ({STEP}) SELECT max(n) AS n FROM r")
    client.run("CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS n FROM r")
    client.run("CREATE MATERIALIZED VIEW pairs AS SELECT a.x, b.y FROM e a JOIN e b ON a.x = b.y")
    yield server
    server.close()


def _watch(server: Server) -> Watch:
    return server.coordinator.engine.watch


def _whole(client: Client, rows: int) -> None:
    """Checks every view now, after a commit that only inserts, and after one that deletes."""
    for _ in range(2):
        assert client.rows("SELECT view FROM freshet.view_errors") == []
        assert client.rows("SELECT count(*), max(n) FROM r") == [(str(rows), str(rows))]
        assert client.rows("SELECT count(*) FROM r") == [(str(rows),)]
        assert client.rows("SELECT n FROM most") == [(str(rows),)]
        assert client.rows("SELECT n FROM total") == [(str(rows * (rows + 1) // 2),)]
        for view in ("r", "most", "total", "pairs"):
            assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []
        client.run(f"INSERT INTO e VALUES ({rows}, {rows + 1})")
        rows += 1
    client.run("DELETE FROM e WHERE y > 3")
    assert client.rows("SELECT n FROM total") == [("6",)]


@pytest.mark.parametrize("cause", ["time", "memory", "timeout"])
def test_a_rolled_back_transaction_leaves_the_views_well(server: Server, cause: str) -> None:
    a, b = server.client(), server.client()
    watch, budget = _watch(server), server.coordinator.budget
    a.run("BEGIN")
    a.run("INSERT INTO e VALUES (3, 1)")
    if cause == "timeout":
        a.run("SET statement_timeout = '300ms'")
    try:
        watch.seconds = 0.3 if cause == "time" else 120.0
        budget.limit = 1 << 20 if cause == "memory" else 256 << 20
        assert a.state("SELECT * FROM total") == {"time": "54001", "memory": "53200", "timeout": "57014"}[cause]
    finally:
        watch.seconds, budget.limit = 120.0, 256 << 20
    assert b.rows("SELECT n FROM total") == [("6",)]
    a.run("ROLLBACK")
    assert b.rows("SELECT n FROM total") == [("6",)]
    _whole(b, 3)
    server.restart()
    assert server.client().rows("SELECT n FROM total") == [("6",)]


def test_a_savepoint_before_the_interruption_stays(server: Server) -> None:
    a, b = server.client(), server.client()
    watch = _watch(server)
    a.run("BEGIN")
    a.run("INSERT INTO e VALUES (3, 4)")
    assert a.rows("SELECT n FROM total") == [("10",)]
    a.run(f"CREATE MATERIALIZED VIEW mine AS WITH RECURSIVE r(n) AS ({STEP}) SELECT count(*) AS n FROM r")
    a.run("SAVEPOINT s")
    a.run("INSERT INTO e VALUES (4, 1)")
    try:
        watch.seconds = 0.3
        assert a.state("SELECT * FROM most") == "54001"
    finally:
        watch.seconds = 120.0
    a.run("ROLLBACK TO s")
    assert a.rows("SELECT n FROM total") == [("10",)]
    assert a.rows("SELECT n FROM mine") == [("4",)]
    assert b.rows("SELECT n FROM total") == [("6",)]
    a.run("COMMIT")
    assert b.rows("SELECT n FROM mine") == [("4",)]
    assert a.rows("VERIFY MATERIALIZED VIEW mine") == []
    _whole(b, 4)


def test_an_operator_without_memory_takes_down_only_its_views(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    a = server.client()
    a.run("CREATE TABLE big (a int)")
    a.run("CREATE MATERIALIZED VIEW grouped AS SELECT a, count(*) AS n, max(a) AS m FROM big GROUP BY a")
    a.run("CREATE MATERIALIZED VIEW kept AS SELECT a + 1 AS a FROM big")

    def fail(self: ReduceOperator, vector: int) -> bool:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(ReduceOperator, "run", fail)
        a.run("BEGIN")
        a.run("INSERT INTO big VALUES (1)")
        assert a.state("SELECT * FROM grouped") == "53200"
    a.run("ROLLBACK")
    a.run("INSERT INTO big VALUES (2)")
    assert a.rows("SELECT a, n FROM grouped") == [("2", "1")]
    with monkeypatch.context() as patch:
        patch.setattr(ReduceOperator, "run", fail)
        a.run("INSERT INTO big VALUES (3)")
    assert a.state("SELECT * FROM grouped") == "53200"
    assert a.sorted("SELECT a FROM kept") == [("3",), ("4",)]
    a.run("DELETE FROM big WHERE a = 2")
    assert a.rows("SELECT a, n FROM grouped") == [("3", "1")]
    assert a.rows("VERIFY MATERIALIZED VIEW grouped") == []


def test_a_cancel_is_seen_inside_a_large_join(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel returns after every slice, even if the block has room for more."""
    monkeypatch.setattr("ivm.operators.join.SLICE", 256)
    monkeypatch.setattr("ivm.operators.join.LARGE", 64)
    a = server.client()
    a.run("CREATE TABLE wide (a int, b int)")
    a.run("CREATE MATERIALIZED VIEW product AS SELECT x.a, y.b FROM wide x JOIN wide y ON x.b = y.b")
    a.run("INSERT INTO wide SELECT i, i % 3 FROM generate_series(1, 90) i")
    assert a.rows("VERIFY MATERIALIZED VIEW product") == []
    assert a.rows("SELECT count(*) FROM product") == [("2700",)]
    engine = server.coordinator.engine
    a.run("BEGIN")
    a.run("INSERT INTO wide SELECT i, i % 3 FROM generate_series(91, 180) i")
    step = engine.dataflow.step

    def interrupted(until: float) -> bool:
        patch.undo()  # the rollback is not interrupted
        engine.dataflow.cancel.set()
        return step(until)

    with monkeypatch.context() as patch:
        patch.setattr(engine.dataflow, "step", interrupted)
        assert a.state("SELECT count(*) FROM product") == "57014"
    a.run("ROLLBACK")
    assert a.rows("VERIFY MATERIALIZED VIEW product") == []
    a.run("INSERT INTO wide VALUES (7, 1)")
    assert a.rows("SELECT count(*) FROM product") == [("2761",)]
