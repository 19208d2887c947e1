"""VERIFY, subscriptions and sinks of a view that Spark maintains, against a twin that the engine maintains."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from ivm.errors import SqlError
from sql.engine.persist import Tuning
from sql.session.verify_by_spark import BY_SPARK
from storage.checkpoint import Pace
from storage.spark.manifest import read_manifest
from storage.stored import History
from tests.support.sessions import Client, Row, Server
from tests.support.sink_reader import changes, latest
from tests.support.spark_fake import Frames

HURRY = Tuning(pace=Pace(seconds=0.02, fold_seconds=0.02, checkpoint_seconds=0.5))
QUERY = """SELECT upper(city) AS city, count(*) AS n, sum(amount) AS total, min(p.city) AS least
           FROM people p JOIN orders o ON o.person = p.id GROUP BY city"""
SETUP = f"""
    CREATE TABLE people (id int, city text);
    CREATE TABLE orders (person int, amount int);
    INSERT INTO people SELECT i, 'city ' || i % 5 FROM generate_series(1, 20) AS g(i);
    INSERT INTO orders SELECT i % 20 + 1, i FROM generate_series(1, 60) AS g(i);
    CREATE MATERIALIZED VIEW twin AS {QUERY};
    CREATE MATERIALIZED VIEW v WITH (MAINTAIN = spark, PARTITIONS = 3) AS {QUERY}
