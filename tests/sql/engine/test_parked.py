"""A view whose step keeps others waiting is parked: it is filled beside the engine, and everything else goes on."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from planner.expr.evaluate import calls
from sql.coordination import refilling
from tests.support.sessions import Client, Server
from tests.support.subscriber import Subscriber

PATHS = """WITH RECURSIVE p(a, b, d) AS (
    SELECT x, y, c FROM e UNION ALL
    SELECT a, b, min(d) FROM (SELECT p.a, e.y AS b, p.d + e.c AS d FROM p JOIN e ON e.x = p.b) q GROUP BY a, b)
  SELECT a, b, min(d) AS d FROM p GROUP BY a, b"""
REACHED = "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT y FROM r JOIN e ON e.x = r.n) SELECT n FROM r"
DIVERGING = "INSERT INTO e VALUES (3, 1, -20)"
WHOLE = [("1", "2", "5"), ("1", "3", "12"), ("2", "3", "7")]


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("parked") / "data")
    client = server.client()
    client.run("CREATE TABLE e (x int, y int, c int)")
    client.run("CREATE TABLE t (a int)")
    client.run("INSERT INTO e VALUES (1, 2, 5), (2, 3, 7)")
    client.run(f"CREATE MATERIALIZED VIEW paths AS {PATHS}")
    client.run("CREATE MATERIALIZED VIEW over AS SELECT count(*) AS n FROM paths")
    client.run(f"CREATE MATERIALIZED VIEW reached AS {REACHED}")
    client.run("CREATE MATERIALIZED VIEW sums AS SELECT x, sum(c) AS s FROM e GROUP BY x")
    yield server
    server.close()


def _status(client: Client) -> dict[str | None, str | None]:
    return dict(client.rows("SELECT view, status FROM freshet.views"))  # type: ignore[arg-type]


def _park(server: Server, statement: str = DIVERGING) -> None:
    """Runs a statement beside commits of others until both have returned."""
    one, other = server.client(), server.client()
    started = server.start(one.work(statement))
    until = time.monotonic() + 60
    while not started.done():
        assert time.monotonic() < until
        other.run("INSERT INTO t VALUES (1)")
    started.result(1)


def _until(client: Client, status: str, view: str = "paths") -> None:
    for _ in range(600):
        if _status(client)[view] == status:
            return
        time.sleep(0.05)
    raise AssertionError(_status(client))


def test_a_view_that_does_not_end_stops_nobody(server: Server) -> None:
    client = server.client()
    _park(server)
    assert _status(client) == {"paths": "filling", "over": "filling", "reached": "running", "sums": "running"}
    assert client.sorted("SELECT n FROM reached") == [("1",), ("2",), ("3",)]
    assert client.sorted("SELECT * FROM sums") == [("1", "5"), ("2", "7"), ("3", "-20")]
    assert dict(client.rows("SELECT view, pid FROM freshet.hydrations")) == {"paths": None, "over": None}
    client.run("SET statement_timeout = '200ms'")
    assert client.state("SELECT * FROM paths") == "57014"  # it waits
    client.run("SET statement_timeout = 0")
    client.run("BEGIN")
    client.run("SELECT * FROM t")
    error = client.error("SELECT * FROM over")
    assert (error.sqlstate, "waits" in (error.hint or "")) == ("55000", True)
    client.run("ROLLBACK")


def test_it_is_back_when_the_row_is_gone(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refilling, "FIRST_SECONDS", 0.1)
    client = server.client()
    before = server.coordinator.engine.published.epoch
    _park(server)
    client.run("DELETE FROM e WHERE x = 3")
    assert client.sorted("SELECT * FROM paths") == WHOLE  # it waits
    assert client.rows("SELECT n FROM over") == [("3",)]
    client.run("INSERT INTO e VALUES (3, 4, 1)")
    assert client.rows("SELECT count(*), max(d) FROM paths") == [("6", "13")]
    for _ in range(2):
        for view in ("paths", "over", "reached", "sums"):
            assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []
        assert client.sorted(f"SELECT * FROM paths AS OF {before}") == WHOLE
        assert client.rows("SELECT n FROM over") == [("6",)]
        server.restart()
        client = server.client()


def test_a_subscription_waits_and_is_told_the_difference(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refilling, "FIRST_SECONDS", 0.1)
    client, reader = server.client(), server.client()
    reader.run("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE paths")
    assert sorted(row[2:] for row in reader.rows("FETCH ALL c WITH (timeout = '20s')")) == WHOLE
    _park(server)
    assert reader.rows("FETCH ALL c WITH (timeout = '100ms')") == []
    (warning,) = reader.notices()
    assert "being filled" in warning.message
    client.run("INSERT INTO e VALUES (2, 4, 1)")
    client.run("DELETE FROM e WHERE x = 3")
    client.rows("SELECT * FROM paths")  # it waits
    found = [row[1:] for row in reader.rows("FETCH ALL c WITH (timeout = '20s')")]
    assert sorted(found) == [("1", "1", "4", "6"), ("1", "2", "4", "1")]
    client.run("INSERT INTO e VALUES (4, 5, 1)")
    found = [row[1:] for row in reader.rows("FETCH ALL c WITH (timeout = '20s')")]
    assert sorted(found) == [("1", "1", "5", "7"), ("1", "2", "5", "2"), ("1", "4", "5", "1")]


def test_a_copy_of_a_subscription_is_told_the_difference_too(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent as it comes waits for the difference."""
    monkeypatch.setattr(refilling, "FIRST_SECONDS", 0.1)
    client, follower = server.client(), Subscriber(server.client(), "COPY (SUBSCRIBE paths) TO STDOUT")
    _wait_until(lambda: len(follower.lines) == len(WHOLE))
    client.run("INSERT INTO e VALUES (2, 9, 1)")
    _wait_until(lambda: follower.pushed > 0)
    client.run("DELETE FROM e WHERE y = 9")
    _park(server)
    client.run("INSERT INTO e VALUES (2, 4, 1)")
    client.run("DELETE FROM e WHERE x = 3")
    client.rows("SELECT * FROM paths")  # it waits
    client.run("INSERT INTO e VALUES (4, 5, 1)")
    expected = Counter(client.rows("SELECT * FROM paths"))

    def held() -> Counter[tuple[str, ...]]:
        found: Counter[tuple[str, ...]] = Counter()
        for line in follower.lines:
            _, diff, *row = line.split("\t")
            found[tuple(row)] += int(diff)
        return Counter({row: n for row, n in found.items() if n})

    _wait_until(lambda: held() == expected)
    assert held() == expected
    follower.stop()


