"""ALTER TABLE: rows, keys, views and the catalog afterwards, in transactions, over restarts; Postgres's errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("CREATE TABLE t (a int, b text, c int DEFAULT 5)")
    yield client
    client.close()
    last = server.client()
    last.run("DROP TABLE IF EXISTS t CASCADE")
    last.close()


def fails(client: Client, text: str) -> tuple[str, str, str | None]:
    error = client.error(text)
    return error.sqlstate, error.message, error.detail


def test_a_primary_key_on_rows_that_are_there(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, 'x', 1), (2, 'y', NULL), (3, NULL, 3)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS s FROM t")
    client.run("CREATE VIEW p AS SELECT b FROM t")
    client.run("CREATE MATERIALIZED VIEW vv AS SELECT b, s FROM p, v")
    oids = client.rows("SELECT relname, oid FROM pg_class WHERE relname IN ('t', 'v', 'vv') ORDER BY 1")
    assert client.run("ALTER TABLE t ADD PRIMARY KEY (a)") == "ALTER TABLE"
    assert client.rows("SELECT relname, oid FROM pg_class WHERE relname IN ('t', 'v', 'vv') ORDER BY 1") == oids
    assert fails(client, "INSERT INTO t VALUES (2, 'z', 0)") == (
        "23505", 'duplicate key value violates unique constraint "t_pkey"', "Key (a)=(2) already exists.",
    )  # fmt: skip
    assert client.state("INSERT INTO t VALUES (NULL, 'z', 0)") == "23502"
    client.run("INSERT INTO t VALUES (4, 'z', 0)")
    assert client.rows("SELECT * FROM v") == [("4", "10")]
    assert client.sorted("SELECT * FROM vv") == [("x", "10"), ("y", "10"), ("z", "10"), (None, "10")]
    for view in ("v", "vv"):
        assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []
    found = "SELECT conname, contype FROM pg_constraint WHERE conrelid = 't'::regclass"
    assert client.rows(found) == [("t_pkey", "p")]
    assert client.rows("SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass AND attnotnull") == [("a",)]
    assert client.run("DROP TABLE t CASCADE") == "DROP TABLE"
    assert client.rows("SELECT relname FROM pg_class WHERE relname IN ('t', 'v', 'vv', 'p')") == []


def test_what_keeps_a_primary_key_away(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, 'x', 1), (1, 'x', 1), (NULL, 'y', NULL)")
    null = ("23502", 'column "a" of relation "t" contains null values', None)
    assert fails(client, "ALTER TABLE t ADD PRIMARY KEY (a)") == null
    client.run("DELETE FROM t WHERE a IS NULL")
    twice = ("23505", 'could not create unique index "t_pkey"', "Key (a)=(1) is duplicated.")
    assert fails(client, "ALTER TABLE t ADD PRIMARY KEY (a)") == twice
    assert client.state("ALTER TABLE t ADD PRIMARY KEY (z)") == "42703"
    assert client.state("ALTER TABLE t ADD PRIMARY KEY (a, a)") == "42701"
    client.run("TRUNCATE t")
    client.run("ALTER TABLE ONLY t ADD CONSTRAINT t_pkey PRIMARY KEY (a, b)")
    again = ("42P16", 'multiple primary keys for table "t" are not allowed', None)
    assert fails(client, "ALTER TABLE t ADD PRIMARY KEY (a)") == again
    assert client.state("ALTER TABLE nope ADD PRIMARY KEY (a)") == "42P01"
    client.notices()
    assert client.run("ALTER TABLE IF EXISTS nope ADD PRIMARY KEY (a)") == "ALTER TABLE"
    assert [n.message for n in client.notices()] == ['relation "nope" does not exist, skipping']
    client.run("CREATE VIEW p AS SELECT b FROM t")
    assert fails(client, "ALTER TABLE p ADD PRIMARY KEY (b)") == (
        "42809", 'ALTER action ADD CONSTRAINT cannot be performed on relation "p"',
        "This operation is not supported for views.",
    )  # fmt: skip
    assert client.state("ALTER TABLE pg_class ADD PRIMARY KEY (oid)") == "42501"


def test_in_a_transaction_and_taken_back(client: Client, server: Server) -> None:
    other = server.client()
    client.run("INSERT INTO t VALUES (1, 'x', 1)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t")
    for end in ("ROLLBACK", "COMMIT"):
        client.run("BEGIN")
        client.run("INSERT INTO t VALUES (2, 'y', 2)")
        client.run("ALTER TABLE t ADD PRIMARY KEY (a)")
        client.run("SAVEPOINT s")
        client.run("INSERT INTO t VALUES (3, 'z', 3)")
        assert client.state("INSERT INTO t VALUES (3, 'z', 3)") == "23505"
        client.run("ROLLBACK TO s")
        assert client.rows("SELECT * FROM v") == [("3",)]
        assert client.sorted("SELECT a FROM t") == [("1",), ("2",)]
        assert other.rows("SELECT * FROM v") == [("1",)]
        assert other.rows("SELECT a FROM t") == [("1",)]
        client.run(end)
        expected = [("1",)] if end == "ROLLBACK" else [("3",)]
        assert other.rows("SELECT * FROM v") == expected
        keys = other.rows("SELECT conname FROM pg_constraint WHERE conrelid = 't'::regclass")
        assert len(keys) == (0 if end == "ROLLBACK" else 1)
    assert other.rows("VERIFY MATERIALIZED VIEW v") == []
    other.close()


def test_prepared_statements_follow(client: Client, server: Server) -> None:
    other = server.client()
    other.run("PREPARE put AS INSERT INTO t VALUES ($1, 'p', 1)")
    other.run("PREPARE find AS SELECT b FROM t WHERE a = $1")
    other.run("EXECUTE put (1)")
    assert other.rows("EXECUTE find (1)") == [("p",)]
    client.run("ALTER TABLE t ADD PRIMARY KEY (a)")
    assert other.state("EXECUTE put (1)") == "23505"
    other.run("EXECUTE put (2)")
    assert other.rows("EXECUTE find (2)") == [("p",)]
    other.close()


def test_reads_before_the_change_are_refused(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, 'x', 1)")
    ((epoch,),) = client.rows("SELECT mz_now()")
    assert client.rows(f"SELECT a FROM t AS OF {epoch}") == [("1",)]
    client.run("ALTER TABLE t ADD PRIMARY KEY (a)")
    assert client.state(f"SELECT a FROM t AS OF {epoch}") == "22023"


def test_over_restarts(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t (a int, b text)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
    client.run("INSERT INTO t SELECT i, 'g' || i % 3 FROM generate_series(1, 100) i")
    client.run("ALTER TABLE t ADD PRIMARY KEY (a)")
    client.run("INSERT INTO t VALUES (200, 'g1')")
    oid = client.rows("SELECT 't'::regclass::oid")
    for _ in range(2):
        server.restart()
        client = server.client()
        assert client.sorted("SELECT * FROM v") == [("g0", "33"), ("g1", "35"), ("g2", "33")]
        assert client.rows("VERIFY MATERIALIZED VIEW v") == []
        assert client.state("INSERT INTO t VALUES (200, 'g1')") == "23505"
        assert client.rows("SELECT 't'::regclass::oid") == oid
    server.close()


def test_the_log_alone_brings_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from storage.checkpoint import Applier

    monkeypatch.setattr(Applier, "submit", lambda self, batch: None)
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t (a int, b text)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
    client.run("INSERT INTO t SELECT i, 'g' || i % 3 FROM generate_series(1, 10) i")
    client.run("ALTER TABLE t ADD PRIMARY KEY (a)")
    client.run("DELETE FROM t WHERE a = 3")
    server.restart()
    client = server.client()
    assert client.sorted("SELECT * FROM v") == [("g0", "2"), ("g1", "4"), ("g2", "3")]
    assert client.state("INSERT INTO t VALUES (4, 'g1')") == "23505"
    server.close()


# Columns, and views over them.


def test_columns_come_under_views(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2), (2, 'y', 2)")
    client.run("CREATE TABLE s (a int, d int)")
    client.run("INSERT INTO s VALUES (1, 7), (2, 8)")
    client.run("CREATE VIEW star AS SELECT * FROM t")
    client.run("CREATE VIEW plain AS SELECT a, b FROM t")
    client.run("CREATE MATERIALIZED VIEW joined AS SELECT b, d FROM t NATURAL JOIN s")
    client.run("CREATE MATERIALIZED VIEW over AS SELECT a, sum(c) AS s FROM star GROUP BY a")
    before = {v: client.sorted(f"SELECT * FROM {v}") for v in ("star", "plain", "joined", "over")}
    client.run("ALTER TABLE t ADD COLUMN d int DEFAULT 5 NOT NULL, ADD e text, ADD COLUMN f float DEFAULT random()")
    assert client.sorted("SELECT * FROM t WHERE e IS NULL AND f BETWEEN 0 AND 1")[0][:5] == ("1", "x", "1", "5", None)
    assert client.rows("SELECT count(DISTINCT f) FROM t") == [("3",)]
    assert {v: client.sorted(f"SELECT * FROM {v}") for v in before} == before
    client.run("INSERT INTO t (a, b, c) VALUES (2, 'z', 5)")
    assert client.rows("SELECT d, e FROM t WHERE b = 'z'") == [("5", None)]
    assert client.sorted("SELECT * FROM joined") == [("x", "7"), ("y", "8"), ("y", "8"), ("z", "8")]
    assert client.sorted("SELECT * FROM over") == [("1", "1"), ("2", "9")]
    for view in ("joined", "over"):
        assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []
    assert client.rows("SELECT pg_get_viewdef('plain'::regclass)") == [(" SELECT t.a,\n    t.b\n   FROM t;",)]
    ((shown,),) = client.rows("SELECT pg_get_viewdef('joined'::regclass)")
    assert shown is not None
    assert client.sorted(shown) == client.sorted("SELECT * FROM joined")
    client.run("DROP TABLE s CASCADE")


def test_columns_go_from_under_views(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2)")
    client.run("CREATE INDEX i ON t (c)")
    client.run("CREATE VIEW bs AS SELECT b FROM t")
    client.run("CREATE VIEW more AS SELECT b FROM bs")
    client.run("CREATE MATERIALIZED VIEW cs AS SELECT c, count(*) AS n FROM t GROUP BY c")
    assert fails(client, "ALTER TABLE t DROP COLUMN b") == (
        "2BP01", "cannot drop column b of table t because other objects depend on it",
        "view bs depends on column b of table t",
    )  # fmt: skip
    client.run("ALTER TABLE t DROP COLUMN a")
    client.run("INSERT INTO t VALUES ('z', 2)")
    assert client.sorted("SELECT * FROM cs") == [("1", "1"), ("2", "2")]
    assert client.sorted("SELECT b FROM t WHERE c = 2") == [("y",), ("z",)]
    assert client.sorted("SELECT * FROM more") == [("x",), ("y",), ("z",)]
    client.notices()
    client.run("ALTER TABLE t DROP b CASCADE")
    (notice,) = client.notices()
    assert (notice.message, notice.detail) == (
        "drop cascades to 2 other objects", "drop cascades to view bs\ndrop cascades to view more",
    )  # fmt: skip
    client.run("INSERT INTO t VALUES (3)")
    assert client.sorted("SELECT * FROM cs") == [("1", "1"), ("2", "2"), ("3", "1")]
    assert client.rows("VERIFY MATERIALIZED VIEW cs") == []
    assert client.state("SELECT * FROM bs") == "42P01"
    client.run("ALTER TABLE t DROP COLUMN IF EXISTS nope")
    assert client.state("ALTER TABLE t DROP COLUMN nope") == "42703"


def test_types_change(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, '12', 1), (2, NULL, 2)")
    client.run("CREATE MATERIALIZED VIEW cs AS SELECT sum(c) AS s FROM t")
    detail = 'rule _RETURN on materialized view cs depends on column "c"'
    used = ("0A000", "cannot alter type of a column used by a view or rule", detail)
    assert fails(client, "ALTER TABLE t ALTER c TYPE bigint") == used
    assert client.state("ALTER TABLE t ALTER b TYPE int") == "42804"
    assert client.state("ALTER TABLE t ALTER b TYPE int USING 'q'::int") == "22P02"
    client.run("ALTER TABLE t ALTER b TYPE int USING b::int + a, ALTER COLUMN a SET DATA TYPE numeric(5,1)")
    assert client.sorted("SELECT * FROM t") == [("1.0", "13", "1"), ("2.0", None, "2")]
    client.run("DROP MATERIALIZED VIEW cs")
    client.run("ALTER TABLE t ALTER c TYPE text")
    client.run("INSERT INTO t (a) VALUES (9)")
    assert client.rows("SELECT c || '!' FROM t WHERE a = 9") == [("5!",)]


def test_subqueries_are_refused(client: Client) -> None:
    """Written or from a function's body, which replaces its call; the first two as PostgreSQL says it."""
    client.run("CREATE FUNCTION most() RETURNS int LANGUAGE sql AS 'SELECT max(a) FROM t'")
    client.run("PREPARE p AS SELECT $1::int + 1")
    transform = ("0A000", "cannot use subquery in transform expression", None)
    parameter = ("0A000", "cannot use subquery in EXECUTE parameter", None)
    for expr in ("(SELECT 1)", "most()"):
        assert fails(client, f"ALTER TABLE t ALTER c TYPE bigint USING {expr}") == transform
        assert fails(client, f"EXECUTE p({expr})") == parameter
    added = fails(client, "ALTER TABLE t ADD COLUMN d int DEFAULT most()")
    assert added == ("0A000", "ADD COLUMN with a DEFAULT that reads tables is not supported", None)


