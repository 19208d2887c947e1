"""SELECT … FOR UPDATE, NO KEY UPDATE, SHARE and KEY SHARE."""

from __future__ import annotations

import pytest

from tests.support.waiting import Clients, begin, waits

LEVELS = ("KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE")
CONFLICTS = {("KEY SHARE", "UPDATE"), ("SHARE", "NO KEY UPDATE"), ("SHARE", "UPDATE"),
             ("NO KEY UPDATE", "NO KEY UPDATE"), ("NO KEY UPDATE", "UPDATE"), ("UPDATE", "UPDATE")}  # fmt: skip


@pytest.mark.parametrize("held", LEVELS)
def test_strengths(three: Clients, held: str) -> None:
    a, b, _ = three
    begin(a)
    assert a.rows(f"SELECT x FROM t WHERE id = 1 FOR {held}") == [("10",)]
    for wanted in LEVELS:
        begin(b)
        if (held, wanted) in CONFLICTS or (wanted, held) in CONFLICTS:
            error = b.error(f"SELECT * FROM t WHERE id = 1 FOR {wanted} NOWAIT")
            assert (error.sqlstate, error.message) == ("55P03", 'could not obtain lock on row in relation "t"')
        else:
            assert b.rows(f"SELECT * FROM t WHERE id = 1 FOR {wanted} NOWAIT") == [("1", "10")]
        b.run("ROLLBACK")
    a.run("COMMIT")


def test_changes_wait_for_locked_rows(three: Clients) -> None:
    a, b, c = three
    begin(a, b, level="READ COMMITTED")
    a.run("SELECT * FROM t WHERE x < 25 ORDER BY x DESC LIMIT 1 FOR UPDATE")
    b.run("UPDATE t SET x = 0 WHERE id = 1")
    changed = waits(b, "UPDATE t SET x = 0 WHERE id = 2")
    autocommitted = waits(c, "DELETE FROM t WHERE id = 2")
    a.run("UPDATE t SET x = 7 WHERE id = 2")
    a.run("COMMIT")
    changed.result(20)
    b.run("COMMIT")
    autocommitted.result(20)
    assert c.sorted("SELECT * FROM t") == [("1", "0"), ("3", "30")]


def test_a_queue_of_jobs(three: Clients) -> None:
    a, b, c = three
    take = "SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
    begin(a, b, c, level="READ COMMITTED")
    assert [x.rows(take) for x in (a, b, c, a)] == [[("1",)], [("2",)], [("3",)], [("1",)]]
    a.run("DELETE FROM t WHERE id = 1; COMMIT")
    b.run("ROLLBACK")
    assert c.rows(take) == [("2",)]
    assert c.rows("SELECT count(*) FROM t") == [("2",)]
    c.run("ROLLBACK")


def test_one_waits_for_the_newest_row(three: Clients) -> None:
    a, b, _ = three
    begin(a, b, level="READ COMMITTED")
    a.run("UPDATE t SET x = 15 WHERE id = 1")
    found = waits(b, "SELECT x FROM t WHERE id = 1 FOR SHARE")
    a.run("COMMIT")
    assert found.result(20)[-1].rows.rows.shape[0] == 1
    assert b.rows("SELECT x FROM t WHERE id = 1 FOR SHARE") == [("15",)]
    b.run("COMMIT")


