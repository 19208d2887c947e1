"""What a statement has taken is given back when it has ended, however it has."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType

import pytest

from ivm.errors import SqlError
from planner.expr.scalar import Literal
from planner.memo import LARGE, forget_large
from sql.catalog.catalog import Catalog
from sql.coordination import sweeper
from sql.coordination.planning import SHOWN_CHARACTERS
from sql.coordination.prepared import Prepared
from sql.coordination.stalls import _shown
from sql.session.information import SystemInformation
from sql.session.interrupts import Interrupts
from tests.support.bombs import ENDS, SMALL, bombs, outcome, resident, settled
from tests.support.program import Program
from tests.support.sessions import Client, Server

LONG = 300_000
OURS = ("ivm.", "planner.", "storage.", "sql.")


def held(size: int) -> list[object]:
    """Constants and statements of at least so many characters."""
    gc.collect()
    every = gc.get_objects()
    found = [o for o in every if isinstance(o, Literal) and isinstance(o.value, str) and len(o.value) > size]
    return [*found, *(o for o in every if isinstance(o, Prepared) and len(o.text) > size)]


def nothing_is_held(size: int) -> bool:
    """Soon: a thread may still be about to end."""
    until = time.monotonic() + 20
    while held(size):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("text", ["SELECT length('{}')", "SELECT g FROM generate_series(1, 2) g WHERE g::text < '{}'"])
def test_nothing_is_kept_of_a_large_statement(client: Client, text: str) -> None:
    assert client.rows(text.format("x" * LONG))
    client.rows("SELECT 1")
    assert nothing_is_held(LONG // 2)


def test_nothing_is_kept_of_a_large_statement_that_failed(client: Client) -> None:
    assert client.state(f"SELECT length('{'x' * LONG}') / 0") == "22012"
    client.rows("SELECT 1")
    assert nothing_is_held(LONG // 2)


def test_a_large_statement_that_somebody_holds_is_not_bound_again(client: Client) -> None:
    statements = client.server.coordinator.statements
    client.run(f"PREPARE large AS SELECT length('{'x' * LONG}')")
    assert client.rows("EXECUTE large") == [(str(LONG),)]
    (found,) = statements._large.values()
    assert client.rows("EXECUTE large") == [(str(LONG),)]
    assert list(statements._large.values()) == [found]
    client.run("DEALLOCATE large")
    del found
    client.rows("SELECT 1")
    gc.collect()
    assert not list(statements._large.values())


def test_what_is_shown_of_a_statement_is_bounded() -> None:
    assert len(_shown("x" * LONG) or "") == SHOWN_CHARACTERS


def test_what_a_statement_knows_goes_with_it(client: Client) -> None:
    """Without the collector of cycles: it may hold gigabytes."""
    state = client.session.state
    information = SystemInformation(state, state.catalog)
    assert information.current_user() == "me"
    gone = weakref.ref(information)
    gc.disable()
    try:
        del information
        assert gone() is None
    finally:
        gc.enable()


class Large:
    """What a statement holds."""


def test_an_interrupt_that_came_early_does_not_keep_the_statement() -> None:
    """As when the time limit passes while the event loop is busy. Without the collector of cycles."""

    async def interrupted() -> weakref.ref[Large]:
        interrupts, large = Interrupts(), Large()
        interrupts.interrupt(SqlError("57014", "canceling statement due to statement timeout"))
        try:
            with interrupts.interruptible():
                raise AssertionError("not reached")
        except SqlError:
            return weakref.ref(large)

    gc.disable()
    try:
        assert asyncio.run(interrupted())() is None
    finally:
        gc.enable()


STATEMENTS = (
    "SELECT count(*) FROM (SELECT g::text, count(*) FROM generate_series(1, 2000) g GROUP BY 1) q",
    "WITH RECURSIVE r AS (SELECT 1 x UNION ALL SELECT x + 1 FROM r WHERE x < 9) SELECT count(*) FROM r",
    "SELECT string_agg(repeat('x', 1000000), '') FROM generate_series(1, 2000) g",
    "SELECT max(x) FROM (SELECT sum(g) OVER (ORDER BY g) x FROM generate_series(1, 2000) g) q",
    "SELECT 1 / (g - 7) FROM generate_series(1, 2000) g",
    "CREATE TABLE failing AS SELECT 1 / (g - 7) FROM generate_series(1, 2000) g",
    "DO $$ BEGIN RAISE EXCEPTION 'no'; END $$",
)


def own(value: object) -> str | None:
    """The name of a function or class of ours, with its module."""
    named = value if isinstance(value, FunctionType) else type(value)
    return f"{named.__module__}.{named.__qualname__}" if named.__module__.startswith(OURS) else None


def garbage(client: Client, text: str) -> list[str]:
    """What a statement leaves to the collector, and others who ended meanwhile."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        with suppress(SqlError):
            client.run(text)
        client.server.coordinator.statements._known.clear()
        forget_large(LARGE)
        gc.collect()
        return [name for value in gc.garbage if (name := own(value)) is not None]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("text", STATEMENTS)
