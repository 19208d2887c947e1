"""CREATE, ALTER and DROP DOMAIN: what uses them, durability, the system catalogs. Values: ``answers/changing``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.errors import SqlError
from tests.support.sessions import Client, Server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("CREATE DOMAIN pos AS int DEFAULT 3 CHECK (VALUE > 0)")
    client.run("CREATE DOMAIN small AS pos NOT NULL CONSTRAINT below CHECK (VALUE < 100)")
    client.run("CREATE TABLE t (id int, p pos, s small)")
    client.run("INSERT INTO t VALUES (1, 5, 7), (2, NULL, 8)")
    yield client
    client.results("ROLLBACK")
    client.run("DROP TABLE IF EXISTS t CASCADE")
    client.run("DROP TYPE IF EXISTS dr CASCADE")
    client.run("DROP DOMAIN IF EXISTS small, pos CASCADE")
    client.close()


def _fails(client: Client, text: str, state: str, message: str = "") -> None:
    with pytest.raises(SqlError) as found:
        client.run(text)
    assert found.value.sqlstate == state, found.value
    assert message in found.value.message


def test_constraints_change_for_every_column(client: Client) -> None:
    message = 'column "p" of table "t" contains values that violate the new constraint'
    _fails(client, "ALTER DOMAIN pos ADD CONSTRAINT big CHECK (VALUE > 6)", "23514", message)
    client.run("ALTER DOMAIN pos ADD CONSTRAINT big CHECK (VALUE > 6) NOT VALID")
    _fails(client, "INSERT INTO t VALUES (3, 6, 7)", "23514", 'domain pos violates check constraint "big"')
    _fails(client, "INSERT INTO t VALUES (3, 7, 6)", "23514", 'domain small violates check constraint "big"')
    _fails(client, "ALTER DOMAIN pos VALIDATE CONSTRAINT big", "23514", message)
    client.run("UPDATE t SET p = 7 WHERE id = 1")
    client.run("ALTER DOMAIN pos VALIDATE CONSTRAINT big")
    client.run("ALTER DOMAIN pos RENAME CONSTRAINT big TO bigger")
    client.run("ALTER DOMAIN pos DROP CONSTRAINT bigger")
    _fails(client, "ALTER DOMAIN pos SET NOT NULL", "23502", 'column "p" of table "t" contains null values')
    client.run("INSERT INTO t VALUES (4, 1, 1)")
    client.run("DELETE FROM t WHERE p IS NULL")
    client.run("ALTER DOMAIN pos SET NOT NULL")
    _fails(client, "INSERT INTO t VALUES (3, NULL, 7)", "23502", "domain pos does not allow null values")
    client.run("ALTER DOMAIN pos DROP NOT NULL")
    client.run("ALTER DOMAIN pos SET DEFAULT 9")
    client.run("INSERT INTO t (id, s) VALUES (5, 5)")
    client.run("ALTER DOMAIN pos DROP DEFAULT")
    client.run("INSERT INTO t (id, s) VALUES (6, 5)")
    assert client.rows("SELECT id, p FROM t ORDER BY id") == [("1", "7"), ("4", "1"), ("5", "9"), ("6", None)]


def test_tables_change(client: Client) -> None:
    _fails(client, "ALTER TABLE t ADD COLUMN n small DEFAULT 100", "23514")
    client.run("ALTER TABLE t ADD COLUMN n small")
    assert client.rows("SELECT DISTINCT n FROM t") == [("3",)]
    _fails(client, "ALTER TABLE t ALTER COLUMN id TYPE pos USING id - 1", "23514")
    client.run("ALTER TABLE t ALTER COLUMN id TYPE small")
    _fails(client, "UPDATE t SET id = 0", "23514")
    client.run("ALTER TABLE t ALTER COLUMN id TYPE int")
    client.run("UPDATE t SET id = 0")
    client.run("BEGIN")
    client.run("ALTER DOMAIN small DROP CONSTRAINT below")
    client.run("INSERT INTO t VALUES (1, 1, 100)")
    client.run("ROLLBACK")
    _fails(client, "INSERT INTO t VALUES (1, 1, 100)", "23514")


def test_what_depends_on_a_domain(client: Client) -> None:
    client.run("CREATE VIEW v AS SELECT (id - 1)::pos AS x FROM t WHERE id > 1")
    assert client.rows("SELECT * FROM v") == [("1",)]
    for text in ("SELECT p::small FROM t", "SELECT * FROM v"):
        _fails(client, f"CREATE MATERIALIZED VIEW m AS {text}", "0A000", "in a materialized view")
    client.run("CREATE TABLE heir () INHERITS (t)")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT p, count(*) FROM t GROUP BY p")
    client.run("ALTER DOMAIN pos ADD CONSTRAINT big CHECK (VALUE > 4)")
    _fails(client, "SELECT * FROM v", "23514")
    _fails(client, "DROP DOMAIN pos", "2BP01", "cannot drop type pos because other objects depend on it")
    client.run("DROP DOMAIN pos CASCADE")
    assert client.rows("SELECT * FROM t ORDER BY id") == [("1",), ("2",)]
    assert client.rows("SELECT relname FROM pg_class WHERE relname IN ('v', 'm')") == []
    assert client.rows("SELECT typname FROM pg_type WHERE typtype = 'd' AND typname IN ('pos', 'small')") == []


def test_domains_elsewhere_are_refused(client: Client) -> None:
    client.run("CREATE TYPE dr AS (a pos, b int)")
    for text in (
        "CREATE TABLE n (x pos[])", "SELECT '{1}'::pos[]", "SELECT random()::int::pos",
        "SELECT '{}'::dr[]", "SELECT (random()::int, 1)::dr", "CREATE TABLE n (x dr[])",
        "CREATE MATERIALIZED VIEW m AS SELECT (id, p)::dr FROM t",
        "CREATE FUNCTION n(pos) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ):  # fmt: skip
        _fails(client, text, "0A000")


def test_domains_outlive_the_server(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE DOMAIN pos AS int DEFAULT 3 CHECK (VALUE > 0)")
    client.run("CREATE TABLE t (id int, p pos)")
    client.run("CREATE DOMAIN small AS pos NOT NULL CONSTRAINT below CHECK (VALUE < 100)")
    client.run("ALTER TABLE t ADD COLUMN s small")
    client.run("ALTER DOMAIN pos ADD CONSTRAINT odd CHECK (VALUE % 2 = 1)")
    client.run("CREATE SCHEMA away")
    client.run("CREATE DOMAIN away.far AS text")
    client.run("CREATE TABLE u (x away.far)")
    _fails(client, "DROP SCHEMA away CASCADE", "0A000")
    client.close()
    server.restart()
    client = server.client()
    client.run("INSERT INTO t (id) VALUES (1)")
    _fails(client, "INSERT INTO t VALUES (1, 2)", "23514", '"odd"')
    _fails(client, "INSERT INTO t VALUES (1, 1, 101)", "23514", '"below"')
    assert client.rows(
        "SELECT typname, typtype, typbasetype::regtype::text, typnotnull, typdefault FROM pg_type "
        "WHERE typname IN ('pos', 'small') ORDER BY 1"
    ) == [("pos", "d", "integer", "f", "3"), ("small", "d", "pos", "t", "3")]
    assert client.rows(
        "SELECT conname, contype, contypid::regtype::text, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE contypid <> 0 ORDER BY 1"
    ) == [
        ("below", "c", "small", "CHECK ((VALUE < 100))"), ("odd", "c", "pos", "CHECK ((VALUE % 2 = 1))"),
        ("pos_check", "c", "pos", "CHECK ((VALUE > 0))"),
    ]  # fmt: skip
    assert client.rows(
        "SELECT attname, atttypid::regtype::text, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = 't'::regclass AND attnum > 1 ORDER BY attnum"
    ) == [("p", "pos", "pos"), ("s", "small", "small")]
    server.close()
