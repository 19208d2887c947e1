"""FOREIGN KEY constraints as PostgreSQL 15 has them: violations, referential actions, and dependencies."""

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
    client.run("CREATE TABLE p (id int PRIMARY KEY, x text UNIQUE)")
    client.run(
        "CREATE TABLE c (a int REFERENCES p, b text REFERENCES p (x) ON DELETE CASCADE ON UPDATE SET NULL,"
        " FOREIGN KEY (a) REFERENCES p (id) ON DELETE SET DEFAULT)"
    )
    text = "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'c'::regclass"
    assert client.sorted(text) == [
        ("c_a_fkey", "FOREIGN KEY (a) REFERENCES p(id)"),
        ("c_a_fkey1", "FOREIGN KEY (a) REFERENCES p(id) ON DELETE SET DEFAULT"),
        ("c_b_fkey", "FOREIGN KEY (b) REFERENCES p(x) ON UPDATE SET NULL ON DELETE CASCADE"),
    ]


@pytest.mark.parametrize("kind", ["int", "numeric", "text"])
def test_every_key_is_there(client: Client, kind: str) -> None:
    client.run(f"CREATE TABLE p (id {kind} PRIMARY KEY)")
    client.run(f"CREATE TABLE c (a {kind} REFERENCES p, n int)")
    client.run("INSERT INTO p VALUES ('1'), ('2')")
    assert client.run("INSERT INTO c VALUES ('1', 1), (NULL, 2), ('1', 1)") == "INSERT 0 3"
    error = client.error("INSERT INTO c VALUES ('2', 1), ('9', 2)")
    assert error.sqlstate == "23503"
    assert error.message == 'insert or update on table "c" violates foreign key constraint "c_a_fkey"'
    assert error.detail == 'Key (a)=(9) is not present in table "p".'
    assert client.state("UPDATE c SET a = '3' WHERE a = '1'") == "23503"
    with pytest.raises(SqlError, match="foreign key"):
        client.run("COPY c FROM STDIN", b"1\t1\n7\t1\n")
    error = client.error("DELETE FROM p")
    assert error.message == 'update or delete on table "p" violates foreign key constraint "c_a_fkey" on table "c"'
    assert error.detail == 'Key (id)=(1) is still referenced from table "c".'
    assert client.state("UPDATE p SET id = '5' WHERE id = '1'") == "23503"
    assert client.run("UPDATE p SET id = '5' WHERE id = '2'") == "UPDATE 1"
    assert client.run("DELETE FROM p WHERE id = '5'") == "DELETE 1"
    client.run("BEGIN")
    client.run("INSERT INTO p VALUES ('7')")
    client.run("INSERT INTO c VALUES ('7', 7)")
    client.run("DELETE FROM c WHERE a = '1'")
    client.run("DELETE FROM p WHERE id = '1'")
    client.run("COMMIT")
    assert client.sorted("SELECT a FROM c") == [("7",), (None,)]