def test_null_and_default(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, NULL, 1)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT a, b FROM t")
    null = ("23502", 'column "b" of relation "t" contains null values', None)
    assert fails(client, "ALTER TABLE t ALTER COLUMN b SET NOT NULL") == null
    assert client.state("ALTER TABLE t ADD COLUMN d int NOT NULL") == "23502"
    client.run("ALTER TABLE t ALTER a SET NOT NULL, ALTER c SET DEFAULT 9, ALTER b SET DEFAULT 'q' IN ('q')::text")
    client.run("INSERT INTO t (a) VALUES (2)")
    assert client.state("INSERT INTO t (b) VALUES ('x')") == "23502"
    client.run("ALTER TABLE t ALTER a DROP NOT NULL, ALTER b DROP DEFAULT")
    client.run("INSERT INTO t (c) VALUES (3)")
    assert client.sorted("SELECT * FROM v") == [("1", None), ("2", "true"), (None, None)]
    assert client.sorted("SELECT c FROM t") == [("1",), ("3",), ("9",)]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    assert client.state("ALTER TABLE t ADD COLUMN a int") == "42701"
    client.run("ALTER TABLE t ADD COLUMN IF NOT EXISTS a int")
    assert client.state("ALTER TABLE t ALTER nope SET DEFAULT 1") == "42703"