"""


@pytest.fixture
def server(tmp_path: Path, frames: type[Frames]) -> Iterator[Server]:
    (tmp_path / "out").mkdir()
    server = Server(tmp_path / "data", places=(str(tmp_path / "out"),), tuning=HURRY)
    server.client().run(SETUP)
    yield server
    frames.gate.set()
    server.close()


def change(random: Random) -> str:
    """NULLs and duplicates among them."""
    person, city = random.choice(["NULL", "1", "2", "3"]), random.choice(["NULL", "'x'", "'new'", "'city 1'"])
    match random.randrange(5):
        case 0:
            return f"INSERT INTO orders VALUES ({person}, 5), ({person}, 5), ({person}, NULL)"
        case 1:
            return f"DELETE FROM orders WHERE person IS NOT DISTINCT FROM {person}"
        case 2:
            return f"UPDATE people SET city = {city} WHERE id % 4 = {random.randrange(4)}"
        case 3:
            return f"INSERT INTO people VALUES ({person}, {city}), ({person}, {city})"
        case _:
            return f"DELETE FROM people WHERE id = {person} AND city IS DISTINCT FROM {city}"


def wait_for(what: Callable[[], Any]) -> None:
    until = time.monotonic() + 20
    while not what():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def follow(client: Client, source: str, options: str = "") -> None:
    client.run(f"BEGIN; DECLARE c CURSOR FOR SUBSCRIBE {source} {options}")


def fetched(client: Client, upto: int) -> list[Row]:
    """Fetches until a progress message passes an epoch; checks the progress messages."""
    rows: list[Row] = []
    known = 0
    while known <= upto:
        for row in client.rows("FETCH ALL c WITH (timeout = '5s')"):
            assert int(row[0] or 0) >= known, "progress had passed it"
            if row[1] == "t":
                known = int(row[0] or 0)
            else:
                rows.append(row)
    return [row for row in rows if int(row[0] or 0) <= upto]


def totals(rows: list[Row]) -> Counter[Row]:
    """The summed diffs of each (epoch, row)."""
    found: Counter[Row] = Counter()
    for row in rows:
        found[row[0], *row[3:]] += int(row[2] or 0)
    return Counter({row: n for row, n in found.items() if n})


def epoch(server: Server) -> int:
    return server.coordinator.engine.published.epoch


def test_verify_compares_it_with_a_recompute(server: Server, frames: type[Frames]) -> None:
    client, random = server.client(), Random(1)
    for _ in range(8):
        client.run(change(random))
        assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    server.restart()
    client = server.client()
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    client.run("BEGIN; INSERT INTO orders VALUES (1, 1)")
    assert client.state("VERIFY MATERIALIZED VIEW v") == "0A000"
    client.run("ROLLBACK")


def test_verify_of_what_is_stale_is_as_of_then(server: Server, frames: type[Frames]) -> None:
    client = server.client()
    client.rows("SELECT * FROM v")
    frames.gate.clear()
    client.run("DELETE FROM orders WHERE person < 4; SET max_staleness = '1 h'")
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    time.sleep(0.5)
    client.run("INSERT INTO orders VALUES (1, 1)")
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    frames.gate.set()


def test_verify_tells_what_differs(server: Server) -> None:
    """VERIFY reports a view after Spark was given an update that no commit made."""
    client = server.client()
    (view,) = server.coordinator.scattered.views.values()
    relation = client.session.state.coordinator.engine.catalog.names["public", "orders"].id
    rows, _ = server.coordinator.engine.published.rows(relation, epoch(server))
    wrong = History(rows[:1], np.array([epoch(server)]), np.array([1]))
    view.add(epoch(server), {relation: wrong})
    found = client.rows("VERIFY MATERIALIZED VIEW v")
    assert sorted(str(row[-1]) for row in found) == ["-1", "1"]


def test_verify_is_computed_by_spark_where_the_server_has_no_room(server: Server, frames: type[Frames]) -> None:
    client = server.client()
    client.run("CREATE TABLE halves (a int, b int)")
    client.run("INSERT INTO halves SELECT i % 2, i FROM generate_series(1, 600) AS g(i)")
    client.run("""
        CREATE MATERIALIZED VIEW most WITH (MAINTAIN = spark, PARTITIONS = 2) AS
          SELECT x.a, count(*) AS n, max(1000 / (x.b + y.b)) AS q FROM halves x JOIN halves y ON x.a = y.a GROUP BY x.a
    """)
    server.coordinator.budget.limit, runs = 1 << 20, frames.runs
    assert client.rows("VERIFY MATERIALIZED VIEW most") == []
    assert [notice.message for notice in client.notices()] == [BY_SPARK.message]
    assert frames.runs == runs + 1
    view = next(v for v in server.coordinator.scattered.views.values() if v.relation.name == "most")
    halves = server.coordinator.engine.catalog.names["public", "halves"].id
    rows, _ = server.coordinator.engine.published.rows(halves, epoch(server))
    view.add(epoch(server), {halves: History(rows[:1], np.array([epoch(server)]), np.array([1]))})
    client.run("CREATE TABLE another (a int)")  # the next commit lets the job begin
    found = client.rows("VERIFY MATERIALIZED VIEW most")
    assert sorted(str(row[-1]) for row in found) == ["-1", "1"]
    client.run("INSERT INTO halves VALUES (0, -2)")
    assert client.state("VERIFY MATERIALIZED VIEW most") == "22012"
    assert not list(view.folder.parent.glob("verify-*"))


def test_a_recursion_is_verified_by_spark_too(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = server.client()
    client.run("""
        CREATE MATERIALIZED VIEW steps WITH (MAINTAIN = spark, PARTITIONS = 2) AS
          WITH RECURSIVE r(a) AS (SELECT person FROM orders UNION SELECT a + 1 FROM r WHERE a < 30) SELECT a FROM r;
        DELETE FROM orders WHERE person < 4
    """)
    assert client.rows("SELECT count(*) FROM steps") == [("27",)]
    monkeypatch.setattr("sql.session.verify_view.verify", Mock(side_effect=SqlError("53200", "out of memory")))
    assert client.rows("VERIFY MATERIALIZED VIEW steps") == []
    assert [notice.message for notice in client.notices()] == [BY_SPARK.message]
    assert client.state("VERIFY MATERIALIZED VIEW twin") == "53200"


def test_a_subscription_tells_each_commits_changes(server: Server, frames: type[Frames]) -> None:
    """The same as of the engine's view, even if one job takes several commits; progress skips none."""
    writer, random = server.client(), Random(2)
    readers = [server.client(), server.client()]
    for reader, source in zip(readers, ("twin", "v"), strict=True):
        follow(reader, source, "WITH (PROGRESS)")
    begun = epoch(server)
    for i in range(24):
        if i % 6 == 0:
            frames.gate.clear()
        writer.run(change(random))
        if i % 6 == 4:
            frames.fails = i % 4 // 2
            frames.gate.set()
            wait_for(lambda: server.coordinator.scattered.views and not _waiting(server))
    told, expected = (fetched(reader, epoch(server)) for reader in reversed(readers))
    assert totals(told) == totals(expected)
    assert len({row[0] for row in expected if int(row[0] or 0) > begun}) > 10
    assert server.client().rows("SELECT max(commits) > 3 FROM freshet.spark_jobs WHERE job > 1") == [("t",)]


