"""CREATE FUNCTION … LANGUAGE python: scalar, vectorised and table functions, in queries and maintained views."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server

SETUP = (
    "CREATE TABLE t (id int PRIMARY KEY, x float8, s text)",
    "INSERT INTO t VALUES (1, 1.5, 'A B'), (2, NULL, NULL), (3, 2, 'c,d')",
    "CREATE FUNCTION slug(s text) RETURNS text LANGUAGE python IMMUTABLE AS"
    " $$ def slug(s): return 'none' if s is None else s.lower().replace(' ', '-') $$",
    "CREATE FUNCTION plus(a int, b float8) RETURNS float8 LANGUAGE python IMMUTABLE STRICT WITH (vectorized) AS $$\n"
    "import pyarrow.compute as pc\n\ndef plus(a, b):\n    return pc.add(pc.cast(a, 'float64'), b) $$",
    "CREATE FUNCTION parts(s text, sep text DEFAULT ',') RETURNS TABLE (n int, part text) LANGUAGE python IMMUTABLE AS"
    " $$\ndef parts(s, sep):\n    for n, part in enumerate((s or '').split(sep)):\n        yield n, part $$",
    "CREATE FUNCTION evens(n int) RETURNS SETOF int LANGUAGE python IMMUTABLE STRICT AS"
    " $$ def evens(n): return range(0, n, 2) $$",
    "CREATE FUNCTION pair(a int, OUT b int, OUT c text) LANGUAGE python IMMUTABLE AS"
    " $$ def pair(a): return a, str(a) $$",
    "CREATE FUNCTION total(VARIADIC xs int[]) RETURNS int LANGUAGE python AS $$ def total(xs): return sum(xs) $$",
    "CREATE FUNCTION same(a anyelement) RETURNS anyelement LANGUAGE python IMMUTABLE AS $$ def same(a): return a $$",
    "CREATE FUNCTION inverse(a int) RETURNS int LANGUAGE python IMMUTABLE AS $$ def inverse(a): return 6 // a $$",
    "CREATE FUNCTION wrong(a int) RETURNS int LANGUAGE python AS $$ def wrong(a): return 'x' $$",
    "CREATE FUNCTION huge(a int) RETURNS int LANGUAGE python AS $$ def huge(a): return 1 << 40 $$",
    "CREATE FUNCTION short(a int) RETURNS int LANGUAGE python WITH (vectorized) AS $$ def short(a): return [1] $$",
    "CREATE FUNCTION thin(a int) RETURNS TABLE (b int, c int) LANGUAGE python AS $$ def thin(a): return [(1,)] $$",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("python"), python=True)
    client = server.client()
    for text in SETUP:
        client.run(text)
    client.close()
    yield server
    server.close()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT id, slug(s) FROM t ORDER BY id", [("1", "a-b"), ("2", "none"), ("3", "c,d")]),
        ("SELECT id, plus(id, x) FROM t ORDER BY id", [("1", "2.5"), ("2", None), ("3", "5")]),
        ("SELECT id FROM t WHERE plus(id, x) > 3", [("3",)]),
        ("SELECT t.id, p.n, part FROM t, parts(t.s) p ORDER BY 1, 2",
         [("1", "0", "A B"), ("2", "0", ""), ("3", "0", "c"), ("3", "1", "d")]),
        ("SELECT * FROM parts('a-b', sep => '-') ORDER BY 1", [("0", "a"), ("1", "b")]),
        ("SELECT evens(5), evens(NULL)", [("0", None), ("2", None), ("4", None)]),
        ("SELECT parts('x')", [("(0,x)",)]),
        ("SELECT pair(7), (pair(8)).c", [("(7,7)", "8")]),
        ("SELECT * FROM pair(7)", [("7", "7")]),
        ("SELECT total(1, 2, 3), total(VARIADIC ARRAY[4, 5])", [("6", "9")]),
        ("SELECT same(1), same('x'::text), same(date '2020-02-29'), same(1.50), same(ARRAY[1, 2])",
         [("1", "x", "2020-02-29", "1.50", "{1,2}")]),
        ("SELECT CASE WHEN id > 1 THEN inverse(id - 1) END FROM t ORDER BY id", [(None,), ("6",), ("3",)]),
    ],
)  # fmt: skip
def test_calls(client: Client, text: str, rows: list[tuple[str | None, ...]]) -> None:
    assert client.rows(text) == rows


@pytest.mark.parametrize(
    ("text", "state", "words"),
    [
        ("SELECT inverse(0)", "38000", "function inverse(integer) failed: ZeroDivisionError"),
        ("SELECT wrong(1)", "22P02", "which is no integer"),
        ("SELECT huge(1)", "22003", "out of range for type integer"),
        ("SELECT short(id) FROM t", "22023", "returned 1 values for 3 rows"),
        ("SELECT * FROM thin(1)", "22P02", "a row of 1 values for 2 columns"),
        ("SELECT same(timestamp 'infinity')", "22008", "cannot be given"),
        ("SELECT same('{}'::jsonb)", "0A000", "type jsonb"),
        ("CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS 'def g(a): return 1'", "42P13",
         "defines no function"),
        ("CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS 'def f(a, b): return 1'", "42P13", "1 arguments"),
        ("CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS 'def f(a) return 1'", "42601", "syntax error"),
        ("CREATE FUNCTION f(a jsonb) RETURNS int LANGUAGE python AS 'def f(a): return 1'", "0A000", "jsonb"),
        ("CREATE FUNCTION f(a int) RETURNS SETOF int LANGUAGE python WITH (vectorized) AS 'def f(a): return a'",
         "42P13", "one value for each row"),
        ("CREATE PROCEDURE f() LANGUAGE python AS 'def f(): pass'", "0A000", "a procedure"),
        ("CREATE MATERIALIZED VIEW v AS SELECT wrong(id) FROM t", "0A000",
         "function wrong(integer), which is volatile"),
        ("CREATE MATERIALIZED VIEW v AS SELECT b FROM t, thin(id)", "0A000",
         "function thin(integer), which is volatile"),
    ],
)  # fmt: skip
def test_mistakes(client: Client, text: str, state: str, words: str) -> None:
    error = client.error(text)
    assert error.sqlstate == state, error.message
    assert words in error.message


def test_python_must_be_allowed(tmp_path: Path) -> None:
    server = Server(tmp_path)
    assert server.client().state(SETUP[2]) == "42501"
    server.close()


VIEWS = {
    "slugs": "SELECT slug(s) AS s, count(*) AS n FROM t GROUP BY 1",
    "sums": "SELECT id, plus(id, x) AS p FROM t",
    "split": "SELECT id, n, part FROM t, parts(s)",
    "counted": "SELECT id, evens(id) AS e FROM t",
}


def test_views_are_maintained(client: Client, server: Server) -> None:
    for name, text in VIEWS.items():
        client.run(f"CREATE MATERIALIZED VIEW {name} AS {text}")
    assert any("slug(#" in (row[0] or "") for row in client.rows(f"EXPLAIN {VIEWS['slugs']}"))
    for change in (
        "INSERT INTO t VALUES (4, 3, 'a b'), (5, NULL, 'c,d'), (6, 0, NULL)",
        "UPDATE t SET x = coalesce(x, 0) + 1, s = s || ',e' WHERE id < 5",
        "DELETE FROM t WHERE id IN (2, 3)",
    ):
        client.run(change)
        for name, text in VIEWS.items():
            assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == [], (change, name)
            assert client.sorted(f"SELECT * FROM {name}") == client.sorted(text), (change, name)
    assert client.error("DROP FUNCTION slug(text)").sqlstate == "2BP01"
    before = [client.sorted(f"SELECT * FROM {name}") for name in VIEWS]
    server.restart()
    client = server.client()
    assert [client.sorted(f"SELECT * FROM {name}") for name in VIEWS] == before
    client.run("INSERT INTO t VALUES (9, 9, 'z z')")
    for name in VIEWS:
        assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == []
