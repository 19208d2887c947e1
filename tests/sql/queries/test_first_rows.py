"""LIMIT leaves a part of a relation: its rows are those of the whole result, and reading grows with what is given."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from planner.peek import answer
from tests.sql.queries.test_ranges import SETUP, TABLES, change, conditions, reading
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

EXPRESSIONS = ["i / 3", "n || 'x'", "upper(s)", "k", "b", "n", "d", "coalesce(s, '-')"]


@contextmanager
def _whole() -> Iterator[None]:
    """All rows are read, computed, sorted and cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer, "chains_of", lambda _plan: ())
        yield


def _query(rng: random.Random) -> tuple[str, str, int]:
    """A query without its slice, that slice, and how many of the first columns are those that it is ordered by."""
    table = rng.choice(list(TABLES))
    columns = TABLES[table]
    keys = rng.sample(columns, rng.randrange(0, 4))
    wanted = [*keys, *(rng.sample(EXPRESSIONS, 3) if table != "sums" else columns)]
    where = f" WHERE {conditions(rng, columns)}" if rng.random() < 0.6 else ""
    way = rng.choice(["", " DESC", None])
    order = [f"{k}{rng.choice(['', ' DESC']) if way is None else way}" for k in keys]
    if rng.random() < 0.3:
        order = [f"{key}{rng.choice(['', ' NULLS FIRST', ' NULLS LAST'])}" for key in order]
    cut = f" LIMIT {rng.choice([0, 1, 3, 10, 40, 'NULL'])}" + rng.choice(["", f" OFFSET {rng.randrange(12)}"])
    ordered = f" ORDER BY {', '.join(order)}" if keys else ""
    return f"SELECT {', '.join(wanted)} FROM {table}{where}{ordered}", cut, len(keys)


@pytest.mark.parametrize("seed", range(scaled(6)))
def test_the_first_rows_are_those_of_all(client: Client, seed: int) -> None:
    rng = random.Random(seed)
    client.run("DROP TABLE IF EXISTS two, day, heap CASCADE;" + SETUP)
    for _ in range(6):
        for text in change(rng):
            client.run(text)
        for query, cut, keys in [_query(rng) for _ in range(15)]:
            found = client.rows(query + cut)
            with _whole():
                expected, every = client.rows(query + cut), Counter(client.rows(query))
            assert [row[:keys] for row in found] == [row[:keys] for row in expected], query + cut
            assert not Counter(found) - every, query + cut


LARGE = 20_000


