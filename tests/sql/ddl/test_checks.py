"""CHECK constraints as PostgreSQL 15 has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.errors import SqlError
from tests.support.sessions import Client, Server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    yield client
    client.results("ROLLBACK")
    for (name,) in client.rows("SELECT relname FROM pg_class WHERE relkind IN ('r') AND oid >= 16384"):
        client.run(f'DROP TABLE "{name}" CASCADE')
    client.close()


def test_names_are_postgress(client: Client) -> None:
    client.run("CREATE TABLE u (a int CHECK (a>0), CHECK (a>1), b int CONSTRAINT bb CHECK (b < a), CHECK (1=1))")
    text = "SELECT conname, conkey, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'u'::regclass"
    assert client.sorted(text) == [
        ("bb", "{1,2}", "CHECK ((b < a))"),
        ("u_a_check", "{1}", "CHECK ((a > 0))"),
        ("u_a_check1", "{1}", "CHECK ((a > 1))"),
        ("u_check", "{}", "CHECK ((1 = 1))"),
    ]
    assert client.rows("SELECT relchecks FROM pg_class WHERE relname = 'u'") == [("4",)]


def test_no_row_fails_and_null_passes(client: Client) -> None:
    client.run("CREATE TABLE u (a int PRIMARY KEY CHECK (a > 0), b text CHECK (length(b) < 4 AND b <> 'no'))")
    assert client.run("INSERT INTO u VALUES (1, NULL), (2, 'yes')") == "INSERT 0 2"
    error = client.error("INSERT INTO u VALUES (3, 'x'), (-1, NULL)")
    assert error.sqlstate == "23514"
    assert error.message == 'new row for relation "u" violates check constraint "u_a_check"'
    assert error.detail == "Failing row contains (-1, null)."
    assert client.error("UPDATE u SET b = b || 'xx', a = -a").message.endswith('"u_a_check"')
    assert client.error("UPDATE u SET b = b || 'xx'").detail == "Failing row contains (2, yesxx)."
    with pytest.raises(SqlError, match="u_b_check"):
        client.run("COPY u FROM STDIN", b"7\tyes\n8\tno\n")
    assert client.state("INSERT INTO u VALUES (1, 'much') ON CONFLICT DO NOTHING") == "23514"
    assert client.state("INSERT INTO u VALUES (1, 'ok') ON CONFLICT (a) DO UPDATE SET b = 'no'") == "23514"
    assert client.run("INSERT INTO u VALUES (1, 'ok') ON CONFLICT (a) DO UPDATE SET b = excluded.b") == "INSERT 0 1"
    assert client.sorted("SELECT * FROM u") == [("1", "ok"), ("2", "yes")]


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("CHECK (a)", "42804", "argument of CHECK must be type boolean, not type integer"),
        ("CHECK (zz > 1)", "42703", 'column "zz" does not exist'),
        ("CHECK (a > (SELECT 1))", "0A000", "cannot use subquery in check constraint"),
        ("CHECK (sum(a) > 1)", "42803", "aggregate functions are not allowed in check constraints"),
        ("CONSTRAINT x CHECK (a=1), CONSTRAINT x CHECK (a>0)", "42710", 'check constraint "x" already exists'),
        ("CONSTRAINT x UNIQUE (a), CONSTRAINT x CHECK (a>0)", "42710",
         'constraint "x" for relation "u" already exists'),
    ],
)  # fmt: skip
def test_mistakes(client: Client, text: str, state: str, message: str) -> None:
    error = client.error(f"CREATE TABLE u (a int, {text})")
    assert (error.sqlstate, error.message) == (state, message)


def test_checks_come_back_at_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    server.client().run("CREATE TABLE t (a int CHECK (a BETWEEN 1 AND 9))")
    server.restart()
    client = server.client()
    assert client.state("INSERT INTO t VALUES (10)") == "23514"
    assert client.run("INSERT INTO t VALUES (9)") == "INSERT 0 1"
    server.close()


def test_functions_and_operators_of_ones_own_are_refused(client: Client) -> None:
    """Where the table is made, not at its first row."""
    client.run("CREATE FUNCTION upward(i int) RETURNS boolean LANGUAGE sql AS 'SELECT $1 > 0'")
    client.run("CREATE OPERATOR ^^^ (RIGHTARG = int, FUNCTION = upward)")
    for condition in ("upward(a)", "^^^ a", "a > 1 AND upward(a)"):
        error = client.error(f"CREATE TABLE refused (a int CHECK ({condition}))")
        assert error.sqlstate == "0A000"
        assert "trigger" in (error.hint or "")
    client.run("CREATE TABLE taken (a int CHECK (a > 0))")
    error = client.error("ALTER TABLE taken ADD CHECK (upward(a))")
    assert error.sqlstate == "42883"
    assert "trigger" in (error.hint or "")
    client.run("INSERT INTO taken VALUES (1)")
