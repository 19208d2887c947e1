"""A cancel or a timeout ends the step of a commit that may take long, and the commit is undone: the statement, or the
transaction, fails with 57014, everything is as it was, and others are answered meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ivm.errors import SqlError
from sql.engine import step_costs
from sql.engine.engine import Engine
from sql.engine.step_costs import UNKNOWN_ROWS
from sql.engine.writer import Writer
from tests.support.sessions import Client, Row, Server

ROWS = 2 * UNKNOWN_ROWS
ENDLESS = """WITH RECURSIVE r (i, k) AS (
  SELECT i, 0 FROM t WHERE v < 0 AND i < 4 UNION ALL SELECT i, (k + 1) % 3 FROM r)
  SELECT i, k, count(*) FROM r GROUP BY i, k"""
VIEWS = {
    "endless": ENDLESS,
    "sums": "SELECT v, count(*), max(i) FROM t GROUP BY v",
    "later": "SELECT i FROM t WHERE mz_now() <= 9000000000000000 + v",
}
CHANGE = "UPDATE t SET v = -1 WHERE i > 0"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("data"), patience=120)
    client = server.client()
    client.run("CREATE TABLE t (i int PRIMARY KEY, v int)")
    client.run(f"INSERT INTO t SELECT i, i FROM generate_series(1, {ROWS}) i")
    for name, query in VIEWS.items():
        client.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    yield server
    server.close()


def _contents(client: Client) -> list[list[Row]]:
    return [client.sorted(f"SELECT * FROM {name}") for name in ("t", *VIEWS)]


def _is_stepping(server: Server) -> bool:
    """Whether the engine runs the loop."""
    return server.coordinator.engine.dataflow.running is not None


def _cancelled(client: Client, text: str, other: Client) -> str:
    """How a statement ends that is cancelled while its step runs."""
    server = client.server
    running: Any = server.start(client.work(text))
    while not _is_stepping(server):
        assert not running.done()
        time.sleep(0.01)
    assert other.rows("SELECT v FROM t WHERE i = 1") == [("1",)]
    server.run(client.session.cancel())
    with pytest.raises(SqlError) as caught:
        running.result(60)
    return caught.value.sqlstate


def _timed_out(client: Client, text: str, other: Client) -> str:
    del other
    client.run(f"SET {'LOCAL' if client.session.state.in_block else ''} statement_timeout = 300")
    found = client.state(text)
    client.run("SET statement_timeout = 0")
    return found


WAYS = [pytest.param(_cancelled, id="cancel"), pytest.param(_timed_out, id="timeout")]


def _check(client: Client, before: list[list[Row]]) -> None:
    assert client.session.state.transaction_status == "I"
    assert _contents(client) == before
    client.run("INSERT INTO t VALUES (0, 5)")
    client.run("DELETE FROM t WHERE i = 0")
    assert _contents(client) == before
    for name in VIEWS:
        assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == [], name


@pytest.mark.parametrize("ends", WAYS)
def test_a_statement(client: Client, server: Server, ends: Callable[..., str]) -> None:
    other, before = server.client(), _contents(client)
    assert ends(client, CHANGE, other) == "57014"
    _check(client, before)
    other.close()


@pytest.mark.parametrize("ends", WAYS)
@pytest.mark.parametrize("level", ["READ COMMITTED", "SERIALIZABLE"])
def test_the_commit_of_a_block(client: Client, server: Server, ends: Callable[..., str], level: str) -> None:
    """Also after its views have seen a part of its changes."""
    other, before = server.client(), _contents(client)
    for seen in (False, True):
        client.run(f"BEGIN ISOLATION LEVEL {level}")
        client.run("INSERT INTO t VALUES (0, 7)")
        if seen:
            assert client.rows("SELECT count(*) FROM sums WHERE v = 7 AND max = 7") == [("1",)]
        client.run(CHANGE)
        assert ends(client, "COMMIT", other) == "57014"
        _check(client, before)
    other.close()


def test_a_block_can_be_tried_again(client: Client, server: Server) -> None:
    """Its locks are free after that."""
    other = server.client()
    client.run("BEGIN")
    client.run(CHANGE)
    assert _cancelled(client, "COMMIT", other) == "57014"
    other.run("SET lock_timeout = '10s'")
    other.run("UPDATE t SET v = v + 1 WHERE i = 2")
    client.run("BEGIN")
    client.run("UPDATE t SET v = v - 1 WHERE i = 2")
    client.run("COMMIT")
    assert client.rows("SELECT v FROM t WHERE i = 2") == [("2",)]
    other.close()


@pytest.mark.parametrize("block", [False, True], ids=["a statement", "a block"])
def test_few_rows_of_a_table_whose_last_step_was_long(
    client: Client, server: Server, monkeypatch: pytest.MonkeyPatch, block: bool
) -> None:
    monkeypatch.setattr(step_costs, "LONG_NANOSECONDS", -1)
    other, before = server.client(), _contents(client)
    client.run("UPDATE t SET v = v WHERE i = 2")
    if block:
        client.run("BEGIN")
        client.run("UPDATE t SET v = -1 WHERE i = 3")
    assert _cancelled(client, "COMMIT" if block else "UPDATE t SET v = -1 WHERE i = 3", other) == "57014"
    _check(client, before)
    other.close()


@pytest.mark.parametrize("block", [False, True], ids=["a statement", "a block"])
def test_one_row_before_any_step_has_shown_what_it_costs(client: Client, server: Server, block: bool) -> None:
    other, before = server.client(), _contents(client)
    client.run("CREATE MATERIALIZED VIEW fresh AS SELECT count(*) FROM t")
    if block:
        client.run("BEGIN")
        client.run("UPDATE t SET v = -1 WHERE i = 3")
    assert _cancelled(client, "COMMIT" if block else "UPDATE t SET v = -1 WHERE i = 3", other) == "57014"
    _check(client, before)
    client.run("DROP MATERIALIZED VIEW fresh")
    other.close()


def test_a_cancel_while_the_commit_waits(client: Client, server: Server) -> None:
    """It waits for a transaction that has loaded a large file."""
    other, before = server.client(), _contents(client)
    client.run("BEGIN")
    client.run("INSERT INTO t VALUES (0, 7)")
    other.run("BEGIN")
    other.run("INSERT INTO t VALUES (-1, 7)")
    writer = other.session.state.running.writer
    assert writer is not None
    writer._arranged = 1  # as such a load leaves it
    commit = server.start(client.work("COMMIT"))
    while not server.coordinator.jobs.waits.waited_for():
        assert not commit.done()
        time.sleep(0.01)
    server.run(client.session.cancel())
    with pytest.raises(SqlError) as caught:
        commit.result(60)
    assert caught.value.sqlstate == "57014"
    other.run("ROLLBACK")
    _check(client, before)
    other.close()


UNSEEN = {
    "a new table": "CREATE TABLE copied AS SELECT * FROM source",
    "rows under no view": "INSERT INTO target SELECT * FROM source",
    "a changed table": "ALTER TABLE source ALTER v TYPE bigint",
}


@pytest.mark.parametrize("where", ["feed", "add"])
@pytest.mark.parametrize("text", UNSEEN.values(), ids=UNSEEN)
def test_what_is_not_stepped_ahead(
    client: Client, server: Server, monkeypatch: pytest.MonkeyPatch, text: str, where: str
) -> None:
    """It ends until its record is written: here by a cancel that comes while its rows are fed, or before."""
    client.run("CREATE TABLE source (i int PRIMARY KEY, v int)")
    client.run("CREATE TABLE target (i int PRIMARY KEY, v int)")
    client.run(f"INSERT INTO source SELECT i, i FROM generate_series(1, {ROWS}) i")
    engine = server.coordinator.engine
    kind: type = Engine if where == "feed" else Writer
    before: Callable[..., object] = getattr(kind, where)

    def cancelled(*given: Any) -> object:
        found = before(*given)
        engine.dataflow.cancel.set()
        return found

    monkeypatch.setattr(kind, where, cancelled)
    assert client.state(text) == "57014"
    monkeypatch.undo()
    assert client.state("SELECT FROM copied") == "42P01"
    assert client.rows("SELECT count(*), sum(v) FROM source") == [(str(ROWS), str(ROWS * (ROWS + 1) // 2))]
    assert client.rows("SELECT count(*) FROM target") == [("0",)]
    client.run(text)
    client.run("DROP TABLE IF EXISTS copied")
    client.run("DROP TABLE source, target")
