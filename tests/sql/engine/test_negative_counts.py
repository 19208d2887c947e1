"""A view whose operators have deleted more rows than they inserted: it is listed, and filled anew by itself.

The fault is a formula of a cast that reads a double's word as an integer, while the evaluator computes the cast. A row
alone is computed by the formula; together with a row that the formula cannot compute, by the evaluator.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from ivm.errors import SqlError
from ivm.words import Kind
from planner.expr.functions.library import CASTS
from sql.coordination.refilling import Refill
from tests.support.sessions import Client, Server

VIEWS = {
    "wrong": "SELECT id, f::numeric AS n FROM t",
    "shares": "SELECT id, f::numeric AS n FROM t UNION ALL SELECT id, id FROM t",
    "reads": "SELECT max(n) AS m, count(*) AS c FROM wrong",
    "other": "SELECT id, f FROM t",
}


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("negative") / "data")
    client = server.client()
    client.run("CREATE TABLE t (id int, f float8)")
    key = Kind.FLOAT8, Kind.NUMERIC
    with monkeypatch.context() as patch:
        patch.setitem(CASTS, key, replace(CASTS[key], formula=lambda f, a: f.to_decimal(a, 0)))
        for view, query in VIEWS.items():
            client.run(f"CREATE MATERIALIZED VIEW {view} AS {query}")
    client.run("CREATE INDEX ON wrong (n)")
    client.run("INSERT INTO t VALUES (1, '-0')")  # by the formula: -1
    assert client.rows("SELECT n FROM wrong") == [("-1",)]
    client.run("INSERT INTO t VALUES (2, 1.5)")
    client.run("DELETE FROM t WHERE id = 1 OR id = 2")  # together by the evaluator: 0 and 1.5
    client.run("INSERT INTO t VALUES (3, 2.5)")
    yield server
    server.close()


def until_well(client: Client) -> None:
    """Waits until no view is down, and none that is read gets down."""
    for _ in range(400):
        with suppress(SqlError):
            for view in VIEWS:
                client.rows(f"SELECT * FROM {view}")
            if not client.rows("SELECT view FROM freshet.view_errors"):
                return
        time.sleep(0.05)
    raise AssertionError(client.rows("SELECT * FROM freshet.view_errors"))


def all_right(client: Client, rows: list[tuple[str, str]]) -> None:
    assert client.sorted("SELECT id, n FROM wrong") == rows
    assert client.rows(f"SELECT id FROM wrong WHERE n = {rows[-1][1]}") == [(rows[-1][0],)]
    assert client.rows("SELECT c FROM reads") == [(str(len(rows)),)]
    for view in VIEWS:
        assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []


def test_a_view_with_a_negative_count_is_filled_anew(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client, held, plan = server.client(), threading.Event(), Refill.plan
    monkeypatch.setattr(Refill, "plan", lambda refill: held.wait(60) and plan(refill))
    error = client.error("SELECT * FROM wrong")
    assert (error.sqlstate, error.message) == ("XX001", "more rows were deleted from a materialized view than it had")
    for _ in range(200):
        down = client.rows("SELECT view, sqlstate FROM freshet.view_errors ORDER BY 1")
        if down:
            break
        time.sleep(0.05)
    assert down == [("reads", "XX001"), ("shares", "XX001"), ("wrong", "XX001")]
    assert client.error("SELECT * FROM wrong").hint == "It is being filled anew."
    # commits and other reads go on
    client.run("INSERT INTO t VALUES (4, 3.5)")
    assert client.sorted("SELECT id, f FROM other") == [("3", "2.5"), ("4", "3.5")]
    held.set()
    until_well(client)
    all_right(client, [("3", "2.5"), ("4", "3.5")])
    client.run("INSERT INTO t VALUES (5, '-0')")
    client.run("DELETE FROM t WHERE id = 4")
    all_right(client, [("3", "2.5"), ("5", "0")])
    server.restart()
    all_right(server.client(), [("3", "2.5"), ("5", "0")])


def test_a_block_that_reads_it_fails_and_the_view_heals(server: Server) -> None:
    """The view is filled after its end at the latest."""
    client = server.client()
    client.run("BEGIN")
    client.run("INSERT INTO t VALUES (4, 3.5)")
    assert client.state("SELECT * FROM wrong") == "XX001"
    client.run("ROLLBACK")
    until_well(client)
    all_right(client, [("3", "2.5")])


def test_rows_of_history_are_right_afterwards(server: Server) -> None:
    client = server.client()
    assert client.state("SELECT * FROM wrong") == "XX001"
    until_well(client)
    assert client.rows("SELECT n FROM wrong") == [("2.5",)]
    client.run("DELETE FROM t")
    assert client.rows("SELECT n FROM wrong") == []
    assert client.rows("SELECT count(*) FROM wrong") == [("0",)]
