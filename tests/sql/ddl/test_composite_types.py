"""CREATE, ALTER and DROP TYPE of composite types: what uses them, durability, the wire, the system catalogs."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.errors import SqlError
from ivm.words import INT4, TEXT, Kind, SqlType
from sql.pgwire.binary import decode_binary, encode_binary
from storage.types.arrays import Row
from tests.support.sessions import Client, Server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("CREATE TYPE pt AS (x int, y text)")
    client.run("CREATE TYPE seg AS (a pt, b pt)")
    client.run("CREATE TABLE t (id int, g seg, ps pt[])")
    client.run("INSERT INTO t VALUES (1, ROW(ROW(1, 'a'), ROW(2, 'b')), ARRAY[ROW(3, 'c'), NULL]::pt[])")
    client.run("INSERT INTO t VALUES (2, NULL, NULL)")
    client.run("CREATE TABLE u (r t)")
    client.run("INSERT INTO u SELECT t FROM t")
    yield client
    client.results("ROLLBACK")
    client.run("DROP TABLE IF EXISTS u, t CASCADE")
    client.run("DROP TYPE IF EXISTS seg, pt CASCADE")
    client.close()


def _fails(client: Client, text: str, state: str) -> None:
    with pytest.raises(SqlError) as found:
        client.run(text)
    assert found.value.sqlstate == state, found.value


def test_attributes_change_wherever_rows_are_stored(client: Client) -> None:
    client.run("ALTER TYPE pt ADD ATTRIBUTE z numeric, DROP ATTRIBUTE y")
    assert client.rows("SELECT * FROM t ORDER BY id") == [
        ("1", '("(1,)","(2,)")', '{"(3,)",NULL}'), ("2", None, None)
    ]  # fmt: skip
    assert client.rows("SELECT r FROM u ORDER BY (r).id") == [
        ('(1,"(""(1,)"",""(2,)"")","{""(3,)"",NULL}")',), ("(2,,)",)
    ]  # fmt: skip
    client.run("ALTER TYPE pt RENAME ATTRIBUTE x TO w")
    client.run("UPDATE t SET g.a.z = (g).a.w + 0.5")
    assert client.rows("SELECT (g).a.z, (ps[1]).w FROM t WHERE id = 1") == [("1.5", "3")]
    _fails(client, "ALTER TYPE pt ALTER ATTRIBUTE w TYPE text", "0A000")
    _fails(client, "ALTER TYPE pt ADD ATTRIBUTE s seg", "42P16")
    client.run("CREATE FUNCTION first_of(t) RETURNS int LANGUAGE sql AS 'SELECT $1.id'")
    client.run("ALTER TABLE t DROP COLUMN ps, ADD COLUMN more int")
    assert client.rows("SELECT t.first_of FROM t ORDER BY 1") == [("1",), ("2",)]
    assert client.rows("SELECT (r).more, ((r).g).b FROM u ORDER BY (r).id") == [(None, "(2,)"), (None, None)]


def test_a_view_keeps_its_type(client: Client) -> None:
    client.run("CREATE MATERIALIZED VIEW v AS SELECT (g).a AS p, count(*) FROM t GROUP BY 1")
    for text in ("ADD ATTRIBUTE z int", "DROP ATTRIBUTE y", "RENAME ATTRIBUTE x TO w"):
        _fails(client, f"ALTER TYPE pt {text}", "0A000")
    client.run("INSERT INTO t VALUES (3, ROW(ROW(1, 'a'), NULL))")
    assert client.sorted("SELECT * FROM v") == [("(1,a)", "2"), (None, "1")]
    client.run("DROP MATERIALIZED VIEW v")


def test_drop(client: Client) -> None:
    _fails(client, "DROP TYPE pt", "2BP01")
    _fails(client, "DROP TYPE t", "2BP01")
    _fails(client, "DROP TABLE t", "2BP01")
    client.run("DROP TYPE pt CASCADE")
    assert client.rows("SELECT * FROM t ORDER BY id") == [("1", "()"), ("2", None)]
    client.run("DROP TABLE u, t")
    client.run("DROP TYPE seg")
    _fails(client, "SELECT NULL::seg", "42704")


def test_restart(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TYPE outer_type AS (n int)")
    client.run("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    client.run("CREATE TYPE inner_type AS (m mood, d numeric(5,2))")
    client.run("ALTER TYPE outer_type ADD ATTRIBUTE i inner_type")
    client.run("CREATE TABLE t (id int, o outer_type, a inner_type[])")
    client.run("INSERT INTO t VALUES (1, ROW(1, ROW('ok', 1.005)), ARRAY[ROW('sad', 2)]::inner_type[])")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT (o).i, t AS whole FROM t")
    client.run("CREATE FUNCTION f(outer_type) RETURNS int LANGUAGE sql AS 'SELECT $1.n'")
    server.restart()
    client = server.client()
    rows = [('(1,"(1,""(ok,1.01)"")","{""(sad,2.00)""}")', "(ok,1.01)")]
    assert client.rows("SELECT whole, i FROM v") == rows
    client.run("UPDATE t SET o.i.m = 'sad', a[1].d = 7")
    assert client.rows("SELECT whole, f((whole).o) FROM v") == [('(1,"(1,""(sad,1.01)"")","{""(sad,7.00)""}")', "1")]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    server.close()


def test_system_catalogs(client: Client) -> None:
    assert client.rows(
        "SELECT attname, atttypid::regtype::text, attnum FROM pg_attribute WHERE attrelid = 'seg'::regclass"
    ) == [("a", "pt", "1"), ("b", "pt", "2")]
    text = "SELECT typname, typtype, typcategory, typrelid::regclass::text, typarray::regtype::text FROM pg_type "
    assert client.rows(text + "WHERE typname IN ('pt', 't') ORDER BY 1") == [
        ("pt", "c", "C", "pt", "pt[]"), ("t", "c", "C", "t", "t[]"),
    ]  # fmt: skip
    assert client.rows("SELECT relkind, reltype = 'pt'::regtype FROM pg_class WHERE relname = 'pt'") == [("c", "t")]
    assert client.rows("SELECT pg_typeof(r)::text, pg_typeof((r).ps)::text FROM u LIMIT 1") == [("t", "pt[]")]


def test_binary_form() -> None:
    type_ = SqlType(Kind.RECORD, fields=(("x", INT4), ("y", TEXT)))
    data = encode_binary(type_, Row((1, None)))
    assert data == struct.pack("!iIiiIi", 2, 23, 4, 1, 25, -1)
    assert decode_binary(type_, data) == (1, None)
    for wrong in (data + b"\0", data[:-1], struct.pack("!i", 1), data.replace(struct.pack("!I", 23), b"\0\0\0\x14")):
        with pytest.raises(SqlError):
            decode_binary(type_, wrong)


def test_range_types(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TYPE pt AS (x int, y int)")
    client.run("CREATE TYPE span AS RANGE (subtype = pt)")
    client.run("CREATE TABLE t (s span, m span_multirange)")
    client.run('INSERT INTO t VALUES (span(ROW(1, 2), ROW(3, 4)), \'{["(0,0)","(0,1)"]}\')')
    client.run("CREATE MATERIALIZED VIEW v AS SELECT s, s @> ROW(2, 0)::pt AS inside FROM t")
    server.restart()
    client = server.client()
    client.run("UPDATE t SET s = span(ROW(2, 9), NULL)")
    assert client.rows("SELECT * FROM v") == [('["(2,9)",)', "f")]
    text = "SELECT typname, typtype FROM pg_type WHERE typname LIKE 'span%' ORDER BY 1"
    assert client.rows(text) == [("span", "r"), ("span_multirange", "m")]
    _fails(client, "DROP TYPE pt", "2BP01")
    _fails(client, "DROP TYPE span", "2BP01")
    client.run("DROP TYPE pt CASCADE")
    assert client.rows("SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass") == []
    server.close()


def test_nothing_outlives_its_types(tmp_path: Path) -> None:
    """The catalog could not be read again."""
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TEMPORARY TABLE tt (a int)")
    client.run("CREATE FUNCTION of_temporary(tt) RETURNS int LANGUAGE sql AS 'SELECT $1.a'")
    for text in ("CREATE TABLE n (x tt)", "CREATE TYPE n AS (x tt[])"):
        _fails(client, text, "0A000")
    client.run("CREATE TYPE mood AS ENUM ('ok')")
    client.run("CREATE FUNCTION of_mood(mood) RETURNS int LANGUAGE sql AS 'SELECT 1'")
    _fails(client, "DROP TYPE mood", "2BP01")
    client.run("CREATE TABLE base (a int, b text)")
    client.run("CREATE VIEW v AS SELECT a FROM base")
    client.run("CREATE TABLE holder (r v)")
    client.run("INSERT INTO holder VALUES (ROW(7))")
    _fails(client, "CREATE OR REPLACE VIEW v AS SELECT a, b FROM base", "0A000")
    _fails(client, "DROP TABLE base CASCADE", "2BP01")
    client.run("CREATE SCHEMA s")
    client.run("CREATE TABLE s.t (a int)")
    client.run("CREATE TABLE other (r s.t)")
    _fails(client, "DROP SCHEMA s CASCADE", "2BP01")
    client.run("DROP TYPE mood CASCADE")
    client.close()
    server.restart()
    client = server.client()
    assert client.rows("SELECT (r).a FROM holder") == [("7",)]
    assert client.rows("SELECT proname FROM pg_proc WHERE proname IN ('of_temporary', 'of_mood')") == []
    server.close()
