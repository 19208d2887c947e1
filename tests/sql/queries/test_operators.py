"""Operators of one's own: views over them are maintained, names keep their meaning, and what is refused.

What PostgreSQL answers is in ``tests/answers/operators.sql``, which ``test_plpgsql.py`` replays."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

SETUP = (
    "CREATE TYPE shape AS (w int, h int)",
    "CREATE FUNCTION same(shape, shape) RETURNS boolean LANGUAGE sql AS 'SELECT ($1).w * ($1).h = ($2).w * ($2).h'",
    "CREATE OPERATOR = (LEFTARG = shape, RIGHTARG = shape, FUNCTION = same)",
    "CREATE TABLE known (n int)",
    "CREATE FUNCTION among(int, int) RETURNS int LANGUAGE sql STRICT"
    " AS 'SELECT $1 * 10 + $2 + (SELECT count(*) FROM known WHERE n = $1)::int'",
    "CREATE OPERATOR <+> (LEFTARG = int, RIGHTARG = int, FUNCTION = among)",
    "CREATE OPERATOR @- (RIGHTARG = int, FUNCTION = abs)",
    "CREATE TABLE ow (id int PRIMARY KEY, a shape, b shape, n int)",
)
VIEWS = {
    "ov1": "SELECT x.id AS x, y.id AS y, x.a = y.b AS e FROM ow x JOIN ow y ON x.a = y.b",
    "ov2": "SELECT id, a IS DISTINCT FROM b AS d, nullif(a, b) IS NULL AS u, CASE a WHEN b THEN 1 ELSE 2 END AS c,"
    " a = ANY (ARRAY[ROW(2, 3)::shape, NULL]) AS q, a IN (SELECT b FROM ow WHERE n = 1) AS i FROM ow",
    "ov3": "SELECT n <+> id AS s, @- n AS m, count(*) FROM ow WHERE n OPERATOR(public.<+>) 1 <> 3 GROUP BY 1, 2",
    "ov4": "SELECT x.id, y.id AS o FROM ow x LEFT JOIN ow y USING (a)",
}  # fmt: skip


def made(tmp_path: Path) -> tuple[Server, Client]:
    server = Server(tmp_path)
    client = server.client()
    for text in (*SETUP, *(f"CREATE MATERIALIZED VIEW {name} AS {text}" for name, text in VIEWS.items())):
        client.run(text)
    return server, client


def test_views_are_maintained(tmp_path: Path) -> None:
    server, client = made(tmp_path)
    drawn = random.Random(5)

    def shape() -> str:
        return drawn.choice(("NULL", "ROW(1, 6)", "ROW(2, 3)", "ROW(1, NULL)", "ROW(2, 2)", "ROW(1, 1)"))

    for step in range(scaled(20)):
        id_, n = drawn.randrange(8), drawn.choice(("NULL", "1", "2", "3"))
        client.run(
            drawn.choice((
                f"INSERT INTO ow VALUES ({id_}, {shape()}, {shape()}, {n}) ON CONFLICT (id) DO UPDATE SET a = NULL",
                f"UPDATE ow SET b = {shape()}, n = {n} WHERE id <= {id_}",
                f"DELETE FROM ow WHERE id = {id_}",
                f"INSERT INTO known VALUES ({n}), (2)",
                f"DELETE FROM known WHERE n = {n}",
            ))
        )  # fmt: skip
        if step == 12:
            server.restart()
            client = server.client()
        for name, text in VIEWS.items():
            assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == []
            assert client.sorted(f"TABLE {name}") == client.sorted(text)
    server.close()


def test_names_keep_their_meaning(client: Client, server: Server) -> None:
    for name, sign in (("first", "+"), ("second", "-")):
        client.run(f"CREATE SCHEMA {name}")
        client.run(f"CREATE FUNCTION {name}.f(int, int) RETURNS int LANGUAGE sql AS 'SELECT $1 {sign} $2 * 100'")
        client.run(f"CREATE OPERATOR {name}.+ (LEFTARG = int, RIGHTARG = int, FUNCTION = {name}.f)")
        client.run(f"CREATE OPERATOR {name}.~~~ (LEFTARG = int, RIGHTARG = int, FUNCTION = {name}.f)")
    assert client.rows("SELECT 1 + 2, 1 OPERATOR(first.+) 2, 1 OPERATOR(second.+) 2") == [("3", "201", "-199")]
    client.run("SET search_path TO first, second, public")
    assert client.rows("SELECT 1 + 2, 1 ~~~ 2") == [("3", "201")]
    client.run("SET search_path TO second, pg_catalog, first, public")
    assert client.rows("SELECT 1 + 2, 1 ~~~ 2, 1 OPERATOR(pg_catalog.+) 2") == [("-199", "-199", "3")]
    client.run("CREATE TABLE public.one AS SELECT 1 AS a")
    client.run("CREATE VIEW public.shown AS SELECT a + 2 AS x, a ~~~ 2 AS y FROM public.one")
    client.run("CREATE VIEW public.mixed AS SELECT a OPERATOR(first.+) 2 AS x, a + 2 AS y FROM public.one")
    client.run("SET search_path TO public")
    client.run("CREATE VIEW public.plain AS SELECT a OPERATOR(first.+) 2 AS x, a + 2 AS y FROM public.one")
    assert client.rows("SELECT * FROM mixed, plain") == [("201", "-199", "201", "3")]
    client.run("SET search_path TO second, pg_catalog, first, public")
    client.run("CREATE FUNCTION public.g(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 2'")
    client.run("SET search_path TO public")
    assert client.rows("SELECT x, y, g(1) FROM shown") == [("-199", "-199", "-199")]
    client.run("CREATE OR REPLACE FUNCTION second.f(int, int) RETURNS int LANGUAGE sql AS 'SELECT $1'")
    assert client.rows("SELECT x, y, g(1) FROM shown") == [("1", "1", "1")]
    error = client.error("DROP SCHEMA second")
    assert (error.detail or "").splitlines()[-1] == "function g(integer) depends on operator second.+(integer,integer)"
    client.run("DROP SCHEMA first, second CASCADE")
    assert client.rows("SELECT count(*) FROM pg_operator WHERE oid >= 16384") == [("0",)]
    client.run("DROP TABLE one")


def test_a_function_may_come_to_call_its_own_operator(client: Client, server: Server) -> None:
    client.run("CREATE FUNCTION steps(int, int) RETURNS int LANGUAGE sql AS 'SELECT $1'")
    client.run("CREATE OPERATOR ->> (LEFTARG = int, RIGHTARG = int, FUNCTION = steps)")
    client.run(
        "CREATE OR REPLACE FUNCTION steps(int, int) RETURNS int LANGUAGE sql"
        " AS 'SELECT CASE WHEN $1 < $2 THEN 1 + ($1 + 1 ->> $2) ELSE 0 END'"
    )
    assert client.rows("SELECT 1 ->> 5, '{\"a\": 2}'::jsonb ->> 'a'") == [("4", "2")]
    client.run("DROP FUNCTION steps CASCADE")


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("CREATE OPERATOR CLASS c FOR TYPE int USING btree AS OPERATOR 1 <", "0A000",
         "CREATE OPERATOR CLASS is not supported"),
        ("DROP OPERATOR FAMILY c USING btree", "0A000", "DROP OPERATOR FAMILY is not supported"),
        ("CREATE OPERATOR pg_temp.~~~ (LEFTARG = int, RIGHTARG = int, FUNCTION = int4mi)", "0A000",
         "a temporary operator is not supported"),
        ("CREATE OPERATOR pg_catalog.~~~ (LEFTARG = int, RIGHTARG = int, FUNCTION = int4mi)", "42501",
         'permission denied to create "pg_catalog.operator ~~~(integer,integer)"'),
        ("CREATE OPERATOR ~~~ (RIGHTARG = int, FUNCTION = nothing.f)", "3F000", 'schema "nothing" does not exist'),
        ("CREATE MATERIALIZED VIEW m AS SELECT 1 <*> 2", "0A000",
         "function slow(integer,integer), which is interpreted, in a materialized view is not supported"),
        ("SELECT nullif(random()::int, true)", "0A000",
         "NULLIF by an operator of one's own over volatile values or subqueries is not supported"),
        ("COMMENT ON OPERATOR + (int, int) IS 'sum'", "0A000", "a comment on a built-in operator is not supported"),
        ("ALTER OPERATOR + (int, int) SET (JOIN = NONE)", "0A000",
         "ALTER OPERATOR of a built-in operator is not supported"),
    ],
)  # fmt: skip
def test_refused(client: Client, text: str, state: str, message: str) -> None:
    client.run("DROP FUNCTION IF EXISTS slow, truth CASCADE")
    client.run("CREATE FUNCTION slow(int, int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1 - $2; END'")
    client.run("CREATE OPERATOR <*> (LEFTARG = int, RIGHTARG = int, FUNCTION = slow)")
    client.run("CREATE FUNCTION truth(int, boolean) RETURNS boolean LANGUAGE sql AS 'SELECT ($1 <> 0) = $2'")
    client.run("CREATE OPERATOR = (LEFTARG = int, RIGHTARG = boolean, FUNCTION = truth)")
    error = client.error(text)
    assert (error.sqlstate, error.message) == (state, message)