def _waiting(server: Server) -> int:
    (view,) = server.coordinator.scattered.views.values()
    return view.waiting


def test_progress_waits_for_the_job(server: Server, frames: type[Frames]) -> None:
    writer, reader = server.client(), server.client()
    follow(reader, "v", "WITH (PROGRESS)")
    frames.gate.clear()
    writer.run("INSERT INTO orders VALUES (1, 1)")
    at = epoch(server)
    time.sleep(1.2)
    writer.run("CREATE TABLE another (a int)")
    rows = reader.rows("FETCH ALL c WITH (timeout = '2s')")
    assert all(int(row[0] or 0) <= at for row in rows), rows
    frames.gate.set()
    assert {row[0] for row in fetched(reader, at) if int(row[0] or 0) >= at} == {str(at)}


def test_a_subscription_to_the_past_and_up_to_an_epoch(server: Server) -> None:
    writer, random = server.client(), Random(3)
    begun = epoch(server)
    for i in range(12):
        writer.run(change(random))
        if i == 5:
            middle = epoch(server)
        if i % 3 == 0:
            writer.rows("SELECT * FROM v")
    writer.run("INSERT INTO people VALUES (1, 'after')")
    found = [
        writer.copy_out(f"COPY (SUBSCRIBE {source} AS OF {middle} UP TO {epoch(server)}) TO STDOUT")
        for source in ("twin", "v")
    ]
    assert sorted(found[0]) == sorted(found[1])
    assert len({line.split("\t")[0] for line in found[0]}) > 3
    assert writer.state(f"COPY (SUBSCRIBE v AS OF {begun - 10**9}) TO STDOUT") == "22023"


def test_a_subscription_ends_with_its_view_and_pauses_with_its_errors(server: Server) -> None:
    writer, reader = server.client(), server.client()
    writer.run(
        "CREATE MATERIALIZED VIEW q WITH (MAINTAIN = spark, PARTITIONS = 2) AS SELECT 60 / amount AS q FROM orders"
    )
    follow(reader, "q", "WITH (SNAPSHOT = false)")
    writer.run("INSERT INTO orders VALUES (1, 0)")
    writer.error("SELECT * FROM q")
    assert reader.rows("FETCH ALL c WITH (timeout = '300ms')") == []
    assert "division by zero" in reader.notices()[0].message
    assert server.client().state("COPY (SUBSCRIBE q) TO STDOUT") == "22012"
    writer.run("UPDATE orders SET amount = 30 WHERE amount = 0")
    assert [row[1:] for row in reader.rows("FETCH ALL c WITH (timeout = '20s')")] == [("1", "2")]
    writer.run("DROP MATERIALIZED VIEW q")
    assert reader.state("FETCH ALL c WITH (timeout = '20s')") == "42P01"


def test_a_job_that_fails_is_told_to_who_waits(server: Server, frames: type[Frames]) -> None:
    writer, reader = server.client(), server.client()
    follow(reader, "v", "WITH (SNAPSHOT = false)")
    frames.fails = 1000
    writer.run("INSERT INTO orders VALUES (1, 1)")

    def told() -> bool:
        assert reader.rows("FETCH ALL c WITH (timeout = '100ms')") == []
        return any("is behind: Spark failed" in notice.message for notice in reader.notices())

    wait_for(told)
    frames.fails = 0
    assert len(reader.rows("FETCH ALL c WITH (timeout = '20s')")) == 2