def test_columns_with_constraints(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, 'x', 1)")
    client.run("ALTER TABLE t ADD COLUMN d int UNIQUE CHECK (d > 0), ADD e int DEFAULT 1 CHECK (e < 5)")
    assert client.state("INSERT INTO t (d) VALUES (0)") == "23514"
    client.run("INSERT INTO t (d) VALUES (1)")
    assert client.state("INSERT INTO t (d) VALUES (1)") == "23505"
    assert client.state("ALTER TABLE t ADD f int DEFAULT 0 CHECK (f > 0)") == "23514"


def test_columns_over_restarts(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t (a int PRIMARY KEY, b text)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    client.run("INSERT INTO t VALUES (1, 'x')")
    client.run("BEGIN")
    client.run("ALTER TABLE t ADD COLUMN c int DEFAULT 3")
    client.run("INSERT INTO t VALUES (2, 'y')")
    client.run("ROLLBACK")
    assert client.sorted("SELECT * FROM v") == [("1", "x")]
    client.run("ALTER TABLE t ADD COLUMN c int DEFAULT 3")
    client.run("INSERT INTO t VALUES (2, 'y')")
    for _ in range(2):
        server.restart()
        client = server.client()
        assert client.sorted("SELECT * FROM v") == [("1", "x"), ("2", "y")]
        assert client.sorted("SELECT * FROM t") == [("1", "x", "3"), ("2", "y", "3")]
        assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    server.close()


@pytest.mark.parametrize("source", ["t", "(SELECT a + 1 FROM t)"])
def test_a_subscription_ends(client: Client, server: Server, source: str) -> None:
    client.run("INSERT INTO t VALUES (1, 'x', 1)")
    other = server.client()
    other.run("BEGIN")
    other.run(f"DECLARE c CURSOR FOR SUBSCRIBE {source}")
    assert len(other.rows("FETCH ALL c WITH (timeout = '10s')")) == 1
    client.run("ALTER TABLE t ADD PRIMARY KEY (a)")
    error = other.error("FETCH ALL c WITH (timeout = '10s')")
    assert (error.sqlstate, error.message) == (
        "42P01",
        "what was subscribed to has been dropped or altered",
    )
    other.close()
