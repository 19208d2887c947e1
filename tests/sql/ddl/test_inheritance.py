"""INHERITS: a parent's rows, changes of them, views over them, DROP and ALTER, the catalogs, restarts."""

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
    client.run("CREATE TABLE p (a int NOT NULL DEFAULT 3, b text CHECK (b <> 'bad'))")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT a, b, count(*) AS n FROM p GROUP BY a, b")
    client.run("CREATE TABLE c (x int, b text) INHERITS (p)")
    client.run("CREATE TABLE d (y text) INHERITS (p)")
    client.run("CREATE TABLE e () INHERITS (c, d)")
    return client


def check_view(client: Client) -> None:
    """Checks the view over the parent against the parent's rows."""
    assert client.sorted("SELECT * FROM v") == client.sorted("SELECT a, b, count(*) FROM p GROUP BY a, b")
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


def fill(client: Client) -> None:
    client.run("INSERT INTO p VALUES (1, 'p'), (1, 'p'), (2, NULL)")
    client.run("INSERT INTO c VALUES (1, 'c', 10), (2, NULL, 20)")
    client.run("INSERT INTO d VALUES (2, 'd', 'yy')")
    client.run("INSERT INTO e (b, x, y) VALUES ('e', 5, 'ee')")


def test_columns_are_merged_with_notices(client: Client) -> None:
    assert [n.message for n in client.notices()] == [
        'merging column "b" with inherited definition',
        'merging multiple inherited definitions of column "a"',
        'merging multiple inherited definitions of column "b"',
    ]
    assert client.rows("SELECT attname FROM pg_attribute WHERE attrelid = 'e'::regclass AND attnum > 0") == [
        ("a",), ("b",), ("x",), ("y",),
    ]  # fmt: skip
    error = client.error("CREATE TABLE f (a text) INHERITS (p)")
    assert (error.sqlstate, error.message, error.detail) == (
        "42804", 'column "a" has a type conflict', "integer versus text",
    )  # fmt: skip
    assert client.state("CREATE TABLE f () INHERITS (p, p)") == "42P07"
    assert client.state("CREATE TABLE f () INHERITS (v)") == "42809"


def test_a_temporary_child_is_seen_by_its_session_only(server: Server, client: Client) -> None:
    fill(client)
    client.run("CREATE TEMP TABLE f () INHERITS (p)")
    client.run("INSERT INTO f VALUES (77, 'f')")
    other = server.client()
    assert client.rows("SELECT count(*) FROM p") == [("8",)]
    assert other.rows("SELECT count(*) FROM p") == [("7",)]
    assert client.rows("SELECT count(*) FROM v WHERE a = 77") == [("0",)]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    assert client.state("CREATE MATERIALIZED VIEW w AS SELECT a FROM p") == "0A000"
    assert other.run("DELETE FROM p") == "DELETE 7"
    assert client.rows("SELECT a FROM p") == [("77",)]


def test_a_parents_rows_are_its_childrens_too(client: Client) -> None:
    fill(client)
    assert len(client.rows("SELECT * FROM p")) == 7
    assert client.sorted("SELECT * FROM ONLY p") == [("1", "p"), ("1", "p"), ("2", None)]
    assert client.sorted("SELECT * FROM ONLY (c)") == [("1", "c", "10"), ("2", None, "20")]
    assert client.sorted("SELECT * FROM c*") == [("1", "c", "10"), ("2", None, "20"), ("3", "e", "5")]
    assert client.rows("SELECT tableoid::regclass::text, count(*) FROM p GROUP BY 1 ORDER BY 1") == [
        ("c", "2"), ("d", "1"), ("e", "1"), ("p", "3"),
    ]  # fmt: skip
    assert client.rows("SELECT q.tableoid IS NULL FROM (VALUES (9)) t (z) LEFT JOIN p q ON q.a = z") == [("t",)]
    assert client.copy_out("COPY p TO STDOUT") == ["1\tp", "1\tp", "2\t\\N"]
    check_view(client)


def test_update_and_delete_reach_every_table_below(client: Client) -> None:
    fill(client)
    changed = client.rows(
        "UPDATE p SET a = a + 10 WHERE b IS NULL OR b = 'e' RETURNING tableoid::regclass::text, *"
    )  # fmt: skip
    assert sorted(changed, key=repr) == [("c", "12", None), ("e", "13", "e"), ("p", "12", None)]
    assert client.rows("SELECT * FROM e") == [("13", "e", "5", "ee")]
    check_view(client)
    assert client.state("UPDATE p SET b = 'bad' WHERE a = 13") == "23514"
    assert client.state("UPDATE p SET a = NULL WHERE a = 13") == "23502"
    assert client.run("UPDATE ONLY p SET b = 'o' WHERE a = 1") == "UPDATE 2"
    gone = client.rows("DELETE FROM p USING (VALUES (13), (12), (12)) t (z) WHERE a = z RETURNING a, z")
    assert sorted(gone) == [("12", "12"), ("12", "12"), ("13", "13")]
    check_view(client)
    counted = "WITH u AS (UPDATE p SET b = 'w' RETURNING *) SELECT count(*) FROM u"
    assert client.rows(counted) == [("4",)]
    check_view(client)
    client.run("TRUNCATE ONLY p")
    assert client.sorted("SELECT * FROM p") == [("1", "w"), ("2", "w")]
    client.run("TRUNCATE p")
    assert client.rows("SELECT * FROM p") == []
    check_view(client)