def test_nothing_of_a_statement_waits_for_the_collector(client: Client, text: str) -> None:
    """Full collections are rare: a statement's texts and rows would stay, each in the midst of what is free."""
    assert any(not garbage(client, text) for _ in range(5))


def test_nothing_is_kept_of_catalogs_that_are_gone(client: Client) -> None:
    """Neither statements that were bound over them, nor what a prepared statement was before."""
    statements = client.server.coordinator.statements
    client.run("CREATE TABLE k (a int PRIMARY KEY, b int)")
    client.run("PREPARE p AS SELECT count(*) FROM k")
    client.run("PREPARE q AS UPDATE k SET b = b + 1 WHERE a = $1")
    known = len(statements._known)
    for i in range(20):
        client.run(f"CREATE TABLE t{i} (a int)")
        client.rows("EXECUTE p")
        client.run("EXECUTE q(1)")
    gc.collect()
    assert sum(isinstance(value, Catalog) for value in gc.get_objects()) < 10
    assert len(statements._known) < known + 20


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(sweeper, "LOOK_SECONDS", 0.1)
    server = Server(tmp_path / "data")
    yield server
    server.close()


def test_values_of_what_was_rolled_back_leave(apart: Server) -> None:
    """Though they are too few for the dictionary to be swept at once."""
    client, other = apart.client(), apart.client()
    arena = apart.coordinator.engine.dictionary.arena
    client.run("CREATE TABLE t (s text)")
    client.run("INSERT INTO t VALUES ('kept')")
    for _ in range(2):
        client.run("BEGIN")
        client.run("INSERT INTO t SELECT repeat('x', 10000) || i FROM generate_series(1, 2000) i")
        assert arena.filled > 19 << 20
        client.run("ROLLBACK")
        until = time.monotonic() + 60
        while arena.filled > 1 << 20:
            assert time.monotonic() < until
            other.rows("SELECT 1")
            time.sleep(0.05)
    assert client.rows("SELECT s FROM t") == [("kept",)]
    apart.restart()
    assert apart.client().rows("SELECT s FROM t") == [("kept",)]


WORST = ("SELECT length(", "SELECT 'a0", "CREATE TABLE", "DO $$ DECLARE a text", "SELECT count(*) FROM generate_series")
"""How the bombs begin that left most behind."""
SLACK = 60
"""MB: what is loaded at first use, and the bounded caches. Without any one of what gives back it was 80 to 500."""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's account of memory")
def test_what_a_process_holds_after_the_worst(tmp_path: Path) -> None:
    """The long form, ``make bombs``, runs more kinds, a hundred of them."""
    program = Program(tmp_path / "data", "--memory", "1GiB")
    process = program.process.pid
    with program.connect() as connection:
        for text in bombs(SMALL):
            if text.startswith(WORST):
                outcome(connection, text)
        before = resident(process)
        connection.execute("SET statement_timeout = '400ms'")
        for text in [text for text in bombs() if text.startswith(WORST)] * 3:
            connection.execute("DROP TABLE IF EXISTS bomb")
            assert outcome(connection, text) in {"done", *ENDS}
        connection.execute("DROP TABLE IF EXISTS bomb")
        assert settled(process, before + SLACK, 60) <= before + SLACK
    program.terminate()
