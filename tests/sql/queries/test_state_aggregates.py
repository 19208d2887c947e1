"""CREATE AGGREGATE (SFUNC = …): answers are PostgreSQL 15's; views refold the groups that change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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


ORDERED = (
    "CREATE FUNCTION at_place(anycompatiblearray, int) RETURNS anycompatible LANGUAGE sql AS 'SELECT $1[$2]'",
    "CREATE AGGREGATE placed(int ORDER BY anycompatible) (sfunc = array_append, stype = anycompatiblearray,"
    " initcond = '{}', finalfunc = at_place)",
    "CREATE FUNCTION fenced(text, text, int) RETURNS text LANGUAGE sql AS $$ SELECT $2 || coalesce($1, '') || $3 $$",
    "CREATE AGGREGATE fence(text, int ORDER BY text) (sfunc = textcat, stype = text, finalfunc = fenced)",
    "CREATE AGGREGATE disc(float8 ORDER BY anyelement) (sfunc = ordered_set_transition, stype = internal,"
    " finalfunc = percentile_disc_final, finalfunc_extra)",
    "CREATE AGGREGATE my_rank(VARIADIC \"any\" ORDER BY VARIADIC \"any\") (sfunc = ordered_set_transition_multi,"
    " stype = internal, finalfunc = rank_final, finalfunc_extra, hypothetical)",
)  # fmt: skip


def test_ordered_sets(tmp_path: Path) -> None:
    server = Server(tmp_path)
    client = server.client()
    for text in (*SETUP[:2], *ORDERED):
        client.run(text)
    query = (
        "SELECT g, placed(2) WITHIN GROUP (ORDER BY x DESC) AS p, fence('<', g) WITHIN GROUP (ORDER BY t DESC) AS f,"
        " disc(0.5) WITHIN GROUP (ORDER BY x) AS d, my_rank(2, 'b') WITHIN GROUP (ORDER BY x, t) AS r,"
        " placed(1) WITHIN GROUP (ORDER BY x) FILTER (WHERE x > 1) AS q FROM ag GROUP BY g"
    )
    assert client.sorted(query) == [
        ("1", "2", "<bba1", "2", "2", "2"), ("2", "5", "<c2", "5", "1", "5"), ("3", None, "<3", None, "1", None)
    ]  # fmt: skip
    client.run(f"CREATE MATERIALIZED VIEW om AS {query}")
    for change in (
        "INSERT INTO ag VALUES (1, 7, 'z'), (4, NULL, NULL), (NULL, 3, 'n'), (1, 2, 'b')",
        "UPDATE ag SET x = coalesce(x, 0) - 1 WHERE g < 3",
        "DELETE FROM ag WHERE t = 'b'",
    ):
        client.run(change)
        assert client.rows("VERIFY MATERIALIZED VIEW om") == []
        assert client.sorted("TABLE om") == client.sorted(query)
    server.restart()
    client = server.client()
    client.run("DELETE FROM ag WHERE g = 3")
    assert client.rows("VERIFY MATERIALIZED VIEW om") == []
    catalog = (
        "SELECT proname, pg_get_function_arguments(p.oid), aggkind, aggnumdirectargs, aggfinalfn::text FROM pg_proc p"
        " JOIN pg_aggregate ON aggfnoid = p.oid WHERE p.oid >= 16384 ORDER BY 1"
    )
    assert client.rows(catalog) == [
        ("disc", "double precision ORDER BY anyelement", "o", "1", "percentile_disc_final"),
        ("fence", "text, integer ORDER BY text", "o", "2", "fenced"),
        ("my_rank", 'VARIADIC "any" ORDER BY VARIADIC "any"', "h", "1", "rank_final"),
        ("placed", "integer ORDER BY anycompatible", "o", "1", "at_place"),
    ]
    for text, state, message in (
        ("SELECT placed(1, x) FROM ag", "42809", "WITHIN GROUP is required for ordered-set aggregate placed"),
        ("SELECT fence('<', 1) WITHIN GROUP (ORDER BY x) FROM ag", "42883",
         "function fence(unknown, integer, integer) does not exist"),
        ("SELECT fence('<', 1) WITHIN GROUP (ORDER BY t) OVER () FROM ag", "0A000",
         "OVER is not supported for ordered-set aggregate fence"),
        ("CREATE AGGREGATE bad(VARIADIC int[] ORDER BY text) (sfunc = textcat, stype = text)", "0A000",
         "an ordered-set aggregate with a VARIADIC direct argument must have one VARIADIC aggregated argument of the "
         "same data type"),
        ("CREATE AGGREGATE bad(text ORDER BY text) (sfunc = textcat, stype = text, hypothetical)", "0A000",
         "a hypothetical-set aggregate of functions of one's own is not supported"),
        ('DROP AGGREGATE my_rank(VARIADIC "any" ORDER BY VARIADIC "any")', "2BP01",
         'cannot drop function my_rank("any") because other objects depend on it'),
        ("DROP AGGREGATE fence(text, int)", "42883", "aggregate fence(text, integer) does not exist"),
    ):  # fmt: skip
        error = client.error(text)
        assert (error.sqlstate, error.message) == (state, message)
    client.run("CREATE AGGREGATE plain(text) (sfunc = textcat, stype = text)")
    error = client.error("SELECT plain() WITHIN GROUP (ORDER BY t) FROM ag")
    assert error.message == "plain is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
    client.run("DROP AGGREGATE fence(text, int ORDER BY text) CASCADE")
    server.close()
