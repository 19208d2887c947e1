"""Recursive views that Spark maintains, round by round: reachability and components, against a recompute."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ivm.errors import SqlError
from storage.spark.session import SparkSession
from tests.support.sessions import Client, Server
from tests.support.spark_fake import Frames
from tests.support.waiting import waits_for_spark

SETUP = """
    CREATE TABLE edges (a int, b int, cost int);
    CREATE TABLE nodes (id int, name text);
    INSERT INTO nodes SELECT i, 'node ' || i FROM generate_series(1, 12) AS g(i);
    INSERT INTO edges SELECT i, i + 1, 1 FROM generate_series(1, 6) AS g(i);
"""
QUERIES = {
    "reach": """WITH RECURSIVE r(a, b) AS (
                  SELECT a, b FROM edges UNION SELECT r.a, e.b FROM r JOIN edges e ON e.a = r.b)
                SELECT upper(n.name) AS name, r.b FROM r JOIN nodes n ON n.id = r.a""",
    "components": """WITH RECURSIVE c(id, least) AS (
                       SELECT id, id FROM nodes UNION
                       SELECT e.b, c.least FROM c JOIN
                         (SELECT a, b FROM edges UNION ALL SELECT b, a FROM edges) AS e(a, b) ON e.a = c.id)
                     SELECT id, min(least) AS component FROM c GROUP BY id""",
}


@pytest.fixture
def frames(frames: type[Frames], monkeypatch: pytest.MonkeyPatch) -> type[Frames]:
    monkeypatch.setattr("os.fsync", lambda fd: None)
    return frames


@pytest.fixture
def server(tmp_path: Path, frames: type[Frames]) -> Iterator[Server]:
    server = Server(tmp_path / "data")
    yield server
    frames.gate.set()
    server.close()


def create(client: Client, name: str, parts: int = 3) -> None:
    client.run(f"CREATE MATERIALIZED VIEW {name} WITH (MAINTAIN = spark, PARTITIONS = {parts}) AS {QUERIES[name]}")


def change(random: Random) -> str:
    a, b = random.randrange(1, 10), random.randrange(1, 10)
    match random.randrange(5):
        case 0 | 1:
            return f"INSERT INTO edges VALUES ({a}, {b}, {a}), ({a}, {b}, {a}), ({b}, NULL, 1)"
        case 2:
            return f"DELETE FROM edges WHERE a = {a} OR b IS NULL"
        case 3:
            return f"UPDATE edges SET b = {b} WHERE a % 4 = {a % 4}"
        case _:
            return f"UPDATE nodes SET name = 'other {b}' WHERE id = {a}; DELETE FROM nodes WHERE id = {b} AND id > 8"


def fail_once(client: Client, frames: type[Frames], name: str) -> None:
    """Makes a job fail between two rounds; a reader gets the error."""
    frames.gate.clear()
    frames.fails = 1
    client.run("INSERT INTO edges VALUES (7, 8, 1), (8, 9, 1)")
    reading = waits_for_spark(client, f"SELECT * FROM {name}")
    frames.gate.set()
    with pytest.raises(SqlError, match="is behind: Spark failed"):
        reading.result(30)


@pytest.mark.parametrize("name", list(QUERIES))
def test_it_is_what_a_recompute_gives_after_every_commit(server: Server, frames: type[Frames], name: str) -> None:
    """Also over a restart, and after jobs that fail midway."""
    client, random = server.client(), Random(5)
    client.run(SETUP)
    create(client, name)
    for i in range(10):
        if i == 4:
            fail_once(client, frames, name)
        client.run(change(random))
        if i == 6:
            server.restart()
            client = server.client()
        assert client.sorted(f"SELECT * FROM {name}") == client.sorted(QUERIES[name])
        assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == []
    assert client.rows(f"SELECT count(*) > 0 FROM {name}") == [("t",)]


def test_commits_that_one_job_applies_are_told_apart(server: Server, frames: type[Frames]) -> None:
    client, random = server.client(), Random(6)
    client.run(SETUP)
    create(client, "reach")
    client.run(f"CREATE MATERIALIZED VIEW twin AS {QUERIES['reach']}")
    begun = server.coordinator.engine.published.epoch
    frames.gate.clear()
    for _ in range(8):
        client.run(change(random))
    frames.gate.set()
    upto = server.coordinator.engine.published.epoch + 1
    told = [
        client.copy_out(f"COPY (SUBSCRIBE {name} AS OF {begun} UP TO {upto}) TO STDOUT") for name in ("reach", "twin")
    ]
    assert sorted(told[0]) == sorted(told[1])
    assert len({line.split("\t")[0] for line in told[0]}) > 4
    assert client.rows("SELECT max(commits) > 4 FROM freshet.spark_jobs WHERE job > 1") == [("t",)]


def test_a_recursion_without_end_goes_when_its_view_does(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    endless = "WITH RECURSIVE r(a) AS (SELECT a FROM t UNION ALL SELECT a FROM r) SELECT a FROM r"
    client.run("SET statement_timeout = '500 ms'")
    view = f"CREATE MATERIALIZED VIEW endless WITH (MAINTAIN = spark, PARTITIONS = 1) AS {endless}"
    assert client.state(view) == "57014"
    client.run("RESET statement_timeout")
    client.run("CREATE MATERIALIZED VIEW v WITH (MAINTAIN = spark, PARTITIONS = 1) AS SELECT a FROM t")
    assert client.rows("SELECT * FROM v") == [("1",)]


def test_work_follows_the_parts_that_rounds_touch(server: Server) -> None:
    """An edge at the end of one of many chains: the other chains' parts are not read."""
    client = server.client()
    client.run("CREATE TABLE edges (a int, b int, cost int); CREATE TABLE nodes (id int, name text)")
    client.run("INSERT INTO nodes SELECT i, 'n' FROM generate_series(1, 2000) AS g(i)")
    client.run("INSERT INTO edges SELECT i, i + 1, 1 FROM generate_series(1, 2000) AS g(i) WHERE i % 4 <> 0")
    create(client, "reach", 32)
    for text in ("INSERT INTO edges VALUES (4, 9999, 1)", "DELETE FROM edges WHERE b = 9999"):
        client.run(text)  # the first job makes one file of those of each part that it touches
        client.rows("SELECT count(*) FROM reach")
    assert client.sorted("SELECT * FROM reach") == client.sorted(QUERIES["reach"])
    jobs = client.rows("SELECT parts_touched, parts_held, rows_read, rows_written FROM freshet.spark_jobs ORDER BY job")
    first, _, third = [tuple(int(cell or 0) for cell in job) for job in jobs]
    assert third[0] < first[1] / 3
    assert third[2] < first[3] / 3
    assert third[3] < 40


