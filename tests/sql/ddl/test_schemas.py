"""Schemas and search_path: name resolution, dependencies, DROP … CASCADE. Texts are PostgreSQL 15's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.errors import SqlError
from sql.catalog.catalog import Catalog, RelationKind
from sql.catalog.search_path import path_of, schema_list
from sql.catalog.stored_form import catalog_from_json, catalog_to_json
from tests.support.sessions import Client, Server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """A session in an empty catalog with one schema."""
    client = server.client()
    yield client
    client.close()
    cleaner = server.client()
    made = [n for (n,) in cleaner.rows("SELECT nspname FROM pg_namespace WHERE oid >= 2200 AND nspname !~ '^pg_'")]
    for name in made:
        if name not in ("information_schema", "freshet"):
            cleaner.run(f'DROP SCHEMA "{name}" CASCADE')
    cleaner.run("CREATE SCHEMA public")
    cleaner.close()


def test_a_user_named_as_a_schema_of_the_system() -> None:
    for user in ("freshet", "pg_catalog"):
        assert path_of('"$user", public', user, "pg_temp_1", Catalog()).named == ("public",)


def test_the_list_of_search_path() -> None:
    assert schema_list('A, "B c" ,"d""e","$user"') == ("a", "B c", 'd"e', "$user")
    assert schema_list("") == schema_list("  ") == ()
    for wrong in ("a,,b", "a b", ",", "a,", '"a', '"a"b'):
        with pytest.raises(SqlError, match="invalid value for parameter") as raised:
            schema_list(wrong)
        assert raised.value.detail == "List syntax is invalid."


def test_what_a_search_path_means() -> None:
    catalog = Catalog().with_schema("me", 20000, 1).with_schema("a", 20001, 2)
    found = path_of('"$user", nope, a, public, a', "me", "pg_temp_1", catalog)
    assert (found.places, found.named) == (("pg_catalog", "me", "a", "public"), ("me", "a", "public"))
    found = path_of("a, pg_catalog", "me", "pg_temp_1", catalog.with_schema("pg_temp_1", 20002, 3))
    assert (found.places, found.named) == (("pg_temp_1", "a", "pg_catalog"), ("a", "pg_catalog"))
    assert path_of("pg_temp", "me", "pg_temp_1", catalog).places == ("pg_catalog", "pg_temp_1")


@pytest.mark.parametrize("user", ["freshet", "pg_catalog", "information_schema"])
def test_an_internal_schema_is_nobodys_own(user: str) -> None:
    path = path_of('"$user", public', user, "pg_temp_1", Catalog())
    assert path == path_of('"$user", public', "me", "pg_temp_1", Catalog())


def test_tables_of_one_name_in_two_schemas(client: Client) -> None:
    client.run("CREATE SCHEMA a")
    client.run("CREATE SCHEMA IF NOT EXISTS b AUTHORIZATION me")
    client.run("CREATE TABLE a.t (x int PRIMARY KEY)")
    client.run("CREATE TABLE b.t (y text)")
    client.run("INSERT INTO a.t VALUES (1), (2)")
    client.run("INSERT INTO b.t SELECT x || '!' FROM a.t")
    assert client.rows("SELECT a.t.x, b.t.y FROM a.t JOIN b.t ON b.t.y = a.t.x || '!' ORDER BY 1") == [
        ("1", "1!"), ("2", "2!"),
    ]  # fmt: skip
    client.run("UPDATE a.t SET x = a.t.x + 10 WHERE a.t.x = 1")
    client.run("CREATE MATERIALIZED VIEW a.m AS SELECT count(*) AS n FROM a.t")
    client.run("DELETE FROM a.t WHERE x = 2")
    assert client.rows("SELECT n FROM a.m") == [("1",)]
    assert client.rows("VERIFY MATERIALIZED VIEW a.m") == []
    client.run("COPY b.t FROM STDIN", b"z\n")
    assert sorted(client.copy_out("COPY b.t TO STDOUT")) == ["1!", "2!", "z"]
    client.run("TRUNCATE b.t, a.t")
    assert client.rows("SELECT (SELECT count(*) FROM b.t), n FROM a.m") == [("0", "0")]
    assert "a" in str(client.rows("EXPLAIN SELECT * FROM a.t"))
    client.run("COMMENT ON TABLE a.t IS 'x'")
    assert client.state("SELECT * FROM t") == "42P01"


def test_search_path_finds_and_makes(client: Client) -> None:
    assert client.rows("SHOW search_path") == [('"$user", public',)]
    client.run("CREATE TABLE t (a int)")
    client.run("CREATE SCHEMA s")
    client.run("SET search_path TO s, public")
    assert client.rows("SELECT current_schema(), current_schema, current_schemas(true), current_schemas(false)") == [
        ("s", "s", "{pg_catalog,s,public}", "{s,public}")
    ]
    assert client.rows("SELECT count(*) FROM t") == [("0",)]
    client.run("CREATE TABLE t (a int, b int)")
    client.run("INSERT INTO t VALUES (1, 2)")
    assert client.rows("SELECT * FROM t") == [("1", "2")]
    assert client.rows("SELECT * FROM public.t") == []
    client.run("DROP TABLE t")
    assert client.rows("SELECT * FROM t") == []
    client.run("""SET search_path = 'a, b', "C d", public, PUBLIC""")
    assert client.rows("SHOW search_path") == [('"a, b", "C d", public, public',)]
    assert client.rows("SELECT set_config('search_path', 's', false)") == [("s",)]
    assert client.rows("SELECT current_schemas(false)") == [("{s}",)]
    error = client.error("SELECT set_config('search_path', 'a,,b', false)")
    assert (error.sqlstate, error.message) == ("22023", 'invalid value for parameter "search_path": "a,,b"')
    client.run("SET SCHEMA 'public'")
    assert client.rows("SHOW search_path") == [("public",)]
    client.run("SET search_path = nope")
    assert client.rows("SELECT current_schema() IS NULL, current_schemas(true)") == [("t", "{pg_catalog}")]
    error = client.error("CREATE TABLE zz (a int)")
    assert (error.sqlstate, error.message) == ("3F000", "no schema has been selected to create in")
    client.run("RESET search_path")
    assert client.rows("SHOW search_path") == [('"$user", public',)]
    client.run("CREATE SCHEMA me")
    assert client.rows("SELECT current_schema") == [("me",)]


def test_set_local_search_path_ends_with_the_transaction(client: Client) -> None:
    client.run("CREATE SCHEMA s")
    client.run("BEGIN")
    client.run("SET LOCAL search_path = s")
    assert client.rows("SELECT current_schema()") == [("s",)]
    client.run("COMMIT")
    assert client.rows("SELECT current_schema()") == [("public",)]


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("CREATE SCHEMA public", "42P06", 'schema "public" already exists'),
        ("CREATE SCHEMA pg_foo", "42939", 'unacceptable schema name "pg_foo"'),
        ("CREATE SCHEMA AUTHORIZATION nobody", "42704", 'role "nobody" does not exist'),
        ("CREATE SCHEMA IF NOT EXISTS q CREATE TABLE t (a int)", "0A000",
         "CREATE SCHEMA IF NOT EXISTS cannot include schema elements"),
        ("DROP SCHEMA pg_catalog", "2BP01",
         "cannot drop schema pg_catalog because it is required by the database system"),
        ("DROP SCHEMA nope", "3F000", 'schema "nope" does not exist'),
        ("CREATE TABLE nope.t (a int)", "3F000", 'schema "nope" does not exist'),
        ("CREATE VIEW nope.t AS SELECT 1", "3F000", 'schema "nope" does not exist'),
        ("DROP TABLE nope.t", "3F000", 'schema "nope" does not exist'),
        ("DROP TABLE public.t", "42P01", 'table "public.t" does not exist'),
        ("ALTER TABLE nope.t ADD COLUMN a int", "3F000", 'schema "nope" does not exist'),
        ("TRUNCATE nope.t", "3F000", 'schema "nope" does not exist'),
        ("COPY nope.t FROM STDIN", "3F000", 'schema "nope" does not exist'),
        ("SELECT 'nope.t'::regclass", "3F000", 'schema "nope" does not exist'),
        ("SELECT * FROM nope.t", "42P01", 'relation "nope.t" does not exist'),
        ("INSERT INTO nope.t VALUES (1)", "42P01", 'relation "nope.t" does not exist'),
        ("CREATE TABLE pg_catalog.x (a int)", "42501", 'permission denied to create "pg_catalog.x"'),
        ("CREATE TEMP TABLE public.x (a int)", "42P16", "cannot create temporary relation in non-temporary schema"),
        ("CREATE TEMP MATERIALIZED VIEW x AS SELECT 1", "42601", 'syntax error at or near "MATERIALIZED"'),
    ],
)  # fmt: skip
def test_refusals(client: Client, text: str, sqlstate: str, message: str) -> None:
    error = client.error(text)
    assert (error.sqlstate, error.message) == (sqlstate, message)


def test_skipped_with_a_notice(client: Client) -> None:
    client.run("CREATE SCHEMA IF NOT EXISTS public")
    client.run("DROP SCHEMA IF EXISTS nope, nope2")
    client.run("DROP TABLE IF EXISTS nope.t")
    client.run("DROP TABLE IF EXISTS public.t")
    assert [n.message for n in client.notices()] == [
        'schema "public" already exists, skipping', 'schema "nope" does not exist, skipping',
        'schema "nope2" does not exist, skipping', 'schema "nope" does not exist, skipping',
        'table "public.t" does not exist, skipping',
    ]  # fmt: skip


def _two_schemas(client: Client) -> None:
    client.run("CREATE SCHEMA s1")
    client.run("CREATE SCHEMA s2")
    client.run("CREATE TABLE s1.t (a int PRIMARY KEY)")
    client.run("CREATE VIEW s1.v AS SELECT * FROM s1.t")
    client.run("CREATE MATERIALIZED VIEW s2.m AS SELECT a FROM s1.v")


def test_a_schema_goes_with_what_is_in_it(client: Client) -> None:
    _two_schemas(client)
    error = client.error("DROP SCHEMA s1")
    assert (error.sqlstate, error.message) == (
        "2BP01", "cannot drop schema s1 because other objects depend on it"
    )  # fmt: skip
    assert error.detail == (
        "table s1.t depends on schema s1\nview s1.v depends on schema s1\nmaterialized view s2.m depends on view s1.v"
    )
    assert error.hint == "Use DROP ... CASCADE to drop the dependent objects too."
    client.run("SET search_path = s1")
    assert client.state("DROP TABLE t") == "2BP01"
    client.notices()
    client.run("DROP TABLE t CASCADE")
    (notice,) = client.notices()
    assert notice.message == "drop cascades to 2 other objects"
    assert notice.detail == "drop cascades to view v\ndrop cascades to materialized view s2.m"
    client.run("DROP SCHEMA s1 RESTRICT")
    client.run("CREATE TABLE s2.t (a int)")
    client.run("DROP SCHEMA s2 CASCADE")
    (notice,) = client.notices()
    assert notice.message == "drop cascades to table s2.t"
    assert client.state("DROP SCHEMA s2") == "3F000"


def test_several_schemas_go_together(client: Client) -> None:
    _two_schemas(client)
    client.run("DROP SCHEMA s1, s2 CASCADE")
    assert client.rows("SELECT nspname FROM pg_namespace WHERE nspname LIKE 's_'") == []
    assert client.rows("SELECT relname FROM pg_class WHERE oid >= 16384 AND relname IN ('t', 'v', 'm')") == []


def test_sequences_go_with_their_tables(client: Client) -> None:
    client.run("CREATE SCHEMA s")
    client.run("CREATE TABLE s.t (id serial PRIMARY KEY)")
    assert client.error("DROP SCHEMA s").detail == "table s.t depends on schema s"
    client.run("CREATE TEMP SEQUENCE q")
    client.run("CREATE TABLE u (a int DEFAULT nextval('q'))")
    client.run("DISCARD TEMP")
    client.run("INSERT INTO u DEFAULT VALUES")
    assert client.rows("SELECT * FROM u") == [(None,)]
    client.notices()
    client.run("DROP SCHEMA s CASCADE")
    assert [n.message for n in client.notices()] == ["drop cascades to table s.t"]
    assert client.rows("SELECT relname FROM pg_class WHERE relkind = 'S'") == []


def test_a_foreign_key_goes_with_the_schema_of_its_parent(client: Client) -> None:
    client.run("CREATE SCHEMA s")
    client.run("CREATE TABLE s.p (id int PRIMARY KEY)")
    client.run("CREATE TABLE c (id int REFERENCES s.p)")
    assert client.state("INSERT INTO c VALUES (1)") == "23503"
    client.notices()
    client.run("DROP SCHEMA s CASCADE")
    (notice,) = client.notices()
    assert notice.detail == "drop cascades to table s.p\ndrop cascades to constraint c_id_fkey on table c"
    client.run("INSERT INTO c VALUES (1)")


def test_public_may_go_and_come_back(client: Client) -> None:
    client.run("CREATE TABLE t (a int)")
    client.run("DROP SCHEMA public CASCADE")
    assert client.state("CREATE TABLE t (a int)") == "3F000"
    client.run("CREATE SCHEMA public")
    client.run("CREATE TABLE t (a int)")
    assert client.rows("SELECT count(*) FROM t") == [("0",)]


def test_schemas_are_part_of_transactions(client: Client, server: Server) -> None:
    other = server.client()
    client.run("BEGIN")
    client.run("CREATE SCHEMA s")
    client.run("CREATE TABLE s.t (a int)")
    client.run("SAVEPOINT p")
    client.run("DROP SCHEMA s CASCADE")
    assert client.rows("SELECT count(*) FROM pg_namespace WHERE nspname = 's'") == [("0",)]
    client.run("ROLLBACK TO p")
    client.run("INSERT INTO s.t VALUES (1)")
    assert client.rows("SELECT * FROM s.t") == [("1",)]
    assert other.state("SELECT * FROM s.t") == "42P01"
    client.run("ROLLBACK")
    assert client.state("DROP SCHEMA s") == "3F000"
    client.run("BEGIN")
    client.run("CREATE SCHEMA s")
    client.run("CREATE TABLE s.t AS SELECT 5 AS a")
    client.run("COMMIT")
    assert other.rows("SELECT a FROM s.t") == [("5",)]
    other.close()


def test_a_prepared_statement_follows_search_path(client: Client) -> None:
    client.run("CREATE SCHEMA s")
    client.run("CREATE TABLE t AS SELECT 1 AS a")
    client.run("CREATE TABLE s.t AS SELECT 2 AS a")
    client.run("CREATE TABLE s.w AS SELECT 'x' AS a")
    client.run("PREPARE q AS SELECT a FROM t")
    assert client.rows("EXECUTE q") == [("1",)]
    client.run("SET search_path = s")
    assert client.rows("EXECUTE q") == [("2",)]
    client.run("SET search_path = public")
    assert client.rows("EXECUTE q") == [("1",)]
    client.run("CREATE SCHEMA other")
    client.run("CREATE TABLE other.t AS SELECT 'x' AS a")
    client.run("SET search_path = other")
    error = client.error("EXECUTE q")
    assert (error.sqlstate, error.message) == ("0A000", "cached plan must not change result type")


def test_a_view_keeps_what_its_names_meant(client: Client) -> None:
    client.run("CREATE SCHEMA a")
    client.run("CREATE SCHEMA b")
    client.run("CREATE TABLE b.t AS SELECT 1 AS x")
    client.run("SET search_path = a, b")
    client.run("CREATE VIEW b.v AS SELECT x FROM t WHERE x IN (SELECT x FROM t)")
    client.run("CREATE MATERIALIZED VIEW b.m AS WITH c AS (SELECT * FROM v) SELECT c.x, t.x AS y FROM c, t")
    client.run("CREATE TABLE t AS SELECT 'no' AS other")
    client.run("INSERT INTO b.t VALUES (2)")
    assert client.sorted("SELECT * FROM v") == [("1",), ("2",)]
    assert len(client.rows("SELECT * FROM m")) == 4
    assert client.rows("VERIFY MATERIALIZED VIEW m") == []
    assert client.rows("SELECT pg_get_viewdef('v'::regclass)") == [
        (" SELECT t.x\n   FROM b.t\n  WHERE (t.x IN ( SELECT t_1.x\n           FROM b.t t_1));",)
    ]
    client.run("SET search_path = b")
    assert client.rows("SELECT pg_get_viewdef('v'::regclass)") == [
        (" SELECT t.x\n   FROM t\n  WHERE (t.x IN ( SELECT t_1.x\n           FROM t t_1));",)
    ]
    client.run("SET search_path = public")
    assert client.sorted("SELECT * FROM b.v") == [("1",), ("2",)]
    assert client.rows("SELECT definition FROM pg_matviews WHERE matviewname = 'm'") == [
        (
            " WITH c AS (\n         SELECT v.x\n           FROM b.v\n        )\n SELECT c.x,\n    t.x AS y\n"
            "   FROM c,\n    b.t;",
        )
    ]


def test_what_the_catalogs_show(client: Client) -> None:
    client.run('CREATE SCHEMA "S s"')
    client.run('CREATE TABLE "S s".t (a int PRIMARY KEY)')
    client.run("CREATE TABLE t (a int PRIMARY KEY)")
    assert client.rows(
        "SELECT n.nspname, c.relname, c.oid::regclass::text, pg_table_is_visible(c.oid) FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid >= 16384 ORDER BY n.nspname, c.relname"
    ) == [
        ("S s", "t", '"S s".t', "f"), ("S s", "t_pkey", '"S s".t_pkey', "f"),
        ("public", "t", "t", "t"), ("public", "t_pkey", "t_pkey", "t"),
    ]  # fmt: skip
    client.run('SET search_path = "S s"')
    assert client.rows("SELECT 't'::regclass = '\"S s\".t'::regclass") == [("t",)]
    assert client.rows("SELECT 'public.t'::regclass::text") == [("public.t",)]
    assert client.rows("SELECT '\"S s\"'::regnamespace::text") == [('"S s"',)]
    assert client.rows("SELECT to_regnamespace('nope') IS NULL, to_regclass('nope.t') IS NULL") == [("t", "t")]
    wanted = "WHERE table_name = 't' ORDER BY table_schema"
    for view in ("tables", "columns", "table_constraints", "key_column_usage"):
        asked = f"SELECT DISTINCT table_schema FROM information_schema.{view} {wanted}"
        assert client.rows(asked) == [("S s",), ("public",)]
    assert ("S s",) in client.rows("SELECT schema_name FROM information_schema.schemata")
    assert client.rows("SELECT schemaname FROM pg_tables WHERE tablename = 't' ORDER BY 1") == [("S s",), ("public",)]


def test_each_session_has_temporary_relations_of_its_own(client: Client, server: Server) -> None:
    other = server.client()
    client.run("CREATE TABLE t AS SELECT 'public' AS a")
    client.run("CREATE TEMP TABLE t AS SELECT 'mine' AS a")
    other.run("CREATE TEMP TABLE t AS SELECT 'yours' AS a")
    query = "SELECT a FROM t"
    assert (client.rows(query), other.rows(query)) == ([("mine",)], [("yours",)])
    assert client.rows("SELECT a FROM public.t, pg_temp.t AS u(b)") == [("public",)]
    client.run("CREATE TEMP VIEW v AS SELECT a || '!' AS b FROM pg_temp.t")
    client.notices()
    client.run("CREATE VIEW w AS SELECT * FROM v")
    assert [n.message for n in client.notices()] == ['view "w" will be a temporary view']
    assert client.rows("SELECT * FROM w") == [("mine!",)]
    assert other.state("SELECT * FROM w") == "42P01"
    error = client.error("CREATE MATERIALIZED VIEW m AS SELECT * FROM t")
    assert error.message == "materialized views must not use temporary tables or views"
    assert client.state("CREATE VIEW public.w AS SELECT * FROM v") == "42P16"
    assert client.rows(
        "SELECT relname, relpersistence, relnamespace = pg_my_temp_schema(), pg_table_is_visible(oid) FROM pg_class "
        "WHERE relname IN ('t', 'w') AND NOT pg_is_other_temp_schema(relnamespace) ORDER BY 1, 2"
    ) == [("t", "p", "f", "f"), ("t", "t", "t", "t"), ("w", "t", "t", "t")]
    assert client.sorted("SELECT table_type FROM information_schema.tables WHERE table_name = 't'") == [
        ("BASE TABLE",), ("LOCAL TEMPORARY",),
    ]  # fmt: skip
    client.run("DROP TABLE t CASCADE")
    assert client.rows(query) == [("public",)]
    assert other.rows(query) == [("yours",)]
    other.run("DISCARD TEMP")
    assert other.rows(query) == [("public",)]
    other.close()


def test_a_temporary_table_rolls_back(client: Client) -> None:
    client.run("BEGIN")
    client.run("CREATE TEMP TABLE gone (a int)")
    client.run("ROLLBACK")
    assert client.state("SELECT * FROM gone") == "42P01"
    assert client.rows("SELECT pg_my_temp_schema()") == [("0",)]
    client.run("SET search_path = pg_temp, public")
    client.run("CREATE TABLE mine (a int)")
    assert client.rows("SELECT relpersistence FROM pg_class WHERE relname = 'mine'") == [("t",)]


def test_a_table_that_goes_with_its_transaction(client: Client) -> None:
    client.run("CREATE TABLE t (a int)")
    client.run("BEGIN")
    client.run("CREATE TEMP TABLE stage (id serial, a int) ON COMMIT DROP")
    client.run("CREATE TEMP VIEW v AS SELECT a + 1 AS b FROM stage")
    client.run("COPY stage (a) FROM STDIN", b"1\n2\n")
    client.run("INSERT INTO t SELECT b FROM v")
    client.run("SAVEPOINT p")
    client.run("CREATE TEMP TABLE gone ON COMMIT DROP AS SELECT 1 AS x")
    client.run("ROLLBACK TO p")
    client.run("COMMIT")
    assert client.sorted("SELECT a FROM t") == [("2",), ("3",)]
    assert client.state("SELECT * FROM stage") == "42P01"
    assert client.rows("SELECT relname FROM pg_class WHERE relpersistence = 't'") == []
    client.run("CREATE TEMP TABLE stage (a int) ON COMMIT DROP")
    assert client.state("SELECT * FROM stage") == "42P01"
    assert client.state("CREATE TABLE u (a int) ON COMMIT DROP") == "42P16"


def test_commits_delete_the_rows_of_a_temporary_table(client: Client) -> None:
    client.run("CREATE TEMP TABLE t (a int PRIMARY KEY, b text) ON COMMIT DELETE ROWS")
    client.run("INSERT INTO t VALUES (1, NULL)")
    assert client.rows("INSERT INTO t VALUES (1, 'y') RETURNING b") == [("y",)]
    client.run("BEGIN; INSERT INTO t VALUES (1, 'x'), (2, NULL); UPDATE t SET b = 'z' WHERE a = 2; SAVEPOINT s")
    client.run("INSERT INTO t VALUES (3, 'q'); DELETE FROM t WHERE a = 1; ROLLBACK TO s")
    assert client.sorted("TABLE t") == [("1", "x"), ("2", "z")]
    client.run("COMMIT")
    assert client.rows("TABLE t") == []
    client.run("BEGIN; INSERT INTO t SELECT g, 'x' FROM generate_series(1, 500) g; DROP TABLE t; COMMIT")
    client.run("BEGIN; CREATE TEMP TABLE u (a) ON COMMIT DELETE ROWS AS SELECT 1")
    client.run("COPY u FROM STDIN", b"2\n")
    assert client.sorted("TABLE u") == [("1",), ("2",)]
    client.run("COMMIT")
    assert client.rows("TABLE u") == []
    assert client.state("CREATE TABLE v (a int) ON COMMIT DELETE ROWS") == "42P16"


def test_rows_that_commits_delete_are_not_referred_to_by_others(client: Client) -> None:
    client.run("CREATE TEMP TABLE p (a int PRIMARY KEY) ON COMMIT DELETE ROWS")
    error = client.error("CREATE TEMP TABLE k (a int REFERENCES p)")
    assert (error.sqlstate, error.message) == ("0A000", "unsupported ON COMMIT and foreign key combination")
    client.run("BEGIN; CREATE TEMP TABLE k (a int REFERENCES p); INSERT INTO p VALUES (1); INSERT INTO k VALUES (1)")
    assert client.state("COMMIT") == "0A000"
    client.run("CREATE TEMP TABLE k (a int REFERENCES p) ON COMMIT DELETE ROWS")
    client.run("BEGIN; INSERT INTO p VALUES (1); INSERT INTO k VALUES (1); COMMIT")
    assert client.rows("SELECT (SELECT count(*) FROM p), (SELECT count(*) FROM k)") == [("0", "0")]


def test_restart(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    _two_schemas(client)
    client.run("SET search_path = s1")
    client.run("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t")
    client.run("INSERT INTO t VALUES (1), (2)")
    server.restart()
    client = server.client(search_path="s2, s1")
    assert client.rows("SELECT n FROM n") == [("2",)]
    assert client.rows("SELECT 'm'::regclass::text, 't'::regclass::text") == [("m", "t")]
    client.run("INSERT INTO t VALUES (3)")
    assert client.sorted("SELECT * FROM m") == [("1",), ("2",), ("3",)]
    assert client.rows("VERIFY MATERIALIZED VIEW n") == []
    client.run("DROP SCHEMA s1 CASCADE")
    client.run("DROP SCHEMA public")
    server.restart()
    client = server.client()
    assert client.state("DROP SCHEMA s1") == "3F000"
    assert client.state("CREATE TABLE t (a int)") == "3F000"
    server.close()


def test_a_catalog_from_before_schemas_loads() -> None:
    old = (
        b'{"format":1,"next_id":16386,"version":3,"relations":['
        b'{"id":16384,"schema":"public","name":"t","kind":"r","columns":[["a",["int4",null,null,null],true,null]],'
        b'"primary_key":[],"definition":null,"retain":0,"created":1,"dependencies":[]},'
        b'{"id":16385,"schema":"public","name":"v","kind":"v","columns":[["a",["int4",null,null,null],true,null]],'
        b'"primary_key":[],"definition":"SELECT a FROM t","retain":0,"created":1,"dependencies":[16384]}]}'
    )
    catalog = catalog_from_json(Catalog(), old)
    assert dict(catalog.schemas) == {"public": 2200}
    view = catalog.find("public", "v")
    assert view is not None
    assert (view.kind, view.references) == (RelationKind.VIEW, ())
    again = catalog_from_json(Catalog(), catalog_to_json(catalog.with_schema("s", 16390, 4)))
    assert dict(again.schemas) == {"public": 2200, "s": 16390}
    assert again.next_id == 16391


def test_functions(client: Client) -> None:
    client.run("CREATE TABLE t (a int)")
    names = "'UTF8', 'utf-8', 'nope'"
    assert client.rows(f"SELECT pg_char_to_encoding(n) FROM unnest(ARRAY[{names}]) n") == [("6",), ("6",), ("-1",)]
    assert client.rows("SELECT pg_relation_size('t'::regclass, 'main') >= 0") == [("t",)]
    assert client.state("SELECT pg_relation_size('t'::regclass, 'x')") == "22023"


def test_temporary_relations_of_a_server_that_was_killed_are_gone(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t AS SELECT 1 AS a")
    client.run("CREATE TEMP TABLE t AS SELECT 2 AS a")
    client.run("CREATE TEMP VIEW v AS SELECT * FROM t")
    server.coordinator.sessions.clear()
    for _ in range(2):
        server.restart()
        client = server.client()
        assert client.rows("SELECT a FROM t") == [("1",)]
        assert client.state("SELECT * FROM v") == "42P01"
        assert client.rows("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pg_temp%'") == []
    client.run("CREATE TEMP TABLE t AS SELECT 3 AS a")
    assert client.rows("SELECT a FROM t") == [("3",)]
    server.close()


def test_a_schema_is_renamed(client: Client) -> None:
    client.run("CREATE SCHEMA one")
    client.run("CREATE TABLE one.t (id serial PRIMARY KEY, x int CHECK (t.x > 0))")
    client.run("CREATE MATERIALIZED VIEW seen AS SELECT sum(x) AS s FROM one.t")
    client.run("CREATE VIEW one.v AS SELECT x FROM one.t")
    client.run("COMMENT ON SCHEMA one IS 'mine'")
    client.run("ALTER SCHEMA one RENAME TO two")
    client.run("ALTER SCHEMA two OWNER TO CURRENT_USER")
    client.run("INSERT INTO two.t (x) VALUES (5), (6)")
    assert client.rows("SELECT id, x FROM two.t ORDER BY 1") == [("1", "5"), ("2", "6")]
    assert client.rows("TABLE seen") == [("11",)]
    assert client.sorted("TABLE two.v") == [("5",), ("6",)]
    assert client.rows("SELECT obj_description('two'::regnamespace)") == [("mine",)]
    assert client.state("TABLE one.t") == "42P01"
    for text, state in (
        ("one RENAME TO x", "3F000"), ("two RENAME TO public", "42P06"), ("two RENAME TO pg_x", "42939"),
        ("pg_catalog RENAME TO x", "42501"), ("two OWNER TO nobody", "42704"), ("two FOO", "42601"),
    ):  # fmt: skip
        assert client.state(f"ALTER SCHEMA {text}") == state
    client.run("CREATE FUNCTION two.f(int) RETURNS int LANGUAGE sql AS 'SELECT $1'")
    client.run("CREATE TABLE uses (x int DEFAULT two.f(1))")
    assert client.state("ALTER SCHEMA two RENAME TO three") == "0A000"
    client.run("DROP TABLE uses")
    client.run("ALTER SCHEMA two RENAME TO three")
    assert client.rows("SELECT three.f(1)") == [("1",)]
    client.run("DROP SCHEMA three CASCADE")


def test_create_schema_with_elements(client: Client) -> None:
    client.run("CREATE TABLE other (id int PRIMARY KEY)")
    client.run("CREATE TABLE t (wrong int)")
    client.run(
        "CREATE SCHEMA made CREATE VIEW v AS SELECT * FROM t CREATE INDEX i ON made.t (x) CREATE SEQUENCE q START 5"
        " CREATE TABLE t (x int DEFAULT nextval('q'), y int REFERENCES public.other) CREATE UNIQUE INDEX ON t (y)"
    )
    client.run("INSERT INTO made.t VALUES (DEFAULT, NULL)")
    assert client.rows("TABLE made.v") == [("5", None)]
    names = "SELECT relname FROM pg_class WHERE relnamespace = 'made'::regnamespace ORDER BY 1"
    assert client.rows(names) == [("i",), ("q",), ("t",), ("t_y_idx",), ("v",)]
    assert client.rows("SHOW search_path") == [('"$user", public',)]
    assert client.rows("SELECT current_schema") == [("public",)]
    client.run("CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.x := 7; RETURN NEW; END'")
    client.run(
        "CREATE SCHEMA fired CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION told()"
        " CREATE TABLE t (x int)"
    )
    client.run("INSERT INTO fired.t VALUES (1)")
    assert client.rows("TABLE fired.t") == [("7",)]


@pytest.mark.parametrize(
    ("elements", "state", "message"),
    [
        ("CREATE TABLE public.t (x int)", "42P15",
         "CREATE specifies a schema (public) different from the one being created (bad)"),
        ("CREATE TABLE t (x int) CREATE VIEW v AS SELECT y FROM t", "42703", 'column "y" does not exist'),
        ("CREATE TABLE t (x int REFERENCES u) CREATE TABLE u (y int PRIMARY KEY)", "42P01",
         'relation "u" does not exist'),
        ("CREATE TEMP TABLE t (x int)", "42P16", "cannot create temporary relation in non-temporary schema"),
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "42601",
         'syntax error at or near "FUNCTION"'),
        ("DROP TABLE t", "42601", 'syntax error at or near "DROP"'),
        ("CREATE TABLE t AS SELECT 1", "0A000", "CREATE SCHEMA with elements of this kind is not supported"),
    ],
)  # fmt: skip
def test_wrong_elements(client: Client, elements: str, state: str, message: str) -> None:
    error = client.error(f"CREATE SCHEMA bad {elements}")
    assert (error.sqlstate, error.message) == (state, message)
    assert client.rows("SELECT count(*) FROM pg_namespace WHERE nspname = 'bad'") == [("0",)]


def test_a_temporary_function_ends_with_its_session(server: Server) -> None:
    first, other = server.client(), server.client()
    first.run("CREATE FUNCTION pg_temp.passing(x int) RETURNS int LANGUAGE sql AS 'SELECT x + 1'")
    assert first.rows("SELECT pg_temp.passing(1)") == [("2",)]
    shown = "SELECT n.nspname LIKE 'pg_temp_%' FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace "
    shown += "WHERE proname = 'passing'"
    assert other.rows(shown) == [("t",)]
    first.close()
    assert other.rows(shown) == []
    other.close()
