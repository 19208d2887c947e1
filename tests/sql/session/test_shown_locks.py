"""pg_locks: who holds and waits for what."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.sessions import Client, Server

_LOCKS = """
SELECT l.locktype, coalesce(c.relname, ''), l.mode, l.granted, l.pid = {pid}
FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation ORDER BY 1, 2, 3, 4, 5"""


@pytest.fixture
def three(server: Server) -> Iterator[tuple[Client, Client, Client]]:
    clients = server.client(), server.client(), server.client()
    clients[0].run("CREATE TABLE locked (id int PRIMARY KEY, x int)")
    clients[0].run("INSERT INTO locked VALUES (1, 1), (2, 2)")
    yield clients
    for client in clients:
        client.close()
    last = server.client()
    last.run("DROP TABLE locked")
    last.close()


def shown(client: Client, holder: Client) -> list[tuple[object, ...]]:
    return client.rows(_LOCKS.format(pid=holder.session.state.backend_id))


def until(client: Client, holder: Client, wanted: list[tuple[object, ...]]) -> None:
    for _ in range(100):
        found = shown(client, holder)
        if found == wanted:
            return
        time.sleep(0.05)
    assert found == wanted


def test_tables_and_rows_that_somebody_waits_for(three: tuple[Client, Client, Client], server: Server) -> None:
    holder, waiter, reader = three
    assert shown(reader, holder) == []
    holder.run("BEGIN")
    holder.run("UPDATE locked SET x = 5 WHERE id = 1")
    held = ("relation", "locked", "RowExclusiveLock", "t", "t")
    assert shown(reader, holder) == [held]
    waiting = server.start(waiter.work("UPDATE locked SET x = 6 WHERE id = 1"))
    until(reader, holder, [
        held,
        ("tuple", "locked", "ExclusiveLock", "f", "f"),
        ("tuple", "locked", "ExclusiveLock", "t", "t"),
    ])  # fmt: skip
    assert reader.rows("SELECT count(*) FROM pg_locks l WHERE pid = ANY (pg_blocking_pids(pid)) AND granted") == [
        ("0",)
    ]
    holder.run("COMMIT")
    waiting.result(10)
    until(reader, holder, [])


def test_who_changes_the_catalog_has_the_database(three: tuple[Client, Client, Client]) -> None:
    holder, _, reader = three
    holder.run("BEGIN")
    holder.run("CREATE TABLE made (a int)")
    query = (
        "SELECT l.mode FROM pg_locks l JOIN pg_database d ON d.oid = l.objid AND l.classid = 'pg_database'::regclass"
        " AND l.database = d.oid WHERE l.locktype = 'object' AND l.granted"
    )
    assert reader.rows(query) == [("AccessExclusiveLock",)]
    holder.run("ROLLBACK")
    assert reader.rows(query) == []


def test_advisory_locks(three: tuple[Client, Client, Client]) -> None:
    holder, _, reader = three
    holder.rows("SELECT pg_advisory_lock(4294967299), pg_advisory_lock_shared(5, 6)")
    query = "SELECT classid, objid, objsubid, mode, granted FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1"
    assert reader.rows(query) == [("1", "3", "1", "ExclusiveLock", "t"), ("5", "6", "2", "ShareLock", "t")]
    holder.rows("SELECT pg_advisory_unlock_all()")
    assert reader.rows(query) == []
