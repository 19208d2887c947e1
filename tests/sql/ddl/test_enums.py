"""CREATE TYPE … AS ENUM as PostgreSQL 15 has it: order, labels added later, views over enums, durability."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.errors import SqlError
from ivm.words import EnumType, Kind, SqlType
from sql.catalog.enumeration import Enumeration, Label, added
from tests.support.sessions import Client, Server

LABELS = ("sad", "ok", "happy")


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
    client.run("CREATE TABLE p (id int PRIMARY KEY, m mood DEFAULT 'ok', ms mood[])")
    client.run("INSERT INTO p VALUES (1, 'happy', '{sad,ok}'), (2, 'sad', NULL), (3, NULL, '{NULL,happy}')")
    client.run("INSERT INTO p (id) VALUES (4)")
    client.run("CREATE TYPE other_mood AS ENUM ('sad')")
    client.run("CREATE TABLE key (m mood PRIMARY KEY)")
    yield client
    client.results("ROLLBACK")
    client.run("DROP TABLE IF EXISTS key CASCADE")
    client.run("DROP TYPE other_mood")
    client.run("DROP TABLE IF EXISTS p CASCADE")
    client.run("DROP TYPE IF EXISTS mood CASCADE")
    client.close()


def test_values_are_ordered_as_declared(client: Client) -> None:
    assert [m for _, m, _ in client.rows("SELECT * FROM p ORDER BY m")] == ["sad", "ok", "happy", None]
    assert [m for _, m, _ in client.rows("SELECT * FROM p ORDER BY m DESC NULLS LAST")] == ["happy", "ok", "sad", None]
    assert client.rows("SELECT min(m), max(m), count(DISTINCT m) FROM p") == [("sad", "happy", "3")]
    assert client.rows("SELECT id FROM p WHERE m > 'sad' ORDER BY 1") == [("1",), ("4",)]
    assert client.rows("SELECT id FROM p WHERE m IN ('sad', 'ok') OR m = mood 'happy' ORDER BY 1") == [
        ("1",), ("2",), ("4",),
    ]  # fmt: skip
    assert client.rows("SELECT id FROM p WHERE m BETWEEN 'ok' AND 'happy' AND 'sad' = ANY(ms)") == [("1",)]
    assert client.rows("SELECT array_agg(m ORDER BY m), greatest('sad', max(m)) FROM p WHERE m < 'happy'") == [
        ("{sad,ok}", "ok")
    ]
    text = "SELECT m::text || '!', coalesce(m, 'sad'), CASE WHEN m = 'ok' THEN m END FROM p WHERE id = 4"
    assert client.rows(text) == [("ok!", "ok", "ok")]
    assert client.rows("SELECT mood('ok'), NULL::mood IS NULL, '{ok,sad}'::mood[] @> ARRAY['sad'::mood]") == [
        ("ok", "t", "t")
    ]
    ranges = "enum_range(NULL::mood), enum_range('ok'::mood, NULL), enum_first(m), enum_last(m)"
    assert client.rows(f"SELECT {ranges} FROM p LIMIT 1") == [("{sad,ok,happy}", "{ok,happy}", "sad", "happy")]


@pytest.mark.parametrize(
    ("sql", "state", "message"),
    [
        ("SELECT 'x'::mood", "22P02", 'invalid input value for enum mood: "x"'),
        ("INSERT INTO p VALUES (9, 'SAD')", "22P02", 'invalid input value for enum mood: "SAD"'),
        ("INSERT INTO p VALUES (9, 'sad'::text)", "42804",
         'column "m" is of type mood but expression is of type text'),
        ("SELECT m = 'ok'::text FROM p", "42883", "operator does not exist: mood = text"),
        ("SELECT m + 1 FROM p", "42883", "operator does not exist: mood + integer"),
        ("SELECT 1::mood", "42846", "cannot cast type integer to mood"),
        ("SELECT enum_range(NULL)", "42883", "function enum_range(unknown) does not exist"),
        ("CREATE TABLE f (m other_mood REFERENCES key(m))", "42804",
         'foreign key constraint "f_m_fkey" cannot be implemented'),
        ("SELECT m = 'sad'::other_mood FROM p", "42883", "operator does not exist: mood = other_mood"),
        ("SELECT sum(m) FROM p", "42883", "function sum(mood) does not exist"),
        ("SELECT 'a'::moody", "42704", 'type "moody" does not exist'),
        ("SELECT 'a'::nowhere.mood", "42704", 'type "nowhere.mood" does not exist'),
        ("CREATE TYPE mood AS ENUM ()", "42710", 'type "mood" already exists'),
        ("CREATE TYPE q AS ENUM ('a', 'a')", "23505",
         'duplicate key value violates unique constraint "pg_enum_typid_label_index"'),
        ("ALTER TYPE mood ADD VALUE 'ok'", "42710", 'enum label "ok" already exists'),
        ("ALTER TYPE mood ADD VALUE 'a' BEFORE 'b'", "22023", '"b" is not an existing enum label'),
        ("ALTER TYPE mod ADD VALUE 'ok'", "42704", 'type "mod" does not exist'),
        ("DROP TYPE mod", "42704", 'type "mod" does not exist'),
        ("DROP TYPE mood", "2BP01", "cannot drop type mood because other objects depend on it"),
        ("CREATE MATERIALIZED VIEW w AS SELECT enum_range(m) FROM p", "0A000", None),
        ("CREATE MATERIALIZED VIEW w AS SELECT (m::text)::mood FROM p", "0A000", None),
        ("CREATE TYPE q (input = f)", "0A000", None),
    ],
)  # fmt: skip
def test_errors(client: Client, sql: str, state: str, message: str | None) -> None:
    error = client.error(sql)
    assert error.sqlstate == state
    assert message in (None, error.message)


def test_labels_may_come_in_between(client: Client) -> None:
    client.run("CREATE MATERIALIZED VIEW v AS SELECT m, m::text AS t, count(*) AS n FROM p GROUP BY m")
    client.run("ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok'")
    client.run("ALTER TYPE mood ADD VALUE 'great' AFTER 'happy'")
    client.run("ALTER TYPE mood ADD VALUE IF NOT EXISTS 'great'")
    client.run("ALTER TYPE mood ADD VALUE 'awful' BEFORE 'sad'")
    client.run("INSERT INTO p VALUES (5, 'meh'), (6, 'great'), (7, 'awful'), (8, 'meh')")
    assert client.rows("SELECT t, n FROM v WHERE m IS NOT NULL ORDER BY m") == [
        ("awful", "1"), ("sad", "1"), ("meh", "2"), ("ok", "1"), ("happy", "1"), ("great", "1"),
    ]  # fmt: skip
    assert client.rows("SELECT max(m), min(m) FROM p") == [("great", "awful")]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


def test_a_gap_may_be_used_up() -> None:
    enum = Enumeration(EnumType(1, 2, "e", "e"), "e", (Label(0, "a", 3), Label(4, "z", 4)))
    enum = added(added(enum, "b", 5, ("a", False)), "c", 6, ("z", True))
    assert [(label.word, label.text) for label in enum.labels] == [(0, "a"), (2, "b"), (3, "c"), (4, "z")]
    with pytest.raises(SqlError, match="one more label between two"):
        added(enum, "d", 7, ("c", False))
    assert SqlType(Kind.ENUM, enum=enum.type) != SqlType(Kind.ENUM, enum=EnumType(1, 2, "e", "e"))


def test_rolled_back_labels_and_types_are_gone(client: Client) -> None:
    client.run("BEGIN")
    client.run("ALTER TYPE mood ADD VALUE 'meh' AFTER 'sad'")
    client.run("INSERT INTO p VALUES (5, 'meh')")
    client.run("SAVEPOINT s")
    client.run("ALTER TYPE mood ADD VALUE 'glad'")
    client.run("CREATE TYPE other AS ENUM ('a')")
    assert client.rows("SELECT 'a'::other, 'glad'::mood") == [("a", "glad")]
    client.run("ROLLBACK TO s")
    assert client.state("SELECT 'glad'::mood") == "22P02"
    client.run("ROLLBACK TO s")
    assert client.rows("SELECT m FROM p WHERE id = 5") == [("meh",)]
    client.run("ROLLBACK")
    assert client.state("SELECT 'meh'::mood") == "22P02"
    assert client.state("SELECT 'a'::other") == "42704"
    assert client.rows("SELECT enumlabel FROM pg_enum WHERE enumtypid = 'mood'::regtype ORDER BY enumsortorder") == [
        (label,) for label in LABELS
    ]


def test_a_label_is_renamed_where_nothing_mentions_it(client: Client) -> None:
    assert client.state("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'") == "0A000"  # the default says 'ok'
    client.run("ALTER TABLE p ALTER m DROP DEFAULT")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT m::text FROM p")
    assert client.state("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'") == "0A000"
    client.run("DROP MATERIALIZED VIEW v")
    assert client.state("ALTER TYPE mood RENAME VALUE 'bad' TO 'fine'") == "22023"
    assert client.state("ALTER TYPE mood RENAME VALUE 'ok' TO 'sad'") == "42710"
    client.run("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'")
    assert client.rows("SELECT m FROM p ORDER BY m") == [("sad",), ("fine",), ("happy",), (None,)]
    assert client.state("SELECT 'ok'::mood") == "22P02"


def test_a_type_is_replaced_by_another(client: Client) -> None:
    """As migrations do to remove a label."""
    client.run("CREATE VIEW w AS SELECT 'ok'::mood AS m")
    assert client.state("ALTER TYPE mood RENAME TO old_mood") == "0A000"
    client.run("DROP VIEW w")
    assert client.error("ALTER TYPE mood RENAME TO other_mood").message == 'type "other_mood" already exists'
    client.run("BEGIN")
    client.run("ALTER TYPE mood RENAME TO old_mood")
    assert client.state("SELECT 'ok'::mood") == "42704"
    client.run("ROLLBACK")
    assert client.error("SELECT 'x'::mood").message == 'invalid input value for enum mood: "x"'
    client.run("CREATE MATERIALIZED VIEW v AS SELECT m, count(*) FROM p GROUP BY m")
    client.run("BEGIN")
    client.run("ALTER TYPE mood RENAME TO old_mood")
    client.run("CREATE TYPE mood AS ENUM ('happy', 'sad', 'fine')")
    client.run("ALTER TABLE p ALTER m DROP DEFAULT")
    client.run("UPDATE p SET m = 'happy' WHERE m = 'ok'")
    client.run("DROP MATERIALIZED VIEW v")
    client.run("ALTER TABLE p ALTER m TYPE mood USING m::text::mood, ALTER ms TYPE mood[] USING NULL")
    client.run("DROP TABLE key")
    client.run("DROP TYPE old_mood")
    client.run("COMMIT")
    assert client.rows("SELECT m FROM p ORDER BY m") == [("happy",), ("happy",), ("sad",), (None,)]
    assert client.rows("SELECT typname FROM pg_type WHERE typtype = 'e' ORDER BY 1") == [("mood",), ("other_mood",)]


def test_keys_joins_and_sets(client: Client) -> None:
    client.run("CREATE TABLE weight (m mood PRIMARY KEY, w int)")
    client.run("INSERT INTO weight VALUES ('happy', 3), ('sad', 1)")
    assert client.error("INSERT INTO weight VALUES ('sad', 2)").detail == "Key (m)=(sad) already exists."
    client.run("INSERT INTO weight VALUES ('sad', 2) ON CONFLICT (m) DO UPDATE SET w = excluded.w")
    assert client.rows("SELECT id, w FROM p JOIN weight USING (m) ORDER BY m") == [("2", "2"), ("1", "3")]
    assert client.rows("SELECT w FROM weight WHERE m = 'happy'") == [("3",)]
    assert client.rows("SELECT m FROM p EXCEPT SELECT m FROM weight ORDER BY 1") == [("ok",), (None,)]
    client.run("ALTER TABLE p ALTER COLUMN m TYPE text")
    client.run("ALTER TABLE p ALTER COLUMN m DROP DEFAULT")
    client.run("ALTER TABLE p ALTER COLUMN m TYPE mood USING m::mood")
    assert client.rows("SELECT m FROM p ORDER BY m LIMIT 2") == [("sad",), ("ok",)]
    client.run("DROP TABLE weight")


def test_copy(client: Client) -> None:
    client.run("COPY p (id, m, ms) FROM STDIN", b"10\thappy\t{sad}\n11\t\\N\t\\N\n")
    lines = client.copy_out("COPY (SELECT id, m, ms FROM p WHERE id >= 10 ORDER BY id) TO STDOUT")
    assert lines == ["10\thappy\t{sad}", "11\t\\N\t\\N"]
    with pytest.raises(SqlError, match='invalid input value for enum mood: "glad"'):
        client.run("COPY p (id, m) FROM STDIN (FORMAT csv)", b"12,glad\n")


def test_dropping_a_type(client: Client) -> None:
    client.run("CREATE VIEW w AS SELECT 'ok'::mood AS m")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT id FROM p WHERE m = 'ok'")
    assert client.error("DROP TYPE mood").detail == (
        "column m of table p depends on type mood\ncolumn ms of table p depends on type mood\n"
        "column m of table key depends on type mood\n"
        "view w depends on type mood"
    )
    client.run("DROP TYPE mood CASCADE")
    assert client.sorted("SELECT * FROM p") == [("1",), ("2",), ("3",), ("4",)]
    assert client.state("SELECT * FROM w") == "42P01"
    assert client.state("SELECT * FROM v") == "42P01"


def test_names_follow_the_search_path(client: Client) -> None:
    client.run("CREATE SCHEMA s")
    client.run("CREATE TYPE s.mood AS ENUM ('low', 'high')")
    client.run("CREATE VIEW w AS SELECT 'high'::s.mood AS m")
    assert client.state("SELECT 'low'::mood") == "22P02"
    assert client.rows(
        "SELECT 'low'::s.mood, pg_typeof(m)::text, 's.mood'::regtype::text, 'mood[]'::regtype::text FROM w"
    ) == [("low", "s.mood", "s.mood", "mood[]")]
    text = "SELECT n.nspname, pg_type_is_visible(t.oid), pg_type_is_visible(23) FROM pg_type t, pg_namespace n"
    text += " WHERE n.oid = t.typnamespace AND typname = 'mood' ORDER BY 1"
    assert client.rows(text) == [("public", "t", "t"), ("s", "f", "t")]
    client.run("SET search_path = s, public")
    assert client.rows(text) == [("public", "f", "t"), ("s", "t", "t")]
    assert client.rows("SELECT 'low'::mood, (SELECT m FROM w)") == [("low", "high")]
    client.run("RESET search_path")
    assert client.state("SELECT m = 'sad'::mood FROM w") == "42883"
    assert client.state("SELECT m FROM w UNION SELECT m FROM p") == "42804"
    client.run("CREATE TABLE q (m s.mood)")
    assert client.state("DROP SCHEMA s CASCADE") == "0A000"
    client.run("DROP TABLE q")
    client.run("DROP SCHEMA s CASCADE")
    assert client.state("SELECT * FROM w") == "42P01"


def test_the_catalog_knows_enums(client: Client) -> None:
    text = "SELECT typname, typtype, typcategory, typlen FROM pg_type WHERE oid = 'mood'::regtype"
    assert client.rows(text) == [("mood", "e", "E", "4")]
    text = "SELECT a.typname, e.typname FROM pg_type e JOIN pg_type a ON a.oid = e.typarray AND a.typelem = e.oid"
    assert client.rows(f"{text} WHERE e.oid = 'mood'::regtype") == [("_mood", "mood")]
    text = "SELECT data_type, udt_schema, udt_name FROM information_schema.columns WHERE table_name = 'p' ORDER BY 3"
    assert client.rows(text) == [
        ("ARRAY", "public", "_mood"), ("integer", "pg_catalog", "int4"), ("USER-DEFINED", "public", "mood"),
    ]  # fmt: skip
    text = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'p'::regclass AND attnum > 0"
    assert client.sorted(text) == [("integer",), ("mood",), ("mood[]",)]


def test_functions_take_enums(client: Client) -> None:
    client.run("CREATE FUNCTION better(x mood) RETURNS mood LANGUAGE sql AS 'SELECT min(m) FROM p WHERE m > x'")
    assert client.rows("SELECT better('sad')") == [("ok",)]
    assert client.state("DROP TYPE mood") == "2BP01"
    client.run("DROP FUNCTION better(mood)")


VIEWS = {
    "grouped": "SELECT m, count(*) AS n, min(o) AS low, max(o) AS high FROM e GROUP BY m",
    "joined": "SELECT a.id, b.id AS other, a.m FROM e a JOIN e b ON a.m = b.o",
    "outer_": "SELECT a.id, b.o, a.m::text || 'x' AS t FROM e a LEFT JOIN e b ON a.m = b.m AND b.o > 'c'",
    "distinct_": "SELECT DISTINCT m, o FROM e",
    "top": "SELECT id, m FROM e ORDER BY m DESC NULLS LAST, id LIMIT 4",
    "minus": "SELECT m FROM e EXCEPT ALL SELECT o FROM e",
    "least_": "SELECT least(m, o) AS l, m < o AS smaller, array_agg(m ORDER BY o, id) AS ms FROM e GROUP BY m, o",
}


def test_views_over_enums_are_maintained(server: Server) -> None:
    client, rnd = server.client(), random.Random(5)
    labels = ["a", "c", "e"]
    client.run("CREATE TYPE letter AS ENUM ('a', 'c', 'e')")
    client.run("CREATE TABLE e (id int, m letter, o letter)")
    for name, text in VIEWS.items():
        client.run(f"CREATE MATERIALIZED VIEW {name} AS {text}")
    for step in range(40):
        if step in (10, 25):
            new, where = ("b", "AFTER 'a'") if step == 10 else ("d", "BEFORE 'e'")
            client.run(f"ALTER TYPE letter ADD VALUE '{new}' {where}")
            labels.append(new)
        m, o = (rnd.choice(("NULL", *(f"'{x}'" for x in labels))) for _ in range(2))
        number = rnd.randrange(6)
        client.run(
            rnd.choice((
                f"INSERT INTO e VALUES ({number}, {m}, {o}), ({number}, {m}, {o})",
                f"INSERT INTO e VALUES ({number}, {o}, {m})",
                f"UPDATE e SET m = {m}, o = m WHERE id = {number}",
                f"DELETE FROM e WHERE m = {o} OR id = {number}",
            ))
        )  # fmt: skip
        for name, text in VIEWS.items():
            assert client.sorted(f"SELECT * FROM {name}") == client.sorted(text), (step, name)
    for name in VIEWS:
        assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == []
    client.run("DROP TYPE letter CASCADE")
    client.run("DROP TABLE e")
    client.close()


def test_enums_are_durable(tmp_path: Path) -> None:
    server = Server(tmp_path)
    client = server.client()
    client.run("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    client.run("CREATE TABLE p (id int, m mood)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT m, m::text AS t, count(*) FROM p WHERE m <> 'sad' GROUP BY m")
    client.run("INSERT INTO p VALUES (1, 'sad'), (2, 'happy')")
    client.run("ALTER TYPE mood ADD VALUE 'ok' BEFORE 'happy'")
    client.run("INSERT INTO p VALUES (3, 'ok')")
    client.close()
    for label in ("glad", "jolly"):
        server.restart()
        client = server.client()
        client.run(f"ALTER TYPE mood ADD VALUE '{label}' BEFORE 'happy'")
        client.run(f"INSERT INTO p VALUES (4, '{label}')")
        client.close()
    server.restart()
    client = server.client()
    labels = ["sad", "ok", "glad", "jolly", "happy"]
    assert client.rows("SELECT m FROM p ORDER BY m") == [(label,) for label in labels]
    assert [row[1] for row in client.rows("SELECT * FROM v ORDER BY m")] == labels[1:]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    client.close()
    server.close()
