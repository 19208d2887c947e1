"""Lookups in indexes of expressions, with predicates, and of columns whose equal values may be written differently."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

INDEXES = {
    "e_lower": "ON e (lower(name))",
    "e_open": "ON e (n) WHERE state = 'open'",
    "e_some": "ON e ((n + 1)) WHERE name IS NOT NULL AND id > 10",
    "e_two": "ON e (state, round(amt))",
    "e_amt": "ON e (amt)",
    "e_d": "ON e USING hash (d)",
    "e_iv": "ON e (iv)",
    "e_c": "ON e (c)",
    "e_j": "ON e (j)",
}
QUERIES = {
    "lower(name) = 'b3'": "e_lower",
    "lower(name) IN ('b3', 'B4', 'a1')": "e_lower",
    "lower(name) = ANY (ARRAY['b3', 'a1', NULL])": "e_lower",
    "n = 2 AND state = 'open' AND id < 30": "e_open",
    "state = 'open' AND n IN (1, 2, NULL)": "e_open",
    "n + 1 = 3 AND id > 11 AND name > 'a'": "e_some",
    "id >= 11 AND 4 = n + 1 AND lower(name) = name": "e_some",
    "round(amt) = 2 AND state = 'open'": "e_two",
    "amt = 1.5": "e_amt",
    "amt = 1.50": "e_amt",
    "amt IN (1.0, 2, 2.00)": "e_amt",
    "d = '-0'": "e_d",
    "d = 'NaN'": "e_d",
    "iv = '1 day'": "e_iv",
    "iv = '24:00'": "e_iv",
    "c = 'x'": "e_c",
    "j = '{\"a\": 1.0}'": "e_j",
    "n = 2 AND state = 'closed'": None,
    "n + 1 = 3 AND id >= 10 AND name IS NOT NULL": None,
    "upper(name) = 'B3'": None,
}
SETS = ("n = n + 1", "name = upper(name)", "state = 'open'", "amt = amt + 0.0", "d = -d", "iv = iv * 2")
ROW = (
    "(%d, nullif(chr(%d), 'x') || %d, (ARRAY['open', 'closed', NULL])[%d], nullif(%d, 0), "
    "(ARRAY[1.5, 1.50, 2, 2.0, NULL])[%d], "
    "(ARRAY[0, '-0', 'NaN', 1.5])[%d], (ARRAY['1 day', '24:00', '23:00'])[%d]::interval, (ARRAY['x', 'x ', 'y'])[%d], "
    "(ARRAY['{\"a\":1}', '{\"a\":1.00}', '[]'])[%d]::jsonb)"
)


@pytest.fixture
def table(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("DROP TABLE IF EXISTS e")
    client.run(
        "CREATE TABLE e (id int PRIMARY KEY, name text, state text, n int, amt numeric, d float8, iv interval, "
        "c char(3), j jsonb)"
    )
    yield client
    client.close()


def rows(random: Random, ids: range) -> str:
    def row(i: int) -> str:
        sizes = (3, 5, 4, 3, 3, 3)
        letter = random.choice((66, 98, 97, 120))
        parts = [random.randint(1, s) for s in sizes]
        return ROW % (i, letter, random.randint(1, 4), parts[0], random.randint(0, 4), *parts[1:])

    return ", ".join(map(row, ids))


def make_indexes(client: Client) -> None:
    for name, text in INDEXES.items():
        client.run(f"CREATE INDEX {name} {text}")


def plan(client: Client, query: str) -> str:
    return str(client.rows(f"EXPLAIN {query}"))


def test_plans_name_the_index(table: Client) -> None:
    make_indexes(table)
    for condition, index in QUERIES.items():
        for query in (
            f"SELECT * FROM e WHERE {condition}",
            f"UPDATE e SET n = 1 WHERE {condition}",
            f"DELETE FROM e WHERE {condition}",
        ):
            shown = plan(table, query)
            assert (f"index {index})" in shown) if index else ("index" not in shown), (query, shown)
    assert "index e_pkey)" in plan(table, "SELECT * FROM e WHERE id = 5 AND lower(name) = 'a1'")
    assert "index e_lower)" in plan(table, "SELECT count(*), max(id) FROM e WHERE lower(name) = 'a1'")


def test_answers_are_those_of_a_scan(table: Client) -> None:
    """The same under random changes, inside of transactions, after each statement."""
    random = Random(11)
    table.run("DROP TABLE IF EXISTS plain")
    table.run("CREATE TABLE plain (LIKE e)")
    make_indexes(table)
    both = ("e", "plain")

    def change(text: str) -> None:
        for name in both:
            table.run(text.replace("{t}", name))

    def compare() -> None:
        for condition in QUERIES:
            found = [table.sorted(f"SELECT id, n, amt::text FROM {name} WHERE {condition}") for name in both]
            assert found[0] == found[1], condition
            found = [
                table.rows(f"SELECT count(*), sum(id), count(DISTINCT n) FROM {name} WHERE {condition}")
                for name in both
            ]
            assert found[0] == found[1], condition

    conditions = list(QUERIES)
    change("INSERT INTO {t} VALUES " + rows(random, range(60)))
    compare()
    for step in range(scaled(6)):
        block = step % 3 == 2
        if block:
            table.run("BEGIN")
        change("INSERT INTO {t} VALUES " + rows(random, range(60 + 5 * step, 65 + 5 * step)))
        sets = random.choice(
            ("n = n + 1", "name = upper(name)", "state = 'open'", "amt = amt + 0.0", "d = -d", "iv = iv * 2")
        )
        change(f"UPDATE {{t}} SET {sets} WHERE {random.choice(conditions)}")
        change(f"DELETE FROM {{t}} WHERE {random.choice(conditions)} AND id % 3 = {step % 3}")
        compare()
        if block:
            table.run(random.choice(("ROLLBACK", "COMMIT")))
            compare()


def test_parameters_and_nulls(table: Client) -> None:
    table.run("INSERT INTO e (id, name, amt) VALUES (1, 'A', 1.50), (2, NULL, NULL), (3, 'a', 2)")
    make_indexes(table)
    table.run("PREPARE by_name(text) AS SELECT id FROM e WHERE lower(name) = $1")
    table.run("PREPARE by_amt(numeric) AS SELECT id FROM e WHERE amt = $1")
    assert sorted(table.rows("EXECUTE by_name('a')")) == [("1",), ("3",)]
    assert table.rows("EXECUTE by_name(NULL)") == []
    assert table.rows("EXECUTE by_amt(1.5)") == [("1",)]
    assert table.rows("EXECUTE by_amt(NULL)") == []
    table.run("DEALLOCATE ALL")


def test_unique_indexes_with_equal_nulls_are_looked_up(table: Client) -> None:
    table.run("CREATE UNIQUE INDEX e_nn ON e (name, c) NULLS NOT DISTINCT")
    table.run("INSERT INTO e (id, name, c) VALUES (1, 'a', 'x'), (2, NULL, 'x'), (3, 'b', NULL)")
    assert table.state("INSERT INTO e (id, name, c) VALUES (4, NULL, 'x')") == "23505"
    assert "index e_nn)" in plan(table, "SELECT id FROM e WHERE name = 'a' AND c = 'x'")
    assert table.rows("SELECT id FROM e WHERE name = 'a' AND c = 'x  '") == [("1",)]
    assert table.rows("SELECT id FROM e WHERE name = NULL AND c = 'x'") == []


def test_views_and_restarts_keep_lookups(table: Client) -> None:
    table.run("CREATE MATERIALIZED VIEW ev AS SELECT id, upper(name) AS name, amt FROM e WHERE id > 1")
    table.run("CREATE INDEX ev_lower ON ev (lower(name)) WHERE amt IS NOT NULL")
    table.run("INSERT INTO e (id, name, amt) VALUES (1, 'A', 1.50), (2, 'a', NULL), (3, 'a', 2)")
    query = "SELECT id FROM ev WHERE lower(name) = 'a' AND amt > 0"
    assert "index ev_lower)" in plan(table, query)
    assert table.rows(query) == [("3",)]
    table.run("UPDATE e SET amt = 7 WHERE lower(name) = 'a'")
    assert table.sorted(query) == [("2",), ("3",)]
    table.run("DROP MATERIALIZED VIEW ev")


def test_a_lookup_reads_what_it_finds(table: Client) -> None:
    """Rows for which an expression would fail are not read, as in PostgreSQL; without the index they are."""
    table.run("INSERT INTO e (id, n) VALUES (1, 1), (2, 2)")
    table.run("CREATE INDEX e_div ON e ((10 / n))")
    assert table.rows("SELECT id FROM e WHERE 10 / n = 5") == [("2",)]
    assert table.state("INSERT INTO e (id, n) VALUES (3, 0)") == "22012"
    table.run("DROP INDEX e_div")
    table.run("INSERT INTO e (id, n) VALUES (3, 0)")
    assert table.state("SELECT id FROM e WHERE 10 / n = 5") == "22012"


def test_dropping_an_index_over_the_whole_row_keeps_the_table(client: Client) -> None:
    client.run("CREATE TABLE only_key (name text PRIMARY KEY); CREATE INDEX only_key_index ON only_key (name)")
    client.run("INSERT INTO only_key VALUES ('a')")
    client.run("ALTER TABLE only_key DROP CONSTRAINT only_key_pkey; DROP INDEX only_key_index")
    assert client.rows("SELECT * FROM only_key") == [("a",)]
    client.run("ALTER TABLE only_key ADD COLUMN id int GENERATED BY DEFAULT AS IDENTITY")
    client.run("INSERT INTO only_key VALUES ('b')")
    assert client.rows("SELECT * FROM only_key ORDER BY 1") == [("a", "1"), ("b", "2")]
    client.run("CREATE INDEX again ON only_key (name, id); DROP INDEX again; CREATE INDEX again ON only_key (name, id)")
    client.run("DROP TABLE only_key")
