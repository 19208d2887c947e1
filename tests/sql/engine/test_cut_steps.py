"""A large change is stepped before it is durable: a cancel ends the step between any two operators, and what has run is
undone. Tables and views are then as before, and later commits are right."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivm.errors import SqlError
from ivm.runtime.steps import FlowRun
from sql.coordination.jobs import Jobs
from sql.engine.engine import Engine
from sql.engine.guard import Cancels
from sql.engine.step_costs import StepCosts
from sql.session import copy_files
from storage.load.collector import RowCollector
from tests.support.profiles import NAME
from tests.support.sessions import Client, Server

ROWS = 400
VIEWS = {
    "sums": "SELECT g, count(*), sum(n), avg(f), min(n), max(s), count(DISTINCT n) AS d FROM a GROUP BY g",
    "joined": "SELECT a.id, a.g, b.x, b.t FROM a JOIN b ON a.g = b.g",
    "three": "SELECT a.id, b.x, c.x AS y FROM a JOIN b ON a.g = b.g JOIN b c ON c.x = a.n",
    "outer_joined": "SELECT a.id, b.x FROM a FULL JOIN b ON a.n = b.x",
    "having": "SELECT g FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.g = a.g AND b.x > 3)",
    "lacking": "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.x = a.n)",
    "above": "SELECT id FROM a WHERE n > (SELECT avg(n) FROM a c WHERE c.g = a.g)",
    "sets": "SELECT n FROM a EXCEPT SELECT x FROM b",
    "common": "SELECT n FROM a INTERSECT ALL SELECT x FROM b",
    "few": "SELECT DISTINCT g, n % 5 AS k FROM a",
    "top": "SELECT id, n FROM a ORDER BY n DESC, id LIMIT 10",
    "tops": "SELECT * FROM (SELECT g, id, row_number() OVER (PARTITION BY g ORDER BY n, id) AS r FROM a) q WHERE r < 4",
    "windows": "SELECT id, sum(n) OVER (PARTITION BY g ORDER BY id), lag(n) OVER (PARTITION BY g ORDER BY id) FROM a",
    "strings": "SELECT g, string_agg(s, ',' ORDER BY id), array_agg(n ORDER BY id) FROM a GROUP BY g",
    "reached": "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT a.n FROM r JOIN a ON a.id = r.n) SELECT n FROM r",
    "paths": """WITH MUTUALLY RECURSIVE p (x int, y int, d bigint) AS (
      SELECT x, y, min(d) FROM (SELECT g AS x, n % 30 AS y, 1::bigint AS d FROM a UNION ALL
        SELECT p.x, a.n % 30, p.d + 1 FROM p JOIN a ON a.g = p.y) q GROUP BY x, y) SELECT x, y, d FROM p""",
    "failing": "SELECT id, 10 / (n - 1000000) AS q FROM a",
    "over": "SELECT count(*) AS n FROM v_joined JOIN v_sums USING (g)",
    "now": "SELECT id, n FROM a WHERE mz_now() >= n AND mz_now() <= 9000000000000000 + n",
    "sided": "SELECT a.id, l.x FROM a, LATERAL (SELECT x FROM b WHERE b.g = a.g ORDER BY x LIMIT 1) l",
}
SHORTEST = """WITH MUTUALLY RECURSIVE p (a int, b int, d int) AS (
  SELECT a, b, min(d) FROM (SELECT x AS a, y AS b, c AS d FROM e UNION ALL
    SELECT p.a, e.y, p.d + e.c FROM p JOIN e ON e.x = p.b) q GROUP BY a, b) SELECT a, b, d FROM p"""
MATCHED = "SELECT a.id, a.n, p.x FROM a LEFT JOIN p FOR SYSTEM_TIME AS OF PROCTIME() ON a.g = p.g"
CHANGES = [
    "UPDATE a SET n = n + 1, s = s || 'y'",
    "UPDATE a SET g = (g + 1) % 20 WHERE id % 3 = 0",
    "DELETE FROM a WHERE id % 4 = 1",
    "INSERT INTO a SELECT 1000 + i, i % 20, i % 60, i / 3.0, 'z' || i FROM generate_series(1, 300) i",
    "MERGE INTO a USING b ON b.x = a.id WHEN MATCHED AND b.x % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = 7",
    "WITH d AS (DELETE FROM b WHERE x % 5 = 0 RETURNING *) INSERT INTO a SELECT 5000 + x, g, x, 0, t FROM d",
    "UPDATE b SET x = x + 1, g = (g + 3) % 20",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("cut")
    server = Server(folder / "data", files=(folder,))
    client = server.client()
    client.run("CREATE TABLE a (id int PRIMARY KEY, g int, n int, f float8, s text)")
    client.run("CREATE TABLE b (g int, x int, t text)")
    client.run("CREATE INDEX ON a (g)")
    client.run(f"INSERT INTO a SELECT i, i % 20, i % 50, i / 7.0, 's' || i FROM generate_series(1, {ROWS}) i")
    client.run("INSERT INTO b SELECT i % 20, i, 't' || i FROM generate_series(1, 60) i")
    client.run("CREATE TABLE p (g int PRIMARY KEY, x int)")
    client.run("INSERT INTO p SELECT i, i FROM generate_series(0, 19) i")
    client.run(f"CREATE MATERIALIZED VIEW matched AS {MATCHED}")
    client.run("UPDATE p SET x = x + 100")  # what has been matched keeps what it has found
    for name, query in VIEWS.items():
        client.run(f"CREATE MATERIALIZED VIEW v_{name} AS {query}")
    yield server
    server.close()


class Countdown:
    """A cancel that comes at the so many-th time that somebody asks for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 1 << 40
        monkeypatch.setattr(StepCosts, "may_be_long", lambda *_: True)
        monkeypatch.setattr(Cancels, "is_set", self._is_set)
        monkeypatch.setattr(Jobs, "alone", False)  # what is short would not be done on the engine's thread

    def _is_set(self, *_: object) -> bool:
        if threading.current_thread().name == "engine":
            self.left -= 1
        return self.left < 0


