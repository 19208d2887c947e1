"""CREATE, ALTER and DROP DOMAIN: what uses them, durability, the system catalogs. Values: ``answers/changing``."""

from __future__ import annotations

import random
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
    client.run("CREATE TABLE heir () INHERITS (t)")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT p, count(*) FROM t GROUP BY p")
    client.run("ALTER DOMAIN pos ADD CONSTRAINT big CHECK (VALUE > 4)")
    _fails(client, "SELECT * FROM v", "23514")
    _fails(client, "DROP DOMAIN pos", "2BP01", "cannot drop type pos because other objects depend on it")
    client.run("DROP DOMAIN pos CASCADE")
    assert client.rows("SELECT * FROM t ORDER BY id") == [("1",), ("2",)]
    assert client.rows("SELECT relname FROM pg_class WHERE relname IN ('v', 'm')") == []
    assert client.rows("SELECT typname FROM pg_type WHERE typtype = 'd' AND typname IN ('pos', 'small')") == []


@pytest.fixture
def typed(client: Client) -> Iterator[Client]:
    client.run("CREATE TYPE dr AS (a pos, b int)")
    client.run("CREATE DOMAIN several AS pos[] CHECK (cardinality(VALUE) < 4)")
    client.run("CREATE TABLE a (id serial, x pos[], y several, r dr[])")
    yield client
    client.run("DROP TABLE IF EXISTS a CASCADE")
    client.run("DROP DOMAIN several CASCADE")


def test_arrays_of_domains(typed: Client) -> None:
    """Each element is checked, where it is cast and where it is stored."""
    for text in (
        "INSERT INTO a (x) VALUES ('{1,-1}')", "INSERT INTO a (x) SELECT array_agg(n) FROM generate_series(0, 2) n",
        "INSERT INTO a (y) VALUES (ARRAY[1, -1])", "INSERT INTO a (r) VALUES ('{\"(-1,1)\"}')",
        "SELECT ARRAY[1, -1]::pos[]", "SELECT '{{1},{-1}}'::pos[]", "SELECT ARRAY[ROW(-1, 1)]::dr[]",
        "SELECT '{1,1,1,1}'::several", "INSERT INTO a (y) VALUES ('{1,1,1,1}')",
    ):  # fmt: skip
        _fails(typed, text, "23514")
    typed.run("INSERT INTO a (x, y, r) VALUES ('{1,NULL}', '{2,3}', '{\"(1,-1)\"}')")
    _fails(typed, "UPDATE a SET x[2] = -5", "23514")
    _fails(typed, "UPDATE a SET y = y || 0", "23514")
    _fails(typed, "UPDATE a SET r[1].a = -5", "23514")
    typed.run("UPDATE a SET x[2] = 5, y = y || 1")
    assert typed.rows("SELECT x, y, r FROM a") == [("{1,5}", "{2,3,1}", '{"(1,-1)"}')]
    message = 'cannot alter type "pos" because column "a.'
    _fails(typed, "ALTER DOMAIN pos ADD CONSTRAINT big CHECK (VALUE > 4)", "0A000", message)
    _fails(typed, "DROP DOMAIN pos", "2BP01")
    _fails(typed, "CREATE TABLE n (x several[])", "0A000")


def test_names_of_domains(typed: Client) -> None:
    """pg_typeof, the columns of views and of CREATE TABLE AS, and the system catalogs."""
    typed.run("CREATE VIEW v AS SELECT p, p + 1 AS n, ARRAY[p] AS xs, id::small AS s FROM t")
    typed.run("CREATE TABLE c AS SELECT * FROM v LIMIT 0")
    for name in ("v", "c"):
        assert typed.rows(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            f"WHERE attrelid = '{name}'::regclass AND attnum > 0 ORDER BY attnum"
        ) == [("p", "pos"), ("n", "integer"), ("xs", "pos[]"), ("s", "small")]
    _fails(typed, "INSERT INTO c VALUES (0, 0, '{}', 1)", "23514")
    _fails(typed, "INSERT INTO c VALUES (1, 0, '{0}', 1)", "23514")
    typed.run("DROP TABLE c")
    assert typed.rows(
        "SELECT pg_typeof(p)::text, pg_typeof(p + 1)::text, pg_typeof(COALESCE(p, 1))::text, "
        "pg_typeof(COALESCE(p, p))::text, pg_typeof(ARRAY[p])::text, 'pos[]'::regtype::text, '_pos'::regtype::text "
        "FROM t LIMIT 1"
    ) == [("pos", "integer", "integer", "pos", "pos[]", "pos[]", "pos[]")]
    assert typed.rows("SELECT domain_name, data_type, udt_name FROM information_schema.domains ORDER BY 1") == [
        ("pos", "integer", "int4"),
        ("several", "USER-DEFINED", "_pos"),
        ("small", "USER-DEFINED", "pos"),
    ]
    assert typed.rows(
        "SELECT domain_name, constraint_name FROM information_schema.domain_constraints ORDER BY 1, 2"
    ) == [("pos", "pos_check"), ("several", "several_check"), ("small", "below")]
    assert typed.rows(
        "SELECT column_name, data_type, udt_name, domain_name FROM information_schema.columns "
        "WHERE table_name = 'a' AND column_name IN ('x', 'y') ORDER BY 1"
    ) == [("x", "ARRAY", "_pos", None), ("y", "ARRAY", "_pos", "several")]


