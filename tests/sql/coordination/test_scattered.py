"""Materialized views that Spark maintains, from SQL. Fakes stand in for Spark's frames, except in one test."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sql.coordination import scattered_changes
from storage.spark.session import SparkSession
from tests.support.sessions import Client, Server
from tests.support.spark_fake import Frames
from tests.support.waiting import waits_for_spark

TABLES = """
    CREATE TABLE people (id int PRIMARY KEY, city text, age int);
    CREATE TABLE orders (id int PRIMARY KEY, person int, amount int);
    INSERT INTO people SELECT i, 'city ' || i % 5, i FROM generate_series(1, 40) AS g(i);
    INSERT INTO orders SELECT i, i % 40 + 1, i FROM generate_series(1, 200) AS g(i)
"""
QUERY = """SELECT upper(city) AS city, count(*) AS n, sum(amount) AS total, min(p.city) AS least
           FROM people p JOIN orders o ON o.person = p.id GROUP BY city"""
VIEW = f"CREATE MATERIALIZED VIEW v WITH (MAINTAIN = spark, PARTITIONS = 3) AS {QUERY}"


@pytest.fixture
def server(tmp_path: Path, frames: type[Frames]) -> Iterator[Server]:
    server = Server(tmp_path / "data")
    yield server
    frames.gate.set()
    server.close()


@pytest.fixture
def client(server: Server) -> Client:
    made = server.client()
    made.run(TABLES)
    return made


def same(client: Client) -> bool:
    return client.sorted("SELECT * FROM v") == client.sorted(QUERY)


def folder(server: Server) -> list[Path]:
    return [path for path in server.folder.glob("views-*/*") if path.is_dir()]


def test_a_read_waits_for_the_job_that_covers_its_time(client: Client) -> None:
    assert client.run(VIEW) == "CREATE MATERIALIZED VIEW"
    assert same(client)
    for change in (
        "UPDATE people SET city = 'elsewhere' WHERE id < 9",
        "DELETE FROM orders WHERE id % 3 = 0",
        "INSERT INTO people VALUES (41, 'new', 1); INSERT INTO orders VALUES (201, 41, 5), (202, 41, NULL)",
        "DELETE FROM people WHERE id = 41",
    ):
        client.run(change)
        assert same(client)
    assert client.rows("SELECT count(*), sum(n) FROM v WHERE city LIKE 'CITY%'")


def test_what_stood_at_the_beginning_is_let_go(server: Server, client: Client) -> None:
    """A root keeps its version's arrangements alive: only the first job needs it, and none after a restart."""
    client.run(VIEW)
    assert same(client)
    (view,) = server.coordinator.scattered.views.values()
    assert view.published is None
    assert view.waiting == 0
    server.restart()
    client = server.client()
    client.run("DELETE FROM orders WHERE id = 1")
    assert same(client)
    (view,) = server.coordinator.scattered.views.values()
    assert view.published is None
    assert view.waiting == 0


def test_commits_while_a_job_runs_are_one_next_job(client: Client, frames: type[Frames]) -> None:
    """Only readers of the view wait for the job."""
    client.run(VIEW)
    frames.gate.clear()
    for i in range(5):
        client.run(f"INSERT INTO orders VALUES ({1000 + i}, 1, 1)")
    assert client.rows("SELECT count(*) FROM orders") == [("205",)]
    reading = waits_for_spark(client, "SELECT sum(n) FROM v")
    frames.gate.set()
    reading.result(30)
    assert same(client)
    commits = client.rows("SELECT sum(commits), count(*) < 6 FROM freshet.spark_jobs WHERE job > 1")
    assert commits == [("5", "t")]


