"""Creating views over many rows while others commit: the effect on their latency, progress, and cancel.

    python -m benchmarks.hydration [ROWS]

Ten million rows by default. One client keeps committing a row and reading a small view back; another commits to the
large table; a third creates views over it, and cancels one halfway.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Final

import numpy as np
import psycopg

from benchmarks.server import server

ROWS: Final = 10_000_000
SLICE: Final = 500_000
GROUPS: Final = 100_000
ALONE_SECONDS: Final = 10.0
VIEWS: Final = {
    "by_key": "SELECT k, count(*) AS n, sum(v) AS s, max(v) AS m FROM big GROUP BY k",
    "by_name": "SELECT g.name, count(*) AS n, sum(b.v) AS s FROM big b JOIN groups g ON g.k = b.k GROUP BY g.name",
    "pairs": "SELECT DISTINCT k, v % 100 AS v FROM big",
}


CANCELLED: Final = (
    "SELECT g.name, min(b.id) AS first, max(b.v) AS m FROM big b JOIN groups g ON g.k = b.k GROUP BY g.name"
)


def fill(connection: psycopg.Connection, rows: int) -> None:
    """Creates the large table, its groups, and the small table for the measured commits."""
    connection.execute("CREATE TABLE big (id bigint, k int, v bigint)")
    connection.execute("CREATE TABLE groups (k int, name text)")
    connection.execute(f"INSERT INTO groups SELECT i, 'group ' || i % 500 FROM generate_series(0, {GROUPS - 1}) i")
    for first in range(0, rows, SLICE):
        ids = np.arange(first, min(first + SLICE, rows))
        keys, values = ids * 2654435761 % GROUPS, ids * 40503 % 1_000_003
        text = "\n".join(f"{i}\t{k}\t{v}" for i, k, v in zip(ids.tolist(), keys.tolist(), values.tolist(), strict=True))
        with connection.cursor().copy("COPY big FROM STDIN") as copy:
            copy.write(text + "\n")
    connection.execute("CREATE TABLE t (id bigint, k bigint, v bigint)")
    connection.execute("CREATE MATERIALIZED VIEW small AS SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k")


class Neighbour:
    """Commits one after the other: into ``t``, reading the view back, or into ``big``."""

    def __init__(self, dsn: str, table: str) -> None:
        self.samples: list[float] = []
        self.started: list[float] = []
        self._dsn, self._table = dsn, table
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            i = 1 << 40
            while not self._stop.is_set():
                i += 1
                started = time.perf_counter()
                connection.execute(f"INSERT INTO {self._table} VALUES (%s, %s, %s)", (i, i % 10, i), prepare=True)  # type: ignore[call-overload]
                if self._table == "t":
                    connection.execute("SELECT * FROM small", prepare=True).fetchall()
                self.started.append(started)
                self.samples.append(1e3 * (time.perf_counter() - started))
                time.sleep(0.002)

    def between(self, start: float, end: float) -> list[float]:
        """Milliseconds of the commits that began in an interval."""
        return [ms for at, ms in zip(self.started, self.samples, strict=False) if start <= at < end]

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


@contextmanager
def neighbours(dsn: str) -> Iterator[tuple[Neighbour, Neighbour]]:
    pair = Neighbour(dsn, "t"), Neighbour(dsn, "big")
    try:
        yield pair
    finally:
        for one in pair:
            one.stop()


def watch(dsn: str, seen: list[str], stop: threading.Event) -> None:
    """Samples freshet.hydrations while a view is created."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not stop.is_set():
            seen += [str(row) for row in connection.execute("TABLE freshet.hydrations").fetchall()]
            time.sleep(0.1)


def spread(samples: list[float]) -> str:
    """Median, 99th percentile and longest, ms."""
    return " / ".join(f"{np.percentile(samples, q):.2f}" for q in (50, 99, 100)) + " ms"


def tell(what: str, samples: list[float], alone: list[float]) -> None:
    if samples and alone:
        rise = np.percentile(samples, 99) - np.percentile(alone, 99)
        print(f"  {what}: {spread(samples)}; p99 {rise:+.1f} ms against alone", flush=True)


def measure(dsn: str, rows: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection, neighbours(dsn) as (small, large):
        start = time.perf_counter()
        time.sleep(ALONE_SECONDS)
        end = time.perf_counter()
        alone, alone_large = small.between(start, end), large.between(start, end)
        print(f"alone: commit and read back {spread(alone)}; commit into the large table {spread(alone_large)}")
        seconds = []
        for name, query in VIEWS.items():
            seen: list[str] = []
            stop = threading.Event()
            watcher = threading.Thread(target=watch, args=(dsn, seen, stop))
            watcher.start()
            start = time.perf_counter()
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")  # type: ignore[call-overload]
            end = time.perf_counter()
            stop.set()
            watcher.join()
            seconds.append(end - start)
            print(
                f"{name}: {end - start:.1f} s, {len(set(seen))} stages of progress seen, {seen[len(seen) // 2 :][:1]}"
            )
            tell("commit and read back", small.between(start, end), alone)
            tell("commit into the large table", large.between(start, end), alone_large)
        timer = threading.Timer(median(seconds) / 2, connection.cancel)
        timer.start()
        start = time.perf_counter()
        try:
            connection.execute(f"CREATE MATERIALIZED VIEW cancelled AS {CANCELLED}")
        except psycopg.errors.QueryCanceled:
            late = time.perf_counter() - start - median(seconds) / 2
            print(f"cancelled: {late:.2f} s after it was asked for")
        else:
            print("cancelled: it was ready before")
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name in VIEWS:
            wrong = connection.execute(f"VERIFY MATERIALIZED VIEW {name}").fetchall()  # type: ignore[call-overload]
            print(f"VERIFY {name}: {len(wrong)} rows differ", flush=True)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with server() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            started = time.perf_counter()
            fill(connection, rows)
        print(f"{rows:,} rows loaded in {time.perf_counter() - started:.1f} s, the client's work included", flush=True)
        measure(dsn, rows)


if __name__ == "__main__":
    main()
