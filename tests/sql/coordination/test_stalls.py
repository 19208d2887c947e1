"""What keeps the engine's or the event loop's thread busy for long is named in freshet.stalls and in the log."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Iterator
from types import FrameType

import pytest

from sql.coordination.stalls import _named, _statement
from sql.session.session import Session
from tests.support.sessions import Client, Server

STEP = "SELECT 1 UNION ALL SELECT y FROM r JOIN e ON e.x = r.n"


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("stalls") / "data")
    client = server.client()
    client.run("CREATE TABLE e (x int, y int)")
    client.run("INSERT INTO e VALUES (1, 2), (2, 3)")
    client.run(f"CREATE MATERIALIZED VIEW endless AS WITH RECURSIVE r(n) AS ({STEP}) SELECT * FROM r")
    client.run("CREATE MATERIALIZED VIEW other AS SELECT count(*) AS n FROM e")
    yield server
    server.close()


def _stall(client: Client, thread: str, statement: str, **wanted: str) -> tuple[str | None, ...]:
    """The first stall of a statement, by what is wanted of its columns: on a crowded machine there may be others."""
    columns = "statement, view, operator, place, seconds > 0.2"
    query = f"SELECT {columns} FROM freshet.stalls WHERE thread = '{thread}' AND statement LIKE '{statement}%'"
    conditions = "".join(f" AND {column} LIKE '{pattern}'" for column, pattern in wanted.items())
    for _ in range(400):
        found = client.rows(f"{query}{conditions} ORDER BY started")
        if found:
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"no such stall was seen, but {client.rows('SELECT * FROM freshet.stalls')}")


def test_a_step_that_does_not_end_is_named(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    client = server.client()
    server.coordinator.jobs.stalls.recent.clear()
    server.coordinator.engine.watch.seconds = 0.8
    with caplog.at_level(logging.WARNING, "freshet.stalls"):
        client.run("INSERT INTO e VALUES (3, 1)")
    assert client.state("SELECT * FROM endless") == "54001"
    found = _stall(client, "engine", "INSERT INTO e VALUES (3, 1)", view="endless", place="ivm/%")
    assert found[2] is not None
    assert found[4] == "t"
    lines = [r.getMessage() for r in caplog.records if "INSERT INTO e" in r.getMessage()]
    assert any("view endless" in line for line in lines)


def test_work_of_a_statement_on_the_engine_is_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = server.client()

    def slow(*given: object) -> object:
        time.sleep(0.5)
        return original(*given)

    original = server.coordinator.engine.check_room
    monkeypatch.setattr(server.coordinator.engine, "check_room", slow)
    with monkeypatch.context() as patch:
        patch.setattr("sql.session.writes.Writes._is_light", lambda *_: False)
        client.run("CREATE ROLE r LOGIN PASSWORD 'nobody reads this'")
        client.run("INSERT INTO e VALUES (7, 8)")
    _stall(client, "engine", "INSERT INTO e VALUES (7, 8)")
    assert "nobody" not in repr(server.coordinator.jobs.stalls.all())


def test_work_on_the_event_loop_is_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client, run = server.client(), Session._run

    async def slow(self: Session, *given: object) -> object:
        time.sleep(0.5)
        return await run(self, *given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Session, "_run", slow)
        client.run("SELECT 41 + 1")
    _stall(client, "listener", "SELECT 41 + 1", place="% slow")


class Large:
    """What a long statement holds. ``text``: as a prepared statement has it."""

    text = "SELECT 1"


def test_looking_at_a_stack_keeps_nothing() -> None:
    """A connection's coroutine lasts as long as the connection."""

    def lasting() -> Iterator[weakref.ref[Large]]:
        prepared = Large()
        gone = weakref.ref(prepared)
        yield gone
        del prepared
        yield gone

    running = lasting()
    gone = next(running)
    frame: FrameType = running.gi_frame  # type: ignore[attr-defined]
    assert _statement([frame]) == "SELECT 1"
    assert isinstance(_named(frame, ("prepared",), Large), Large)
    next(running)
    assert gone() is None
