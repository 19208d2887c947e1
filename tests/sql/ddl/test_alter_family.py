"""ALTER TABLE through children and partitions, NOT VALID, and identity columns. Answers are PostgreSQL 15's."""

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
    client.run("CREATE TABLE p (a int, b text)")
    client.run("CREATE TABLE c (c1 int) INHERITS (p)")
    client.run("CREATE TABLE g (g1 int, b text) INHERITS (c)")
    client.run("INSERT INTO p VALUES (1, 'p')")
    client.run("INSERT INTO c VALUES (2, 'c', 20), (2, 'c', 20)")
    client.run("INSERT INTO g VALUES (3, NULL, 30, 300)")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM p GROUP BY a")
    return client


def names(client: Client, table: str) -> str:
    text = (
        f"SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attnum > 0 AND attrelid = '{table}'"
    )
    return client.rows(f"{text}::regclass")[0][0] or ""


def test_columns_come_and_go(server: Server, client: Client) -> None:
    client.run("ALTER TABLE p ADD COLUMN d int DEFAULT 7, ADD CHECK (d < 100)")
    assert [names(client, t) for t in "pcg"] == ["a,b,d", "a,b,c1,d", "a,b,c1,g1,d"]
    assert client.rows("SELECT sum(d) FROM p") == [("28",)]
    error = client.error("INSERT INTO g VALUES (1, '', 1, 1, 100)")
    assert error.message == 'new row for relation "g" violates check constraint "p_d_check"'
    assert client.rows("VERIFY MATERIALIZED VIEW m") == []
    server.restart()
    client = server.client()
    assert client.state("ALTER TABLE c DROP COLUMN d") == "42P16"
    client.run("ALTER TABLE ONLY p DROP COLUMN d")
    assert [names(client, t) for t in "pcg"] == ["a,b", "a,b,c1,d", "a,b,c1,g1,d"]
    client.run("ALTER TABLE c DROP COLUMN d")
    client.run("ALTER TABLE p DROP COLUMN b")
    assert [names(client, t) for t in "pcg"] == ["a", "a,c1", "a,b,c1,g1"], "g has a column b of its own"
    client.run("DELETE FROM c WHERE a = 2")
    assert client.sorted("SELECT * FROM m") == [("1", "1"), ("3", "1")]
    assert client.rows("VERIFY MATERIALIZED VIEW m") == []


def test_types_defaults_and_not_null(client: Client) -> None:
    client.run("DROP MATERIALIZED VIEW m")
    client.run("ALTER TABLE p ALTER a TYPE bigint USING a * 10 + 1")
    assert client.sorted("SELECT a FROM p") == [("11",), ("21",), ("21",), ("31",)]
    assert client.state("ALTER TABLE p ALTER b SET NOT NULL") == "23502"
    client.run("UPDATE p SET b = '' WHERE b IS NULL")
    client.run("ALTER TABLE p ALTER b SET NOT NULL, ALTER a SET DEFAULT 5")
    assert client.rows("INSERT INTO g (b) VALUES ('x') RETURNING a") == [("5",)]
    assert client.state("INSERT INTO c (b) VALUES (NULL)") == "23502"
    client.run("ALTER TABLE ONLY p ALTER a SET DEFAULT 6")
    assert client.rows("INSERT INTO c (b) VALUES ('x') RETURNING a") == [("5",)]


def test_constraints(client: Client) -> None:
    client.run("ALTER TABLE c ADD CONSTRAINT k CHECK (a > 0)")
    client.run("ALTER TABLE p ADD CONSTRAINT k CHECK (a > 0)")
    assert any("merging constraint" in n.message for n in client.notices())
    client.run("ALTER TABLE p DROP CONSTRAINT k")
    assert client.state("INSERT INTO g VALUES (0)") == "23514", "c has a constraint k of its own"
    client.run("ALTER TABLE c DROP CONSTRAINT k")
    client.run("ALTER TABLE p ADD CONSTRAINT own CHECK (a < 2) NO INHERIT")
    assert client.run("INSERT INTO g VALUES (50)") == "INSERT 0 1"
    client.run("ALTER TABLE p ADD CONSTRAINT late CHECK (a < 50) NOT VALID")
    assert client.state("INSERT INTO g VALUES (50)") == "23514"
    assert client.state("ALTER TABLE p VALIDATE CONSTRAINT late") == "23514"
    client.run("DELETE FROM p WHERE a = 50")
    client.run("ALTER TABLE p VALIDATE CONSTRAINT late")
    assert client.rows("SELECT DISTINCT convalidated FROM pg_constraint WHERE conname = 'late'") == [("t",)]


def test_partitions(client: Client) -> None:
    client.run("CREATE TABLE t (k int, v text) PARTITION BY LIST (k)")
    client.run("CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1)")
    client.run("CREATE TABLE t2 PARTITION OF t DEFAULT")
    client.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    client.run("CREATE MATERIALIZED VIEW w AS SELECT v, count(*) FROM t GROUP BY v")
    client.run("ALTER TABLE t ADD COLUMN x int NOT NULL DEFAULT 5, ADD PRIMARY KEY (k)")
    assert client.error("INSERT INTO t VALUES (1, 'z')").message.endswith('unique constraint "t1_pkey"')
    assert client.state("ALTER TABLE t1 DROP CONSTRAINT t1_pkey") == "42P16"
    assert client.state("ALTER TABLE t ADD UNIQUE (v)") == "0A000"
    client.run("ALTER TABLE t DROP CONSTRAINT t_pkey")
    assert client.rows("INSERT INTO t VALUES (1, 'z') RETURNING x") == [("5",)]
    client.run("ALTER TABLE t DROP COLUMN x")
    assert client.sorted("SELECT * FROM t") == [("1", "a"), ("1", "z"), ("2", "b")]
    assert client.rows("VERIFY MATERIALIZED VIEW w") == []
    assert client.state("ALTER TABLE ONLY t DROP COLUMN v") == "42P16"
    client.run("DROP MATERIALIZED VIEW w")
    client.run("ALTER TABLE t DROP COLUMN v, ADD COLUMN v int DEFAULT 4")
    assert client.rows("INSERT INTO t VALUES (3) RETURNING v") == [("4",)]
    assert client.rows("SELECT sum(v) FROM t") == [("16",)]


