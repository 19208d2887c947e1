"""Every kind of statement ends soon after a cancel, and leaves everything as it was before it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ivm.errors import SqlError
from ivm.rows import Words
from sql.engine.failing import Failing
from sql.engine.sweeping import Sweeping
from tests.support.readers import until_idle
from tests.support.sessions import Client, Server

ROWS = 200_000
SOON = 10.0
"""Seconds. On a machine of one's own it is 0.1; here others run beside it, and none of these ends by itself in less."""
SERIES = "generate_series(1, 5000000) g"
CHANGES = {
    "UPDATE": "UPDATE big SET a = a + 1, s = s || 'y'",
    "UPDATE of a view's table": "UPDATE seen SET s = md5(s) || md5(a::text)",
    "DELETE": "DELETE FROM big WHERE length(s || 'x') > 0",
    "INSERT": "INSERT INTO big SELECT 1000000 + g, g, 'x' || g FROM generate_series(1, 2000000) g",
    "upsert": f"INSERT INTO big SELECT g, 1, 'z' || g FROM generate_series(1, {ROWS}) g "
    "ON CONFLICT (id) DO UPDATE SET s = big.s || 'y'",
    "MERGE": "MERGE INTO big USING (SELECT id, s || 'm' AS s FROM big) m ON m.id = big.id "
    "WHEN MATCHED THEN UPDATE SET s = m.s",
    "WITH": "WITH x AS (UPDATE big SET s = s || 'y' RETURNING s) SELECT count(*) FROM x",
    "CREATE TABLE AS": "CREATE TABLE made AS SELECT g, 'x' || g AS s FROM generate_series(1, 2000000) g",
    "CREATE VIEW": "CREATE MATERIALIZED VIEW made AS SELECT a.id, md5(a.s || b.s) FROM big a JOIN big b USING (a)",
    "ALTER TYPE": "ALTER TABLE big ALTER COLUMN a TYPE text USING a || 'z' || s",
    "ADD COLUMN": "ALTER TABLE big ADD COLUMN z text DEFAULT random()::text || random()::text",
    "ADD CHECK": "ALTER TABLE big ADD CHECK (md5(s) || md5(s || 'x') <> '')",
    "DO of statements": "DO $$ BEGIN FOR i IN 1..1000000 LOOP UPDATE big SET a = 0 WHERE id = i; END LOOP; END $$",
}
QUERIES = {
    "DO": "DO $$ DECLARE i int := 0; BEGIN WHILE true LOOP i := (i + 1) % 1000; END LOOP; END $$",
    "an empty loop": "DO $$ BEGIN LOOP NULL; END LOOP; END $$",
    "pg_sleep": "SELECT pg_sleep(30)",
    "ORDER BY": f"SELECT md5(g::text) FROM {SERIES} ORDER BY 1 DESC OFFSET 4999990",
    "GROUP BY": f"SELECT count(*) FROM (SELECT g % 1000000, sum(g) FROM {SERIES} GROUP BY 1) q",
    "DISTINCT": f"SELECT count(DISTINCT g::text) FROM {SERIES}",
    "a join": f"SELECT count(*) FROM {SERIES} JOIN generate_series(1, 5000000) h ON g = h",
    "a cross join": "SELECT count(*) FROM generate_series(1, 99999) a, generate_series(1, 99999) b WHERE a % 7 < b % 5",
    "a window": f"SELECT max(x) FROM (SELECT sum(g) OVER (PARTITION BY g % 10 ORDER BY g) x FROM {SERIES}) q",
    "recursion": "WITH RECURSIVE r AS (SELECT 1 x UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r",
    "regexp": "SELECT count(*) FROM generate_series(1, 100000) g WHERE repeat('a', 10000) || g ~ '(a|aa)+$'",
    "jsonpath": "SELECT jsonb_path_query_array(('[' || repeat('1,', 1000000) || '1]')::jsonb, '$[*] ? (@ > 2)')",
    "numeric": "SELECT max(repeat('9', 50000)::numeric * g) FROM generate_series(1, 10000) g",
    "LIKE": "SELECT count(*) FROM generate_series(1, 1000) g WHERE repeat('ab', 100000) || g LIKE '%b%a%c'",
    "string_agg": f"SELECT length(string_agg(g::text, ',')) FROM {SERIES}",
    "array_agg": f"SELECT array_length(array_agg(g), 1) FROM {SERIES}",
    "rows": "SELECT g, repeat('x', 50) FROM generate_series(1, 20000000) g",
    "sha512": "SELECT sha512(repeat('x', 5000000)::bytea || g::text::bytea) FROM generate_series(1, 1000) g",
    "a long statement": f"SELECT count(*) FROM big WHERE {' AND '.join(f'a + {i} <> 5' for i in range(30_000))}",
}


