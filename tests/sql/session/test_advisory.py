"""Advisory locks between sessions; answers of PostgreSQL 15."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sql.coordination.waits import Waits
from sql.engine.row_locks import BlockedError
from tests.support.sessions import Client, Server
from tests.support.waiting import LONG, error_of, waits


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Client, Client]]:
    server = Server(tmp_path)
    yield server.client(), server.client()
    server.close()


def test_one_session_keeps_the_others_out(pair: tuple[Client, Client]) -> None:
    a, b = pair
    assert a.rows("SELECT pg_advisory_lock(7)") == [("",)]
    assert a.rows("SELECT pg_try_advisory_lock(7), pg_try_advisory_lock(7, 0)") == [("t", "t")]
    assert b.rows("SELECT pg_try_advisory_lock(7), pg_try_advisory_lock(0, 7)") == [("f", "t")]
    b.run("SET lock_timeout = '20ms'")
    assert b.state("SELECT pg_advisory_lock(7)") == "55P03"
    assert b.rows("SELECT pg_advisory_unlock(7)") == [("f",)]
    assert "don't own" in b.notices()[0].message
    assert a.rows("SELECT pg_advisory_unlock(7)") == [("t",)]
    assert b.rows("SELECT pg_try_advisory_lock(7)") == [("f",)]
    assert a.rows("SELECT pg_advisory_unlock(7)") == [("t",)]
    assert b.rows("SELECT pg_try_advisory_lock(7)") == [("t",)]


def test_locks_go_with_their_session_or_transaction(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("SELECT pg_advisory_lock(1), pg_advisory_lock(2)")
    a.run("SELECT pg_advisory_unlock_all()")
    a.run("BEGIN")
    a.run("SELECT pg_advisory_xact_lock(1)")
    assert a.rows("SELECT pg_try_advisory_xact_lock(2), pg_advisory_unlock(2)") == [("t", "f")]
    assert b.rows("SELECT pg_try_advisory_lock(1), pg_try_advisory_lock(2)") == [("f", "f")]
    a.run("ROLLBACK")
    assert b.rows("SELECT pg_try_advisory_lock(1), pg_try_advisory_lock(2)") == [("t", "t")]
    b.close()
    assert a.rows("SELECT pg_try_advisory_lock(1)") == [("t",)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pg_advisory_lock(7)",
        "SELECT pg_advisory_lock(3), pg_sleep(0.001), pg_advisory_lock(7)",
        "INSERT INTO t SELECT 1 WHERE pg_advisory_lock(7) IS NOT NULL",
        "DO $$ BEGIN PERFORM pg_advisory_lock(7); END $$",
        "SELECT count(pg_advisory_lock(i)) FROM generate_series(3, 9) i",
        "COPY (SELECT pg_advisory_lock(7)) TO STDOUT",
        "BEGIN; INSERT INTO t VALUES (5); SELECT pg_advisory_lock(7); COMMIT",
        "BEGIN; INSERT INTO t VALUES (5); UPDATE t SET i = 6 WHERE pg_advisory_lock(7) IS NOT NULL; COMMIT",
        "BEGIN; DECLARE c CURSOR FOR SELECT pg_advisory_lock(7); FETCH c; COMMIT",
        "CREATE TABLE made AS SELECT pg_advisory_lock(7)::text",
    ],
)
def test_who_meets_a_lock_waits_for_it_and_has_it_once(pair: tuple[Client, Client], text: str) -> None:
    a, b = pair
    a.run("CREATE TABLE t (i int)")
    a.run("SELECT pg_advisory_lock(7)")
    waiting = waits(b, text)
    assert a.rows("SELECT pg_try_advisory_lock(3), pg_advisory_unlock(3)") == [("t", "t")]
    assert a.rows("SELECT objid, granted FROM pg_locks WHERE locktype = 'advisory' ORDER BY 2") == [
        ("7", "f"), ("7", "t")
    ]  # fmt: skip
    (pid,) = a.rows(f"SELECT pg_blocking_pids({b.session.state.backend_id})")[0]
    assert pid == f"{{{a.session.state.backend_id}}}"
    assert a.rows("SELECT pg_advisory_unlock(7)") == [("t",)]
    waiting.result(LONG)
    assert a.rows("SELECT pg_try_advisory_lock(7)") == [("f",)]
    assert b.rows("SELECT pg_advisory_unlock(7), pg_advisory_unlock(7)") == [("t", "f")]


def test_a_lock_that_is_given_back_just_before_somebody_waits(
    pair: tuple[Client, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever gives it back sees nobody in the queue."""
    a, b = pair
    a.run("SELECT pg_advisory_lock(7)")
    advisory = a.server.coordinator.advisory
    asked, before = [0], Waits._is_held

    def held(self: Waits, blocked: BlockedError) -> bool:
        found = before(self, blocked)
        asked[0] += 1
        if asked[0] == 1:
            advisory.give_back(a.session.state.backend_id, (7,))
        return found

    monkeypatch.setattr(Waits, "_is_held", held)
    b.server.start(b.work("SELECT pg_advisory_lock(7)")).result(LONG)
    assert asked[0] == 2


