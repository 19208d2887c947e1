"""AS OF an epoch that only the store remembers fails as a read at that epoch did: errors that come and go, views that
go down and come back, restarts and kills in between."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ivm.errors import SqlError
from sql.engine.persist import Tuning
from storage.checkpoint import Pace
from storage.duck import Store
from storage.stored import errors_of
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

MEMORY = 2 << 20
"""So little that a recursion that does not end takes its view down soon."""
SLOW = Tuning(pace=Pace(seconds=600))
"""The store is told only when it must be, so that a copy of the folder has the rest in its log only."""
VIEWS = (
    "q AS SELECT k, a / b AS d FROM t",
    "total AS SELECT sum(d) AS s, count(*) AS n FROM q",
    "good AS SELECT k, a + b AS c FROM t",
    "r AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT y FROM r JOIN e ON e.x = r.n) SELECT * FROM r",
    "over AS SELECT count(*) AS n, max(r.n / q.d) AS m FROM r LEFT JOIN q ON q.k = r.n",
)
READS = (
    "SELECT * FROM q",
    "SELECT * FROM total",
    "SELECT t.k, c, d FROM t JOIN good ON good.k = t.k LEFT JOIN q ON q.k = t.k",
    "SELECT * FROM good",
    "SELECT * FROM r",
    "SELECT * FROM over",
    "SELECT view, sqlstate, message, row FROM freshet.view_errors",
)


class Seen:
    """What each read gave at each epoch."""

    def __init__(self) -> None:
        self.answers: dict[int, list[object]] = {}

    def look(self, client: Client) -> None:
        epoch = client.server.coordinator.engine.published.epoch
        found = _all(client, "")
        assert _all(client, f" AS OF {epoch}") == found
        self.answers[epoch] = found

    def check(self, client: Client) -> None:
        for epoch, found in self.answers.items():
            assert _all(client, f" AS OF {epoch}") == found, epoch


def _all(client: Client, as_of: str) -> list[object]:
    found: list[object] = [_answer(client, read + as_of) for read in READS]
    client.run("SET ignore_view_errors = on")
    found += [_answer(client, read + as_of) for read in READS]
    client.run("SET ignore_view_errors = off")
    return found


def _answer(client: Client, text: str) -> object:
    try:
        return client.sorted(text)
    except SqlError as error:
        return error.sqlstate, error.message, error.detail
    finally:
        client.notices()


def _open(folder: Path, tuning: Tuning | None = None) -> Server:
    return Server(folder, memory=MEMORY, tuning=tuning)


def _set_up(client: Client, views: tuple[str, ...] = VIEWS) -> None:
    client.run("CREATE TABLE t (k int PRIMARY KEY, a int, b int)")
    client.run("CREATE TABLE e (x int, y int)")
    client.run("INSERT INTO e VALUES (1, 2), (2, 3)")
    for view in views:
        client.run(f"CREATE MATERIALIZED VIEW {view}")


def _killed(server: Server, to: Path) -> Server:
    """A server over what is on disk now; the old one ends."""
    folder = server.folder
    shutil.copytree(folder, to)
    server.close()
    return _open(to, server.tuning)


def _change(client: Client, random: Random) -> None:
    k = random.randint(1, 4)
    match random.randint(0, 6):
        case 0 | 1:
            b = random.choice(("0", "0", "1", "2", "NULL"))
            client.run(f"INSERT INTO t VALUES ({k}, {random.randint(0, 9)}, {b}) ON CONFLICT (k) DO UPDATE SET b = {b}")
        case 2:
            client.run(f"DELETE FROM t WHERE k = {k} OR b = 0 AND {random.choice(('true', 'false'))}")
        case 3:
            client.run("INSERT INTO e VALUES (3, 1)")
        case 4:
            client.run("DELETE FROM e WHERE x = 3")
        case 5:
            client.run(f"BEGIN; UPDATE t SET a = a + 1; UPDATE t SET b = {k % 3} WHERE k = {k}; COMMIT")
        case _:
            client.run("BEGIN; INSERT INTO t VALUES (9, 1, 0); ROLLBACK")


@pytest.mark.parametrize("seed", range(scaled(3)))
def test_random_histories(tmp_path: Path, seed: int) -> None:
    random, seen = Random(seed), Seen()
    server = _open(tmp_path / "data", SLOW if seed else None)
    client = server.client()
    _set_up(client)
    for step in range(10):
        _change(client, random)
        seen.look(client)
        if random.random() < 0.2:
            seen.check(client)
            if random.random() < 0.5:
                server.restart()
            else:
                server = _killed(server, tmp_path / f"killed{step}")
            client = server.client()
            seen.check(client)
    server.restart()
    seen.check(server.client())
    server.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = _open(tmp_path / "data")
    yield server
    server.close()


def test_errors_of_views_are_created_dropped_and_replaced(server: Server) -> None:
    client, seen = server.client(), Seen()
    _set_up(client, VIEWS[:2])
    client.run("INSERT INTO t VALUES (1, 1, 0), (2, 4, 2)")
    client.run(f"CREATE MATERIALIZED VIEW {VIEWS[3]}")
    client.run("CREATE MATERIALIZED VIEW good AS SELECT k, 1 / a AS c FROM t WHERE b = 0")
    client.run("BEGIN; CREATE MATERIALIZED VIEW over AS SELECT 1 / n AS n FROM total; COMMIT")
    seen.look(client)
    client.run("DELETE FROM t WHERE k = 1")
    seen.look(client)
    server.restart()
    client = server.client()
    seen.check(client)
    client.run("INSERT INTO t VALUES (1, 1, 0)")
    persistence = server.coordinator.engine.persistence
    assert persistence is not None
    server.restart()
    client = server.client()
    catalog = server.coordinator.engine.catalog
    known = {r.name: r.id for r in catalog.relations.values()}
    client.run("CREATE OR REPLACE MATERIALIZED VIEW q AS SELECT k, a / (b + 1) AS d FROM t")
    client.run("INSERT INTO t VALUES (7, 1, -1)")
    seen = Seen()
    seen.look(client)
    client.run("DROP MATERIALIZED VIEW q CASCADE")
    server.restart()
    persistence = server.coordinator.engine.persistence
    assert persistence is not None
    kept = persistence.store.relations()
    assert not {errors_of(known[name]) for name in ("q", "total", "over")} & kept.keys()


def test_a_view_that_comes_back_at_a_start(tmp_path: Path) -> None:
    """It has been down up to the last commit; its rows from then on are those of the start."""
    server, seen = _open(tmp_path / "data"), Seen()
    client = server.client()
    client.run("CREATE TABLE big (a int)")
    client.run("CREATE MATERIALIZED VIEW r AS SELECT a, count(*) AS n, max(a) AS m FROM big GROUP BY a")
    client.run("INSERT INTO big VALUES (1)")
    epochs = [server.coordinator.engine.published.epoch]
    server.coordinator.engine.failures[16385] = SqlError("53200", "out of memory")
    client.run("INSERT INTO big VALUES (2)")
    epochs.append(server.coordinator.engine.published.epoch)
    assert client.state("SELECT * FROM r") == "53200"
    server.restart()
    client = server.client()
    assert client.rows("SELECT a FROM r") == [("1",), ("2",)]
    epochs.append(server.coordinator.engine.published.epoch)
    client.run("INSERT INTO big VALUES (3)")
    server.restart()
    client = server.client()
    assert client.rows(f"SELECT a FROM r AS OF {epochs[0]}") == [("1",)]
    assert client.state(f"SELECT a FROM r AS OF {epochs[1]}") == "53200"
    assert client.rows(f"SELECT a FROM r AS OF {epochs[2]}") == [("1",), ("2",)]
    seen.look(client)
    server.close()


def test_a_subscription_from_the_past(server: Server) -> None:
    client = server.client()
    _set_up(client, VIEWS[:1])
    epochs = []
    for k, b in ((1, 1), (2, 0), (3, 1)):
        client.run(f"INSERT INTO t VALUES ({k}, 1, {b})")
        epochs.append(server.coordinator.engine.published.epoch)
    client.run("DELETE FROM t WHERE k = 2")
    server.restart()
    client = server.client()
    subscribe = "BEGIN; DECLARE c CURSOR FOR SUBSCRIBE q AS OF {}; FETCH 9 c"
    assert [row[2:] for row in client.rows(subscribe.format(epochs[0]))] == [("1", "1"), ("3", "1")]
    client.run("ROLLBACK")
    for epoch in epochs[1:]:
        assert client.state(subscribe.format(epoch)) == "22012"
        client.run("ROLLBACK")
    client.run("SET ignore_view_errors = on")
    assert [row[2:] for row in client.rows(subscribe.format(epochs[1]))] == [("1", "1"), ("3", "1")]


def test_history_of_errors_is_pruned(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a int)")
    client.run("CREATE MATERIALIZED VIEW q WITH (RETAIN HISTORY FOR '1 ms') AS SELECT 1 / a AS d FROM t")
    for _ in range(5):
        client.run("INSERT INTO t VALUES (0)")
        client.run("DELETE FROM t")
    client.run("INSERT INTO t VALUES (0)")
    client.run("VACUUM")
    persistence = server.coordinator.engine.persistence
    assert persistence is not None
    store = persistence.store
    (view,) = (r.id for r in server.coordinator.engine.catalog.relations.values() if r.name == "q")
    assert store.since(errors_of(view)) == store.since(view) > 0
    assert len(store.errors(view, store.high_water())) == 1


def test_a_folder_of_the_format_before(tmp_path: Path) -> None:
    """It opens; whether a view had errors before that is not known, and later it is."""
    server = _open(tmp_path / "data")
    client = server.client()
    _set_up(client)
    client.run("INSERT INTO t VALUES (1, 1, 0), (2, 1, 1)")
    then = server.coordinator.engine.published.epoch
    client.run("INSERT INTO t VALUES (3, 1, 1)")
    server.close()
    store = Store.open(tmp_path / "data")
    for relation in store.relations():
        if relation > 1 << 60:
            store.drop_relation(relation)
    store._connection.execute("UPDATE state SET format = 1")
    store.close()
    server, seen = _open(tmp_path / "data"), Seen()
    client = server.client()
    seen.look(client)
    client.run("DELETE FROM t WHERE k = 1")
    seen.look(client)
    server.restart()
    client = server.client()
    seen.check(client)
    assert client.sorted("SELECT * FROM q") == [("2", "1"), ("3", "1")]
    assert client.state(f"SELECT * FROM q AS OF {then}") == "22023"
    assert client.rows(f"SELECT k FROM t AS OF {then}") == [("1",), ("2",)]
    client.run("SET ignore_view_errors = on")
    assert client.rows(f"SELECT * FROM q AS OF {then}") == [("2", "1")]
    server.close()
