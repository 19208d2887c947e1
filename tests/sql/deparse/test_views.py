"""The text of views: as PostgreSQL shows it, and a text that means the same view again."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from ivm.errors import SqlError
from tests.answers.make_views import SETS, answered, lines
from tests.support.profiles import scaled
from tests.support.random_sql import Maker
from tests.support.sessions import Client, Server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("CREATE SCHEMA shown")
    client.run("SET search_path TO shown")
    yield client
    client.run("SET search_path TO public")
    client.run("DROP SCHEMA shown CASCADE")
    client.close()


def shown(client: Client, view: str, pretty: bool = False) -> str:
    ((text,),) = client.rows(f"SELECT pg_get_viewdef('{view}'::regclass, {str(pretty).lower()})")
    assert text is not None
    return text


def settled(client: Client, text: str, pretty: bool) -> str:
    """The text of the view that a text makes. A cast of an array's items settles at the second time, as it does in
    PostgreSQL."""
    for _ in range(2):
        client.run(f"CREATE VIEW again AS {text}")
        before, text = text, shown(client, "again", pretty)
        if before == text:
            break
        client.run("DROP VIEW again")
    assert before == text
    return text


def outcome(client: Client, view: str) -> object:
    """The view's rows, or the error that reading it raises."""
    try:
        return client.sorted(f"SELECT * FROM {view}")
    except SqlError as error:
        return error.sqlstate


@pytest.mark.parametrize("name", SETS)
def test_the_text_is_postgres_s_and_makes_the_same_view(client: Client, name: str) -> None:
    made, queries = lines(name)
    for statement in made:
        client.run(statement)
    answers = answered(name)
    assert [query for query, _, _ in answers] == queries
    wrong = []
    for query, plain, pretty in answers:
        client.run(f"CREATE VIEW v AS {query}")
        found = shown(client, "v"), shown(client, "v", True)
        if found != (plain, pretty):
            wrong.append((query, found, (plain, pretty)))
        for text, is_pretty in zip(found, (False, True), strict=True):
            settled(client, text, is_pretty)
            client.run("DROP VIEW again")
        client.run("DROP VIEW v")
    assert not wrong


OWN = (
    "SELECT a, b FROM TUMBLE(t, at, '5 minutes')",
    "SELECT w.a, window_end FROM HOP(t, at, '1 minute', '5 minutes') AS w",
    "SELECT x.a, y.b FROM t x ASOF JOIN u y ON x.a = y.a AND x.at >= y.at",
    "SELECT x.a, y.b FROM t x ASOF LEFT JOIN u y USING (a, at)",
    "WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 10) r (n int) AS (SELECT 1 UNION SELECT n + 1 FROM r "
    "WHERE n < 5) SELECT n FROM r",
    "WITH MUTUALLY RECURSIVE e (n int) AS (VALUES (0) UNION SELECT n + 1 FROM o WHERE n < 9), o (n int) AS "
    "(SELECT n + 1 FROM e WHERE n < 9) SELECT e.n, o.n AS m FROM e JOIN o ON o.n = e.n + 1",
    "SELECT TRY_CAST(b AS int) AS i, JSON_OBJECT('k' : a, 'l' : b NULL ON NULL) AS o FROM t",
    "SELECT JSON_ARRAY(a, b NULL ON NULL RETURNING jsonb) AS x, JSON_SCALAR(a) AS s, b IS JSON OBJECT AS j FROM t",
    "SELECT JSON_VALUE(j, '$.a' RETURNING int DEFAULT 3 ON EMPTY ERROR ON ERROR) AS v, "
    "JSON_QUERY(j, '$.b' PASSING a AS n WITH UNCONDITIONAL WRAPPER) AS q, JSON_EXISTS(j, '$.c') AS e FROM t",
    "SELECT k.* FROM t, JSON_TABLE(t.j, '$[*]' COLUMNS (i FOR ORDINALITY, x int PATH '$.x', y text EXISTS, "
    "NESTED PATH '$.z[*]' COLUMNS (z int PATH '$'))) AS k",
    "SELECT JSON_ARRAY(SELECT a FROM t) AS l, JSON_ARRAYAGG(b ORDER BY a) AS g FROM t",
    "SELECT lag(a) IGNORE NULLS OVER (ORDER BY at) AS l FROM t",
    "SELECT x FROM (SELECT a AS x FROM t)",
)