def test_actions(client: Client) -> None:
    client.run("CREATE TABLE p (id int PRIMARY KEY)")
    client.run("INSERT INTO p SELECT * FROM generate_series(0, 200)")
    client.run("CREATE TABLE c (a int REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE, n int PRIMARY KEY)")
    client.run("CREATE TABLE g (n int REFERENCES c ON DELETE CASCADE ON UPDATE CASCADE)")
    client.run("CREATE TABLE s (a int REFERENCES p ON DELETE SET NULL ON UPDATE SET NULL)")
    client.run("CREATE TABLE d (a int DEFAULT 0 REFERENCES p ON DELETE SET DEFAULT ON UPDATE SET DEFAULT)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT c.a, count(*) AS k FROM c JOIN g USING (n) GROUP BY c.a")
    client.run("INSERT INTO c SELECT i / 2, i FROM generate_series(0, 200) i")
    client.run("INSERT INTO g SELECT i FROM generate_series(0, 200) i, generate_series(1, 2)")
    client.run("INSERT INTO s SELECT * FROM generate_series(1, 200)")
    client.run("INSERT INTO d SELECT * FROM generate_series(1, 200)")
    assert client.run("DELETE FROM p WHERE id BETWEEN 1 AND 90") == "DELETE 90"
    assert client.rows("SELECT count(*) FROM c") == [("21",)]
    assert client.rows("SELECT count(*) FROM g") == [("42",)]
    assert client.rows("SELECT count(*), count(a) FROM s") == [("200", "110")]
    assert client.rows("SELECT count(*), count(nullif(a, 0)) FROM d") == [("200", "110")]
    assert client.run("UPDATE p SET id = id + 1000 WHERE id IN (91, 92)") == "UPDATE 2"
    assert client.sorted("SELECT a, n FROM c WHERE a > 200") == [
        ("1091", "182"), ("1091", "183"), ("1092", "184"), ("1092", "185"),
    ]  # fmt: skip
    assert client.rows("SELECT count(a) FROM s") == [("108",)]
    assert client.sorted("SELECT * FROM v WHERE a > 200") == [("1091", "4"), ("1092", "4")]
    assert client.run("UPDATE c SET n = -n WHERE n = 182") == "UPDATE 1"
    assert client.rows("SELECT count(*) FROM g WHERE n = -182") == [("2",)]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    assert client.state("DELETE FROM p WHERE id = 0") == "23503"  # the default's own row
    assert client.run("INSERT INTO p VALUES (95) ON CONFLICT (id) DO UPDATE SET id = 2000") == "INSERT 0 1"
    assert client.rows("SELECT a FROM c WHERE n = 190") == [("2000",)]


def test_a_table_refers_to_itself(client: Client) -> None:
    client.run("CREATE TABLE t (id int PRIMARY KEY, up int REFERENCES t ON DELETE CASCADE)")
    assert client.run("INSERT INTO t VALUES (2, 1), (1, NULL), (3, 2), (4, 4)") == "INSERT 0 4"
    assert client.state("INSERT INTO t VALUES (5, 6)") == "23503"
    assert client.run("DELETE FROM t WHERE id = 1") == "DELETE 1"
    assert client.rows("SELECT id FROM t") == [("4",)]
    client.run("CREATE TABLE u (id int PRIMARY KEY, up int REFERENCES u)")
    client.run("INSERT INTO u VALUES (1, NULL), (2, 1)")
    assert client.state("DELETE FROM u WHERE id = 1") == "23503"
    assert client.run("DELETE FROM u") == "DELETE 2"


def test_several_columns(client: Client) -> None:
    client.run("CREATE TABLE p (a int, b text, PRIMARY KEY (a, b))")
    client.run("CREATE TABLE c (y text, x int, FOREIGN KEY (y, x) REFERENCES p (b, a) ON UPDATE CASCADE)")
    client.run("INSERT INTO p VALUES (1, 'q')")
    assert client.run("INSERT INTO c VALUES ('q', 1), ('z', NULL), (NULL, 9)") == "INSERT 0 3"
    assert client.state("INSERT INTO c VALUES ('z', 1)") == "23503"
    client.run("UPDATE p SET a = 2, b = 'r'")
    assert client.sorted("SELECT * FROM c") == [("r", "2"), ("z", None), (None, "9")]


def test_names_change(client: Client) -> None:
    client.run("CREATE TABLE p (id int PRIMARY KEY, up int REFERENCES p)")
    client.run("CREATE TABLE c (a int REFERENCES p ON DELETE CASCADE)")
    client.run("ALTER TABLE p RENAME COLUMN id TO number")
    client.run("ALTER TABLE p RENAME TO parents")
    client.run("ALTER TABLE c RENAME CONSTRAINT c_a_fkey TO theirs")
    text = "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'"
    assert client.sorted(text) == [
        ("p_up_fkey", "FOREIGN KEY (up) REFERENCES parents(number)"),
        ("theirs", "FOREIGN KEY (a) REFERENCES parents(number) ON DELETE CASCADE"),
    ]
    client.run("INSERT INTO parents VALUES (1, NULL), (2, 1)")
    error = client.error("INSERT INTO c VALUES (3)")
    assert error.message == 'insert or update on table "c" violates foreign key constraint "theirs"'
    assert client.error("DELETE FROM parents WHERE number = 1").detail == (
        'Key (number)=(1) is still referenced from table "parents".'
    )


