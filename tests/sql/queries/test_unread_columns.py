"""What nothing reads of a UNION ALL is not computed: it cannot fail, nor be maintained."""

from __future__ import annotations

import pytest

from tests.support.sessions import Server

UNION = "SELECT id, 10 / n AS q FROM t WHERE n < 5 UNION ALL SELECT id, 10 / (n - n) FROM t UNION ALL SELECT 7, 1 / 0"


@pytest.mark.parametrize(("query", "found"), [
    (f"SELECT count(*) FROM ({UNION}) u", "5"),
    (f"SELECT count(*) FROM (SELECT 1 FROM ({UNION}) u UNION ALL SELECT 2) v", "6"),
    (f"SELECT count(id) FROM ({UNION}) u", "5"),
    (f"SELECT EXISTS (SELECT q FROM ({UNION}) u)", "t"),
    (f"SELECT (SELECT count(*) FROM ({UNION}) u) + count(*) FROM t", "8"),
    (f"SELECT count(*) FROM t WHERE EXISTS (SELECT q FROM ({UNION}) u WHERE u.id = t.id)", "3"),
    (f"SELECT count(*) FROM ({UNION}) u, t", "15"),
    (f"SELECT sum(c) FROM (SELECT count(*) AS c FROM ({UNION}) u GROUP BY ()) v", "5"),
    ("SELECT count(*) FROM (SELECT nextval('drawn') UNION ALL SELECT nextval('drawn')) u", "2"),
])  # fmt: skip
def test_it_is_not_computed(server: Server, query: str, found: str) -> None:
    client = server.client()
    client.run("DROP TABLE IF EXISTS t CASCADE; CREATE TABLE t (id int, n int)")
    client.run("CREATE SEQUENCE IF NOT EXISTS drawn; INSERT INTO t VALUES (1, 0), (2, NULL), (2, 9)")
    assert client.rows(query) == [(found,)]


def test_views_count_rows_that_would_fail(server: Server) -> None:
    client = server.client()
    client.run("DROP TABLE IF EXISTS t; CREATE TABLE t (id int, n int)")
    client.run(f"CREATE MATERIALIZED VIEW v AS SELECT count(*) FROM ({UNION}) u")
    client.run(f"CREATE MATERIALIZED VIEW w AS SELECT id, count(*) FROM ({UNION}) u GROUP BY id")
    for change, n in (
        ("INSERT INTO t VALUES (1, 0), (1, 0), (2, NULL), (3, 9)", 7), ("UPDATE t SET n = 0 WHERE id = 3", 8),
        ("DELETE FROM t WHERE id = 1", 4), ("DELETE FROM t", 1),
    ):  # fmt: skip
        client.run(change)
        assert client.rows("SELECT * FROM v") == [(str(n),)]
        assert client.rows("SELECT sum(count) FROM w") == [(str(n),)]
        assert client.rows("VERIFY MATERIALIZED VIEW v") == client.rows("VERIFY MATERIALIZED VIEW w") == []
    assert client.state(f"SELECT * FROM ({UNION}) u") == "22012"


def test_numbers_of_rows_do_not_order_what_nothing_reads(server: Server) -> None:
    """Columns would tell rows apart that the order does not: for documents and texts that takes long."""
    client = server.client()
    client.run("DROP TABLE IF EXISTS t CASCADE; CREATE TABLE t (id int, n int, doc jsonb, name text)")
    client.run("INSERT INTO t SELECT i, i % 3, '{}', 'x' FROM generate_series(1, 9) i")
    numbers = "SELECT id, row_number() OVER (PARTITION BY n ORDER BY id) AS place FROM t"
    for query in (numbers, f"CREATE MATERIALIZED VIEW numbered AS {numbers}"):
        plan = "\n".join(line for (line,) in client.rows(f"EXPLAIN {query}") if line is not None)
        assert "order_prefix(#0)" in plan
        assert "order_bytes" not in plan
    client.run(f"CREATE MATERIALIZED VIEW numbered AS {numbers}")
    client.run("UPDATE t SET n = 1 WHERE id = 3; DELETE FROM t WHERE id = 4; INSERT INTO t VALUES (2, 1, '[]', 'y')")
    assert client.sorted("SELECT * FROM numbered") == client.sorted(numbers)
    found = client.sorted("SELECT id, place FROM numbered WHERE id < 4")
    assert found == [("1", "1"), ("2", "1"), ("2", "2"), ("3", "3")]
    assert client.rows("SELECT count(*) FROM (SELECT row_number() OVER () FROM t) u WHERE row_number < 4") == [("3",)]
    assert client.rows("SELECT row_number() OVER () FROM t LIMIT 2") == [("1",), ("2",)]
