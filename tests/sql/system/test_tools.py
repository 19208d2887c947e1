"""What administration tools ask for besides the catalogs' columns."""

from __future__ import annotations

import pytest

from tests.support.sessions import Client


def test_catalogs_have_an_xmin_that_later_rows_exceed(client: Client) -> None:
    client.run("CREATE TABLE seen (a int)")
    query = "SELECT c.xmin FROM pg_class c WHERE relname = 'seen'"
    ((before,),) = client.rows(query)
    client.run("ALTER TABLE seen ADD b int")
    ((after,),) = client.rows(query)
    assert 0 < int(str(before)) < int(str(after))
    assert client.state("SELECT xmin FROM seen") == "42703"
    assert client.rows("SELECT n.xmin FROM pg_type t LEFT JOIN pg_namespace n ON false LIMIT 1") == [(None,)]


def test_views_of_the_catalog_by_their_functions(client: Client) -> None:
    assert client.rows("SELECT setting FROM pg_show_all_settings() s WHERE s.name = 'work_mem'") == [("4MB",)]
    assert client.rows("SELECT b FROM pg_catalog.pg_show_all_settings() x (a, b) WHERE a = 'work_mem'") == [("4MB",)]
    assert client.state("SELECT * FROM pg_show_all_settings(1)") == "42883"


def test_recovery_and_the_log(client: Client) -> None:
    paused = "CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END"
    assert client.rows(f"SELECT {paused}, pg_last_wal_replay_lsn(), pg_last_xact_replay_timestamp()") == [
        ("f", None, None)
    ]
    assert client.state("SELECT pg_is_wal_replay_paused()") == "55000"
    assert client.state("SELECT pg_current_wal_lsn()") == "0A000"


@pytest.mark.parametrize(
    ("type_", "wanted"),
    [
        ("varchar(7)", ("7", "28", None, None, None, None, None)),
        ("text", (None, str(1 << 30), None, None, None, None, None)),
        ("bit(3)", ("3", None, None, None, None, None, None)),
        ("smallint", (None, None, "16", "2", "0", None, None)),
        ("double precision", (None, None, "53", "2", None, None, None)),
        ("numeric(9,2)", (None, None, "9", "10", "2", None, None)),
        ("numeric", (None, None, None, "10", None, None, None)),
        ("timestamp(3)", (None, None, None, None, None, "3", None)),
        ("date", (None, None, None, None, None, "0", None)),
        ("interval year to month", (None, None, None, None, None, "6", "YEAR TO MONTH")),
    ],
)
def test_what_information_schema_is_made_of(client: Client, type_: str, wanted: tuple[str | None, ...]) -> None:
    client.run(f"CREATE TABLE typed (a {type_})")
    names = (
        "char_max_length char_octet_length numeric_precision numeric_precision_radix numeric_scale datetime_precision"
        " interval_type"
    )
    called = ", ".join(f"information_schema._pg_{name}(atttypid, atttypmod)" for name in names.split())
    found = client.rows(f"SELECT {called} FROM pg_attribute WHERE attrelid = 'typed'::regclass AND attnum = 1")
    client.run("DROP TABLE typed")
    assert found == [wanted]


def test_the_type_below_a_domain(client: Client) -> None:
    client.run("CREATE DOMAIN short AS varchar(5)")
    client.run("CREATE TABLE domained (a short, b int)")
    true = "information_schema._pg_truetypid(a, t)::regtype::text, information_schema._pg_truetypmod(a.*, t.*)"
    of = "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = 'domained'::regclass"
    assert client.rows(f"SELECT {true} {of} AND attnum > 0 ORDER BY attnum") == [
        ("character varying", "9"),
        ("integer", "-1"),
    ]


def test_types_that_only_names_are_known_of(client: Client) -> None:
    assert client.rows("SELECT 'xml'::regtype::text, 'xml'::regtype::oid") == [("xml", "142")]
    assert client.state("SELECT 'x'::xml") == "0A000"


def test_information_schema_shows_what_a_role_may_see(client: Client) -> None:
    client.run("CREATE TABLE keyed (a int PRIMARY KEY, b int REFERENCES keyed CHECK (b > 0))")
    client.run("CREATE FUNCTION closed() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    client.run("REVOKE EXECUTE ON FUNCTION closed() FROM public")
    client.run("CREATE ROLE onlooker")
    names = "SELECT count(*) FROM information_schema.{} WHERE {}"
    asked = [
        names.format("table_constraints", "table_name = 'keyed'"),
        names.format("key_column_usage", "table_name = 'keyed'"),
        names.format("referential_constraints", "constraint_name = 'keyed_b_fkey'"),
        names.format("check_constraints", "constraint_name = 'keyed_b_check'"),
        names.format("routines", "routine_name = 'closed'"),
    ]
    assert [client.rows(text) for text in asked] == [[(n,)] for n in ("4", "2", "1", "1", "1")]
    client.run("SET ROLE onlooker")
    assert [client.rows(text) for text in asked] == [[("0",)]] * 5
    client.run("RESET ROLE")
    client.run("GRANT INSERT ON keyed TO onlooker")
    client.run("SET ROLE onlooker")
    assert [client.rows(text) for text in asked] == [[(n,)] for n in ("4", "2", "1", "0", "0")]
    client.run("RESET ROLE")