def test_a_reader_may_ask_for_what_is_stale(client: Client, frames: type[Frames]) -> None:
    """The query reads one earlier commit throughout, no older than the reader has allowed."""
    client.run(VIEW)
    before = client.rows("SELECT sum(n) FROM v")
    frames.gate.clear()
    client.run("INSERT INTO orders VALUES (1000, 1, 1)")
    client.run("SET max_staleness = '1 h'")
    assert client.rows("SELECT sum(n) FROM v") == before
    both = "SELECT (SELECT sum(n) FROM v), (SELECT count(*) FROM orders)"
    assert client.rows(both) == [("200", "200")]
    client.run("SET max_staleness = '50 ms'")
    time.sleep(0.1)
    reading = waits_for_spark(client, "SELECT sum(n) FROM v")
    frames.gate.set()
    reading.result(30)
    client.run("SET max_staleness = 0")
    assert client.rows(both) == [("201", "201")]


def test_a_cancelled_reader_waits_no_more(client: Client, frames: type[Frames]) -> None:
    client.run(VIEW)
    frames.gate.clear()
    client.run("INSERT INTO orders VALUES (1000, 1, 1); SET statement_timeout = '100 ms'")
    assert client.state("SELECT * FROM v") == "57014"
    frames.gate.set()
    client.run("SET statement_timeout = 0")
    assert same(client)


def test_a_restart_goes_on_from_the_manifest(server: Server, client: Client) -> None:
    """Commits after the last job, applied or not, come in the next one."""
    client.run(VIEW)
    client.run("UPDATE people SET city = 'elsewhere' WHERE id < 9")
    assert same(client)
    (kept,) = folder(server)
    Frames.gate.clear()
    client.run("DELETE FROM orders WHERE id % 3 = 0; INSERT INTO people VALUES (50, 'late', 3)")
    Frames.fails = 100
    Frames.gate.set()
    server.restart()
    Frames.fails = 0
    client = server.client()
    client.run("INSERT INTO orders VALUES (1000, 50, 1)")
    assert same(client)
    assert folder(server) == [kept]
    assert int(client.rows("SELECT min(job) FROM freshet.spark_jobs WHERE error IS NULL")[0][0] or 0) > 1
    server.restart()
    assert same(server.client())


def test_a_folder_that_is_gone_is_made_anew(server: Server, client: Client) -> None:
    client.run(VIEW)
    (kept,) = folder(server)
    (kept / "manifest.json").unlink()
    server.restart()
    assert same(server.client())


def test_drop_removes_the_folder(server: Server, client: Client) -> None:
    client.run(VIEW)
    assert len(folder(server)) == 1
    client.run("DROP MATERIALIZED VIEW v")
    assert client.state("SELECT * FROM v") == "42P01"
    client.run(VIEW)
    client.run("DROP TABLE people CASCADE")
    until = time.monotonic() + 10
    while folder(server) and time.monotonic() < until:
        time.sleep(0.02)
    assert folder(server) == []


def test_a_job_that_fails_is_told_and_tried_again(client: Client, frames: type[Frames]) -> None:
    client.run(VIEW)
    frames.gate.clear()
    frames.fails = 1
    client.run("INSERT INTO orders VALUES (1000, 1, 1)")
    reading = waits_for_spark(client, "SELECT * FROM v")
    frames.gate.set()
    with pytest.raises(Exception, match="materialized view v is behind: Spark failed") as failed:
        reading.result(30)
    assert failed.value.sqlstate == "58000"  # type: ignore[attr-defined]
    assert client.rows("SELECT error FROM freshet.spark_jobs WHERE error IS NOT NULL") == [("Spark failed",)]
    assert same(client)


