"""First contents of views: by Spark, by the server itself, and beside both what plain Spark SQL takes for the query.

    python -m benchmarks.spark_hydration [--rows 1000000 10000000] [--views join loop] [--turns 3] [--spark local[2]]

``join``: orders with their customers, count, sum and max by region and city; ``loop``: what can be reached in a graph.
The server has the rows in its tables; plain Spark reads the same rows from Parquet and collects the result. Ways take
turns; Spark runs already. ``--publish`` keeps the figures in docs/benchmarks and draws the crossover.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import report
from benchmarks.report import MEGABYTES, SECONDS, Row, Run
from benchmarks.server import Running, started
from benchmarks.spark_loads import Peak
from benchmarks.svg import Axis, Chart, Series, draw
from storage.spark.session import SparkSession, SparkSettings

ROWS: Final = (1_000_000, 10_000_000)
TURNS: Final = 3
GROUP_ROWS: Final = 1 << 20
TABLE: Final = "Hydration by Spark, beside plain Spark SQL on the same cores"
AIM: Final = 3.0
PICTURE: Final = report.FOLDER / "hydration.svg"
WAYS: Final = ("plain", "spark", "local")


def orders(rows: int) -> dict[str, pa.Table]:
    """Orders, and a tenth as many customers in 8 regions and 400 cities."""
    rng = np.random.default_rng(7)
    customers = max(rows // 10, 1)
    number = np.arange(customers)
    region, city = number % 8, number * 2654435761 % 400
    return {
        "orders": pa.table(
            {
                "id": pa.array(np.arange(rows)),
                "customer": pa.array(rng.integers(0, customers, rows, np.int32)),
                "amount": pa.array(rng.integers(1, 1_000_000, rows, np.int32)),
                "day": pa.array(rng.integers(0, 3650, rows, np.int32), pa.date32()),
            }
        ),
        "customers": pa.table(
            {
                "id": pa.array(number.astype(np.int32)),
                "region": pa.array([f"region {i}" for i in region.tolist()]),
                "city": pa.array([f"city {i}" for i in city.tolist()]),
            }
        ),
    }


def graph(rows: int) -> dict[str, pa.Table]:
    """Edges between a quarter as many nodes, and ten start nodes."""
    rng = np.random.default_rng(11)
    nodes = max(rows // 4, 1)
    source, target = rng.integers(0, nodes, (2, rows), np.int32)
    return {
        "edges": pa.table({"source": pa.array(source), "target": pa.array(target)}),
        "roots": pa.table({"node": pa.array(source[:10])}),
    }


@dataclass(frozen=True, slots=True)
class View:
    """``tables``: DDL of the columns; ``plain``: whether Spark SQL can run the same query."""

    tables: dict[str, str]
    made: Callable[[int], dict[str, pa.Table]]
    query: str
    plain: bool = True


VIEWS: Final = {
    "join": View(
        {
            "orders": "id bigint, customer int, amount int, day date",
            "customers": "id int PRIMARY KEY, region text, city text",
        },
        orders,
        "SELECT c.region, c.city, count(*) AS n, sum(o.amount) AS total, max(o.amount) AS largest "
        "FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.region, c.city",
    ),
    "loop": View(
        {"edges": "source int, target int", "roots": "node int"},
        graph,
        "WITH RECURSIVE reached (node) AS (SELECT node FROM roots UNION SELECT e.target FROM reached r "
        "JOIN edges e ON e.source = r.node) SELECT node % 100 AS block, count(*) AS n FROM reached GROUP BY node % 100",
        plain=False,
    ),
}


@dataclass(slots=True)
class Plain:
    """Spark SQL over Parquet, in a session of its own."""

    session: Any
    folder: Path
    view: View

    def __post_init__(self) -> None:
        for name in self.view.tables:
            self.session.read.parquet(str(self.folder / name)).createOrReplaceTempView(name)

    def run(self) -> set[tuple[Any, ...]]:
        """The query's rows."""
        return {tuple(row) for row in self.session.sql(self.view.query).collect()}


