"""ALTER … RENAME, SET SCHEMA, OWNER TO: names afterwards, and views that keep their meaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("CREATE SCHEMA home")
    client.run("SET search_path = home")
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int CHECK (b > 0), c text)")
    client.run("INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y')")
    yield client
    client.close()
    last = server.client()
    last.run("DROP SCHEMA home CASCADE")
    last.close()


def fails(client: Client, text: str) -> tuple[str, str]:
    error = client.error(text)
    return error.sqlstate, error.message


def definition(client: Client, view: str) -> str:
    """The view's query on one line."""
    ((text,),) = client.rows(f"SELECT pg_get_viewdef('{view}'::regclass, true)")
    assert text is not None
    return " ".join(text.split())


def same_rows(client: Client, view: str) -> None:
    """Checks that the query shown by pg_get_viewdef gives the view's rows and names."""
    text = definition(client, view).removesuffix(";")
    client.run(f"CREATE VIEW shown AS {text}")
    assert client.sorted("SELECT * FROM shown") == client.sorted(f"SELECT * FROM {view}")
    names = "SELECT attname FROM pg_attribute WHERE attrelid = '{}'::regclass ORDER BY attnum"
    assert client.rows(names.format("shown")) == client.rows(names.format(view))
    client.run("DROP VIEW shown")


def test_a_table(client: Client) -> None:
    client.run("CREATE VIEW p AS SELECT t.b, x.c FROM t JOIN t x ON x.a = t.a")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(b) AS s FROM p")
    assert client.run("ALTER TABLE t RENAME TO u") == "ALTER TABLE"
    client.run("INSERT INTO u VALUES (3, 30, 'z')")
    assert client.rows("SELECT * FROM v") == [("3", "60")]
    assert fails(client, "SELECT * FROM t") == ("42P01", 'relation "t" does not exist')
    assert definition(client, "p") == "SELECT u.b, x.c FROM u JOIN u x ON x.a = u.a;"
    assert definition(client, "v") == "SELECT count(*) AS n, sum(p.b) AS s FROM p;"
    assert client.rows("SELECT conname FROM pg_constraint WHERE conrelid = 'u'::regclass ORDER BY 1") == [
        ("t_b_check",), ("t_pkey",),
    ]  # fmt: skip
    client.run("CREATE TABLE t (z int)")
    assert client.rows("SELECT * FROM v") == [("3", "60")]
    same_rows(client, "p")
    assert fails(client, "ALTER TABLE u RENAME TO p") == ("42P07", 'relation "p" already exists')
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


def test_a_column(client: Client) -> None:
    client.run("CREATE VIEW p AS SELECT b, c FROM t WHERE b > 5")
    client.run("CREATE VIEW star AS SELECT * FROM t")
    client.run("CREATE VIEW other AS SELECT c FROM t")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT t.a, b + 1 AS x FROM t JOIN t t2 USING (a, b)")
    client.run("CREATE MATERIALIZED VIEW w AS SELECT sum(b) AS s FROM p")
    client.run("ALTER TABLE t RENAME COLUMN b TO bb")
    client.run("INSERT INTO t (a, bb, c) VALUES (3, 30, 'z')")
    assert client.sorted("SELECT * FROM v") == [("1", "11"), ("2", "21"), ("3", "31")]
    assert client.rows("SELECT * FROM w") == [("60",)]
    assert client.rows("SELECT b FROM star WHERE a = 3") == [("30",)]
    assert client.state("INSERT INTO t VALUES (4, -1)") == "23514"
    assert client.state("SELECT b FROM t") == "42703"
    assert definition(client, "other") == "SELECT t.c FROM t;"
    assert "bb AS b" in definition(client, "p")
    for view in ("p", "star", "other", "v", "w"):
        same_rows(client, view)
    client.run("ALTER TABLE t RENAME a TO b")
    for view in ("p", "star", "other", "v", "w"):
        same_rows(client, view)
    assert client.rows("SELECT * FROM w") == [("60",)]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    client.run("ALTER TABLE t RENAME b TO a")
    client.run("ALTER TABLE t RENAME bb TO b")
    assert definition(client, "p") == "SELECT t.b, t.c FROM t WHERE t.b > 5;"
    assert fails(client, "ALTER TABLE t RENAME z TO y") == ("42703", 'column "z" does not exist')
    assert fails(client, "ALTER TABLE t RENAME a TO b") == ("42701", 'column "b" of relation "t" already exists')
    assert client.state("ALTER TABLE t RENAME a TO ctid") == "42701"