def test_freshet_s_own_forms_are_shown_too(client: Client) -> None:
    client.run("CREATE TABLE t (a int, b text, at timestamptz, j jsonb)")
    client.run("CREATE TABLE u (a int, b text, at timestamptz)")
    client.run(
        "INSERT INTO t VALUES (1, '2', '2020-01-01 00:00:10+00', '[{\"x\": 1, \"z\": [1, 2]}]'), (2, NULL, NULL, '{}')"
    )
    client.run("INSERT INTO u VALUES (1, 'u', '2020-01-01 00:00:00+00')")
    for query in OWN:
        client.run(f"CREATE VIEW v AS {query}")
        for pretty in (False, True):
            settled(client, shown(client, "v", pretty), pretty)
            assert client.sorted("SELECT * FROM again") == client.sorted("SELECT * FROM v"), query
            client.run("DROP VIEW again")
        client.run("DROP VIEW v")


@pytest.mark.parametrize("seed", range(scaled(4)))
def test_the_text_of_a_random_query_has_its_rows(client: Client, seed: int) -> None:
    maker = Maker(random.Random(seed))
    for table in maker.tables:
        client.run(table.definition)
    for _ in range(20):
        client.run(maker.change())
    for _ in range(12):
        query, names = maker.query()
        columns = ", ".join(f"c{i}" for i in range(len(names)))
        try:
            client.run(f"CREATE VIEW v ({columns}) AS {query}")
        except SqlError:  # it calls a function that only later versions of PostgreSQL have
            continue
        rows = outcome(client, "v")
        for pretty in (False, True):
            settled(client, shown(client, "v", pretty), pretty)
            assert outcome(client, "again") == rows, query
            client.run("DROP VIEW again")
        client.run("DROP VIEW v")


def test_a_view_follows_what_is_renamed_below_it(client: Client) -> None:
    client.run("CREATE TABLE t (a int, b int)")
    client.run("CREATE TABLE u (a int, c int)")
    client.run("CREATE VIEW v AS SELECT t.a, b, c, t AS whole FROM t JOIN u USING (a) WHERE b > 1")
    client.run("CREATE VIEW w AS SELECT x.* FROM t x NATURAL LEFT JOIN u y ORDER BY x.b")
    client.run("ALTER TABLE t RENAME TO r")
    client.run("ALTER TABLE r RENAME COLUMN a TO k")
    client.run('ALTER TABLE r RENAME COLUMN b TO "B"')
    client.run("ALTER TABLE u RENAME c TO d")
    client.run("CREATE TABLE t (z int)")
    assert shown(client, "v", True).splitlines() == [
        " SELECT r.a,", '    r."B" AS b,', "    u.d AS c,", "    r.*::r AS whole", '   FROM r r(a, "B")',
        "     JOIN u USING (a)", '  WHERE r."B" > 1;',
    ]  # fmt: skip
    assert shown(client, "w", True) == (
        ' SELECT x.a,\n    x."B" AS b\n   FROM r x(a, "B")\n     LEFT JOIN u y USING (a)\n  ORDER BY x."B";'
    )
    settled(client, shown(client, "v"), False)


def test_names_are_qualified_as_the_reader_s_path_asks(client: Client) -> None:
    client.run("CREATE TABLE t (a int)")
    client.run("CREATE TYPE mood AS ENUM ('ok')")
    client.run("CREATE FUNCTION two(int, bigint) RETURNS int LANGUAGE sql AS 'SELECT $1'")
    client.run("CREATE FUNCTION one(int) RETURNS int LANGUAGE sql AS 'SELECT 1'")
    client.run("CREATE OPERATOR @+@ (FUNCTION = two, LEFTARG = int, RIGHTARG = bigint)")
    client.run("CREATE VIEW v AS SELECT one(a) AS o, 'ok'::mood AS m, a @+@ 2 AS p FROM t")
    assert shown(client, "v") == (
        " SELECT one(t.a) AS o,\n    'ok'::mood AS m,\n    (t.a @+@ (2)::bigint) AS p\n   FROM t;"
    )
    client.run("SET search_path TO public")
    assert shown(client, "shown.v") == (
        " SELECT shown.one(t.a) AS o,\n    'ok'::shown.mood AS m,\n    (t.a OPERATOR(shown.@+@) (2)::bigint) AS p\n"
        "   FROM shown.t;"
    )


def test_a_width_puts_several_columns_on_a_line(client: Client) -> None:
    client.run("CREATE TABLE t (a int, b int)")
    client.run("CREATE VIEW v AS SELECT a, b, a + b AS c, CASE WHEN a > 1 THEN 2 END AS d, b AS e FROM t x, t y(f, g)")
    ((text,),) = client.rows("SELECT pg_get_viewdef('v'::regclass, 20)")
    assert text is not None
    assert text.splitlines() == [
        " SELECT x.a, x.b,", "    x.a + x.b AS c,", "        CASE", "            WHEN x.a > 1 THEN 2",
        "            ELSE NULL::integer", "        END AS d,", "    x.b AS e", "   FROM t x,", "    t y(f, g);",
    ]  # fmt: skip
