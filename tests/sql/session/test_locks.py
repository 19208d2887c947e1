"""Several open transactions: what they lock, who waits for whom, and what each of them sees."""

from __future__ import annotations

import cProfile
import pstats

import pytest

from tests.support.sessions import Client
from tests.support.waiting import LONG, Clients, begin, error_of, waits


@pytest.mark.parametrize("level", ["READ COMMITTED", "SERIALIZABLE"])
def test_writers_of_different_rows_do_not_meet(three: Clients, level: str) -> None:
    a, b, c = three
    begin(a, b, level=level)
    a.run("UPDATE t SET x = x + 1 WHERE id = 1")
    b.run("UPDATE t SET x = x + 5 WHERE id = 2")
    b.run("INSERT INTO t VALUES (4, 40)")
    c.run("UPDATE t SET x = 0 WHERE id = 3")
    c.run("INSERT INTO plain VALUES (9, 'z')")
    assert a.rows("SELECT x FROM t WHERE id = 1") == [("11",)]
    b.run("COMMIT")
    a.run("COMMIT")
    assert c.sorted("SELECT * FROM t") == [("1", "11"), ("2", "25"), ("3", "0"), ("4", "40")]
    assert c.rows("SELECT * FROM sums") == [("76", "4")]
    assert c.rows("VERIFY MATERIALIZED VIEW sums") == []


def test_each_sees_its_own_changes_in_tables_and_views(three: Clients) -> None:
    a, b, c = three
    begin(a, b, level="READ COMMITTED")
    a.run("INSERT INTO t VALUES (4, 100)")
    b.run("DELETE FROM t WHERE id = 3")
    for _ in range(2):
        assert a.rows("SELECT * FROM sums") == [("160", "4")]
        assert b.rows("SELECT * FROM sums") == [("30", "2")]
        assert c.rows("SELECT * FROM sums") == [("60", "3")]
        assert a.rows("SELECT count(*) FROM t") == [("4",)]
        assert b.rows("SELECT count(*) FROM t") == [("2",)]
    c.run("INSERT INTO t VALUES (5, 1)")
    assert a.rows("SELECT * FROM sums") == [("161", "5")]
    assert b.rows("SELECT * FROM sums") == [("31", "3")]
    assert c.rows("SELECT * FROM sums") == [("61", "4")]
    a.run("ROLLBACK")
    assert b.rows("SELECT * FROM sums") == [("31", "3")]
    b.run("COMMIT")
    assert c.rows("SELECT * FROM sums") == [("31", "3")]
    assert c.rows("VERIFY MATERIALIZED VIEW sums") == []


def test_large_transactions_beside_each_other(three: Clients) -> None:
    a, b, c = three
    begin(a, b, level="READ COMMITTED")
    a.run("INSERT INTO t SELECT i, 1 FROM generate_series(1000, 1999) i")
    b.run("INSERT INTO t SELECT i, 2 FROM generate_series(2000, 2999) i")
    a.run("UPDATE t SET x = 3 WHERE id >= 1500")
    assert b.rows("SELECT s FROM sums") == [("2060",)]
    b.run("DELETE FROM t WHERE id >= 2500")
    c.run("INSERT INTO t VALUES (7, 7)")
    assert a.rows("SELECT s FROM sums") == [("2067",)]
    assert b.rows("SELECT s FROM sums") == [("1067",)]
    b.run("COMMIT")
    assert c.rows("SELECT s FROM sums") == [("1067",)]
    assert a.rows("SELECT s, n FROM sums") == [("3067", "1504")]
    a.run("COMMIT")
    assert c.rows("SELECT s, n FROM sums") == [("3067", "1504")]
    assert c.rows("VERIFY MATERIALIZED VIEW sums") == []


def test_a_second_writer_of_a_row_waits(three: Clients) -> None:
    a, b, c = three
    begin(a, b, level="READ COMMITTED")
    a.run("UPDATE t SET x = x + 1 WHERE id = 1")
    second = waits(b, "UPDATE t SET x = x + 10 WHERE id = 1")
    third = waits(c, "UPDATE t SET x = x + 100")
    a.run("COMMIT")
    second.result(LONG)
    assert not third.done()
    b.run("COMMIT")
    third.result(LONG)
    assert c.sorted("SELECT * FROM t") == [("1", "121"), ("2", "120"), ("3", "130")]