@dataclass(slots=True)
class Ours:
    """A server that has the rows in its tables."""

    server: Running
    connection: psycopg.Connection
    view: View

    def load(self, folder: Path) -> None:
        """All tables, from Parquet."""
        for name, columns in self.view.tables.items():
            self.connection.execute(f"CREATE TABLE {name} ({columns})")  # type: ignore[call-overload]
            self.connection.execute(f"COPY {name} FROM '{folder / name}' WITH (FORMAT parquet, ENGINE local)")  # type: ignore[call-overload]
        self.connection.execute("CREATE TABLE small (a int)")
        self.connection.execute("INSERT INTO small VALUES (1)")

    def start_spark(self) -> None:
        """Starts Spark, which a server stops after a minute without use."""
        self._hydrate("started", "spark", "SELECT a, count(*) AS n FROM small GROUP BY a")

    def run(self, by: str) -> set[tuple[Any, ...]]:
        """Creates the view; gives its rows."""
        self._hydrate("v", by, self.view.query)
        return set(self.connection.execute("SELECT * FROM v").fetchall())

    def _hydrate(self, name: str, by: str, query: str) -> None:
        self.connection.execute(f"DROP MATERIALIZED VIEW IF EXISTS {name}")  # type: ignore[call-overload]
        self.connection.execute(f"CREATE MATERIALIZED VIEW {name} WITH (HYDRATE = {by}) AS {query}")  # type: ignore[call-overload]


@dataclass(slots=True)
class Found:
    """The result of one way: seconds of each turn, and the server's growth in bytes."""

    seconds: list[float]
    grown: list[int]

    @property
    def half(self) -> float:
        return median(self.seconds)


def measure(name: str, rows: int, turns: int, settings: SparkSettings, flags: Sequence[str]) -> list[Row]:
    """One view over so many rows; the first turn of each way is not counted."""
    view = VIEWS[name]
    with tempfile.TemporaryDirectory(prefix="freshet-bench-") as made:
        folder = Path(made)
        for table, contents in view.made(rows).items():
            (folder / table).mkdir()
            pq.write_table(contents, folder / table / "rows.parquet", row_group_size=GROUP_ROWS)
        memory = f"{settings.memory.removesuffix('m')}MiB"
        shared = ("--files", made, "--spark", settings.master, "--spark-memory", memory, *flags)
        plain = SparkSession(settings)
        try:
            with started(shared) as server, psycopg.connect(server.dsn, autocommit=True) as connection:
                ours = Ours(server, connection, view)
                begun = time.perf_counter()
                ours.load(folder)
                print(f"{name}, {rows:,} rows: loaded in {time.perf_counter() - begun:.1f} s", flush=True)
                return told(name, rows, by_turns(ours, plain, folder, turns))
        finally:
            plain.stop()


def by_turns(ours: Ours, plain: SparkSession, folder: Path, turns: int) -> dict[str, Found]:
    """Measures each way in turns. AssertionError if their rows differ."""
    found = {way: Found([], []) for way in WAYS if way != "plain" or ours.view.plain}
    expected: set[tuple[Any, ...]] | None = None
    for turn in range(turns + 1):
        for way, kept in found.items():
            if way == "plain":
                with plain as session:
                    rival = Plain(session, folder, ours.view)
                    begun = time.perf_counter()
                    rows = rival.run()
                    seconds, grown = time.perf_counter() - begun, 0
            else:
                seconds, grown, rows = timed(ours, way)
            print(f"  {way:6} {seconds:7.2f} s   load {os.getloadavg()[0]:.1f}", flush=True)
            assert expected is None or rows == expected, f"{way} gives other rows"
            expected = rows
            if turn:
                kept.seconds.append(seconds)
                kept.grown.append(grown)
    return found


