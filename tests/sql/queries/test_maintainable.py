"""Views compute with their own settings or are refused; functions that change by themselves are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server

BY_ZONE = (
    "date_trunc('day', ts)", "date_trunc('month', d)", "ts::date", "ts::timestamp", "ts::text", "to_char(ts, 'YYYY')",
    "extract(hour FROM ts)", "ts + interval '1 day'", "concat(ts, 1)", "row_to_json(row(ts))", "array[ts]::text",
    "make_timestamptz(x, 1, 1, 0, 0, 0)", "to_timestamp(s, 'YYYY-MM-DD')", "d::timestamptz",
)  # fmt: skip
BY_DATE_STYLE = ("d::text", "'x' || d", "s::date", "format('%s', d)", "array_to_string(array[d], ',')")
BY_NOTHING = (
    "concat(s, '-', x)", "s || x", "format('%s:%s', x, s)", "row_to_json(row(x, s))", "array_to_string(array[x], ',')",
    "(ts AT TIME ZONE 'America/New_York')::date", "date_trunc('month', d::timestamp)", "x::text", "quote_literal(x)",
)  # fmt: skip
BY_ITSELF = ("now()", "current_date", "random()", "s::regclass", "current_user", "mz_now()")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    server = Server(tmp_path)
    client = server.client()
    client.run("CREATE TABLE t (id int, ts timestamptz, d date, s text, x int)")
    client.run("INSERT INTO t VALUES (1, '2024-03-10 03:30:00+00', '2024-03-10', '2024-03-11', 5)")
    yield client
    server.close()


@pytest.mark.parametrize("expr", [*BY_ZONE, *BY_DATE_STYLE, *BY_NOTHING])
def test_a_view_gives_what_the_query_gives_in_utc(client: Client, expr: str) -> None:
    client.run(f"CREATE MATERIALIZED VIEW v AS SELECT id, {expr} AS value FROM t")
    client.run("INSERT INTO t SELECT 2, ts + interval '1 year 5 hours', d + 40, s, x + 2000 FROM t")
    client.run("INSERT INTO t VALUES (3)")
    expected = client.sorted(f"SELECT id, {expr} AS value FROM t")
    assert client.sorted("SELECT * FROM v") == expected
    client.run("SET TimeZone = 'Asia/Tokyo'")
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    client.run("DELETE FROM t WHERE id <> 1")
    client.run("SET TimeZone = 'UTC'")
    assert client.sorted("SELECT * FROM v") == expected[:1]


@pytest.mark.parametrize("expr", BY_ZONE)
def test_another_zone_is_refused(client: Client, expr: str) -> None:
    client.run("SET TimeZone = 'America/New_York'")
    error = client.error(f"CREATE MATERIALIZED VIEW v AS SELECT {expr} FROM t")
    assert error.sqlstate == "0A000"
    assert "while TimeZone is America/New_York" in error.message
    assert "SET TimeZone = 'UTC'" in (error.hint or "")


@pytest.mark.parametrize("expr", BY_DATE_STYLE)
def test_another_date_style_is_refused(client: Client, expr: str) -> None:
    client.run("SET TimeZone = 'America/New_York'; SET DateStyle = 'German, DMY'")
    assert (
        "while DateStyle is German, DMY" in client.error(f"CREATE MATERIALIZED VIEW v AS SELECT {expr} FROM t").message
    )


def test_another_form_of_bytea_is_refused(client: Client) -> None:
    client.run("CREATE TABLE b (x bytea); INSERT INTO b VALUES ('\\xff41'), (NULL)")
    create = "CREATE MATERIALIZED VIEW v AS SELECT x, length(x::text) AS n, 'a'::bytea AS a FROM b"
    client.run("SET bytea_output = 'escape'")
    assert "while bytea_output is escape" in client.error(create).message
    client.run(f"RESET bytea_output; {create}; SET bytea_output = 'escape'")
    client.run("INSERT INTO b VALUES ('\\x00'), ('\\xff41'); DELETE FROM b WHERE x = '\\x00'")
    assert client.rows("SELECT n FROM v ORDER BY n") == [("6",), ("6",), (None,)]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


@pytest.mark.parametrize("expr", BY_NOTHING)
def test_what_depends_on_no_setting_is_free(client: Client, expr: str) -> None:
    client.run("SET TimeZone = 'America/New_York'; SET DateStyle = 'German, DMY'; SET IntervalStyle = 'iso_8601'")
    client.run(f"CREATE MATERIALIZED VIEW v AS SELECT {expr} AS value FROM t")
    assert client.rows("SELECT * FROM v") == client.rows(f"SELECT {expr} FROM t")


@pytest.mark.parametrize("expr", BY_ITSELF)
def test_what_changes_by_itself_is_refused(client: Client, expr: str) -> None:
    assert client.state(f"CREATE MATERIALIZED VIEW v AS SELECT {expr} FROM t") == "0A000"
    client.run(f"CREATE VIEW v AS SELECT id, {expr} AS value FROM t WHERE id > 5")
    assert client.rows("SELECT * FROM v") == []


def test_priorities_neither(client: Client) -> None:
    """now() would give a row's retraction another priority than the row had."""
    priority = "extract(second FROM now())::int"
    block = f"WITH MUTUALLY RECURSIVE (PRIORITY BY {priority}) r (a int) AS (SELECT 1 UNION SELECT a FROM r) TABLE r"
    assert client.rows(block) == [("1",)]
    assert client.state(f"CREATE MATERIALIZED VIEW v AS {block}") == "0A000"


def test_today_in_the_data_is_an_error_that_heals(client: Client) -> None:
    client.run("CREATE MATERIALIZED VIEW v AS SELECT s::date AS d FROM t")
    client.run("INSERT INTO t (id, s) VALUES (2, 'today')")
    assert client.state("SELECT * FROM v") == "0A000"
    client.run("DELETE FROM t WHERE id = 2")
    assert client.rows("SELECT * FROM v") == [("2024-03-11",)]
