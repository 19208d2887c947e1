"""Views hydrated beside the engine include what is committed meanwhile; a failure leaves nothing behind."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ivm.errors import SqlError
from ivm.hydration.detached import Detached
from sql.coordination import hydration
from tests.support.sessions import Client, Server

VIEWS = {
    "grouped": "SELECT k, count(*) AS n, sum(x) AS s, max(x) AS m FROM t GROUP BY k",
    "joined": "SELECT t.id, u.name FROM t JOIN u ON t.k = u.k WHERE t.x > 2",
    "outer": "SELECT t.id, u.name FROM t LEFT JOIN u ON t.k = u.k AND u.k > 1",
    "full_outer": "SELECT t.x, u.k FROM t FULL JOIN u ON t.id = u.k",
    "anti": "SELECT k FROM t EXCEPT ALL SELECT k FROM u",
    "texts": "SELECT DISTINCT name || '-' || upper(name) AS label FROM u",
    "reach": "WITH RECURSIVE r(a, b) AS (SELECT id, k FROM t UNION SELECT r.a, t.k FROM r JOIN t ON r.b = t.id) "
    "SELECT * FROM r",
    "over": "SELECT u.name, g.s FROM base g JOIN u ON u.k = g.k",
    "top": "SELECT id, x FROM t ORDER BY x DESC, id LIMIT 5",
    "scalar": "SELECT id FROM t WHERE x = (SELECT max(x) FROM t)",
    "failing": "SELECT id, 12 / x AS q FROM t",
}


@contextmanager
def filled(server: Server, x: str) -> Iterator[tuple[Client, Client]]:
    """Two clients and the tables under the views, dropped afterwards. ``x``: the value of row ``i``."""
    a, b = server.client(), server.client()
    a.run("CREATE TABLE t (id int PRIMARY KEY, k int, x int)")
    a.run("CREATE TABLE u (k int, name text)")
    a.run(f"INSERT INTO t SELECT i, i % 7, {x} FROM generate_series(1, 60) AS g(i)")
    a.run("INSERT INTO u VALUES (0, 'zero'), (1, 'one'), (2, 'two'), (2, 'zwei'), (3, NULL), (NULL, 'none')")
    a.run("CREATE MATERIALIZED VIEW base AS SELECT k, sum(x) AS s FROM t GROUP BY k")
    yield a, b
    a.close()
    b.close()
    last = server.client()
    last.run("DROP TABLE t, u CASCADE")
    last.close()


@pytest.fixture
def pair(server: Server) -> Iterator[tuple[Client, Client]]:
    with filled(server, "i % 5") as clients:
        yield clients


class Gate:
    """Pauses hydration before each of its passes. ``passes``: how many have begun."""

    def __init__(self) -> None:
        self._arrived = threading.Semaphore(0)
        self._open = threading.Semaphore(0)
        self._running: Future[Any] | None = None

    def wait(self) -> None:
        assert self._open.acquire(timeout=30)

    def start(self, client: Client, text: str) -> Future[Any]:
        self._running = client.server.start(client.work(text))
        self.arrived()
        return self._running

    def arrived(self) -> None:
        assert self._arrived.acquire(timeout=30)

    def arrive(self) -> None:
        self._arrived.release()
        self.wait()

    def pass_on(self, count: int = 1) -> None:
        self._open.release(count)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    run: Callable[[Detached], None] = Detached.run

    def held(flow: Detached) -> None:
        if threading.current_thread().name.startswith("hydrator"):
            gate.arrive()
        run(flow)

    monkeypatch.setattr(Detached, "run", held)
    yield gate
    gate.pass_on(1000)


def change(client: Client, rng: random.Random, serial: Iterator[int]) -> None:
    """A random commit, or a transaction that is rolled back."""
    i = next(serial)
    statements = [
        f"INSERT INTO t VALUES ({i}, {rng.randrange(7)}, {rng.randrange(1, 6)})",
        f"DELETE FROM t WHERE id % 11 = {rng.randrange(11)}",
        f"UPDATE t SET k = {rng.randrange(7)}, x = x + 1 WHERE id % 9 = {rng.randrange(9)}",
        f"INSERT INTO u VALUES ({rng.randrange(7)}, 'n{rng.randrange(3)}')",
        f"DELETE FROM u WHERE k = {rng.randrange(7)}",
        "UPDATE u SET name = name || '!' WHERE k > 2",
    ]
    if rng.random() < 0.25:
        client.run("BEGIN")
        client.run(rng.choice(statements))
        client.rows("SELECT count(*) FROM base")
        client.run("ROLLBACK")
    else:
        client.run(rng.choice(statements))


@pytest.mark.parametrize("name", VIEWS)
def test_what_is_committed_meanwhile_is_in_the_view(
    pair: tuple[Client, Client], gate: Gate, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hydration, "FEW", -1)
    a, b = pair
    rng = random.Random(name)
    serial = iter(range(1000, 2000))
    if name != "failing":
        b.run("UPDATE t SET x = x + 1")
    running = gate.start(a, f"CREATE MATERIALIZED VIEW v AS {VIEWS[name]}")
    for _ in range(4):
        for _ in range(3):
            change(b, rng, serial)
        assert b.state("SELECT * FROM v") == "42P01"
        gate.pass_on()
        gate.arrived()
    gate.pass_on(100)
    running.result(60)
    if name == "failing":
        assert a.state("SELECT * FROM v") == "22012"
        b.run("DELETE FROM t WHERE x = 0")
    for _ in range(3):
        assert a.rows("VERIFY MATERIALIZED VIEW v") == []
        assert a.rows("VERIFY MATERIALIZED VIEW base") == []
        assert a.sorted("SELECT * FROM v") == b.sorted(VIEWS[name] if name != "top" else "SELECT * FROM v")
        for _ in range(4):
            change(b, rng, serial)


LOCKED = {
    "left": "SELECT t.id, u.name FROM t LEFT JOIN u FOR SYSTEM_TIME AS OF PROCTIME() ON t.k = u.k",
    "inner": "SELECT t.x, count(u.name) AS n FROM t JOIN u FOR SYSTEM_TIME AS OF PROCTIME() ON t.k = u.k GROUP BY t.x",
    "chain": "SELECT t.id, u.name, w.k FROM t JOIN u FOR SYSTEM_TIME AS OF PROCTIME() ON t.k = u.k "
    "LEFT JOIN u w FOR SYSTEM_TIME AS OF PROCTIME() ON u.name = w.name",
}


@pytest.mark.parametrize("name", LOCKED)
def test_locked_joins_lock_what_is_there_when_the_view_is(
    tmp_path: Path, gate: Gate, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits go on while the view is hydrated; afterwards it keeps its matches, also over a restart."""
    monkeypatch.setattr(hydration, "FEW", -1)
    server = Server(tmp_path)
    a, b = server.client(), server.client()
    a.run("CREATE TABLE t (id int PRIMARY KEY, k int, x int); CREATE TABLE u (k int, name text)")
    a.run("INSERT INTO t SELECT i, i % 7, i % 5 FROM generate_series(1, 60) AS g(i)")
    a.run("INSERT INTO u VALUES (0, 'zero'), (1, 'one'), (2, 'two'), (2, 'zwei'), (3, NULL), (NULL, 'none')")
    a.run("CREATE VIEW base AS SELECT k, sum(x) AS s FROM t GROUP BY k")
    rng, serial = random.Random(name), iter(range(1000, 2000))
    running = gate.start(a, f"CREATE MATERIALIZED VIEW v AS {LOCKED[name]}")
    for _ in range(5):
        for _ in range(3):
            change(b, rng, serial)
        gate.pass_on()
        gate.arrived()
    gate.pass_on(100)
    running.result(60)
    held = b.sorted("SELECT * FROM v")
    assert held == b.sorted(LOCKED[name].replace("FOR SYSTEM_TIME AS OF PROCTIME()", ""))
    b.run("UPDATE u SET name = 'new'; DELETE FROM u WHERE k = 1")
    for _ in range(2):
        assert b.sorted("SELECT * FROM v") == held
        assert b.rows("VERIFY MATERIALIZED VIEW v") == []
        a.close()
        b.close()
        server.restart()
        a, b = server.client(), server.client()
    server.close()