def test_what_is_locked(three: Clients) -> None:
    a, b, c = three
    begin(a, level="READ COMMITTED")
    a.run("SELECT t.x FROM t JOIN other o USING (id) WHERE id = 1 FOR UPDATE OF o")
    assert b.rows("SELECT count(*) FROM (SELECT 1) s, t") == [("3",)]
    b.run("UPDATE t SET x = 11 WHERE id = 1")
    assert b.state("BEGIN; SELECT 1 FROM other WHERE id = 1 FOR UPDATE NOWAIT") == "55P03"
    b.run("ROLLBACK")
    a.run("SELECT * FROM plain WHERE b IS NULL FOR UPDATE")
    b.run("DELETE FROM plain WHERE a = 1")
    deleted = waits(b, "DELETE FROM plain")
    a.run("DECLARE k CURSOR FOR SELECT id FROM t WHERE id > 2 FOR UPDATE")
    held = waits(c, "UPDATE t SET x = 1 WHERE id = 3")
    assert a.rows("FETCH ALL FROM k") == [("3",)]
    a.run("COMMIT")
    deleted.result(20)
    held.result(20)
    a.run("CREATE VIEW seen AS SELECT id, x FROM t WHERE x > 0")
    begin(a, level="READ COMMITTED")
    a.run("SELECT * FROM seen WHERE id = 1 FOR UPDATE")
    changed = waits(b, "UPDATE t SET x = 1 WHERE id = 1")
    a.run("COMMIT")
    changed.result(20)
    a.run("CREATE TABLE parts (a int) PARTITION BY RANGE (a)")
    a.run("CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10)")
    a.run("INSERT INTO parts VALUES (1), (2)")
    begin(a, level="READ COMMITTED")
    assert a.sorted("SELECT * FROM parts FOR UPDATE") == [("1",), ("2",)]
    changed = waits(b, "UPDATE parts SET a = 3 WHERE a = 1")
    a.run("COMMIT")
    changed.result(20)


REFUSED = {
    "SELECT DISTINCT x FROM t FOR UPDATE": ("0A000", "FOR UPDATE is not allowed with DISTINCT clause"),
    "SELECT x FROM t GROUP BY x FOR SHARE": ("0A000", "FOR SHARE is not allowed with GROUP BY clause"),
    "SELECT 1 FROM t HAVING true FOR UPDATE": ("0A000", "FOR UPDATE is not allowed with HAVING clause"),
    "SELECT count(*) FROM t FOR KEY SHARE": ("0A000", "FOR KEY SHARE is not allowed with aggregate functions"),
    "SELECT row_number() OVER () FROM t FOR UPDATE": ("0A000", "FOR UPDATE is not allowed with window functions"),
    "SELECT generate_series(1, 2) FROM t FOR UPDATE": (
        "0A000", "FOR UPDATE is not allowed with set-returning functions in the target list"),
    "SELECT 1 FROM t LEFT JOIN other USING (id) FOR UPDATE": (
        "0A000", "FOR UPDATE cannot be applied to the nullable side of an outer join"),
    "SELECT * FROM t FOR UPDATE OF x": ("42P01", 'relation "x" in FOR UPDATE clause not found in FROM clause'),
    "SELECT * FROM sums FOR UPDATE": ("42809", 'cannot lock rows in materialized view "sums"'),
    "SELECT 1 UNION SELECT 2 FOR NO KEY UPDATE": (
        "0A000", "FOR NO KEY UPDATE is not allowed with UNION/INTERSECT/EXCEPT"),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_locked(three: Clients, text: str) -> None:
    error = three[0].error(text)
    assert (error.sqlstate, error.message) == REFUSED[text]


def test_lock_table(three: Clients) -> None:
    a, b, c = three
    assert a.state("LOCK TABLE t") == "25P01"
    begin(a, b, level="READ COMMITTED")
    a.run("LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE")
    assert b.rows("SELECT count(*) FROM t") == [("3",)]
    assert b.state("LOCK t IN EXCLUSIVE MODE NOWAIT") == "55P03"
    b.run("ROLLBACK; BEGIN ISOLATION LEVEL READ COMMITTED")
    changed = waits(b, "UPDATE t SET x = 0 WHERE id = 3")
    autocommitted = waits(c, "INSERT INTO t VALUES (9, 9)")
    a.run("UPDATE t SET x = 5 WHERE id = 3; COMMIT")
    changed.result(20)
    autocommitted.result(20)
    b.run("COMMIT")
    begin(a, b, level="READ COMMITTED")
    a.run("LOCK t IN ROW EXCLUSIVE MODE")
    b.run("LOCK t IN ROW EXCLUSIVE MODE; UPDATE t SET x = 1 WHERE id = 1; LOCK t IN ACCESS SHARE MODE")
    c.run("SET lock_timeout = '30ms'")
    assert c.state("ALTER TABLE t ADD COLUMN z int") == "55P03"
    a.run("COMMIT")
    b.run("COMMIT")
    assert a.sorted("SELECT x FROM t") == [("0",), ("1",), ("20",), ("9",)]
