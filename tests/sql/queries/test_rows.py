"""Row values, zero-column tables, and other features that Postgres's regression tests found missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ivm.words import INT4, INT8, NUMERIC, TEXT, Kind, SqlType
from planner.expr.ordering import comparable
from sql.catalog.catalog import Catalog
from sql.catalog.search_path import DEFAULT_PATH
from sql.coordination.prepared import StaleError, Statements
from sql.parse import StatementText
from sql.settings.settings import Settings
from storage.types.codec import from_bytes, to_bytes
from storage.types.order import canonical, sort_key
from storage.types.text import format_datum
from tests.support.sessions import Client, Server

ROW = SqlType(Kind.RECORD, fields=(("a", INT4), ("b", TEXT), ("c", NUMERIC)))


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    yield client
    client.results("ROLLBACK")
    for (name,) in client.rows("SELECT relname FROM pg_class WHERE relkind = 'r' AND oid >= 16384"):
        client.run(f'DROP TABLE "{name}" CASCADE')
    client.close()


def test_a_row_as_bytes_and_as_text() -> None:
    datum = (1, 'a "b", c', None)
    assert from_bytes(ROW, to_bytes(ROW, datum)) == datum
    assert format_datum(ROW, datum) == '(1,"a ""b"", c",)'
    assert format_datum(ROW, (None, "", None)) == '(,"",)'
    assert comparable(ROW)
    assert ROW.has_equality_class


def test_rows_compare_field_by_field_with_null_last() -> None:
    rows = [(1, "a", None), (None, "a", None), (1, "", None), (0, "z", None)]
    keys = sorted(rows, key=lambda r: sort_key(ROW, r))
    assert keys == [(0, "z", None), (1, "", None), (1, "a", None), (None, "a", None)]
    from decimal import Decimal

    one, same = (1, "x", Decimal("1.0")), (1, "x", Decimal("1.00"))
    assert canonical(ROW, one) == canonical(ROW, same)
    assert sort_key(ROW, one) == sort_key(ROW, same)


def test_rows_in_queries(client: Client) -> None:
    client.run("CREATE TABLE t (q1 int8, q2 int8)")
    client.run("INSERT INTO t VALUES (1, 2), (2, NULL), (3, 1), (NULL, NULL)")
    assert client.rows("SELECT row(1, 'a', NULL), row(1, 2) = row(1, 2)") == [("(1,a,)", "t")]
    assert client.rows("SELECT t FROM t ORDER BY t") == [("(1,2)",), ("(2,)",), ("(3,1)",), ("(,)",)]
    assert client.rows("SELECT foo FROM (SELECT 1) AS foo") == [("(1)",)]
    pairs = "(VALUES (row(1, 2)), (row(1, 3))) _(x)"
    others = "(VALUES (row(1, 2)), (row(1, 4))) _(x)"
    assert client.sorted(f"SELECT x FROM {pairs} UNION SELECT x FROM {others}") == [("(1,2)",), ("(1,3)",), ("(1,4)",)]
    assert client.rows(f"SELECT x FROM {pairs} EXCEPT SELECT x FROM {others}") == [("(1,3)",)]
    assert len(client.rows("SELECT DISTINCT x FROM (VALUES (row(1.0)), (row(1.00))) v(x)")) == 1
    assert client.rows("SELECT q1 FROM t WHERE t = row(1::int8, 2::int8)") == [("1",)]
    assert client.state("SELECT x = y FROM (VALUES (row(1), row(1::int8))) v(x, y)") == "42804"


def test_the_whole_row_of_a_padded_table_is_null(client: Client) -> None:
    """The row (NULL, NULL) is not NULL; the row of a table padded by an outer join is, though it looks the same."""
    client.run("CREATE TABLE t (q1 int8, q2 int8)")
    client.run("INSERT INTO t VALUES (1, 2), (2, NULL), (3, 1), (NULL, NULL)")
    query = "SELECT a.q2, count(b.*), count(b) FROM t a LEFT JOIN t b ON a.q2 = b.q1 GROUP BY a.q2 ORDER BY 1"
    assert client.rows(query) == [("1", "1", "1"), ("2", "1", "1"), (None, "0", "0")]
    full = "SELECT count(b), count(*) FROM (SELECT 9 AS k) a RIGHT JOIN t b ON a.k = b.q1"
    assert client.rows(full) == [("4", "4")]
    client.run("CREATE MATERIALIZED VIEW v AS SELECT count(b) AS n FROM t a LEFT JOIN t b ON a.q2 = b.q1")
    assert client.rows("SELECT * FROM v") == [("2",)]
    client.run("DELETE FROM t WHERE q1 = 3")
    assert client.rows("SELECT * FROM v") == [("1",)]


def test_a_table_without_columns_counts_its_rows(client: Client) -> None:
    client.run("CREATE TABLE z ()")
    client.run("INSERT INTO z DEFAULT VALUES")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT 5 AS x, count(*) AS n FROM z")
    client.run("INSERT INTO z DEFAULT VALUES")
    assert client.rows("SELECT * FROM v") == [("5", "2")]
    assert client.rows("SELECT 1 FROM z") == [("1",), ("1",)]
    assert client.rows("SELECT z FROM z") == [("()",), ("()",)]
    client.run("DELETE FROM z")
    assert client.rows("SELECT * FROM v") == [("5", "0")]


def test_temporary_tables_go_with_their_session(server: Server, client: Client) -> None:
    other = server.client()
    other.run("CREATE TEMP TABLE gone (x int)")
    other.run("CREATE VIEW over AS SELECT * FROM gone")
    other.run("CREATE TEMP TABLE copied AS SELECT 1 AS x")
    other.close()
    assert client.state("SELECT * FROM gone") == "42P01"
    assert client.state("SELECT * FROM over") == "42P01"
    assert client.state("SELECT * FROM copied") == "42P01"


def test_for_update_locks_rows(server: Server, client: Client) -> None:
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int)")
    client.run("INSERT INTO t VALUES (1, 1)")
    other = server.client()
    client.run("BEGIN")
    assert client.rows("SELECT b FROM t WHERE a = 1 FOR UPDATE") == [("1",)]
    waiting = server.start(other.work("UPDATE t SET b = b + 10"))
    client.run("UPDATE t SET b = b + 1")
    client.run("COMMIT")
    waiting.result(30)
    assert client.rows("SELECT b FROM t") == [("12",)]
    other.close()
    assert client.rows("SELECT b FROM t FOR SHARE OF t") == [("12",)]
    assert client.state("SELECT b FROM t FOR UPDATE OF x") == "42P01"
    assert client.state("SELECT 1 UNION SELECT 2 FOR UPDATE") == "0A000"
    assert client.state("SELECT * FROM (SELECT * FROM t FOR UPDATE) q") == "0A000"
    assert client.rows("SELECT * FROM t FOR UPDATE SKIP LOCKED") == [("1", "12")]


def test_several_columns_take_a_row_or_a_subquery(client: Client) -> None:
    client.run("CREATE TABLE t (a int, b int)")
    client.run("INSERT INTO t VALUES (1, 1)")
    wrong = "UPDATE t SET (a, b) = (v.*) FROM (VALUES (21, 100)) AS v(i, j)"
    assert client.state(wrong) == "0A000"
    client.run("UPDATE t SET (a, b) = row(v.*) FROM (VALUES (21, 100)) AS v(i, j)")
    assert client.rows("SELECT * FROM t") == [("21", "100")]


def test_constants_of_definitions_do_not_depend_on_the_session(client: Client) -> None:
    client.run("SET datestyle = 'ISO, DMY'")
    assert client.rows("SELECT date '01/02/2003'") == [("2003-02-01",)]
    assert client.state("CREATE VIEW v AS SELECT date '01/02/2003' AS d") == "0A000"
    client.run("CREATE VIEW v AS SELECT date '2003-02-01' AS d")
    client.run("DROP VIEW v")
    client.run("SET datestyle = 'ISO, MDY'")
    assert client.rows("SELECT date '01/02/2003'") == [("2003-01-02",)]
    client.run("SET timezone = 'America/New_York'")
    assert client.state("CREATE MATERIALIZED VIEW m AS SELECT timestamptz '2003-02-01 00:00' AS d") == "0A000"
    client.run("CREATE MATERIALIZED VIEW m AS SELECT timestamptz '2003-02-01 00:00-05' AS d")
    client.run("DROP MATERIALIZED VIEW m")


def test_text_of_dates_follows_the_session(client: Client) -> None:
    client.run("SET datestyle = 'German'")
    client.run("SET intervalstyle = 'iso_8601'")
    assert client.rows("SELECT (date '2001-02-03')::text, (interval '1 day 2 hours')::text") == [
        ("03.02.2001", "P1DT2H")
    ]
    assert client.rows("SHOW datestyle") == [("German, DMY",)]


def test_functions_that_tools_ask_for(client: Client) -> None:
    client.run("CREATE TABLE t (a int PRIMARY KEY)")
    client.run("INSERT INTO t VALUES (1)")
    assert client.rows("SELECT 't_pkey'::regclass::text, tableoid::regclass::text FROM t") == [("t_pkey", "t")]
    assert client.state("SELECT 'hstore'::regtype") == "42704"
    assert client.rows("SELECT set_config('work_mem', '8MB', false)") == [("8MB",)]
    assert client.rows("SELECT current_setting('work_mem'), getdatabaseencoding()") == [("8MB", "UTF8")]
    assert client.rows("SELECT booleq(true, false), int4pl(1, 2), text_lt('a', 'b')") == [("f", "3", "t")]
    client.run("SET enable_hashjoin = off")
    assert client.rows("SHOW enable_hashjoin") == [("off",)]


def test_json_made_of_values(client: Client) -> None:
    assert client.rows("SELECT row_to_json(v) FROM (VALUES (1, 'a', NULL)) v(a, b, c)") == [
        ('{"a":1,"b":"a","c":null}',)
    ]
    assert client.rows("""SELECT json_build_object('a', 1.50, 'd', date '2001-02-03', 'x', array[1, 2])""") == [
        ('{"a" : 1.50, "d" : "2001-02-03", "x" : [1,2]}',)
    ]


def test_a_statement_bound_to_a_table_that_went_is_bound_again(client: Client) -> None:
    client.run("CREATE TABLE t (a int)")
    catalog = client.session.state.coordinator.engine.published.catalog
    prepared = Statements().prepare(StatementText("INSERT INTO t VALUES (1)"), catalog, DEFAULT_PATH, (), Settings())
    prepared.check_current(catalog)
    client.run("DROP TABLE t")
    with pytest.raises(StaleError):
        prepared.check_current(client.session.state.coordinator.engine.published.catalog)
    assert isinstance(catalog, Catalog)


def test_the_cache_of_statements_holds_so_many_characters(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sql.coordination.prepared.CACHED_CHARACTERS", 100)
    catalog, statements, settings = client.session.state.coordinator.engine.published.catalog, Statements(), Settings()

    def prepare(text: str) -> object:
        return statements.prepare(StatementText(text), catalog, DEFAULT_PATH, (), settings)

    small, large = prepare("SELECT 1"), prepare(f"SELECT '{'x' * 200}'")
    assert prepare(f"SELECT '{'x' * 200}'") is large
    again = prepare("SELECT 1")
    assert again is not small
    assert prepare("SELECT 2") is prepare("SELECT 2")
    assert prepare("SELECT 1") is again


def test_a_row_type_keeps_its_fields_names_and_types() -> None:
    named = SqlType(Kind.RECORD, fields=(("x", INT8),))
    assert named != SqlType(Kind.RECORD, fields=(("y", INT8),))


def test_a_null_array_compares_to_null(client: Client) -> None:
    assert client.rows("SELECT 33 = ANY (NULL::int[]), 33 = ALL (NULL::int[]), 33 = ANY ('{}'::int[])") == [
        (None, None, "f")
    ]
    client.run("CREATE TABLE t (x int, a int[])")
    client.run("INSERT INTO t VALUES (1, NULL), (1, '{1,2}'), (3, '{1,2}'), (3, '{1,NULL}')")
    assert client.rows("SELECT count(*) FROM t WHERE NOT x = ANY (a)") == [("1",)]


def test_rows_and_arrays_without_elements(client: Client) -> None:
    assert client.rows("SELECT ROW() IS NULL, ROW() IS NOT NULL, ARRAY[[]]::int[], ARRAY[[], []]::int[]") == [
        ("t", "t", "{}", "{}")
    ]
    for comparison in ("ROW() = ROW()", "ROW() < ROW()", "ROW() IN (ROW())"):
        assert client.error(f"SELECT {comparison}").message == "cannot compare rows of zero length"


def test_a_subquery_in_from_keeps_its_order(client: Client) -> None:
    client.run("CREATE TABLE t (a int, b text)")
    client.run("INSERT INTO t VALUES (3, 'c'), (1, 'a'), (2, 'b')")
    client.run("CREATE VIEW v AS SELECT b FROM t ORDER BY a DESC")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT * FROM v LIMIT 2")
    assert client.rows("SELECT * FROM (SELECT * FROM t ORDER BY a DESC) s LIMIT 2") == [("3", "c"), ("2", "b")]
    assert client.rows("SELECT * FROM v LIMIT 2") == [("c",), ("b",)]
    assert client.rows("SELECT x.b || '!', 1 FROM (SELECT * FROM v WHERE b < 'c') x OFFSET 1") == [("a!", "1")]
    assert client.rows("SELECT ARRAY(SELECT b FROM v)") == [("{c,b,a}",)]
    assert client.rows("SELECT * FROM v ORDER BY b LIMIT 1") == [("a",)]
    assert client.rows("SELECT * FROM v UNION ALL SELECT 'z' ORDER BY b DESC LIMIT 2") == [("z",), ("c",)]
    client.run("INSERT INTO t VALUES (4, 'd')")
    assert client.sorted("SELECT * FROM m") == [("c",), ("d",)]
    client.run("DELETE FROM t WHERE a = 3")
    assert client.sorted("SELECT * FROM m") == [("b",), ("d",)]
