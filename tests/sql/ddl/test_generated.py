"""Generated columns: their values under every kind of change, views over them, ALTER TABLE, and errors. Answers are
PostgreSQL 15's."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.errors import SqlError
from tests.support.sessions import Client, Server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("generated"))
    yield server
    server.close()


@pytest.fixture
def client(shared: Server) -> Iterator[Client]:
    client = shared.client()
    for name in ("t", "c", "p", "r"):
        client.run(f"DROP TABLE IF EXISTS {name} CASCADE")
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int GENERATED ALWAYS AS (a * 2) STORED, c text DEFAULT 'c')")
    yield client
    client.close()


def test_every_kind_of_change(client: Client) -> None:
    client.run("CREATE MATERIALIZED VIEW m AS SELECT sum(b), count(*) FROM t")
    assert client.rows("INSERT INTO t VALUES (1, DEFAULT, DEFAULT), (2, DEFAULT, 'x') RETURNING *") == [
        ("1", "2", "c"),
        ("2", "4", "x"),
    ]
    assert client.rows("INSERT INTO t (a) SELECT 3 RETURNING b") == [("6",)]
    assert client.rows("UPDATE t SET a = 10, b = DEFAULT WHERE b = 4 RETURNING *") == [("10", "20", "x")]
    assert client.rows("UPDATE t SET c = 'y' WHERE a = 1 RETURNING b, c") == [("2", "y")]
    text = "INSERT INTO t VALUES (10) ON CONFLICT (a) DO UPDATE SET a = excluded.b + t.b RETURNING *"
    assert client.rows(text) == [("40", "80", "x")]
    text = "MERGE INTO t USING (VALUES (3), (5)) n (k) ON a = k WHEN MATCHED THEN UPDATE SET a = 30"
    assert client.sorted(text + " WHEN NOT MATCHED THEN INSERT VALUES (k) RETURNING t.a, b") == [
        ("30", "60"),
        ("5", "10"),
    ]
    client.results("COPY t FROM STDIN", copy=b"7\tseven\n")
    assert client.rows("SELECT * FROM t WHERE a = 7") == [("7", "14", "seven")]
    assert client.copy_out("COPY t TO STDOUT")[-1].count("\t") == 1
    assert client.rows("SELECT * FROM m") == client.rows("SELECT sum(a * 2), count(*) FROM t")
    assert client.rows("VERIFY MATERIALIZED VIEW m") == []


def test_random_changes_keep_the_expression(client: Client) -> None:
    """Random statements with NULLs, in a tree of tables, against the expression itself."""
    client.run("CREATE TABLE p (k int, n int, s int GENERATED ALWAYS AS (coalesce(n, k) - k) STORED)")
    client.run("CREATE TABLE c (extra text) INHERITS (p)")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT s, count(*) FROM p GROUP BY s")
    generator = random.Random(3)
    for _ in range(30):
        k, n = generator.randint(0, 5), generator.choice(("NULL", "1", "7"))
        client.run(generator.choice((
            f"INSERT INTO p VALUES ({k}, {n})", f"INSERT INTO c (k, n) VALUES ({k}, {n}), ({k}, {n})",
            f"UPDATE p SET n = {n} WHERE k = {k}", f"DELETE FROM p WHERE k = {k} AND n IS NULL",
        )))  # fmt: skip
        assert client.rows("SELECT count(*) FROM p WHERE s IS DISTINCT FROM coalesce(n, k) - k") == [("0",)]
        assert client.rows("VERIFY MATERIALIZED VIEW m") == []
    assert client.sorted("UPDATE p SET n = 100 + k RETURNING s")[0] == ("100",)


def test_partitions(client: Client) -> None:
    client.run("CREATE TABLE p (k int, v int, w int GENERATED ALWAYS AS (v + 1) STORED) PARTITION BY LIST (k)")
    client.run("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)")
    client.run("CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2)")
    assert client.rows("INSERT INTO p VALUES (1, 10) RETURNING w") == [("11",)]
    assert client.rows("UPDATE p SET k = 2, v = 20 RETURNING *") == [("2", "20", "21")]
    assert client.rows("SELECT * FROM p2") == [("2", "20", "21")]


def test_constraints_over_them(client: Client) -> None:
    client.run("CREATE TABLE r (b int PRIMARY KEY)")
    client.run("INSERT INTO r VALUES (2), (4)")
    client.run(
        "CREATE TABLE c (a int, b int GENERATED ALWAYS AS (a * 2) STORED REFERENCES r CHECK (b < 5) NOT NULL UNIQUE)"
    )
    assert client.run("INSERT INTO c VALUES (1)") == "INSERT 0 1"
    for text, state in (
        ("INSERT INTO c VALUES (0)", "23503"), ("INSERT INTO c VALUES (3)", "23514"),
        ("INSERT INTO c VALUES (NULL)", "23502"), ("INSERT INTO c VALUES (1)", "23505"),
        ("UPDATE c SET a = 2147483647", "22003"),
    ):  # fmt: skip
        assert client.state(text) == state


def test_inheritance(client: Client) -> None:
    client.run("CREATE TABLE p (a int, b int)")
    client.run("CREATE TABLE c (b int GENERATED ALWAYS AS (a * 3) STORED) INHERITS (p)")
    client.run("INSERT INTO c (a) VALUES (2)")
    assert client.rows("SELECT * FROM p") == [("2", "6")]
    client.run("CREATE TABLE r (a int NOT NULL, b int, c text)")
    error = client.error("ALTER TABLE r INHERIT t")
    assert error.message == 'column "b" in child table must be a generated column'
    client.run("ALTER TABLE r DROP b, ADD b int GENERATED ALWAYS AS (a * 22) STORED")
    error = client.error("ALTER TABLE r INHERIT t")
    assert error.message == 'column "b" in child table has a conflicting generation expression'
    client.run("ALTER TABLE r ADD d int DEFAULT 7, ADD e int GENERATED ALWAYS AS (d + a) STORED")
    assert client.rows("INSERT INTO r (a) VALUES (1) RETURNING e") == [("8",)]


def test_alter_table(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1), (2)")
    client.run("ALTER TABLE t ADD COLUMN d numeric GENERATED ALWAYS AS (a / 4.0) STORED")
    assert client.rows("SELECT d FROM t ORDER BY a") == [("0.25000000000000000000",), ("0.50000000000000000000",)]
    client.run("ALTER TABLE t RENAME a TO id")
    assert client.rows("INSERT INTO t VALUES (8) RETURNING b, d") == [("16", "2.0000000000000000")]
    client.run("ALTER TABLE t ALTER d TYPE int")
    assert client.rows("INSERT INTO t VALUES (9) RETURNING d") == [("2",)]
    client.run("ALTER TABLE t ALTER b DROP EXPRESSION")
    assert client.rows("UPDATE t SET b = 99 WHERE id = 9 RETURNING *") == [("9", "99", "c", "2")]
    error = client.error("ALTER TABLE t DROP COLUMN id")
    assert (error.sqlstate, error.detail) == ("2BP01", "column d of table t depends on column id of table t")
    client.run("ALTER TABLE t DROP COLUMN id CASCADE")
    assert client.rows("SELECT * FROM t WHERE b = 99") == [("99", "c")]


def test_copy_where(client: Client) -> None:
    """The condition reads defaults too, and comes before NOT NULL."""
    client.run("CREATE MATERIALIZED VIEW m AS SELECT count(*), sum(b) FROM t")
    assert client.run("COPY t (a) FROM STDIN WHERE c = 'c' AND a > 1", b"1\n2\n3\n") == "COPY 2"
    csv = "COPY t (a, c) FROM STDIN WITH (FORMAT csv) WHERE t.a % 2 = 0 OR c IS NULL"
    assert client.run(csv, b"4,x\n5,y\n6,\n7,\n") == "COPY 3"
    assert client.run("COPY t FROM STDIN CSV WHERE a IS NOT NULL", b",x\n12,z\n") == "COPY 1"
    with pytest.raises(SqlError, match="division by zero"):
        client.run("COPY t FROM STDIN CSV WHERE 1 / (a - 8) = 0", b"9,q\n10,q\n8,q\n")
    assert client.rows("SELECT * FROM t ORDER BY a") == [
        ("2", "4", "c"), ("3", "6", "c"), ("4", "8", "x"), ("6", "12", None), ("7", "14", None), ("12", "24", "z"),
    ]  # fmt: skip
    assert client.rows("SELECT * FROM m") == [("6", "68")]


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("INSERT INTO t VALUES (1, 2)", "428C9", 'cannot insert a non-DEFAULT value into column "b"'),
        ("INSERT INTO t SELECT 1, 2", "428C9", 'cannot insert a non-DEFAULT value into column "b"'),
        ("UPDATE t SET b = 2", "428C9", 'column "b" can only be updated to DEFAULT'),
        ("UPDATE t SET (a, b) = (SELECT 1, 2)", "428C9", 'column "b" can only be updated to DEFAULT'),
        ("COPY t (a, b) FROM STDIN", "42P10", 'column "b" is a generated column'),
        ("COPY t FROM STDIN WHERE b = 2", "42P10", "generated columns are not supported in COPY FROM WHERE conditions"),
        ("COPY t FROM STDIN WHERE t IS NOT NULL", "42P10",
         "generated columns are not supported in COPY FROM WHERE conditions"),
        ("COPY t FROM STDIN WHERE a IN (SELECT 1)", "0A000", "cannot use subquery in COPY FROM WHERE condition"),
        ("COPY t FROM STDIN WHERE sum(a) > 1", "42803",
         "aggregate functions are not allowed in COPY FROM WHERE conditions"),
        ("COPY t FROM STDIN WHERE sum(a) OVER () > 1", "42P20",
         "window functions are not allowed in COPY FROM WHERE conditions"),
        ("COPY t FROM STDIN WHERE generate_series(1, a) > 1", "0A000",
         "set-returning functions are not allowed in COPY FROM WHERE conditions"),
        ("COPY t FROM STDIN WHERE a", "42804", "argument of WHERE must be type boolean, not type integer"),
        ("COPY t FROM STDIN WHERE q", "42703", 'column "q" does not exist'),
        ("COPY t TO STDOUT WHERE a = 7", "42601", "WHERE clause not allowed with COPY TO"),
        ("COPY t FROM 'a.csv' WHERE a = 7", "0A000", "WHERE in COPY FROM a file is not supported"),
        ("COPY t FROM STDIN WITH (MAX REJECTS 1) WHERE a = 7", "0A000", "WHERE with MAX REJECTS is not supported"),
        ("CREATE TABLE x (a int, b int GENERATED ALWAYS AS (b) STORED)", "42P17",
         'cannot use generated column "b" in column generation expression'),
        ("CREATE TABLE x (a int, b float8 GENERATED ALWAYS AS (random()) STORED)", "42P17",
         "generation expression is not immutable"),
        ("CREATE TABLE x (a int, b int GENERATED ALWAYS AS ((SELECT 1)) STORED)", "0A000",
         "cannot use subquery in column generation expression"),
        ("CREATE TABLE x (a int, b int GENERATED ALWAYS AS (max(a)) STORED)", "42803",
         "aggregate functions are not allowed in column generation expressions"),
        ("CREATE TABLE x (a int, b int GENERATED BY DEFAULT AS (a) STORED)", "42601",
         "for a generated column, GENERATED ALWAYS must be specified"),
        ("CREATE TABLE x (a int, b int DEFAULT 1 GENERATED ALWAYS AS (a) STORED)", "42601",
         'both default and generation expression specified for column "b" of table "x"'),
        ("CREATE TABLE x (a int, b int GENERATED ALWAYS AS (a) STORED) PARTITION BY LIST (b)", "42P17",
         "cannot use generated column in partition key"),
        ("CREATE TABLE x (b int GENERATED ALWAYS AS (7) STORED REFERENCES t ON DELETE SET NULL)", "42601",
         "invalid ON DELETE action for foreign key constraint containing generated column"),
        ("CREATE TABLE x (b int GENERATED ALWAYS AS IDENTITY) INHERITS (t)", "42611",
         'column "b" inherits from generated column but specifies identity'),
        ("CREATE TABLE x (b serial) INHERITS (t)", "42611",
         'column "b" inherits from generated column but specifies default'),
        ("CREATE TABLE x (b int GENERATED ALWAYS AS (a * 3) STORED) INHERITS (t)", "42611",
         'child column "b" specifies generation expression'),
        ("ALTER TABLE t ALTER b SET DEFAULT 1", "42601", 'column "b" of relation "t" is a generated column'),
        ("ALTER TABLE t ALTER a TYPE bigint", "0A000", "cannot alter type of a column used by a generated column"),
        ("ALTER TABLE t ALTER c DROP EXPRESSION", "55000",
         'column "c" of relation "t" is not a stored generated column'),
    ],
)  # fmt: skip
def test_errors(client: Client, text: str, state: str, message: str) -> None:
    error = client.error(text)
    assert (error.sqlstate, error.message) == (state, message)


def test_they_survive_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        server.client().run("CREATE TABLE t (a int, b text GENERATED ALWAYS AS (('<'::text || a) || '>'::text) STORED)")
        server.restart()
        client = server.client()
        assert client.rows("INSERT INTO t VALUES (5) RETURNING b") == [("<5>",)]
        text = "SELECT is_generated, generation_expression FROM information_schema.columns WHERE column_name = 'b'"
        assert client.rows(text) == [("ALWAYS", "(('<'::text || a) || '>'::text)")]
    finally:
        server.close()
