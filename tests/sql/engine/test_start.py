"""A start waits for no view: tables are readable at once, views as they are filled; some are left down."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sql.coordination import refilling
from sql.coordination.refilling import Refill
from sql.engine.guard import ParkedError
from sql.engine.persist import Tuning
from storage.checkpoint import Pace
from tests.support.sessions import Client, Server

SLOW = Tuning(pace=Pace(seconds=600))
"""The store is told only when it must be, so that a copy of the folder has the rest in its log only."""
VIEWS = {
    "sums": "SELECT k % 2 AS odd, sum(v) AS s, count(*) AS n FROM t GROUP BY k % 2",
    "over": "SELECT max(s) AS m FROM sums",
    "bad": "SELECT k, 10 / v AS d FROM t",
    "names": "SELECT k, upper('n' || v) AS name FROM t",
}


class Held:
    """Keeps views from being filled until ``go``."""

    def __init__(self, patch: pytest.MonkeyPatch, *names: str) -> None:
        self.event, plan = threading.Event(), Refill.plan

        def wait(refill: Refill) -> None:
            assert refill.view is not None
            while not self.event.is_set() and (not names or refill.view.name in names) and not refill.cancel.is_set():
                self.event.wait(0.01)
            plan(refill)

        patch.setattr(Refill, "plan", wait)

    def go(self) -> None:
        self.event.set()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data", tuning=SLOW)
    client = server.client()
    client.run("CREATE TABLE t (k int PRIMARY KEY, v int)")
    client.run("INSERT INTO t SELECT i, i FROM generate_series(1, 10) i")
    for name, query in VIEWS.items():
        client.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    yield server
    server.close()


def kill(server: Server, to: Path) -> None:
    """Go on with what is on disk now; the old server's end is not seen."""
    shutil.copytree(server.folder, to)
    server.folder = to
    server.restart()