def test_functions_of_domains(typed: Client) -> None:
    """Arguments are checked, and so is what a function returns."""
    typed.run("CREATE FUNCTION f(x pos) RETURNS pos LANGUAGE sql AS 'SELECT x - 5'")
    typed.run("CREATE FUNCTION g(x int) RETURNS pos LANGUAGE plpgsql AS 'BEGIN RETURN x - 5; END'")
    typed.run("CREATE FUNCTION h(x pos) RETURNS int LANGUAGE plpgsql AS 'BEGIN x := x - 5; RETURN x; END'")
    typed.run("CREATE FUNCTION o(x int, OUT y pos) LANGUAGE plpgsql AS 'BEGIN y := x; END'")
    typed.run("CREATE FUNCTION s(x int) RETURNS SETOF pos LANGUAGE sql AS 'SELECT x UNION ALL SELECT x - 1'")
    typed.run("CREATE FUNCTION l(x pos[]) RETURNS pos[] LANGUAGE sql AS 'SELECT x || 1'")
    try:
        assert typed.rows("SELECT f(7), g(9), h(9), o(3), l('{4}'), f(NULL)") == [("2", "4", "4", "3", "{4,1}", None)]
        assert typed.rows("SELECT * FROM s(2) ORDER BY 1") == [("1",), ("2",)]
        for call in ("f(5)", "f(-7)", "g(5)", "h(5)", "h(-5)", "o(0)", "l('{0}')", "s(1)"):
            _fails(typed, f"SELECT * FROM {call}", "23514", "domain pos violates")
        _fails(typed, "DROP DOMAIN pos", "2BP01", "cannot drop type pos")
    finally:
        typed.run("DROP FUNCTION f, g, h, o, s, l")


def test_domains_do_not_spread(typed: Client) -> None:
    """What a call over a domain resolves to is not taken for one over its base type."""
    assert typed.rows("SELECT x || 7, array_agg(x[1]) FROM (VALUES ('{1}'::pos[])) v(x) GROUP BY x") == [
        ("{1,7}", "{1}")
    ]
    assert typed.rows("SELECT x || -7, array_agg(x[1]) FROM (VALUES ('{-1}'::int[])) v(x) GROUP BY x") == [
        ("{-1,-7}", "{-1}")
    ]
    assert typed.rows("SELECT ROW(1::pos, 2) = ROW(-1, 2), COALESCE(1::pos, -1), GREATEST(-2, NULL::pos)") == [
        ("f", "1", "-2")
    ]
    assert typed.rows("SELECT 1::pos UNION SELECT -1 ORDER BY 1") == [("-1",), ("1",)]


def test_volatile_values_of_domains(typed: Client) -> None:
    """The value that is checked is the one that is used."""
    typed.run("CREATE SEQUENCE q")
    try:
        assert typed.rows("SELECT nextval('q')::int::pos FROM generate_series(1, 3)") == [("1",), ("2",), ("3",)]
        assert typed.rows("SELECT (nextval('q')::int, 1)::dr") == [("(4,1)",)]
        typed.run("CREATE DOMAIN given AS int DEFAULT nextval('q')")
        typed.run("CREATE TABLE n (x given, y int)")
        typed.run("INSERT INTO n (y) VALUES (1), (2)")
        # on a crowded machine another thread may have begun it anew, with later numbers
        assert typed.rows("SELECT x - min(x) OVER (), y FROM n ORDER BY y") == [("0", "1"), ("1", "2")]
    finally:
        typed.run("DROP TABLE IF EXISTS n")
        typed.run("DROP DOMAIN IF EXISTS given")
        typed.run("DROP SEQUENCE q")


