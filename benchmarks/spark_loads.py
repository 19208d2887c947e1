"""Loads of Parquet files by Spark and by the server itself, beside plain Spark and DuckDB doing the same.

    python -m benchmarks.spark_loads [--rows 1000000 10000000] [--repeat 3] [--format parquet] [--only "table"]

Generated files of four columns: id bigint, account int, amount double precision, city text of 1,000 values. Plain Spark
reads them, exchanges the rows by id and writes them as Parquet; DuckDB makes a table of them in a file. Freshet loads
them by COPY, into a table alone, into one with a primary key, and into one that a view counts and adds up by city. By
turns, Spark up already on both sides. Memory is the server process's peak: all of it, and what no file backs. Beside
each load another client commits a row every 10 ms.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from benchmarks.report import FOLDER, HERE, SECONDS, Row, Run, at_most, now, page, publish, runs_of, save
from benchmarks.server import started
from benchmarks.svg import Axis, Chart, Series, draw
from storage.spark.session import SparkSession, SparkSettings

FILE_ROWS: Final = 1_250_000
CITIES: Final = 1_000
AIM: Final = 2.0
AIM_ROWS: Final = 10_000_000
TABLE_OF_LOADS: Final = "Loads, by Spark and by the server, beside plain Spark and DuckDB on the same cores"
PICTURE: Final = FOLDER / "loads.svg"
TABLE: Final = "id bigint, account int, amount double precision, city text"
SPARK_COLUMNS: Final = "id long, account int, amount double, city string"
KEYED: Final = "id bigint PRIMARY KEY, account int, amount double precision, city text"
VIEW: Final = "SELECT city, count(*) AS n, sum(account) AS s FROM t GROUP BY city"


def write_files(folder: Path, rows: int, format_: str) -> None:
    """The rows, in files of ``FILE_ROWS``."""
    random = np.random.default_rng(rows)
    cities = pa.array([f"city {i}" for i in range(CITIES)])
    for number, first in enumerate(range(0, rows, FILE_ROWS)):
        count = min(FILE_ROWS, rows - first)
        chosen = pa.array(random.integers(0, CITIES, count, np.int32))
        table = pa.table({
            "id": np.arange(first, first + count),
            "account": random.integers(0, 1_000_000, count, np.int32),
            "amount": np.round(random.random(count) * 1e6) / 100,
            "city": pa.DictionaryArray.from_arrays(chosen, cities).cast(pa.string()),
        })  # fmt: skip
        if format_ == "csv":
            csv.write_csv(table, folder / f"part-{number:04}.csv", csv.WriteOptions(include_header=False))
        else:
            pq.write_table(table, folder / f"part-{number:04}.parquet")


class Peak:
    """A process's peak memory in bytes from now on: ``total``, and ``own``, which no file backs."""

    def __init__(self, process: int) -> None:
        self.total = self.own = 0
        self._status = Path(f"/proc/{process}/status")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            found = dict(line.split(":", 1) for line in self._status.read_text().splitlines())
            own, total = (1024 * int(found[name].split()[0]) for name in ("RssAnon", "VmRSS"))
            self.own, self.total = max(self.own, own), max(self.total, total)

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


def plain_spark(session: Any, files: Path, scratch: Path, format_: str) -> float:
    """Seconds of reading, exchanging and writing."""
    out = scratch / "plain"
    started = time.perf_counter()
    reader = session.read.schema(SPARK_COLUMNS) if format_ == "csv" else session.read
    reader.format(format_).load(str(files)).repartition("id").write.parquet(out.as_uri())
    seconds = time.perf_counter() - started
    shutil.rmtree(out)
    return seconds


def by_duckdb(files: Path, scratch: Path, format_: str) -> float:
    """Seconds of making a table of them, durable."""
    target = scratch / "plain.duckdb"
    with duckdb.connect(str(target), config={"threads": 2}) as connection:
        started = time.perf_counter()
        connection.execute(f"CREATE TABLE t AS SELECT * FROM read_{format_}('{files}/*.{format_}')")
        connection.execute("CHECKPOINT")
        seconds = time.perf_counter() - started
    target.unlink()
    return seconds