def test_a_row_that_no_longer_matches_is_left_alone(three: Clients) -> None:
    a, b, _ = three
    begin(a, b, level="READ COMMITTED")
    a.run("UPDATE t SET x = 11 WHERE id = 1")
    second = waits(b, "UPDATE t SET x = 99 WHERE x = 10")
    a.run("COMMIT")
    second.result(LONG)
    b.run("COMMIT")
    assert b.sorted("SELECT x FROM t") == [("11",), ("20",), ("30",)]


def test_one_key_is_inserted_once(three: Clients) -> None:
    a, b, c = three
    begin(a)
    a.run("INSERT INTO t VALUES (4, 1)")
    second = waits(b, "INSERT INTO t VALUES (4, 2)")
    third = waits(c, "INSERT INTO t VALUES (4, 3) ON CONFLICT (id) DO UPDATE SET x = t.x + excluded.x")
    a.run("COMMIT")
    assert error_of(second).sqlstate == "23505"
    third.result(LONG)
    assert c.rows("SELECT x FROM t WHERE id = 4") == [("4",)]
    begin(a)
    a.run("DELETE FROM t WHERE id = 4")
    second = waits(b, "INSERT INTO t VALUES (4, 5)")
    a.run("COMMIT")
    second.result(LONG)
    assert c.rows("SELECT x FROM t WHERE id = 4") == [("5",)]


def test_rows_without_a_key_are_locked_too(three: Clients) -> None:
    a, b, _ = three
    begin(a, b, level="READ COMMITTED")
    a.run("DELETE FROM plain WHERE a = 1")
    b.run("INSERT INTO plain VALUES (5, 'x')")
    second = waits(b, "DELETE FROM plain WHERE a = 1")
    a.run("ROLLBACK")
    second.result(LONG)
    b.run("COMMIT")
    assert b.sorted("SELECT * FROM plain") == [("2", None), ("5", "x")]


def test_a_deadlock_is_found(three: Clients) -> None:
    a, b, c = three
    begin(a, b, c, level="READ COMMITTED")
    a.run("UPDATE t SET x = 1 WHERE id = 1")
    b.run("UPDATE t SET x = 2 WHERE id = 2")
    c.run("UPDATE t SET x = 3 WHERE id = 3")
    first = waits(a, "UPDATE t SET x = 1 WHERE id = 2")
    second = waits(b, "UPDATE t SET x = 2 WHERE id = 3")
    error = c.error("UPDATE t SET x = 3 WHERE id = 1")
    assert error.sqlstate == "40P01"
    assert error.message == "deadlock detected"
    assert (error.detail or "").count("blocked by process") == 3
    second.result(LONG)
    b.run("COMMIT")
    first.result(LONG)
    a.run("COMMIT")
    assert c.state("SELECT 1") == "25P02"
    c.run("ROLLBACK")
    assert c.sorted("SELECT * FROM t") == [("1", "1"), ("2", "1"), ("3", "2")]


def test_a_wait_ends_with_lock_timeout(three: Clients) -> None:
    a, b, c = three
    begin(a, b)
    a.run("UPDATE t SET x = 1 WHERE id = 1")
    b.run("SET lock_timeout = '50ms'; SAVEPOINT s")
    error = b.error("UPDATE t SET x = 2 WHERE id = 1")
    assert (error.sqlstate, error.message) == ("55P03", "canceling statement due to lock timeout")
    b.run("ROLLBACK TO s")
    b.run("UPDATE t SET x = 2 WHERE id = 2")
    b.run("COMMIT")
    queued = waits(c, "UPDATE t SET x = 5 WHERE id = 1")
    assert b.state("DELETE FROM t WHERE id = 1") == "55P03"
    a.run("ROLLBACK")
    queued.result(LONG)
    assert b.run("DELETE FROM t WHERE id = 1") == "DELETE 1"


def test_a_savepoint_gives_its_locks_back(three: Clients) -> None:
    a, b, _ = three
    begin(a, level="READ COMMITTED")
    a.run("UPDATE t SET x = 1 WHERE id = 1; SAVEPOINT s; UPDATE t SET x = 2 WHERE id = 2")
    second = waits(b, "UPDATE t SET x = 9 WHERE id = 2")
    a.run("ROLLBACK TO s")
    second.result(LONG)
    first = waits(b, "UPDATE t SET x = 9 WHERE id = 1")
    a.run("COMMIT")
    first.result(LONG)
    assert a.sorted("SELECT * FROM t") == [("1", "9"), ("2", "9"), ("3", "30")]


