"""UNIQUE constraints and indexes as PostgreSQL 15 has them: violations, names, restarts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    yield client
    client.results("ROLLBACK")
    for (name,) in client.rows("SELECT relname FROM pg_class WHERE relkind IN ('r') AND oid >= 16384"):
        client.run(f'DROP TABLE "{name}" CASCADE')
    client.close()


def _constraints(client: Client, table: str) -> list[tuple[str | None, ...]]:
    return client.sorted(
        f"SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{table}'::regclass"
    )


def test_names_are_postgress(client: Client) -> None:
    client.run(
        "CREATE TABLE u (a int UNIQUE, b int, UNIQUE (a, b), CONSTRAINT foo UNIQUE (b), UNIQUE (a), PRIMARY KEY (a, b),"
        " UNIQUE NULLS NOT DISTINCT (b, a))"
    )
    assert _constraints(client, "u") == [
        ("foo", "u", "UNIQUE (b)"),
        ("u_a_key", "u", "UNIQUE (a)"),
        ("u_b_a_key", "u", "UNIQUE NULLS NOT DISTINCT (b, a)"),
        ("u_pkey", "p", "PRIMARY KEY (a, b)"),
    ]
    assert client.sorted("SELECT indexdef FROM pg_indexes WHERE tablename = 'u'") == [
        ("CREATE UNIQUE INDEX foo ON public.u USING btree (b)",),
        ("CREATE UNIQUE INDEX u_a_key ON public.u USING btree (a)",),
        ("CREATE UNIQUE INDEX u_b_a_key ON public.u USING btree (b, a) NULLS NOT DISTINCT",),
        ("CREATE UNIQUE INDEX u_pkey ON public.u USING btree (a, b)",),
    ]
    client.run("CREATE TABLE named (a int CONSTRAINT first PRIMARY KEY)")
    assert _constraints(client, "named") == [("first", "p", "PRIMARY KEY (a)")]
    assert client.error("INSERT INTO named VALUES (1), (1)").message.endswith('unique constraint "first"')


def test_duplicates_are_refused_and_nulls_are_none(client: Client) -> None:
    client.run("CREATE TABLE u (a int, b text, UNIQUE (a, b))")
    assert client.run("INSERT INTO u VALUES (1, 'x'), (1, 'y'), (1, NULL), (1, NULL), (NULL, NULL)") == "INSERT 0 5"
    error = client.error("INSERT INTO u VALUES (3, 'z'), (1, 'x')")
    assert (error.sqlstate, error.detail) == ("23505", "Key (a, b)=(1, x) already exists.")
    assert error.message == 'duplicate key value violates unique constraint "u_a_b_key"'
    assert client.state("UPDATE u SET b = 'x'") == "23505"
    assert client.run("UPDATE u SET a = -a") == "UPDATE 5"
    assert client.run("UPDATE u SET b = CASE b WHEN 'x' THEN 'y' ELSE 'x' END WHERE b IS NOT NULL") == "UPDATE 2"
    with pytest.raises(Exception, match="duplicate key"):
        client.run("COPY u FROM STDIN", b"5\tq\n5\tq\n")
    assert client.run("COPY u FROM STDIN", b"5\t\\N\n5\t\\N\n") == "COPY 2"


def test_nulls_not_distinct(client: Client) -> None:
    client.run("CREATE TABLE u (a int UNIQUE NULLS NOT DISTINCT, b numeric, UNIQUE NULLS NOT DISTINCT (b, a))")
    client.run("INSERT INTO u VALUES (NULL, 1.0)")
    error = client.error("INSERT INTO u VALUES (NULL, 2)")
    assert error.detail == "Key (a)=(null) already exists."
    assert client.run("INSERT INTO u VALUES (1, NULL), (2, NULL)") == "INSERT 0 2"
    assert client.state("UPDATE u SET a = NULL WHERE a = 1") == "23505"
    assert client.run("DELETE FROM u WHERE a IS NULL") == "DELETE 1"
    assert client.run("UPDATE u SET a = NULL WHERE a = 1") == "UPDATE 1"
    assert client.run("INSERT INTO u VALUES (NULL, 3) ON CONFLICT (a) DO UPDATE SET b = excluded.b") == "INSERT 0 1"
    assert client.sorted("SELECT * FROM u") == [("2", None), (None, "3")]


def test_equal_values_of_other_words(client: Client) -> None:
    client.run("CREATE TABLE u (a numeric UNIQUE, b float8 UNIQUE, c char(5) UNIQUE)")
    client.run("INSERT INTO u VALUES (1.0, 0, 'a')")
    assert client.error("INSERT INTO u VALUES (1.00, 1, 'b')").detail == "Key (a)=(1.00) already exists."
    assert client.state("INSERT INTO u VALUES (2, '-0', 'b')") == "23505"
    assert client.state("INSERT INTO u VALUES (2, 1, 'a   ')") == "23505"
    assert client.run("INSERT INTO u VALUES (2, 1, 'b')") == "INSERT 0 1"
    client.run("DELETE FROM u WHERE a = 1")
    assert client.run("INSERT INTO u VALUES (1.000, 0, 'a')") == "INSERT 0 1"


def test_several_keys_at_once(client: Client) -> None:
    client.run("CREATE TABLE u (a int PRIMARY KEY, b int UNIQUE)")
    client.run("INSERT INTO u SELECT i, i FROM generate_series(1, 200) i")
    text = "INSERT INTO u VALUES (300, 300), (300, 301), (301, 301), (302, 5) ON CONFLICT DO NOTHING RETURNING a, b"
    assert client.rows(text) == [("300", "300"), ("301", "301")]
    assert client.state("INSERT INTO u VALUES (1, 999) ON CONFLICT (b) DO NOTHING") == "23505"
    assert client.run("INSERT INTO u VALUES (999, 7) ON CONFLICT (b) DO UPDATE SET a = excluded.a") == "INSERT 0 1"
    assert client.rows("SELECT a FROM u WHERE b = 7") == [("999",)]
    assert client.state("INSERT INTO u VALUES (999, 8) ON CONFLICT (a) DO UPDATE SET b = 9") == "23505"
    assert client.state("INSERT INTO u SELECT i, i + 3 FROM generate_series(1000, 1100) i, generate_series(1, 2)") == (
        "23505"
    )
    assert client.rows("SELECT count(*) FROM u") == [("202",)]


def test_the_transactions_own_changes_count(client: Client) -> None:
    client.run("CREATE TABLE u (a int UNIQUE)")
    client.run("INSERT INTO u VALUES (1)")
    client.run("BEGIN")
    client.run("DELETE FROM u")
    client.run("INSERT INTO u VALUES (1)")
    client.run("SAVEPOINT s")
    assert client.state("INSERT INTO u VALUES (1)") == "23505"
    client.run("ROLLBACK TO s")
    client.run("TRUNCATE u")
    client.run("INSERT INTO u VALUES (1)")
    client.run("COMMIT")
    assert client.rows("SELECT * FROM u") == [("1",)]


def test_indexes_are_made_shown_and_dropped(client: Client) -> None:
    client.run("CREATE TABLE u (a int, b int, c text)")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM u GROUP BY a")
    client.run("INSERT INTO u SELECT i % 10, i, 't' || i FROM generate_series(1, 100) i")
    for text in ("u (a)", "u (a) INCLUDE (b)", "u (b DESC NULLS LAST, a ASC NULLS FIRST)", "u USING hash (c)", "m (n)"):
        assert client.run(f"CREATE INDEX ON {text}") == "CREATE INDEX"
    assert client.run("CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS ub ON u (b)") == "CREATE INDEX"
    assert client.run("CREATE INDEX IF NOT EXISTS ub ON u (b)") == "CREATE INDEX"
    assert client.notices()[-1].message == 'relation "ub" already exists, skipping'
    assert client.sorted("SELECT indexname, indexdef FROM pg_indexes WHERE tablename IN ('u', 'm')") == [
        ("m_n_idx", "CREATE INDEX m_n_idx ON public.m USING btree (n)"),
        ("u_a_b_idx", "CREATE INDEX u_a_b_idx ON public.u USING btree (a) INCLUDE (b)"),
        ("u_a_idx", "CREATE INDEX u_a_idx ON public.u USING btree (a)"),
        ("u_b_a_idx", "CREATE INDEX u_b_a_idx ON public.u USING btree (b DESC NULLS LAST, a NULLS FIRST)"),
        ("u_c_idx", "CREATE INDEX u_c_idx ON public.u USING hash (c)"),
        ("ub", "CREATE UNIQUE INDEX ub ON public.u USING btree (b)"),
    ]
    assert client.state("INSERT INTO u VALUES (1, 7, 'x')") == "23505"
    assert client.run("INSERT INTO u VALUES (1, 7, 'x') ON CONFLICT (b) DO UPDATE SET c = 'x'") == "INSERT 0 1"
    assert "Arrange key [2]" in str(client.rows("EXPLAIN SELECT * FROM u WHERE c = 'x'"))
    assert client.rows("SELECT a, b FROM u WHERE c = 'x'") == [("7", "7")]
    assert client.sorted("SELECT a FROM m WHERE n = 10 AND a < 2") == [("0",), ("1",)]
    assert client.run("DROP INDEX ub, u_c_idx") == "DROP INDEX"
    assert client.run("INSERT INTO u VALUES (1, 7, 'x')") == "INSERT 0 1"
    assert client.rows("SELECT count(*) FROM u WHERE c = 'x'") == [("2",)]
    assert client.state("SELECT * FROM u WHERE c = 'x' AND nosuch") == "42703"
    assert client.run("DROP INDEX IF EXISTS ub") == "DROP INDEX"


def test_indexes_are_transactional(client: Client) -> None:
    client.run("CREATE TABLE u (a int)")
    client.run("INSERT INTO u VALUES (1), (2)")
    client.run("BEGIN")
    client.run("CREATE UNIQUE INDEX ua ON u (a)")
    client.run("SAVEPOINT s")
    assert client.state("INSERT INTO u VALUES (1)") == "23505"
    client.run("ROLLBACK")
    assert client.run("INSERT INTO u VALUES (1)") == "INSERT 0 1"
    error = client.error("CREATE UNIQUE INDEX ON u (a)")
    assert (error.sqlstate, error.message) == ("23505", 'could not create unique index "u_a_idx"')
    assert error.detail == "Key (a)=(1) is duplicated."
    client.run("DELETE FROM u WHERE a = 1")
    client.run("CREATE UNIQUE INDEX ON u (a)")
    client.run("BEGIN")
    client.run("DROP INDEX u_a_idx")
    client.run("INSERT INTO u VALUES (2)")
    client.run("ROLLBACK")
    assert client.state("INSERT INTO u VALUES (2)") == "23505"


def test_indexes_of_other_methods_are_shown(client: Client) -> None:
    client.run("CREATE TABLE ix (j jsonb, r int4range, t text)")
    for index in ("gin (j)", "gist (r)", "spgist (t)", "brin (t, r)", "gin ((j -> 'a')) WHERE r IS NOT NULL"):
        client.run(f"CREATE INDEX ON ix USING {index}")
    client.run("INSERT INTO ix VALUES ('{\"a\": 1}', '[1,3)', 'x'), (NULL, NULL, NULL)")
    client.run("UPDATE ix SET j = '[]' WHERE t = 'x'")
    client.run("DELETE FROM ix WHERE t IS NULL")
    assert client.rows("SELECT j, r FROM ix WHERE r && '[2,5)'") == [("[]", "[1,3)")]
    assert client.rows(
        "SELECT amname, relname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname LIKE 'ix\\_%' ORDER BY 1, 2"
    ) == [
        ("brin", "ix_t_r_idx"), ("gin", "ix_expr_idx"), ("gin", "ix_j_idx"), ("gist", "ix_r_idx"),
        ("spgist", "ix_t_idx"),
    ]  # fmt: skip
    client.run("DROP INDEX ix_j_idx")


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("CREATE TABLE x (a int, UNIQUE (zz))", "42703", 'column "zz" named in key does not exist'),
        ("CREATE TABLE x (a int, UNIQUE (a, a))", "42701", 'column "a" appears twice in unique constraint'),
        (
            "CREATE TABLE x (a int PRIMARY KEY, PRIMARY KEY (a))",
            "42P16",
            'multiple primary keys for table "x" are not allowed',
        ),
        ("CREATE TABLE x (a int UNIQUE NOT VALID)", "0A000", "UNIQUE constraints cannot be marked NOT VALID"),
        ("CREATE TABLE u_pkey (a int)", "42P07", 'relation "u_pkey" already exists'),
        ("CREATE INDEX u ON u (a)", "42P07", 'relation "u" already exists'),
        ("CREATE INDEX ON u (zz)", "42703", 'column "zz" does not exist'),
        ("CREATE INDEX ON nosuch (a)", "42P01", 'relation "nosuch" does not exist'),
        ("CREATE INDEX ON w (a)", "42809", 'cannot create index on relation "w"'),
        ("CREATE INDEX ON u USING foo (a)", "42704", 'access method "foo" does not exist'),
        (
            "CREATE INDEX ON u USING gin (a)",
            "42704",
            'data type integer has no default operator class for access method "gin"',
        ),
        ("CREATE UNIQUE INDEX ON u USING brin (a)", "0A000", 'access method "brin" does not support unique indexes'),
        (
            "CREATE INDEX ON u USING hash (a) INCLUDE (a)",
            "0A000",
            'access method "hash" does not support included columns',
        ),
        ("CREATE INDEX ON u USING brin (a DESC)", "0A000", 'access method "brin" does not support ASC/DESC options'),
        ("DROP INDEX u_pkey", "2BP01", "cannot drop index u_pkey because constraint u_pkey on table u requires it"),
        ("DROP INDEX u", "42809", '"u" is not an index'),
        ("DROP TABLE u_pkey", "42809", '"u_pkey" is not a table'),
        ("DROP INDEX nosuch", "42704", 'index "nosuch" does not exist'),
    ],
)
def test_mistakes(client: Client, text: str, state: str, message: str) -> None:
    client.run("CREATE TABLE u (a int PRIMARY KEY)")
    client.run("CREATE VIEW w AS SELECT a FROM u")
    error = client.error(text)
    assert (error.sqlstate, error.message) == (state, message)


def test_indexes_come_back_at_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t (a int, b numeric UNIQUE, c int)")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT a, sum(b) AS s FROM t GROUP BY a")
    client.run("CREATE INDEX ON m (s)")
    client.run("CREATE INDEX gone ON t (c)")
    client.run("INSERT INTO t VALUES (1, 1.0, 1), (2, 2.0, 2)")
    client.run("CREATE UNIQUE INDEX ta ON t (a)")
    client.run("DROP INDEX gone")
    for _ in range(2):
        server.restart()
        client = server.client()
        assert client.sorted("SELECT indexname FROM pg_indexes") == [("m_s_idx",), ("t_b_key",), ("ta",)]
        assert client.error("INSERT INTO t VALUES (1, 7, 1)").detail == "Key (a)=(1) already exists."
        assert client.error("INSERT INTO t VALUES (9, 1.00, 1)").detail == "Key (b)=(1.00) already exists."
        assert client.run("INSERT INTO t VALUES (1, 5, 1) ON CONFLICT (a) DO UPDATE SET c = t.c + 1") == "INSERT 0 1"
        assert client.rows("VERIFY MATERIALIZED VIEW m") == []
    assert client.rows("SELECT c FROM t WHERE a = 1") == [("3",)]
    server.close()


def test_constraints_are_added_and_dropped(client: Client) -> None:
    client.run("CREATE TABLE u (a int, b text)")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM u GROUP BY a")
    client.run("CREATE INDEX ON m (n)")
    client.run("INSERT INTO u VALUES (1, 'x'), (2, 'y'), (2, 'z')")
    error = client.error("ALTER TABLE u ADD UNIQUE (a)")
    assert (error.sqlstate, error.message) == ("23505", 'could not create unique index "u_a_key"')
    assert error.detail == "Key (a)=(2) is duplicated."
    error = client.error("ALTER TABLE u ADD CONSTRAINT small CHECK (a < 2)")
    assert error.message == 'check constraint "small" of relation "u" is violated by some row'
    assert client.run("ALTER TABLE u ADD UNIQUE (a, b), ADD CONSTRAINT small CHECK (a < 9)") == "ALTER TABLE"
    assert _constraints(client, "u") == [("small", "c", "CHECK ((a < 9))"), ("u_a_b_key", "u", "UNIQUE (a, b)")]
    assert client.state("INSERT INTO u VALUES (1, 'x')") == "23505"
    assert client.state("INSERT INTO u VALUES (9, 'x')") == "23514"
    assert client.state("ALTER TABLE u ADD CONSTRAINT small UNIQUE (b)") == "42710"
    client.run("ALTER TABLE u ADD PRIMARY KEY (b)")
    assert client.state("INSERT INTO u VALUES (7, 'x')") == "23505"
    assert client.state("INSERT INTO u VALUES (9, 'q')") == "23514"
    assert client.sorted("SELECT n FROM m WHERE n > 0") == [("1",), ("2",)]
    client.run("ALTER TABLE u DROP CONSTRAINT u_pkey, DROP CONSTRAINT small")
    assert client.run("INSERT INTO u VALUES (9, 'x')") == "INSERT 0 1"
    assert client.state("INSERT INTO u VALUES (1, 'x')") == "23505"
    client.run("ALTER TABLE u DROP CONSTRAINT u_a_b_key")
    assert client.run("INSERT INTO u VALUES (1, 'x')") == "INSERT 0 1"
    assert client.error("ALTER TABLE u DROP CONSTRAINT nosuch").message == (
        'constraint "nosuch" of relation "u" does not exist'
    )
    assert client.rows("VERIFY MATERIALIZED VIEW m") == []


def test_indexes_and_checks_follow_the_columns(client: Client) -> None:
    client.run("CREATE TABLE u (a int, b int UNIQUE, c int CHECK (c > 0), d int, CHECK (d > a))")
    client.run("CREATE INDEX ON u (d, b)")
    client.run("INSERT INTO u VALUES (1, 2, 3, 4)")
    client.run("ALTER TABLE u DROP COLUMN a")
    assert client.sorted("SELECT indexdef FROM pg_indexes WHERE tablename = 'u'") == [
        ("CREATE INDEX u_d_b_idx ON public.u USING btree (d, b)",),
        ("CREATE UNIQUE INDEX u_b_key ON public.u USING btree (b)",),
    ]
    assert client.state("INSERT INTO u VALUES (2, 3, 4)") == "23505"
    assert client.state("INSERT INTO u VALUES (3, 0, 4)") == "23514"
    client.run("ALTER TABLE u ALTER COLUMN b TYPE numeric")
    assert client.state("INSERT INTO u VALUES (2.00, 3, 4)") == "23505"
    client.run("ALTER TABLE u ADD COLUMN e int UNIQUE CHECK (e <> 0)")
    assert client.state("INSERT INTO u VALUES (7, 3, 4, 0)") == "23514"
    client.run("ALTER TABLE u DROP COLUMN e")
    client.run("ALTER TABLE u DROP COLUMN b")
    assert client.sorted("SELECT indexname FROM pg_indexes WHERE tablename = 'u'") == []
    assert client.state("INSERT INTO u VALUES (-2, 3)") == "23514"
    assert client.run("INSERT INTO u VALUES (2, -4)") == "INSERT 0 1"