def test_what_is_referred_to_stays(client: Client) -> None:
    client.run("CREATE TABLE p (id int PRIMARY KEY, z int)")
    client.run("CREATE TABLE c (a int)")
    client.run("INSERT INTO c VALUES (5)")
    error = client.error("ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p")
    assert error.detail == 'Key (a)=(5) is not present in table "p".'
    client.run("INSERT INTO p VALUES (5, 1)")
    client.run("ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p")
    error = client.error("DROP TABLE p")
    assert (error.sqlstate, error.detail) == ("2BP01", "constraint c_a_fkey on table c depends on table p")
    error = client.error("TRUNCATE p")
    assert (error.sqlstate, error.detail) == ("0A000", 'Table "c" references "p".')
    error = client.error("ALTER TABLE p DROP CONSTRAINT p_pkey")
    assert error.message == "cannot drop constraint p_pkey on table p because other objects depend on it"
    error = client.error("ALTER TABLE p DROP COLUMN id")
    assert error.message == "cannot drop column id of table p because other objects depend on it"
    client.run("ALTER TABLE p DROP COLUMN z")
    client.run("ALTER TABLE c ADD COLUMN b int")
    assert client.state("INSERT INTO c VALUES (6, 1)") == "23503"
    assert client.state("DELETE FROM p") == "23503"
    client.run("TRUNCATE p CASCADE")
    assert client.rows("SELECT count(*) FROM c") == [("0",)]
    client.run("DROP TABLE p CASCADE")
    assert client.notices()[-1].message == "drop cascades to constraint c_a_fkey on table c"
    assert client.run("INSERT INTO c VALUES (6, 1)") == "INSERT 0 1"
    client.run("CREATE TABLE p (id int PRIMARY KEY)")
    client.run("CREATE TABLE d (a int REFERENCES p)")
    client.run("ALTER TABLE d DROP CONSTRAINT d_a_fkey")
    client.run("INSERT INTO d VALUES (77)")


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("a text REFERENCES p", "42804", 'foreign key constraint "c_a_fkey" cannot be implemented'),
        ("a int REFERENCES q", "42704", 'there is no primary key for referenced table "q"'),
        ("a int REFERENCES q (id)", "42830",
         'there is no unique constraint matching given keys for referenced table "q"'),
        ("a int, FOREIGN KEY (a) REFERENCES p (id, x)", "42830",
         "number of referencing and referenced columns for foreign key disagree"),
        ("a int REFERENCES p (zz)", "42703", 'column "zz" referenced in foreign key constraint does not exist'),
        ("a int, FOREIGN KEY (zz) REFERENCES p", "42703",
         'column "zz" referenced in foreign key constraint does not exist'),
        ("a int REFERENCES w", "42809", 'referenced relation "w" is not a table'),
        ("a int REFERENCES nope", "42P01", 'relation "nope" does not exist'),
        ("a numeric REFERENCES p", "0A000", "a foreign key from type numeric to type integer is not supported"),
    ],
)  # fmt: skip
def test_mistakes(client: Client, text: str, state: str, message: str) -> None:
    client.run("CREATE TABLE p (id int PRIMARY KEY, x int)")
    client.run("CREATE TABLE q (id int)")
    client.run("CREATE VIEW w AS SELECT 1 AS id")
    error = client.error(f"CREATE TABLE c ({text})")
    client.run("DROP VIEW w")
    assert (error.sqlstate, error.message) == (state, message)