def test_referred_rows_stay(three: Clients) -> None:
    a, b, c = three
    a.run("CREATE TABLE child (t int REFERENCES t)")
    begin(a, b, level="READ COMMITTED")
    a.run("INSERT INTO child VALUES (1)")
    b.run("INSERT INTO child VALUES (1)")
    c.run("UPDATE t SET x = 11 WHERE id = 1")  # no key changes
    deleted = waits(c, "DELETE FROM t WHERE id = 1")
    a.run("COMMIT")
    assert not deleted.done()
    b.run("ROLLBACK")
    assert error_of(deleted).sqlstate == "23503"
    begin(a)
    a.run("DELETE FROM t WHERE id = 2")
    child = waits(b, "INSERT INTO child VALUES (2)")
    a.run("COMMIT")
    assert error_of(child).sqlstate == "23503"


def test_definitions_wait_for_those_who_write(three: Clients) -> None:
    a, b, c = three
    begin(a)
    a.run("INSERT INTO plain VALUES (3, 'c')")
    b.run("ALTER TABLE other ADD COLUMN y int DEFAULT 5")
    b.run("CREATE TABLE elsewhere (a int)")
    b.run("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM plain")
    altered = waits(b, "ALTER TABLE plain ADD COLUMN c int")
    assert a.rows("SELECT n FROM counted") == [("4",)]
    assert c.rows("SELECT n FROM counted") == [("3",)]
    assert a.rows("SELECT y FROM other WHERE id = 1") == [("5",)]
    a.run("COMMIT")
    altered.result(LONG)
    assert c.rows("SELECT n FROM counted") == [("4",)]
    assert c.sorted("SELECT * FROM plain")[0] == ("1", "a", None)
    begin(a)
    a.run("INSERT INTO t VALUES (8, 8)")
    truncated = waits(b, "TRUNCATE t")
    a.run("COMMIT")
    truncated.result(LONG)
    assert c.rows("SELECT count(*) FROM t") == [("0",)]


def test_a_function_cannot_catch_a_wait(three: Clients) -> None:
    a, b, _ = three
    a.run("""CREATE FUNCTION try() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
             UPDATE t SET x = x + 1 WHERE id = 1; RETURN 'done'; EXCEPTION WHEN OTHERS THEN RETURN SQLERRM; END $$""")
    begin(a, b, level="READ COMMITTED")
    a.run("UPDATE t SET x = 5 WHERE id = 1")
    called = waits(b, "SELECT try()")
    a.run("COMMIT")
    called.result(LONG)
    b.run("COMMIT")
    assert a.rows("SELECT x FROM t WHERE id = 1") == [("6",)]


def test_a_definition_does_not_wait_for_ever(three: Clients) -> None:
    a, b, c = three
    begin(a, level="READ COMMITTED")
    a.run("INSERT INTO plain VALUES (3, 'c')")
    altered = waits(b, "ALTER TABLE plain ADD COLUMN c int")
    later = waits(c, "INSERT INTO plain VALUES (4, 'd')")
    a.run("INSERT INTO plain VALUES (5, 'e')")
    a.run("COMMIT")
    altered.result(LONG)
    later.result(LONG)
    assert c.rows("SELECT count(*) FROM plain") == [("6",)]
    begin(a, level="READ COMMITTED")
    a.run("INSERT INTO plain VALUES (3, 'c')")
    b.run("SET lock_timeout = '50ms'")
    waiting = c.server.start(c.work("SET lock_timeout = 0; INSERT INTO plain VALUES (4, 'd')"))
    assert b.state("ALTER TABLE plain ADD COLUMN d int") == "55P03"
    waiting.result(LONG)
    a.run("COMMIT")


def test_shared_and_other_locks_are_no_deadlock(three: Clients) -> None:
    a, b, c = three
    begin(a, b, c, level="READ COMMITTED")
    a.run("SELECT 1 FROM t WHERE id = 1 FOR NO KEY UPDATE")
    b.run("SELECT 1 FROM t WHERE id = 1 FOR KEY SHARE")
    c.run("UPDATE t SET x = 1 WHERE id = 2")
    first = waits(c, "UPDATE t SET x = 1 WHERE id = 1")
    second = waits(b, "UPDATE t SET x = 2 WHERE id = 2")
    a.run("COMMIT")
    first.result(LONG)
    c.run("COMMIT")
    second.result(LONG)
    b.run("COMMIT")
    assert a.sorted("SELECT x FROM t WHERE id < 3") == [("1",), ("2",)]


def test_who_blocks_whom(three: Clients) -> None:
    a, b, c = three
    pids = [client.rows("SELECT pg_backend_pid()")[0][0] for client in three]
    begin(a, b, level="READ COMMITTED")
    a.run("UPDATE t SET x = 1 WHERE id = 1")
    found = waits(b, "UPDATE t SET x = 2 WHERE id = 1")
    assert c.rows(f"SELECT pg_blocking_pids({pids[1]}), pg_blocking_pids({pids[0]})") == [(f"{{{pids[0]}}}", "{}")]
    a.run("COMMIT")
    found.result(LONG)
    b.run("COMMIT")


