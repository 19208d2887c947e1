r"""standard_conforming_strings, escape_string_warning and backslash_quote. What is shown is what PostgreSQL 15 shows,
but for functions: PostgreSQL reads a body as its caller would, here it is read as its creator did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.errors import SqlError
from tests.support.sessions import Client, Server

OFF = "set standard_conforming_strings to off"
ON = "set standard_conforming_strings to on"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    yield client
    client.close()


def test_strings_have_escapes(client: Client) -> None:
    text = r"select 'a\nb', 'c''d\'e', length('\x41\101\u0041'), $$a\n$$, E'\t', N'\\'"
    literal = r"select 'a\nb'"
    assert client.rows(literal) == [(r"a\nb",)]
    client.run(OFF)
    assert client.rows(text) == [("a\nb", "c'd'e", "3", r"a\n", "\t", "\\")]
    assert client.rows(literal) == [("a\nb",)]
    client.run(ON)
    assert client.rows(literal) == [(r"a\nb",)]
    client.run(OFF)
    with_parameter = client.session
    client.server.run(with_parameter.parse("p", r"select '\x41' || $1", ()))
    client.run(ON)
    assert client.rows("execute p('b')") == [("Ab",)]


def test_the_setting_is_a_sessions_own_reported_and_undone(client: Client) -> None:
    other = client.server.client()
    changes = client.session.parameter_changes
    changes.clear()
    client.run(OFF)
    assert ("standard_conforming_strings", "off") in changes
    assert other.rows("show standard_conforming_strings") == [("on",)]
    assert other.rows(r"select 'a\n'") == [(r"a\n",)]
    client.run(ON)
    client.run(f"begin; {OFF}")
    assert client.rows(r"select '\x41'") == [("A",)]
    changes.clear()
    client.run("rollback")
    assert ("standard_conforming_strings", "on") in changes
    assert client.rows(r"select '\x41'") == [(r"\x41",)]
    client.run("begin; savepoint s; set local standard_conforming_strings to off")
    assert client.rows(r"select '\x41'") == [("A",)]
    client.run("rollback to s")
    assert client.rows(r"select '\x41'") == [(r"\x41",)]
    client.run("commit")
    other.close()


def test_of_a_role(server: Server, client: Client) -> None:
    client.run("create role ann login; alter role ann set standard_conforming_strings to off")
    ann = server.client("ann")
    assert ann.rows(r"select '\x41'") == [("A",)]
    ann.close()


def test_what_is_kept_means_the_same_everywhere(server: Server, client: Client) -> None:
    client.run(f"set escape_string_warning to off; {OFF}")
    client.run(r"create table t (a text default '\x41\\b' check (a <> '\x42')); insert into t default values")
    client.run(r"create view v as select a, '\x41\\b' as b from t")
    client.run(r"create materialized view m as select a || '\\' as c from t where a = '\x41\\b'")
    client.run(r"create function f() returns text language sql as $$select '\x41\\b'$$")
    client.run(r"create function g() returns text language plpgsql as 'begin return ''\\x41\\\\b''; end'")
    client.run(r"prepare p as select '\x41\\b'")
    wanted = [("A\\b", "A\\b", "A\\b\\", "A\\b", "A\\b")]
    everything = "select v.a, v.b, m.c, f(), g() from v, m"
    assert client.rows(everything) == wanted
    client.run(ON)
    assert client.rows(everything) == wanted
    assert client.rows("execute p") == [("A\\b",)]
    assert client.state("insert into t values ('B')") == "23514"
    server.restart()
    fresh = server.client()
    fresh.run("insert into t values (default)")
    assert fresh.sorted(everything) == [wanted[0]] * 4
    fresh.close()


def test_definitions_are_shown_as_the_session_reads_them(client: Client) -> None:
    client.run(r"create view v as select 'a\b''c' as x; create table t (a text default '\q', check (a <> '\r'))")
    asked = (
        "select pg_get_viewdef('v')",
        "select pg_get_constraintdef(oid) from pg_constraint where conrelid = 't'::regclass",
        "select pg_get_expr(adbin, adrelid, true) from pg_attrdef",
    )
    plain = [r" SELECT 'a\b''c'::text AS x;", r"CHECK ((a <> '\r'::text))", r"'\q'::text"]
    assert [client.rows(text)[0][0] for text in asked] == plain
    client.run(OFF)
    assert [client.rows(text)[0][0] for text in asked] == [text.replace("\\", "\\\\") for text in plain]


def test_dynamic_statements_are_read_as_the_session_reads(client: Client) -> None:
    client.run("""create function f(q text) returns text language plpgsql as
                  $$declare r text; begin execute q into r; return r; end$$""")
    assert client.rows(r"select f($$select '\x41'$$)") == [(r"\x41",)]
    client.run(OFF)
    assert client.rows(r"select f($$select '\x41'$$)") == [("A",)]
    client.run(r"do $$begin create table made as select '\x41' as a; end$$")
    assert client.rows("table made") == [("A",)]


def test_warnings(client: Client) -> None:
    client.run(OFF)
    client.notices()
    client.run(r"select 'a\n', 'b'")
    (notice,) = client.notices()
    assert (notice.severity, notice.sqlstate, notice.position) == ("WARNING", "22P06", 8)
    assert notice.message == "nonstandard use of escape in a string literal"
    client.run(r"select E'a\n'")
    client.run("set escape_string_warning to off")
    client.run(r"select 'a\n'")
    assert client.notices() == []
    client.run(f"set escape_string_warning to on; {ON}")
    client.run(r"select 'a\n'")
    assert client.notices() == []


def test_errors_point_into_the_text_that_was_sent(client: Client) -> None:
    client.run(OFF)
    assert client.error(r"select 1; select '\n', '\q', nope").position == 30
    wrong = client.error(r"select '\n' from '\n'")
    assert (wrong.sqlstate, wrong.message, wrong.position) == ("42601", r"""syntax error at or near "'\n'" """[:-1], 18)
    assert client.state("select U&'a'") == "0A000"
    client.session.notices.clear()
    with pytest.raises(SqlError) as caught:
        client.server.run(client.session.parse("", r"select '\n', nope", ()))
    assert caught.value.position == 14


def test_quotes_after_backslashes(client: Client) -> None:
    assert client.rows("show backslash_quote") == [("safe_encoding",)]
    assert client.rows(r"select E'a\'b'") == [("a'b",)]
    client.run("set client_encoding to sjis")
    assert client.state(r"select E'a\'b'") == "22P06"
    client.run("set backslash_quote to on")
    assert client.rows(r"select E'a\'b'") == [("a'b",)]
    client.run("set client_encoding to utf8; set backslash_quote to 0")
    assert client.rows("show backslash_quote") == [("off",)]
    assert client.state(r"select E'a\'b'") == "22P06"
    assert client.rows(r"select E'a\\', E'b''c', 'd\'") == [("a\\", "b'c", "d\\")]
    wrong = client.error("set backslash_quote to banana")
    assert (wrong.sqlstate, wrong.hint) == ("22023", "Available values: safe_encoding, on, off.")