def test_foreign_keys_come_back_at_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE p (id int PRIMARY KEY)")
    client.run("CREATE TABLE c (a int)")
    client.run("INSERT INTO p VALUES (1), (2)")
    client.run("INSERT INTO c VALUES (1)")
    client.run("ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p ON DELETE CASCADE")
    for n in (1, 2):
        server.restart()
        client = server.client()
        assert client.state("INSERT INTO c VALUES (9)") == "23503"
        client.run(f"INSERT INTO c VALUES ({n})")
        client.run(f"DELETE FROM p WHERE id = {n}")
        assert client.rows("SELECT count(*) FROM c") == [("0",)]
    server.close()


def test_match_full_has_all_columns_or_none(client: Client) -> None:
    client.run("CREATE TABLE p (a int, b int, PRIMARY KEY (a, b))")
    client.run("CREATE TABLE c (x int, y int, FOREIGN KEY (x, y) REFERENCES p MATCH FULL ON DELETE SET NULL)")
    client.run("INSERT INTO p VALUES (1, 1), (2, 2)")
    client.run("INSERT INTO c VALUES (1, 1), (NULL, NULL)")
    for text in (
        "INSERT INTO c VALUES (1, NULL)",
        "INSERT INTO c VALUES (NULL, 3)",
        "UPDATE c SET y = NULL WHERE x = 1",
    ):
        error = client.error(text)
        assert error.message == 'insert or update on table "c" violates foreign key constraint "c_x_y_fkey"'
        assert error.detail == "MATCH FULL does not allow mixing of null and nonnull key values."
    assert client.error("INSERT INTO c VALUES (3, 3)").detail == 'Key (x, y)=(3, 3) is not present in table "p".'
    client.run("DELETE FROM p WHERE a = 1")
    assert client.rows("SELECT * FROM c") == [(None, None), (None, None)]
    assert client.rows("SELECT pg_get_constraintdef(oid), confmatchtype FROM pg_constraint WHERE contype = 'f'") == [
        ("FOREIGN KEY (x, y) REFERENCES p(a, b) MATCH FULL ON DELETE SET NULL", "f")
    ]
    client.run("CREATE TABLE d (x int, y int)")
    client.run("INSERT INTO d VALUES (2, NULL)")
    assert client.state("ALTER TABLE d ADD FOREIGN KEY (x, y) REFERENCES p MATCH FULL") == "23503"


def test_when_a_foreign_key_is_checked_may_change(client: Client) -> None:
    client.run("CREATE TABLE p (a int PRIMARY KEY CONSTRAINT positive CHECK (a > 0))")
    client.run("CREATE TABLE c (a int CONSTRAINT k REFERENCES p)")
    client.run("ALTER TABLE c ALTER CONSTRAINT k DEFERRABLE INITIALLY DEFERRED")
    client.run("BEGIN")
    client.run("INSERT INTO c VALUES (1)")
    client.run("INSERT INTO p VALUES (1)")
    client.run("COMMIT")
    client.run("ALTER TABLE c ALTER CONSTRAINT k NOT DEFERRABLE")
    assert client.state("INSERT INTO c VALUES (2)") == "23503"
    shown = "SELECT condeferrable, condeferred FROM pg_constraint WHERE conname = 'k'"
    client.run("ALTER TABLE c ALTER CONSTRAINT k INITIALLY DEFERRED")
    assert client.rows(shown) == [("t", "t")]
    client.run("ALTER TABLE c ALTER CONSTRAINT k")
    assert client.rows(shown) == [("f", "f")]
    error = client.error("ALTER TABLE c ALTER CONSTRAINT k NOT DEFERRABLE INITIALLY DEFERRED")
    assert (error.sqlstate, error.message) == ("42601", "constraint declared INITIALLY DEFERRED must be DEFERRABLE")
    error = client.error("ALTER TABLE c ALTER CONSTRAINT nope DEFERRABLE")
    assert (error.sqlstate, error.message) == ("42704", 'constraint "nope" of relation "c" does not exist')
    error = client.error("ALTER TABLE p ALTER CONSTRAINT positive DEFERRABLE")
    assert error.message == 'constraint "positive" of relation "p" is not a foreign key constraint'
