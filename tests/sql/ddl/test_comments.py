"""COMMENT ON: what is stored, where it is shown, when it goes, and the errors of objects that are not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server

OBJECTS = (
    ("TABLE t", "obj_description('t'::regclass, 'pg_class')"),
    ("TABLE t", "obj_description('t'::regclass)"),
    ("COLUMN t.b", "col_description('t'::regclass, 2)"),
    ("COLUMN v.b", "col_description('v'::regclass, 1)"),
    ("VIEW v", "obj_description('v'::regclass)"),
    ("MATERIALIZED VIEW public.m", "obj_description('m'::regclass)"),
    ("INDEX i", "obj_description('i'::regclass, 'pg_class')"),
    ("INDEX t_pkey", "obj_description('t_pkey'::regclass, 'pg_class')"),
    ("SEQUENCE s", "obj_description('s'::regclass)"),
    ("SCHEMA shown", "obj_description('shown'::regnamespace, 'pg_namespace')"),
    ("TYPE mood", "obj_description((SELECT oid FROM pg_type WHERE typname = 'mood'), 'pg_type')"),
    ("FUNCTION f(int)", "obj_description((SELECT oid FROM pg_proc WHERE proname = 'f'), 'pg_proc')"),
    ("DATABASE db", "shobj_description((SELECT oid FROM pg_database WHERE datname = 'db'), 'pg_database')"),
    *(
        (f"CONSTRAINT {name} ON t", f"obj_description((SELECT oid FROM pg_constraint WHERE conname = '{name}'))")
        for name in ("t_pkey", "t_b_check", "t_a_fkey")
    ),
)
MISTAKES = (
    ("TABLE missing", "42P01", 'relation "missing" does not exist'),
    ("TABLE nowhere.t", "3F000", 'schema "nowhere" does not exist'),
    ("TABLE v", "42809", '"v" is not a table'),
    ("VIEW t", "42809", '"t" is not a view'),
    ("INDEX t", "42809", '"t" is not an index'),
    ("COLUMN t.z", "42703", 'column "z" of relation "t" does not exist'),
    ("CONSTRAINT z ON t", "42704", 'constraint "z" for table "t" does not exist'),
    ("FUNCTION f(text)", "42883", "function f(text) does not exist"),
    ("SCHEMA nowhere", "3F000", 'schema "nowhere" does not exist'),
    ("TYPE missing", "42704", 'type "missing" does not exist'),
    ("ROLE somebody", "42704", 'role "somebody" does not exist'),
    ("DATABASE other", "3D000", 'database "other" does not exist'),
    ("OPERATOR + (int, int)", "0A000", "a comment on a built-in operator is not supported"),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("data"))
    client = server.client()
    for text in (
        "CREATE TABLE t (a int PRIMARY KEY REFERENCES t, b int CHECK (b > 0), c text)",
        "CREATE INDEX i ON t (b)",
        "CREATE VIEW v AS SELECT b FROM t",
        "CREATE MATERIALIZED VIEW m AS SELECT b FROM t",
        "CREATE SEQUENCE s",
        "CREATE SCHEMA shown",
        "CREATE TYPE mood AS ENUM ('good')",
        "CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ):
        client.run(text)
    client.close()
    yield server
    server.close()


@pytest.mark.parametrize(("named", "shown"), OBJECTS)
def test_a_comment_is_shown_until_it_goes(client: Client, named: str, shown: str) -> None:
    assert client.run(f"COMMENT ON {named} IS 'it''s this'") == "COMMENT"
    assert client.rows(f"SELECT {shown}") == [("it's this",)]
    shared = named.startswith("DATABASE")
    found = f"SELECT description FROM pg_{'sh' if shared else ''}description WHERE description = 'it''s this'"
    assert client.rows(found) == [("it's this",)]
    client.run(f"COMMENT ON {named} IS NULL")
    assert client.rows(f"SELECT {shown}") == [(None,)]
    assert client.rows(found) == []


@pytest.mark.parametrize(("named", "state", "message"), MISTAKES)
def test_objects_that_are_not_there(client: Client, named: str, state: str, message: str) -> None:
    error = client.error(f"COMMENT ON {named} IS 'x'")
    assert (error.sqlstate, error.message) == (state, message)


def test_a_rollback_undoes_it_and_a_reader_writes_none(client: Client) -> None:
    client.run("BEGIN")
    client.run("COMMENT ON TABLE t IS 'x'")
    client.run("ROLLBACK")
    assert client.rows("SELECT obj_description('t'::regclass)") == [(None,)]
    client.run("BEGIN READ ONLY")
    error = client.error("COMMENT ON TABLE t IS 'x'")
    assert (error.sqlstate, error.message) == ("25006", "cannot execute COMMENT in a read-only transaction")
    client.run("ROLLBACK")


def test_comments_follow_columns_and_last(tmp_path: Path) -> None:
    server = Server(tmp_path)
    client = server.client()
    client.run("CREATE TABLE t (a int, b int, c int)")
    for column in "abc":
        client.run(f"COMMENT ON COLUMN t.{column} IS 'of {column}'")
    client.run("COMMENT ON TABLE t IS ''")
    client.run("ALTER TABLE t DROP COLUMN b")
    client.run("ALTER TABLE t RENAME COLUMN c TO d")
    client.run("ALTER TABLE t ALTER a TYPE bigint, ADD e int")
    server.restart()
    client = server.client()
    own = "SELECT objsubid, description FROM pg_description WHERE objoid >= 16384"
    assert client.sorted(own) == [("1", "of a"), ("2", "of c")]
    client.run("DROP TABLE t")
    assert client.rows(own) == []
    server.close()


def test_the_comment_of_schema_public_goes_too(server: Server) -> None:
    client = server.client()
    shown = "SELECT obj_description('public'::regnamespace, 'pg_namespace')"
    listed = "SELECT description FROM pg_description WHERE objoid = 'public'::regnamespace AND objsubid = 0"
    assert client.rows(shown) == client.rows(listed) == [("standard public schema",)]
    client.run("COMMENT ON SCHEMA public IS 'ours'")
    assert client.rows(shown) == client.rows(listed) == [("ours",)]
    client.run("COMMENT ON SCHEMA public IS NULL")
    assert client.rows(shown) == [(None,)]
    assert client.rows(listed) == []
    client.close()
