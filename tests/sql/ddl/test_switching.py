"""A materialized view is replaced while what is over it stays: the same nodes, which get only the difference."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ivm.errors import SqlError
from sql.engine.persist import Tuning
from storage.checkpoint import Pace
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

DEFINITIONS = (
    "SELECT k, a FROM t WHERE a < 5",
    "SELECT k, a + 1 AS a FROM t",
    "SELECT DISTINCT k, a FROM t",
    "SELECT k, max(a) AS a FROM t GROUP BY k",
    "SELECT t.k, u.a FROM t JOIN u ON t.k = u.k",
    "SELECT k, a FROM t WHERE a < 5 UNION ALL SELECT k, a FROM u",
    "SELECT x.k, y.a FROM (SELECT k, a FROM t WHERE a < 5) x JOIN (SELECT k, a FROM t WHERE a < 5) y ON x.a = y.k",
    "SELECT k, 12 / a AS a FROM t",
    "WITH RECURSIVE r(k, a) AS (SELECT k, a FROM t UNION SELECT u.k, u.a FROM r JOIN u ON u.k = r.a) SELECT * FROM r",
    "SELECT k, a FROM t ORDER BY a, k LIMIT 3",
    "SELECT k, a FROM t",
    "SELECT k, a FROM u WHERE a IS NULL",
    "SELECT coalesce(k, 0) AS k, 3 AS a FROM t",
)
OVER = (
    "grouped AS SELECT a, count(*) AS n, sum(k) AS s FROM v GROUP BY a",
    "same AS SELECT * FROM v",
    "under AS SELECT * FROM same WHERE k > 1",
    "pairs AS SELECT x.k, y.a FROM v x JOIN v y ON x.k = y.a",
    "twice AS SELECT * FROM v UNION ALL SELECT * FROM v",
    "reached AS WITH RECURSIVE r(k) AS (SELECT k FROM v UNION SELECT v.a FROM r JOIN v ON v.k = r.k) SELECT * FROM r",
    "least AS SELECT min(a) AS m, count(DISTINCT k) AS n FROM v",
    "missing AS SELECT u.k FROM u WHERE NOT EXISTS (SELECT FROM v WHERE v.k = u.k)",
)
TWINS = (
    "twin AS SELECT k, a FROM t WHERE a < 5",
    "twin_groups AS SELECT a, count(*) AS n FROM (SELECT k, a + 1 AS a FROM t) s GROUP BY a",
)
SLOW = Tuning(pace=Pace(seconds=600))


def _open(folder: Path, tuning: Tuning | None = None) -> tuple[Server, Client]:
    server = Server(folder, tuning=tuning)
    return server, server.client()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data")
    yield server
    server.close()


def _set_up(client: Client, first: str, over: tuple[str, ...]) -> None:
    client.run("CREATE TABLE t (k int, a int)")
    client.run("CREATE TABLE u (k int, a int)")
    client.run("INSERT INTO t VALUES (1, 1), (2, 2), (2, 2), (3, NULL), (NULL, 4), (5, 6)")
    client.run("INSERT INTO u VALUES (1, 2), (2, 3), (4, NULL), (6, 1)")
    client.run(f"CREATE MATERIALIZED VIEW v AS {first}")
    client.run("CREATE INDEX ON v (a)")
    for view in over:
        client.run(f"CREATE MATERIALIZED VIEW {view}")


def _names(views: tuple[str, ...]) -> list[str]:
    return [view.split(" ")[0] for view in views]


def _ids(server: Server) -> dict[str, int]:
    return {r.name: r.id for r in server.coordinator.engine.catalog.relations.values()}


def _answer(client: Client, text: str) -> object:
    try:
        return client.sorted(text)
    except SqlError as error:
        return error.sqlstate, error.message


def _look(client: Client, views: list[str]) -> tuple[int, list[object]]:
    """What each view has, which a recompute and its count confirm."""
    found = [_answer(client, f"SELECT * FROM {view}") for view in views]
    for view, answer in zip(views, found, strict=True):
        if isinstance(answer, list):
            assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == [], view
            assert client.rows(f"SELECT count(*) FROM {view}") == [(str(len(answer)),)], view
    assert _answer(client, "SELECT * FROM v WHERE a = 2") == _answer(client, "SELECT * FROM v WHERE a + 0 = 2")
    return client.server.coordinator.engine.published.epoch, found


def _change(client: Client, random: Random) -> None:
    table, k, a = random.choice("tu"), random.randint(0, 6), random.choice((0, 1, 2, 3, 4, 5, 6, "NULL"))
    match random.randint(0, 3):
        case 0 | 1:
            client.run(f"INSERT INTO {table} VALUES ({k}, {a}), ({k}, {a})")
        case 2:
            client.run(f"DELETE FROM {table} WHERE k = {k} OR a = 0")
        case _:
            client.run(f"UPDATE {table} SET a = {a} WHERE k = {k}")


def _replace(client: Client, random: Random) -> None:
    replace = f"CREATE OR REPLACE MATERIALIZED VIEW v AS {random.choice(DEFINITIONS)}"
    match random.randint(0, 7):
        case 0:
            client.run("BEGIN")
            _change(client, random)
            client.run(replace)
            client.run(random.choice(("COMMIT", "ROLLBACK")))
        case _:
            client.run(replace)


@pytest.mark.parametrize("seed", range(scaled(4)))
def test_random_histories(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    server, client = _open(tmp_path / "data", SLOW if seed % 2 else None)
    over = tuple(random.sample(OVER, random.randint(0, 4)))
    twins = tuple(random.sample(TWINS, random.randint(0, 2)))
    needs_same = "under AS" in " ".join(over) and OVER[1] not in over
    over = (OVER[1], *over) if needs_same else tuple(sorted(over, key=OVER.index))
    _set_up(client, DEFINITIONS[random.randint(0, 3)], (*twins, *over) if random.random() < 0.5 else (*over, *twins))
    views = ["v", *_names(over), *_names(twins)]
    seen: dict[int, list[object]] = {}
    stayed = 0
    for step in range(15):
        before = _ids(server)
        if random.random() < 0.4:
            _replace(client, random)
            stayed += _ids(server) == before
            if _ids(server) != before:
                seen.clear()  # they are other relations now, whose history begins here
        else:
            _change(client, random)
        epoch, found = _look(client, views)
        seen[epoch] = found
        if random.random() < 0.1:
            if random.random() < 0.5:
                server.restart()
            else:
                shutil.copytree(server.folder, tmp_path / f"killed{step}")
                server.close()
                server, _ = _open(tmp_path / f"killed{step}", server.tuning)
            client = server.client()
            _look(client, views)
        for at, expected in seen.items():
            assert [_answer(client, f"SELECT * FROM {view} AS OF {at}") for view in views] == expected
    assert stayed
    server.close()


def test_dependents_get_only_the_difference(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (k int, a int)")
    client.run("INSERT INTO t SELECT i, i % 100 FROM generate_series(1, 5000) i")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT k, a + 0 AS a FROM t WHERE a < 98")
    client.run("CREATE MATERIALIZED VIEW grouped AS SELECT a, count(*) AS n, max(k) AS m FROM v GROUP BY a")
    client.run("CREATE MATERIALIZED VIEW joined AS SELECT v.k, n FROM v JOIN grouped USING (a)")
    engine = server.coordinator.engine
    ids = _ids(server)
    dataflow = engine.dataflow
    for a in (98, 99):  # the first time the view gets its Switch
        stored = engine.renderer.stored
        kept = {n: dataflow.operator(n) for v in ("grouped", "joined") for n in stored[ids[v]].nodes}
        before = dataflow.counters
        client.run(f"CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, a + 0 AS a FROM t WHERE a <= {a}")
        work = dataflow.counters - before
        assert work.history + work.matches + work.merged < 2000, work
        now = {n: dataflow.operator(n) for v in ("grouped", "joined") for n in stored[ids[v]].nodes}
        assert _ids(server) == ids
        assert len(kept.keys() - now.keys()) <= 1  # the view's own last node, when the Switch comes
        assert all(now[n] is operator for n, operator in kept.items() if n in now)
        for view in ("v", "grouped", "joined"):
            assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []
    assert client.rows("SELECT count(*), sum(n) FROM joined") == [("5000", "250000")]


def test_what_was_replaced_is_freed(server: Server) -> None:
    client = server.client()
    _set_up(client, DEFINITIONS[7], OVER[:1])
    ids = _ids(server)
    client.run(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {DEFINITIONS[8]}")
    client.run(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {DEFINITIONS[7]}")
    count = len(server.coordinator.engine.dataflow.nodes())
    for i in (4, 8, 3, 1, 7):
        client.run(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {DEFINITIONS[i]}")
        if i == 1:
            client.run("CREATE MATERIALIZED VIEW u1 AS SELECT a FROM v")
            client.run("DROP MATERIALIZED VIEW u1")
    assert len(server.coordinator.engine.dataflow.nodes()) == count
    assert _ids(server) == ids
    client.run("DROP MATERIALIZED VIEW v CASCADE")
    assert len(server.coordinator.engine.dataflow.nodes()) == 4  # the tables


def test_only_the_owner_may_replace_it(server: Server) -> None:
    client = server.client()
    _set_up(client, DEFINITIONS[0], ())
    client.run("CREATE ROLE other; GRANT SELECT ON t TO other; GRANT CREATE ON SCHEMA public TO other; SET ROLE other")
    replace = f"CREATE OR REPLACE MATERIALIZED VIEW v AS {DEFINITIONS[1]}"
    error = client.error(replace)
    assert (error.sqlstate, error.message) == ("42501", "must be owner of materialized view v")
    client.run("RESET ROLE; GRANT SELECT ON v TO other")
    client.run(replace)
    client.run("SET ROLE other")
    assert client.rows("SELECT count(*) FROM v") == [("6",)]


def test_subscriptions_go_on(server: Server) -> None:
    client = server.client()
    _set_up(client, DEFINITIONS[0], OVER[:1])
    reader = server.client()
    reader.run("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE (SELECT k + 1 AS k FROM v)")
    reader.run("DECLARE d CURSOR FOR SUBSCRIBE v")
    assert len(reader.rows("FETCH ALL c WITH (timeout = '20s')")) == 3
    assert len(reader.rows("FETCH ALL d WITH (timeout = '20s')")) == 3
    client.run("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, a FROM t WHERE a > 1 AND a < 7")
    found = sorted(row[1:] for row in reader.rows("FETCH ALL c WITH (timeout = '20s')"))
    assert found == [("-1", "2"), ("1", "6")]
    found = sorted(row[1:] for row in reader.rows("FETCH ALL d WITH (timeout = '20s')"))
    assert found == [("-1", "1", "1"), ("1", "5", "6")]
    client.run("INSERT INTO t VALUES (8, 3)")
    assert [row[1:] for row in reader.rows("FETCH ALL c WITH (timeout = '20s')")] == [("1", "9")]


def test_commits_go_on_while_the_new_definition_is_hydrated(server: Server) -> None:
    client, writer = server.client(), server.client()
    _set_up(client, DEFINITIONS[0], OVER[:1])
    client.run("INSERT INTO t SELECT i, i % 50 FROM generate_series(1, 20000) i")
    ids = _ids(server)
    replacing = server.start(
        client.work("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, max(a) AS a FROM t GROUP BY k")
    )
    rows = 0
    while not replacing.done():
        writer.run(f"INSERT INTO t VALUES ({rows}, 4)")
        rows += 1
    replacing.result(10)
    assert rows
    assert _ids(server) == ids
    _look(writer, ["v", "grouped"])


def test_older_views_may_read_newer_ones(tmp_path: Path) -> None:
    """After a replace; a start, DROP and a cycle follow what reads what, not what was made first."""
    server, client = _open(tmp_path / "data")
    client.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2), (3), (3), (NULL)")
    client.run("CREATE MATERIALIZED VIEW one AS SELECT a FROM t WHERE a > 1")
    client.run("CREATE MATERIALIZED VIEW over AS SELECT a, count(*) AS n FROM one GROUP BY a")
    client.run("CREATE MATERIALIZED VIEW two AS SELECT a FROM t WHERE a > 2")
    client.run("CREATE MATERIALIZED VIEW three AS SELECT a FROM t WHERE a > 0")
    client.run("CREATE TABLE newer (a int); INSERT INTO newer VALUES (3), (9)")
    client.run("CREATE OR REPLACE MATERIALIZED VIEW two AS SELECT a FROM three WHERE a > 2")
    client.run("CREATE OR REPLACE MATERIALIZED VIEW one AS SELECT a FROM two WHERE a < 9 UNION SELECT a FROM newer")
    assert client.state("CREATE OR REPLACE MATERIALIZED VIEW three AS SELECT a FROM one") == "42P17"
    for expected in (["3", "9"], ["3", "7", "9"]):
        assert [a for a, _ in client.sorted("SELECT * FROM over")] == expected
        assert client.rows("VERIFY MATERIALIZED VIEW over") == []
        server.restart()
        client = server.client()
        assert [a for a, _ in client.sorted("SELECT * FROM over")] == expected
        client.run("INSERT INTO t VALUES (7), (NULL)" if len(expected) == 2 else "DELETE FROM t WHERE a = 7")
        assert client.rows("VERIFY MATERIALIZED VIEW over") == []
    assert "over depends" in (client.error("DROP MATERIALIZED VIEW three").detail or "")
    client.run("DROP MATERIALIZED VIEW three CASCADE")
    assert client.state("SELECT * FROM over") == "42P01"
    server.restart()
    assert server.client().rows("SELECT count(*) FROM newer") == [("2",)]
    server.close()