def test_the_prepared_wait_too(pair: tuple[Client, Client]) -> None:
    a, b = pair
    b.run("PREPARE p (bigint) AS SELECT pg_advisory_xact_lock_shared($1)")
    a.run("BEGIN")
    a.run("SELECT pg_advisory_xact_lock(7)")
    b.run("BEGIN")
    waiting = waits(b, "EXECUTE p (7)")
    a.run("COMMIT")
    waiting.result(LONG)
    assert a.rows("SELECT pg_try_advisory_lock(7), pg_try_advisory_lock_shared(7)") == [("f", "t")]
    b.run("COMMIT")


def test_several_wait_in_their_order_and_a_session_that_ends_lets_them_go(pair: tuple[Client, Client]) -> None:
    a, b = pair
    c = a.server.client()
    a.run("SELECT pg_advisory_lock(1, 2), pg_advisory_lock(1, 2)")
    second = waits(b, "SELECT pg_advisory_lock(1, 2)")
    third = waits(c, "SELECT pg_advisory_lock(1, 2)")
    a.run("SELECT pg_advisory_unlock(1, 2)")
    assert not second.done()
    a.close()
    second.result(LONG)
    assert not third.done()
    b.run("SELECT pg_advisory_unlock_all()")
    third.result(LONG)


def test_circles_are_found(pair: tuple[Client, Client]) -> None:
    """Of advisory locks, and of one and a row."""
    a, b = pair
    a.run("CREATE TABLE t (i int PRIMARY KEY, x int)")
    a.run("INSERT INTO t VALUES (1, 0)")
    a.run("SELECT pg_advisory_lock(1)")
    b.run("SELECT pg_advisory_lock(2)")
    waiting = waits(b, "SELECT pg_advisory_lock(1)")
    assert a.state("SELECT pg_advisory_lock(2)") == "40P01"
    a.run("SELECT pg_advisory_unlock(1)")
    waiting.result(LONG)
    a.run("BEGIN")
    a.run("UPDATE t SET x = 1")
    b.run("BEGIN")
    waiting = waits(b, "UPDATE t SET x = 2")
    assert a.state("SELECT pg_advisory_xact_lock(2)") == "40P01"
    a.run("ROLLBACK")
    waiting.result(LONG)


def test_a_cancel_and_a_timeout_end_the_wait(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("SELECT pg_advisory_lock(7)")
    waiting = waits(b, "SELECT pg_advisory_lock(3), pg_advisory_lock(7)")
    b.server.run(b.session.cancel())
    assert error_of(waiting).sqlstate == "57014"
    b.run("SET statement_timeout = '30ms'")
    assert b.state("SELECT pg_advisory_lock(3), pg_advisory_lock(7)") == "57014"
    b.run("RESET statement_timeout")
    assert a.rows("SELECT pg_try_advisory_lock(3)") == [("t",)]
    a.run("SELECT pg_advisory_unlock_all()")
    assert b.rows("SELECT pg_try_advisory_lock(7)") == [("t",)]
