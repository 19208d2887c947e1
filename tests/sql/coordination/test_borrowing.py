"""The engine between jobs, and while a group becomes durable: statements of open blocks go on, and nobody sees what is
not durable yet."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sql.coordination import thread
from sql.coordination.jobs import Jobs
from sql.coordination.transaction import Transaction
from sql.engine.persist import Tuning
from sql.pgwire.run_request import Begun
from storage.files import ForgetfulFiles
from tests.support.sessions import Server
from tests.support.wires import Wire, bind


class SlowDisk(ForgetfulFiles):
    """A disk whose syncs wait while ``gate`` is closed. ``reached``: set when one begins."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.reached = threading.Event(), threading.Event()
        self.gate.set()

    def check_sync(self) -> None:
        self.reached.set()
        assert self.gate.wait(60)
        super().check_sync()


@pytest.fixture
def disk() -> SlowDisk:
    return SlowDisk()


@pytest.fixture
def wires(tmp_path: Path, disk: SlowDisk, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Wire]]:
    monkeypatch.setattr(thread, "BRIEF_SECONDS", 30)  # until the group has been stepped
    monkeypatch.setattr(Jobs, "alone", False)  # commits go to the engine's thread
    server = Server(tmp_path / "data", tuning=Tuning(disk))
    found = [Wire(server.client()) for _ in range(5)]
    found[0].run("CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t SELECT k, 0 FROM generate_series(1, 9) k")
    for wire in found:
        wire.parse("u", "UPDATE t SET v = v + $1 WHERE k = $2")
        wire.parse("i", "INSERT INTO t VALUES ($1, $2)")
        wire.parse("s", "SELECT v FROM t WHERE k = $1")
        wire.run("BEGIN")
        wire.all_ways(bind("u", b"1", b"9"))
        wire.all_ways(bind("i", b"0", b"0"))
        wire.all_ways(bind("s", b"9"))
        wire.run("ROLLBACK")
    yield found
    disk.gate.set()
    server.close()


def test_blocks_go_on_while_a_commit_becomes_durable(wires: list[Wire], disk: SlowDisk) -> None:
    one, two, three = wires[:3]
    server = one.client.server
    one.run("BEGIN")
    assert one.at_once(bind("u", b"5", b"1")) is not None
    two.run("BEGIN")
    assert two.at_once(bind("u", b"7", b"2")) is not None
    disk.reached.clear()
    disk.gate.clear()
    commit = server.start(_simple(one, "COMMIT"))
    assert disk.reached.wait(30)
    assert b"UPDATE 1" in (two.at_once(bind("u", b"1", b"2")) or b"")
    assert b"INSERT 0 1" in (two.at_once(bind("i", b"20", b"1")) or b"")
    assert b"\0\0\0\x018" in (two.at_once(bind("s", b"2")) or b""), "its own change"
    assert two.at_once(bind("s", b"1")) is None, "the commit's row is not durable"
    assert b"UPDATE 1" in (two.at_once(bind("u", b"1", b"1")) or b""), "its own commit comes later"
    assert two.at_once(bind("s", b"1")) is None, "the value would show that of the commit"
    assert not commit.done()
    disk.gate.set()
    commit.result(30)
    assert b"\0\0\0\x016" in two.all_ways(bind("s", b"1"))
    two.run("COMMIT")
    rows = three.client.rows("SELECT k, v FROM t WHERE v <> 0 ORDER BY k")
    assert rows == [("1", "6"), ("2", "8"), ("20", "1")]


LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]


@pytest.mark.parametrize("level", LEVELS)
def test_who_waits_for_a_row_goes_on_before_the_commit_is_durable(
    wires: list[Wire], disk: SlowDisk, level: str
) -> None:
    one, two, three = wires[:3]
    server = one.client.server
    one.run(f"BEGIN ISOLATION LEVEL {level}")
    assert one.at_once(bind("u", b"5", b"1")) is not None
    two.run(f"BEGIN ISOLATION LEVEL {level}")
    waiting = server.start(_whole(two, bind("u", b"7", b"1")))
    while not server.run(_waiting(one)):
        time.sleep(0.01)
    disk.reached.clear()
    disk.gate.clear()
    commit = server.start(_simple(one, "COMMIT"))
    assert disk.reached.wait(30)
    assert b"UPDATE 1" in waiting.result(30)
    assert not commit.done()
    assert two.at_once(bind("s", b"1")) is None, "the value would show that of the commit"
    assert three.client.rows("SELECT v FROM t WHERE k = 1") == [("0",)]
    disk.gate.set()
    commit.result(30)
    assert b"\0\0\0\x0212" in two.all_ways(bind("s", b"1"))
    two.run("COMMIT")
    assert three.client.rows("SELECT v FROM t WHERE k = 1") == [("12",)]