COPIED = 1_000_000
COPIES = {
    "FROM STDIN": "COPY big FROM STDIN",
    "FROM STDIN under a view": "COPY seen FROM STDIN",
    "FROM a file": "COPY seen FROM '{folder}/rows.csv' (FORMAT csv)",
    "TO STDOUT": f"COPY (SELECT g, md5(g::text) FROM {SERIES}) TO STDOUT",
    "TO a file": f"COPY (SELECT g, md5(g::text) AS m FROM {SERIES}) TO '{{folder}}/out.csv' (FORMAT csv)",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copied")
    lines = (f"{1_000_000 + i},{i % 1000},a row\n" for i in range(COPIED))
    (folder / "rows.csv").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def others() -> frozenset[threading.Thread]:
    """Threads of the servers of other modules."""
    return frozenset(threading.enumerate())


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, folder: Path, others: frozenset[threading.Thread]
) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("cancels")
    server = Server(data, files=(folder,), places=(str(folder),), memory=1 << 30)
    client = server.client()
    client.run("CREATE TABLE big (id int PRIMARY KEY, a int, s text)")
    client.run(f"INSERT INTO big SELECT g, g % 1000, 'x' || g FROM generate_series(1, {ROWS}) g")
    client.run("CREATE TABLE seen AS SELECT * FROM big")
    client.run("CREATE MATERIALIZED VIEW sums AS SELECT a, count(*), max(s || 'x') FROM seen GROUP BY a")
    yield server
    server.close()


def contents(client: Client) -> tuple[object, list[tuple[Words, Words]]]:
    """What is defined, and the rows of all relations. SQL would take seconds to add up as much."""
    published = client.server.coordinator.engine.published
    relations = published.catalog.relations
    stored = [r for r in relations if r in published.stored]
    return relations, [published.rows(r, published.ordinal) for r in stored]


def is_same(one: tuple[object, list[tuple[Words, Words]]], other: tuple[object, list[tuple[Words, Words]]]) -> bool:
    if one[0] != other[0]:
        return False
    return all(np.array_equal(a, b) for x, y in zip(one[1], other[1], strict=True) for a, b in zip(x, y, strict=True))


def cancelled(client: Client, text: str, by_timeout: bool, copied: bytes | None = None) -> tuple[str, float]:
    """How the statement ends, and how many seconds after the first cancel. Those that come before it has begun do
    nothing, so that it is cancelled again and again."""
    ended: list[tuple[str, float]] = []
    wait = 0.15 if by_timeout else 0.05

    def run() -> None:
        try:
            if text.endswith("TO STDOUT"):
                client.copy_out(text)
            else:
                client.run(text, copied)
            ended.append(("", time.monotonic()))
        except SqlError as error:
            ended.append((error.sqlstate, time.monotonic()))

    client.run(f"SET statement_timeout = '{wait * 1000 if by_timeout else 0:.0f}ms'")
    thread = threading.Thread(target=run)
    begun = time.monotonic()
    thread.start()
    thread.join(wait)
    while thread.is_alive() and not by_timeout and time.monotonic() < begun + 60:
        client.server.run(client.session.cancel())
        thread.join(wait)
    thread.join(60)
    client.run("RESET statement_timeout")
    return ended[0][0], ended[0][1] - begun - wait


