"""Transactions that change the catalog beside others that write: nobody waits but who gives the same name, and each
view is what a recompute gives, to the transaction that made it and to all once that has committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ivm.errors import SqlError
from sql.catalog.catalog import Catalog, Relation
from sql.engine import uncommitted
from sql.engine.engine import Engine
from tests.support.sessions import Server
from tests.support.waiting import LONG, Clients, begin, error_of, waits

DEFINITIONS = [
    "CREATE TABLE made (i int PRIMARY KEY)",
    "CREATE TEMP TABLE made (i int) ON COMMIT DROP",
    "CREATE VIEW made AS SELECT * FROM t",
    "CREATE MATERIALIZED VIEW made AS SELECT x % 2 AS p, count(*) FROM t GROUP BY 1",
    "CREATE SEQUENCE made",
    "CREATE TYPE made AS ENUM ('a', 'b')",
    "CREATE FUNCTION made(a int) RETURNS int LANGUAGE sql AS 'SELECT a + 1'",
    "CREATE SCHEMA made",
    "ALTER TABLE other ADD COLUMN y int DEFAULT 7",
    "ALTER TABLE other RENAME COLUMN x TO z",
    "CREATE INDEX made ON other (x)",
    "ALTER TABLE other ADD CHECK (x > 0)",
    "COMMENT ON TABLE t IS 'a table'",
    "GRANT SELECT ON t TO PUBLIC",
    "DROP TABLE plain",
]


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_nobody_who_writes_waits(three: Clients, definition: str, end: str) -> None:
    a, b, c = three
    begin(a)
    a.run(definition)
    b.run("INSERT INTO t VALUES (4, 40)")
    begin(c)
    c.run("UPDATE t SET x = x + 1 WHERE id = 1")
    assert c.rows("SELECT * FROM sums") == [("101", "4")]
    c.run("COMMIT")
    b.run("DELETE FROM t WHERE id = 2")
    a.run("INSERT INTO t VALUES (5, 50)")
    assert a.rows("SELECT * FROM sums") == [("131", "4")]
    assert b.rows("SELECT * FROM sums") == [("81", "3")]
    a.run(end)
    assert b.rows("SELECT * FROM sums") == [("131", "4") if end == "COMMIT" else ("81", "3")]
    assert b.rows("VERIFY MATERIALIZED VIEW sums") == []
    begin(b)
    b.run("CREATE TABLE after (i int)")
    b.run("COMMIT")
    b.run("DROP SCHEMA IF EXISTS made CASCADE")


def test_what_it_has_created_goes_along_with_the_commits(three: Clients) -> None:
    """A table, a view over it and a committed table, and one over that view, taken out and made again."""
    a, b, _ = three
    begin(a, level="READ COMMITTED")
    a.run("CREATE TABLE made (id int PRIMARY KEY, y int)")
    a.run("INSERT INTO made SELECT i, i * i FROM generate_series(1, 5) i")
    a.run("CREATE MATERIALIZED VIEW joined AS SELECT t.id, x + y AS s FROM t JOIN made USING (id)")
    a.run("CREATE MATERIALIZED VIEW total AS SELECT sum(s) AS s FROM joined")
    a.run("CREATE INDEX ON joined (s)")
    assert a.rows("SELECT * FROM total") == [("74",)]
    b.run("INSERT INTO t VALUES (4, 40)")
    b.run("UPDATE t SET x = 11 WHERE id = 1")
    assert a.rows("SELECT * FROM total") == [("131",)]
    a.run("UPDATE made SET y = 0 WHERE id = 4")
    b.run("DELETE FROM t WHERE id = 3")
    assert a.sorted("SELECT * FROM joined") == [("1", "12"), ("2", "24"), ("4", "40")]
    assert b.rows("SELECT count(*) FROM pg_class WHERE relname IN ('made', 'joined', 'total')") == [("0",)]
    b.run("INSERT INTO t VALUES (5, NULL), (6, 60)")
    a.run("COMMIT")
    assert b.sorted("SELECT * FROM joined") == [("1", "12"), ("2", "24"), ("4", "40"), ("5", None)]
    b.run("DELETE FROM made WHERE id = 1")
    assert b.rows("SELECT * FROM total") == [("64",)]
    for view in ("joined", "total"):
        assert b.rows(f"VERIFY MATERIALIZED VIEW {view}") == []


def test_it_is_as_it_was_after_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    a, b = server.client(), server.client()
    a.run("CREATE TABLE t (id int PRIMARY KEY, x int)")
    a.run("INSERT INTO t VALUES (1, 10)")
    begin(a)
    a.run("CREATE TABLE made (id int PRIMARY KEY)")
    a.run("INSERT INTO made VALUES (1), (2)")
    a.run("CREATE MATERIALIZED VIEW kept AS SELECT count(*) AS n, sum(x) AS s FROM made, t")
    b.run("INSERT INTO t VALUES (2, 20)")
    a.run("INSERT INTO made VALUES (3)")
    b.run("INSERT INTO t VALUES (3, 30)")
    a.run("COMMIT")
    for _ in range(2):
        assert server.client().rows("SELECT * FROM kept") == [("9", "180")]
        server.restart()
    again = server.client()
    again.run("DELETE FROM t WHERE id = 3")
    assert again.rows("SELECT * FROM kept") == [("6", "90")]
    assert again.rows("VERIFY MATERIALIZED VIEW kept") == []
    server.close()


def test_savepoints_and_what_was_dropped_since(three: Clients) -> None:
    a, b, _ = three
    begin(a, level="READ COMMITTED")
    a.run("CREATE TABLE made (id int)")
    a.run("INSERT INTO made VALUES (1), (1), (NULL)")
    a.run("CREATE MATERIALIZED VIEW counted AS SELECT id, count(*) AS n FROM made GROUP BY id")
    a.run("SAVEPOINT s")
    a.run("DROP MATERIALIZED VIEW counted")
    a.run("INSERT INTO made VALUES (2)")
    b.run("INSERT INTO t VALUES (4, 40)")
    assert a.rows("SELECT count(*) FROM made, t") == [("16",)]
    a.run("ROLLBACK TO s")
    assert sorted(a.rows("SELECT coalesce(id, 0), n FROM counted")) == [("0", "1"), ("1", "2")]
    b.run("INSERT INTO t VALUES (5, 50)")
    assert sorted(a.rows("SELECT coalesce(id, 0), n FROM counted")) == [("0", "1"), ("1", "2")]
    a.run("TRUNCATE made")
    b.run("INSERT INTO t VALUES (6, 60)")
    assert a.rows("SELECT * FROM counted") == []
    a.run("ROLLBACK TO s")
    b.run("INSERT INTO t VALUES (7, 70)")
    a.run("ALTER TABLE made ADD COLUMN more int DEFAULT 3")
    b.run("INSERT INTO t VALUES (8, 80)")
    a.run("COMMIT")
    assert b.sorted("SELECT coalesce(id, 0), more FROM made") == [("0", "3"), ("1", "3"), ("1", "3")]
    assert sorted(b.rows("SELECT coalesce(id, 0), n FROM counted")) == [("0", "1"), ("1", "2")]
    assert b.rows("VERIFY MATERIALIZED VIEW counted") == []


def test_a_savepoint_gives_the_catalog_back(three: Clients) -> None:
    a, b, _ = three
    begin(a)
    a.run("INSERT INTO t VALUES (4, 40)")
    a.run("SAVEPOINT s")
    a.run("CREATE TABLE gone (i int)")
    second = waits(b, "CREATE TABLE gone (j text)")
    a.run("ROLLBACK TO s")
    second.result(LONG)
    a.run("INSERT INTO gone VALUES ('x')")
    a.run("CREATE TABLE third (i int)")
    a.run("COMMIT")
    assert b.rows("SELECT * FROM gone") == [("x",)]
    assert b.rows("SELECT * FROM third") == []


def test_who_gives_a_name_waits_for_another_who_does(three: Clients) -> None:
    a, b, c = three
    begin(a, b)
    a.run("CREATE TABLE made (i int)")
    b.run("INSERT INTO t VALUES (4, 40)")
    second = waits(b, "CREATE TABLE made (j int)")
    third = waits(c, "CREATE MATERIALIZED VIEW made AS SELECT count(*) FROM t")
    assert a.rows(
        "SELECT locktype, granted FROM pg_locks WHERE locktype = 'object' ORDER BY granted"
    ) == [("object", "f"), ("object", "f"), ("object", "t")]  # fmt: skip
    a.run("COMMIT")
    assert error_of(second).sqlstate == error_of(third).sqlstate == "42P07"
    b.run("ROLLBACK")
    c.run("SET lock_timeout = '50ms'")
    begin(a)
    a.run("ALTER TABLE made RENAME TO named")
    for taken in ("CREATE TABLE IF NOT EXISTS named (i int)", "ALTER TABLE other RENAME TO named"):
        with pytest.raises(SqlError) as error:
            c.run(taken)
        assert error.value.sqlstate == "55P03"
    a.run("ROLLBACK")
    c.run("RESET lock_timeout")


def test_a_circle_of_those_who_wait_is_found(three: Clients) -> None:
    a, b, _ = three
    begin(a, b)
    a.run("CREATE TABLE made (i int)")
    b.run("UPDATE t SET x = 0 WHERE id = 1")
    second = waits(b, "CREATE TABLE made (i int)")
    with pytest.raises(SqlError) as error:
        a.run("UPDATE t SET x = 1 WHERE id = 1")
    assert error.value.sqlstate == "40P01"
    a.run("ROLLBACK")
    second.result(LONG)
    b.run("COMMIT")


def test_a_view_of_its_own_counts_as_what_it_is_made_from(three: Clients) -> None:
    """SERIALIZABLE: nobody has told of changes in a view that only this transaction has."""
    a, b, _ = three
    begin(a)
    a.run("CREATE MATERIALIZED VIEW own AS SELECT sum(x) AS s FROM t")
    (found,) = a.rows("SELECT s FROM own")
    b.run("INSERT INTO t VALUES (4, 40)")
    with pytest.raises(SqlError) as error:
        a.run(f"INSERT INTO other VALUES (9, {found[0]})")
    assert error.value.sqlstate == "40001"
    a.run("ROLLBACK")


@pytest.mark.parametrize(
    ("definition", "blocked"),
    [
        ("ALTER TABLE other ADD FOREIGN KEY (id) REFERENCES t", "DELETE FROM t WHERE id = 1"),
        ("CREATE TABLE made (id int REFERENCES t)", "DELETE FROM t WHERE id = 1"),
        ("CREATE UNIQUE INDEX ON t (x)", "INSERT INTO t VALUES (4, 10)"),
        ("ALTER TABLE t ADD CHECK (x < 100)", "INSERT INTO t VALUES (4, 1000)"),
        ("ALTER DOMAIN d ADD CHECK (VALUE < 100)", "INSERT INTO td VALUES (1000)"),
        ("ALTER DOMAIN d SET NOT NULL", "INSERT INTO td VALUES (NULL)"),
        ("CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)", "INSERT INTO p VALUES (15)"),
        ("ALTER TABLE p ATTACH PARTITION pa FOR VALUES FROM (10) TO (20)", "INSERT INTO p VALUES (15)"),
        ("ALTER TABLE p ATTACH PARTITION pa FOR VALUES FROM (10) TO (20)", "INSERT INTO pa VALUES (100)"),
        ("ALTER TABLE p DETACH PARTITION p1", "INSERT INTO p VALUES (5)"),
        ("CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuse()", "INSERT INTO t VALUES (4, 1)"),
        ("DROP TABLE t CASCADE", "INSERT INTO t VALUES (4, 1)"),
    ],
)
def test_rows_that_a_definition_is_about_stay(three: Clients, definition: str, blocked: str) -> None:
    """Who would break it waits, and then fails."""
    a, b, _ = three
    a.run("CREATE DOMAIN d AS int")
    a.run("CREATE TABLE td (v d)")
    a.run("CREATE TABLE p (i int) PARTITION BY RANGE (i)")
    a.run("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)")
    a.run("CREATE TABLE pd PARTITION OF p DEFAULT")
    a.run("CREATE TABLE pa (i int)")
    a.run("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'")
    begin(a)
    a.run(definition)
    if "REFERENCES t)" in definition:
        a.run("INSERT INTO made VALUES (1)")
    second = waits(b, blocked)
    a.run("COMMIT")
    if "PARTITION" in definition and blocked != "INSERT INTO pa VALUES (100)":
        if "DETACH" in definition:
            second.result(LONG)
            assert b.rows("SELECT relname FROM p JOIN pg_class c ON c.oid = p.tableoid") == [("pd",)]
        else:
            second.result(LONG)
            assert b.rows("SELECT relname FROM p JOIN pg_class c ON c.oid = p.tableoid") == [
                ("p2" if "p2" in definition else "pa",)
            ]
    else:
        assert error_of(second).sqlstate[:2] in ("23", "42", "P0")


def test_a_view_that_is_made_beside_waits_at_its_end(three: Clients) -> None:
    a, b, c = three
    begin(a)
    a.run("CREATE TABLE made (i int)")
    made = waits(b, "CREATE MATERIALIZED VIEW made AS SELECT max(x) AS m FROM t")
    c.run("INSERT INTO t VALUES (4, 400)")
    a.run("ROLLBACK")
    made.result(LONG)
    c.run("INSERT INTO t VALUES (5, 500)")
    assert c.rows("SELECT * FROM made") == [("500",)]
    assert c.rows("VERIFY MATERIALIZED VIEW made") == []


@pytest.fixture
def made_again(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many relations were made again, each time."""
    counted: list[int] = []
    before = uncommitted.missing

    def counting(engine: Engine, created: list[Relation], catalog: Catalog) -> list[Relation]:
        found = before(engine, created, catalog)
        counted.append(0 if engine.rests else len(found))
        return found

    monkeypatch.setattr(uncommitted, "missing", counting)
    return counted


def test_nothing_is_made_again_while_nobody_else_goes_on(three: Clients, made_again: list[int]) -> None:
    a, b, _ = three
    begin(a)
    a.run("CREATE TABLE made (i int)")
    a.run("CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM made")
    for i in range(5):
        a.run(f"INSERT INTO made VALUES ({i})")
        assert a.rows("SELECT * FROM counted") == [(str(i + 1),)]
        assert b.rows("SELECT count(*) FROM t") == [("3",)]
    assert sum(made_again) == 0
    b.run("INSERT INTO t VALUES (4, 40)")
    a.run("INSERT INTO made VALUES (5)")
    assert sum(made_again) == 2
    a.run("ROLLBACK")


def test_a_client_that_goes_amid_it_leaves_nothing(three: Clients) -> None:
    a, b, _ = three
    other = a.server.client()
    other.run("SET search_path TO locks")
    other.run("BEGIN")
    other.run("CREATE TABLE made (i int)")
    other.run("CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM made, t")
    b.run("INSERT INTO t VALUES (4, 40)")
    other.close()
    b.run("CREATE TABLE made (i int, j int)")
    assert b.rows("SELECT * FROM made") == []
    assert b.rows("SELECT * FROM sums") == [("100", "4")]
