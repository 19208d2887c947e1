"""Sessions end to end, without sockets: statements, results, errors, prepared statements, COPY, cursors."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from sql.statements.results import CommandResult, EmptyResult, RowsResult
from tests.support.sessions import Client, Server, text_rows


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    files = tmp_path_factory.mktemp("files")
    server = Server(tmp_path_factory.mktemp("data"), (files,))
    yield server
    server.close()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    yield client
    client.results("ROLLBACK")
    for (name,) in client.rows("SELECT relname FROM pg_class WHERE relkind IN ('r') AND oid >= 16384"):
        client.run(f'DROP TABLE "{name}" CASCADE')
    for (name,) in client.rows("SELECT relname FROM pg_class WHERE relkind IN ('v') AND oid >= 16384"):
        client.run(f'DROP VIEW IF EXISTS "{name}" CASCADE')
    for (name,) in client.rows("SELECT relname FROM pg_class WHERE relkind IN ('m') AND oid >= 16384"):
        client.run(f'DROP MATERIALIZED VIEW IF EXISTS "{name}" CASCADE')
    client.close()


def test_a_view_follows_its_tables(client: Client) -> None:
    client.run("CREATE TABLE t (id int PRIMARY KEY, g text, x numeric)")
    client.run("CREATE TABLE u (g text, name text NOT NULL)")
    assert client.run("INSERT INTO t VALUES (1,'a',1.5),(2,'b',2),(3,'a',NULL)") == "INSERT 0 3"
    client.run("INSERT INTO u VALUES ('a','alpha'),('b','beta')")
    client.run(
        "CREATE MATERIALIZED VIEW v AS SELECT name, count(*) AS n, sum(x) AS s FROM t JOIN u USING (g) GROUP BY name"
    )
    assert client.sorted("SELECT * FROM v") == [("alpha", "2", "1.5"), ("beta", "1", "2")]
    assert client.run("UPDATE t SET x = x + 1 WHERE g = 'a'") == "UPDATE 2"
    assert client.run("DELETE FROM t WHERE id = 2") == "DELETE 1"
    assert client.sorted("SELECT * FROM v") == [("alpha", "2", "2.5")]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    client.run("TRUNCATE t")
    assert client.rows("SELECT * FROM v") == []


def test_returning_gives_the_changed_rows(client: Client) -> None:
    client.run("CREATE TABLE t (id int PRIMARY KEY, x int DEFAULT 7)")
    assert client.rows("INSERT INTO t (id) VALUES (1), (2) RETURNING id, x + 1") == [("1", "8"), ("2", "8")]
    assert client.rows("UPDATE t SET x = id RETURNING *") == [("1", "1"), ("2", "2")]
    assert client.rows("DELETE FROM t WHERE id = 1 RETURNING x") == [("1",)]


def test_update_from_takes_one_match_and_delete_using_each_row_once(client: Client) -> None:
    client.run("CREATE TABLE t (a int, b int)")
    client.run("CREATE TABLE m (a int, c int)")
    client.run("INSERT INTO t VALUES (1,0),(1,0),(2,0)")
    client.run("INSERT INTO m VALUES (1,10),(1,10),(2,20)")
    assert client.run("UPDATE t SET b = m.c FROM m WHERE t.a = m.a") == "UPDATE 3"
    assert client.sorted("SELECT * FROM t") == [("1", "10"), ("1", "10"), ("2", "20")]
    assert client.run("DELETE FROM t USING m WHERE t.a = m.a AND m.a = 1") == "DELETE 2"
    assert client.rows("SELECT * FROM t") == [("2", "20")]


def test_keys_and_not_null_are_kept(client: Client) -> None:
    client.run("CREATE TABLE t (id int PRIMARY KEY, x text NOT NULL)")
    client.run("INSERT INTO t VALUES (1,'a'),(2,'b')")
    error = client.error("INSERT INTO t VALUES (3,'c'),(1,'z')")
    assert (error.sqlstate, error.message) == ("23505", 'duplicate key value violates unique constraint "t_pkey"')
    assert error.detail == "Key (id)=(1) already exists."
    error = client.error("INSERT INTO t VALUES (4, NULL)")
    assert error.message == 'null value in column "x" of relation "t" violates not-null constraint'
    assert error.detail == "Failing row contains (4, null)."
    assert client.state("INSERT INTO t VALUES (5,'a'),(5,'b')") == "23505"
    assert client.state("UPDATE t SET id = 1 WHERE id = 2") == "23505"
    assert client.run("UPDATE t SET id = 3 - id") == "UPDATE 2"
    assert client.sorted("SELECT * FROM t") == [("1", "b"), ("2", "a")]
    assert client.run("INSERT INTO t VALUES (1,'q'),(9,'q') ON CONFLICT DO NOTHING") == "INSERT 0 1"


def test_keys_with_equality_classes(client: Client) -> None:
    client.run("CREATE TABLE t (k numeric PRIMARY KEY)")
    client.run("INSERT INTO t VALUES (1.0)")
    assert client.state("INSERT INTO t VALUES (1.00)") == "23505"
    client.run("INSERT INTO t VALUES (1.01)")
    client.run("DELETE FROM t WHERE k = 1")
    client.run("INSERT INTO t VALUES (1.000)")
    assert client.sorted("SELECT * FROM t") == [("1.000",), ("1.01",)]


def test_bulk_insert_checks_keys(client: Client) -> None:
    client.run("CREATE TABLE t (id int PRIMARY KEY)")
    client.run("INSERT INTO t SELECT * FROM generate_series(1, 500)")
    assert client.state("INSERT INTO t SELECT * FROM generate_series(500, 900)") == "23505"
    assert client.run("INSERT INTO t SELECT * FROM generate_series(400, 600) ON CONFLICT DO NOTHING") == "INSERT 0 100"
    assert client.rows("SELECT count(*), min(id), max(id) FROM t") == [("600", "1", "600")]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("SELECT nosuch FROM t", "42703"),
        ("SELECT * FROM nosuch", "42P01"),
        ("SELECT a.id FROM t a, t b WHERE id = 1", "42702"),
        ("SELECT 1/0", "22012"),
        ("SELECT 'x'::int", "22P02"),
        ("SELEC 1", "42601"),
        ("SELECT id FROM t GROUP BY x", "42803"),
        ("SELECT nofunc(1)", "42883"),
        ("INSERT INTO t VALUES (1, 'a', 3)", "42601"),
        ("INSERT INTO t (nosuch) VALUES (1)", "42703"),
        ("CREATE TABLE t (a int)", "42P07"),
        ("DROP TABLE nosuch", "42P01"),
        ("DROP VIEW t", "42809"),
        ("CREATE TABLE z (a nosuchtype)", "42704"),
        ("SELECT 99999999999::int", "22003"),
        ("SET nosuch = 1", "42704"),
        ("SHOW nosuch", "42704"),
        ("SET client_encoding = 'mule_internal'", "0A000"),
        ("SET client_encoding = 'latin11'", "22023"),
        ("EXECUTE nosuch", "26000"),
        ("FETCH 1 FROM nosuch", "34000"),
        ("ROLLBACK TO nosuch", "25P01"),
        ("DECLARE c CURSOR FOR SELECT 1", "25P01"),
        ("CREATE MATERIALIZED VIEW z AS SELECT now()", "0A000"),
        ("CREATE MATERIALIZED VIEW z AS SELECT relname FROM pg_class", "0A000"),
        ("COPY (SUBSCRIBE pg_class) TO STDOUT", "0A000"),
        ("SELECT * FROM t AS OF 1", "22023"),
        ("SELECT * FROM t AS OF 99999999999999999", "22023"),
        ("COPY t FROM '/etc/passwd'", "42501"),
        ("SUBSCRIBE t", "0A000"),
    ],
)
def test_mistakes_have_postgres_sqlstates(client: Client, text: str, state: str) -> None:
    client.run("CREATE TABLE t (id int PRIMARY KEY, x text)")
    assert client.state(text) == state
    assert client.rows("SELECT 1") == [("1",)]


def test_positions_count_from_the_query_strings_start(client: Client) -> None:
    assert client.error("SELECT 1; SELECT nosuch").position == 18


def test_ddl_names_dependents(client: Client) -> None:
    client.run("CREATE TABLE t (a int)")
    client.run("CREATE VIEW v AS SELECT a FROM t")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM v")
    error = client.error("DROP TABLE t")
    assert error.sqlstate == "2BP01"
    assert error.detail == "view v depends on table t\nmaterialized view m depends on view v"
    assert error.hint == "Use DROP ... CASCADE to drop the dependent objects too."
    assert client.state("CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM t") == "0A000"
    assert client.run("DROP VIEW v CASCADE") == "DROP VIEW"
    assert client.notices()[0].message == "drop cascades to materialized view m"
    assert client.run("DROP TABLE IF EXISTS nosuch") == "DROP TABLE"
    assert client.notices()[0].message == 'table "nosuch" does not exist, skipping'
    client.run("CREATE TABLE IF NOT EXISTS t (a int)")
    assert client.notices()[0].message == 'relation "t" already exists, skipping'


def test_replacing_a_view(client: Client) -> None:
    client.run("CREATE TABLE t (a int)")
    client.run("INSERT INTO t VALUES (1)")
    client.run("CREATE VIEW v AS SELECT a FROM t")
    client.run("CREATE OR REPLACE VIEW v AS SELECT a, a + 1 AS b FROM t")
    assert client.rows("SELECT * FROM v") == [("1", "2")]
    assert client.state("CREATE OR REPLACE VIEW v AS SELECT a AS z, 1 AS b FROM t") == "42P16"
    assert client.state("CREATE OR REPLACE VIEW v AS SELECT * FROM v") == "42P17"


def test_errors_are_data(client: Client) -> None:
    client.run("CREATE TABLE t (id int PRIMARY KEY)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT id, 10 / id AS q FROM t")
    client.run("INSERT INTO t VALUES (5), (0)")
    assert client.state("SELECT * FROM v") == "22012"
    assert [row[:2] for row in client.rows("SELECT * FROM freshet.view_errors")] == [("v", "22012")]
    client.run("SET ignore_view_errors = on")
    assert client.rows("SELECT * FROM v") == [("5", "2")]
    assert client.notices()[0].severity == "WARNING"
    client.run("SET ignore_view_errors = off")
    client.run("DELETE FROM t WHERE id = 0")
    assert client.rows("SELECT * FROM v") == [("5", "2")]


def test_create_table_as(client: Client) -> None:
    assert client.run("CREATE TABLE t AS SELECT g AS a, 'x' AS b FROM generate_series(1, 3) g") == "SELECT 3"
    assert client.sorted("SELECT * FROM t") == [("1", "x"), ("2", "x"), ("3", "x")]


def test_settings(client: Client) -> None:
    client.run("SET TimeZone = 'europe/berlin'")
    assert client.rows("SHOW TimeZone") == [("Europe/Berlin",)]
    assert ("TimeZone", "Europe/Berlin") in client.session.parameter_changes
    client.run("BEGIN")
    client.run("SET LOCAL TimeZone = 'UTC'")
    assert client.rows("SHOW timezone") == [("UTC",)]
    client.run("COMMIT")
    assert client.rows("SHOW timezone") == [("Europe/Berlin",)]
    client.run("BEGIN")
    client.run("SET application_name = 'x'")
    client.run("ROLLBACK")
    assert client.rows("SHOW application_name") == [("",)]
    client.run("RESET ALL")
    assert client.rows("SHOW timezone") == [("UTC",)]
    assert len(client.rows("SHOW ALL")) > 20


def test_there_is_one_role(client: Client) -> None:
    for text in (
        "RESET SESSION AUTHORIZATION", "SET SESSION AUTHORIZATION DEFAULT", "SET SESSION SESSION AUTHORIZATION me",
        "SET ROLE me", "SET ROLE NONE", "RESET ROLE",
    ):  # fmt: skip
        client.run(text)
    for text in ("SET SESSION AUTHORIZATION nobody", "SET LOCAL SESSION AUTHORIZATION nobody", "SET ROLE nobody"):
        error = client.error(text)
        assert (error.sqlstate, error.message) == ("22023", 'role "nobody" does not exist')
    assert client.rows("SELECT current_user, session_user") == [("me", "me")]


def test_prepare_and_execute(client: Client) -> None:
    client.run("CREATE TABLE t (a int, b text)")
    client.run("PREPARE p (int, text) AS INSERT INTO t VALUES ($1, $2)")
    client.run("EXECUTE p (1, 'x')")
    client.run("PREPARE q AS SELECT * FROM t WHERE a = $1")
    assert client.rows("EXECUTE q (1)") == [("1", "x")]
    assert client.rows("EXECUTE q ('1')") == [("1", "x")]
    client.run("EXECUTE p (2, 7)")
    assert client.rows("EXECUTE q (2)") == [("2", "7")]
    assert client.state("EXECUTE q (1, 2)") == "42601"
    client.run("DEALLOCATE p")
    assert client.state("EXECUTE p (1, 'x')") == "26000"
    client.run("DISCARD ALL")
    assert client.state("EXECUTE q (1)") == "26000"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT $1", "SELECT 1 LIMIT $1", "INSERT INTO t VALUES ($1, 2)", "UPDATE t SET b = $1",
        "DELETE FROM t WHERE a = $1", "EXPLAIN SELECT $1::int", "COPY (SELECT $1) TO STDOUT",
        "DECLARE c CURSOR WITH HOLD FOR SELECT $1",
    ],
)  # fmt: skip
def test_a_plain_query_has_no_parameters(client: Client, text: str) -> None:
    client.run("CREATE TABLE t (a int, b int)")
    error = client.error("SELECT 1; " + text)
    assert (error.sqlstate, error.message) == ("42P02", "there is no parameter $1")
    assert error.position == len("SELECT 1; ") + text.index("$") + 1
    client.run("CREATE OR REPLACE FUNCTION next(a int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 1'")
    client.run("PREPARE p AS SELECT next($1)")
    assert client.rows("EXECUTE p(7)") == [("8",)]


def test_the_extended_protocol(client: Client) -> None:
    session, run = client.session, client.server.run
    client.run("CREATE TABLE t (a int, b text)")
    run(session.parse("i", "INSERT INTO t VALUES ($1, $2)", ()))
    parameters, columns = session.describe_statement("i")
    assert [p.kind.value for p in parameters] == ["int4", "text"]
    assert columns is None
    for n in range(5):
        run(session.bind("", "i", [struct.pack("!i", n), b"x"], [1, 0], []))
        assert run(session.execute("", 0, True)) == CommandResult("INSERT 0 1")
        run(session.sync())
    run(session.parse("", "SELECT a FROM t ORDER BY a", ()))
    run(session.bind("p", "", [], [], [1]))
    first = run(session.execute("p", 2))
    assert isinstance(first, RowsResult)
    assert first.suspended
    assert text_rows(first) == [("0",), ("1",)]
    assert first.formats == (1,)
    rest = run(session.execute("p", 0))
    assert isinstance(rest, RowsResult)
    assert not rest.suspended
    assert text_rows(rest) == [("2",), ("3",), ("4",)]
    run(session.sync())
    run(session.parse("e", "", ()))
    run(session.bind("", "e", [], [], []))
    assert run(session.execute("", 0)) == EmptyResult()
    run(session.sync())


def test_a_pipeline_is_one_transaction(client: Client) -> None:
    session, run = client.session, client.server.run
    client.run("CREATE TABLE t (a int PRIMARY KEY)")
    run(session.parse("i", "INSERT INTO t VALUES ($1)", ()))
    run(session.bind("", "i", [b"1"], [0], []))
    run(session.execute("", 0))
    run(session.bind("", "i", [b"1"], [0], []))
    with pytest.raises(Exception, match="duplicate key"):
        run(session.execute("", 0))
    run(session.fail())
    run(session.sync())
    assert client.rows("SELECT count(*) FROM t") == [("0",)]


def test_a_statement_is_bound_anew_after_ddl(client: Client) -> None:
    session, run = client.session, client.server.run
    client.run("CREATE TABLE t (a int)")
    run(session.parse("s", "SELECT * FROM t", ()))
    client.run("DROP TABLE t")
    client.run("CREATE TABLE t (a text)")
    with pytest.raises(Exception, match="must not change result type"):
        run(session.bind("", "s", [], [], []))
    run(session.fail())


def test_copy_in_and_out(client: Client) -> None:
    client.run("CREATE TABLE t (a int PRIMARY KEY, b text, c int DEFAULT 5)")
    assert client.run("COPY t (a, b) FROM STDIN", b"1\tx\n2\t\\N\n") == "COPY 2"
    assert client.run("COPY t FROM STDIN WITH (FORMAT csv, HEADER)", b'a,b,c\n3,"q,r",7\n') == "COPY 1"
    assert client.copy_out("COPY (SELECT * FROM t ORDER BY a) TO STDOUT") == ["1\tx\t5", "2\t\\N\t5", "3\tq,r\t7"]
    with pytest.raises(Exception, match="duplicate key"):
        client.run("COPY t (a) FROM STDIN", b"9\n1\n")
    with pytest.raises(Exception, match="invalid input syntax"):
        client.run("COPY t (a) FROM STDIN", b"9\nnine\n")
    assert client.rows("SELECT count(*) FROM t") == [("3",)]


def test_copy_from_files(client: Client, server: Server) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    folder: Path = server.files[0]
    (folder / "t.csv").write_text("1,a\n2,b\n")
    pq.write_table(pa.table({"a": pa.array([3, 4], pa.int32()), "b": ["c", None]}), folder / "t.parquet")
    client.run("CREATE TABLE t (a int, b text)")
    assert client.run("COPY t FROM 't.csv' WITH (FORMAT csv)") == "COPY 2"
    assert client.run("COPY t FROM 't.parquet' WITH (FORMAT parquet)") == "COPY 2"
    assert client.sorted("SELECT * FROM t") == [("1", "a"), ("2", "b"), ("3", "c"), ("4", None)]
    assert client.state("COPY t FROM 'none.csv'") == "58P01"


def test_cursors(client: Client) -> None:
    client.run("BEGIN")
    client.run("DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 5)")
    assert client.rows("FETCH 2 FROM c") == [("1",), ("2",)]
    assert client.run("MOVE 1 FROM c") == "MOVE 1"
    assert client.rows("FETCH ALL FROM c") == [("4",), ("5",)]
    client.run("CLOSE c")
    assert client.state("FETCH 1 FROM c") == "34000"
    client.run("ROLLBACK")


def test_statement_timeout_and_cancel(client: Client) -> None:
    client.run("SET statement_timeout = '200ms'")
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT count(*) FROM r"
    assert client.state(endless) == "57014"
    client.run("SET statement_timeout = 0")
    running = client.server.start(client.work(endless))
    client.server.run(_pause(0.3))
    client.server.run(client.session.cancel())
    with pytest.raises(Exception, match="user request"):
        running.result(5)
    assert client.rows("SELECT 1") == [("1",)]


def test_a_view_that_never_ends_can_be_cancelled(client: Client) -> None:
    client.run("CREATE TABLE t (a int)")
    client.run("INSERT INTO t VALUES (1)")
    client.run("SET statement_timeout = '300ms'")
    text = "WITH RECURSIVE r(n) AS (SELECT a FROM t UNION ALL SELECT n FROM r) SELECT * FROM r"
    text = f"CREATE MATERIALIZED VIEW v AS {text}"
    assert client.state(text) == "57014"
    client.run("SET statement_timeout = 0")
    client.run("INSERT INTO t VALUES (2)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t")
    assert client.rows("SELECT * FROM v") == [("3",)]


async def _pause(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)


def test_offsets_from_greenwich(client: Client) -> None:
    """A number counts hours east, a POSIX name west; answers of PostgreSQL 15."""
    for given, shown, text in (
        ("INTERVAL '+02:00' HOUR TO MINUTE", "<+02>-02", "02:00:00+02"),
        ("'+02'", "<+02>-02", "02:00:00+02"),
        ("2.5", "<+02:30>-02:30", "02:30:00+02:30"),
        ("'+02:30'", "+02:30", "21:30:00-02:30"),
        ("'-3'", "<-03>+03", "21:00:00-03"),
        ("'UTC+3'", "UTC+3", "21:00:00-03"),
    ):
        client.run(f"SET TIME ZONE {given}")
        (row,) = client.rows("SELECT current_setting('TimeZone'), '2024-01-01 00:00+00'::timestamptz::text")
        assert row[0] == shown
        assert (row[1] or "").endswith(text)
    assert client.state("SET TIME ZONE 'nowhere'") == "22023"
    client.run("RESET TIME ZONE")


def test_vectors_of_the_catalog_print_as_clients_parse_them(client: Client) -> None:
    client.run("CREATE TABLE t (a int, b int, PRIMARY KEY (b, a))")
    assert client.rows("SELECT indkey, indoption, indnatts FROM pg_index") == [("2 1", "0 0", "2")]
    assert client.rows("SELECT unnest(indkey) FROM pg_index ORDER BY 1") == [("1",), ("2",)]
    assert client.rows("SELECT i.indkey FROM pg_index i WHERE 1 = ANY (i.indkey) ORDER BY i.indexrelid") == [("2 1",)]


def test_extra_float_digits_rounds_what_clients_read(client: Client) -> None:
    """Answers of PostgreSQL 15, but for the cast: in SQL the text of a float has all its digits."""
    query = (
        "SELECT 431.7726::float4, 1/3::float8, 123456.789::float8, 1e15::float8, ARRAY[1/3::float8], '-inf'::float8,"
        " (1/3::float8)::text"
    )
    exact, third = ("431.7726", "0.3333333333333333", "123456.789", "1e+15"), "0.3333333333333333"
    for digits, shown in (
        ("1", (*exact, "{0.3333333333333333}")),
        ("0", ("431.773", "0.333333333333333", "123456.789", "1e+15", "{0.333333333333333}")),
        ("-9", ("4e+02", "0.333333", "123457", "1e+15", "{0.333333}")),
        ("3", (*exact, "{0.3333333333333333}")),
    ):
        client.run(f"SET extra_float_digits = {digits}")
        line = "\t".join((*shown, "-Infinity", third))
        assert client.copy_out(f"COPY ({query}) TO STDOUT") == [line]
        assert client.copy_out(f"COPY ({query} FROM generate_series(1, 40)) TO STDOUT") == [line] * 40
    error = client.error("SET extra_float_digits = 4")
    message = '4 is outside the valid range for parameter "extra_float_digits" (-15 .. 3)'
    assert (error.sqlstate, error.message) == ("22023", message)
    client.run("RESET extra_float_digits")


def test_client_encodings(client: Client) -> None:
    client.run("SET client_encoding = 'sql-ascii'")
    assert client.rows("SELECT pg_client_encoding(), current_setting('client_encoding')") == [("SQL_ASCII",) * 2]
    client.run("SET NAMES 'unicode'")
    assert client.rows("SELECT pg_client_encoding()") == [("UTF8",)]
    client.run("SET client_encoding = 'ISO-8859-1'")
    assert client.rows("SHOW client_encoding") == [("LATIN1",)]
    client.run("RESET client_encoding")
    assert client.rows("SHOW client_encoding") == [("UTF8",)]
    assert client.rows(
        "SELECT pg_encoding_to_char(24), pg_char_to_encoding('windows-1252'), pg_encoding_max_length(39)"
    ) == [("WIN1252", "24", "4")]
    assert client.rows("SELECT pg_encoding_to_char(42), pg_char_to_encoding('x'), pg_encoding_max_length(42)") == [
        ("", "-1", None)
    ]


def test_prepared_transactions_are_disabled(client: Client) -> None:
    assert client.rows("SHOW max_prepared_transactions") == [("0",)]
    client.run("BEGIN")
    assert client.state("PREPARE TRANSACTION 'x'") == "55000"
    client.run("ROLLBACK")


def test_activity_tells_what_runs_since_when(server: Server, client: Client) -> None:
    other = server.client()
    query = (
        "SELECT state, query, query_start >= xact_start, query_start <= state_change, now() >= query_start"
        f" FROM pg_stat_activity WHERE pid = {other.rows('SELECT pg_backend_pid()')[0][0]}"
    )
    other.run("BEGIN")
    other.rows("SELECT 1 AS first")
    assert client.rows(query) == [("idle in transaction", "SELECT 1 AS first", "t", "t", "t")]
    other.run("COMMIT")
    assert client.rows(query) == [("idle", "COMMIT", None, "t", "t")]
    other.close()


def test_parameters_of_type_void_are_no_arguments(client: Client) -> None:
    assert client.run("PREPARE without (void) AS SELECT upper($1::void, 'x'), lower('Y', $1)") == "PREPARE"
    types = "SELECT parameter_types::text FROM pg_prepared_statements WHERE name = "
    assert client.rows(f"{types}'without'") == [("{void}",)]
    client.run("PREPARE inferred AS SELECT upper('x', $1::void)")
    assert client.rows(f"{types}'inferred'") == [("{void}",)]


def test_a_void_result_casts_to_an_empty_string(client: Client) -> None:
    assert client.rows("SELECT pg_sleep(0)::varchar = '', setseed(0)::text = ''") == [("t", "t")]
    assert client.state("SELECT pg_sleep(0)::int") == "42846"


def test_settings_of_ones_own_may_be_given_at_the_start(server: Server) -> None:
    client = server.client(**{"some.var": "yay"})
    assert client.rows("SELECT current_setting('some.var')") == [("yay",)]
    client.run("SET some.var = 'other'")
    client.run("RESET some.var")
    assert client.rows("SELECT current_setting('some.var')") == [("yay",)]
    client.close()


def test_each_transaction_has_a_number_of_its_own(server: Server, client: Client) -> None:
    def number(of: Client) -> int:
        ((found,),) = of.rows("SELECT txid_current()")
        return int(str(found))

    first, second = number(client), number(client)
    assert first < second
    other = server.client()
    client.run("BEGIN")
    own = number(client)
    assert second < own < number(other)
    assert number(client) == own
    client.run("CREATE TABLE numbered (a int)")
    assert number(client) == own
    client.run("ROLLBACK")
    assert own < number(client)
    other.close()


def test_a_prepared_statement_outlives_a_change_of_a_row_type(client: Client) -> None:
    client.run("CREATE TYPE changing AS (a int, b text)")
    client.run("CREATE TABLE changed (c changing)")
    client.run("INSERT INTO changed VALUES (row(1, 'x'))")
    client.run("PREPARE reading AS SELECT c FROM changed")
    assert client.rows("EXECUTE reading") == [("(1,x)",)]
    client.run("ALTER TYPE changing DROP ATTRIBUTE b")
    assert client.rows("EXECUTE reading") == [("(1)",)]
    client.run("ALTER TABLE changed ALTER c TYPE text")
    assert client.state("EXECUTE reading") == "0A000"