class Neighbour:
    """A client that commits a row every 10 ms into its own table; ``longest``: its longest commit, in s."""

    def __init__(self, dsn: str) -> None:
        self.longest = 0.0
        self._dsn = dsn
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS beside (n int)")
            while not self._ended.wait(0.01):
                started = time.perf_counter()
                connection.execute("INSERT INTO beside VALUES (1)", prepare=True)
                self.longest = max(self.longest, time.perf_counter() - started)

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


class Loader:
    """A server whose loads of the files are timed."""

    def __init__(self, dsn: str, process: int, format_: str) -> None:
        self._dsn = dsn
        self._format = format_
        self._process = process
        self.peaks: dict[str, Peak] = {}
        self.beside: dict[str, float] = {}
        with self._connected() as connection:  # Spark, its Python workers and their kernels
            connection.execute(f"CREATE TABLE t ({TABLE})")  # type: ignore[arg-type]
            connection.execute(f"COPY t FROM 'few' WITH (FORMAT {format_}, ENGINE spark)")  # type: ignore[arg-type]
            connection.execute("DROP TABLE t")

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection]:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            yield connection

    def load(self, engine: str, columns: str, view: bool, rows: int) -> float:
        """Seconds until the commit is acknowledged."""
        with self._connected() as connection:
            connection.execute(f"CREATE TABLE t ({columns})")  # type: ignore[arg-type]
            if view:
                connection.execute(f"CREATE MATERIALIZED VIEW v AS {VIEW}")  # type: ignore[arg-type]
            peak, neighbour = Peak(self._process), Neighbour(self._dsn)
            started = time.perf_counter()
            done = connection.execute(f"COPY t FROM 'files' WITH (FORMAT {self._format}, ENGINE {engine})")  # type: ignore[arg-type]
            seconds = time.perf_counter() - started
            peak.end()
            neighbour.end()
            assert done.rowcount == rows
            name = f"{engine}, {'view' if view else 'key' if 'KEY' in columns else 'table'}"
            self.peaks[name] = max(self.peaks.get(name, peak), peak, key=lambda found: found.own)
            self.beside[name] = max(self.beside.get(name, 0.0), neighbour.longest)
            connection.execute("DROP TABLE t CASCADE")
        return seconds


def measure(
    rows: int, repeat: int, format_: str, master: str, memory: str, only: list[str]
) -> dict[str, list[float]]:  # fmt: skip
    """Seconds of each side, in turns."""
    scratch = Path(tempfile.mkdtemp(prefix="freshet-loads-"))
    found: dict[str, list[float]] = {}
    try:
        for name, count in (("few", 10_000), ("files", rows)):
            (scratch / name).mkdir()
            write_files(scratch / name, count, format_)
        flags = ["--files", str(scratch), "--spark", master, "--spark-memory", "3GiB", "--memory", memory]
        with SparkSession(SparkSettings(master, memory="3g")) as session, started(flags) as running:
            plain_spark(session, scratch / "few", scratch, format_)
            loader = Loader(running.dsn, running.process, format_)
            sides: dict[str, Callable[[], float]] = {
                "plain Spark": lambda: plain_spark(session, scratch / "files", scratch, format_),
                "DuckDB": lambda: by_duckdb(scratch / "files", scratch, format_),
            } | {
                f"Freshet by {engine}, {what}": lambda e=engine, c=columns, v=view: loader.load(e, c, v, rows)  # type: ignore[misc]
                for engine in ("spark", "local")
                for what, columns, view in (("table", TABLE, False), ("key", KEYED, False), ("view", TABLE, True))
            }
            for turn in range(repeat):
                for name, side in sides.items():
                    if not only or any(part in name for part in only):
                        seconds = side()
                        found.setdefault(name, []).append(seconds)
                        print(f"  {rows:>11,} rows, turn {turn + 1}: {name:28} {seconds:7.2f} s", flush=True)
            for name, peak in loader.peaks.items():
                print(f"  {name:20} server's peak {peak.total >> 20:,} MB, of its own {peak.own >> 20:,} MB; "
                      f"the longest commit beside it {1e3 * loader.beside[name]:,.0f} ms")  # fmt: skip
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return found


