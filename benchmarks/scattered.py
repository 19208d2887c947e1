"""A view that Spark maintains, with state far larger than what anyone may hold: its jobs at three sizes of state.

``python -m benchmarks.scattered [thousands of pairs …]``. The cluster is ``storage.spark.cluster``'s: two workers of
one core. Server and executors get little memory; the most that each process really took is what the system says of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psycopg

from benchmarks.server import ROOT
from storage.spark.cluster import LocalCluster

MEMORY: Final = "256MiB"
EXECUTOR: Final = "512m"
"""Spark takes no less than 450 MB."""
PARTS: Final = 16
EACH: Final = 50
"""People who like an item."""
VIEW: Final = """SELECT x, count(*) AS alike, max(score) AS closest FROM
  (SELECT a.person AS x, b.person AS y, count(*) AS n, sum(a.weight * b.weight) AS score
   FROM likes a JOIN likes b ON a.item = b.item WHERE a.person <> b.person GROUP BY a.person, b.person) pairs
GROUP BY x"""
CHANGES: Final = {
    "two rows": "INSERT INTO likes VALUES (1, -1, 5), (2, -1, 7)",
    "a row goes": "DELETE FROM likes WHERE item = -1 AND person = 1",
    "an item's 50 rows": "UPDATE likes SET weight = weight + 1 WHERE item = 3",
}


@dataclass(slots=True)
class Peaks:
    """The peak memory, in MB, of a process of each kind among those started by this program."""

    most: dict[str, int] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Samples memory until ``ended``."""
        while not self.ended.wait(0.5):
            parents: dict[int, int] = {}
            found: list[tuple[int, str, int]] = []
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    command = (folder / "cmdline").read_bytes().decode(errors="replace")
                    status = (folder / "status").read_text()
                except OSError:
                    continue
                parents[int(folder.name)] = int(status.split("PPid:")[1].split()[0])
                kind = next((name for mark, name in KINDS.items() if mark in command), None)
                if kind is not None and "VmHWM:" in status:
                    found.append((int(folder.name), kind, int(status.split("VmHWM:")[1].split()[0]) >> 10))
            for number, kind, taken in found:
                if _descends(number, parents):
                    self.most[kind] = max(self.most.get(kind, 0), taken)


KINDS: Final = {
    "server.py": "server", "CoarseGrainedExecutorBackend": "executor's Java", "pyspark.daemon": "executor's Python",
    "SparkSubmit": "driver's Java",
}  # fmt: skip


def _descends(number: int, parents: dict[int, int]) -> bool:
    while number in parents and number != os.getpid():
        number = parents[number]
    return number == os.getpid()


@contextmanager
def server(cluster: str, shared: Path) -> Iterator[str]:
    """A fresh server with little memory; its DSN."""
    folder = Path(tempfile.mkdtemp(prefix="freshet-bench-"))
    spark = ["--spark", cluster, "--spark-shared", str(shared), "--spark-memory", "512MiB"]
    command = [sys.executable, "server.py", "--data", str(folder), "--port", "0", "--memory", MEMORY, *spark]
    running = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stderr is not None
        port = next(line.split()[2].rpartition(":")[2] for line in running.stderr if line.startswith("ready on "))
        threading.Thread(target=running.stderr.read, daemon=True).start()
        yield f"host=127.0.0.1 port={port} user=bench dbname=bench"
    finally:
        running.terminate()
        running.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def measure(pairs: int, cluster: str) -> None:
    """One size: ``pairs`` pairs of people who like the same item."""
    items = pairs // (EACH * (EACH - 1))
    shared = Path(tempfile.mkdtemp(prefix="freshet-shared-"))
    try:
        with server(cluster, shared) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
            peaks = Peaks()
            threading.Thread(target=peaks.watch, daemon=True).start()
            connection.execute("CREATE TABLE likes (person int, item int, weight int)")
            everybody = f"generate_series(1, {items}) g(i), generate_series(1, {EACH}) h(j)"
            person = f"((i * {EACH} + j) * 1103515245::bigint % 2147483647)::int"
            connection.execute(f"INSERT INTO likes SELECT {person}, i, (i * 7919 + j * j * 31) % 1000 FROM {everybody}")  # type: ignore[arg-type]
            _fill(connection)
            for what, change in CHANGES.items():
                connection.execute(change)  # type: ignore[arg-type]
                connection.execute("SELECT count(*) FROM together")
                print(f"  {what}", flush=True)
            print("  verifying", flush=True)
            wrong = _verified(connection)
            peaks.ended.set()
            _report(connection, shared, peaks, wrong)
    finally:
        shutil.rmtree(shared, ignore_errors=True)


def _fill(connection: psycopg.Connection) -> None:
    try:
        connection.execute(f"CREATE MATERIALIZED VIEW local AS {VIEW}")  # type: ignore[arg-type]
        print("  the engine maintains it too", flush=True)
        connection.execute("DROP MATERIALIZED VIEW local")
    except psycopg.Error as error:
        print(f"  the engine: {error.sqlstate} {error.diag.message_primary}", flush=True)
    started = time.perf_counter()
    connection.execute(f"CREATE MATERIALIZED VIEW together WITH (MAINTAIN = spark, PARTITIONS = {PARTS}) AS {VIEW}")  # type: ignore[arg-type]
    print(f"  created in {time.perf_counter() - started:.0f} s", flush=True)


def _verified(connection: psycopg.Connection) -> str:
    """VERIFY, recomputed by the server, or by Spark if it does not fit."""
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    started = time.perf_counter()
    wrong = len(connection.execute("VERIFY MATERIALIZED VIEW together").fetchall())
    return ", ".join([f"{wrong} rows differ, {time.perf_counter() - started:.0f} s", *notices])


def _report(connection: psycopg.Connection, shared: Path, peaks: Peaks, wrong: str) -> None:
    files = sum(path.stat().st_size for path in shared.rglob("*.arrow"))
    jobs = connection.execute(
        "SELECT job, milliseconds, updates, parts_touched, parts_held, rows_read, bytes_read, rows_written,"
        " bytes_written FROM freshet.spark_jobs"
    ).fetchall()
    held = connection.execute("SELECT own_size FROM freshet.views WHERE view = 'together'").fetchall()
    print(f"  {files >> 20} MB of files; held by the server {int(held[0][0]) >> 20} MB; VERIFY: {wrong}")
    for job in jobs:
        print("   ", *job)
    print(f"  most memory, MB: {peaks.most}; load average {os.getloadavg()[1]:.1f}", flush=True)


def main(sizes: list[str]) -> None:
    """Thousands of pairs."""
    with LocalCluster(workers=2, cores=1, memory=EXECUTOR) as cluster:
        for size in sizes or ["500", "2000", "8000"]:
            print(f"{size},000 pairs", flush=True)
            measure(1000 * int(size), cluster.url)


if __name__ == "__main__":
    main(sys.argv[1:])
