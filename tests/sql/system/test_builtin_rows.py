"""Built-in functions, operators and casts in the system catalogs, and the types that name them."""

from __future__ import annotations

import pytest

from sql.bind.statement import bind_statement
from sql.system.builtin import builtin, builtin_rows
from tests.support.bind_fake import FakeCatalog
from tests.support.sessions import Client


@pytest.mark.parametrize(
    "relation", ["pg_proc", "pg_operator", "pg_cast", "pg_aggregate", "pg_opclass", "pg_ts_config"]
)
def test_every_row_fits_its_relation(relation: str) -> None:
    assert len(builtin_rows(relation)) == len(builtin(relation)) > 1


def test_listed_operators_bind() -> None:
    types = {"23": "int4", "25": "text", "16": "bool", "1700": "numeric", "1184": "timestamptz", "1007": "int4[]"}
    rows = [r for r in builtin("pg_operator") if r["oprleft"] in types and r["oprright"] in types]
    assert len(rows) > 50
    for row in rows:
        left, right = (f"NULL::{types[row[side] or '']}" for side in ("oprleft", "oprright"))
        bind_statement(f"SELECT {left} OPERATOR(pg_catalog.{row['oprname']}) {right}", FakeCatalog())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("'lower(text)'::regprocedure", "lower(text)"),
        ("'pg_catalog.int4pl(integer, int4)'::regprocedure", "int4pl(integer,integer)"),
        ("'now'::regproc", "now"),
        ("870::regprocedure::regproc", "pg_catalog.lower"),
        ("'+(int4,int4)'::regoperator", "+(integer,integer)"),
        ("'-(NONE,int4)'::regoperator", "-(NONE,integer)"),
        ("'||/'::regoper", "||/"),
        ("96::regoper", "pg_catalog.="),
        ("'pg_catalog'::regnamespace", "pg_catalog"),
        ("'\"C\"'::regcollation", '"C"'),
        ("'trigger'::regtype", "trigger"),
        ("to_regprocedure('nothing(int)')", None),
        ("to_regoper('+')", None),
        ("to_regrole('nobody')", None),
        ("pg_get_function_arguments('pg_catalog.repeat'::regproc)", "text, integer"),
        ("pg_get_function_result('pg_catalog.repeat'::regproc)", "text"),
        ("obj_description('lower(text)'::regprocedure, 'pg_proc')", "lowercase"),
        ("(SELECT count(*) > 1000 FROM pg_proc)", "true"),
        ("(SELECT count(*) FROM pg_range WHERE rngsubopc = 0)", "0"),
        ("pg_describe_object(2612, 14, 0)", "language sql"),
        ("('name'::name)[0]", "n"),
        ("('name'::name)[64]", None),
    ],
)
def test_names(client: Client, text: str, shown: str | None) -> None:
    assert client.rows(f"SELECT ({text})::text") == [(shown,)]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("'lower'::regprocedure", "22P02"),
        ("'lower(nothing)'::regprocedure", "42704"),
        ("'lower(int, int)'::regprocedure", "42883"),
        ("'lower'::regproc", "42725"),
        ("'@#@'::regoper", "42883"),
        ("'='::regoper", "42725"),
        ("'nobody'::regrole", "42704"),
        ("'xx'::regcollation", "42704"),
        ("'pg_class'::regclass::regtype", "42846"),
    ],
)
def test_unknown_names(client: Client, text: str, state: str) -> None:
    assert client.state(f"SELECT {text}") == state


def test_definition_of_a_builtin_function(client: Client) -> None:
    assert client.rows("SELECT pg_get_functiondef('pg_catalog.repeat'::regproc)") == [
        (
            "CREATE OR REPLACE FUNCTION pg_catalog.repeat(text, integer)\n RETURNS text\n LANGUAGE internal\n"
            " IMMUTABLE PARALLEL SAFE STRICT\nAS $function$repeat$function$\n",
        )
    ]


def test_options_as_a_table(client: Client) -> None:
    assert client.rows("SELECT * FROM pg_options_to_table('{a=1,b,c=x=y}')") == [("a", "1"), ("b", None), ("c", "x=y")]


def test_functions_in_the_path_hide_others(client: Client) -> None:
    client.run("CREATE SCHEMA hiding; CREATE FUNCTION hiding.f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'")
    query = "SELECT pg_function_is_visible('hiding.f(int)'::regprocedure), 'hiding.f(int)'::regprocedure::text"
    assert client.rows(query) == [("f", "hiding.f(integer)")]
    client.run("SET search_path = hiding")
    assert client.rows(query) == [("t", "f(integer)")]


def test_tableoid_of_a_padded_table(client: Client) -> None:
    client.run("CREATE TABLE padded (a int)")
    query = "SELECT p.tableoid::regclass::text, p.a FROM (VALUES (1)) v(x) LEFT JOIN padded p ON p.a = v.x"
    assert client.rows(query) == [(None, None)]
    client.run("INSERT INTO padded VALUES (1)")
    assert client.rows(query) == [("padded", "1")]
    assert client.rows(
        "SELECT (SELECT p.tableoid::regclass::text FROM (VALUES (1)) w(y) WHERE y = 1) FROM padded p"
    ) == [("padded",)]


def test_vectors_count_from_zero(client: Client) -> None:
    client.run("CREATE TABLE vectors (a int, b int, c int, PRIMARY KEY (c, a))")
    of = "FROM pg_index i WHERE indrelid = 'vectors'::regclass"
    parts = "indkey[0], indkey[1], indkey[2], (indkey[0:0])[1], array_lower(indkey, 1), array_upper(indkey, 1)"
    assert client.rows(f"SELECT {parts} {of}") == [("3", "1", None, "3", "0", "1")]
    assert client.rows(f"SELECT array_position(indkey, 1::int2), pg_typeof(indkey)::text, indkey {of}") == [
        ("1", "int2vector", "3 1")
    ]
    keys = f"SELECT indexrelid, generate_subscripts(indkey, 1) AS k {of}"
    assert client.rows(f"SELECT k, pg_get_indexdef(indexrelid, k + 1, true) FROM ({keys}) s ORDER BY k") == [
        ("0", "c"),
        ("1", "a"),
    ]
    expanded = "SELECT (information_schema._pg_expandarray(indkey)).n, (information_schema._pg_expandarray(indkey)).x"
    assert client.rows(f"{expanded} {of}") == [("1", "3"), ("2", "1")]
    assert client.rows(f"SELECT indkey::text, oidvectortypes(indclass) IS NOT NULL {of}") == [("3 1", "t")]
    assert client.rows("SELECT ('{7,8}'::int2[])[1], array_lower('{7,8}'::int2[], 1)") == [("7", "1")]


def test_a_multirange_type_by_its_name(client: Client) -> None:
    client.run("CREATE TYPE own_range AS RANGE (subtype = text)")
    query = "SELECT rngtypid::regtype::text FROM pg_range WHERE rngmultitypid = 'own_multirange'::regtype"
    assert client.rows(query) == [("own_range",)]
    assert client.rows("SELECT typelem::regtype::text FROM pg_type WHERE oid = '_own_multirange'::regtype") == [
        ("own_multirange",)
    ]