@pytest.fixture(scope="module")
def large(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run(
        "CREATE TABLE large (id int PRIMARY KEY, k int, at timestamp, name text, z int NOT NULL);"
        "CREATE INDEX ON large (at); CREATE INDEX ON large (z);"
        "INSERT INTO large SELECT i, i % 7, timestamp '2024-01-01' + i * interval '9 seconds', 'n' || i % 99, i / 100"
        f"  FROM generate_series(1, {LARGE}) i;"
        "CREATE MATERIALIZED VIEW seen AS SELECT z, id, k FROM large"
    )
    yield client
    client.close()


FEW = {
    "SELECT * FROM large LIMIT 10": 30,
    "SELECT * FROM large OFFSET 20 LIMIT 10": 60,
    "SELECT row_to_json(large), upper(name), 1 / (id - 15000) FROM large LIMIT 10": 30,
    "SELECT id, k FROM large WHERE k = 3 LIMIT 10": 1000,
    "SELECT * FROM large ORDER BY id LIMIT 10": 30,
    "SELECT * FROM large ORDER BY id DESC LIMIT 10": 30,
    "SELECT name FROM large ORDER BY id DESC, name LIMIT 10 OFFSET 5": 40,
    "SELECT * FROM large WHERE at > timestamp '2024-01-02' ORDER BY at LIMIT 10": 1000,
    "SELECT * FROM large WHERE at < timestamp '2024-01-02' ORDER BY at DESC LIMIT 10": 1000,
    "SELECT * FROM large ORDER BY at LIMIT 10": 30,
    "SELECT * FROM large ORDER BY at DESC NULLS LAST LIMIT 10": 30,
    "SELECT * FROM large ORDER BY at DESC LIMIT 10": 30,
    "SELECT * FROM large ORDER BY z, name DESC LIMIT 10": 300,
    "SELECT * FROM large WHERE z = 7 ORDER BY z, id DESC LIMIT 3": 120,
    "SELECT * FROM seen WHERE z = 7 ORDER BY id DESC LIMIT 3": 400,
    "SELECT * FROM seen ORDER BY z DESC, id DESC LIMIT 3": 20,
    "SELECT id FROM large WHERE id > 700 AND k = 2 ORDER BY id LIMIT 5": 1000,
    "SELECT * FROM large WHERE at > timestamp '2024-01-02' AND id < 20 LIMIT 5": 30,
}


@pytest.mark.parametrize("query", FEW)
def test_what_is_read_grows_with_what_is_given(large: Client, query: str) -> None:
    with reading() as read:
        found = large.rows(query)
    assert sum(read) <= FEW[query]
    if " / " not in query:
        with _whole():
            assert found == large.rows(query)


def test_an_error_of_a_row_that_is_not_given_is_none(large: Client) -> None:
    """As in PostgreSQL."""
    assert len(large.rows("SELECT 1 / (id - 20000) FROM large LIMIT 100")) == 100
    assert len(large.rows("SELECT id FROM large WHERE 1 / (id - 20) < 9 LIMIT 19")) == 19
    assert large.state("SELECT id FROM large WHERE 1 / (id - 20) < 9 LIMIT 20") == "22012"
    assert large.state("SELECT 1 / (id - 20) FROM large ORDER BY id LIMIT 20") == "22012"
    assert large.rows("SELECT 1 / (id - 20) FROM large LIMIT 0") == []
    assert large.state("SELECT id FROM large LIMIT -1") == "2201W"


def test_a_transaction_sees_its_own_rows_among_the_first(large: Client) -> None:
    large.run("BEGIN")
    large.run("INSERT INTO large VALUES (-5, 1, NULL, 'own', -1); DELETE FROM large WHERE id = 2")
    with reading() as read:
        assert large.rows("SELECT id FROM large ORDER BY id LIMIT 3") == [("-5",), ("1",), ("3",)]
        assert large.rows("SELECT id FROM large ORDER BY z LIMIT 1") == [("-5",)]
        assert large.rows("SELECT id FROM large WHERE id BETWEEN -9 AND 3 LIMIT 5") == [("-5",), ("1",), ("3",)]
        assert large.rows("SELECT id FROM large ORDER BY at LIMIT 1") == [("1",)]
    assert sum(read) < 200
    assert large.rows("SELECT id FROM large ORDER BY at DESC LIMIT 1") == [("-5",)]
    large.run("ROLLBACK")


def test_parameters_cut(large: Client) -> None:
    large.run("PREPARE cut (int, int, int) AS SELECT id FROM large WHERE id > $1 ORDER BY id LIMIT $2 OFFSET $3")
    with reading() as read:
        assert large.rows("EXECUTE cut (100, 2, 3)") == [("104",), ("105",)]
        assert large.rows("EXECUTE cut (19999, 2, 0)") == [("20000",)]
    assert sum(read) < 700
    assert len(large.rows("EXECUTE cut (19000, NULL, 1)")) == 999


def test_explain_says_what_limit_spares(large: Client) -> None:
    for query, said in (
        ("SELECT upper(name) FROM large LIMIT 3", "reads until LIMIT has enough rows, and computes only those"),
        ("SELECT k FROM large ORDER BY k LIMIT 3", "computes only the rows that ORDER BY and LIMIT leave"),
        (
            "SELECT * FROM large WHERE k = 2 ORDER BY id DESC LIMIT 3",
            "reads backwards in the order of [0], until LIMIT has enough rows, and computes only those",
        ),
        ("SELECT k, count(*) FROM large GROUP BY k LIMIT 3", None),
        ("SELECT k FROM large", None),
    ):
        last = large.rows(f"EXPLAIN {query}")[-1][0]
        assert last is not None
        assert last == said if said else "LIMIT" not in last
