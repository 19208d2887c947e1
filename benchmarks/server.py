"""The server over the wire, durable: workloads A to E, single-row commits, COPY, and commits beside other work.

``python -m benchmarks.server [names]``. Each figure is a median (and p99) in milliseconds, from sending a transaction
until its acknowledgement and the view's rows are back, unless it says otherwise.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from benchmarks import recompute
from benchmarks.asof import on_the_commit, on_values
from benchmarks.beside import beside
from benchmarks.library import Case, Contents, Plan, cases
from benchmarks.report import MILLISECONDS, SECONDS, Row
from benchmarks.sql_workloads import A_TYPES, Batch

ROOT = Path(__file__).parents[1]


@contextmanager
def server() -> Iterator[str]:
    """A fresh server in a temporary folder; its DSN."""
    with started() as running:
        yield running.dsn


@dataclass(frozen=True, slots=True)
class Running:
    """A server: where it listens, and its process."""

    dsn: str
    process: int


@contextmanager
def started(flags: Sequence[str] = ()) -> Iterator[Running]:
    """A fresh server with the given flags, in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="freshet-bench-"))
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "server.py", "--data", str(folder), "--port", str(port), *flags]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("ready on "):
                break
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield Running(f"host=127.0.0.1 port={port} user=bench dbname=bench", process.pid)
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def port_of(dsn: str) -> int:
    """The port in a connection string."""
    return int(psycopg.conninfo.conninfo_to_dict(dsn)["port"] or 0)


def copy_in(connection: psycopg.Connection, table: str, rows: Sequence[Sequence[Any]]) -> float:
    """COPY rows as text; seconds."""
    data = "".join("\t".join(map(str, row)) + "\n" for row in rows).encode()
    started = time.perf_counter()
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:  # type: ignore[arg-type]
        source = io.BytesIO(data)
        while chunk := source.read(1 << 18):
            copy.write(chunk)
    return time.perf_counter() - started


def load(connection: psycopg.Connection, tables: dict[str, str], rows: dict[str, Any], view: str) -> float:
    """Tables, rows and the view v; seconds."""
    started = time.perf_counter()
    for name, columns in tables.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")  # type: ignore[arg-type]
        copy_in(connection, name, rows[name])
    connection.execute(f"CREATE MATERIALIZED VIEW v AS {view}")  # type: ignore[arg-type]
    return time.perf_counter() - started


def apply(connection: psycopg.Connection, case: Case, batch: Batch) -> float:
    """One batch as one transaction by array parameters, then the read, all in one pipeline; milliseconds for both.

    BEGIN and COMMIT are statements like the others: ``connection.transaction()`` would wait for the server three times.
    """
    started = time.perf_counter()
    with connection.pipeline():
        connection.execute("BEGIN")
        for table, keys in batch.deletes.items():
            key = case.tables[table].split()[0]
            if keys:
                connection.execute(f"DELETE FROM {table} WHERE {key} = ANY(%s::bigint[])", (keys,))  # type: ignore[arg-type]
        for table, rows in batch.updates.items():
            if rows:
                _update(connection, table, rows)
        for table, rows in batch.inserts.items():
            if rows:
                marks = ", ".join(f"%s::{t}[]" for t in A_TYPES.get(table, ("bigint",) * len(rows[0])))
                columns = [list(c) for c in zip(*rows, strict=True)]
                connection.execute(f"INSERT INTO {table} SELECT * FROM unnest({marks})", columns)  # type: ignore[arg-type]
        connection.execute("COMMIT")
        cursor = connection.execute(case.read)  # type: ignore[arg-type]
    cursor.fetchall()
    return 1e3 * (time.perf_counter() - started)


