"""Compares arrangements hydrated by Spark and by the engine: the demo's views, W1, W3, W8 and TPC-H's 22 queries.

    python -m tests.programs.twin_hydration [demo W1 W3 W8 tpch] [--shrink 1] [--scale 0.1] [--here]

A whole server creates each view by Spark, on a cluster of two workers (``--here``: without one, as the short form
does). Beside it the engine hydrates the same plan over the same versions; all state that both keep is compared, row by
row with diffs and rounds. Then rows are inserted and deleted, and every view is verified.
``tests/docs/test_twin_hydration.py`` does the same on little data.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.workloads import Workload, workloads
from examples.debian import demo
from examples.tpch import refresh
from examples.tpch import script as tpch
from ivm.hydration.detached import Detached, detach
from planner.render.dataflow import Installed
from sql.coordination.hydration import Creation
from sql.session import defining
from sql.session.warm import warm
from storage.spark.cluster import LocalCluster
from storage.spark.session import SparkSettings
from tests.support.contents import different, held, updates
from tests.support.sessions import Client, Server
from tests.support.spark_fake import FakeSpark

DAY = 86_400.0
NAMES = ("demo", "W1", "W3", "W8", "tpch")


@dataclass(frozen=True, slots=True)
class Compared:
    """A view's two hydrations. ``different``: the plan's nodes whose contents differ."""

    view: str
    arrangements: int
    updates: int
    different: tuple[int, ...]
    spark: float
    engine: float
    """Seconds."""

    def __str__(self) -> str:
        """A line of the long form."""
        same = f"DIFFERENT at {self.different}" if self.different else "the same"
        return (
            f"  {self.view:<22}{self.arrangements:>4} arrangements {self.updates:>12,} updates  {same}"
            f"  Spark {self.spark:.1f} s, engine {self.engine:.1f} s"
        )


class Twin(Creation):
    """A view hydrated by Spark, and a second time by the engine for comparison only."""

    found: ClassVar[list[Compared]] = []
    _twin: tuple[Detached, Installed] | None = None

    def begin(self) -> bool:
        if not super().begin():
            return False
        plan, view = self._plan, self._view
        assert plan is not None
        assert view is not None
        twin = detach(self.engine.dataflow, lambda flow: self.engine.renderer.beside(flow).install(plan, view.id))
        self._twin = twin
        return True

    def _run_spark(self) -> None:
        started = time.perf_counter()
        super()._run_spark()
        spark = time.perf_counter() - started
        assert self._twin is not None
        twin, installed = self._twin
        started = time.perf_counter()
        twin.run()
        engine = time.perf_counter() - started
        assert self._flow is not None
        assert self._installed is not None
        assert self._view is not None
        mine, theirs = held(self._flow, self._installed), held(twin, installed)
        unlike = tuple(different(mine, theirs))
        self.found.append(Compared(self._view.name, len(theirs), updates(theirs), unlike, spark, engine))

    def finish(self) -> None:
        self._end()
        super().finish()

    def abandon(self) -> None:
        self._end()
        super().abandon()

    def _end(self) -> None:
        if self._twin is not None:
            self._twin[0].abandon()
            self._twin = None


@contextmanager
def compared() -> Iterator[list[Compared]]:
    """The comparisons of the views that Spark hydrates in this context."""
    Twin.found.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(defining, "Replacement", Twin)
        yield Twin.found


@dataclass(frozen=True, slots=True)
class Scenario:
    """``tables``: statements; ``files``: the files to load into each table; ``views``: statements that create views;
    ``changes``: statements to run afterwards."""

    tables: Sequence[str]
    files: dict[str, Path]
    views: Sequence[str]
    changes: Sequence[str]

    def run(self, client: Client, say: Callable[[object], None] = lambda _: None) -> None:
        """Check that every view is correct after the changes. ``say``: gets each ``Compared`` as soon as it is
        known."""
        for statement in self.tables:
            client.run(statement)
        for table, path in self.files.items():
            client.run(f"COPY {table} FROM '{path}' WITH (FORMAT parquet, ENGINE local)")
        names = []
        for statement in self.views:
            head, _, query = statement.partition(" AS\n")
            if "MATERIALIZED" in head:
                names.append(head.split()[-1])
                head += " WITH (HYDRATE = spark)"
            client.run(f"{head} AS\n{query}")
            if "MATERIALIZED" in head:
                say(Twin.found[-1])
        for statement in self.changes:
            client.run(statement)
        for name in names:
            assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == [], name


def statements(path: Path) -> list[str]:
    """A script's statements, without comments."""
    text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("--"))
    return [s.strip() for s in text.split(";") if s.strip()]


def debian(folder: Path, shrink: int) -> Scenario:
    """The demo's views over the package index, with one package in ``shrink``."""
    files = {}
    for name in demo.TABLES:
        table = pq.read_table(demo.HERE / f"{name}_base.parquet")
        kept = sorted(table["package"].unique().to_pylist())[::shrink]
        chosen = table.filter(pc.is_in(table["package"], pa.array(kept)))
        files[name] = _written(folder / f"{name}.parquet", chosen)
    changes = (
        "DELETE FROM packages WHERE package LIKE 'lib%a'", "DELETE FROM depends WHERE package LIKE '%s'",
        "UPDATE packages SET section = 'libs', installed_kib = installed_kib + 1 WHERE package LIKE '%e'",
    )  # fmt: skip
    return Scenario(statements(demo.HERE / "tables.sql"), files, statements(demo.HERE / "views.sql"), changes)