def told(format_: str, rows: int, found: dict[str, list[float]]) -> list[Row]:
    """The figures as rows: for each kind of table, Freshet's load by Spark beside the others."""
    seconds = {name: median(values) for name, values in found.items()}
    plain = seconds.get("plain Spark")
    made = []
    for what in ("table", "key", "view"):
        ours, local = (seconds.get(f"Freshet by {engine}, {what}") for engine in ("spark", "local"))
        if ours is None or local is None:
            continue
        rivals = {"the server itself" + HERE: local}
        rivals |= {name + HERE: seconds[name] for name in ("plain Spark", "DuckDB") if name in seconds}
        case = f"{rows / 1e6:g}M rows" + ("" if what == "table" else f", with a {what}")
        row: dict[str, Any] = {"workload": f"{format_} load", "case": case, "unit": SECONDS, "ours": ours,
                               "rivals": rivals}  # fmt: skip
        if plain is None:
            made.append(Row(**row))
        else:
            aim = AIM if (format_, rows) == ("parquet", AIM_ROWS) else None
            made.append(at_most(row, ours / plain, aim, "plain Spark"))
    return made


def picture(runs: Sequence[Run]) -> Chart:
    """Seconds by rows, of tables without keys or views, a line for each format and engine."""
    lines: list[Series] = []
    for run in runs:
        alone = [row for row in run.rows if row.case.endswith(" rows")]
        ways: list[tuple[str, Callable[[Row], float | None]]] = [("by Spark", lambda row: row.ours)]
        ways += [(way, partial(_rival, way + HERE)) for way in ("the server itself", "plain Spark")]
        for way, seconds in ways:
            points = tuple(sorted((_million(row), at) for row in alone if (at := seconds(row)) is not None))
            lines.append(Series(f"{run.rows[0].workload}, {way}", points, len(lines), dashed="plain" in way))
    low, high = min(run.load[0] for run in runs), max(run.load[1] for run in runs)
    note = f"{runs[0].date}, {os.cpu_count()} cores, load {low:.1f} to {high:.1f}"
    x, y = Axis("million rows (log)", log=True), Axis("seconds (log)", log=True)
    return Chart("Loads of four columns", note, x, y, tuple(lines))


def _rival(way: str, row: Row) -> float | None:
    return row.rivals.get(way)


def _million(row: Row) -> float:
    return float(row.case.partition("M")[0])


def keep(format_: str, run: Run) -> None:
    """Stores a run in docs/benchmarks, and draws all stored runs."""
    kept = save({f"{format_} loads": run})
    publish(page(kept))
    PICTURE.write_text(draw(picture([run for run in runs_of(kept).values() if run.table == TABLE_OF_LOADS])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, AIM_ROWS])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--format", choices=["parquet", "csv"], default="parquet")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="8GiB")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--publish", action="store_true", help="keep the figures in docs/benchmarks")
    given = parser.parse_args()
    date, before = now(), os.getloadavg()[0]
    kept: list[Row] = []
    for rows in given.rows:
        found = measure(rows, given.repeat, given.format, given.master, given.memory, given.only)
        plain = median(found.get("plain Spark", [float("nan")]))
        for name, seconds in found.items():
            print(f"{rows:>11,} rows: {name:28} {median(seconds):7.2f} s  {median(seconds) / plain:5.2f} x plain Spark")
        kept += told(given.format, rows, found)
    if given.publish:
        keep(given.format, Run(TABLE_OF_LOADS, date, (before, os.getloadavg()[0]), 1.0, tuple(kept)))


if __name__ == "__main__":
    main()
