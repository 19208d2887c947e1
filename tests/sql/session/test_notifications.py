"""LISTEN and NOTIFY between clients: at commit, once, in order, and to idle clients."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tests.programs.crashes import Program

PATIENCE = 30.0


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    running = Program(tmp_path_factory.mktemp("notify"), ())
    running.wait()
    yield running
    running.kill()


def received(connection: psycopg.Connection[tuple[object, ...]], count: int) -> list[tuple[str, str, int]]:
    found = connection.notifies(timeout=PATIENCE, stop_after=count)
    return [(n.channel, n.payload, n.pid) for n in found]


def test_a_commit_sends_what_its_transaction_said(program: Program) -> None:
    with program.connect() as a, program.connect() as b:
        b.execute("LISTEN jobs")
        b.execute('LISTEN "Other"')
        pid = a.info.backend_pid
        with a.transaction():
            a.execute("NOTIFY jobs, 'one'")
            a.execute("NOTIFY jobs, 'one'")
            a.execute("SELECT pg_notify('Other', 'two'), pg_notify('nobody', 'x')")
            a.execute("NOTIFY jobs")
        assert received(b, 3) == [("jobs", "one", pid), ("Other", "two", pid), ("jobs", "", pid)]
        with a.transaction(force_rollback=True):
            a.execute("NOTIFY jobs, 'never'")
        b.execute("UNLISTEN jobs")
        a.execute("NOTIFY jobs, 'nor this'")
        a.execute("NOTIFY \"Other\", 'last'")
        assert received(b, 1) == [("Other", "last", pid)]


def test_a_transactions_notifications_come_together(program: Program) -> None:
    """In one write: a client that waits for one reads all of them."""
    with program.connect() as a, program.connect() as b:
        b.execute("LISTEN together")
        with a.transaction():
            a.execute("NOTIFY together, 'one'")
            a.execute("NOTIFY together, 'two'")
        assert [payload for _, payload, _ in received(b, 1)] == ["one", "two"]


def test_in_a_transaction_a_client_is_told_after_it(program: Program) -> None:
    with program.connect() as a, program.connect() as b:
        b.execute("LISTEN c")
        seen: list[str] = []
        b.add_notify_handler(lambda n: seen.append(n.payload))
        with b.transaction():
            b.execute("SELECT 1")
            a.execute("NOTIFY c, 'hello'")
            b.execute("SELECT 1")
            assert seen == []
        b.execute("SELECT 1")
        assert seen == ["hello"]


def test_an_idle_client_is_woken(program: Program) -> None:
    with program.connect() as a, program.connect() as b:
        b.execute("LISTEN wake")
        found: list[tuple[str, str, int]] = []
        waiting = threading.Thread(target=lambda: found.extend(received(b, 1)))
        waiting.start()
        a.execute("NOTIFY wake, 'up'")
        waiting.join(PATIENCE)
        assert [payload for _, payload, _ in found] == ["up"]


def test_what_is_refused(program: Program) -> None:
    with program.connect() as a:
        for text in ("SELECT pg_notify('', 'x')", f"NOTIFY c, '{'x' * 8000}'", f"SELECT pg_notify('{'c' * 64}', '')"):
            with pytest.raises(psycopg.errors.InvalidParameterValue):
                a.execute(text)  # type: ignore[call-overload]
        a.execute("UNLISTEN *")