def test_drop_and_alter(client: Client) -> None:
    fill(client)
    error = client.error("DROP TABLE c")
    assert (error.sqlstate, error.detail) == ("2BP01", "table e depends on table c")
    client.run("DROP TABLE e")
    check_view(client)
    client.run("ALTER TABLE c ADD COLUMN z int DEFAULT 7")
    client.run("INSERT INTO c VALUES (8, 'z', 1, 2)")
    check_view(client)
    assert client.state("ALTER TABLE p ADD COLUMN z text") == "42804"
    assert client.state("ALTER TABLE c DROP COLUMN b") == "42P16"
    assert client.state("ALTER TABLE c RENAME COLUMN b TO bb") == "42P16"
    client.run("ALTER TABLE c RENAME TO cc")
    assert client.rows("SELECT tableoid::regclass::text FROM p WHERE a = 8") == [("cc",)]
    client.run("DROP TABLE p CASCADE")
    assert client.rows("SELECT relname FROM pg_class WHERE relname IN ('p', 'cc', 'd', 'v')") == []


def test_the_catalogs_tell(client: Client) -> None:
    assert client.rows(
        "SELECT inhrelid::regclass::text, inhparent::regclass::text, inhseqno FROM pg_inherits ORDER BY 1, 3"
    ) == [("c", "p", "1"), ("d", "p", "1"), ("e", "c", "1"), ("e", "d", "2")]
    assert client.rows("SELECT relname FROM pg_class WHERE relhassubclass ORDER BY 1") == [("c",), ("d",), ("p",)]


def test_transactions_and_restarts(server: Server, client: Client) -> None:
    fill(client)
    client.run("BEGIN")
    client.run("CREATE TABLE f () INHERITS (p)")
    client.run("INSERT INTO f VALUES (50, 'f')")
    check_view(client)
    client.run("SAVEPOINT s")
    client.run("DROP TABLE e")
    check_view(client)
    client.run("ROLLBACK TO s")
    check_view(client)
    client.run("ROLLBACK")
    check_view(client)
    assert len(client.rows("SELECT * FROM p")) == 7
    client.close()
    server.restart()
    again = server.client()
    assert len(again.rows("SELECT * FROM p")) == 7
    check_view(again)
    again.run("UPDATE p SET b = 'after' WHERE a = 2")
    check_view(again)


def test_a_prepared_statement_sees_new_children(client: Client) -> None:
    client.run("PREPARE q AS SELECT count(*) FROM p")
    assert client.rows("EXECUTE q") == [("0",)]
    client.run("CREATE TABLE f () INHERITS (p)")
    client.run("INSERT INTO f VALUES (1, 'f')")
    assert client.rows("EXECUTE q") == [("1",)]


@pytest.mark.parametrize("source", ["p", "(SELECT a + 1 FROM p)", "e"])
def test_a_subscription_ends_when_a_child_comes(client: Client, server: Server, source: str) -> None:
    client.run("INSERT INTO e VALUES (1, 'x')")
    other = server.client()
    other.run("BEGIN")
    other.run(f"DECLARE s CURSOR FOR SUBSCRIBE {source}")
    assert len(other.rows("FETCH ALL s WITH (timeout = '10s')")) == 1
    client.run("UPDATE p SET a = 5")
    assert len(other.rows("FETCH ALL s WITH (timeout = '10s')")) == 2
    client.run("CREATE TABLE f () INHERITS (e)")
    error = other.error("FETCH ALL s WITH (timeout = '10s')")
    assert (error.sqlstate, error.message) == ("42P01", "what was subscribed to has been dropped or altered")


def test_checks_of_one_name_are_merged(client: Client) -> None:
    client.run("CREATE TABLE mp (a int CONSTRAINT con1 CHECK (a > 0), b int)")
    client.notices()
    client.run("CREATE TABLE mc (a int CONSTRAINT con1 CHECK (a > 0), d int) INHERITS (mp)")
    assert [n.message for n in client.notices()][-1] == 'merging constraint "con1" with inherited definition'
    own = "SELECT conname, conislocal FROM pg_constraint WHERE conrelid = 'mc'::regclass"
    assert client.rows(own) == [("con1", "t")]
    made = "CREATE TABLE mx (a int CONSTRAINT con1 CHECK (a > {}) {}) INHERITS (mp)"
    error = client.error(made.format(1, ""))
    assert (error.sqlstate, error.message) == ("42710", 'constraint "con1" for relation "mx" already exists')
    error = client.error(made.format(0, "NO INHERIT"))
    assert error.message == 'constraint "con1" conflicts with inherited constraint on relation "mx"'
    error = client.error("ALTER TABLE ONLY mp RENAME CONSTRAINT con1 TO con2")
    assert error.message == 'inherited constraint "con1" must be renamed in child tables too'
    client.run("ALTER TABLE mp RENAME CONSTRAINT con1 TO con2")
    assert client.rows(own) == [("con2", "t")]
    client.run("DROP TABLE mp CASCADE")