def _check(
    client: Client, before: list[list[tuple[str | None, ...]]] | None = None
) -> list[list[tuple[str | None, ...]]]:
    """The tables' rows, as ``before``. Each view is compared with its definition, after a commit that shows what the
    dataflow holds."""
    for table in ("a (id, g, n) VALUES (-1, 3, 4)", "b (g, x) VALUES (3, -1)"):
        client.run(f"INSERT INTO {table}")
    client.run("DELETE FROM a WHERE id = -1")
    client.run("DELETE FROM b WHERE x = -1")
    found = [client.sorted(f"SELECT * FROM {table}") for table in ("a", "b", "matched")]
    assert before is None or found == before
    for view in VIEWS:
        assert client.rows(f"VERIFY MATERIALIZED VIEW v_{view}") == [], view
    return found


EVERY = 13 if NAME == "long" else 29
"""Of so many places where a step may be cut, one is tried."""


@pytest.mark.parametrize("change", range(len(CHANGES)))
def test_a_step_that_is_cut_is_undone(server: Server, monkeypatch: pytest.MonkeyPatch, change: int) -> None:
    """Wherever it is cut."""
    client, cancel = server.client(), Countdown(monkeypatch)
    before, cuts = _check(client), 0
    for after in range(change, 10_000, EVERY):
        cancel.left = after
        try:
            client.run(CHANGES[change])
            break
        except SqlError as error:
            state = error.sqlstate
        finally:
            cancel.left = 1 << 40
        assert state == "57014"
        cuts += 1
        _check(client, before)
    assert cuts > 1
    _check(client)


def test_a_load_that_is_cut_is_undone(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose rows enter the table's arrangement as a batch."""
    client, cancel, loaded, feed = server.client(), Countdown(monkeypatch), [0], Engine.feed_arranged

    def counted(self: Engine, *given: Any) -> None:
        loaded[0] += 1
        feed(self, *given)

    monkeypatch.setattr(Engine, "feed_arranged", counted)
    monkeypatch.setattr(copy_files, "FROM_ROWS", 100)
    monkeypatch.setattr(copy_files, "RowCollector", partial(RowCollector, run=100))
    ids = np.arange(20_000, 20_300)
    columns = {"id": ids, "g": ids % 20, "n": ids % 60, "f": ids / 3, "s": [f"l{i}" for i in ids]}
    pq.write_table(pa.table(columns), server.folder.parent / "rows.parquet")
    before, cuts = _check(client), 0
    for after in range(0, 10_000, EVERY):
        cancel.left = after
        try:
            client.run("COPY a FROM 'rows.parquet' WITH (FORMAT parquet)")
            break
        except SqlError as error:
            state = error.sqlstate
        finally:
            cancel.left = 1 << 40
        assert state == "57014"
        cuts += 1
        _check(client, before)
    assert cuts > 3
    assert loaded[0] == cuts + 1
    _check(client)


def test_what_is_undone_is_only_what_has_run(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work of undoing is that of the part of the step that had been done."""
    client, cancel, run = server.client(), Countdown(monkeypatch), FlowRun.run
    looked: list[int] = []

    def counted(self: FlowRun) -> None:
        before = self.looked
        run(self)
        looked.append(self.looked - before)

    client.run("UPDATE a SET n = n + 1")
    monkeypatch.setattr(FlowRun, "run", counted)
    client.run("UPDATE a SET n = n + 1")
    whole = max(looked)
    looked.clear()
    cancel.left = 5
    assert client.state("UPDATE a SET n = n + 1") == "57014"
    assert sum(looked) < 30 < whole


def test_a_cancel_in_a_loop_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement is undone, and the view is made anew; the others are as they were."""
    monkeypatch.setattr(StepCosts, "may_be_long", lambda *_: True)
    monkeypatch.setattr(Jobs, "alone", False)
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE e (x int, y int, c int)")
    client.run("INSERT INTO e VALUES (1, 2, 5), (2, 3, 7)")
    client.run(f"CREATE MATERIALIZED VIEW paths AS {SHORTEST}")
    client.run("CREATE MATERIALIZED VIEW sums AS SELECT x, sum(c) AS s FROM e GROUP BY x")
    before = [client.sorted(f"SELECT * FROM {name}") for name in ("e", "paths", "sums")]
    client.run("SET statement_timeout = '300ms'")
    assert client.state("INSERT INTO e VALUES (3, 1, -20), (4, 5, 6)") == "57014"
    client.run("SET statement_timeout = 0")
    assert client.rows("SELECT view, status FROM freshet.views WHERE view = 'sums'") == [("sums", "running")]
    assert [client.sorted(f"SELECT * FROM {name}") for name in ("e", "paths", "sums")] == before
    client.run("INSERT INTO e VALUES (3, 4, 1)")
    assert client.rows("SELECT count(*), max(d) FROM paths") == [("6", "13")]
    for _ in range(2):
        for view in ("paths", "sums"):
            assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []
        server.restart()
        client = server.client()
        assert client.rows("SELECT count(*) FROM e") == [("3",)]
    server.close()
