"""The server as a program: flags, ready, clean end, kill -9 under load, psycopg."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from server import END_SECONDS
from tests.support.program import ROOT, Program


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path / "data")
    yield program
    program.kill()


def test_sigterm_ends_it_in_order(program: Program, tmp_path: Path) -> None:
    connection = program.connect()
    connection.execute("CREATE TABLE t (a int)")
    connection.execute("INSERT INTO t VALUES (1)")
    program.process.send_signal(signal.SIGTERM)
    assert program.process.wait(END_SECONDS + 5) == 0  # a machine with other work may get to it late
    again = Program(tmp_path / "data", alone=True)
    assert again.connect().execute("SELECT * FROM t").fetchall() == [(1,)]
    again.kill()


def test_nothing_acknowledged_is_lost_by_a_kill(program: Program, tmp_path: Path) -> None:
    setup = program.connect()
    setup.execute("CREATE TABLE t (client int, n int, note text, PRIMARY KEY (client, n))")
    setup.execute("CREATE MATERIALIZED VIEW v AS SELECT client, count(*) AS n, max(note) AS m FROM t GROUP BY client")
    acknowledged = [0, 0, 0]

    def load(client: int) -> None:
        try:
            with program.connect() as connection:
                while True:
                    n = acknowledged[client] + 1
                    connection.execute("INSERT INTO t VALUES (%s, %s, %s)", (client, n, f"note {n}"))
                    acknowledged[client] = n
        except psycopg.Error:
            pass

    threads = [threading.Thread(target=load, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(1.3)
    program.kill()
    for thread in threads:
        thread.join()
    again = Program(tmp_path / "data")
    connection = again.connect()
    found = dict(connection.execute("SELECT client, count(*) FROM t GROUP BY client").fetchall())
    for client, n in enumerate(acknowledged):
        assert n <= found[client] <= n + 1
    assert connection.execute("VERIFY MATERIALIZED VIEW v").fetchall() == []
    assert dict(connection.execute("SELECT client, n FROM v").fetchall()) == found
    again.kill()


def test_psycopg_feels_at_home(program: Program) -> None:
    connection = program.connect()
    connection.execute("CREATE TABLE t (a int, b text, c numeric(10, 2), d timestamptz, e boolean, f float8)")
    rows = [(i, f"t{i}", i / 4, "2024-05-06 07:08:09+00", i % 2 == 0, i / 3) for i in range(50)]
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s)", rows)
    assert connection.execute("SELECT count(*) FROM t WHERE a = ANY(%s)", ([1, 2, 3],)).fetchone() == (3,)
    connection.execute("INSERT INTO t (a, b) SELECT * FROM unnest(%s::int[], %s::text[])", ([100, 101], ["x", None]))
    with connection.cursor() as cursor, cursor.copy("COPY t (a, b) FROM STDIN") as copy:
        for i in range(200, 210):
            copy.write_row((i, f"c{i}"))
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (62,)
    with connection.transaction():
        connection.execute("DELETE FROM t WHERE a >= 100")
    with pytest.raises(psycopg.errors.DivisionByZero):
        _delete_and_fail(connection)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (50,)
    with connection.cursor(binary=True) as cursor:
        row = cursor.execute("SELECT a, b, c, e FROM t WHERE a = 7").fetchone()
        assert row == (7, "t7", Decimal("1.75"), False)


def _delete_and_fail(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    with connection.transaction():
        connection.execute("DELETE FROM t")
        connection.execute("SELECT 1/0")


def test_help_and_bad_flags(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "server.py")]
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
    for flag in ("--host", "--port", "--data", "--memory", "--files", "--workers", "--max-connections"):
        assert flag in done.stdout
    bad = subprocess.run([*command, "--memory", "lots"], capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert os.listdir(tmp_path) == []
