"""DEFERRABLE constraints and SET CONSTRAINTS. Answers are PostgreSQL 15's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


@pytest.fixture
def client(server: Server) -> Client:
    client = server.client()
    client.run("CREATE TABLE p (id int PRIMARY KEY)")
    client.run("CREATE TABLE c (id int, p int CONSTRAINT fk REFERENCES p DEFERRABLE INITIALLY DEFERRED)")
    client.run("CREATE TABLE u (i int CONSTRAINT uq UNIQUE DEFERRABLE, v text)")
    client.run("INSERT INTO u VALUES (1, 'a'), (2, 'b')")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT i, count(*) AS n FROM u GROUP BY i")
    return client


def test_a_foreign_key_waits_for_the_commit(client: Client) -> None:
    client.run("BEGIN")
    client.run("INSERT INTO c VALUES (1, 5)")
    client.run("INSERT INTO p VALUES (5)")
    client.run("COMMIT")
    client.run("BEGIN")
    client.run("DELETE FROM p")
    client.run("INSERT INTO p VALUES (5), (6)")
    client.run("COMMIT")
    client.run("BEGIN")
    client.run("INSERT INTO c VALUES (2, 7)")
    error = client.error("COMMIT")
    assert (error.sqlstate, error.message, error.detail) == (
        "23503", 'insert or update on table "c" violates foreign key constraint "fk"',
        'Key (p)=(7) is not present in table "p".',
    )  # fmt: skip
    assert client.rows("SELECT count(*) FROM c") == [("1",)]
    client.run("BEGIN")
    client.run("DELETE FROM p WHERE id = 5")
    error = client.error("COMMIT")
    assert error.message == 'update or delete on table "p" violates foreign key constraint "fk" on table "c"'
    assert client.rows("SELECT count(*) FROM p") == [("2",)]
    assert client.state("INSERT INTO c VALUES (3, 9)") == "23503"
    assert client.rows("SELECT count(*) FROM c") == [("1",)]


def test_what_a_savepoint_undoes_is_not_checked(client: Client) -> None:
    client.run("BEGIN")
    client.run("SAVEPOINT a")
    client.run("INSERT INTO c VALUES (1, 5)")
    client.run("ROLLBACK TO a")
    client.run("INSERT INTO c VALUES (2, 6)")
    client.run("DELETE FROM c")
    client.run("COMMIT")
    assert client.rows("SELECT count(*) FROM c") == [("0",)]


def test_set_constraints(client: Client) -> None:
    client.run("BEGIN")
    client.run("SET CONSTRAINTS uq DEFERRED")
    client.run("UPDATE u SET i = 2 WHERE i = 1")
    assert client.rows("SELECT * FROM m") == [("2", "2")]
    client.run("UPDATE u SET i = 3 WHERE v = 'b'")
    client.run("SET CONSTRAINTS ALL IMMEDIATE")
    assert client.state("INSERT INTO u VALUES (3, 'c')") == "23505"
    client.run("ROLLBACK")
    client.run("BEGIN")
    client.run("SET CONSTRAINTS ALL DEFERRED")
    client.run("INSERT INTO u VALUES (1, 'again')")
    error = client.error("SET CONSTRAINTS uq IMMEDIATE")
    assert (error.message, error.detail) == (
        'duplicate key value violates unique constraint "uq"', "Key (i)=(1) already exists.",
    )  # fmt: skip
    client.run("ROLLBACK")
    client.run("BEGIN")
    client.run("SET CONSTRAINTS uq DEFERRED")
    client.run("INSERT INTO u VALUES (1, 'again'), (1, 'and again')")
    assert client.state("COMMIT") == "23505"
    assert client.sorted("SELECT * FROM m") == [("1", "1"), ("2", "1")]
    assert client.rows("VERIFY MATERIALIZED VIEW m") == []
    assert client.state("INSERT INTO u VALUES (1, 'x')") == "23505"
    assert client.run("UPDATE u SET i = i + 1") == "UPDATE 2"


def test_a_deferrable_primary_key(server: Server, client: Client) -> None:
    client.run("CREATE TABLE k (a int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, b text)")
    server.restart()
    client = server.client()
    client.run("BEGIN")
    client.run("INSERT INTO k VALUES (1, 'x'), (1, 'y')")
    assert client.rows("SELECT count(*) FROM k WHERE a = 1") == [("2",)]
    client.run("DELETE FROM k WHERE b = 'x'")
    client.run("COMMIT")
    assert client.rows("SELECT * FROM k") == [("1", "y")]
    assert client.state("INSERT INTO k VALUES (1, 'z')") == "23505"
    assert client.state("INSERT INTO k VALUES (NULL, 'z')") == "23502"
    text = "SELECT conname, contype, condeferrable, condeferred FROM pg_constraint WHERE conrelid = 'k'::regclass"
    assert client.rows(text) == [("k_pkey", "p", "t", "t")]


def test_errors(client: Client) -> None:
    for text, state, message in (
        ("SET CONSTRAINTS nothing DEFERRED", "42704", 'constraint "nothing" does not exist'),
        ("SET CONSTRAINTS p_pkey DEFERRED", "42809", 'constraint "p_pkey" is not deferrable'),
        ("CREATE TABLE x (a int CHECK (a > 0) DEFERRABLE)", "0A000", "CHECK constraints cannot be marked DEFERRABLE"),
        ("CREATE TABLE x (a int REFERENCES u (i))", "55000",
         'cannot use a deferrable unique constraint for referenced table "u"'),
        ("INSERT INTO u VALUES (1) ON CONFLICT (i) DO NOTHING", "55000",
         "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters"),
    ):  # fmt: skip
        error = client.error(text)
        assert (error.sqlstate, error.message) == (state, message)