def engine(name: str, folder: Path, shrink: int) -> Scenario:
    """A workload of ``benchmarks.workloads``, with nodes and edges divided by ``shrink``."""
    workload = workloads(shrink)[name]
    files = {}
    for table, rows in [*workload.initial.items(), *((t, f(0, workload.size)) for t, f in workload.tables.items())]:
        columns = dict(zip(_columns(workload, table), rows.T, strict=True))
        files[table] = _written(folder / f"{table}.parquet", pa.table(columns))
    changes = [statement for low in (0, 3) for statement in _moved(workload, low, low + 3)]
    return Scenario(workload.ddl, files, [f"CREATE MATERIALIZED VIEW {name} AS\n{workload.view}"], changes)


def _columns(workload: Workload, table: str) -> list[str]:
    (ddl,) = (text for text in workload.ddl if text.startswith(f"CREATE TABLE {table} "))
    return [column.split()[0] for column in ddl.partition("(")[2].split(",")]


def _moved(workload: Workload, low: int, high: int) -> Iterator[str]:
    """Updates low … high − 1."""
    edges = workload.tables["edges"]
    for source, target in edges(low, high).tolist():
        yield f"DELETE FROM edges WHERE src = {source} AND dst = {target}"
    new = edges(workload.size + low, workload.size + high).tolist()
    yield f"INSERT INTO edges VALUES {', '.join(f'({source}, {target})' for source, target in new)}"


def tpc_h(folder: Path, scale: float) -> Scenario:
    """TPC-H's 22 queries, and two rounds of orders inserted and deleted. Below a scale of 0.01 the specification's rule
    names a part's supplier twice: once is enough."""
    tpch.make_files(scale, folder)
    if scale < 0.01:
        path = folder / "partsupp.parquet"
        once = {(offer["ps_partkey"], offer["ps_suppkey"]): offer for offer in pq.read_table(path).to_pylist()}
        _written(path, pa.Table.from_pylist([*once.values()], pq.read_schema(path)))
    files = {name: folder / f"{name}.parquet" for name in tpch.TABLES}
    rounds = (made(number) for number in (1, 2) for made in (refresh.comes, refresh.goes, refresh.changes))
    changes = [statement for made in rounds for statement in made]
    return Scenario(tpch.statements("tables.sql"), files, list(tpch.views().values()), changes)


def _written(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path)
    return path


def scenario(name: str, folder: Path, shrink: int, scale: float) -> Scenario:
    """One of ``NAMES``; its files are written to the folder."""
    match name:
        case "demo":
            return debian(folder, shrink)
        case "tpch":
            return tpc_h(folder, scale)
    return engine(name, folder, shrink)


def run(name: str, url: str | None, options: argparse.Namespace, folder: Path) -> bool:
    """Run one scenario on the cluster at ``url``; None: with Spark's exchange in this process. Whether all was
    equal."""
    for part in ("files", "shared"):
        (folder / part).mkdir()
    made = scenario(name, folder / "files", options.shrink, options.scale)
    spark = None if url is None else SparkSettings(url, folder / "shared", memory=options.memory)
    server = Server(folder / "data", (folder / "files",), memory=8 << 30, spark=spark, patience=DAY)
    if url is None:
        server.coordinator.spark._session = FakeSpark(folder / "shared")  # type: ignore[assignment]
    client = server.client()
    try:
        with compared() as found:
            made.run(client, print)
    finally:
        client.close()
        server.close()
    return bool(found) and not any(view.different for view in found)


@contextmanager
def exchange(options: argparse.Namespace) -> Iterator[str | None]:
    """The cluster's URL; None if there is no cluster."""
    if options.here:
        yield None
        return
    with LocalCluster(memory=options.memory) as cluster:
        yield cluster.url


def main() -> None:
    """Run the named scenarios, or all."""
    parser = argparse.ArgumentParser(description="Views hydrated by Spark beside the same hydrated by the engine")
    parser.add_argument("names", nargs="*", default=NAMES, help=f"of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--shrink", type=int, default=1, help="the demo's packages, W1's, W3's and W8's nodes and edges"
                        " divided by it")  # fmt: skip
    parser.add_argument("--scale", type=float, default=0.1, help="TPC-H's scale factor (default: %(default)s)")
    parser.add_argument("--memory", default="1g", help="of the driver and of each executor (default: %(default)s)")
    parser.add_argument("--here", action="store_true", help="no cluster: what executors do, one part after the other")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # ends the cluster too
    asyncio.run(warm(print))
    right = True
    with exchange(options) as url:
        for name in options.names:
            print(f"{name}, load average {os.getloadavg()[0]:.1f}", flush=True)
            with tempfile.TemporaryDirectory(prefix="freshet-twin-") as folder:
                right &= run(name, url, options, Path(folder))
    sys.exit(0 if right else "some contents differ")


if __name__ == "__main__":
    main()
