"""LIKE in CREATE TABLE, and columns in PARTITION OF. Answers are PostgreSQL 15's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    server = Server(tmp_path)
    client = server.client()
    client.run("""
        CREATE TABLE source (
            a int PRIMARY KEY, b text DEFAULT 'x' CHECK (length(b) > 0), c int GENERATED ALWAYS AS IDENTITY (START 5),
            d int GENERATED ALWAYS AS (a * 2) STORED, UNIQUE (b)
        )
    """)
    yield client
    server.close()


def test_names_types_and_not_null_alone(client: Client) -> None:
    client.run("CREATE TABLE t (LIKE source)")
    assert client.rows("INSERT INTO t VALUES (1, '', 2, 3) RETURNING *") == [("1", "", "2", "3")]
    assert client.state("INSERT INTO t (c) VALUES (1)") == "23502"
    assert client.run("INSERT INTO t (a, c) VALUES (1, 1)") == "INSERT 0 1"
    assert client.rows("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass") == [("0",)]


def test_all_of_it_between_other_columns(client: Client) -> None:
    client.run("CREATE TABLE t (x int, LIKE source INCLUDING ALL EXCLUDING GENERATED, y int DEFAULT 7)")
    assert client.rows("INSERT INTO t (a, d) VALUES (1, 9) RETURNING *") == [(None, "1", "x", "5", "9", "7")]
    error = client.error("INSERT INTO t (a, b) VALUES (2, '')")
    assert error.message == 'new row for relation "t" violates check constraint "source_b_check"'
    assert client.error("INSERT INTO t (a) VALUES (3)").message.endswith('unique constraint "t_b_key"')
    assert client.error("INSERT INTO t (a, b) VALUES (1, 'z')").message.endswith('unique constraint "t_pkey"')
    assert client.rows("INSERT INTO source (a) VALUES (1) RETURNING c") == [("5",)]


def test_of_views_and_what_is_refused(client: Client) -> None:
    client.run("CREATE VIEW v AS SELECT b, a + 1 AS next FROM source")
    client.run("CREATE TABLE t (LIKE v)")
    assert client.run("INSERT INTO t VALUES (NULL, NULL)") == "INSERT 0 1"
    client.run("CREATE SEQUENCE s")
    for text, state, message in (
        ("CREATE TABLE u (LIKE s)", "42809", 'relation "s" is invalid in LIKE clause'),
        ("CREATE TABLE u (a int, LIKE source)", "42701", 'column "a" specified more than once'),
        ("CREATE TABLE u (x int PRIMARY KEY, LIKE source INCLUDING INDEXES)", "42P16",
         'multiple primary keys for table "u" are not allowed'),
        ("CREATE TABLE u (LIKE source INCLUDING nothing)", "42601", 'syntax error at or near "nothing"'),
    ):  # fmt: skip
        error = client.error(text)
        assert (error.sqlstate, error.message) == (state, message)


def test_columns_of_partitions(client: Client) -> None:
    client.run("CREATE TABLE p (a int, b text) PARTITION BY LIST (a)")
    client.run("""
        CREATE TABLE p1 PARTITION OF p (b NOT NULL DEFAULT 'own', CONSTRAINT c CHECK (b <> 'q'), PRIMARY KEY (a))
        FOR VALUES IN (1)
    """)
    assert client.state("INSERT INTO p VALUES (1)") == "23502"
    assert client.rows("INSERT INTO p1 (a) VALUES (1) RETURNING b") == [("own",)]
    assert client.error("INSERT INTO p VALUES (1, 'q')").message.endswith('check constraint "c"')
    assert client.state("INSERT INTO p VALUES (1, 'r')") == "23505"
    assert client.state("CREATE TABLE p2 PARTITION OF p (z NOT NULL) FOR VALUES IN (2)") == "42703"