def _update(connection: psycopg.Connection, table: str, rows: list[Any]) -> None:
    columns = [list(c) for c in zip(*rows, strict=True)]
    if table == "orders":
        connection.execute(
            "UPDATE orders SET region = n.region "
            "FROM unnest(%s::bigint[], %s::text[]) AS n(k, region) WHERE order_id = n.k",
            (columns[0], columns[2]),
        )
        return
    if table == "events":
        connection.execute(
            "UPDATE events SET score = n.score FROM unnest(%s::bigint[], %s::bigint[]) AS n(k, score) WHERE id = n.k",
            (columns[0], columns[2]),
        )
        return
    connection.execute(
        "UPDATE lineitems SET qty = n.qty, price = n.price "
        "FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS n(k, qty, price) WHERE line_id = n.k",
        (columns[0], columns[2], columns[3]),
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of the load, milliseconds of every batch by size, and whether the view was right at the end."""

    load: float
    batches: dict[int, list[float]]
    right: bool


def measure(case: Case, plan: Plan) -> Measured:
    """A workload of A to E; at the end the view is compared with what DuckDB computes from the tables' rows."""
    with server() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        made = case.made()
        base = made.base()
        contents = Contents(base)
        seconds = load(connection, case.tables, base, case.view)
        batches: dict[int, list[float]] = {}
        for size, count in plan:
            batches[size] = []
            for batch in made.batches(size, count):
                contents.changes(batch)
                batches[size].append(apply(connection, case, batch))
        rows = connection.execute("SELECT * FROM v").fetchall()
    expected = recompute.expected(case, contents.tables)
    return Measured(seconds, batches, len(rows) == len(expected) and set(rows) == expected)


def times(workload: str, case: str, samples: Sequence[float], limit: float | None = None) -> Row:
    """Median and p99 of milliseconds; the aim is a median below the limit."""
    half, most = (float(np.percentile(samples, q)) for q in (50, 99))
    aim = {} if limit is None else {"aim": f"< {limit:g} ms", "met": half < limit}
    return Row(workload, case, MILLISECONDS, half, most=most, **aim)  # type: ignore[arg-type]


def single_rows() -> list[Row]:
    """One client: a durable INSERT, then a SELECT from the view."""
    with server() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, k bigint, v bigint)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT k, count(*), sum(v) FROM t GROUP BY k")
        samples = []
        for i in range(3000):
            started = time.perf_counter()
            connection.execute("INSERT INTO t VALUES (%s, %s, %s)", (i, i % 10, i), prepare=True)
            connection.execute("SELECT * FROM v", prepare=True).fetchall()
            samples.append(1e3 * (time.perf_counter() - started))
        return [times("single", "durable INSERT, then SELECT of the view", samples[500:], 1.0)]


def many_clients() -> list[Row]:
    """16 clients of pgbench -M prepared, single-row INSERTs, each its own commit; commits a second."""
    pgbench = shutil.which("pgbench") or "/usr/lib/postgresql/15/bin/pgbench"
    if not Path(pgbench).exists():
        print("clients: pgbench is not installed")
        return []
    with server() as dsn, tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id bigint, v bigint)")
            connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*), sum(v) FROM t")
        script.write("\\set i random(1, 1000000000)\nINSERT INTO t VALUES (:i, :i);\n")
        script.flush()
        command = [pgbench, "-n", "-M", "prepared", "-c", "16", "-j", "1", "-T", "10", "-f", script.name, dsn]
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        tps = next(float(line.split("=")[1].split("(")[0]) for line in output.splitlines() if line.startswith("tps"))
        return [over("clients", "16 clients, pgbench -M prepared, single-row INSERTs", "commits/s", tps, 3_000)]


def over(workload: str, case: str, unit: str, rate: float, least: float) -> Row:
    """A rate whose aim is a minimum."""
    return Row(workload, case, unit, rate, aim=f"≥ {least:,.0f} {unit}", met=rate >= least)


def copying() -> list[Row]:
    """COPY of 1M rows of four columns into a table with a primary key and one aggregate view."""
    with server() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, k bigint, v bigint, s bigint)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT k, count(*), sum(v) FROM t GROUP BY k")
        rows = [(i, i % 1000, i * 7, i % 13) for i in range(1_000_000)]
        seconds = copy_in(connection, "t", rows)
        return [over("copy", "COPY 1M rows × 4, primary key, one view", "rows/s", 1e6 / seconds, 300_000)]


def beside_others() -> list[Row]:
    """One client's commits beside a client that reads, copies or creates views over a million rows."""
    with server() as dsn:
        return [
            times("beside", f"{name} ({threads:.1f} threads runnable)", samples)
            for name, samples, threads in beside(dsn)
        ]


def market(measured: Callable[[str], list[Row]]) -> Callable[[], list[Row]]:
    """Measures trades and quotes on a server."""

    def run() -> list[Row]:
        with server() as dsn:
            return measured(dsn)

    return run


COMMITS: dict[str, Callable[[], list[Row]]] = {
    "single": single_rows, "clients": many_clients, "copy": copying, "beside": beside_others,
    "asof": market(on_values), "proctime": market(on_the_commit),
}  # fmt: skip


def main() -> None:
    """Run the named workloads, or all."""
    for name in sys.argv[1:] or [*COMMITS, *cases()]:
        if name in COMMITS:
            rows = COMMITS[name]()
        else:
            case = cases()[name]
            found = measure(case, case.plan)
            rows = [Row(name, "load", SECONDS, found.load)]
            rows += [times(name, f"batch {size}", batch) for size, batch in found.batches.items()]
        for row in rows:
            print(
                f"{row.workload:8} {row.case:24} {row.ours:9.2f} / {row.most}   load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
