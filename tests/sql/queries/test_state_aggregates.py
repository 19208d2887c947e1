"""CREATE AGGREGATE (SFUNC = …): answers are PostgreSQL 15's; views refold the groups that change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sessions import Client, Server

SETUP = (
    "CREATE TABLE ag (g int, x int, t text)",
    "INSERT INTO ag VALUES (1, 1, 'a'), (1, 2, 'b'), (1, 2, 'b'), (2, NULL, 'c'), (2, 5, NULL), (3, NULL, NULL)",
    "CREATE FUNCTION addsq(numeric, int) RETURNS numeric LANGUAGE sql AS 'SELECT $1 + $2 * $2'",
    "CREATE FUNCTION half(numeric) RETURNS float8 LANGUAGE sql STRICT AS 'SELECT $1::float8 / 2'",
    "CREATE AGGREGATE sumsq(int) (SFUNC = addsq, STYPE = numeric, INITCOND = '0')",
    "CREATE AGGREGATE mysum(int) (sfunc = int4pl, stype = int4)",
    "CREATE AGGREGATE mycat(text) (sfunc = textcat, stype = text, initcond = '>')",
    "CREATE AGGREGATE arr(anycompatible) (sfunc = array_append, stype = anycompatiblearray, initcond = '{}')",
    "CREATE AGGREGATE halfsum(int) (sfunc = addsq, stype = numeric, finalfunc = half, initcond = '0')",
    "CREATE AGGREGATE cnt(*) (sfunc = int8inc, stype = int8, initcond = '0')",
    "CREATE AGGREGATE cnt(\"any\") (sfunc = int8inc_any, stype = int8, initcond = '0')",
    "CREATE AGGREGATE myavg(basetype = int4, sfunc = int4_avg_accum, stype = int8[], finalfunc = int8_avg,"
    " initcond = '{0,0}')",
    "CREATE AGGREGATE pick(VARIADIC int[]) (sfunc = array_cat, stype = int[], initcond = '{}')",
    "CREATE FUNCTION slow(int, int) RETURNS int LANGUAGE plpgsql STRICT AS 'BEGIN RETURN $1 * 10 / $2; END'",
    "CREATE FUNCTION shown(int) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN ''<'' || $1 || ''>''; END'",
    "CREATE AGGREGATE slowly(int) (sfunc = slow(int, int), stype = int, finalfunc = shown)",
    "CREATE FUNCTION lesser(int, VARIADIC int[]) RETURNS int LANGUAGE sql"
    " AS 'SELECT least($1, min(x)) FROM unnest($2) x'",
    "CREATE AGGREGATE least_of(VARIADIC int[]) (sfunc = lesser, stype = int)",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("states"))
    client = server.client()
    for text in SETUP:
        client.run(text)
    client.close()
    yield server
    server.close()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT g, sumsq(x), mysum(x), mycat(t ORDER BY t DESC), arr(x ORDER BY x), halfsum(x), cnt(*), myavg(x)"
         " FROM ag GROUP BY g ORDER BY g",
         [("1", "9", "5", ">bba", "{1,2,2}", "4.5", "3", "1.6666666666666667"),
          ("2", None, "5", ">c", "{5,NULL}", None, "2", "5.0000000000000000"),
          ("3", None, None, ">", "{NULL}", None, "1", None)]),
        ("SELECT mysum(x) FILTER (WHERE x > 1), mysum(DISTINCT x), sumsq(x) FROM ag", [("9", "8", None)]),
        ("SELECT mysum(x) OVER (PARTITION BY g ORDER BY x), cnt(*) OVER () FROM ag WHERE g = 1 ORDER BY 1",
         [("1", "3"), ("5", "3"), ("5", "3")]),
        ("SELECT mysum(x), sumsq(x), arr(t), cnt(*), myavg(x) FROM ag WHERE false", [(None, "0", "{}", "0", None)]),
        ("SELECT cnt(x), cnt(t), cnt(*), cnt(NULL), cnt('x'), cnt(DISTINCT t), cnt(ROW(x)) FILTER (WHERE g = 1)"
         " FROM ag",
         [("4", "4", "6", "0", "6", "3", "3")]),
        ("SELECT g, slowly(x ORDER BY x), slowly(DISTINCT x), least_of(x, 2), least_of(VARIADIC ARRAY[x, 9])"
         " FROM ag GROUP BY g ORDER BY g",
         [("1", "<25>", "<5>", "1", "1"), ("2", "<5>", "<5>", "2", "5"), ("3", None, None, "2", "9")]),
        ("SELECT g, slowly(x) OVER (PARTITION BY g ORDER BY x) FROM ag WHERE g = 1 ORDER BY 2",
         [("1", "<1>"), ("1", "<25>"), ("1", "<25>")]),
        ("SELECT pick(x, g ORDER BY x, g) FROM ag WHERE g = 1", [("{1,1,2,1,2,1}",)]),
        ("SELECT arr(t ORDER BY t), arr(1.5) FROM ag WHERE g = 2", [("{c,NULL}", "{1.5,1.5}")]),
        ("SELECT aggtransfn::text, aggfinalfn::text, aggtranstype::regtype::text, agginitval FROM pg_aggregate"
         " WHERE aggfnoid = 'halfsum'::regproc", [("addsq", "half", "numeric", "0")]),
        ("SELECT proname, prokind, pg_get_function_arguments(oid) FROM pg_proc WHERE proname IN ('arr', 'cnt', 'myavg')"
         " ORDER BY 1, 3", [("arr", "a", "anycompatible"), ("cnt", "a", ""), ("cnt", "a", '"any"'),
          ("myavg", "a", "integer")]),
    ],
)  # fmt: skip
def test_calls(client: Client, text: str, rows: list[tuple[str | None, ...]]) -> None:
    assert client.rows(text) == rows


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("SELECT cnt() FROM ag", "42809", "cnt(*) must be used to call a parameterless aggregate function"),
        ("SELECT mysum(*) FROM ag", "42883", "function mysum() does not exist"),
        ("CREATE AGGREGATE bad(int) (sfunc = int4pl)", "42P13", "aggregate stype must be specified"),
        ("CREATE AGGREGATE bad(int) (stype = int)", "42P13", "aggregate sfunc must be specified"),
        ("CREATE AGGREGATE bad(sfunc = int4pl, stype = int)", "42P13", "aggregate input type must be specified"),
        ("CREATE AGGREGATE bad(int) (basetype = int, sfunc = int4pl, stype = int)", "42P13",
         "basetype is redundant with aggregate input type specification"),
        ("CREATE AGGREGATE bad(int) (sfunc = nope, stype = int)", "42883",
         "function nope(integer, integer) does not exist"),
        ("CREATE AGGREGATE bad(int) (sfunc = int4larger, stype = text)", "42883",
         "function int4larger(text, integer) does not exist"),
        ("CREATE AGGREGATE bad(int) (sfunc = int4_avg_accum, stype = int8[])", "42P13",
         "must not omit initial value when transition function is strict and transition type is not compatible with "
         "input type"),
        ("CREATE AGGREGATE bad(int) (sfunc = int4pl, stype = int4, initcond = 'x')", "22P02",
         'invalid input syntax for type integer: "x"'),
        ("CREATE AGGREGATE bad(int) (sfunc = array_append, stype = anyarray)", "42P13",
         "cannot determine transition data type"),
        ("CREATE AGGREGATE bad(\"any\") (sfunc = int4pl, stype = int, initcond = '0')", "42883",
         'function int4pl(integer, "any") does not exist'),
        ("CREATE AGGREGATE bad(\"any\") (sfunc = int8inc_any, stype = int8)", "42P13",
         "must not omit initial value when transition function is strict and transition type is not compatible with "
         "input type"),
        ("CREATE AGGREGATE bad(int) (sfunc = int8inc_any, stype = \"any\")", "42P13",
         'aggregate transition data type cannot be "any"'),
        ("DROP AGGREGATE nope(\"any\")", "42883", 'aggregate nope("any") does not exist'),
        ("CREATE AGGREGATE bad(OUT int) (sfunc = int4pl, stype = int4)", "0A000",
         "aggregates cannot have output arguments"),
        ("CREATE AGGREGATE mysum(int) (sfunc = int4pl, stype = int4)", "42723",
         'function "mysum" already exists with same argument types'),
        ("CREATE MATERIALIZED VIEW bad AS SELECT slowly(x) FROM ag", "0A000",
         "function slow(integer,integer), which is interpreted, in a materialized view is not supported"),
        ("CREATE MATERIALIZED VIEW bad AS SELECT least_of(x, g) FROM ag", "0A000",
         "function lesser(integer,integer[]), which is interpreted, in a materialized view is not supported"),
        ("SELECT slowly(x - 2 ORDER BY x) FROM ag", "22012", "division by zero"),
        ("DROP FUNCTION addsq(numeric, int)", "2BP01",
         "cannot drop function addsq(numeric,integer) because other objects depend on it"),
    ],
)  # fmt: skip
def test_mistakes(client: Client, text: str, state: str, message: str) -> None:
    error = client.error(text)
    assert (error.sqlstate, error.message) == (state, message)


def test_views_refold_the_groups_that_change(client: Client, server: Server) -> None:
    query = (
        "SELECT g, sumsq(coalesce(x, 0)) AS s, mysum(x), arr(t), cnt(*) AS n, cnt(x) AS k, myavg(x)"
        ", mysum(DISTINCT x) AS d FROM ag GROUP BY g"
    )
    client.run(f"CREATE MATERIALIZED VIEW folded AS {query}")
    plan = "\n".join(row[0] or "" for row in client.rows("EXPLAIN SELECT g, mysum(x) FROM ag GROUP BY g"))
    assert "Reduce whole group [mysum(" in plan
    for change in (
        "INSERT INTO ag VALUES (1, 7, 'z'), (4, NULL, NULL), (NULL, 3, 'n'), (1, 2, 'b')",
        "UPDATE ag SET x = coalesce(x, 0) - 1 WHERE g < 3",
        "DELETE FROM ag WHERE t = 'b'",
        "DELETE FROM ag WHERE g = 3",
    ):
        client.run(change)
        assert client.rows("VERIFY MATERIALIZED VIEW folded") == []
        assert client.sorted("SELECT * FROM folded") == client.sorted(query), change
