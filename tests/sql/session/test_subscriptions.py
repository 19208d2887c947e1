"""SUBSCRIBE to a view with errors is refused, as a read is; on later errors it pauses, then loses nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sql.session import subscription
from sql.session.differences import difference
from tests.support.sessions import Client, Row, Server

INVERSE = "SELECT a, 6 / (b - 1) AS q FROM t"


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[tuple[Client, Client]]:
    server = Server(tmp_path)
    writer = server.client()
    writer.run("CREATE TABLE t (a int, b int)")
    writer.run("INSERT INTO t VALUES (1, 2), (2, NULL)")
    writer.run(f"CREATE MATERIALIZED VIEW v AS {INVERSE}")
    yield writer, server.client()
    server.close()


def follow(reader: Client, source: str, options: str = "") -> list[Row]:
    """The snapshot, without its epoch."""
    reader.run("BEGIN")
    reader.run(f"DECLARE c CURSOR FOR SUBSCRIBE {source} {options}")
    return news(reader)


def news(reader: Client, wait: str = "20s") -> list[Row]:
    return sorted((row[1:] for row in reader.rows(f"FETCH ALL c WITH (timeout = '{wait}')")), key=repr)


@pytest.mark.parametrize("source", ["v", f"({INVERSE})"])
def test_it_pauses_while_an_error_stands(clients: tuple[Client, Client], source: str) -> None:
    writer, reader = clients
    assert follow(reader, source) == [("1", "1", "6"), ("1", "2", None)]
    writer.run("INSERT INTO t VALUES (3, 3)")
    assert news(reader) == [("1", "3", "3")]
    assert not reader.notices()
    writer.run("INSERT INTO t VALUES (4, 1), (5, 4)")
    writer.run("DELETE FROM t WHERE a = 1")
    assert news(reader, "300ms") == []
    (warning,) = reader.notices()
    assert (warning.severity, warning.detail) == ("WARNING", "Failing row contains (4, 1).")
    assert "division by zero" in warning.message
    writer.run("UPDATE t SET b = 7 WHERE a = 4")
    found = news(reader)
    assert found == [("-1", "1", "6"), ("1", "4", "1"), ("1", "5", "2")]
    assert not reader.notices()


def test_changes_keep_their_epochs_over_a_pause(clients: tuple[Client, Client]) -> None:
    writer, reader = clients
    follow(reader, "v")
    epochs = []
    for change in ("INSERT INTO t VALUES (4, 1), (5, 4)", "DELETE FROM t WHERE a = 1", "DELETE FROM t WHERE a = 4"):
        writer.run(change)
        epochs.append(writer.rows("SELECT mz_now()")[0][0] or "")
    rows = reader.rows("FETCH ALL c WITH (timeout = '20s')")
    assert [row[1:] for row in rows] == [("1", "5", "2"), ("-1", "1", "6")]
    first, second = (str(row[0]) for row in rows)
    assert first <= epochs[0] < second <= epochs[1]


def test_progress_stands_still(clients: tuple[Client, Client]) -> None:
    writer, reader = clients
    follow(reader, "v", "WITH (PROGRESS)")
    news(reader, "100ms")
    writer.run("INSERT INTO t VALUES (4, 1)")
    news(reader, "100ms")
    assert news(reader, "1500ms") == []
    writer.run("DELETE FROM t WHERE a = 4")
    assert ("t", None, None, None) in news(reader)


def test_none_begins_on_an_error(clients: tuple[Client, Client]) -> None:
    writer, reader = clients
    writer.run("INSERT INTO t VALUES (4, 1)")
    reader.run("BEGIN")
    error = reader.error("DECLARE c CURSOR FOR SUBSCRIBE v")
    assert (error.sqlstate, error.message) == ("22012", "division by zero (in materialized view v)")
    reader.run("ROLLBACK")
    assert reader.state(f"COPY (SUBSCRIBE ({INVERSE})) TO STDOUT") == "22012"
    reader.run("SET ignore_view_errors = on")
    assert follow(reader, "v") == [("1", "1", "6"), ("1", "2", None)]
    writer.run("INSERT INTO t VALUES (5, 1), (6, 2)")
    assert news(reader) == [("1", "6", "6")]


def test_the_difference_of_a_replaced_view_is_computed_beside_the_event_loop(
    clients: tuple[Client, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is committed meanwhile is told after it."""
    writer, reader = clients
    threads, go_on = [], threading.Event()

    def slowly(*args: Any) -> Any:
        threads.append(threading.current_thread())
        go_on.wait(20)
        return difference(*args)

    monkeypatch.setattr(subscription, "difference", slowly)
    assert follow(reader, "v") == [("1", "1", "6"), ("1", "2", None)]
    writer.run("BEGIN; CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a, 12 / (b - 1) AS q FROM t; COMMIT")
    writer.run("INSERT INTO t VALUES (3, 2)")
    assert news(reader, "200ms") == []
    go_on.set()
    found = news(reader)
    while len(found) < 3:
        found += news(reader)
    assert sorted(found, key=repr) == [("-1", "1", "6"), ("1", "1", "12"), ("1", "3", "12")]
    assert len(threads) == 1
    assert threads[0] is not writer.server._thread
