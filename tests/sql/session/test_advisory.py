"""Advisory locks between sessions; answers of PostgreSQL 15, except for waiting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server


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
