"""COMMIT and ROLLBACK in procedures and DO: what is durable, what other sessions see, and where it is refused.

What PostgreSQL answers is in ``tests/answers/procedures.sql``, which ``test_plpgsql.py`` replays."""

from __future__ import annotations

from pathlib import Path

import pytest

from ivm.errors import SqlError
from tests.support.sessions import Client, Server

FILL = (
    "CREATE PROCEDURE fill(n int) LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP INSERT INTO pt VALUES (i, i % 3);"
    " IF i % 4 = 0 THEN ROLLBACK; ELSE COMMIT; END IF; END LOOP; INSERT INTO pt VALUES (n + 1, 1 / (n - 7)); END $$"
)


@pytest.fixture
def filled(client: Client) -> Client:
    client.run("DROP TABLE IF EXISTS pt CASCADE")
    client.run("DROP PROCEDURE IF EXISTS fill")
    client.run("CREATE TABLE pt (id int PRIMARY KEY, g int)")
    client.run("CREATE MATERIALIZED VIEW pv AS SELECT g, count(*) AS n, sum(id) AS s FROM pt GROUP BY g")
    client.run(FILL)
    return client


def test_what_was_committed_stays(filled: Client, server: Server) -> None:
    assert filled.state("CALL fill(7)") == "22012"
    assert filled.sorted("SELECT id FROM pt") == [("1",), ("2",), ("3",), ("5",), ("6",), ("7",)]
    assert filled.rows("VERIFY MATERIALIZED VIEW pv") == []
    assert filled.sorted("TABLE pv") == [("0", "2", "9"), ("1", "2", "8"), ("2", "2", "7")]
    filled.run("DELETE FROM pt")
    filled.run("CALL fill(2)")
    assert filled.sorted("SELECT id, g FROM pt") == [("1", "1"), ("2", "2"), ("3", "0")]
    assert filled.rows("VERIFY MATERIALIZED VIEW pv") == []


def test_it_lasts(tmp_path: Path) -> None:
    server = Server(tmp_path)
    client = server.client()
    client.run("CREATE TABLE pt (id int)")
    client.run(
        "DO $$ BEGIN INSERT INTO pt VALUES (1); CREATE TABLE other (a int); COMMIT; DROP TABLE pt; ROLLBACK; END $$"
    )
    failing = "DO $$ BEGIN INSERT INTO pt VALUES (2); COMMIT; INSERT INTO pt VALUES (3 / 0); END $$"
    assert client.state(failing) == "22012"
    server.restart()
    client = server.client()
    assert client.sorted("TABLE pt") == [("1",), ("2",)]
    assert client.rows("TABLE other") == []
    server.close()


def test_commits_have_times_of_their_own(filled: Client) -> None:
    filled.run(
        "DO $$ DECLARE first timestamptz := now(); BEGIN INSERT INTO pt VALUES (1, 1); COMMIT;"
        " WHILE clock_timestamp() <= first LOOP NULL; END LOOP;"
        " IF now() <= first THEN RAISE EXCEPTION 'the same transaction'; END IF; INSERT INTO pt VALUES (2, 1); END $$"
    )
    assert filled.rows("SELECT count(*) FROM pt") == [("2",)]


def test_messages_are_sent_by_what_commits(filled: Client, server: Server) -> None:
    listener = server.client()
    listener.run("LISTEN told")
    filled.run("DO $$ BEGIN NOTIFY told, 'a'; COMMIT; NOTIFY told, 'b'; ROLLBACK; NOTIFY told, 'c'; END $$")
    assert [n.payload for n in listener.session.inbox.arrived] == ["a", "c"]
    listener.close()


def test_locks_of_the_transaction_end(filled: Client, server: Server) -> None:
    filled.run("BEGIN")
    filled.run("SELECT pg_advisory_xact_lock(5)")
    assert filled.state("DO $$ BEGIN COMMIT; END $$") == "2D000"
    filled.run("ROLLBACK")
    other = server.client()
    other.run("DO $$ BEGIN PERFORM pg_advisory_xact_lock(5); COMMIT; PERFORM pg_advisory_lock(6); END $$")
    assert filled.rows("SELECT pg_try_advisory_lock(5), pg_try_advisory_lock(6)") == [("t", "f")]
    filled.run("SELECT pg_advisory_unlock(5)")
    other.close()


def test_several_statements_are_a_block(filled: Client) -> None:
    with pytest.raises(SqlError) as raised:
        filled.results("INSERT INTO pt VALUES (9, 1); CALL fill(3)")
    assert raised.value.sqlstate == "2D000"
    assert filled.rows("TABLE pt") == []
    filled.run("SET default_transaction_read_only TO on")
    error = filled.error("DO $$ BEGIN COMMIT; SET TRANSACTION READ WRITE; INSERT INTO pt VALUES (1, 1); COMMIT;"
                         " INSERT INTO pt VALUES (2, 2); END $$")  # fmt: skip
    assert error.message == "cannot execute INSERT in a read-only transaction"
    filled.run("RESET default_transaction_read_only")
    assert filled.rows("TABLE pt") == [("1", "1")]


def test_deferred_constraints_are_checked_at_each_commit(filled: Client) -> None:
    filled.run("CREATE TABLE pd (a int REFERENCES pt DEFERRABLE INITIALLY DEFERRED)")
    filled.run("DO $$ BEGIN INSERT INTO pd VALUES (1); INSERT INTO pt VALUES (1, 1); COMMIT; END $$")
    assert filled.state("DO $$ BEGIN INSERT INTO pd VALUES (2); COMMIT; RAISE 'not reached'; END $$") == "23503"
    assert filled.rows("TABLE pd") == [("1",)]
    filled.run("DROP TABLE pd")
