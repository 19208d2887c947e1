"""LIMIT over joins: the rows are those of the whole result, and reading does not grow with the tables."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from planner.peek import answer, pieces
from planner.peek.pieces import Driven
from tests.sql.queries.test_ranges import SETUP, TABLES, change, conditions, reading
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server


@contextmanager
def _whole() -> Iterator[None]:
    """Plans run once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer, "answer_in_pieces", lambda *_: None)
        yield


def _query(rng: random.Random) -> tuple[str, str, int]:
    """A query without its slice, that slice, and how many of the first columns are those that it is ordered by."""
    one, two = rng.sample(list(TABLES), 2)
    by = rng.choice([c for c in TABLES[one] if c in TABLES[two]])
    keys = rng.sample(TABLES[one], rng.randrange(0, 3))
    wanted = [*(f"x.{k}" for k in keys), "x.k", "x.i / 2"]
    where = f" WHERE {_of('x', conditions(rng, TABLES[one]), TABLES[one])}" if rng.random() < 0.4 else ""
    match rng.randrange(6):
        case 0 | 1:
            source = f"{one} x JOIN {two} y ON x.{by} = y.{by}"
            wanted += ["y.k"]
        case 2:
            source = f"{one} x LEFT JOIN {two} y ON x.{by} = y.{by} AND y.k > 5"
            wanted += ["y.k"]
        case 3:
            there = rng.choice(["EXISTS", "NOT EXISTS"])
            source = f"{one} x"
            where += f"{' AND' if where else ' WHERE'} {there} (SELECT FROM {two} y WHERE x.{by} = y.{by})"
        case 4:
            three = next(t for t in TABLES if t not in (one, two))
            source = f"{one} x JOIN {two} y ON x.{by} = y.{by} JOIN {three} z ON z.k = y.k"
            wanted += ["z.k"]
        case _:
            source = f"{one} x CROSS JOIN LATERAL (SELECT y.k FROM {two} y WHERE y.{by} = x.{by} LIMIT 2) y"
    order = [f"x.{k}{rng.choice(['', ' DESC', ' NULLS FIRST'])}" for k in keys]
    cut = f" LIMIT {rng.choice([0, 1, 3, 10, 40, 'NULL'])}" + rng.choice(["", f" OFFSET {rng.randrange(12)}"])
    ordered = f" ORDER BY {', '.join(order)}" if keys else ""
    return f"SELECT {', '.join(wanted)} FROM {source}{where}{ordered}", cut, len(keys)


def _of(name: str, where: str, columns: str) -> str:
    """Conditions on a table's columns, as those of ``name``."""
    words = where.split(" ")
    return " ".join(f"{name}.{word}" if len(word) == 1 and word in columns else word for word in words)


@pytest.mark.parametrize("seed", range(scaled(4)))
def test_the_first_rows_of_a_join_are_those_of_all(client: Client, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 2)
    monkeypatch.setattr(pieces, "SHARE", 0)
    taken = 0
    run = Driven.pieces

    def counted(self: Driven, end: int) -> Iterator[object]:
        nonlocal taken
        taken += 1
        return run(self, end)

    monkeypatch.setattr(Driven, "pieces", counted)
    rng = random.Random(seed)
    client.run("DROP TABLE IF EXISTS two, day, heap CASCADE;" + SETUP)
    for _ in range(5):
        for text in change(rng):
            client.run(text)
        for query, cut, keys in [_query(rng) for _ in range(20)]:
            found = client.rows(query + cut)
            with _whole():
                expected, every = client.rows(query + cut), Counter(client.rows(query))
            assert [row[:keys] for row in found] == [row[:keys] for row in expected], query + cut
            assert len(found) == len(expected), query + cut
            assert not Counter(found) - every, query + cut
    assert taken > 15


LARGE = 20_000


@pytest.fixture(scope="module")
def large(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run(
        "CREATE TABLE large (id int PRIMARY KEY, k int NOT NULL, z int NOT NULL); CREATE INDEX ON large (z);"
        f"INSERT INTO large SELECT i, i % 700, i / 100 FROM generate_series(1, {LARGE}) i;"
        "CREATE TABLE keyed (k int PRIMARY KEY, name text); CREATE TABLE few (id int, k int);"
        f"INSERT INTO keyed SELECT i, 'n' || i FROM generate_series(0, {LARGE}) i;"
        "INSERT INTO few VALUES (1, 1), (2, 1), (3, 9)"
    )
    yield client
    client.close()


FEW = {
    "SELECT l.id, name FROM large l JOIN keyed USING (k) LIMIT 10": 600,
    "SELECT l.id, name FROM large l JOIN keyed USING (k) WHERE name LIKE '%7' LIMIT 10": 1500,
    "SELECT l.id, name FROM large l LEFT JOIN keyed ON keyed.k = l.z ORDER BY l.id DESC LIMIT 10 OFFSET 5": 600,
    "SELECT l.id FROM large l JOIN few ON few.k = l.k LIMIT 10": 8000,
    "SELECT l.id FROM large l WHERE EXISTS (SELECT FROM keyed WHERE keyed.k = l.k) ORDER BY z LIMIT 10": 600,
    "SELECT l.id FROM large l WHERE id > 19000 AND NOT EXISTS (SELECT FROM few WHERE few.k = l.k) LIMIT 10": 1100,
    "SELECT l.id, a.name, b.name FROM large l JOIN keyed a USING (k) JOIN keyed b ON b.k = a.k + 1 LIMIT 5": 600,
    "SELECT l.id, 1 / (l.id - 20) FROM large l JOIN keyed USING (k) LIMIT 10": 600,
}


@pytest.mark.parametrize("query", FEW)
def test_what_is_read_does_not_grow_with_the_tables(large: Client, query: str) -> None:
    with reading() as read:
        found = large.rows(query)
    assert len(found) in (5, 10)
    assert sum(read) <= FEW[query]


def test_a_row_that_fails_behind_the_last_one_is_not_noticed(large: Client) -> None:
    """As in PostgreSQL."""
    query = "SELECT l.id, 1 / (l.id - 20) FROM large l JOIN keyed USING (k) ORDER BY l.id LIMIT"
    assert len(large.rows(f"{query} 19")) == 19
    assert large.state(f"{query} 20") == "22012"


def test_explain_says_that_parts_are_read(large: Client) -> None:
    for query, said in (
        ("SELECT name FROM large JOIN keyed USING (k) LIMIT 3", True),
        ("SELECT name FROM large JOIN keyed USING (k) ORDER BY name LIMIT 3", False),
        ("SELECT name FROM large JOIN keyed USING (k)", False),
    ):
        last = large.rows(f"EXPLAIN {query}")[-1][0]
        assert last is not None
        assert ("runs for parts of a relation" in last) is said
