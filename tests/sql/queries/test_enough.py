"""min and max, EXISTS, LIMIT inside and counts read what decides them: they give what a reading of everything gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ivm.rows import Words
from ivm.trace.trace import Version
from planner.peek import enough
from tests.sql.queries.test_ranges import SETUP, TABLES, change, conditions, reading
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server


@contextmanager
def _whole() -> Iterator[None]:
    """All rows are read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enough, "some", lambda _plan: {})
        yield


def _source(rng: random.Random) -> tuple[str, str]:
    """A FROM and WHERE, and the relation's columns."""
    table = rng.choice(list(TABLES))
    where = f" WHERE {conditions(rng, TABLES[table])}" if rng.random() < 0.6 else ""
    return f"{table}{where}", TABLES[table]


def _query(rng: random.Random) -> str:
    source, columns = _source(rng)
    other, others = _source(rng)
    column, by = rng.choice(columns), rng.choice(others)
    extremes = ", ".join(
        f"{rng.choice(['min', 'max'])}({c}{rng.choice(['', '', '', ' / 2']) if c in 'ik' else ''})"
        for c in rng.sample([c for c in columns if c != "b"], rng.randrange(1, 4))
    )
    match rng.randrange(8):
        case 0 | 1 | 2:
            return f"SELECT {extremes}{rng.choice(['', ', count(*)'])} FROM {source}"
        case 3:
            return f"SELECT count(*), (SELECT {extremes.split(', ')[0]} FROM {source}) FROM {other}"
        case 4:
            return f"SELECT EXISTS (SELECT {column} FROM {source}), NOT EXISTS (SELECT FROM {other})"
        case 5:
            return f"SELECT {by} FROM {other.split()[0]} WHERE {rng.choice(['', 'NOT '])}EXISTS (SELECT FROM {source})"
        case 6:
            way = rng.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
            cut = f"LIMIT {rng.choice([0, 1, 2, 9])} OFFSET {rng.choice([0, 0, 3])}"
            return f"SELECT {column} FROM (SELECT {column} FROM {source} ORDER BY {column}{way} {cut}) found"
        case _:
            names = rng.sample(["two", "day", "heap"], 2)
            parts = " UNION ALL ".join(f"SELECT k, d, n FROM {name}" for name in names)
            one = rng.choice("kdn")
            return f"SELECT min({one}), max({one}) FROM ({parts}) both_of_them"


def _counted(client: Client, query: str) -> Counter[tuple[str | None, ...]]:
    """The rows; of 0 and -0, which are equal, either may be the one that is taken."""
    return Counter(tuple("0" if value == "-0" else value for value in row) for row in client.rows(query))


@pytest.mark.parametrize("seed", range(scaled(6)))
def test_some_rows_decide_what_all_do(client: Client, seed: int) -> None:
    rng = random.Random(seed)
    client.run("DROP TABLE IF EXISTS two, day, heap CASCADE;" + SETUP)
    for round_ in range(6):
        if round_ % 3 == 2:
            client.run("BEGIN")
        for text in change(rng):
            client.run(text)
        for query in [_query(rng) for _ in range(20)]:
            found = _counted(client, query)
            with _whole():
                assert found == _counted(client, query), query
        if round_ % 3 == 2:
            client.run(rng.choice(["COMMIT", "ROLLBACK"]))


LARGE = 20_000


