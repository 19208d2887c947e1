"""CREATE AGGREGATE … LANGUAGE python: results, errors, work, names, restarts."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from ivm.errors import SqlError
from tests.programs.user_aggregates import play
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

GEOMEAN = """geomean(double precision) RETURNS double precision LANGUAGE python AS $$
import math

def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))
$$"""
SPY = "spied_on_by_tests"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, python=True)
    yield server
    server.close()


@pytest.fixture
def client(server: Server) -> Client:
    return filled(server)


@pytest.fixture(scope="module")
def everyones(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    server = Server(tmp_path_factory.mktemp("shared"), python=True)
    yield filled(server)
    server.close()


@pytest.fixture
def shared(everyones: Client) -> Iterator[Client]:
    """A client whose aggregates, except geomean, are dropped after each test."""
    yield everyones
    signature = "proname || '(' || pg_get_function_arguments(oid) || ')'"
    found = everyones.rows(
        f"SELECT {signature} FROM pg_proc WHERE prokind = 'a' AND oid >= 16384 AND proname <> 'geomean'"
    )
    for (name,) in found:
        everyones.run(f"DROP AGGREGATE {name}")


def filled(server: Server) -> Client:
    client = server.client()
    client.run("CREATE TABLE t (g int, x float8)")
    client.run("INSERT INTO t VALUES (1, 1), (1, 4), (1, NULL), (2, 9), (3, NULL), (NULL, 5)")
    client.run(f"CREATE AGGREGATE {GEOMEAN}")
    return client


@pytest.fixture
def spy() -> Iterator[ModuleType]:
    """A module that bodies import to record what they see."""
    module = ModuleType(SPY)
    module.__dict__.update(seen=[], started=threading.Event(), gate=threading.Event())
    sys.modules[SPY] = module
    yield module
    del sys.modules[SPY]


def near(value: str | None) -> float | None:
    return None if value is None else round(float(value), 9)


def test_random_histories(server: Server) -> None:
    for seed in range(scaled(5)):
        play(server, seed)


def test_everywhere_in_a_query(client: Client) -> None:
    assert [near(r[0]) for r in client.rows("SELECT geomean(x) FROM t")] == [near(str(180**0.25))]
    rows = client.rows("SELECT g, geomean(x) FROM t GROUP BY g HAVING geomean(x) > 2 OR geomean(x) IS NULL ORDER BY g")
    assert [(k, near(v)) for k, v in rows] == [("2", 9.0), ("3", None), (None, 5.0)]
    assert client.rows("SELECT geomean(x) FROM t WHERE g > 99") == [(None,)]
    assert client.rows("SELECT geomean(2), geomean('1'), public.geomean(1::numeric(4,1))")[0][1:] == ("1", "1")
    (row,) = client.rows("SELECT count(*), geomean(DISTINCT g), geomean(x) FILTER (WHERE g = 1), sum(g) FROM t")
    assert (row[0], near(row[1]), near(row[2]), row[3]) == ("6", near(str(6 ** (1 / 3))), 2.0, "8")
    joined = "SELECT a.g, geomean(b.x) FROM t a LEFT JOIN t b ON a.g = b.g AND b.x > 1 GROUP BY a.g ORDER BY 1"
    assert [(k, near(v)) for k, v in client.rows(joined)] == [("1", 4.0), ("2", 9.0), ("3", None), (None, None)]
    outer = "SELECT g, (SELECT geomean(i.x) FROM t i WHERE i.g = o.g) FROM t o WHERE g = 1"
    assert {(k, near(v)) for k, v in client.rows(outer)} == {("1", 2.0)}


def test_an_error_of_a_group_heals(client: Client) -> None:
    client.run("CREATE MATERIALIZED VIEW v AS SELECT g, geomean(x) FROM t GROUP BY g")
    client.run("INSERT INTO t VALUES (2, -1)")
    error = client.error("SELECT * FROM v")
    assert (error.sqlstate, error.detail) == ("38000", "In line 5 of its body.")
    assert error.message.startswith("aggregate geomean(double precision) failed: ValueError: math domain error")
    assert client.rows("SELECT view, sqlstate FROM freshet.view_errors") == [("v", "38000")]
    client.server.restart()
    client = client.server.client()
    assert client.state("SELECT * FROM v") == "38000"
    client.run("UPDATE t SET x = 4 WHERE x = -1")
    assert [(k, near(v)) for k, v in client.sorted("SELECT * FROM v")] == [
        ("1", 2.0), ("2", 6.0), ("3", None), (None, 5.0),
    ]  # fmt: skip
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


def test_only_touched_groups_are_asked(client: Client, spy: ModuleType) -> None:
    client.run(
        f"CREATE AGGREGATE spied(int) RETURNS int LANGUAGE python AS $$\nimport {SPY}\n"
        f"def spied(values):\n    {SPY}.seen.append(list(values))\n    return len(values) $$"
    )
    client.run("CREATE TABLE many AS SELECT i % 1000 AS g, i AS x FROM generate_series(1, 5000) i")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT g, spied(x) FROM many GROUP BY g")
    assert len(spy.seen) == 1000
    spy.seen.clear()
    client.run("INSERT INTO many VALUES (7, 1), (7, NULL)")
    before = [7, 1007, 2007, 3007, 4007]
    assert sorted(spy.seen) == [[1, *before], before]
    spy.seen.clear()
    client.run("DELETE FROM many WHERE g = 8")
    assert spy.seen == [[8, 1008, 2008, 3008, 4008]]
    assert client.rows("SELECT * FROM v WHERE g IN (7, 8)") == [("7", "6")]


def test_it_is_cancelled_between_groups(client: Client, spy: ModuleType) -> None:
    client.run(
        f"CREATE AGGREGATE waits(int) RETURNS int LANGUAGE python AS $$\nimport {SPY} as spy\n"
        "def waits(values):\n    spy.seen.append(values)\n    spy.started.set()\n    spy.gate.wait(60)\n    return 1 $$"
    )
    for text in (
        "SELECT g, waits(g) FROM t GROUP BY g",
        "CREATE MATERIALIZED VIEW w AS SELECT waits(g) FROM t GROUP BY g",
    ):
        running = client.server.start(client.work(text))
        assert spy.started.wait(60)
        client.server.run(client.session.cancel())
        spy.gate.set()
        with pytest.raises(SqlError) as caught:
            running.result(60)
        assert caught.value.sqlstate == "57014"
        assert len(spy.seen) == 1
        spy.seen.clear()
        spy.started.clear()
        spy.gate.clear()
    assert client.rows("SELECT count(*) FROM t") == [("6",)]


@pytest.mark.parametrize(("type_", "literal", "python"), [
    ("boolean", "t", "bool"), ("smallint", "-3", "int"), ("integer", "7", "int"), ("bigint", f"{2**63 - 1}", "int"),
    ("real", "0.1", "float"), ("double precision", "NaN", "float"), ("numeric", "1.50", "Decimal"),
    ("text", "grün", "str"), ("varchar", "x", "str"), ("bytea", "\\x00ff", "bytes"), ("date", "2024-02-29", "date"),
    ("time", "23:59:59.999999", "time"), ("timestamp", "1999-12-31 23:59:59.5", "datetime"),
    ("timestamptz", "2024-02-29 12:00:00+00", "datetime"), ("interval", "-1 days +02:03:04", "timedelta"),
    ("uuid", "01234567-89ab-cdef-0123-456789abcdef", "UUID"), ("int[]", "{1,NULL,3}", "tuple"),
    ("date[]", "{2024-02-29,NULL}", "tuple"),
])  # fmt: skip
def test_types_come_and_go(shared: Client, type_: str, literal: str, python: str) -> None:
    client = shared
    client.run(f"CREATE AGGREGATE same({type_}) RETURNS {type_} LANGUAGE python AS $$ def same(v): return v[0] $$")
    client.run(
        f"CREATE AGGREGATE kind({type_}) RETURNS text LANGUAGE python AS $$ def kind(v): return type(v[0]).__name__ $$"
    )
    assert client.rows(f"SELECT same(v), kind(v) FROM (SELECT '{literal}'::{type_} AS v) q") == [(literal, python)]


@pytest.mark.parametrize(("returns", "value", "state"), [
    ("int", "'7'", "22P02"), ("int", "1.0", "22P02"), ("int", "True", "22P02"), ("int", "2 ** 31", "22003"),
    ("smallint", "-32769", "22003"), ("real", "1e39", "22003"), ("float8", "10 ** 400", "22003"),
    ("float8", "'NaN'", "22P02"), ("numeric", "0.5", "22P02"), ("boolean", "1", "22P02"), ("text", "b'x'", "22P02"),
    ("text", "'a' + chr(0)", "22003"), ("text", "chr(0xD800)", "22003"), ("date", "'2024-01-01'", "22P02"),
    ("int[]", "[1, 'a']", "22P02"), ("int", "print", "22P02"), ("int", "(yield)", "22P02"), ("int", "1 // 0", "38000"),
    ("int", "no_such_name", "38000"), ("int", "exit(3)", "38000"), ("int", "v[99]", "38000"),
])  # fmt: skip
def test_what_is_no_value_is_an_error(shared: Client, returns: str, value: str, state: str) -> None:
    shared.run(f"CREATE AGGREGATE bad(int) RETURNS {returns} LANGUAGE python AS $$ def bad(v): return {value} $$")
    error = shared.error("SELECT bad(g) FROM t")
    assert (error.sqlstate, "aggregate bad(integer)" in error.message) == (state, True)
    assert shared.rows("SELECT count(*) FROM t") == [("6",)]


@pytest.mark.parametrize(("type_", "literal"), [
    ("date", "infinity"), ("date", "10000-01-01"), ("timestamp", "-infinity"), ("timestamptz", "0044-03-15 BC"),
    ("interval", "1 mon"), ("time", "24:00"),
])  # fmt: skip
def test_what_python_cannot_say_is_an_error(shared: Client, type_: str, literal: str) -> None:
    client = shared
    client.run(f"CREATE AGGREGATE seen({type_}) RETURNS int LANGUAGE python AS $$ def seen(v): return 1 $$")
    assert client.state(f"SELECT seen('{literal}'::{type_})") == "22008"


@pytest.mark.parametrize(("rest", "state", "words"), [
    ("(int) RETURNS int LANGUAGE python AS $$\n\ndef f(v) return 1 $$", "42601", "at line 3"),
    ("(int) RETURNS int LANGUAGE python AS $$ def g(v): return 1 $$", "42P13", 'no function "f"'),
    ("(int) RETURNS int LANGUAGE python AS $$ def f(v, w): return 1 $$", "42P13", "with 1 lists"),
    ("(int, int) RETURNS int LANGUAGE python AS $$ def f(v): return 1 $$", "42P13", "with 2 lists"),
    ("(int) RETURNS int LANGUAGE python AS $$\ndef f(v): return 1\nwhile True: pass $$", "42P13", "line 3"),
    ("(int) RETURNS int LANGUAGE python AS $$\nimport no_such_module\ndef f(v): return 1 $$", "38000", "no_such"),
    ("(int) RETURNS int LANGUAGE python", "42P13", "no function body"),
    ("(int) LANGUAGE python AS $$ def f(v): return 1 $$", "42P13", "result type"),
    ("(int) RETURNS int AS $$ def f(v): return 1 $$", "42P13", "no language"),
    ("(int) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$", "0A000", "LANGUAGE sql"),
    ("(int) RETURNS SETOF int LANGUAGE python AS $$ def f(v): return 1 $$", "42P13", "sets"),
    ("(jsonb) RETURNS int LANGUAGE python AS $$ def f(v): return 1 $$", "0A000", "jsonb"),
    ("(nothing) RETURNS int LANGUAGE python AS $$ def f(v): return 1 $$", "42704", "nothing"),
    ("(int DEFAULT 1) RETURNS int LANGUAGE python AS $$ def f(v): return 1 $$", "42P13", "default"),
    ("(*) RETURNS int LANGUAGE python AS $$ def f(): return 1 $$", "0A000", "without arguments"),
    ("(int) RETURNS int VOLATILE LANGUAGE python AS $$ def f(v): return 1 $$", "0A000", "volatile"),
])  # fmt: skip
def test_what_is_no_aggregate_is_refused(shared: Client, rest: str, state: str, words: str) -> None:
    error = shared.error(f"CREATE AGGREGATE f{rest}")
    assert (error.sqlstate, words in error.message) == (state, True), error.message
    assert shared.state("DROP AGGREGATE f(int)") == "42883"


@pytest.mark.parametrize(("text", "state"), [
    ("SELECT geomean(geomean(x)) FROM t", "42803"), ("SELECT geomean(sum(x)) FROM t", "42803"),
    ("SELECT sum(geomean(x)) FROM t", "42803"), ("SELECT 1 FROM t WHERE geomean(x) > 1", "42803"),
    ("SELECT * FROM geomean(1)", "42803"), ("SELECT geomean(x) IGNORE NULLS OVER () FROM t", "0A000"),
    ("SELECT geomean(*) FROM t", "42883"), ("SELECT geomean('a'::text)", "42883"), ("SELECT geomean(1, 2)", "42883"),
    ("SELECT g, geomean(x) FROM t", "42803"),
    (f"CREATE AGGREGATE {GEOMEAN}", "42723"), ("DROP FUNCTION geomean(float8)", "42809"),
    ("DROP AGGREGATE geomean", "42601"), ("DROP AGGREGATE geomean(int)", "42883"),
    ("CREATE OR REPLACE FUNCTION geomean(float8) RETURNS float8 LANGUAGE sql RETURN 1.0", "42809"),
    (f"CREATE OR REPLACE AGGREGATE {GEOMEAN.replace('RETURNS double precision', 'RETURNS int')}", "42P13"),
    ("SELECT pg_get_functiondef('geomean'::regproc)", "42809"),
])  # fmt: skip
def test_misuse(shared: Client, text: str, state: str) -> None:
    assert shared.state(text) == state


def test_names_and_overloads(client: Client) -> None:
    client.run("CREATE AGGREGATE sum(float8) RETURNS float8 LANGUAGE python AS $$ def sum(v): return 42.0 $$")
    assert client.rows("SELECT sum(x), public.sum(x) FROM t") == [("19", "42")]
    client.run("CREATE SCHEMA s")
    client.run("CREATE AGGREGATE s.pick(int) RETURNS text LANGUAGE python AS $$ def pick(v): return 'int' $$")
    client.run("CREATE AGGREGATE s.pick(text) RETURNS text LANGUAGE python AS $$ def pick(v): return 'text' $$")
    client.run("CREATE FUNCTION s.pick(boolean) RETURNS text LANGUAGE sql RETURN 'function'")
    assert client.rows("SELECT s.pick(g), s.pick(g::text) FROM t") == [("int", "text")]
    assert client.rows("SELECT s.pick(true)") == [("function",)]
    assert client.state("SELECT s.pick(DISTINCT true)") == "42809"
    assert client.state("DROP AGGREGATE s.pick(boolean)") == "42809"
    client.run("CREATE VIEW p AS SELECT s.pick(g) FROM t")
    assert client.rows("SELECT pg_get_viewdef('p'::regclass)") == [(" SELECT s.pick(t.g) AS pick\n   FROM t;",)]
    assert client.state("DROP SCHEMA s") == "2BP01"
    client.run("DROP SCHEMA s CASCADE")
    assert client.state("SELECT * FROM p") == "42P01"


def test_views_hold_their_aggregates(client: Client, server: Server) -> None:
    client.run("CREATE MATERIALIZED VIEW v AS SELECT g, geomean(x) FROM t GROUP BY g")
    error = client.error("DROP AGGREGATE geomean(float8)")
    assert (error.sqlstate, "materialized view v depends on" in (error.detail or "")) == ("2BP01", True)
    assert client.state(f"CREATE OR REPLACE AGGREGATE {GEOMEAN}") == "0A000"
    server.restart()
    client = server.client()
    client.run("INSERT INTO t VALUES (2, 4)")
    assert [near(v) for _, v in client.rows("SELECT * FROM v WHERE g = 2")] == [6.0]
    assert client.run("DROP AGGREGATE geomean(float8) CASCADE") == "DROP AGGREGATE"
    assert client.state("SELECT * FROM v") == "42P01"
    assert client.run("DROP AGGREGATE IF EXISTS geomean(float8)") == "DROP AGGREGATE"
    assert [n.message for n in client.notices()][-1] == "aggregate geomean(double precision) does not exist, skipping"


def test_the_catalog_shows_it(client: Client) -> None:
    shown = "SELECT proname, prokind, lanname, provolatile, proisstrict, pg_get_function_result(p.oid), "
    shown += "pg_get_function_arguments(p.oid), prosrc LIKE '%math.exp%' FROM pg_proc p JOIN pg_language l "
    shown += "ON l.oid = p.prolang WHERE proname = 'geomean'"
    double = "double precision"
    assert client.rows(shown) == [("geomean", "a", "python", "i", "t", double, double, "t")]
    assert client.rows("SELECT aggkind FROM pg_aggregate WHERE aggfnoid::oid >= 16384") == [("n",)]
    plan = "\n".join(r[0] or "" for r in client.rows("EXPLAIN SELECT g, geomean(x) FROM t GROUP BY g"))
    assert "whole group [geomean(#1)]" in plan


def test_it_needs_the_servers_leave(tmp_path: Path) -> None:
    server = Server(tmp_path, python=True)
    client = server.client()
    client.run("CREATE TABLE t (g int, x float8)")
    client.run(f"CREATE AGGREGATE {GEOMEAN}")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT g, geomean(x) FROM t GROUP BY g")
    server.python = False
    server.restart()
    client = server.client()
    other = GEOMEAN.replace("geomean", "other")
    error = client.error(f"CREATE AGGREGATE {other}")
    assert (error.sqlstate, error.message) == ("42501", "permission denied for language python")
    client.run("INSERT INTO t VALUES (1, 1)")
    assert client.rows("SELECT * FROM v") == [("1", "1")]
    server.close()
