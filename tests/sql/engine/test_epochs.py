"""Waiting commits are processed in one step, but each keeps its epoch, as SUBSCRIBE over the wire shows."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sql.admission.admission import Admission
from sql.pgwire.copy_kernels import warm
from sql.pgwire.listener import serve
from sql.session.session import Session
from tests.support.sessions import Server

VIEWS = {
    "totals": "SELECT k, count(*), sum(v), max(v) FROM t GROUP BY k",
    "pairs": "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.k = b.v",
    "kinds": "SELECT DISTINCT k FROM t",
    "reach": "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT t.v FROM r JOIN t ON t.k = r.n) SELECT n FROM r",
}
START = "INSERT INTO t VALUES (1, 1, 2), (2, 2, 3), (3, 3, 4), (4, 1, NULL), (5, NULL, 2)"
COMMITS = (
    "INSERT INTO t VALUES (6, 4, 5)",
    "INSERT INTO t VALUES (7, 5, 1)",
    "DELETE FROM t WHERE id = 2",
    "UPDATE t SET v = 5 WHERE id = 4",
    "INSERT INTO t VALUES (8, 2, 3)",
    "UPDATE t SET k = 2 WHERE k IS NULL",
    "INSERT INTO t VALUES (9, 2, 3)",
    "DELETE FROM t WHERE id = 8",
    "UPDATE t SET k = k + 1, v = v + 1",
    "DELETE FROM t WHERE id IN (1, 9)",
    "INSERT INTO t VALUES (10, 1, 3), (11, 1, 3)",
    "UPDATE t SET v = NULL WHERE id = 10",
    "DELETE FROM t WHERE id = 11",
    "INSERT INTO t VALUES (2, 1, 2)",
)
LAST = "INSERT INTO t VALUES (99, 99, 99)"

Changes = list[list[tuple[str, ...]]]
"""For each epoch at which something changed, in order: (diff, column, …) of every row, sorted."""


class Wire:
    """A server with a listener, and the clients that a test opens."""

    def __init__(self, folder: Path) -> None:
        self.server = Server(folder)
        self.listener = self.server.run(serve(self._session, "127.0.0.1", 0))
        self.groups = 0
        self.server.coordinator.engine.listeners.append(self._published)

    async def _session(self, user: str, database: str, parameters: dict[str, str], admission: Admission) -> Session:
        return Session(self.server.coordinator, user, database, parameters, admission)

    def _published(self, *_: object) -> None:
        self.groups += 1

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(f"host=127.0.0.1 port={self.listener.port} user=me dbname=postgres", autocommit=True)

    def close(self) -> None:
        self.server.run(self.listener.close())
        self.server.close()

    def waiting(self) -> int:
        """Jobs that the engine's thread has not answered."""
        return self.server.coordinator.jobs.pending

    def hold(self) -> threading.Event:
        """Keeps the engine's thread busy until the event is set."""
        begun, go_on = threading.Event(), threading.Event()

        def wait() -> None:
            begun.set()
            assert go_on.wait(60)

        async def queue() -> None:
            self.server.coordinator.jobs.start(wait)

        self.server.run(queue())
        assert begun.wait(60)
        return go_on

    def commit_at_once(self, statements: Sequence[str]) -> None:
        """Sends each statement from its own client, queued in order while the engine is busy."""
        clients = [self.connect() for _ in statements]
        go_on = self.hold()
        threads = []
        for number, (client, text) in enumerate(zip(clients, statements, strict=True)):
            threads.append(threading.Thread(target=client.execute, args=(text,)))
            threads[-1].start()
            while self.waiting() < number + 2:
                threads[-1].join(0.001)
        go_on.set()
        for thread, client in zip(threads, clients, strict=True):
            thread.join()
            client.close()

    def subscribe(self, view: str) -> psycopg.Connection[Any]:
        """A client whose cursor c follows the view."""
        client = self.connect()
        client.execute("BEGIN")
        client.execute(f"DECLARE c CURSOR FOR SUBSCRIBE {view}")
        assert client.execute("FETCH ALL c").fetchall(), "what stands when it begins"
        return client


def followed(client: psycopg.Connection[Any]) -> Changes:
    """All changes that the client's cursor returns, up to one of a row with 99."""
    rows: list[tuple[Any, ...]] = []
    while not any(99 in row[2:] for row in rows):
        rows += client.execute("FETCH ALL c WITH (timeout = '10s')").fetchall()
    client.close()
    rows.sort(key=lambda row: int(row[0]))
    return [sorted(tuple(map(str, row[1:])) for row in group) for _, group in groupby(rows, key=lambda row: row[0])]


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    warm()
    wire = Wire(tmp_path)
    yield wire
    wire.close()


def changes(wire: Wire, at_once: bool) -> dict[str, Changes]:
    """Each view's changes by epoch while all of COMMITS run on a new table."""
    with wire.connect() as client:
        client.execute("DROP TABLE IF EXISTS t CASCADE")
        client.execute("CREATE TABLE t (id int PRIMARY KEY, k int, v int)")
        client.execute(START)
        for name, query in VIEWS.items():
            client.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        readers = {name: wire.subscribe(name) for name in VIEWS}
        if at_once:
            wire.commit_at_once(COMMITS)
        else:
            for text in COMMITS:
                client.execute(text)
        client.execute("INSERT INTO t VALUES (98, 1, 99)")
        client.execute(LAST)
    return {name: followed(reader) for name, reader in readers.items()}


def test_waiting_commits_share_a_step_and_keep_their_epochs(wire: Wire) -> None:
    alone = changes(wire, at_once=False)
    before = wire.groups
    together = changes(wire, at_once=True)
    assert wire.groups - before < len(COMMITS), "the commits were not stepped together"
    assert together == alone
    assert all(len(found) > 4 for found in alone.values()), "every view changes at several epochs"
