"""A view that does not end takes no more of the engine's thread than a few milliseconds, all the time that it does not
end: commits to other tables go on, and only what reads it is down."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from ivm.kernels.warm import warm
from ivm.runtime import program_run
from sql.coordination import refilling
from sql.coordination.thread import EngineThread
from tests.support.sessions import Server

PATHS = """WITH MUTUALLY RECURSIVE p (a int, b int, d bigint) AS (
    SELECT a, b, min(d) FROM (
      SELECT x AS a, y AS b, c::bigint AS d FROM e UNION ALL
      SELECT p.a, e.y, p.d + e.c FROM p JOIN e ON e.x = p.b) q GROUP BY a, b)
  SELECT a, b, d FROM p"""
NODES = 60
CLIENTS = 3
MOST_SECONDS = 0.03
"""The most CPU time of the engine's thread between two answers: ten times what it takes."""
PARKED_SECONDS = 0.1
"""The same where a view is parked, at most 15 ms after it began. Without that it is two minutes."""


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    warm(lambda *_: None)  # a kernel's first use takes milliseconds more
    server = Server(tmp_path_factory.mktemp("beside") / "data")
    client = server.client()
    client.run("CREATE TABLE e (x int, y int, c int)")
    client.run(f"INSERT INTO e SELECT g % {NODES}, (g * 79 + 7) % {NODES}, 1 + g % 17 FROM generate_series(1, 200) g")
    client.run(f"CREATE MATERIALIZED VIEW paths AS {PATHS}")
    client.run("CREATE MATERIALIZED VIEW over AS SELECT count(*) AS n FROM paths")
    client.run("CREATE MATERIALIZED VIEW costs AS SELECT x, sum(c) AS s FROM e GROUP BY x")
    for i in range(CLIENTS):
        client.run(f"CREATE TABLE t{i} (a int, g int)")
        client.run(f"CREATE MATERIALIZED VIEW v{i} AS SELECT g, count(*), sum(a), max(a) FROM t{i} GROUP BY g")
        client.run(f"INSERT INTO t{i} VALUES (0, 0)")
    yield server
    server.close()


class Others:
    """Clients that commit one row after the other until ``stop``; ``done``: how many, by client."""

    def __init__(self, server: Server) -> None:
        self.done = [0] * CLIENTS
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(server, i)) for i in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _run(self, server: Server, number: int) -> None:
        client = server.client()
        while not self._stopped.is_set():
            client.run(f"INSERT INTO t{number} VALUES ({self.done[number]}, {self.done[number] % 5})")
            self.done[number] += 1

    def more(self, count: int) -> None:
        """Waits until each has committed so many more."""
        wanted, until = [done + count for done in self.done], time.monotonic() + 60
        while any(done < want for done, want in zip(self.done, wanted, strict=True)):
            assert time.monotonic() < until, "others do not go on"
            time.sleep(0.01)

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(60)


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The CPU seconds of the engine's thread for each job, and for each end of a group."""
    found: list[float] = []

    def timed(method: Callable[..., object]) -> Callable[..., object]:
        def run(*given: object) -> object:
            begun = time.thread_time()
            try:
                return method(*given)
            finally:
                found.append(time.thread_time() - begun)

        return run

    monkeypatch.setattr(EngineThread, "_work", timed(EngineThread._work))
    monkeypatch.setattr(EngineThread, "_flushed", timed(EngineThread._flushed))
    return found


def test_others_go_on_beside_a_view_that_does_not_end(
    server: Server, spent: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refilling, "FIRST_SECONDS", 0.3)  # it begins anew several times
    client = server.client()
    whole = client.sorted("SELECT * FROM paths")
    others = Others(server)
    try:
        others.more(5)
        spent.clear()
        client.run("INSERT INTO e VALUES (3, 3, -20)")
        others.more(40)
        status = dict(client.rows("SELECT view, status FROM freshet.views"))
        assert {name for name, state in status.items() if state != "running"} == {"paths", "over"}
        client.run("SET statement_timeout = '100ms'")
        assert client.state("SELECT * FROM over") == "57014"  # it waits until the view is filled
        client.run("SET statement_timeout = 0")
        assert client.rows("SELECT s FROM costs WHERE x = 3") != []
        client.run("DELETE FROM e WHERE c < 0")
        assert client.sorted("SELECT * FROM paths") == whole
        assert client.rows("SELECT n FROM over") == [(str(len(whole)),)]
        others.more(5)
    finally:
        others.stop()
    *others_spent, most = sorted(spent)
    assert others_spent[-1] < MOST_SECONDS, sorted(spent)[-5:]
    assert most < PARKED_SECONDS, sorted(spent)[-5:]
    for i, done in enumerate(others.done):
        assert client.rows(f"SELECT sum(count), max(max) FROM v{i}") == [(str(done + 1), str(done - 1))]
    for view in ("paths", "over", "costs", *(f"v{i}" for i in range(CLIENTS))):
        assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []


def test_a_slice_of_a_loop_has_fewer_passes_if_they_take_long(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a loop with long passes would ask late whether it must end."""
    asked: list[int] = []

    def counted(words: object, nothing: object, again: bool, stats: object, passes: int) -> int:
        asked.append(passes)
        time.sleep(2 * program_run.SLICE_SECONDS)
        return run_program(words, nothing, again, stats, passes)

    run_program = program_run.run_program
    client = server.client()
    client.run("INSERT INTO e VALUES (998, 999, 1)")  # else the next change is stepped before it is durable
    monkeypatch.setattr(program_run, "run_program", counted)
    client.run("INSERT INTO e SELECT g, g + 1, 1 FROM generate_series(1000, 1060) g")
    assert min(asked) == 1
    assert max(asked) == program_run.PASSES