@pytest.fixture(scope="module")
def large(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run(
        "CREATE TABLE large (id int PRIMARY KEY, k int, at timestamp, name text, z int NOT NULL);"
        "CREATE INDEX ON large (at); CREATE INDEX ON large (z, at); CREATE TABLE few (id int PRIMARY KEY, k int);"
        "INSERT INTO large SELECT i, i % 7, CASE WHEN i % 10 > 0 THEN timestamp '2024-01-01' + i * interval '9 s' END,"
        f" 'n' || i % 99, i / 100 FROM generate_series(1, {LARGE}) i; INSERT INTO few VALUES (1, 1), (2, 2);"
        "CREATE MATERIALIZED VIEW seen AS SELECT z, id, k FROM large;"
        "CREATE TABLE parted (id int, at timestamp, PRIMARY KEY (id, at)) PARTITION BY RANGE (id);"
        "CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10000);"
        "CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10000) TO (30000);"
        "INSERT INTO parted SELECT id, timestamp '2024-01-01' FROM large;"
        "CREATE TABLE copied (id int, k int)"
    )
    yield client
    client.close()


FEW = {
    "SELECT max(id) FROM large": 5,
    "SELECT min(id), max(id), max(at), min(at) FROM large": 300,
    "SELECT max(at) FROM large WHERE z = 7": 80,
    "SELECT max(id) - min(id) FROM large WHERE id > 100": 200,
    "SELECT max(z), min(z) FROM seen": 10,
    "SELECT min(id), max(id) FROM seen WHERE z = 5": 400,
    "SELECT count(*), max(id) FROM large": 5,
    "SELECT (SELECT max(id) FROM large), (SELECT min(at) FROM large), (SELECT count(*) FROM large)": 80,
    "SELECT id FROM few WHERE id < (SELECT max(id) FROM large)": 20,
    "SELECT exists(SELECT FROM large)": 5,
    "SELECT exists(SELECT 1 FROM large WHERE k = 5)": 200,
    "SELECT (SELECT exists(SELECT 1 FROM large WHERE id > 4000))": 80,
    "SELECT id FROM few WHERE EXISTS (SELECT FROM large WHERE k = 5)": 200,
    "SELECT id FROM few WHERE NOT EXISTS (SELECT FROM large WHERE k = 5)": 200,
    "SELECT * FROM (SELECT id, upper(name) FROM large ORDER BY id DESC LIMIT 3) found WHERE id > 5": 10,
    "SELECT (SELECT id FROM large ORDER BY at DESC NULLS LAST LIMIT 1)": 20,
    "SELECT max(id) FROM parted": 10,
    "SELECT id FROM parted LIMIT 10": 30,
    "SELECT id FROM parted ORDER BY id DESC LIMIT 10": 60,
    "SELECT id FROM large UNION ALL SELECT id FROM seen LIMIT 4 OFFSET 2": 30,
    "SELECT id, 1 / (z - 150) FROM large UNION ALL SELECT k, 1 / (k - 2) FROM few LIMIT 4": 30,
    "INSERT INTO copied SELECT id, 7 / (15000 - id) FROM large LIMIT 10": 30,
    "INSERT INTO copied SELECT id, k FROM large ORDER BY id DESC LIMIT 10": 30,
    "WITH one AS (SELECT * FROM large LIMIT 1) SELECT id FROM one": 10,
}


@pytest.mark.parametrize("query", FEW)
def test_what_is_read_does_not_grow_with_the_table(large: Client, query: str) -> None:
    with reading() as read:
        found = large.run(query) if query.startswith("INSERT") else large.rows(query)
    assert sum(read) <= FEW[query]
    if "LIMIT" not in query:
        with _whole():
            assert found == large.rows(query)


def test_an_index_without_nulls_decides(large: Client) -> None:
    assert large.rows("SELECT max(at) FROM large WHERE id % 10 = 0") == [(None,)]
    assert large.rows("SELECT min(at), max(at) FROM large WHERE z = 1000") == [(None, None)]
    large.run("INSERT INTO large VALUES (-10, 1, NULL, 'none', -1)")
    assert large.rows("SELECT max(at), min(z) FROM large WHERE z = -1") == [(None, "-1")]
    large.run("DELETE FROM large WHERE id = -10")


def test_a_transaction_sees_its_own_extremes(large: Client) -> None:
    large.run("BEGIN")
    large.run(
        "INSERT INTO large VALUES (30000, 1, timestamp '2030-01-01', 'own', 9000); DELETE FROM large WHERE id = 1"
    )
    with reading() as read:
        assert large.rows("SELECT min(id), max(id) FROM large") == [("2", "30000")]
        assert large.rows("SELECT max(at), count(*) FROM large") == [("2030-01-01 00:00:00", str(LARGE))]
        assert large.rows("SELECT exists(SELECT FROM large WHERE id > 20000)") == [("t",)]
    large.run("ROLLBACK")
    assert large.rows("SELECT min(id), max(id) FROM large") == [("1", str(LARGE))]
    assert sum(read) < 1000


def test_a_serializable_maximum_conflicts(server: Server, large: Client) -> None:
    """What has been read is said by the plan, not by what was enough."""
    one = server.client()
    one.run("BEGIN ISOLATION LEVEL SERIALIZABLE")
    one.rows("SELECT max(id) FROM large")
    large.run("INSERT INTO large VALUES (40000, 1, NULL, 'new', 1)")
    assert one.state("INSERT INTO few VALUES (9, 9); COMMIT") == "40001"
    one.close()
    large.run("DELETE FROM large WHERE id = 40000")


def test_what_is_read_in_place_is_not_changed(server: Server) -> None:
    client = server.client()
    client.run(
        "CREATE TABLE plain (id int PRIMARY KEY, k int, name text);"
        "INSERT INTO plain SELECT 5000 - i, i % 7, 'n' || i % 9 FROM generate_series(1, 3000) i;"
        "CREATE TABLE bag (k int);"
        "INSERT INTO bag SELECT i % 5 FROM generate_series(1, 3000) i"
    )
    queries = [
        "SELECT k, count(*), sum(id), max(name) FROM plain GROUP BY k", "SELECT count(DISTINCT k) FROM bag",
        "SELECT * FROM plain UNION SELECT k, k, NULL FROM bag", "SELECT * FROM plain EXCEPT SELECT * FROM plain",
        "SELECT id, row_number() OVER (PARTITION BY k ORDER BY name, id) FROM plain ORDER BY 1 LIMIT 3",
        "SELECT a.id FROM plain a JOIN plain b ON a.k = b.id", "SELECT * FROM plain ORDER BY name LIMIT 5",
        "SELECT DISTINCT ON (k) * FROM plain ORDER BY k, id DESC", "SELECT * FROM bag INTERSECT ALL SELECT * FROM bag",
        "SELECT sum(x.k) FROM plain x, bag y WHERE x.id = y.k + 4000", "SELECT k FROM bag ORDER BY k LIMIT 3",
    ]  # fmt: skip
    whole = [sorted(map(str, client.rows(f"SELECT * FROM {name}"))) for name in ("plain", "bag")]
    taken: list[object] = []
    in_place = Version.rows_in_place

    def rows_in_place(self: Version, at: int) -> tuple[Words, Words] | None:
        found = in_place(self, at)
        taken.append(found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Version, "rows_in_place", rows_in_place)
        answers = [sorted(map(str, client.rows(query))) for query in queries]
        assert answers == [sorted(map(str, client.rows(query))) for query in queries]
    assert sum(found is not None for found in taken) > 5
    assert whole == [sorted(map(str, client.rows(f"SELECT * FROM {name}"))) for name in ("plain", "bag")]
    client.run("INSERT INTO plain VALUES (1, 1, 'x'); DELETE FROM bag WHERE k = 1")
    assert client.rows("SELECT count(*), min(id), sum(k) FROM plain") == [("3001", "1", str(3000 // 7 * 21 + 1 + 10))]
    client.close()
