"""CREATE FUNCTION … LANGUAGE sql: calls are replaced by the body, in views too. Answers are PostgreSQL 15's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("functions"))
    client = server.client()
    for text in SETUP:
        client.run(text)
    client.close()
    yield server
    server.close()


SETUP = (
    "CREATE TABLE t (id int PRIMARY KEY, g text, v int)",
    "INSERT INTO t VALUES (1, 'a', 10), (2, 'a', 20), (3, 'b', 30), (4, 'b', NULL)",
    "CREATE FUNCTION add2(a int, b int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a + b'",
    "CREATE FUNCTION add2(a text, b text) RETURNS text LANGUAGE sql AS $$ SELECT $1 || '-' || $2; $$",
    "CREATE FUNCTION inc(x int, by int DEFAULT 1) RETURNS int LANGUAGE sql RETURN x + by",
    "CREATE FUNCTION total(grp text) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT sum(v) FROM t WHERE g = grp'",
    "CREATE FUNCTION rows_of(grp text) RETURNS TABLE (n int, val int) LANGUAGE sql AS"
    " 'SELECT id, v FROM t WHERE g = $1'",
    "CREATE FUNCTION nums(int) RETURNS SETOF int LANGUAGE sql IMMUTABLE AS 'VALUES (1), (10), (2), ($1)'",
    "CREATE FUNCTION last_group() RETURNS text LANGUAGE sql AS 'SELECT g FROM t ORDER BY id DESC LIMIT 1'",
    "CREATE FUNCTION careful(a int) RETURNS int LANGUAGE sql STRICT AS 'SELECT coalesce(a, 99)'",
    "CREATE FUNCTION careless(a int) RETURNS int LANGUAGE sql AS 'SELECT coalesce(a, 99)'",
    "CREATE FUNCTION whole() RETURNS SETOF t LANGUAGE sql AS 'SELECT * FROM t WHERE id < 3'",
)


@pytest.fixture
def client(shared: Server) -> Iterator[Client]:
    client = shared.client()
    yield client
    client.close()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT add2(1, 2), add2('x'::text, 'y'), add2(b => 10, a => 1), add2(1, b := 5)", [("3", "x-y", "11", "6")]),
        ("SELECT inc(5), inc(5, 10), inc(by => 3, x => 1), inc('7')", [("6", "15", "4", "8")]),
        ("SELECT total('a'), total('b'), total('c')", [("30", "30", None)]),
        ("SELECT DISTINCT g, total(g) FROM t ORDER BY 1", [("a", "30"), ("b", "30")]),
        ("SELECT * FROM rows_of('a') ORDER BY 1", [("1", "10"), ("2", "20")]),
        ("SELECT x, r.val FROM (VALUES ('a'), ('b')) s(x), rows_of(x) r ORDER BY 1, 2",
         [("a", "10"), ("a", "20"), ("b", "30"), ("b", None)]),
        ("SELECT nums(-1) ORDER BY 1", [("-1",), ("1",), ("2",), ("10",)]),
        ("SELECT * FROM nums(7) AS f(x) WHERE x > 5 ORDER BY 1", [("7",), ("10",)]),
        ("SELECT last_group()", [("b",)]),
        ("SELECT careful(NULL), careful(1), careless(NULL), careless(1)", [(None, "1", "99", "1")]),
        ("SELECT * FROM whole() ORDER BY id", [("1", "a", "10"), ("2", "a", "20")]),
        ("SELECT sum(add2(v, 1)) FROM t", [("63",)]),
        ("SELECT id FROM t WHERE add2(id, 0) = 2", [("2",)]),
        ("SELECT public.inc(1)", [("2",)]),
        ("SELECT inc(inc(inc(1)))", [("4",)]),
        ("SELECT (r).val, r FROM (SELECT rows_of('a') AS r) q ORDER BY 1", [("10", "(1,10)"), ("20", "(2,20)")]),
    ],
)  # fmt: skip
def test_calls(client: Client, text: str, rows: list[tuple[str | None, ...]]) -> None:
    assert client.rows(text) == rows


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT ''x''::text'", "42P13",
         "return type mismatch in function declared to return integer"),
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1, 2'", "42P13",
         "return type mismatch in function declared to return integer"),
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT nope'", "42703", 'column "nope" does not exist'),
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT $1'", "42P02", "there is no parameter $1"),
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELEC 1'", "42601", 'syntax error at or near "SELEC"'),
        ("CREATE FUNCTION f(a int) RETURNS int LANGUAGE plperl AS 'begin return 1; end'", "42704",
         'language "plperl" does not exist'),
        ("CREATE FUNCTION f(a int, a int) RETURNS int LANGUAGE sql AS 'SELECT 1'", "42P13",
         'parameter name "a" used more than once'),
        ("CREATE FUNCTION f(a int DEFAULT 1, b int) RETURNS int LANGUAGE sql AS 'SELECT 1'", "42P13",
         "input parameters after one with a default value must also have defaults"),
        ("CREATE FUNCTION f() RETURNS int AS 'SELECT 1'", "42P13", "no language specified"),
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'DELETE FROM t'", "42P13",
         "return type mismatch in function declared to return integer"),
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'DELETE FROM t; SELECT nope'", "42703",
         'column "nope" does not exist'),
        ("CREATE FUNCTION add2(x int, y int) RETURNS int LANGUAGE sql AS 'SELECT 1'", "42723",
         'function "add2" already exists with same argument types'),
        ("CREATE OR REPLACE FUNCTION add2(a int, b int) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'", "42P13",
         "cannot change return type of existing function"),
        ("SELECT add2(1)", "42883", "function add2(integer) does not exist"),
        ("SELECT inc(nope => 1)", "42883", "function inc(nope => integer) does not exist"),
        ("SELECT inc(x => 1, 2)", "42601", "positional argument cannot follow named argument"),
        ("SELECT * FROM t WHERE nums(1) = 1", "0A000", "set-returning functions are not allowed in WHERE"),
        ("DROP FUNCTION add2", "42725", 'function name "add2" is not unique'),
        ("DROP FUNCTION add2(int)", "42883", "function add2(integer) does not exist"),
        ("DROP TABLE t", "2BP01", "cannot drop table t because other objects depend on it"),
    ],
)  # fmt: skip
def test_mistakes(client: Client, text: str, state: str, message: str) -> None:
    error = client.error(text)
    assert (error.sqlstate, error.message) == (state, message)


def test_definitions_come_and_go(client: Client) -> None:
    client.run("CREATE FUNCTION passing(a int) RETURNS int LANGUAGE sql AS 'SELECT a'")
    client.run("CREATE VIEW over_it AS SELECT passing(v) AS p FROM t")
    error = client.error("DROP FUNCTION passing(int)")
    assert (error.sqlstate, error.detail) == ("2BP01", "view over_it depends on function passing(integer)")
    client.run("CREATE OR REPLACE FUNCTION passing(a int) RETURNS int LANGUAGE sql AS 'SELECT -a'")
    assert client.rows("SELECT min(p) FROM over_it") == [("-30",)]
    client.run("DROP FUNCTION passing(int) CASCADE")
    assert client.state("SELECT * FROM over_it") == "42P01"
    client.run("BEGIN; CREATE FUNCTION passing() RETURNS int LANGUAGE sql AS 'SELECT 5'")
    assert client.rows("SELECT passing()") == [("5",)]
    client.run("ROLLBACK")
    assert client.state("SELECT passing()") == "42883"
    client.run("DROP FUNCTION IF EXISTS passing(int)")
    assert client.notices()[-1].message == "function passing(integer) does not exist, skipping"


def test_a_body_goes_on_meaning_what_it_meant(client: Client) -> None:
    client.run("CREATE TABLE changing (k int, x int)")
    client.run("INSERT INTO changing VALUES (1, 10)")
    client.run("CREATE FUNCTION look(n int) RETURNS int LANGUAGE sql AS 'SELECT x + n FROM changing WHERE k = $1'")
    client.run("ALTER TABLE changing RENAME COLUMN x TO y")
    assert client.rows("SELECT look(1)") == [("11",)]
    client.run("ALTER TABLE changing RENAME TO changed")
    assert client.rows("SELECT look(1)") == [("11",)]
    client.run("DROP TABLE changed CASCADE")
    assert client.notices()[-1].message == "drop cascades to function look(integer)"


def test_the_catalogs_tell_of_them(client: Client) -> None:
    assert client.rows(
        "SELECT provolatile, proretset, proisstrict, pronargs, pronargdefaults, proargnames, prosrc FROM pg_proc"
        " WHERE proname IN ('careful', 'nums', 'total') ORDER BY proname"
    ) == [
        ("v", "f", "t", "1", "0", "{a}", "SELECT coalesce(a, 99)"),
        ("i", "t", "f", "1", "0", None, "VALUES (1), (10), (2), ($1)"),
        ("s", "f", "f", "1", "0", "{grp}", "SELECT sum(v) FROM t WHERE g = grp"),
    ]
    assert client.rows(
        "SELECT pg_get_function_arguments(oid), pg_get_function_result(oid) FROM pg_proc"
        " WHERE proname IN ('inc', 'nums', 'rows_of') ORDER BY proname"
    ) == [
        ("x integer, by integer DEFAULT 1", "integer"),
        ("integer", "SETOF integer"),
        ("grp text", "TABLE(n integer, val integer)"),
    ]


VIEWS = {
    "by_expression": "SELECT inc(v, id) AS x, careful(v) AS c, careless(v) AS d FROM f.t",
    "by_group": "SELECT g, f.total(g) AS total FROM f.t",
    "by_rows": "SELECT s.x, r.n, r.val FROM f.names s, f.rows_of(s.x) r",
    "by_filter": "SELECT g, count(*) AS n FROM f.t WHERE careless(v) > 15 GROUP BY g HAVING count(*) < inc(3)",
    "by_set": "SELECT id, f.nums(v) AS n FROM f.t",
}


def test_views_over_functions_are_maintained(tmp_path: Path) -> None:
    """Under inserts, updates and deletes with NULLs and duplicates, and after a restart."""
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE SCHEMA f; SET search_path = f, public")
    client.run("CREATE TABLE f.names (x text)")
    for text in SETUP:
        client.run(text)
    client.run("INSERT INTO f.names VALUES ('a'), ('a'), ('c'), (NULL)")
    for name, text in VIEWS.items():
        client.run(f"CREATE MATERIALIZED VIEW {name} AS {text}")
    changes = (
        "INSERT INTO t VALUES (5, 'a', 7), (6, NULL, 1), (7, 'c', NULL)",
        "UPDATE t SET v = v + 10 WHERE g = 'a'",
        "INSERT INTO names VALUES ('b'), ('b')",
        "UPDATE t SET g = 'c' WHERE id < 3",
        "DELETE FROM t WHERE id IN (1, 4)",
        "DELETE FROM names WHERE x = 'a'",
    )
    for change in changes:
        client.run(change)
        for name, text in VIEWS.items():
            assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == [], (change, name)
            assert client.sorted(f"SELECT * FROM {name}") == client.sorted(text), (change, name)
    before = [client.sorted(f"SELECT * FROM f.{name}") for name in VIEWS]
    error = client.error("CREATE OR REPLACE FUNCTION inc(x int, by int DEFAULT 1) RETURNS int LANGUAGE sql RETURN 1")
    assert error.sqlstate == "0A000"
    server.restart()
    client = server.client()
    assert [client.sorted(f"SELECT * FROM f.{name}") for name in VIEWS] == before
    client.run("INSERT INTO f.t VALUES (50, 'b', 3)")
    for name in VIEWS:
        assert client.rows(f"VERIFY MATERIALIZED VIEW f.{name}") == []
    assert client.rows("SELECT f.inc(1), f.total('b')") == [("2", "33")]
    server.close()


SHAPES = (
    "CREATE FUNCTION one(a int, OUT b int) LANGUAGE sql AS 'SELECT a + 1'",
    "CREATE FUNCTION two(IN a int, OUT b int, OUT text) LANGUAGE sql AS $$ SELECT a - 1, a || 'z' $$",
    "CREATE FUNCTION twice(anyelement, OUT x anyelement, OUT y anyarray) LANGUAGE sql AS 'SELECT $1, ARRAY[$1, $1]'",
    "CREATE FUNCTION wider(a anycompatible, b anycompatible) RETURNS anycompatible LANGUAGE sql AS"
    " 'SELECT greatest(a, b)'",
    "CREATE FUNCTION least_of(VARIADIC xs int[]) RETURNS int LANGUAGE sql AS 'SELECT min(x) FROM unnest(xs) x'",
    "CREATE FUNCTION joined(sep text, VARIADIC anyarray) RETURNS text LANGUAGE sql AS"
    " 'SELECT array_to_string($2, sep)'",
    "CREATE FUNCTION anything(n int) RETURNS SETOF record LANGUAGE sql AS"
    " $$ SELECT i, 'r' || i FROM generate_series(1, n) i $$",
    "CREATE FUNCTION mixed(a anyelement, b anycompatible, c anycompatible, OUT x anyarray, OUT y anycompatiblearray)"
    " LANGUAGE sql AS 'SELECT ARRAY[a], ARRAY[b, c]'",
    "CREATE FUNCTION silent(int) RETURNS SETOF void LANGUAGE sql AS 'SELECT generate_series(1, $1)'",
    "CREATE FUNCTION spread(anycompatiblerange, anycompatible) RETURNS anycompatiblerange LANGUAGE sql AS 'SELECT $1'",
    "CREATE FUNCTION first_t() RETURNS t LANGUAGE sql AS 'SELECT * FROM t ORDER BY id LIMIT 1'",
    "CREATE PROCEDURE bump(step int DEFAULT 1, INOUT total int DEFAULT 0) LANGUAGE sql AS"
    " 'UPDATE t SET v = v + step; SELECT sum(v)::int + total FROM t'",
    "CREATE PROCEDURE keep(a int, b int) BEGIN ATOMIC INSERT INTO t VALUES (a, 'k', CASE WHEN true THEN b END);"
    " DELETE FROM t WHERE id = a; END",
)


@pytest.fixture(scope="module")
def shapes(shared: Server) -> None:
    client = shared.client()
    for text in SHAPES:
        client.run(text)
    client.close()


@pytest.mark.usefixtures("shapes")
@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT one(1), (SELECT b FROM one(2)), (SELECT x FROM one(3) AS p(x))", [("2", "3", "4")]),
        ("SELECT two(5)", [("(4,5z)",)]),
        ("SELECT b, column2 FROM two(5)", [("4", "5z")]),
        ("SELECT p.m FROM t, two(id) AS p(n, m) ORDER BY id", [("1z",), ("2z",), ("3z",), ("4z",)]),
        ("SELECT twice(1), twice('a'::text)", [("(1,\"{1,1}\")", "(a,\"{a,a}\")")]),
        ("SELECT *, pg_typeof(x)::text, pg_typeof(y)::text FROM twice(2.5)",
         [("2.5", "{2.5,2.5}", "numeric", "numeric[]")]),
        ("SELECT wider(1, 2.5), wider('a', 'b')", [("2.5", "b")]),
        ("SELECT least_of(3, 1, 2), least_of(VARIADIC ARRAY[5, 4]), least_of(9)", [("1", "4", "9")]),
        ("SELECT joined(',', 1, 2), joined('-', 'a'::text), joined('-', VARIADIC ARRAY['x', 'y'])",
         [("1,2", "a", "x-y")]),
        ("SELECT * FROM anything(2) AS f(a int, b text) ORDER BY 1", [("1", "r1"), ("2", "r2")]),
        ("SELECT * FROM anything(2) AS f(a numeric(4, 1), b text) ORDER BY 1", [("1.0", "r1"), ("2.0", "r2")]),
        ("SELECT spread(int4range(1, 4), 5), spread(numrange(1, 4), 5)", [("[1,4)", "[1,4)")]),
        ("SELECT pg_typeof(x)::text, pg_typeof(y)::text FROM mixed(1, 2, 3.5)", [("integer[]", "numeric[]")]),
        ("SELECT * FROM silent(3)", []),
        ("SELECT (first_t()).v, first_t()", [("10", "(1,a,10)")]),
        ("SELECT * FROM first_t()", [("1", "a", "10")]),
    ],
)  # fmt: skip
def test_shapes(client: Client, text: str, rows: list[tuple[str | None, ...]]) -> None:
    assert client.rows(text) == rows


@pytest.mark.usefixtures("shapes")
@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("SELECT least_of()", "42883", "function least_of() does not exist"),
        ("SELECT twice('x')", "42804", "could not determine polymorphic type because input has type unknown"),
        ("SELECT * FROM anything(1)", "42601",
         'a column definition list is required for functions returning "record"'),
        ("SELECT * FROM two(1) AS f(a int)", "42601",
         "a column definition list is redundant for a function with OUT parameters"),
        ("SELECT * FROM first_t() AS f(a int)", "42601",
         "a column definition list is redundant for a function returning a named composite type"),
        ("SELECT * FROM one(1) AS f(a int)", "42601",
         'a column definition list is only allowed for functions returning "record"'),
        ("SELECT spread(int4range(1, 4), 5.5)", "42883", "function spread(int4range, numeric) does not exist"),
        ("SELECT wider(1, 'x'::text)", "42883", "function wider(integer, text) does not exist"),
        ("CREATE FUNCTION f(a int, OUT b int) RETURNS text LANGUAGE sql AS 'SELECT 1'", "42P13",
         "function result type must be integer because of OUT parameters"),
        ("CREATE FUNCTION f(OUT b int, OUT c int) RETURNS int LANGUAGE sql AS 'SELECT 1'", "42P13",
         "function result type must be record because of OUT parameters"),
        ("CREATE FUNCTION f(a int, OUT b anyelement) LANGUAGE sql AS 'SELECT 1'", "42P13",
         "cannot determine result data type"),
        ("CREATE FUNCTION f(VARIADIC a int) RETURNS int LANGUAGE sql AS 'SELECT 1'", "42P13",
         "VARIADIC parameter must be an array"),
        ("CREATE FUNCTION f(VARIADIC a int[], b int) RETURNS int LANGUAGE sql AS 'SELECT 1'", "42P13",
         "VARIADIC parameter must be the last input parameter"),
        ("CREATE FUNCTION f(OUT b int DEFAULT 1) LANGUAGE sql AS 'SELECT 1'", "42P13",
         "only input parameters can have default values"),
        ("CREATE OR REPLACE FUNCTION two(x int, OUT b int, OUT text) LANGUAGE sql AS 'SELECT 1, 2'", "42P13",
         'cannot change name of input parameter "a"'),
        ("CREATE OR REPLACE FUNCTION two(a int, OUT b int, OUT int) LANGUAGE sql AS 'SELECT 1, 2'", "42P13",
         "cannot change return type of existing function"),
        ("CREATE OR REPLACE PROCEDURE one(int) LANGUAGE sql AS 'SELECT 1'", "42809", "cannot change routine kind"),
        ("CREATE FUNCTION f(a int) LANGUAGE sql AS 'SELECT 1'", "42P13", "function result type must be specified"),
        ("CREATE PROCEDURE f() LANGUAGE sql STRICT AS 'SELECT 1'", "42P13",
         "invalid attribute in procedure definition"),
        ("ALTER PROCEDURE bump(int, int) VOLATILE", "42P13", "invalid attribute in procedure definition"),
        ("CALL one(1)", "42809", "one(integer) is not a procedure"),
        ("CALL bump('x'::text)", "42883", "procedure bump(text) does not exist"),
        ("CALL bump((SELECT 1))", "0A000", "cannot use subquery in CALL argument"),
        ("SELECT bump(1)", "42809", "bump(integer) is a procedure"),
        ("DROP FUNCTION bump(int, int)", "42809", "bump(integer, integer) is not a function"),
        ("DROP PROCEDURE one(int)", "42809", "one(integer) is not a procedure"),
    ],
)  # fmt: skip
def test_mistakes_in_shapes(client: Client, text: str, state: str, message: str) -> None:
    error = client.error(text)
    assert (error.sqlstate, error.message) == (state, message)


@pytest.mark.usefixtures("shapes")
def test_procedures(client: Client) -> None:
    client.run("BEGIN")
    assert client.rows("CALL bump()") == [("63",)]
    assert client.rows("CALL bump(total => 100, step => 10)") == [("193",)]
    client.run("CALL keep(50, 1)")
    assert client.rows("SELECT sum(v) FROM t") == [("93",)]
    client.run("ROLLBACK")
    assert client.rows("SELECT sum(v) FROM t") == [("60",)]
    assert client.rows(
        "SELECT proname, prokind, proargmodes, pg_get_function_arguments(oid), pg_get_function_result(oid)"
        " FROM pg_proc WHERE proname IN ('bump', 'twice', 'joined') ORDER BY 1"
    ) == [
        ("bump", "p", "{i,b}", "IN step integer DEFAULT 1, INOUT total integer DEFAULT 0", None),
        ("joined", "f", "{i,v}", "sep text, VARIADIC anyarray", "text"),
        ("twice", "f", "{i,o,o}", "anyelement, OUT x anyelement, OUT y anyarray", "record"),
    ]


def test_alter_function(client: Client) -> None:
    client.run("BEGIN")
    client.run("CREATE FUNCTION f1(int) RETURNS int LANGUAGE sql AS 'SELECT coalesce($1, 7)'")
    client.run("ALTER FUNCTION f1(int) IMMUTABLE STRICT")
    assert client.rows("SELECT provolatile, proisstrict, f1(NULL) FROM pg_proc WHERE proname = 'f1'") == [
        ("i", "t", None)
    ]
    client.run("ALTER ROUTINE f1 CALLED ON NULL INPUT")
    client.run("ALTER FUNCTION f1 RENAME TO f2")
    assert client.rows("SELECT f2(NULL), 'F2'::regproc::text") == [("7", "f2")]
    client.run("CREATE SCHEMA other")
    client.run("ALTER FUNCTION f2(int) SET SCHEMA other")
    assert client.rows("SELECT other.f2(1)") == [("1",)]
    for text, state in (
        ("SELECT f2(1)", "42883"), ("ALTER FUNCTION nope(int) STABLE", "42883"), ("SELECT 'nope'::regproc", "42883"),
        ("ALTER PROCEDURE other.f2(int) SECURITY INVOKER", "42809"), ("ALTER FUNCTION other.f2(int)", "42601"),
        ("SELECT 'add2'::regproc", "42725"), ("ALTER FUNCTION other.f2(int) OWNER TO nobody", "42704"),
    ):  # fmt: skip
        client.run("SAVEPOINT s")
        assert client.state(text) == state, text
        client.run("ROLLBACK TO s")
    client.run("ROLLBACK")


def test_rows_of_other_fields_fail_when_called(client: Client) -> None:
    client.run("CREATE FUNCTION pair(OUT int, OUT numeric) AS $$ SELECT (1, 2.1) $$ LANGUAGE sql")
    assert client.rows("SELECT * FROM pair()") == [("1", "2.1")]
    client.run("CREATE OR REPLACE FUNCTION pair(OUT int, OUT numeric) AS $$ SELECT (1, 2) $$ LANGUAGE sql")
    error = client.error("SELECT * FROM pair()")
    assert (error.sqlstate, error.detail) == (
        "42804", "Returned type integer at ordinal position 2, but query expects numeric.",
    )  # fmt: skip
    client.run("DROP FUNCTION pair")


INTERPRETED = (
    "CREATE TABLE log (id int PRIMARY KEY, note text)",
    "CREATE FUNCTION note(i int, what text) RETURNS bigint LANGUAGE sql AS"
    " 'INSERT INTO log VALUES (i, note.what); SELECT count(*) FROM log'",
    "CREATE FUNCTION forget(least int) RETURNS SETOF text LANGUAGE sql AS"
    " 'DELETE FROM log WHERE id < least; SELECT note FROM log ORDER BY id'",
    "CREATE FUNCTION removed(i int) RETURNS TABLE (k int, n text) LANGUAGE sql AS"
    " 'DELETE FROM log WHERE id = $1 RETURNING id, note'",
    "CREATE FUNCTION clear() RETURNS void LANGUAGE sql AS 'DELETE FROM log'",
    "CREATE FUNCTION factorial(n int) RETURNS numeric LANGUAGE sql AS"
    " 'SELECT CASE WHEN n <= 1 THEN 1 ELSE n * factorial(n - 1) END'",
    "CREATE FUNCTION endless(n int) RETURNS int LANGUAGE sql AS 'SELECT endless(n + 1)'",
)


@pytest.fixture
def interpreted(client: Client) -> Iterator[Client]:
    for text in INTERPRETED:
        client.run(text)
    yield client
    client.run("ROLLBACK")
    client.run("DROP TABLE log CASCADE")
    for name in ("note", "forget", "removed", "clear", "factorial", "endless"):
        client.run(f"DROP FUNCTION {name}")


def test_statements_run_in_the_callers_transaction(interpreted: Client) -> None:
    client = interpreted
    assert client.rows("SELECT note(1, 'one'), note(2, 'two')") == [("1", "2")]
    assert client.rows("SELECT note(x, 'n' || x) FROM generate_series(3, 5) x") == [("3",), ("4",), ("5",)]
    assert client.rows("SELECT forget(4)") == [("n4",), ("n5",)]
    assert client.rows("SELECT * FROM removed(5)") == [("5", "n5")]
    assert client.rows("SELECT * FROM removed(5)") == []
    client.run("BEGIN")
    assert client.rows("SELECT note(7, NULL)") == [("2",)]
    assert client.rows("SELECT clear(), 1") == [(None, "1")]
    assert client.rows("SELECT count(*) FROM log") == [("0",)]
    client.run("ROLLBACK")
    assert client.rows("TABLE log") == [("4", "n4")]
    assert client.state("SELECT note(x, 'again') FROM generate_series(6, 3, -1) x") == "23505"
    assert client.rows("TABLE log") == [("4", "n4")]
    client.run("INSERT INTO log SELECT 100, note(50, 'inside')::text")
    assert client.rows("SELECT * FROM log ORDER BY id") == [("4", "n4"), ("50", "inside"), ("100", "2")]
    client.run("BEGIN READ ONLY")
    error = client.error("SELECT clear()")
    assert (error.sqlstate, error.message) == ("25006", "cannot execute DELETE in a read-only transaction")


def test_recursive_functions(interpreted: Client) -> None:
    client = interpreted
    assert client.rows("SELECT factorial(30)") == [("265252859812191058636308480000000",)]
    assert client.state("SELECT endless(1)") == "54001"
    client.run("CREATE VIEW factorials AS SELECT id, factorial(id) FROM t")
    assert client.rows("SELECT max(factorial) FROM factorials") == [("24",)]
    client.run("DROP VIEW factorials")
    error = client.error("CREATE MATERIALIZED VIEW factorials AS SELECT id, factorial(id) FROM t")
    message = "function factorial(integer), which is interpreted, in a materialized view is not supported"
    assert (error.sqlstate, error.message) == ("0A000", message)
    assert client.state("DECLARE c CURSOR FOR SELECT factorial(1)") == "25P01"