def timed(ours: Ours, by: str) -> tuple[float, int, set[tuple[Any, ...]]]:
    """Seconds, the largest growth of the server's memory meanwhile, rows."""
    if by == "spark":
        ours.start_spark()
    ours.connection.execute("DROP MATERIALIZED VIEW IF EXISTS v")
    before = Peak(ours.server.process)
    time.sleep(0.2)
    before.end()
    peak = Peak(ours.server.process)
    begun = time.perf_counter()
    rows = ours.run(by)
    seconds = time.perf_counter() - begun
    peak.end()
    return seconds, max(peak.own - before.own, 0), rows


def told(name: str, rows: int, found: dict[str, Found]) -> list[Row]:
    """The figures as rows."""
    spark, local = found["spark"], found["local"]
    case = f"{rows / 1e6:g}M rows"
    theirs = found.get("plain")
    rivals = {"the server itself" + report.HERE: local.half}
    row: dict[str, Any] = {"workload": name, "case": case, "unit": SECONDS, "ours": spark.half, "rivals": rivals}
    if theirs is None:
        made = [Row(**row, ratio=spark.half / local.half)]
    else:
        rivals["plain Spark SQL" + report.HERE] = theirs.half
        ratio = spark.half / theirs.half
        aim = AIM if rows >= max(ROWS) else None
        made = [report.at_most(row, ratio, aim, "plain Spark")]
    grown = {way: median(kept.grown) / 1e6 for way, kept in found.items()}
    memory = Row(name, "the server's memory grows by", MEGABYTES, grown["spark"],
                 {"the server itself" + report.HERE: grown["local"]})  # fmt: skip
    return [*made, memory]


def picture(runs: Sequence[Run]) -> Chart:
    """Seconds by rows, a line for each view and way."""
    lines: list[Series] = []
    for run in runs:
        timed_rows = [row for row in run.rows if row.unit == SECONDS]
        name = run.rows[0].workload
        ways = {f"{name}, by Spark": lambda row: row.ours}
        ways |= {f"{name}, {way.removesuffix(report.HERE)}": partial(_rival, way) for way in timed_rows[0].rivals}
        for way, seconds in ways.items():
            points = tuple(sorted((_million(row), seconds(row)) for row in timed_rows))
            lines.append(Series(way, points, len(lines), dashed="plain" in way))
    low, high = min(run.load[0] for run in runs), max(run.load[1] for run in runs)
    note = f"{runs[0].date}, {os.cpu_count()} cores, load {low:.1f} to {high:.1f}"
    x, y = Axis("million rows (log)", log=True), Axis("seconds (log)", log=True)
    return Chart("First contents of a view", note, x, y, tuple(lines))


def _rival(way: str, row: Row) -> float:
    return row.rivals[way]


def _million(row: Row) -> float:
    return float(row.case.partition("M")[0])


def main() -> None:
    """Flags → figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--views", nargs="+", choices=VIEWS, default=[*VIEWS])
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--spark", default="local[2]", help="plain Spark's master, and the server's")
    parser.add_argument("--spark-memory", type=int, default=2048, help="in MiB, of either")
    parser.add_argument("--memory", default="8GiB", help="the server's")
    parser.add_argument("--publish", action="store_true", help="keep the figures in docs/benchmarks")
    options = parser.parse_args()
    settings = SparkSettings(options.spark, memory=f"{options.spark_memory}m", idle_seconds=600)
    for name in options.views:
        date, before = report.now(), os.getloadavg()[0]
        rows = [
            row
            for count in options.rows
            for row in measure(name, count, options.turns, settings, ("--memory", options.memory))
        ]
        run = Run(TABLE, date, (before, os.getloadavg()[0]), 1.0, tuple(rows))
        print(report.table(TABLE, [run]), flush=True)
        if options.publish:
            kept = report.save({f"hydration {name}": run})
            report.publish(report.page(kept))
            PICTURE.write_text(draw(picture([run for run in report.runs_of(kept).values() if run.table == TABLE])))


if __name__ == "__main__":
    main()