def test_the_view_is_there_from_its_creation_on(pair: tuple[Client, Client], gate: Gate, server: Server) -> None:
    a, b = pair
    running = gate.start(a, "CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM t GROUP BY k")
    b.run("DELETE FROM t WHERE k = 3")
    before = b.rows("SELECT mz_now()")[0][0]
    gate.pass_on(100)
    running.result(60)
    first = b.rows("SELECT mz_now()")[0][0]
    rows = b.sorted("SELECT * FROM v")
    assert ("3", "8") not in rows
    b.run("DELETE FROM t WHERE k = 4")
    assert b.sorted(f"SELECT * FROM v AS OF {first}") == rows
    assert b.state(f"SELECT * FROM v AS OF {before}") == "22023"
    lines = b.copy_out(f"COPY (SUBSCRIBE v AS OF {first} UP TO {int(first) + 1}) TO STDOUT")
    assert sorted(tuple(line.split("\t")[2:]) for line in lines) == rows
    assert len(rows) == 6
    assert b.rows("SELECT count(*) FROM v") == [("5",)]


def test_a_cancelled_creation_leaves_nothing(pair: tuple[Client, Client], gate: Gate) -> None:
    a, b = pair
    dataflow = a.server.coordinator.engine.dataflow
    b.run("INSERT INTO t VALUES (500, 1, 1)")
    nodes, members = set(dataflow._operators), set(dataflow._root.members)
    running = gate.start(a, "CREATE MATERIALIZED VIEW v AS SELECT t.x, u.name FROM t JOIN u ON t.k = u.k")
    assert dataflow.held
    a.server.run(a.session.cancel())
    with pytest.raises(SqlError) as raised:
        running.result(60)
    assert raised.value.sqlstate == "57014"
    b.run("INSERT INTO t VALUES (501, 1, 1)")
    assert not dataflow.held
    assert (set(dataflow._operators), set(dataflow._root.members)) == (nodes, members)
    gate.pass_on(100)
    assert a.state("SELECT * FROM v") == "42P01"
    a.run("CREATE MATERIALIZED VIEW v AS SELECT t.x, u.name FROM t JOIN u ON t.k = u.k")
    assert a.rows("VERIFY MATERIALIZED VIEW v") == []


