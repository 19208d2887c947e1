"""Materialized views and subscriptions of tables with row-level policies: maintained with what their owner may see."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ivm.errors import SqlError
from tests.support.profiles import scaled
from tests.support.sessions import Client, Row, Server

SETUP: Final = (
    "CREATE ROLE boss; CREATE ROLE ann; CREATE ROLE bob; CREATE ROLE crew; GRANT crew TO ann;"
    "CREATE SCHEMA s; GRANT ALL ON SCHEMA s TO PUBLIC; CREATE TABLE t (id int, own text, x int);"
    "CREATE TABLE allowed (who text, id int); CREATE TABLE other (id int, y int); ALTER TABLE t OWNER TO boss;"
    "GRANT ALL ON t, other TO PUBLIC; GRANT SELECT ON allowed TO PUBLIC; ALTER TABLE t ENABLE ROW LEVEL SECURITY;"
    "CREATE POLICY own ON t USING (own = current_user);"
    "CREATE POLICY shared ON t FOR SELECT TO crew USING (id IN (SELECT id FROM allowed WHERE who = current_user));"
    "CREATE POLICY less ON t AS RESTRICTIVE USING (x IS DISTINCT FROM 7)"
)
QUERIES: Final = (
    "SELECT * FROM t", "SELECT own, count(*) AS n, sum(x) AS x, min(id) AS m FROM t GROUP BY own",
    "SELECT DISTINCT x FROM t", "SELECT t.id, t.x, o.y FROM t LEFT JOIN other o ON t.id = o.id",
    "SELECT id FROM other EXCEPT ALL SELECT id FROM t", "SELECT id, y FROM other WHERE id NOT IN (SELECT x FROM t)",
    "SELECT a.id, b.own FROM t a JOIN t b ON a.x = b.x", "SELECT max(x) FROM t WHERE 100 / (x - 7) IS NOT NULL",
)  # fmt: skip
"""The last one fails for rows that a policy hides."""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run(SETUP)
    yield client
    server.close()


def change(rng: random.Random) -> str:
    """A change with NULLs, duplicates, and rows that come into sight and go."""
    own, x = rng.choice(("'ann'", "'bob'", "'eve'", "NULL")), rng.choice((0, 1, 2, 7, "NULL"))
    key, other = rng.choice((1, 2, 3, 4, "NULL")), rng.randint(1, 4)
    return rng.choice((
        f"INSERT INTO t VALUES ({key}, {own}, {x}), ({other}, {own}, {x})", f"INSERT INTO t VALUES ({key}, {own}, {x})",
        f"INSERT INTO t SELECT * FROM t WHERE id = {other}", f"UPDATE t SET own = {own} WHERE id = {other}",
        f"UPDATE t SET x = {x} WHERE own = {own}", f"DELETE FROM t WHERE id = {other} AND x = {x}",
        f"INSERT INTO allowed VALUES ({own}, {key})", f"UPDATE allowed SET id = {other} WHERE id = {key}",
        f"DELETE FROM allowed WHERE id = {key}", f"INSERT INTO other VALUES ({key}, {x})",
        f"DELETE FROM other WHERE id = {other}",
    ))  # fmt: skip


def as_role(client: Client, role: str, query: str) -> list[Row]:
    client.run(f"SET ROLE {role}")
    found = client.sorted(query)
    client.run("RESET ROLE")
    return found


def make_views(client: Client, role: str, *queries: str) -> list[str]:
    client.run(f"SET ROLE {role}")
    names = [f"s.{role}{i}" for i in range(len(queries))]
    for name, query in zip(names, queries, strict=True):
        client.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    client.run("RESET ROLE")
    return names


@pytest.mark.parametrize("seed", range(scaled(2)))
def test_views_are_what_their_owners_see_at_every_epoch(client: Client, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(5):
        client.run(change(rng))
    views = {role: make_views(client, role, *QUERIES) for role in ("ann", "bob", "boss")}
    past: list[tuple[str, dict[str, list[Row]]]] = []
    for step in range(10):
        client.run(change(rng))
        seen = {}
        for role, names in views.items():
            for name, query in zip(names, QUERIES, strict=True):
                if role == "boss" and query is QUERIES[-1]:
                    continue  # it sees what fails
                seen[name] = client.sorted(f"SELECT * FROM {name}")
                assert seen[name] == as_role(client, role, query), (step, query)
        past.append((client.rows("SELECT mz_now()::text")[0][0] or "", seen))
    for epoch, seen in past[::3]:
        for name, rows in seen.items():
            assert client.sorted(f"SELECT * FROM {name} AS OF {epoch}") == rows
    client.server.restart()
    client = client.server.client()
    client.run(change(rng))
    for role, names in views.items():
        for name, query in zip(names[:-1], QUERIES, strict=False):
            assert client.sorted(f"SELECT * FROM {name}") == as_role(client, role, query)
            assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == []


def test_the_work_is_that_of_the_change(client: Client) -> None:
    client.run("INSERT INTO t SELECT i, CASE i % 2 WHEN 0 THEN 'ann' ELSE 'bob' END, i FROM generate_series(1, 4000) i")
    client.run(
        "ALTER POLICY shared ON t USING (EXISTS (SELECT FROM allowed a WHERE a.id = t.id AND who = current_user))"
    )
    make_views(client, "ann", "SELECT own, count(*) FROM t GROUP BY own", "SELECT t.id, y FROM t JOIN other USING (id)")
    client.run("INSERT INTO other SELECT i, i FROM generate_series(1, 4000) i")
    dataflow = client.server.coordinator.engine.dataflow
    before = dataflow.counters
    client.run("INSERT INTO t VALUES (9001, 'ann', 1)")
    client.run("UPDATE t SET own = 'ann' WHERE id = 5")
    client.run("INSERT INTO allowed VALUES ('ann', 7)")
    work = dataflow.counters - before
    assert work.history + work.matches + work.segments < 100
    assert client.rows("SELECT count FROM s.ann0 WHERE own = 'ann'") == [("2002",)]


REFUSED: Final = (
    "ALTER POLICY own ON t USING (true)", "DROP POLICY own ON t", "CREATE POLICY p ON t USING (id = 1)",
    "CREATE POLICY p ON t TO crew USING (id = 1)", "ALTER POLICY less ON t USING (true)",
    "ALTER TABLE t DISABLE ROW LEVEL SECURITY", "ALTER ROLE ann BYPASSRLS", "ALTER ROLE ann SUPERUSER",
    "ALTER ROLE ann RENAME TO anna", "ALTER ROLE ann NOINHERIT", "REVOKE crew FROM ann", "GRANT boss TO ann",
    "ALTER TABLE t OWNER TO ann", "ALTER MATERIALIZED VIEW s.ann0 OWNER TO bob", "REASSIGN OWNED BY ann TO bob",
    "ALTER MATERIALIZED VIEW s.ann0 OWNER TO boss", "ALTER TABLE t DROP COLUMN own CASCADE",
    "ALTER VIEW v SET (security_invoker = false)",
)  # fmt: skip
KEPT: Final = (
    "CREATE POLICY p ON t TO bob USING (id = 1)", "CREATE POLICY q ON t FOR INSERT WITH CHECK (true)",
    "ALTER POLICY own ON t RENAME TO mine", "ALTER TABLE t FORCE ROW LEVEL SECURITY", "ALTER ROLE bob BYPASSRLS",
    "GRANT crew TO bob", "GRANT SELECT (id) ON t TO bob", "ALTER TABLE t ADD COLUMN z int DEFAULT 1",
    "ALTER TABLE t RENAME COLUMN id TO number", "CREATE ROLE another",
    "ALTER TABLE other ENABLE ROW LEVEL SECURITY", "DROP VIEW v", "REVOKE ALL ON t FROM ann",
    "ALTER TABLE t RENAME TO tt",
)  # fmt: skip


def test_what_its_owner_sees_does_not_change_while_a_view_depends_on_it(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, 'ann', 1), (2, 'bob', 2), (3, 'ann', NULL), (3, 'ann', NULL)")
    client.run("DROP POLICY shared ON t; CREATE POLICY shared ON t TO crew USING (id = 9);"
               "CREATE VIEW v WITH (security_invoker) AS SELECT id FROM t; GRANT SELECT ON v TO ann")  # fmt: skip
    make_views(client, "ann", "SELECT x, id FROM t", "SELECT * FROM v")
    before = client.sorted("SELECT * FROM s.ann0")
    for statement in REFUSED:
        error = client.error(statement)
        assert error.sqlstate == "2BP01", statement
        assert "s.ann" not in statement or error.message.startswith("this would change the rows of materialized view")
    client.run("DROP MATERIALIZED VIEW s.ann1")
    for statement in KEPT:
        client.run(statement)
        assert client.sorted("SELECT * FROM s.ann0") == before, statement
        assert client.rows("VERIFY MATERIALIZED VIEW s.ann0") == [], statement
    client.server.restart()
    client = client.server.client()
    client.run("INSERT INTO tt VALUES (8, 'ann', 8, 1), (9, 'eve', 9, 1)")
    assert client.sorted("SELECT id FROM s.ann0") == [("1",), ("3",), ("3",), ("8",), ("9",)]
    client.run("DROP MATERIALIZED VIEW s.ann0; ALTER POLICY mine ON tt USING (true)")


def test_others_see_it_by_its_own_privileges(client: Client) -> None:
    client.run("INSERT INTO t VALUES (1, 'ann', 1), (2, 'bob', 2)")
    make_views(client, "ann", "SELECT id FROM t")
    client.run("SET ROLE bob")
    assert client.state("SELECT * FROM s.ann0") == "42501"
    client.run("RESET ROLE; GRANT SELECT ON s.ann0 TO bob; SET ROLE bob")
    assert client.rows("SELECT * FROM s.ann0") == [("1",)]
    client.run("RESET ROLE")
    client.run("GRANT ann TO bob; SET ROLE bob")
    error = client.error("CREATE OR REPLACE MATERIALIZED VIEW s.ann0 AS SELECT id FROM t WHERE id > 0")
    assert (error.sqlstate, error.hint) == ("0A000", 'SET ROLE "ann" before.')
    client.run("SET ROLE ann; CREATE OR REPLACE MATERIALIZED VIEW s.ann0 AS SELECT id FROM t WHERE id > 0; RESET ROLE")
    client.run("INSERT INTO t VALUES (3, 'ann', 1), (4, 'bob', 2)")
    assert client.sorted("SELECT * FROM s.ann0") == [("1",), ("3",)]
    error = client.error("CREATE OR REPLACE MATERIALIZED VIEW s.ann0 AS SELECT id FROM t")
    assert error.sqlstate == "0A000", "the superuser sees more than its owner"


def test_policies_that_cannot_be_maintained_are_refused(client: Client) -> None:
    client.run("ALTER POLICY own ON t USING (own = session_user)")
    for create in ("CREATE MATERIALIZED VIEW s.m AS SELECT * FROM t", "BEGIN; DECLARE c CURSOR FOR SUBSCRIBE t"):
        client.run("SET ROLE ann")
        assert client.state(create) == "0A000"
        client.run("ROLLBACK; RESET ROLE")


@pytest.mark.parametrize("role", ["ann", "bob"])
def test_subscriptions_are_maintained_with_policies(client: Client, role: str) -> None:
    rng = random.Random(role)
    query = "SELECT id, own, x FROM t"
    for _ in range(5):
        client.run(change(rng))
    follower = client.server.client()
    follower.run(f"SET ROLE {role}; BEGIN; DECLARE c CURSOR FOR SUBSCRIBE ({query})")
    held: dict[Row, int] = {}
    for _ in range(20):
        for row in follower.rows("FETCH ALL c"):
            held[row[2:]] = held.get(row[2:], 0) + int(row[1] or 0)
        assert sorted((r for r, n in held.items() for _ in range(n)), key=repr) == as_role(client, role, query)
        client.run(change(rng))
    client.run("ALTER POLICY less ON t USING (true)")
    error = end_of(follower)
    assert (error.sqlstate, "have changed" in error.message) == ("42501", True)
    follower.close()


def end_of(follower: Client) -> SqlError:
    """What ends a subscription, after the changes before."""
    for _ in range(5):
        try:
            follower.rows("FETCH ALL c WITH (timeout = '5s')")
        except SqlError as error:
            return error
    raise AssertionError("it goes on")