@pytest.mark.parametrize("level", LEVELS)
def test_those_who_wait_for_a_row_try_once_more_each(
    wires: list[Wire], level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each meets the lock, waits, and then changes the row, in the order in which they came."""
    server, tries, attempt = wires[0].client.server, [0], Transaction._attempt

    def counted(self: Transaction, *args: Any, **options: Any) -> Any:
        tries[0] += 1
        return attempt(self, *args, **options)

    monkeypatch.setattr(Transaction, "_attempt", counted)
    waiting = []
    for wire in wires:
        wire.run(f"BEGIN ISOLATION LEVEL {level}")
        waiting.append(server.start(_whole(wire, bind("u", b"1", b"1"))))
        while server.run(_waiting(wire)) < len(waiting) - 1:
            time.sleep(0.01)
    for wire, answer in zip(wires, waiting, strict=True):
        assert b"UPDATE 1" in answer.result(30)
        wire.run("COMMIT")
    assert tries[0] == 2 * len(wires) - 1
    assert wires[0].client.rows("SELECT v FROM t WHERE k = 1") == [(str(len(wires)),)]


@pytest.mark.parametrize("level", LEVELS[1:])
def test_what_has_been_read_is_checked_against_what_is_not_durable_yet(
    wires: list[Wire], disk: SlowDisk, level: str
) -> None:
    """One that goes on over a commit that changes what it has read fails."""
    one, two, three = wires[:3]
    server = one.client.server
    one.run(f"BEGIN ISOLATION LEVEL {level}")
    two.run(f"BEGIN ISOLATION LEVEL {level}")
    assert two.at_once(bind("s", b"1")) is not None
    assert one.at_once(bind("u", b"5", b"1")) is not None
    disk.reached.clear()
    disk.gate.clear()
    commit = server.start(_simple(one, "COMMIT"))
    assert disk.reached.wait(30)
    changed = server.start(_whole(two, bind("u", b"7", b"2")))
    disk.gate.set()
    commit.result(30)
    assert b"C40001" in changed.result(30)
    two.run("ROLLBACK")
    assert three.client.rows("SELECT k, v FROM t WHERE v <> 0") == [("1", "5")]


def test_a_group_that_fails_to_become_durable_takes_nothing_along(wires: list[Wire], disk: SlowDisk) -> None:
    one, two, three = wires[:3]
    server = one.client.server
    one.run("BEGIN")
    assert one.at_once(bind("u", b"5", b"1")) is not None
    two.run("BEGIN")
    assert two.at_once(bind("u", b"7", b"2")) is not None
    disk.reached.clear()
    disk.fail_sync = True
    disk.gate.clear()
    commit = server.start(_simple(one, "COMMIT"))
    assert disk.reached.wait(30)
    assert two.at_once(bind("u", b"1", b"2")) is not None
    disk.gate.set()
    assert two.at_once(bind("s", b"1")) is None
    disk.fail_sync = False
    commit.result(30)
    two.run("COMMIT")
    assert three.client.rows("SELECT k, v FROM t WHERE v <> 0 ORDER BY k") == [("1", "5"), ("2", "8")]


def test_nobody_goes_on_over_a_step_that_is_left_to_the_engine_thread(
    wires: list[Wire], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop has begun the step of a commit, which shows nothing of it yet."""
    one, two = wires[:2]
    rounds = "SELECT k, v FROM t UNION SELECT k, n + 1 FROM r WHERE n < 2000"
    query = f"WITH RECURSIVE r (k, n) AS ({rounds}) SELECT k, count(*) FROM r GROUP BY k"
    one.run(f"CREATE MATERIALIZED VIEW long AS {query}")
    for wire in (one, two):
        wire.all_ways(bind("u", b"0", b"1"))  # plans are as of the present catalog
    two.run("BEGIN ISOLATION LEVEL READ COMMITTED")
    assert two.at_once(bind("u", b"0", b"2")) is not None
    monkeypatch.setattr(Jobs, "alone", True)
    monkeypatch.setattr(thread, "HERE_SECONDS", -1)
    server, jobs = one.client.server, one.client.session.state.coordinator.jobs

    async def both() -> bytes | Begun | None:
        """One commits, and the other one's bytes arrive before the engine's thread goes on."""
        with jobs._thread._guard:
            first = one.conversation.answered_at_once(one.conversation.request_in(bind("u", b"5", b"1")))
            assert isinstance(first, Begun)
            assert jobs.engine.unstepped, "in the middle of its step"
            second = two.conversation.request_in(bind("u", b"7", b"1"))
            return two.conversation.answered_at_once(second)

    assert server.run(both()) is None
    monkeypatch.undo()  # the view may be filled beside now
    two.all_ways(bind("u", b"7", b"1"))
    two.run("COMMIT")
    assert wires[2].client.rows("SELECT v FROM t WHERE k = 1") == [("12",)]
    assert wires[2].client.rows("VERIFY MATERIALIZED VIEW long") == []


async def _waiting(wire: Wire) -> int:
    """How many wait for locks."""
    return len(wire.client.session.state.coordinator.jobs.waits.waited_for())


async def _whole(wire: Wire, data: bytes) -> bytes:
    wire.written.clear()
    wire.request = wire.conversation.request_in(data)
    await wire.conversation.run()
    return b"".join(wire.written)


async def _simple(wire: Wire, text: str) -> None:
    await wire.client.work(text)
