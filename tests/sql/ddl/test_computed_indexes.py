"""Indexes over expressions and with predicates: duplicates, ON CONFLICT, ALTER TABLE, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("DROP TABLE IF EXISTS t")
    client.run("CREATE TABLE t (id int PRIMARY KEY, a text, b int, live boolean)")
    yield client
    client.close()


def test_equal_values_of_an_expression_are_duplicates(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, 'A', 1, true), (2, NULL, 1, true), (3, NULL, 1, true)")
    assert client.run("CREATE UNIQUE INDEX ON t (lower(a), (b + 1))") == "CREATE INDEX"
    error = client.error("INSERT INTO t VALUES (4, 'a', 1, false)")
    assert error.sqlstate == "23505"
    assert error.message == 'duplicate key value violates unique constraint "t_lower_expr_idx"'
    assert error.detail == "Key (lower(a), (b + 1))=(a, 2) already exists."
    assert client.state("INSERT INTO t VALUES (4, 'b', 1, true), (5, 'B', 1, true)") == "23505"
    client.run("INSERT INTO t VALUES (4, 'a', 2, false)")
    assert client.state("UPDATE t SET b = 1 WHERE id = 4") == "23505"
    client.run("UPDATE t SET a = 'c' WHERE id = 1")
    client.run("UPDATE t SET b = 1 WHERE id = 4")
    client.run("BEGIN")
    client.run("DELETE FROM t WHERE id = 4")
    client.run("INSERT INTO t VALUES (9, 'A', 1, true)")
    assert client.state("INSERT INTO t VALUES (10, 'a', 1, true)") == "23505"
    client.run("ROLLBACK")


def test_only_rows_of_the_predicate_are_compared(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, 'x', 1, true), (2, 'x', 2, false), (3, 'x', 3, false), (4, 'x', 4, NULL)")
    client.run("CREATE UNIQUE INDEX i ON t (a) WHERE live AND b > 0")
    client.run("INSERT INTO t VALUES (5, 'x', -1, true), (6, 'x', 6, false)")
    error = client.error("UPDATE t SET live = true WHERE id = 2")
    assert (error.sqlstate, error.detail) == ("23505", "Key (a)=(x) already exists.")
    client.run("UPDATE t SET live = NOT live WHERE id IN (1, 2)")
    assert client.state("INSERT INTO t VALUES (7, 'x', 1, true)") == "23505"
    many = "INSERT INTO t SELECT i, 'y' || i / 2, 1, i % 2 = 0 FROM generate_series(100, 400) i"
    client.run(many)
    assert client.state(many.replace("SELECT i,", "SELECT i + 1000,")) == "23505"
    assert client.rows("SELECT count(*) FROM t") == [("307",)]


def test_existing_rows_are_checked(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, 'A', 1, true), (2, 'a', 0, true)")
    error = client.error("CREATE UNIQUE INDEX i ON t (upper(a))")
    assert (error.sqlstate, error.message) == ("23505", 'could not create unique index "i"')
    assert error.detail == "Key (upper(a))=(A) is duplicated."
    assert client.state("CREATE INDEX i ON t ((1 / b))") == "22012"
    client.run("CREATE INDEX i ON t ((1 / b)) WHERE b > 0")
    client.run("INSERT INTO t VALUES (3, 'b', 0, true)")
    client.run("DROP INDEX i")
    client.run("DELETE FROM t WHERE b = 0")
    client.run("CREATE INDEX i ON t ((1 / b))")
    assert client.state("INSERT INTO t VALUES (4, 'b', 0, true)") == "22012"


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("(random())", "42P17", "functions in index expression must be marked IMMUTABLE"),
        ("(now() + '1 day')", "42P17", "functions in index expression must be marked IMMUTABLE"),
        ("((b + (SELECT 1)))", "0A000", "cannot use subquery in index expression"),
        ("(sum(b))", "42803", "aggregate functions are not allowed in index expressions"),
        ("(lower(missing))", "42703", 'column "missing" does not exist'),
        ("(b) WHERE a", "42804", "argument of WHERE must be type boolean, not type text"),
        ("(b) WHERE b > random()", "42P17", "functions in index predicate must be marked IMMUTABLE"),
        ("(b) WHERE EXISTS (SELECT 1)", "0A000", "cannot use subquery in index predicate"),
        ("(b) WHERE max(b) > 1", "42803", "aggregate functions are not allowed in index predicates"),
    ],
)
def test_mistakes(client: Client, text: str, state: str, message: str) -> None:
    error = client.error(f"CREATE INDEX ON t {text}")
    assert (error.sqlstate, error.message) == (state, message)


def test_on_conflict_finds_them(client: Client) -> None:
    client.run("CREATE UNIQUE INDEX ON t (lower(a))")
    client.run("CREATE UNIQUE INDEX ON t (b) WHERE live")
    client.run("INSERT INTO t VALUES (1, 'A', 1, true)")
    client.run("INSERT INTO t VALUES (2, 'a', 2, false) ON CONFLICT (lower(a)) DO UPDATE SET b = t.b + excluded.b")
    assert client.rows("SELECT * FROM t") == [("1", "A", "3", "t")]
    client.run("INSERT INTO t VALUES (2, 'a', 2, false) ON CONFLICT DO NOTHING")
    set_a = "DO UPDATE SET a = excluded.a"
    client.run(f"INSERT INTO t VALUES (3, 'c', 3, true), (4, 'd', 3, false) ON CONFLICT (b) WHERE live {set_a}")
    client.run(f"INSERT INTO t VALUES (5, 'e', 3, true) ON CONFLICT (b) WHERE live AND id > 0 {set_a}")
    assert client.sorted("SELECT * FROM t") == [("1", "e", "3", "t"), ("4", "d", "3", "f")]
    for target in ("(b)", "(b) WHERE id > 0", "(upper(a))", "(a)", "(lower(a), b)"):
        error = client.error(f"INSERT INTO t VALUES (1, 'a', 1, true) ON CONFLICT {target} DO NOTHING")
        assert error.sqlstate == "42P10", target
    client.run("INSERT INTO t VALUES (6, 'f', 6, true) ON CONFLICT (id) WHERE live DO NOTHING")


def test_they_are_no_keys_of_the_table(client: Client) -> None:
    client.run("CREATE UNIQUE INDEX ON t (b) WHERE live")
    assert client.state("CREATE TABLE u (b int REFERENCES t (b))") == "42830"
    client.run("INSERT INTO t VALUES (1, 'x', 1, true), (2, 'y', 1, false)")
    assert client.rows("SELECT b, count(*) FROM t GROUP BY b") == [("1", "2")]


def test_how_they_are_shown(client: Client) -> None:
    client.run("CREATE UNIQUE INDEX i ON t USING btree (lower(a) DESC, b, ((b + 1))) INCLUDE (live) WHERE b > 0")
    shown = "CREATE UNIQUE INDEX i ON public.t USING btree (lower(a) DESC, b, ((b + 1))) INCLUDE (live) WHERE (b > 0)"
    assert client.rows("SELECT indexdef FROM pg_indexes WHERE indexname = 'i'") == [(shown,)]
    assert client.rows("SELECT pg_get_indexdef('i'::regclass, n, true) FROM generate_series(1, 5) n ORDER BY n") == [
        ("lower(a)",), ("b",), ("(b + 1)",), ("live",), (None,)
    ]  # fmt: skip
    assert client.rows(
        "SELECT indkey, indnatts, indnkeyatts, pg_get_expr(indpred, indrelid) FROM pg_index "
        "WHERE indexrelid = 'i'::regclass"
    ) == [("0 3 0 4", "4", "3", "(b > 0)")]
    assert client.rows("SELECT attname FROM pg_attribute WHERE attrelid = 'i'::regclass ORDER BY attnum") == [
        ("lower",), ("b",), ("expr",), ("live",)
    ]  # fmt: skip


def test_they_follow_the_table(tmp_path: Path) -> None:
    server = Server(tmp_path)
    client = server.client()
    client.run("CREATE TABLE t (gone int, a text, b int)")
    client.run("CREATE UNIQUE INDEX i ON t (lower(a)) WHERE b > 0")
    client.run("CREATE UNIQUE INDEX j ON t ((gone + 1))")
    client.run("INSERT INTO t VALUES (1, 'A', 1)")
    client.run("ALTER TABLE t RENAME COLUMN a TO c")
    client.run("ALTER TABLE t DROP COLUMN gone")
    client.run("ALTER TABLE t RENAME TO u")
    client.run("ALTER TABLE u ALTER b TYPE bigint")
    server.restart()
    client = server.client()
    shown = "CREATE UNIQUE INDEX i ON public.u USING btree (lower(c)) WHERE (b > 0)"
    assert client.rows("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'") == [(shown,)]
    assert client.state("INSERT INTO u VALUES ('a', 1)") == "23505"
    client.run("INSERT INTO u VALUES ('a', 0)")
    client.run("CREATE TABLE v (LIKE u INCLUDING INDEXES)")
    client.run("INSERT INTO v VALUES ('x', 1)")
    assert client.error("INSERT INTO v VALUES ('X', 1)").message.endswith('"v_lower_idx"')
    assert client.state("ALTER TABLE u ALTER c TYPE int USING 1") == "42883"
    client.run("DROP INDEX i")
    client.run("INSERT INTO u VALUES ('a', 1)")
    server.close()