def test_a_client_that_goes_leaves_nothing(pair: tuple[Client, Client], gate: Gate, server: Server) -> None:
    _, b = pair
    gone = server.client()
    dataflow = server.coordinator.engine.dataflow
    nodes = set(dataflow._operators)
    running = gate.start(gone, "CREATE MATERIALIZED VIEW v AS SELECT k, max(x) FROM t GROUP BY k")
    running.cancel()
    gate.pass_on(100)
    b.run("INSERT INTO t VALUES (502, 1, 1)")
    b.run("INSERT INTO t VALUES (503, 1, 1)")
    assert not dataflow.held
    assert set(dataflow._operators) == nodes
    assert b.state("SELECT * FROM v") == "42P01"


def test_a_table_that_is_dropped_meanwhile_is_missed(pair: tuple[Client, Client], gate: Gate) -> None:
    a, b = pair
    b.run("CREATE TABLE w (a int, b int)")
    b.run("INSERT INTO w SELECT i, i % 3 FROM generate_series(1, 20) AS g(i)")
    b.run("BEGIN; CREATE MATERIALIZED VIEW wv AS SELECT b, count(*) AS n FROM w GROUP BY b; COMMIT")
    running = gate.start(a, "CREATE MATERIALIZED VIEW v AS SELECT t.id, wv.n FROM t JOIN wv ON t.k = wv.b")
    b.run("DROP TABLE w CASCADE")
    b.run("INSERT INTO t VALUES (504, 1, 1)")
    gate.pass_on(100)
    with pytest.raises(SqlError) as raised:
        running.result(60)
    assert raised.value.sqlstate == "42P01"
    assert a.state("SELECT * FROM v") == "42P01"
    b.run("INSERT INTO t VALUES (505, 1, 1)")
    assert not a.server.coordinator.engine.dataflow.held