def test_a_subscription_begins_without_what_is_not_committed(three: Clients) -> None:
    a, b, _ = three
    begin(a)
    a.run("INSERT INTO t SELECT i, 1 FROM generate_series(100, 299) i")
    assert a.rows("SELECT n FROM sums") == [("203",)]
    b.run("BEGIN; DECLARE k CURSOR FOR SUBSCRIBE (SELECT count(*) FROM t)")
    assert [row[-1] for row in b.rows("FETCH ALL k")] == ["3"]
    assert b.rows("SELECT n FROM sums") == [("3",)]
    b.run("COMMIT")
    a.run("ROLLBACK")


def test_checks_that_waited_are_made_again(three: Clients) -> None:
    a, b, c = three
    a.run("""CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             UPDATE other SET x = x + NEW.x WHERE id = 1; RETURN NULL; END $$""")
    a.run("CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED"
          " FOR EACH ROW EXECUTE FUNCTION note()")  # fmt: skip
    for end in ("COMMIT", "SET CONSTRAINTS ALL IMMEDIATE; COMMIT"):
        c.run("DELETE FROM t WHERE id > 6; UPDATE other SET x = 10 WHERE id = 1")
        begin(a, b, level="READ COMMITTED")
        b.run("INSERT INTO t VALUES (7, 70), (8, 80)")
        a.run("UPDATE other SET x = 1000 WHERE id = 1")
        ending = waits(b, end)
        a.run("COMMIT")
        ending.result(LONG)
        assert c.rows("SELECT x FROM other WHERE id = 1") == [("1150",)]
    a.run("DROP FUNCTION note CASCADE")


def test_one_may_roll_back_while_anothers_step_is_broken(three: Clients) -> None:
    a, b, c = three
    a.run("CREATE TABLE e (src int, dst int); INSERT INTO e VALUES (1, 2)")
    step = "SELECT r.a, e.dst FROM r JOIN e ON e.src = r.b"
    recursion = f"WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM e UNION ALL {step}) SELECT * FROM r"
    a.run(f"CREATE MATERIALIZED VIEW paths AS {recursion}")
    begin(a, b, level="READ COMMITTED")
    b.run("INSERT INTO plain VALUES (60, 'b')")
    a.run("SAVEPOINT s")
    a.run("INSERT INTO e VALUES (2, 1)")
    a.run("SET LOCAL statement_timeout = '300ms'")
    assert a.state("SELECT count(*) FROM paths") == "57014"
    b.run("ROLLBACK")
    a.run("ROLLBACK TO s; INSERT INTO e VALUES (2, 3); COMMIT")
    assert c.rows("SELECT count(*) FROM plain") == [("3",)]
    assert c.sorted("SELECT * FROM paths") == [("1", "2"), ("1", "3"), ("2", "3")]
    assert c.rows("VERIFY MATERIALIZED VIEW paths") == []


def _calls(client: Client, count: int) -> int:
    """The calls of Python functions that the inserts of one transaction make on the event loop."""
    profile = cProfile.Profile()

    async def run() -> None:
        await client.work("BEGIN")
        profile.enable()
        for i in range(count):
            await client.work(f"INSERT INTO t VALUES ({1000 + i}, 1)")
        for i in range(count // 10):
            await client.work(f"SAVEPOINT s; INSERT INTO t VALUES ({9000 + i}, 1); ROLLBACK TO s")
        profile.disable()
        await client.work("ROLLBACK")

    client.server.run(run())
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def test_a_statement_costs_the_same_late_in_a_transaction(three: Clients) -> None:
    a, *_ = three
    _calls(a, 20)
    few, many = _calls(a, 100), _calls(a, 400)
    assert many < 5.5 * few, (few, many)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("LOCK TABLE t IN foo MODE", 17),
        ("LOCK TABLE t IN SHARE", 22),
        ("LOCK TABLE t IN SHARE ROW MODE", 27),
        ("LOCK TABLE t IN SHARE EXCLUSIVE MODE", 23),
        ("LOCK TABLE t IN ACCESS SHARE MODE MODE", 35),
    ],
)
def test_a_mistake_in_lock_is_pointed_at(client: Client, text: str, at: int) -> None:
    error = client.error(text)
    assert (error.sqlstate, error.position) == ("42601", at)