def _wait_until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not what() and time.monotonic() < end:
        time.sleep(0.02)


def test_it_is_down_when_filling_it_does_not_end_either(server: Server) -> None:
    client, watch = server.client(), server.coordinator.engine.watch
    watch.seconds = 1.0
    _park(server)
    assert client.state("SELECT * FROM over") == "54001"
    assert client.state("SELECT * FROM paths") == "54001"
    assert client.rows("SELECT * FROM freshet.hydrations") == []
    watch.seconds = 120.0
    client.run("DELETE FROM e WHERE x = 3")
    assert client.sorted("SELECT * FROM paths") == WHOLE
    assert client.rows("SELECT n FROM over") == [("3",)]


def test_a_step_that_is_slow_but_ends(server: Server) -> None:
    """The view is back with all rows, and others are more patient with it afterwards."""
    client = server.client()
    client.run("DROP MATERIALIZED VIEW paths CASCADE")
    client.run("INSERT INTO e SELECT i, i + 1, 1 FROM generate_series(100, 60000) i")
    _park(server, "INSERT INTO e VALUES (3, 100, 1)")
    failing = server.coordinator.engine.failing
    patience = {r.name: failing.patience_of(r.id) for r in server.coordinator.engine.catalog.relations.values()}
    assert patience["reached"] == 2
    assert client.rows("SELECT count(*), max(n) FROM reached") == [("59905", "60001")]
    client.run("DELETE FROM e WHERE x = 200")
    assert client.rows("SELECT count(*), max(n) FROM reached") == [("104", "200")]
    assert client.rows("VERIFY MATERIALIZED VIEW reached") == []
    assert [loop.patience for loop in server.coordinator.engine.dataflow._root.loops()] == [2.0]


def test_a_function_that_takes_long(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the view that it is in waits, and is complete once it is filled."""
    client, poll = server.client(), calls.poll
    client.run("CREATE TABLE n (x int)")
    client.run("CREATE MATERIALIZED VIEW slowly AS SELECT initcap(md5(x::text) || 'é') AS y FROM n")
    client.run("CREATE MATERIALIZED VIEW quickly AS SELECT x + 1 AS y FROM n")

    others: list[bool] = []

    def slow() -> None:
        if threading.current_thread().name == "engine":
            if not others:
                _wait_until(lambda: server.coordinator.jobs.pending > 1)  # or there is nobody to be kept waiting
                others.append(True)
                _wait_until(server.coordinator.engine.watch.overdue.is_set)
            time.sleep(0.02)
        poll()

    with monkeypatch.context() as patch:
        patch.setattr(calls, "poll", slow)
        patch.setattr("sql.session.writes.Writes._is_light", lambda *_: False)  # else the event loop may run it
        _park(server, "INSERT INTO n SELECT generate_series(1, 600)")
        assert client.rows("SELECT count(*) FROM quickly") == [("600",)]
        assert client.rows("SELECT count(*), count(DISTINCT y) FROM slowly") == [("600", "600")]
    assert server.coordinator.engine.failing.patience_of(_id(server, "slowly")) == 2
    assert server.coordinator.engine.failing.patience_of(_id(server, "quickly")) == 1


def _id(server: Server, name: str) -> int:
    return next(r.id for r in server.coordinator.engine.catalog.relations.values() if r.name == name)


def test_a_view_that_is_filled_can_be_dropped(server: Server) -> None:
    client = server.client()
    _park(server)
    client.run("DROP MATERIALIZED VIEW paths CASCADE")
    assert _status(client) == {"reached": "running", "sums": "running"}
    for _ in range(100):
        if not server.coordinator.hydrators.refilling:
            break
        time.sleep(0.05)
    assert not server.coordinator.hydrators.refilling
    client.run("INSERT INTO e VALUES (5, 6, 7)")


def test_alone_it_has_the_time_of_a_step(server: Server) -> None:
    """Nobody waits, so the step goes on to its limit; only its own view is down then."""
    client, watch = server.client(), server.coordinator.engine.watch
    watch.seconds = 0.4
    client.run(DIVERGING)
    watch.seconds = 120.0
    assert client.state("SELECT * FROM paths") == "54001"
    assert client.sorted("SELECT n FROM reached") == [("1",), ("2",), ("3",)]