@pytest.mark.parametrize("format_", ["parquet", "jsonl"])
def test_a_sinks_entries_give_the_view_at_every_epoch(server: Server, tmp_path: Path, format_: str) -> None:
    """Through a restart, as a sink of the engine's view does."""
    client, random = server.client(), Random(4)
    names = ("v", "twin")
    for name in names:
        options = f"FORMAT {format_}, EVERY = '10ms', ENVELOPE CHANGELOG"
        client.run(f"CREATE SINK k{name} FROM {name} INTO '{name}' WITH ({options})")
    epochs = []
    for i in range(20):
        client.run(change(random))
        epochs.append(epoch(server))
        if i % 5 == 0:
            _reach(server, epochs[-1])
        if i == 11:
            server.restart()
            client = server.client()
    _reach(server, epochs[-1])
    folders = [tmp_path / "out" / name for name in names]
    found = [changes(folder) for folder in folders]
    begun = max(latest(folder)[0]["upto"] for folder in folders)
    checked = [at for at in epochs if at >= begun]
    assert len(checked) > 10
    for at in checked:
        assert _rows(found[0], at) == _rows(found[1], at)
    later = [Counter(one for one in some if begun < one[0] <= epochs[-1]) for some in found]
    assert later[0] == later[1]


def _rows(found: list[tuple[int, int, Row]], at: int) -> Counter[Row]:
    rows: Counter[Row] = Counter()
    for when, diff, row in found:
        if when <= at:
            rows[row] += diff
    assert all(n >= 0 for n in rows.values())
    return +rows


def _reach(server: Server, at: int) -> None:
    client = server.client()

    def reached() -> bool:
        found = client.rows("SELECT epoch, error FROM freshet.sinks")
        assert all(error is None for _, error in found), found
        return all(int(done or 0) >= at for done, _ in found)

    wait_for(reached)


def test_a_sink_by_key_and_without_a_snapshot(server: Server, tmp_path: Path) -> None:
    client = server.client()
    client.run(
        "CREATE SINK k FROM v INTO 'k' WITH (FORMAT jsonl, ENVELOPE UPSERT, KEY (city), SNAPSHOT = false,"
        " EVERY = '10ms')"
    )
    _reach(server, epoch(server))
    client.run("UPDATE people SET city = 'other' WHERE city = 'city 1'; DELETE FROM people WHERE city = 'city 2'")
    client.rows("SELECT * FROM v")
    _reach(server, epoch(server))
    found = [row for entry in latest(tmp_path / "out" / "k") for row in _lines(tmp_path / "out" / "k", entry)]
    assert {(row["mz_state"], row["city"]) for row in found} == {
        ("upsert", "OTHER"), ("delete", "CITY 1"), ("delete", "CITY 2"),
    }  # fmt: skip


def _lines(folder: Path, entry: dict[str, Any]) -> list[dict[str, Any]]:
    return [json.loads(line) for file in entry["files"] for line in (folder / file["path"]).read_text().splitlines()]


def test_changes_are_kept_as_long_as_someone_needs_them(server: Server) -> None:
    client = server.client()
    client.run("DROP MATERIALIZED VIEW v")
    client.run(f"CREATE MATERIALIZED VIEW v WITH (MAINTAIN = spark, RETAIN HISTORY FOR '100 ms') AS {QUERY}")
    client.run("CREATE SINK k FROM v INTO 'k' WITH (FORMAT jsonl, EVERY = '10ms')")
    _reach(server, epoch(server))
    client.run("ALTER SINK k PAUSE")

    def files() -> int:
        client.run("INSERT INTO orders VALUES (1, 1)")
        client.rows("SELECT * FROM v")
        (view,) = server.coordinator.scattered.views.values()
        manifest = read_manifest(view.folder)
        assert manifest is not None
        kept = {f"changes/{path.name}" for path in (view.folder / "changes").iterdir()}
        assert kept == {changes.file for changes in manifest.changes}
        return len(kept)

    counts = [files() for _ in range(4)]
    time.sleep(0.3)
    assert files() == counts[-1] + 1
    client.run("ALTER SINK k RESUME")
    _reach(server, epoch(server))
    time.sleep(0.3)
    files()
    assert files() <= 2
