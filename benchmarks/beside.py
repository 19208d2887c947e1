"""Commits beside other work: one client's commits while another reads, copies or creates views over a million rows."""

from __future__ import annotations

import io
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

ROWS = 1_000_000
SECONDS = 15.0


def data(offset: int) -> bytes:
    """A million rows (id, k, v, s) as COPY's text."""
    return "".join(f"{i + offset}\t{i % 1000}\t{i * 7}\t{i % 13}\n" for i in range(ROWS)).encode()


def copy_million(connection: psycopg.Connection, table: str, rows: bytes) -> None:
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        source = io.BytesIO(rows)
        while chunk := source.read(1 << 18):
            copy.write(chunk)


def prepare(dsn: str) -> None:
    """Creates the large table, a view of all its rows, and the small table for the measured commits."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE big (id bigint PRIMARY KEY, k bigint, v bigint, s bigint)")
        copy_million(connection, "big", data(0))
        connection.execute("CREATE MATERIALIZED VIEW bigv AS SELECT id, k + v AS x FROM big")
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, k bigint, v bigint)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT k, count(*), sum(v) FROM t GROUP BY k")


def read(dsn: str) -> None:
    """Reads the view of a million rows again and again."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while True:
            with connection.cursor().copy("COPY (SELECT * FROM bigv) TO STDOUT") as copy:
                for _ in copy:
                    pass


def copy(dsn: str) -> None:
    """Copies a million rows into a new table, and drops it."""
    rows = data(0)
    with psycopg.connect(dsn, autocommit=True) as connection:
        while True:
            connection.execute("CREATE TABLE c (id bigint PRIMARY KEY, k bigint, v bigint, s bigint)")
            copy_million(connection, "c", rows)
            connection.execute("DROP TABLE c")


def create(dsn: str) -> None:
    """Creates views over a million rows, and drops them."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while True:
            connection.execute("CREATE MATERIALIZED VIEW cv AS SELECT k, s, sum(v), max(v) FROM big GROUP BY k, s")
            connection.execute("DROP MATERIALIZED VIEW cv")


NEIGHBOURS: dict[str, Callable[[str], None] | None] = {"alone": None, "reader": read, "copier": copy, "creator": create}


def commits(dsn: str, first: int) -> tuple[list[float], list[int]]:
    """Latencies of single-row commits over a period, in ms, and how many threads of the machine were runnable."""
    samples: list[float] = []
    runnable: list[int] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        end = time.perf_counter() + SECONDS
        while (started := time.perf_counter()) < end:
            i = first + len(samples)
            connection.execute("INSERT INTO t VALUES (%s, %s, %s)", (i, i % 10, i), prepare=True)
            samples.append(1e3 * (time.perf_counter() - started))
            if len(samples) % 100 == 0:
                runnable.append(int(Path("/proc/loadavg").read_text().split()[3].split("/")[0]))
            time.sleep(0.002)
    return samples, runnable


def beside(dsn: str) -> list[tuple[str, list[float], float]]:
    """Each neighbour's effect: milliseconds of commits, and how many threads were runnable on average."""
    prepare(dsn)
    results = []
    for number, (name, work) in enumerate(NEIGHBOURS.items()):
        process = None if work is None else multiprocessing.Process(target=work, args=(dsn,), daemon=True)
        if process is not None:
            process.start()
            time.sleep(2)
        samples, runnable = commits(dsn, number * 1_000_000)
        if process is not None:
            process.kill()
            process.join()
        threads = sum(runnable) / max(len(runnable), 1)
        results.append((f"a commit, {name}", samples, threads))
    return results