def test_two_at_once(pair: tuple[Client, Client], gate: Gate, server: Server) -> None:
    a, b = pair
    c = server.client()
    text = "CREATE MATERIALIZED VIEW {} AS SELECT k, count(*) AS n, min(x) AS m FROM t GROUP BY k"
    first = gate.start(a, text.format("v1"))
    second = gate.start(c, text.format("v2"))
    third = server.start(server.client().work(text.format("v3")))
    b.run("UPDATE t SET k = k + 1")
    gate.pass_on(100)
    for running in (first, second, third):
        running.result(60)
    b.run("DELETE FROM t WHERE id < 30")
    expected = b.sorted("SELECT k, count(*) AS n, min(x) AS m FROM t GROUP BY k")
    for name in ("v1", "v2", "v3"):
        assert b.rows(f"VERIFY MATERIALIZED VIEW {name}") == []
        assert b.sorted(f"SELECT * FROM {name}") == expected
    b.run("DROP MATERIALIZED VIEW v1")
    b.run("INSERT INTO t VALUES (506, 1, 1)")
    assert b.rows("VERIFY MATERIALIZED VIEW v2") == []
    c.close()


def test_the_second_of_one_name_is_refused(pair: tuple[Client, Client], gate: Gate, server: Server) -> None:
    a, b = pair
    first = gate.start(a, "CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM t GROUP BY k")
    b.run("CREATE TABLE v (a int)")
    gate.pass_on(100)
    with pytest.raises(SqlError) as raised:
        first.result(60)
    assert raised.value.sqlstate == "42P07"
    assert b.rows("SELECT * FROM v") == []
    b.run("DROP TABLE v")


def test_a_dropped_view_gives_its_memory_back(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("CREATE MATERIALIZED VIEW v AS SELECT k, x, count(*) AS n FROM t GROUP BY k, x")
    engine = a.server.coordinator.engine
    view = next(r for r in engine.catalog.relations.values() if r.name == "v")
    spine = engine.dataflow._operators[engine.renderer.output(view.id)].spine
    assert spine is not None
    kept = weakref.ref(spine._small)
    del spine
    gc.disable()
    try:
        a.run("DROP MATERIALIZED VIEW v")
        b.run("INSERT INTO t VALUES (508, 1, 1)")
        assert kept() is None
    finally:
        gc.enable()


def test_memory_of_a_hydration_is_bounded(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("INSERT INTO t SELECT i, 1, 1 FROM generate_series(10000, 14000) AS g(i)")
    dataflow, budget = a.server.coordinator.engine.dataflow, a.server.coordinator.budget
    limit, budget.limit = budget.limit, 1 << 20
    try:
        query = "SELECT s.id AS a, t.id AS b FROM t JOIN t AS s ON s.k = t.k"
        assert a.state(f"CREATE MATERIALIZED VIEW v WITH (HYDRATE = local) AS {query}") == "53200"
    finally:
        budget.limit = limit
    assert budget.taken == 0
    b.run("INSERT INTO t VALUES (507, 1, 1)")
    assert not dataflow.held


def test_people_see_how_far_a_view_is(pair: tuple[Client, Client], gate: Gate) -> None:
    """freshet.hydrations shows progress while the view is made, and is empty afterwards."""
    a, b = pair
    ask = "SELECT view, pid, phase, operators, done, behind, started <= now() FROM freshet.hydrations"
    assert b.rows(ask) == []
    making = gate.start(a, f"CREATE MATERIALIZED VIEW v AS {VIEWS['joined']}")
    ((view, pid, *place),) = b.rows(ask)
    assert (view, place) == ("v", ["hydrating", "0", "0", None, "t"])
    assert [(pid,)] != b.rows("SELECT pg_backend_pid()")
    b.run("INSERT INTO t VALUES (1000, 1, 5), (1001, 2, 5)")
    gate.pass_on()
    gate.arrived()
    ((_, same, phase, operators, done, behind, _),) = b.rows(ask)
    assert (same, phase, done, behind) == (pid, "catching up", operators, "2")
    assert int(operators or 0) > 0
    gate.pass_on(20)
    making.result(30)
    assert b.rows(ask) == []