def everything(client: Client, as_of: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for name in VIEWS:
        try:
            found[name] = client.sorted(f"SELECT * FROM {name}{as_of}")
        except Exception as error:
            found[name] = str(error)
    return found


def test_tables_are_there_before_views(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything(server.client())
    held = Held(monkeypatch)
    server.restart()
    client = server.client()
    assert client.rows("SELECT count(*) FROM t") == [("10",)]
    assert {row[0]: row[1] for row in client.rows("SELECT view, status FROM freshet.views")} == dict.fromkeys(
        VIEWS, "filling"
    )
    assert len(client.rows("SELECT view FROM freshet.hydrations")) == len(VIEWS)
    client.run("INSERT INTO t VALUES (11, 11)")
    client.run("SET statement_timeout = '100ms'")
    assert client.state("SELECT * FROM sums") == "57014"
    client.run("SET statement_timeout = 0")
    client.run("DELETE FROM t WHERE k = 11")
    held.go()
    assert everything(client) == before
    for name in VIEWS:
        assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == []
    assert client.rows("SELECT count(*) FROM names") == [("10",)]


@pytest.mark.parametrize("killed", [True, False])
def test_history_goes_on(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool) -> None:
    """What views were at each epoch, before and after the start, also while they were not filled."""
    client, seen = server.client(), {}
    statements = ["INSERT INTO t VALUES (20, 0)", "UPDATE t SET v = v + 1 WHERE k < 4", "DELETE FROM t WHERE v = 0"]
    for statement in statements:
        client.run(statement)
        seen[server.coordinator.engine.published.epoch] = everything(client)
    held = Held(monkeypatch)
    if killed:
        kill(server, tmp_path / "killed")
    else:
        server.restart()
    client, epochs = server.client(), []
    for statement in [
        "INSERT INTO t VALUES (30, 30)",
        *statements,
        "CREATE MATERIALIZED VIEW fresh AS SELECT k FROM t",
    ]:
        client.run(statement)
        epochs.append(server.coordinator.engine.published.epoch)
    held.go()
    now = everything(client)
    assert everything(client, f" AS OF {epochs[-1]}") == now
    client.run("DELETE FROM t WHERE k > 9")
    for epoch in epochs:
        seen[epoch] = everything(client, f" AS OF {epoch}")
    assert seen[epochs[1]]["bad"] == "division by zero (in materialized view bad) (22012)"
    assert seen[epochs[-1]] == now
    for _ in range(2):
        for epoch, found in seen.items():
            assert everything(client, f" AS OF {epoch}") == found, epoch
        server.restart()
        client = server.client()


def test_a_server_that_is_killed_before_views_are_filled(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits made meanwhile are in the store, the views are not: they are filled as of the present."""
    first = server.coordinator.engine.published.epoch
    before = everything(server.client())
    with monkeypatch.context() as patch:
        Held(patch)
        server.restart()
        client = server.client()
        client.run("INSERT INTO t VALUES (20, 20)")
        between = server.coordinator.engine.published.epoch
        persistence = server.coordinator.engine.persistence
        assert persistence is not None
        persistence.flush()
        shutil.copytree(server.folder, tmp_path / "killed")
    server.folder = tmp_path / "killed"
    server.restart()
    client = server.client()
    assert client.rows("SELECT count(*) FROM names") == [("11",)]
    for _ in range(2):
        assert client.rows("SELECT sum(s) FROM sums") == [("75",)]
        for name in VIEWS:
            assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == []
        assert everything(client, f" AS OF {first}") == before
        assert client.state(f"SELECT * FROM sums AS OF {between}") == "55000"
        server.restart()
        client = server.client()


def test_views_of_the_log_are_filled_too(server: Server, tmp_path: Path) -> None:
    client = server.client()
    client.run("CREATE MATERIALIZED VIEW late AS SELECT n, count(*) AS c FROM sums GROUP BY n")
    created = server.coordinator.engine.published.epoch
    client.run("CREATE OR REPLACE MATERIALIZED VIEW bad AS SELECT k, 20 / v AS d FROM t")
    client.run("INSERT INTO t VALUES (21, 1)")
    kill(server, tmp_path / "killed")
    for _ in range(3):
        client = server.client()
        assert client.sorted("SELECT * FROM late") == [("5", "1"), ("6", "1")]
        assert client.rows(f"SELECT * FROM late AS OF {created}") == [("5", "2")]
        assert client.rows("SELECT max(d), count(*) FROM bad") == [("20", "11")]
        for name in ("late", *VIEWS):
            assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == []
        server.restart()


def test_a_view_that_was_slow_is_left_down(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refilling, "SLOW_SECONDS", 1.0)
    with monkeypatch.context() as patch:
        held = Held(patch, "sums")
        server.restart()
        persistence = server.coordinator.engine.persistence
        assert persistence is not None
        for _ in range(200):
            if any(lag.slow for lag in persistence.store.lagging.values()):
                break
            time.sleep(0.05)
        kill(server, tmp_path / "killed")
        client = server.client()
        assert client.rows("SELECT count(*) FROM bad") == [("10",)]
        error = client.error("SELECT * FROM sums")
        assert (error.sqlstate, error.hint) == ("55000", "REFRESH MATERIALIZED VIEW sums fills it.")
        assert client.state("SELECT * FROM over") == "55000"
        client.run("DELETE FROM t WHERE k = 10")
        assert dict(client.rows("SELECT view, status FROM freshet.views"))["sums"] == "down"
        held.go()
        client.run("REFRESH MATERIALIZED VIEW over")
        assert client.rows("SELECT m FROM over") == [("25",)]
        assert client.sorted("SELECT odd, s FROM sums") == [("0", "20"), ("1", "25")]
    client.run("REFRESH MATERIALIZED VIEW sums")
    assert [n.message for n in client.notices()] == ["materialized views are always up to date; REFRESH does nothing"]
    server.restart()
    assert server.client().rows("SELECT m FROM over") == [("25",)]


def test_safe_mode(server: Server, tmp_path: Path) -> None:
    engine = server.coordinator.engine
    over = next(r.id for r in engine.catalog.relations.values() if r.name == "over")
    engine.failures[over] = ParkedError("It was being filled when the server ended.")
    server.client().run("INSERT INTO t VALUES (19, 19)")
    server.client().run("DELETE FROM t WHERE k = 19")
    server.safe = True
    kill(server, tmp_path / "killed")
    client = server.client()
    assert {row[0] for row in client.rows("SELECT status FROM freshet.views")} == {"down"}
    assert client.state("SELECT * FROM sums") == "55000"
    client.run("INSERT INTO t VALUES (20, 20)")
    client.run("DELETE FROM t WHERE k = 1")
    assert client.state("SELECT * FROM sums") == "55000"
    client.run("DROP MATERIALIZED VIEW bad")
    client.run("REFRESH MATERIALIZED VIEW names")
    assert client.rows("SELECT count(*) FROM names") == [("10",)]
    server.safe = False
    server.restart()
    client = server.client()
    assert client.rows("SELECT sum(s) FROM sums") == [("74",)]
    assert client.rows("SELECT count(*) FROM names") == [("10",)]
    assert client.state("SELECT * FROM bad") == "42P01"
