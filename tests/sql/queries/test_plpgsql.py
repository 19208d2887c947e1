"""LANGUAGE plpgsql, DO, triggers and others: recorded sessions of PostgreSQL 15, and where functions end."""

from __future__ import annotations

from pathlib import Path

import pytest

from ivm.errors import SqlError
from sql.statements.results import RowsResult
from tests.answers.make_scripts import SCRIPTS, answered
from tests.support.sessions import Client, Server, text_rows


def replay(client: Client, name: str) -> None:
    """Run a script, and compare each step with PostgreSQL's answer."""
    client.run(f"SET TimeZone TO 'UTC'; CREATE SCHEMA {name}; SET search_path TO {name}")
    for step, answer in answered(name):
        client.notices()
        rows: list[list[str | None]] = []
        error: list[str | None] | None = None
        try:
            last = client.results(step)[-1]
            rows = [list(row) for row in text_rows(last)] if isinstance(last, RowsResult) else []
        except SqlError as raised:
            error = [raised.sqlstate, raised.message, raised.detail, raised.hint, raised.context]
        notices = [[n.severity, n.message] for n in client.notices() if n.severity not in ("LOG", "DEBUG")]
        assert (rows, error, notices) == (answer["rows"], answer["error"], answer["notices"]), step


@pytest.mark.parametrize("name", SCRIPTS)
def test_recorded_session(server: Server, name: str) -> None:
    client = server.client()
    replay(client, name)
    client.close()


def test_materialized_views_refuse_them(server: Server) -> None:
    client = server.client()
    client.run("CREATE FUNCTION one() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'")
    error = client.error("CREATE MATERIALIZED VIEW m AS SELECT one()")
    message = "function one(), which is interpreted, in a materialized view is not supported"
    assert (error.sqlstate, error.message) == ("0A000", message)
    client.run("CREATE TABLE d (a int, b int DEFAULT one())")
    client.run("INSERT INTO d VALUES (1)")
    assert client.rows("TABLE d") == [("1", "1")]
    client.run("CREATE FUNCTION loose() RETURNS record LANGUAGE plpgsql AS 'BEGIN RETURN (1, 2); END'")
    assert client.state("SELECT loose()") == "0A000"
    assert client.rows("SELECT * FROM loose() AS (a int, b int)") == [("1", "2")]
    client.close()


def test_calls_nest_to_a_depth_and_can_be_cancelled(server: Server) -> None:
    client = server.client()
    client.run("CREATE FUNCTION deep(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN deep(n + 1); END'")
    assert client.state("SELECT deep(1)") == "54001"
    client.run("SET statement_timeout TO 300")
    assert client.state("DO 'BEGIN LOOP NULL; END LOOP; END'") == "57014"
    assert client.state("DO 'BEGIN LOOP BEGIN NULL; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END'") == "57014"
    assert client.rows("SELECT 1") == [("1",)]
    client.close()


def test_triggers_fire_for_copy_and_survive_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path)
    client = server.client()
    client.run("CREATE TABLE kept (a int, b text)")
    client.run("CREATE MATERIALIZED VIEW lengths AS SELECT sum(length(b)) AS n FROM kept")
    client.run(
        "CREATE FUNCTION filled() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN IF NEW.a > 5 THEN RETURN NULL; END IF; NEW.b := NEW.b || NEW.a; RETURN NEW; END'"
    )
    client.run("CREATE TRIGGER filled BEFORE INSERT ON kept FOR EACH ROW EXECUTE FUNCTION filled()")
    client.run("COPY kept FROM STDIN", b"1\tx\n9\ty\n")
    server.close()
    server = Server(tmp_path)
    client = server.client()
    client.run("COPY kept FROM STDIN", b"2\tz\n8\ty\n")
    assert client.sorted("TABLE kept") == [("1", "x1"), ("2", "z2")]
    assert client.rows("TABLE lengths") == [("4",)]
    shown = "CREATE TRIGGER filled BEFORE INSERT ON public.kept FOR EACH ROW EXECUTE FUNCTION filled()"
    assert client.rows("SELECT pg_get_triggerdef(oid) FROM pg_trigger") == [(shown,)]
    assert client.rows("SELECT action_timing, event_manipulation FROM information_schema.triggers") == [
        ("BEFORE", "INSERT")
    ]
    server.close()