def test_renames(client: Client) -> None:
    client.run("CREATE VIEW joined AS SELECT p.a, c.a AS other FROM p JOIN c USING (a)")
    client.run("ALTER TABLE p ADD CONSTRAINT k CHECK (a > 0)")
    client.run("ALTER TABLE p RENAME a TO aa")
    client.run("ALTER TABLE p RENAME CONSTRAINT k TO kk")
    assert [names(client, t) for t in "pcg"] == ["aa,b", "aa,b,c1", "aa,b,c1,g1"]
    assert client.error("INSERT INTO g (aa) VALUES (0)").message.endswith('violates check constraint "kk"')
    client.run("INSERT INTO g (aa) VALUES (2)")
    assert client.rows("SELECT n FROM m WHERE a = 2") == [("3",)]
    assert client.rows("SELECT count(*) FROM joined") == [("10",)]
    assert client.rows("VERIFY MATERIALIZED VIEW m") == []
    for text, message in (
        ("ALTER TABLE c RENAME aa TO z", 'cannot rename inherited column "aa"'),
        ("ALTER TABLE ONLY p RENAME aa TO z", 'inherited column "aa" must be renamed in child tables too'),
        ("ALTER TABLE c RENAME CONSTRAINT kk TO z", 'cannot rename inherited constraint "kk"'),
    ):
        error = client.error(text)
        assert (error.sqlstate, error.message) == ("42P16", message)


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("ALTER TABLE ONLY p ADD COLUMN d int", "42P16", "column must be added to child tables too"),
        ("ALTER TABLE ONLY p ADD CHECK (a > 0)", "42P16", "constraint must be added to child tables too"),
        ("ALTER TABLE ONLY p ALTER b TYPE varchar", "42P16",
         'type of inherited column "b" must be changed in child tables too'),
        ("ALTER TABLE p ADD COLUMN c1 text", "42804", 'child table "c" has different type for column "c1"'),
        ("ALTER TABLE p ADD COLUMN i int GENERATED ALWAYS AS IDENTITY", "42P16",
         "cannot recursively add identity column to table that has child tables"),
        ("ALTER TABLE c DROP COLUMN a", "42P16", 'cannot drop inherited column "a"'),
        ("ALTER TABLE c ALTER a TYPE text", "42P16", 'cannot alter inherited column "a"'),
        ("ALTER TABLE p VALIDATE CONSTRAINT nothing", "42704",
         'constraint "nothing" of relation "p" does not exist'),
    ],
)  # fmt: skip
def test_errors(client: Client, text: str, state: str, message: str) -> None:
    error = client.error(text)
    assert (error.sqlstate, error.message) == (state, message)


def test_a_rollback_undoes_the_whole_family(client: Client) -> None:
    client.run("BEGIN")
    client.run("ALTER TABLE p ADD COLUMN d int DEFAULT 1")
    client.run("INSERT INTO g (a, d) VALUES (9, 9)")
    client.run("ROLLBACK")
    assert [names(client, t) for t in "pcg"] == ["a,b", "a,b,c1", "a,b,c1,g1"]
    client.run("INSERT INTO g (a) VALUES (9)")
    assert client.rows("SELECT n FROM m WHERE a = 9") == [("1",)]


def test_identity_columns(server: Server, client: Client) -> None:
    client.run("CREATE TABLE i (a int NOT NULL, b text)")
    client.run("ALTER TABLE i ALTER a ADD GENERATED ALWAYS AS IDENTITY (START 10)")
    assert client.state("INSERT INTO i VALUES (1, 'x')") == "428C9"
    assert client.rows("INSERT INTO i (b) VALUES ('x') RETURNING a") == [("10",)]
    client.run("ALTER TABLE i ALTER a SET GENERATED BY DEFAULT SET INCREMENT BY 5 RESTART WITH 100")
    server.restart()
    client = server.client()
    text = "INSERT INTO i VALUES (DEFAULT, 'y'), (DEFAULT, 'y'), (7, 'z') RETURNING a"
    assert client.rows(text) == [("100",), ("105",), ("7",)]
    client.run("ALTER TABLE i ADD COLUMN s serial, ADD COLUMN n bigint GENERATED BY DEFAULT AS IDENTITY (START 50)")
    assert client.sorted("SELECT s, n FROM i") == [("1", "50"), ("2", "51"), ("3", "52"), ("4", "53")]
    client.run("ALTER TABLE i ALTER a DROP IDENTITY")
    assert client.state("INSERT INTO i (b) VALUES ('x')") == "23502"
    for text, message in (
        ("ALTER TABLE i ALTER a DROP IDENTITY", 'column "a" of relation "i" is not an identity column'),
        ("ALTER TABLE i ALTER b ADD GENERATED ALWAYS AS IDENTITY",
         'column "b" of relation "i" must be declared NOT NULL before identity can be added'),
        ("ALTER TABLE i ALTER n ADD GENERATED ALWAYS AS IDENTITY",
         'column "n" of relation "i" is already an identity column'),
        ("ALTER TABLE i ALTER b SET INCREMENT BY 2", 'column "b" of relation "i" is not an identity column'),
    ):  # fmt: skip
        error = client.error(text)
        assert (error.sqlstate, error.message) == ("55000", message)
