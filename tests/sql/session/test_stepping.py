"""Routines that are a statement of their own: others go on between their statements."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

import pytest

from sql.coordination import stepping
from tests.support.sessions import Client, Server
from tests.support.waiting import LONG, Clients, begin, error_of, waits

LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]
UNTIL_SEEN = (
    "FOR i IN 1..3 LOOP UPDATE t SET x = x + 1 WHERE id = 3; END LOOP;"
    " LOOP SELECT count(*) INTO n FROM plain WHERE a = 99; EXIT WHEN n >= 3; END LOOP;"
    " UPDATE t SET x = x + n WHERE id = 1;"
)
"""Ends only if others commit meanwhile."""


@pytest.fixture(autouse=True)
def at_every_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepping, "PART_SECONDS", 0.0)
    monkeypatch.setattr(stepping, "_TIMES", 0)


def read_committed(*clients: Client) -> None:
    for client in clients:
        client.run("SET default_transaction_isolation TO 'read committed'")


def until(done: Any) -> None:
    end = time.monotonic() + LONG
    while not done():
        assert time.monotonic() < end
        time.sleep(0.002)


def until_begun(server: Server) -> None:
    until(lambda: server.coordinator.jobs._thread.busy is not None)


FORMS = [
    ("DO $$ DECLARE n int; BEGIN %s END $$", "{}"),
    ("CREATE PROCEDURE seen() LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN %s END $$", "CALL seen()"),
    (
        "CREATE FUNCTION seen() RETURNS int LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN %s RETURN n; END $$",
        "SELECT seen()",
    ),
    (
        "CREATE FUNCTION seen() RETURNS int LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN %s RETURN n; END $$",
        "SELECT * FROM seen() s WHERE s > 0",
    ),
    (
        "CREATE FUNCTION seen() RETURNS int LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN %s RETURN n; END $$",
        "DO $$ DECLARE m int; BEGIN m := seen(); END $$",
    ),
    (
        "CREATE PROCEDURE seen() LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN %s END $$",
        "DO $$ BEGIN CALL seen(); EXCEPTION WHEN division_by_zero THEN NULL; END $$",
    ),
]


@pytest.mark.parametrize(("text", "call"), FORMS)
@pytest.mark.parametrize("block", [False, True])
def test_others_commit_between_its_statements(three: Clients, text: str, call: str, block: bool) -> None:
    a, b, c = three
    read_committed(a, b, c)
    body = text % UNTIL_SEEN
    if call == "{}":
        call = body
    else:
        a.run(body)
    if block:
        a.run("BEGIN")
    running = a.server.start(a.work(call))
    until_begun(a.server)
    for _ in range(3):
        assert not running.done()
        b.run("INSERT INTO plain VALUES (99, 'seen')")
    running.result(LONG)
    if block:
        assert c.rows("SELECT s FROM sums") == [("60",)]
        a.run("COMMIT")
    assert c.sorted("SELECT * FROM t") == [("1", "13"), ("2", "20"), ("3", "33")]
    assert c.rows("SELECT s FROM sums") == [("66",)]
    assert c.rows("VERIFY MATERIALIZED VIEW sums") == []


def test_what_it_changes_is_seen_at_its_end_only(three: Clients) -> None:
    a, b, _ = three
    read_committed(a, b)
    running = a.server.start(a.work(f"DO $$ DECLARE n int; BEGIN {UNTIL_SEEN} END $$"))
    until_begun(a.server)
    for _ in range(3):
        assert b.rows("SELECT sum(x) FROM t") == [("60",)]
        b.run("INSERT INTO plain VALUES (99, 'seen')")
    running.result(LONG)
    assert b.rows("SELECT sum(x) FROM t") == [("66",)]


def test_it_sleeps_between_its_statements(three: Clients) -> None:
    """pg_sleep makes a routine wait where it is, and nobody else."""
    a, b, _ = three
    running = a.server.start(
        a.work(
            "DO $$ BEGIN UPDATE t SET x = 0 WHERE id = 1; PERFORM pg_advisory_lock(8); PERFORM pg_sleep(600);"
            " RAISE 'not reached'; END $$"
        )
    )
    until(a.server.coordinator.advisory.all)
    b.run("UPDATE t SET x = 5 WHERE id = 2")
    waiting = waits(b, "UPDATE t SET x = 7 WHERE id = 1")
    a.server.run(a.session.cancel())
    assert error_of(running).sqlstate == "57014"
    waiting.result(LONG)
    assert b.sorted("SELECT * FROM t") == [("1", "7"), ("2", "5"), ("3", "30")]
    started = time.monotonic()
    a.run("DO $$ DECLARE first timestamptz := clock_timestamp(); BEGIN PERFORM pg_sleep(0.02);"
          " IF clock_timestamp() < first + interval '20 ms' THEN RAISE 'early'; END IF; END $$")  # fmt: skip
    assert time.monotonic() >= started + 0.02


@pytest.mark.parametrize("level", LEVELS)
def test_only_the_statement_that_meets_a_lock_runs_again(three: Clients, level: str) -> None:
    a, b, _ = three
    a.run("CREATE SEQUENCE tries")
    begin(a)
    a.run("UPDATE t SET x = x + 100 WHERE id = 2")
    b.run(f"SET default_transaction_isolation TO '{level}'")
    running = waits(b, "DO $$ DECLARE n int; BEGIN n := nextval('tries'); RAISE NOTICE 'first';"
                    " UPDATE t SET x = x + n WHERE id = 1; RAISE NOTICE 'second';"
                    " UPDATE t SET x = x + 1000 WHERE id = 2; RAISE NOTICE 'third'; END $$")  # fmt: skip
    a.run("UPDATE other SET x = x + 1")
    a.run("COMMIT")
    running.result(LONG)
    assert [notice.message for notice in b.notices()] == ["first", "second", "third"]
    assert a.rows("SELECT last_value FROM tries") == [("1",)]
    assert a.sorted("SELECT * FROM t") == [("1", "11"), ("2", "1120"), ("3", "30")]
    assert a.rows("VERIFY MATERIALIZED VIEW sums") == []


def test_it_catches_the_errors_of_locks(three: Clients) -> None:
    a, b, _ = three
    begin(a)
    a.run("UPDATE t SET x = x + 100 WHERE id = 2")
    b.run("SET lock_timeout = '20ms'")
    b.run("DO $$ BEGIN UPDATE t SET x = 1 WHERE id = 1; BEGIN UPDATE t SET x = 3 WHERE id = 3;"
          " UPDATE t SET x = 2 WHERE id = 2;"
          " EXCEPTION WHEN lock_not_available THEN RAISE NOTICE 'caught'; END; END $$")  # fmt: skip
    assert [notice.message for notice in b.notices()] == ["caught"]
    b.run("RESET lock_timeout")
    assert b.sorted("SELECT * FROM t") == [("1", "1"), ("2", "20"), ("3", "30")]
    running = waits(b, "DO $$ BEGIN UPDATE t SET x = 5 WHERE id = 1; UPDATE t SET x = 6 WHERE id = 2; END $$")
    assert a.state("UPDATE t SET x = 7 WHERE id = 1") == "40P01"
    a.run("ROLLBACK")
    running.result(LONG)
    begin(a)
    a.run("UPDATE t SET x = 100 WHERE id = 2")
    body = ("BEGIN UPDATE t SET x = x + 1 WHERE id = 1; BEGIN PERFORM pg_advisory_xact_lock(1);"
            " UPDATE t SET x = x + 1 WHERE id = 2; EXCEPTION WHEN deadlock_detected THEN"
            " UPDATE t SET x = x + 10 WHERE id = 3; END; END")  # fmt: skip
    b.run("BEGIN ISOLATION LEVEL READ COMMITTED")
    b.run("UPDATE t SET x = 50 WHERE id = 1")
    other = waits(a, "UPDATE t SET x = 7 WHERE id = 1")
    b.run(f"DO $$ {body} $$")
    b.run("COMMIT")
    other.result(LONG)
    a.run("COMMIT")
    assert b.sorted("SELECT * FROM t") == [("1", "7"), ("2", "100"), ("3", "40")]


@pytest.mark.parametrize("level", LEVELS)
def test_a_block_loses_against_a_commit_between(three: Clients, level: str) -> None:
    """What it has read has changed when it goes on: 40001, which it cannot catch, but in READ COMMITTED."""
    a, b, _ = three
    begin(a, level=level)
    text = (
        "DO $$ DECLARE s int; n int; BEGIN SELECT sum(x) INTO s FROM t;"
        " BEGIN PERFORM pg_advisory_xact_lock(7); SELECT sum(x) - s INTO n FROM t; UPDATE other SET x = n WHERE id = 1;"
        " EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'caught'; END; END $$"
    )
    b.run("SELECT pg_advisory_lock(7)")
    running = waits(a, text)
    b.run("UPDATE t SET x = x + 1 WHERE id = 1")
    b.run("SELECT pg_advisory_unlock(7)")
    if level == "READ COMMITTED":
        running.result(LONG)
        a.run("COMMIT")
        assert b.rows("SELECT x FROM other WHERE id = 1") == [("1",)]
    else:
        assert error_of(running).sqlstate == "40001"
        a.run("ROLLBACK")
        assert b.rows("SELECT x FROM other WHERE id = 1") == [("10",)]
    assert a.notices() == []


def test_alone_it_runs_again_and_does_not_lose(three: Clients) -> None:
    a, b, _ = three
    a.run("CREATE SEQUENCE tries")
    text = (
        "DO $$ DECLARE s int; BEGIN PERFORM nextval('tries'); SELECT sum(x) INTO s FROM t; RAISE NOTICE 'read';"
        " PERFORM pg_advisory_lock(7); UPDATE other SET x = s WHERE id = 1; END $$"
    )
    b.run("SELECT pg_advisory_lock(7)")
    running = waits(a, text)
    b.run("UPDATE t SET x = x + 1 WHERE id = 1")
    b.run("SELECT pg_advisory_unlock(7)")
    running.result(LONG)
    assert [notice.message for notice in a.notices()] == ["read"]
    assert b.rows("SELECT x FROM other WHERE id = 1") == [("61",)]
    assert b.rows("SELECT last_value FROM tries") == [("2",)]
    assert a.rows("SELECT pg_advisory_unlock(7), pg_advisory_unlock(7)") == [("t", "f")]


def test_a_procedure_that_has_committed_waits(three: Clients) -> None:
    a, b, c = three
    add = "UPDATE t SET x = x + 1 WHERE id"
    a.run("CREATE PROCEDURE two() LANGUAGE plpgsql AS"
          f" $$ BEGIN {add} = 1; COMMIT; {add} = 2; COMMIT; {add} = 3; ROLLBACK; END $$")  # fmt: skip
    begin(b)
    b.run("UPDATE t SET x = 200 WHERE id = 2")
    running = waits(a, "CALL two()")
    assert c.rows("SELECT x FROM t WHERE id = 1") == [("11",)]
    b.run("COMMIT")
    running.result(LONG)
    assert c.sorted("SELECT * FROM t") == [("1", "11"), ("2", "201"), ("3", "30")]
    assert c.rows("VERIFY MATERIALIZED VIEW sums") == []


def test_others_go_on_between_its_commits(three: Clients) -> None:
    a, b, _ = three
    text = (
        "DO $$ DECLARE n int; BEGIN LOOP SELECT count(*) INTO n FROM plain WHERE a = 99; EXIT WHEN n >= 3;"
        " COMMIT; END LOOP; END $$"
    )
    running = a.server.start(a.work(text))
    for _ in range(3):
        assert not running.done()
        b.run("INSERT INTO plain VALUES (99, 'seen')")
    running.result(LONG)


def test_a_stable_function_sees_one_state(three: Clients) -> None:
    a, b, _ = three
    read_committed(a, b)
    a.run("CREATE FUNCTION twice() RETURNS boolean STABLE LANGUAGE plpgsql AS $$ DECLARE n int; m int; BEGIN"
          " SELECT count(*) INTO n FROM plain; FOR i IN 1..50 LOOP SELECT count(*) INTO m FROM plain;"
          " IF n <> m THEN RETURN false; END IF; END LOOP; RETURN true; END $$")  # fmt: skip
    a.run("CREATE FUNCTION differs() RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
          " FOR i IN 1..20 LOOP IF NOT twice() THEN RETURN i; END IF; END LOOP; RETURN 0; END $$")  # fmt: skip
    running: Future[Any] = a.server.start(a.work("DO $$ BEGIN IF differs() > 0 THEN RAISE 'differs'; END IF; END $$"))
    while not running.done():
        b.run("INSERT INTO plain VALUES (5, 'more')")
    running.result(LONG)


def test_what_it_has_undone_stays_undone(three: Clients) -> None:
    """Subtransactions, cursors and loops over rows keep their places while others go on."""
    a, b, c = three
    read_committed(a, b)
    text = (
        "DO $$ DECLARE r record; n int := 0; c CURSOR FOR SELECT id FROM t ORDER BY id; BEGIN"
        " FOR r IN SELECT id, x FROM t ORDER BY id LOOP BEGIN"
        " UPDATE t SET x = x + 1 WHERE id = r.id; INSERT INTO other VALUES (10 + r.id, r.x);"
        " LOOP SELECT count(*) INTO n FROM plain WHERE a = 50 + r.id; EXIT WHEN n > 0; END LOOP;"
        " IF r.id = 2 THEN RAISE 'no'; END IF; EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP;"
        " FOR q IN c LOOP UPDATE t SET x = x + 1000 WHERE id = q.id; PERFORM pg_sleep(0.001); END LOOP; END $$"
    )
    running = a.server.start(a.work(text))
    for i in (51, 52, 53):
        b.run(f"INSERT INTO plain VALUES ({i}, 'on')")
        b.run("UPDATE other SET x = x + 1 WHERE id = 1")
    running.result(LONG)
    assert c.sorted("SELECT * FROM t") == [("1", "1011"), ("2", "1020"), ("3", "1031")]
    assert c.sorted("SELECT * FROM other") == [("1", "13"), ("11", "10"), ("13", "30"), ("2", "20")]
    assert c.rows("VERIFY MATERIALIZED VIEW sums") == []


def test_what_it_creates_stays_while_others_go_on(three: Clients) -> None:
    a, b, c = three
    read_committed(a, b)
    text = (
        "DO $$ DECLARE n int; m int; BEGIN CREATE TABLE made (i int PRIMARY KEY);"
        " FOR i IN 1..20 LOOP INSERT INTO made VALUES (i); END LOOP;"
        " LOOP SELECT count(*) INTO n FROM plain WHERE a = 99; SELECT count(*) INTO m FROM made;"
        " IF m <> 20 THEN RAISE 'lost'; END IF; EXIT WHEN n >= 3; END LOOP; DELETE FROM made WHERE i > 3; END $$"
    )
    running = a.server.start(a.work(text))
    for _ in range(3):
        b.run("INSERT INTO plain VALUES (99, 'seen')")
    running.result(LONG)
    assert c.rows("SELECT count(*) FROM made") == [("3",)]


ENDLESS = [
    "DO $$ BEGIN LOOP END LOOP; END $$",
    "DO $$ BEGIN UPDATE t SET x = 0; LOOP PERFORM count(*) FROM t; END LOOP; END $$",
    "DO $$ BEGIN LOOP BEGIN PERFORM 1; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$",
    "DO $$ BEGIN LOOP BEGIN PERFORM 1 / 0; EXCEPTION WHEN OTHERS OR query_canceled THEN NULL; END; END LOOP; END $$",
    "DO $$ BEGIN LOOP COMMIT; END LOOP; END $$",
    "DO $$ BEGIN LOOP PERFORM pg_sleep(0.001); END LOOP; END $$",
]


@pytest.mark.parametrize("text", ENDLESS)
@pytest.mark.parametrize("ends", ["cancel", "statement_timeout", "close"])
def test_an_endless_one_ends(server: Server, three: Clients, text: str, ends: str) -> None:
    a, b, _ = three
    mine = server.client()
    mine.run("SET search_path TO locks")
    if ends == "statement_timeout":
        mine.run("SET statement_timeout = '500ms'")
    running = server.start(mine.work(text))
    until_begun(server)
    for i in range(4, 9):
        b.run(f"INSERT INTO plain VALUES ({i}, 'x')")
    if ends == "cancel":
        server.run(mine.session.cancel())
    if ends == "close":
        running.cancel()
        until(lambda: not mine.session.state.interrupts.running)
    if ends != "close":
        assert error_of(running).sqlstate == "57014"
        mine.run("RESET statement_timeout")
        assert mine.rows("SELECT sum(x) FROM t") == [("60",)]
    mine.close()
    a.run("UPDATE t SET x = x + 1")
    assert a.rows("SELECT s FROM sums") == [("63",)]
    assert b.rows("SELECT count(*) FROM plain WHERE b = 'x'") == [("5",)]