def test_maintained_views_cast_to_domains(typed: Client) -> None:
    """A value outside of a domain is an error of its row, as long as the row is there."""
    typed.run("CREATE TABLE n (x int, k int)")
    typed.run("INSERT INTO n VALUES (1, 1), (2, 1), (2, 2), (NULL, 2)")
    views = (
        "SELECT x, x::pos AS p FROM n", "SELECT k, array_agg(x)::pos[] AS xs FROM n GROUP BY k",
        "SELECT ROW(x, k)::dr AS r, count(*) FROM n GROUP BY 1", "SELECT n.k FROM n JOIN t ON n.x::small = t.s",
        "SELECT pg_typeof(x::pos) AS t, sum(x::pos) AS s FROM n GROUP BY 1",
    )  # fmt: skip
    for i, view in enumerate(views):
        typed.run(f"CREATE MATERIALIZED VIEW m{i} AS {view.replace('n.x::small', 'coalesce(n.x, 1)::small')}")
    rnd = random.Random(3)
    for _ in range(25):
        x, k = rnd.choice(("NULL", "1", "2", "7", "7")), rnd.choice("12")
        change = rnd.choice((
            f"INSERT INTO n VALUES ({x}, {k})", f"DELETE FROM n WHERE x = {x}", f"UPDATE n SET x = {x} WHERE k = {k}",
            f"UPDATE n SET x = x + 1 WHERE x < 5 AND k = {k}",
        ))  # fmt: skip
        typed.run(change)
        for i in range(len(views)):
            assert typed.rows(f"VERIFY MATERIALIZED VIEW m{i}") == [], (change, views[i])
    typed.run("INSERT INTO n VALUES (-1, 3)")
    found = typed.rows("SELECT view, sqlstate FROM freshet.view_errors ORDER BY 1")
    assert found == [(f"m{i}", "23514") for i in range(5)]
    typed.run("DELETE FROM n WHERE x = -1")
    assert typed.rows("SELECT count(*) FROM freshet.view_errors") == [("0",)]
    for i in range(len(views)):
        assert typed.rows(f"VERIFY MATERIALIZED VIEW m{i}") == []
    _fails(typed, "ALTER DOMAIN pos DROP CONSTRAINT pos_check", "0A000", "that materialized view m")
    typed.run("DROP TABLE n CASCADE")


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
    client.run("CREATE TABLE a (x pos[])")
    client.run("CREATE FUNCTION f(x pos) RETURNS pos LANGUAGE sql AS 'SELECT x - 1'")
    client.run("ALTER DOMAIN pos RENAME CONSTRAINT odd TO uneven")
    _fails(client, "DROP SCHEMA away CASCADE", "0A000")
    client.close()
    server.restart()
    client = server.client()
    client.run("INSERT INTO t (id) VALUES (1)")
    _fails(client, "INSERT INTO t VALUES (1, 2)", "23514", '"uneven"')
    _fails(client, "INSERT INTO a VALUES ('{1,2}')", "23514", '"uneven"')
    _fails(client, "SELECT f(2)", "23514", '"uneven"')
    assert client.rows("SELECT pg_typeof(x)::text FROM (VALUES ('{1}'::pos[])) a(x)") == [("pos[]",)]
    _fails(client, "INSERT INTO t VALUES (1, 1, 101)", "23514", '"below"')
    assert client.rows(
        "SELECT typname, typtype, typbasetype::regtype::text, typnotnull, typdefault FROM pg_type "
        "WHERE typname IN ('pos', 'small') ORDER BY 1"
    ) == [("pos", "d", "integer", "f", "3"), ("small", "d", "pos", "t", "3")]
    assert client.rows(
        "SELECT conname, contype, contypid::regtype::text, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE contypid <> 0 ORDER BY 1"
    ) == [
        ("below", "c", "small", "CHECK ((VALUE < 100))"), ("pos_check", "c", "pos", "CHECK ((VALUE > 0))"),
        ("uneven", "c", "pos", "CHECK (((VALUE % 2) = 1))"),
    ]  # fmt: skip
    assert client.rows(
        "SELECT attname, atttypid::regtype::text, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = 't'::regclass AND attnum > 1 ORDER BY attnum"
    ) == [("p", "pos", "pos"), ("s", "small", "small")]
    server.close()