def test_what_waits_for_long_is_read_from_the_store(
    client: Client, frames: type[Frames], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Memory keeps little of what waits, even if the job that took it fails."""
    monkeypatch.setattr(scattered_changes, "MOST_WAITING", 3)
    client.run(VIEW)
    frames.gate.clear()
    frames.fails = 2
    for i in range(8):
        client.run(f"INSERT INTO orders VALUES ({1000 + i}, {i + 1}, 1)")
    (view,) = client.server.coordinator.scattered.views.values()
    assert view.due or view.running
    assert sum(len(history.diffs) for some in view.pending.changes.values() for history in some) <= 3
    frames.gate.set()
    assert client.state("SELECT * FROM v") == "58000"
    client.run("DELETE FROM orders WHERE id % 2 = 1")
    while view.error is not None:
        time.sleep(0.02)
    assert same(client)


def test_a_view_whose_first_job_fails_is_not_there(server: Server, client: Client, frames: type[Frames]) -> None:
    frames.fails = 1
    assert client.error(VIEW).sqlstate == "58000"
    assert client.state("SELECT * FROM v") == "42P01"
    client.run(VIEW)
    assert same(client)


def test_an_error_of_a_row_is_data_and_heals(client: Client) -> None:
    client.run(
        "CREATE MATERIALIZED VIEW q WITH (MAINTAIN = spark, PARTITIONS = 2) AS SELECT 100 / age AS a FROM people"
    )
    client.run("INSERT INTO people VALUES (100, 'x', 0)")
    assert client.state("SELECT * FROM q") == "22012"
    told = ("q", "22012", "division by zero")
    assert client.rows("SELECT view, sqlstate, message FROM freshet.view_errors") == [told]
    assert client.rows("SELECT status FROM freshet.views WHERE view = 'q'") == [("has errors",)]
    client.run("SET ignore_view_errors = on")
    assert client.rows("SELECT count(*) FROM q") == [("40",)]
    client.run("SET ignore_view_errors = off; DELETE FROM people WHERE id = 100")
    assert client.rows("SELECT count(*) FROM q") == [("40",)]
    assert client.rows("SELECT * FROM freshet.view_errors") == []


def test_constants_are_there_once(client: Client) -> None:
    """The empty group's row and rows of VALUES occur once; a constant that fails is reported at once."""
    client.run("CREATE TABLE none (a int)")
    client.run("CREATE MATERIALIZED VIEW w WITH (MAINTAIN = spark) AS SELECT count(*), max(a) FROM none")
    assert client.rows("SELECT * FROM w") == [("0", None)]
    client.run("INSERT INTO none VALUES (7)")
    assert client.rows("SELECT * FROM w") == [("1", "7")]
    client.run("DELETE FROM none")
    assert client.rows("SELECT * FROM w") == [("0", None)]
    query = "SELECT v.a AS b, n.a FROM (VALUES (1), (2)) v(a) LEFT JOIN none n ON n.a = v.a"
    client.run(f"CREATE MATERIALIZED VIEW x WITH (MAINTAIN = spark) AS {query}; INSERT INTO none VALUES (2), (2)")
    assert client.sorted("SELECT * FROM x") == client.sorted(query)
    failing = "SELECT n.a FROM none n JOIN (VALUES (1 / 0), (2)) v(a) ON n.a = v.a"
    assert client.state(f"CREATE MATERIALIZED VIEW y WITH (MAINTAIN = spark) AS {failing}") == "22012"


def test_explain_tells_what_a_job_is(client: Client) -> None:
    lines = [row[0] for row in client.rows(f"EXPLAIN {VIEW}")]
    assert lines[-1] == "maintained by spark: 3 fragments of 3 parts each, 3 exchanges a job"


def test_transactions(client: Client) -> None:
    """A transaction keeps its snapshot; Spark does not see its writes; a view created in it appears at commit."""
    client.run(f"BEGIN; {VIEW}; COMMIT")
    assert same(client)
    other = client.server.client()
    client.run("BEGIN; SELECT 1 FROM orders")
    first = client.sorted("SELECT * FROM v")
    other.run("DELETE FROM orders WHERE id < 50")
    assert same(other)
    assert client.sorted("SELECT * FROM v") == first
    client.run("COMMIT")
    client.run("BEGIN; INSERT INTO orders VALUES (1000, 1, 1)")
    assert client.state("SELECT * FROM v") == "0A000"
    client.run("ROLLBACK")
    assert same(client)


@pytest.mark.parametrize(("text", "state", "said"), [
    ("CREATE MATERIALIZED VIEW w AS SELECT * FROM v", "0A000", "materialized view v, which Spark maintains"),
    ("CREATE MATERIALIZED VIEW w WITH (MAINTAIN = spark) AS SELECT * FROM m", "0A000", "reading m, which is no table"),
    ("CREATE MATERIALIZED VIEW w WITH (MAINTAIN = duck) AS SELECT 1", "22023", "invalid value for MAINTAIN"),
    ("CREATE MATERIALIZED VIEW w WITH (PARTITIONS = 3) AS SELECT 1", "22023", "PARTITIONS is for views that Spark"),
    ("CREATE MATERIALIZED VIEW w WITH (MAINTAIN = spark, PARTITIONS = 0) AS SELECT 1", "22023", "between 1 and"),
    ("CREATE VIEW w WITH (MAINTAIN = spark) AS SELECT 1", "22023", 'parameter "maintain"'),
    ("CREATE INDEX ON v (city)", "0A000", "an index on a materialized view that Spark maintains"),
    ("INSERT INTO people SELECT 999, city FROM v LIMIT 1", "0A000", "Spark maintains, in a statement that writes"),
    ("CREATE MATERIALIZED VIEW w WITH (MAINTAIN = spark, HYDRATE = local) AS SELECT 1", "22023", "HYDRATE is for"),
    ("COPY (SUBSCRIBE (SELECT n FROM v)) TO STDOUT", "0A000", "which Spark maintains"),
])  # fmt: skip
def test_what_is_refused(client: Client, text: str, state: str, said: str) -> None:
    client.run(f"{VIEW}; CREATE MATERIALIZED VIEW m AS SELECT id FROM people")
    error = client.error(text)
    assert (error.sqlstate, said in error.message) == (state, True), error.message
    assert same(client)


def test_altered_tables_and_other_reads(client: Client) -> None:
    """The view is rebuilt when a table's layout changes; COPY, cursors and prepared statements read it."""
    client.run(VIEW)
    client.run("ALTER TABLE people ADD COLUMN note text; ALTER MATERIALIZED VIEW v RENAME TO w; ALTER TABLE people"
               " RENAME COLUMN age TO years")  # fmt: skip
    client.run("ALTER MATERIALIZED VIEW w RENAME TO v")
    assert same(client)
    assert len(client.copy_out("COPY v TO STDOUT")) == 5
    client.run("BEGIN; DECLARE c CURSOR FOR SELECT * FROM v")
    assert len(client.rows("FETCH ALL FROM c")) == 5
    client.run("COMMIT; PREPARE p AS SELECT n FROM v WHERE city = 'CITY 1'")
    client.run("INSERT INTO orders VALUES (1000, 1, 1)")
    assert client.rows("EXECUTE p") == [("41",)]
    assert client.rows("SELECT status FROM freshet.views WHERE view = 'v'") == [("running",)]


def test_a_sweep_keeps_what_only_such_a_view_has(client: Client) -> None:
    """A sweep keeps values that Spark has made, and those of rows that wait."""
    client.run(VIEW)
    client.run("UPDATE people SET city = 'gone ' || id WHERE id < 9")
    assert same(client)
    client.run("VACUUM")
    assert same(client)
    for text in ("UPDATE people SET city = 'back' WHERE id < 5", "VACUUM", "DELETE FROM people WHERE id = 1", "VACUUM"):
        client.run(text)
    assert same(client)


def test_spark_itself(tmp_path: Path, local_spark: SparkSession) -> None:
    server = Server(tmp_path / "data", lent=local_spark)
    try:
        client = server.client()
        client.run(TABLES)
        _patiently(client, VIEW)
        client.run("UPDATE people SET city = 'elsewhere' WHERE id < 9; DELETE FROM orders WHERE id = 77")
        _patiently(client, "SELECT * FROM v")
        assert same(client)
        touched = client.rows("SELECT parts_touched <= parts_held, rows_read > 0 FROM freshet.spark_jobs WHERE job = 2")
        assert touched == [("t", "t")]
    finally:
        server.close()


def _patiently(client: Client, text: str) -> Any:
    return client.server.run(client.work(text), 600)