def test_explain_says_that_it_goes_by_rounds(client_and_plan: list[str]) -> None:
    assert client_and_plan[-1].startswith("maintained by spark: ")
    assert client_and_plan[-1].endswith(" fragments of 3 parts each, an exchange for each of them and round")


@pytest.fixture
def client_and_plan(server: Server) -> list[str]:
    client = server.client()
    client.run(SETUP)
    view = f"CREATE MATERIALIZED VIEW reach WITH (MAINTAIN = spark, PARTITIONS = 3) AS {QUERIES['reach']}"
    return [row[0] or "" for row in client.rows(f"EXPLAIN {view}")]


def test_spark_itself(tmp_path: Path, local_spark: SparkSession) -> None:
    """A recursion of one fragment and two rounds only, since every step is a job."""
    query = "WITH RECURSIVE r(a) AS (SELECT a FROM t UNION SELECT a + 1 FROM r WHERE a < 3) SELECT a FROM r"
    server = Server(tmp_path / "data", lent=local_spark)
    try:
        client = server.client()
        client.run("CREATE TABLE t (a int); INSERT INTO t VALUES (2), (2)")
        view = f"CREATE MATERIALIZED VIEW v WITH (MAINTAIN = spark, PARTITIONS = 2) AS {query}"
        server.run(client.work(view), 600)
        client.run("DELETE FROM t; INSERT INTO t VALUES (1)")
        server.run(client.work("SELECT * FROM v"), 600)
        assert client.sorted("SELECT * FROM v") == client.sorted(query) == [("1",), ("2",), ("3",)]
    finally:
        server.close()