def test_views(client: Client) -> None:
    client.run("CREATE VIEW p AS SELECT a, b FROM t")
    client.run("CREATE VIEW q AS SELECT b FROM p")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT sum(b) FROM q")
    assert client.run("ALTER VIEW p RENAME COLUMN b TO x") == "ALTER VIEW"
    assert client.run("ALTER VIEW p RENAME TO pp") == "ALTER VIEW"
    assert client.run("ALTER MATERIALIZED VIEW v RENAME COLUMN sum TO s") == "ALTER MATERIALIZED VIEW"
    assert client.run("ALTER TABLE v RENAME TO vv") == "ALTER TABLE"
    client.run("INSERT INTO t VALUES (3, 30)")
    assert client.rows("SELECT s FROM vv") == [("60",)]
    assert client.rows("SELECT x FROM pp WHERE a = 3") == [("30",)]
    for view in ("pp", "q", "vv"):
        same_rows(client, view)
    assert fails(client, "ALTER VIEW vv RENAME TO z") == ("42809", '"vv" is not a view')
    assert fails(client, "ALTER MATERIALIZED VIEW pp RENAME TO z") == ("42809", '"pp" is not a materialized view')
    client.notices()
    assert client.run("ALTER VIEW IF EXISTS nope RENAME TO z") == "ALTER VIEW"
    assert [n.message for n in client.notices()] == ['relation "nope" does not exist, skipping']
    assert client.state("ALTER TABLE nope RENAME TO z") == "42P01"


def test_indexes_and_constraints(client: Client) -> None:
    client.run("CREATE INDEX i ON t (c)")
    assert client.run("ALTER INDEX i RENAME TO j") == "ALTER INDEX"
    client.run("ALTER INDEX t_pkey RENAME TO k")
    client.run("ALTER TABLE t RENAME CONSTRAINT k TO kk")
    client.run("ALTER TABLE t RENAME CONSTRAINT t_b_check TO positive")
    assert client.rows("SELECT indexname FROM pg_indexes WHERE tablename = 't' ORDER BY 1") == [("j",), ("kk",)]
    assert 'unique constraint "kk"' in fails(client, "INSERT INTO t VALUES (1, 1)")[1]
    assert 'check constraint "positive"' in fails(client, "INSERT INTO t VALUES (9, 0)")[1]
    assert fails(client, "ALTER TABLE t RENAME CONSTRAINT z TO y") == (
        "42704", 'constraint "z" for table "t" does not exist',
    )  # fmt: skip
    assert fails(client, "ALTER INDEX j RENAME TO t") == ("42P07", 'relation "t" already exists')


def test_schemas_and_owners(client: Client) -> None:
    client.run("CREATE SCHEMA away")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT sum(b) AS s FROM t")
    assert client.run("ALTER TABLE t SET SCHEMA away") == "ALTER TABLE"
    client.run("INSERT INTO away.t VALUES (3, 30)")
    assert client.rows("SELECT * FROM v") == [("60",)]
    assert definition(client, "v") == "SELECT sum(t.b) AS s FROM away.t;"
    assert client.state("SELECT * FROM t") == "42P01"
    client.run("CREATE TABLE t (z int)")
    assert fails(client, "ALTER TABLE away.t SET SCHEMA home") == (
        "42P07", 'relation "t" already exists in schema "home"',
    )  # fmt: skip
    assert fails(client, "ALTER TABLE t SET SCHEMA nope") == ("3F000", 'schema "nope" does not exist')
    assert client.run("ALTER TABLE t OWNER TO CURRENT_USER") == "ALTER TABLE"
    assert client.run("ALTER MATERIALIZED VIEW v OWNER TO me") == "ALTER MATERIALIZED VIEW"
    assert fails(client, "ALTER TABLE t OWNER TO nobody") == ("42704", 'role "nobody" does not exist')
    client.run("DROP SCHEMA away CASCADE")


def test_taken_back_and_over_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT sum(b) AS s FROM t")
    client.run("BEGIN")
    client.run("ALTER TABLE t RENAME b TO c")
    client.run("ALTER TABLE t RENAME TO u")
    assert client.rows("SELECT c FROM u") == []
    client.run("ROLLBACK")
    assert client.rows("SELECT b FROM t") == []
    client.run("ALTER TABLE t RENAME b TO c")
    client.run("ALTER TABLE t RENAME TO u")
    client.run("INSERT INTO u VALUES (1, 5)")
    for _ in range(2):
        server.restart()
        client = server.client()
        assert client.rows("SELECT * FROM v") == [("5",)]
        assert client.rows("SELECT c FROM u") == [("5",)]
        assert client.rows("VERIFY MATERIALIZED VIEW v") == []
        assert definition(client, "v") == "SELECT sum(u.c) AS s FROM u;"
    server.close()


def test_a_view_that_gets_more_columns(client: Client) -> None:
    client.run("CREATE VIEW p AS SELECT a FROM t")
    client.run("CREATE VIEW q AS SELECT * FROM p")
    client.run("CREATE VIEW r AS SELECT a FROM p NATURAL JOIN t")
    before = client.sorted("SELECT * FROM q"), client.sorted("SELECT * FROM r")
    client.run("CREATE OR REPLACE VIEW p AS SELECT a, b + 1 AS b FROM t")
    assert (client.sorted("SELECT * FROM q"), client.sorted("SELECT * FROM r")) == before
    assert client.rows("SELECT b FROM p WHERE a = 1") == [("11",)]
    for view in ("p", "q", "r"):
        same_rows(client, view)
