"""ALTER TABLE: rows, keys, views and the catalog after it, in transactions, over restarts; Postgres's errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sessions import Client, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("data"))
    yield server
    server.close()


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
