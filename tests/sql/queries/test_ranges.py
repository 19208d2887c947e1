"""Filters that arrangements' order serves: what a reading of everything gives, by reading only what is asked for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ivm.rows import Words
from ivm.trace.ranges import Range
from ivm.trace.trace import Version
from sql.engine.snapshot import Published
from sql.session import reads
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

COLUMNS = {
    "i": ["0", "1", "3", "7", "12", "2147483647", "-2147483648", "3000000000", "NULL::int"],
    "k": ["0", "2", "5", "19", "9223372036854775807", "-9223372036854775808"],
    "d": ["date '2024-01-03'", "date 'infinity'", "date '-infinity'", "date '2024-01-09'"],
    "n": ["1", "2.5", "2.505", "-3.14", "99.999", "'NaN'::numeric", "1e9", "'Infinity'::numeric"],
    "s": ["'a'", "'b'", "''", "NULL::text"],
    "b": ["true", "false"],
    "f": ["0.0::float8", "'-0'::float8", "1.5::float8"],
    "t": ["timestamp '2024-01-03 12:00'", "timestamp 'infinity'", "date '2024-01-03'"],
}
DEFINED = "i int, k bigint, d date, n numeric(6,2), s text, b bool, f float8, t timestamp"
SETUP = f"""
CREATE TABLE two ({DEFINED}, PRIMARY KEY (i, k));
CREATE TABLE day ({DEFINED}, PRIMARY KEY (d, s, n));
CREATE TABLE heap ({DEFINED});
CREATE INDEX ON two (n); CREATE INDEX ON two (t, b); CREATE INDEX ON heap (d); CREATE INDEX ON heap (s, i);
CREATE MATERIALIZED VIEW kept AS SELECT * FROM two WHERE k <> 4;
CREATE MATERIALIZED VIEW sums AS SELECT i, b, count(*) AS k, max(n) AS n FROM heap GROUP BY i, b;
"""
TABLES = {"two": "iknsdbft", "day": "iknsdbft", "heap": "iknsdbft", "kept": "iknsdbft", "sums": "ikbn"}


def _row(rng: random.Random, known: bool) -> str:
    """``known``: its numeric is not NULL."""

    def one(*values: object) -> object:
        return rng.choice(values)

    null = "NULL"
    values = (
        rng.randrange(15), rng.randrange(20), f"'2024-01-{rng.randrange(1, 12):02}'",
        one(0 if known else null, f"{rng.randrange(-400, 400) / 100}", "'NaN'"), one("'a'", "'b'", "''"),
        one(null, "true", "false"),
        one(null, "0", "'-0'", "1.5"), one(null, f"'2024-01-{rng.randrange(1, 8):02} 12:00'", "'infinity'"),
    )  # fmt: skip
    found = list(values)
    if rng.random() < 0.1:
        found[0], found[1] = one(2147483647, -2147483648), one(9223372036854775807, -9223372036854775808)
    if rng.random() < 0.1:
        found[2] = one("'infinity'", "'-infinity'")
    return f"({', '.join(map(str, found))})"


def change(rng: random.Random) -> list[str]:
    table = rng.choice(["two", "day", "heap"])
    rows = ", ".join(_row(rng, table == "day") for _ in range(rng.choice([1, 5, 60])))
    skip = "" if table == "heap" else " ON CONFLICT DO NOTHING"
    where = f"i % {rng.randrange(2, 6)} = {rng.randrange(3)}"
    return [
        f"INSERT INTO {table} VALUES {rows}{skip}",
        *rng.sample([f"DELETE FROM {table} WHERE {where}", f"UPDATE {table} SET f = 1.5, b = NOT b WHERE {where}"], 1),
    ]


def conditions(rng: random.Random, columns: str) -> str:
    found = []
    for column in rng.sample(columns, rng.randrange(1, 4)):
        value = rng.choice(COLUMNS[column])
        match rng.randrange(6):
            case 0:
                found.append(f"{column} BETWEEN {value} AND {rng.choice(COLUMNS[column])}")
            case 1 | 2:
                found.append(f"{column} = {value}")
            case 3:
                found.append(f"{value} {rng.choice(['<', '<=', '>', '>='])} {column}")
            case _:
                found.append(f"{column} {rng.choice(['<', '<=', '>', '>='])} {value}")
    return " AND ".join(found)


def _query(rng: random.Random) -> str:
    table = rng.choice(list(TABLES))
    where = conditions(rng, TABLES[table])
    match rng.randrange(4):
        case 0:
            return f"SELECT count(*), min(k), max(n) FROM {table} WHERE {where}"
        case 1:
            return f"SELECT b, sum(k::numeric) FROM {table} WHERE {where} GROUP BY b"
        case 2:
            return f"SELECT i, n || 'x' FROM {table} WHERE {where} AND k <> 3"
        case _:
            return f"SELECT * FROM {table} WHERE {where}"


@contextmanager
def reading() -> Iterator[list[int]]:
    """How many updates of arrangements each reading looks at, but for lookups of keys. No query is begun anew on
    another thread because this machine is slow."""
    found: list[int] = []
    taken, scanned, in_place = Range.take, Version.rows_at, Version.rows_in_place

    def take(self: Range, count: int, backward: bool) -> tuple[Words, Words]:
        before = self.read
        rows = taken(self, count, backward)
        found.append(self.read - before)
        return rows

    def rows_at(self: Version, at: int) -> tuple[Words, Words]:
        found.append(self.count)
        return scanned(self, at)

    def rows_in_place(self: Version, at: int) -> tuple[Words, Words] | None:
        rows = in_place(self, at)
        found.append(0 if rows is None else self.count)
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reads, "HERE_SECONDS", 600)
        patch.setattr(Version, "rows_in_place", rows_in_place)
        patch.setattr(Range, "take", take)
        patch.setattr(Version, "rows_at", rows_at)
        yield found


@contextmanager
def _without_ranges() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Published, "keys", lambda _self, _relation: ())
        yield


def _outcome(client: Client, query: str) -> list[str]:
    return sorted(map(str, client.rows(query)))


@pytest.mark.parametrize("seed", range(scaled(4)))
def test_ranges_give_what_everything_gives(client: Client, seed: int) -> None:
    rng = random.Random(seed)
    client.run("DROP TABLE IF EXISTS two, day, heap CASCADE;" + SETUP)
    for _ in range(6):
        for text in change(rng):
            client.run(text)
        for query in [_query(rng) for _ in range(25)]:
            found = _outcome(client, query)
            with _without_ranges():
                assert found == _outcome(client, query), query


LARGE = 20_000
READS = {
    "id BETWEEN 1000 AND 1199": 200,
    "id > 19990": 10,
    "19990 <= id AND k > 5": 11,
    "id >= 7 AND id < 9": 2,
    "id = 7 AND k > 3": 1,
    "at >= timestamp '2024-01-01' AND at < timestamp '2024-01-01 00:01'": 7,
    "price > 199.98": 2,
    "price < 0.025": 2,
    "id > 4 AND id < 3": 0,
    "id = NULL": 0,
}


@pytest.fixture(scope="module")
def large(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run(
        "CREATE TABLE large (id int PRIMARY KEY, k int, at timestamp, price numeric(8, 2), name text);"
        "CREATE INDEX ON large (at); CREATE INDEX ON large (price);"
        "INSERT INTO large"
        " SELECT i, i % 7, timestamp '2023-12-31' + i * interval '9 seconds', i / 100.0, 'n' || i % 99"
        f"  FROM generate_series(1, {LARGE}) i;"
        "CREATE TABLE pairs (root int, node int, PRIMARY KEY (root, node));"
        f"INSERT INTO pairs SELECT i % 100, i FROM generate_series(1, {LARGE}) i;"
        "CREATE MATERIALIZED VIEW reach AS SELECT root, node FROM pairs WHERE node <> 5"
    )
    yield client
    client.close()


@pytest.mark.parametrize("where", READS)
def test_a_range_reads_what_it_gives(large: Client, where: str) -> None:
    with reading() as read:
        rows = large.rows(f"SELECT * FROM large WHERE {where}")
    assert len(rows) <= READS[where]
    assert sum(read) <= READS[where]


def test_a_prefix_of_a_key_and_a_range_of_the_next_column(large: Client) -> None:
    for relation in ("pairs", "reach"):
        with reading() as read:
            assert large.rows(f"SELECT count(*) FROM {relation} WHERE root = 3") == [("200",)]
            assert large.rows(f"SELECT node FROM {relation} WHERE root = 3 AND node > 19800") == [
                ("19803",),
                ("19903",),
            ]
        assert sum(read) <= 202


def test_changes_read_a_range(large: Client) -> None:
    large.run("BEGIN")
    with reading() as read:
        assert large.run("UPDATE large SET k = 8 WHERE id BETWEEN 50 AND 70") == "UPDATE 21"
        assert large.run("DELETE FROM large WHERE id >= 60 AND id < 62") == "DELETE 2"
        assert len(large.rows("SELECT k FROM large WHERE id BETWEEN 49 AND 71")) == 21
    assert sum(read) < 500
    large.run("ROLLBACK")


def test_parameters_limit_a_range(large: Client) -> None:
    large.run("PREPARE part (int, numeric) AS SELECT id FROM large WHERE id < $1 AND price >= $2")
    for given, found in (
        ("4, 0.02", ["2", "3"]),
        ("4, NULL", []),
        ("NULL, 0", []),
        ("9, 0.085", []),
        ("10, 0.085", ["9"]),
    ):
        with reading() as read:
            assert [row[0] for row in large.rows(f"EXECUTE part ({given})")] == found
        assert sum(read) <= 10


def test_a_serializable_range_conflicts_with_what_comes_into_it(server: Server, large: Client) -> None:
    """And with nothing else."""
    for new, fails in ((30_000, True), (40_000, False)):
        one = server.client()
        one.run("BEGIN ISOLATION LEVEL SERIALIZABLE")
        one.rows("SELECT * FROM large WHERE id BETWEEN 25000 AND 35000")
        large.run(f"INSERT INTO large VALUES ({new})")
        change = f"INSERT INTO pairs VALUES (1000, {new}); COMMIT"
        if fails:
            assert one.state(change) == "40001"
        else:
            one.run(change)
        one.close()
    large.run("DELETE FROM large WHERE id >= 30000")


def test_explain_says_what_serves_a_range(large: Client) -> None:
    for query, said in (
        ("SELECT * FROM large WHERE id > 3", " of a range by [0]"),
        ("SELECT * FROM large WHERE at > now()::timestamp", " of a range by [2]"),
        ("SELECT count(*) FROM pairs WHERE root = 3 AND node < 9", " of a range by [0, 1]"),
        ("SELECT * FROM large WHERE name = 'n1'", ""),
        ("SELECT * FROM large WHERE k > 3", ""),
    ):
        lines = [line for (line,) in large.rows(f"EXPLAIN {query}") if line is not None]
        assert any(line.endswith(said) and "filter" in line for line in lines), lines
        assert said or not any("range" in line for line in lines)


def test_no_arrangement_is_made_for_what_a_range_finds(large: Client) -> None:
    for _ in range(5):
        assert large.rows("SELECT count(*) FROM pairs WHERE root = 4") == [("200",)]
    with reading() as read:
        large.rows("SELECT count(*) FROM pairs WHERE root = 4")
    assert read
