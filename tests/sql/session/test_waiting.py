"""pg_sleep: the calling statement waits, and nothing else does."""

from __future__ import annotations

import time

from tests.support.sessions import Server


def test_a_wait_ends_with_a_timeout(server: Server) -> None:
    client = server.client()
    client.run("SET statement_timeout = 60")
    started = time.monotonic()
    assert client.state("SELECT pg_sleep(20)") == "57014"
    assert client.state("SELECT pg_sleep('infinity') FROM generate_series(1, 3)") == "57014"
    assert client.state("SELECT pg_sleep_until('infinity')") == "57014"
    assert client.state("SELECT pg_sleep_for('1 year')") == "57014"
    assert time.monotonic() - started < 15
    assert client.rows("SELECT pg_sleep(0.001), 1") == [("", "1")]


def test_a_wait_takes_its_time_and_holds_nothing(server: Server) -> None:
    client, other = server.client(), server.client()
    client.run("CREATE TABLE waited (a int)")
    started = time.monotonic()
    client.run("DO $$ BEGIN PERFORM pg_sleep(0.05); INSERT INTO waited VALUES (1); PERFORM pg_sleep(0.05); END $$")
    assert time.monotonic() - started >= 0.1
    assert other.rows("SELECT * FROM waited") == [("1",)]


def test_what_a_statement_changed_stands_when_its_wait_is_cut(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE cut (a int)")
    client.run("INSERT INTO cut SELECT 0 FROM (SELECT pg_sleep(0)) s")  # what it needs is compiled
    client.run("DELETE FROM cut; SET statement_timeout = '500ms'")  # far more than the INSERT takes
    client.run("INSERT INTO cut SELECT 1 FROM (SELECT pg_sleep(20)) s")
    assert client.rows("SELECT * FROM cut") == [("1",)]


def test_a_cut_wait_undoes_the_statement_where_its_transaction_goes_on(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE undone (a int)")
    insert = "INSERT INTO undone SELECT 2 FROM (SELECT pg_sleep(20)) s"
    client.run("BEGIN; INSERT INTO undone VALUES (1); SAVEPOINT s; SET LOCAL statement_timeout = '500ms'")
    assert client.state(insert) == "57014"
    client.run("ROLLBACK TO s")
    assert client.rows("SELECT * FROM undone") == [("1",)]
    client.run("ROLLBACK; SET statement_timeout = '500ms'")
    assert client.state(f"INSERT INTO undone VALUES (1); {insert}; SELECT 1") == "57014"
    assert client.rows("SELECT * FROM undone") == []


def test_the_statement_is_known(server: Server) -> None:
    client = server.client()
    assert client.rows("SELECT current_query()") == [("SELECT current_query()",)]
    shown = client.rows("SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid()")
    assert shown == [("SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid()",)]
    assert client.rows("SELECT inet_client_addr(), inet_server_port(), system_user()") == [(None, None, None)]


def test_listening_channels(server: Server) -> None:
    client = server.client()
    client.run("LISTEN b")
    client.run("LISTEN a")
    assert client.rows("SELECT * FROM pg_listening_channels()") == [("a",), ("b",)]