@pytest.mark.parametrize("by_timeout", [False, True], ids=["cancel", "timeout"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_ends(client: Client, others: frozenset[threading.Thread], name: str, by_timeout: bool) -> None:
    """Its work too, not only its answer."""
    state, after = cancelled(client, QUERIES[name], by_timeout)
    assert state in ("57014", "53200"), state
    assert after < SOON
    until_idle(others)
    assert client.rows("SELECT 1") == [("1",)]


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_ends_and_is_undone(client: Client, name: str) -> None:
    before = contents(client)
    assert [len(rows) for rows, _ in before[1]] == [ROWS, ROWS, 1000]
    state, after = cancelled(client, CHANGES[name], by_timeout=False)
    assert state == "57014", state
    assert after < SOON
    assert is_same(contents(client), before)
    assert client.rows("SELECT count(*), max(s) FROM big") == [(str(ROWS), "x99999")]


@pytest.mark.parametrize("text", ["UPDATE seen SET a = a + 1, s = s || 'y'", "DELETE FROM seen WHERE id > 0"])
def test_a_change_ends_and_is_undone_while_views_take_it_over(
    server: Server, client: Client, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """The views of a large change take it over before it is durable."""
    begun, step = threading.Event(), Failing.step_ahead

    def stepped(self: Failing) -> None:
        begun.set()
        time.sleep(0.2)
        step(self)

    monkeypatch.setattr(Failing, "step_ahead", stepped)
    before, running = contents(client), server.start(client.work(text))
    assert begun.wait(60)
    server.run(client.session.cancel())
    with pytest.raises(SqlError) as caught:
        running.result(60)
    assert caught.value.sqlstate == "57014"
    assert is_same(contents(client), before)
    client.run("UPDATE seen SET s = s || 'y' WHERE id % 50 = 0")
    client.run("UPDATE seen SET s = rtrim(s, 'y') WHERE id % 50 = 0")
    assert is_same(contents(client), before)
    assert client.rows("VERIFY MATERIALIZED VIEW sums") == []


@pytest.mark.parametrize("by_timeout", [False, True], ids=["cancel", "timeout"])
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_ends_and_is_undone(client: Client, folder: Path, name: str, by_timeout: bool) -> None:
    before = contents(client)
    rows = (folder / "rows.csv").read_bytes().replace(b",", b"\t")
    text = COPIES[name].format(folder=folder)
    state, after = cancelled(client, text, by_timeout, rows if "STDIN" in name else None)
    assert state == "57014", state
    assert after < SOON
    assert is_same(contents(client), before)
    assert not (folder / "out.csv").exists()


def test_the_limit_of_a_copy_ends_with_it(client: Client) -> None:
    """Neither a COPY that has ended nor one that failed ends what comes after it."""
    client.run("CREATE TABLE few (a int)")
    client.run("SET statement_timeout = '200ms'")
    client.run("COPY few FROM STDIN", b"1\n2\n")
    with pytest.raises(SqlError, match="invalid input syntax"):
        client.run("COPY few FROM STDIN", b"x\n")
    client.run("SET statement_timeout = 0")
    assert client.rows("SELECT count(*), pg_sleep(0.3) FROM few") == [("2", "")]
    client.run("DROP TABLE few")


def test_vacuum_full_ends(client: Client) -> None:
    before = contents(client)
    for by_timeout in (False, True):
        state, after = cancelled(client, "VACUUM FULL", by_timeout)
        assert state == "57014", state
        assert after < SOON
    client.run("DELETE FROM seen WHERE id % 1000 = 7")
    client.run("VACUUM FULL")  # the sweeps that were begun are in nobody's way
    client.run("INSERT INTO seen SELECT * FROM big WHERE id % 1000 = 7")
    assert is_same(contents(client), before)
    assert client.rows("VERIFY DICTIONARY") == []
    assert client.rows("VERIFY MATERIALIZED VIEW sums") == []


def test_a_cancel_that_comes_too_late_for_a_job_ends_vacuum(
    server: Server, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not lost while arrangements are rewritten one by one."""
    compact, done = Sweeping.compact, []

    def slow(self: Sweeping) -> bool:
        time.sleep(0.02)
        done.append(compact(self))
        return len(done) < 500

    monkeypatch.setattr(Sweeping, "compact", slow)
    state, _ = cancelled(client, "VACUUM FULL", by_timeout=False)
    assert state == "57014"
    assert len(done) < 100


@pytest.mark.parametrize("what", ["row", "table"])
def test_a_wait_ends(server: Server, client: Client, what: str) -> None:
    holder = server.client()
    hold, want = {
        "row": ("UPDATE big SET a = 0 WHERE id = 1", "UPDATE big SET a = 1 WHERE id = 1"),
        "table": ("LOCK TABLE big", "UPDATE big SET a = 1 WHERE id = 1"),
    }[what]
    holder.run("BEGIN")
    holder.run(hold)
    state, after = cancelled(client, want, by_timeout=False)
    assert state == "57014"
    assert after < SOON
    holder.run("ROLLBACK")
    holder.close()
