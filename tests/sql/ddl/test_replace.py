"""CREATE OR REPLACE MATERIALIZED VIEW and SWAP WITH: what is over the view stays and is right at every epoch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


@pytest.fixture
def client(server: Server) -> Client:
    client = server.client()
    client.run("CREATE TABLE t (a int, b text)")
    client.run("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (2, 'y')")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT a, b FROM t")
    client.run("CREATE INDEX v_a ON v (a)")
    client.run("CREATE MATERIALIZED VIEW w AS SELECT b, count(*) AS n, sum(a) AS s FROM v GROUP BY b")
    client.run("CREATE VIEW plain AS SELECT * FROM v")
    return client


def check(client: Client, expected: list[tuple[str, ...]]) -> None:
    assert client.sorted("SELECT * FROM w") == expected
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    assert client.rows("VERIFY MATERIALIZED VIEW w") == []


def test_a_replaced_view_keeps_what_is_over_it(server: Server, client: Client) -> None:
    oid = client.rows("SELECT 'v'::regclass::oid")
    client.run("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a * 10 AS a, b, a AS was FROM t WHERE a > 1")
    assert client.rows("SELECT 'v'::regclass::oid") == oid
    assert client.rows("SELECT * FROM plain") == [("20", "y"), ("20", "y")]
    check(client, [("y", "2", "40")])
    client.run("INSERT INTO t VALUES (3, 'z'), (NULL, 'z'), (0, 'x')")
    client.run("DELETE FROM t WHERE a = 2")
    check(client, [("z", "1", "30")])
    server.restart()
    client = server.client()
    client.run("UPDATE t SET a = 7 WHERE b = 'z'")
    check(client, [("z", "2", "140")])
    assert client.rows("SELECT was FROM v WHERE a = 70") == [("7",), ("7",)]


def test_subscribers_get_the_difference(server: Server, client: Client) -> None:
    def follow(source: str) -> Client:
        reader = server.client()
        reader.run("BEGIN")
        reader.run(f"DECLARE c CURSOR FOR SUBSCRIBE {source}")
        return reader

    def news(reader: Client) -> list[tuple[str | None, ...]]:
        return sorted((row[1:] for row in reader.rows("FETCH ALL c WITH (timeout = '20s')")), key=repr)

    of_view, over_view, of_query = follow("v"), follow("w"), follow("(SELECT a FROM v)")
    assert news(of_view) == [("1", "1", "x"), ("2", "2", "y")]
    assert len(news(over_view)) == 2
    assert len(news(of_query)) == 2
    client.run("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a, b FROM t UNION ALL SELECT 9, 'x'")
    assert news(of_view) == [("1", "9", "x")]
    assert news(over_view) == [("-1", "x", "1", "1"), ("1", "x", "2", "10")]
    client.run("DELETE FROM t WHERE a = 1")
    assert news(of_view) == [("-1", "1", "x")]
    assert news(over_view) == [("-1", "x", "2", "10"), ("1", "x", "1", "9")]
    assert of_query.state("FETCH ALL c WITH (timeout = '20s')") == "42P01"
    client.run("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a, b, 1 AS more FROM t")
    assert over_view.rows("FETCH 0 c") == []
    assert of_view.state("FETCH ALL c WITH (timeout = '20s')") == "42P01"


def test_a_rollback_brings_the_old_view_back(client: Client) -> None:
    client.run("BEGIN")
    client.run("INSERT INTO t VALUES (5, 'y')")
    client.run("SAVEPOINT before")
    client.run("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 0 AS a, b FROM t")
    assert client.sorted("SELECT * FROM w") == [("x", "1", "0"), ("y", "3", "0")]
    client.run("ROLLBACK TO before")
    assert client.sorted("SELECT * FROM w") == [("x", "1", "1"), ("y", "3", "9")]
    client.run("COMMIT")
    check(client, [("x", "1", "1"), ("y", "3", "9")])


def test_it_creates_a_view_that_is_not_there(client: Client) -> None:
    client.run("CREATE OR REPLACE MATERIALIZED VIEW fresh AS SELECT count(*) FROM t")
    assert client.rows("SELECT * FROM fresh") == [("3",)]


@pytest.mark.parametrize(
    ("query", "state", "message"),
    [
        ("SELECT a FROM t", "42P16", "cannot drop columns from view"),
        ("SELECT b, a FROM t", "42P16", 'cannot change name of view column "a" to "b"'),
        ("SELECT a::bigint, b FROM t", "42P16", 'cannot change data type of view column "a"'),
        ("SELECT s::int AS a, b FROM w", "42P17", 'infinite recursion detected in rules for relation "v"'),
    ],
)
def test_errors(client: Client, query: str, state: str, message: str) -> None:
    error = client.error(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query}")
    assert (error.sqlstate, error.message) == (state, message)
    check(client, [("x", "1", "1"), ("y", "2", "4")])
    assert client.state("CREATE OR REPLACE MATERIALIZED VIEW plain AS SELECT 1") == "42809"


def test_two_views_swap_their_names(server: Server, client: Client) -> None:
    client.run("CREATE MATERIALIZED VIEW v2 AS SELECT a + 100 AS a, b FROM t")
    client.run("ALTER MATERIALIZED VIEW v SWAP WITH v2")
    assert client.sorted("SELECT a FROM v") == [("101",), ("102",), ("102",)]
    assert client.sorted("SELECT a FROM v2") == [("1",), ("2",), ("2",)]
    assert client.sorted("SELECT * FROM w") == [("x", "1", "1"), ("y", "2", "4")]
    server.restart()
    client = server.client()
    client.run("INSERT INTO t VALUES (9, 'x')")
    check(client, [("x", "2", "10"), ("y", "2", "4")])
    assert client.state("ALTER MATERIALIZED VIEW v SWAP WITH plain") == "42809"
    assert client.state("ALTER MATERIALIZED VIEW v SWAP WITH missing") == "42P01"
    client.run("ALTER MATERIALIZED VIEW v RENAME TO v3")
    assert client.rows("SELECT count(*) FROM v3") == [("4",)]
