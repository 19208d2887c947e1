"""Long statements end on cancel, timeouts, --memory and SIGTERM."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from server import END_SECONDS
from tests.programs.crashes import Program
from tests.support.paths import ROOT
from tests.support.sessions import Server

Connection = psycopg.Connection[tuple[Any, ...]]
PRODUCT = "SELECT a.a FROM big a JOIN big b ON a.a + b.a = 3"
SOON = 30
"""Seconds: far from what it takes, and from what the statement would take to its end, on however slow a machine."""
SLACK = 5.0
"""Seconds in which a machine with other work gets to what is due."""
ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    program = Program(tmp_path_factory.mktemp("limits") / "data", ())
    program.wait()
    with program.connect() as connection:
        connection.execute("CREATE TABLE big (a int, b int)")
        connection.execute("INSERT INTO big SELECT i, i % 10 FROM generate_series(1, 200000) i")
        connection.execute("CREATE TABLE t (a int)")
    yield program
    program.kill()


def _busy(program: Program) -> float:
    """CPU seconds that the server has used."""
    fields = Path(f"/proc/{program.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _until_quiet(program: Program) -> None:
    """Wait until the server uses a small part of a core: it may sweep for a while, but not for ever."""
    until = time.monotonic() + SOON
    while True:
        before, begun = _busy(program), time.monotonic()
        time.sleep(0.3)
        if _busy(program) - before < 0.3 * (time.monotonic() - begun):
            return
        assert time.monotonic() < until, "a thread goes on"


LONG = [
    f"SELECT count(*) FROM ({PRODUCT}) x",
    "SELECT * FROM big a LEFT JOIN big b ON a.a + b.a = 3 ORDER BY 1",
    ENDLESS,
    f"INSERT INTO t {PRODUCT}",
    f"CREATE TABLE made AS {PRODUCT}",
    f"CREATE MATERIALIZED VIEW v AS {PRODUCT}",
    "DELETE FROM t USING big a, big b WHERE a.a + b.a = t.a",
]


@pytest.mark.parametrize("text", LONG)
def test_a_cancelled_statement_stops_at_once(program: Program, text: str) -> None:
    with program.connect() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        timer = threading.Timer(0.4, connection.cancel)
        timer.start()
        start = time.monotonic()
        with pytest.raises((psycopg.errors.QueryCanceled, psycopg.errors.OutOfMemory)):
            connection.execute(text)  # type: ignore[call-overload]
        assert time.monotonic() - start < SOON
        timer.join()
        assert connection.execute("SELECT count(*) FROM big").fetchone() == (200000,)
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("DELETE FROM t")
    _until_quiet(program)


def test_sessions_cancel_and_end_each_other(program: Program) -> None:
    with program.connect() as admin, program.connect() as victim:
        pid = victim.info.backend_pid
        running = threading.Thread(target=_cancelled, args=(victim,))
        running.start()
        query = "SELECT state FROM pg_stat_activity WHERE pid = %s"
        while running.is_alive() and admin.execute(query, (pid,)).fetchone() != ("active",):
            time.sleep(0.01)
        assert admin.execute("SELECT pg_cancel_backend(%s)", (pid,)).fetchone() == (True,)
        running.join(SOON)
        assert not running.is_alive()
        assert victim.execute("SELECT 1").fetchone() == (1,)
        assert admin.execute("SELECT pg_terminate_backend(%s)", (pid,)).fetchone() == (True,)
        with pytest.raises((psycopg.errors.AdminShutdown, psycopg.OperationalError)):
            victim.execute("SELECT 1")
        victim.close()  # libpq may not have seen yet that the server has closed it
        while admin.execute(query, (pid,)).fetchone() is not None:
            time.sleep(0.01)
        assert admin.execute("SELECT pg_terminate_backend(0)").fetchone() == (False,)
        with pytest.raises(psycopg.errors.AdminShutdown):
            admin.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        admin.close()
    with program.connect() as again:
        assert again.execute("SELECT 1").fetchone() == (1,)


def _cancelled(connection: Connection) -> None:
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(ENDLESS)


def test_statement_timeout(program: Program) -> None:
    with program.connect() as connection:
        connection.execute("SET statement_timeout = '300ms'")
        for text in (LONG[0], LONG[3]):
            start = time.monotonic()
            with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
                connection.execute(text)  # type: ignore[call-overload]
            assert time.monotonic() - start < SOON
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_query_over_the_memory_is_refused(program: Program) -> None:
    """--memory is 512 MiB there."""
    with program.connect() as connection:
        for text in (
            "SELECT a.a, b.a AS c FROM big a JOIN big b ON a.b = b.b ORDER BY 1",
            "CREATE MATERIALIZED VIEW v AS SELECT a.a, b.a AS c FROM big a JOIN big b ON a.b = b.b",
        ):
            with pytest.raises(psycopg.errors.OutOfMemory) as caught:
                connection.execute(text)  # type: ignore[call-overload]
            assert "--memory" in (caught.value.diag.message_hint or "")
        assert connection.execute("SELECT count(*) FROM big").fetchone() == (200000,)
        connection.execute("CREATE MATERIALIZED VIEW w AS SELECT b, count(*) AS n FROM big GROUP BY b")
        assert len(connection.execute("SELECT * FROM w").fetchall()) == 10
        assert connection.execute("VERIFY MATERIALIZED VIEW w").fetchall() == []


@pytest.mark.parametrize("text", [LONG[0], LONG[3], ENDLESS, "COPY (SUBSCRIBE t) TO STDOUT", None])
def test_sigterm_ends_it_soon(tmp_path: Path, text: str | None) -> None:
    """``None``: under the load of many commits."""
    program = Program(tmp_path / "data", ())
    program.wait()
    with program.connect() as connection:
        connection.execute("CREATE TABLE big (a int, b int)")
        connection.execute("INSERT INTO big SELECT i, i % 10 FROM generate_series(1, 100000) i")
        connection.execute("CREATE TABLE t (a int)")

    def work() -> None:
        try:
            with program.connect() as connection:
                if text is not None and text.startswith("COPY"):
                    with connection.cursor() as cursor, cursor.copy(text) as copy:
                        list(copy)
                while True:
                    connection.execute(text or "INSERT INTO t VALUES (1)")  # type: ignore[call-overload]
        except psycopg.Error:
            pass

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.8)
    start = time.monotonic()
    program.process.send_signal(signal.SIGTERM)
    assert program.process.wait(SOON) == 0
    assert time.monotonic() - start < END_SECONDS + SLACK
    for thread in threads:
        thread.join()


def test_sigterm_while_it_starts(tmp_path: Path) -> None:
    for wait in (0.05, 0.6, 1.0):
        command = [sys.executable, "server.py", "--port", "0", "--data", str(tmp_path / "data")]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=ROOT)
        time.sleep(wait)
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS + SLACK) in (0, -signal.SIGTERM)


PIECES = [
    "SELECT count(*), sum(a.x * b.y) FROM t a JOIN t b ON a.x = b.y",
    "SELECT a.x, b.y, c.x AS z FROM t a JOIN t b ON a.x = b.y JOIN t c ON b.x = c.y",
    "SELECT a.x, count(b.y), max(c.x) FROM t a LEFT JOIN t b ON a.x + 1 = b.y AND b.x < 20"
    " JOIN t c ON c.x = a.y GROUP BY a.x",
    "SELECT DISTINCT a.x, b.y FROM t a FULL JOIN t b ON a.x = b.y + 7 WHERE a.y IS NULL OR b.x % 3 = 0",
    "SELECT x FROM t WHERE EXISTS (SELECT 1 FROM t u JOIN t w ON u.x = w.x WHERE u.y = t.x AND w.y <> u.y)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT b.x FROM r JOIN t a ON a.y = r.n JOIN t b ON b.y = a.x)"
    " SELECT r.n, count(*) FROM r JOIN t ON t.x = r.n JOIN t u ON u.y = t.y GROUP BY r.n",
    "SELECT a.x FROM t a, t b WHERE a.x < b.y EXCEPT ALL SELECT a.x FROM t a, t b WHERE a.y < b.x",
]


@pytest.mark.parametrize("large", [32, 100, 300])
def test_joins_cut_into_pieces_give_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    """One-shot joins emit a piece at a time; a product feeds another, a group, an outer join, a loop."""
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t (x int, y int)")
    client.run("INSERT INTO t SELECT i * 7 % 31, i * i % 29 FROM generate_series(1, 90) i")
    expected = [client.sorted(query) for query in PIECES]
    monkeypatch.setattr("ivm.operators.join.LARGE", large)
    assert [client.sorted(query) for query in PIECES] == expected
    assert min(map(len, expected)) > 0
    server.close()
