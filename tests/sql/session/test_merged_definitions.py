"""Transactions that change the catalog at the same time: what is left is as if one had come after the other, or the
later one fails and has changed nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from ivm.errors import SqlError
from tests.support.sessions import Client, Server
from tests.support.waiting import Clients, begin

SETUP = [
    "CREATE TABLE a (id int PRIMARY KEY, x int, y text)",
    "CREATE TABLE b (id int PRIMARY KEY, x int, y text)",
    "CREATE TABLE spare (z int)",
    "CREATE VIEW va AS SELECT id, x FROM a",
    "CREATE MATERIALIZED VIEW ma AS SELECT x, count(*) AS n FROM a GROUP BY x",
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE DOMAIN small AS int CHECK (VALUE < 100)",
    "CREATE FUNCTION f(i int) RETURNS int LANGUAGE sql AS 'SELECT i + 1'",
    "CREATE TABLE p (i int) PARTITION BY RANGE (i)",
    "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
    "CREATE SEQUENCE s",
    "INSERT INTO a SELECT i, i % 3, 'a' || i FROM generate_series(1, 9) i",
    "INSERT INTO b SELECT i, i % 2, NULL FROM generate_series(1, 9) i",
]
STATEMENTS = [
    "CREATE TABLE made (i int, m mood, d small)",
    "CREATE TABLE of_a (LIKE a INCLUDING ALL)",
    "CREATE TABLE made (other text)",
    "CREATE TABLE child () INHERITS (a)",
    "CREATE TABLE refers (id int REFERENCES a)",
    "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)",
    "CREATE TEMP TABLE mine (i int)",
    "CREATE VIEW vb AS SELECT id, f(x) AS fx FROM b",
    "CREATE VIEW vva AS SELECT * FROM va",
    "CREATE MATERIALIZED VIEW mb AS SELECT a.x, sum(b.x) AS s FROM a JOIN b USING (id) GROUP BY 1",
    "CREATE MATERIALIZED VIEW mma AS SELECT sum(n) AS s FROM ma",
    "CREATE OR REPLACE MATERIALIZED VIEW ma AS SELECT x, count(*) + 1 AS n FROM a GROUP BY x",
    "CREATE OR REPLACE VIEW va AS SELECT id, x + 1 AS x FROM a",
    "CREATE FUNCTION g(i int) RETURNS int LANGUAGE sql AS 'SELECT f(i) * 2'",
    "CREATE FUNCTION f(t text) RETURNS text LANGUAGE sql AS 'SELECT upper(t)'",
    "CREATE OR REPLACE FUNCTION f(i int) RETURNS int LANGUAGE sql AS 'SELECT i + 2'",
    "CREATE TYPE pair AS (one int, two mood)",
    "CREATE SEQUENCE made",
    "CREATE INDEX made ON b (x)",
    "CREATE UNIQUE INDEX ub ON b (id, x)",
    "ALTER TABLE a ADD COLUMN w int DEFAULT 5",
    "ALTER TABLE a RENAME COLUMN y TO why",
    "ALTER TABLE b ALTER COLUMN x TYPE bigint",
    "ALTER TABLE b DROP COLUMN y",
    "ALTER TABLE b ADD CHECK (x < 50)",
    "ALTER TABLE spare RENAME TO made",
    "ALTER TYPE mood ADD VALUE 'glad'",
    "ALTER DOMAIN small ADD CHECK (VALUE > -5)",
    "ALTER SEQUENCE s OWNED BY b.id",
    "COMMENT ON TABLE a IS 'an a'",
    "COMMENT ON COLUMN b.x IS 'an x'",
    "GRANT SELECT ON a TO PUBLIC",
    "GRANT INSERT ON b TO PUBLIC",
    "REVOKE EXECUTE ON FUNCTION f(int) FROM PUBLIC",
    "DROP TABLE b",
    "DROP TABLE spare",
    "DROP VIEW va",
    "DROP MATERIALIZED VIEW ma",
    "DROP FUNCTION f(int)",
    "DROP TYPE mood",
    "DROP SEQUENCE s",
    "DROP TABLE p1",
]
SHOWN = [
    "SELECT table_name, column_name, data_type, column_default, ordinal_position, domain_name"
    " FROM information_schema.columns WHERE table_schema = '{0}' ORDER BY 1, 5",
    "SELECT relname, relkind, relacl FROM pg_class WHERE relnamespace = '{0}'::regnamespace ORDER BY 1",
    "SELECT viewname, definition FROM pg_views WHERE schemaname = '{0}' ORDER BY 1",
    "SELECT matviewname, definition FROM pg_matviews WHERE schemaname = '{0}' ORDER BY 1",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = '{0}'::regnamespace ORDER BY 1, 2",
    "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = '{0}' ORDER BY 1",
    "SELECT proname, pg_get_function_arguments(oid), prosrc, proacl FROM pg_proc"
    " WHERE pronamespace = '{0}'::regnamespace ORDER BY 1, 2",
    "SELECT typname, enumlabel FROM pg_type t LEFT JOIN pg_enum e ON enumtypid = t.oid"
    " WHERE typnamespace = '{0}'::regnamespace ORDER BY 1, 2",
    "SELECT relname, obj_description(oid, 'pg_class'), col_description(oid, 2) FROM pg_class"
    " WHERE relnamespace = '{0}'::regnamespace ORDER BY 1",
    "SELECT inhparent::regclass::text, inhrelid::regclass::text FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid"
    " WHERE relnamespace = '{0}'::regnamespace ORDER BY 1, 2",
    "SELECT sequencename, start_value FROM pg_sequences WHERE schemaname = '{0}' ORDER BY 1",
]
PAIRS = [(one, other) for one in STATEMENTS for other in STATEMENTS]


class Schemas:
    """New schemas with the same contents, in which two sessions work."""

    def __init__(self, server: Server) -> None:
        self.first, self.second = server.client(), server.client()
        self.name, self._count = "", 0

    def renew(self) -> None:
        """Begin with a new one."""
        self.drop()
        self._count += 1
        self.name = f"merged_{self._count}"
        self.first.run(f"CREATE SCHEMA {self.name}")
        for client in (self.first, self.second):
            client.run(f"SET search_path TO {self.name}")
        for text in SETUP:
            self.first.run(text)

    def drop(self) -> None:
        """Drop it."""
        if self.name:
            self.first.run(f"DROP SCHEMA {self.name} CASCADE")
            for client in (self.first, self.second):
                client.run("DISCARD TEMP")

    def shown(self) -> list[list[tuple[str | None, ...]]]:
        """Everything that is in it, and what materialized views have."""
        name = self.name

        def plain(row: tuple[str | None, ...]) -> tuple[str | None, ...]:
            return tuple(None if v is None else v.replace(f"{name}.", "").replace(name, "") for v in row)

        found = [[plain(row) for row in self.second.rows(text.format(name))] for text in SHOWN]
        for (view,) in self.second.rows(f"SELECT matviewname FROM pg_matviews WHERE schemaname = '{name}' ORDER BY 1"):
            assert self.second.rows(f"VERIFY MATERIALIZED VIEW {view}") == []
            found.append(self.second.sorted(f"SELECT * FROM {view}"))
        return found


@pytest.fixture
def schemas(server: Server) -> Iterator[Schemas]:
    made = Schemas(server)
    yield made
    made.drop()
    for client in (made.first, made.second):
        client.close()


def _tried(client: Client, text: str) -> str | None:
    try:
        client.run(text)
    except SqlError as error:
        return error.sqlstate
    return None


def _after_another(schemas: Schemas, first: str, second: str) -> tuple[str | None, list[list[tuple[str | None, ...]]]]:
    """What the second statement ends with, and what there is after both."""
    schemas.renew()
    assert _tried(schemas.second, first) is None
    return _tried(schemas.first, second), schemas.shown()


def _beside(schemas: Schemas, committed: str, open_: str) -> str | None:
    """What a transaction ends with that has run ``open_`` before another one has committed; else "waits"."""
    schemas.renew()
    schemas.second.run("SET lock_timeout = '100ms'")
    begin(schemas.first)
    failed = _tried(schemas.first, open_)
    assert failed is None, open_
    if _tried(schemas.second, committed) is not None:
        schemas.first.run("ROLLBACK")
        return "waits"
    return _tried(schemas.first, "COMMIT")


def check_pair(schemas: Schemas, committed: str, open_: str) -> str:
    """``committed`` is committed while a transaction is open that has run ``open_``. Returns how that has ended."""
    if (found := _beside(schemas, committed, open_)) == "waits":
        return "waits"
    shown = schemas.shown()
    if found is not None:
        schemas.renew()
        schemas.second.run(committed)
        assert shown == schemas.shown(), (committed, open_, found)
        return found
    failed, after = _after_another(schemas, committed, open_)
    assert failed is None, (committed, open_, failed)
    assert shown == after, (committed, open_)
    return "both"


def test_what_is_left_is_as_if_one_had_come_after_the_other(schemas: Schemas) -> None:
    found = {check_pair(schemas, *pair) for pair in random.Random(14).sample(PAIRS, 40)}
    assert {"both", "waits", "40001"} <= found, found


def test_an_open_transaction_with_temporary_tables_keeps_nobody_waiting(three: Clients) -> None:
    a, b, c = three
    begin(a)
    a.run("CREATE TEMP TABLE made (i int) ON COMMIT DROP")
    a.run("INSERT INTO made VALUES (1)")
    begin(b)
    b.run("CREATE TEMP TABLE made (i int)")
    c.run("ALTER TABLE other ADD COLUMN more int DEFAULT 3")
    c.run("CREATE MATERIALIZED VIEW mores AS SELECT sum(more) AS s FROM other")
    c.run("CREATE ROLE merging")
    assert a.rows("SELECT s FROM mores") == [("6",)]
    a.run("INSERT INTO made SELECT s FROM mores")
    assert a.sorted("SELECT * FROM made") == [("1",), ("6",)]
    b.run("COMMIT")
    a.run("COMMIT")
    assert b.rows("SELECT * FROM made") == []
    c.run("DROP ROLE merging")


def test_a_savepoint_goes_back_to_what_others_have_left(three: Clients) -> None:
    a, b, _ = three
    begin(a, level="READ COMMITTED")
    a.run("CREATE TABLE first (i int)")
    a.run("SAVEPOINT s")
    a.run("CREATE TABLE second (i int)")
    b.run("ALTER TABLE other ADD COLUMN more int DEFAULT 3")
    a.run("CREATE TABLE third (i int)")
    a.run("ROLLBACK TO s")
    b.run("CREATE TABLE second (j text)")
    assert a.rows("SELECT more FROM other WHERE id = 1") == [("3",)]
    a.run("INSERT INTO second VALUES ('theirs')")
    a.run("COMMIT")
    assert b.rows("SELECT * FROM second") == [("theirs",)]
    assert b.rows("SELECT * FROM first") == []


def test_the_later_of_two_roles_of_one_name_fails(three: Clients) -> None:
    a, b, _ = three
    begin(a)
    a.run("CREATE ROLE merging")
    b.run("CREATE ROLE merging")
    assert _tried(a, "COMMIT") == "40001"
    begin(a)
    a.run("CREATE TABLE made (i int)")
    a.run("ALTER TABLE made OWNER TO merging")
    b.run("DROP ROLE merging")
    assert _tried(a, "COMMIT") == "40001"
    assert b.rows("SELECT count(*) FROM pg_class WHERE relname = 'made'") == [("0",)]


def test_an_index_of_an_open_transaction_outlives_the_definitions_of_others(three: Clients) -> None:
    a, b, _ = three
    begin(a)
    a.run("CREATE UNIQUE INDEX unique_x ON other (x)")
    b.run("CREATE TABLE made (i int)")
    a.run("SAVEPOINT s")
    assert _tried(a, "INSERT INTO other VALUES (3, 10)") == "23505"
    a.run("ROLLBACK TO s")
    a.run("INSERT INTO other VALUES (3, 30)")
    b.run("DROP TABLE made")
    a.run("COMMIT")
    assert _tried(b, "INSERT INTO other VALUES (4, 30)") == "23505"
    b.run("INSERT INTO other VALUES (4, 40)")
    assert b.rows("SELECT id FROM other WHERE x = 40") == [("4",)]


@pytest.mark.parametrize("drops_first", [False, True])
@pytest.mark.parametrize(
    ("made", "dropped"),
    [
        ("CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION pass()", "DROP FUNCTION pass()"),
        ("CREATE POLICY p ON t USING (positive(x))", "DROP FUNCTION positive(int)"),
        ("CREATE POLICY p ON t TO merging USING (true)", "DROP ROLE merging"),
        ("CREATE AGGREGATE added(int) (SFUNC = plus, STYPE = int)", "DROP FUNCTION plus(int, int)"),
    ],
)
def test_what_is_dropped_is_not_needed(three: Clients, made: str, dropped: str, drops_first: bool) -> None:
    a, b, c = three
    a.run("CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'")
    a.run("CREATE FUNCTION positive(i int) RETURNS boolean LANGUAGE sql AS 'SELECT i > 0'")
    a.run("CREATE FUNCTION plus(i int, j int) RETURNS int LANGUAGE sql AS 'SELECT i + j'")
    a.run("CREATE ROLE merging")
    begin(a)
    a.run(dropped if drops_first else made)
    b.run(made if drops_first else dropped)
    assert _tried(a, "COMMIT") == "40001"
    c.run("INSERT INTO t VALUES (4, 40)")
    assert c.rows("SELECT count(*) FROM t") == [("4",)]
    c.run("DROP POLICY IF EXISTS p ON t")
    c.run("DROP ROLE IF EXISTS merging")
