"""The server over the wire, durable: workloads A and C, single-row commits, COPY, and commits beside other work.

``python -m benchmarks.server [names]``. Each figure is a median (and p99) in milliseconds, from sending a transaction
until its acknowledgement and the view's rows are back, unless it says otherwise.
"""

from __future__ import annotations

import io
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.beside import beside
from benchmarks.sql_more import (
    B_TABLES,
    B_VIEW,
    D_TABLES,
    D_VIEW,
    E_TABLES,
    E_VIEWS,
    Components,
    Events,
    Orders,
)  # fmt: skip
from benchmarks.sql_workloads import A_TABLES, A_TYPES, A_VIEW, C_TABLES, C_VIEW, Batch, Graph, Sales

ROOT = Path(__file__).parents[1]
PORT = int(os.environ.get("FRESHET_BENCH_PORT", "7473"))


@contextmanager
def server() -> Iterator[str]:
    """A fresh server in a folder that goes away; its DSN."""
    folder = Path(tempfile.mkdtemp(prefix="freshet-bench-"))
    command = [sys.executable, "server.py", "--data", str(folder), "--port", str(PORT)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("ready on "):
                break
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield f"host=127.0.0.1 port={PORT} user=bench dbname=bench"
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


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


def apply(connection: psycopg.Connection, batch: Batch, read: str) -> float:
    """One batch as one transaction by array parameters, then the read, all in one pipeline; milliseconds for both.

    BEGIN and COMMIT are statements like the others: ``connection.transaction()`` would wait for the server three times.
    """
    started = time.perf_counter()
    with connection.pipeline():
        connection.execute("BEGIN")
        for table, keys in batch.deletes.items():
            key = KEYS.get(table, "id")
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
        cursor = connection.execute(read)  # type: ignore[arg-type]
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


def spread(samples: Sequence[float]) -> str:
    """median / p99 in milliseconds."""
    ordered = sorted(samples)
    return f"{statistics.median(ordered):.2f} / {ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]:.2f}"


def sales(orders: int) -> Callable[[], list[tuple[str, str]]]:
    """Workload A at one size."""

    def run() -> list[tuple[str, str]]:
        with server() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
            made = Sales(orders)
            seconds = load(connection, A_TABLES, made.base(), A_VIEW)
            results = [("load s", f"{seconds:.1f}")]
            for size, count in ((1, 200), (100, 50), (10_000, 10)):
                samples = [apply(connection, b, "SELECT * FROM v") for b in made.batches(size, count)]
                results.append((f"batch {size}", spread(samples)))
            return results

    return run


def graph(nodes: int, plan: tuple[tuple[int, int], ...]) -> Callable[[], list[tuple[str, str]]]:
    """Workload C at one size."""

    def run() -> list[tuple[str, str]]:
        with server() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
            made = Graph(nodes)
            seconds = load(connection, C_TABLES, made.base(), C_VIEW)
            results = [("load s", f"{seconds:.1f}")]
            for size, count in plan:
                samples = [apply(connection, b, "SELECT count(*) FROM v") for b in made.batches(size, count)]
                results.append((f"batch {size}", spread(samples)))
            return results

    return run


def stream(
    made: Callable[[], Any], tables: dict[str, str], view: str, read: str, plan: tuple[tuple[int, int], ...]
) -> Callable[[], list[tuple[str, str]]]:
    """Workloads B, D and E; a view that is refused is reported as that."""

    def run() -> list[tuple[str, str]]:
        with server() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
            data = made()
            try:
                seconds = load(connection, tables, data.base(), view)
            except psycopg.errors.FeatureNotSupported as error:
                return [("refused", str(error).splitlines()[0])]
            results = [("load s", f"{seconds:.1f}")]
            for size, count in plan:
                samples = [apply(connection, b, read) for b in data.batches(size, count)]
                results.append((f"batch {size}", spread(samples)))
            return results

    return run


def single_rows() -> list[tuple[str, str]]:
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
        return [("INSERT + SELECT", spread(samples[500:]))]


def many_clients() -> list[tuple[str, str]]:
    """16 clients of pgbench -M prepared, single-row INSERTs, each its own commit; commits a second."""
    pgbench = shutil.which("pgbench") or "/usr/lib/postgresql/15/bin/pgbench"
    if not Path(pgbench).exists():
        return [("16 clients", "pgbench is not installed")]
    with server() as dsn, tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id bigint, v bigint)")
            connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*), sum(v) FROM t")
        script.write("\\set i random(1, 1000000000)\nINSERT INTO t VALUES (:i, :i);\n")
        script.flush()
        command = [pgbench, "-n", "-M", "prepared", "-c", "16", "-j", "1", "-T", "10", "-f", script.name]
        command += ["-h", "127.0.0.1", "-p", str(PORT), "-U", "bench", "bench"]
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        tps = next((line for line in output.splitlines() if line.startswith("tps")), "tps = ?")
        return [("16 clients", f"{tps.split('=')[1].split('(')[0].strip()} commits/s")]


def copying() -> list[tuple[str, str]]:
    """COPY of 1M rows of four columns into a table with a primary key and one aggregate view."""
    with server() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, k bigint, v bigint, s bigint)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT k, count(*), sum(v) FROM t GROUP BY k")
        rows = [(i, i % 1000, i * 7, i % 13) for i in range(1_000_000)]
        seconds = copy_in(connection, "t", rows)
        return [("COPY 1M rows", f"{1e6 / seconds:,.0f} rows/s")]


def beside_others() -> list[tuple[str, str]]:
    """One client's commits beside a client that reads, copies or creates views over a million rows."""
    with server() as dsn:
        return beside(dsn, spread)


KEYS = {"lineitems": "line_id", "lineitem": "l_id"}
WORKLOADS: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "single": single_rows,
    "clients": many_clients,
    "copy": copying,
    "beside": beside_others,
    "C_1k": graph(1_000, ((1, 200), (10, 50))),
    "C_100k": graph(100_000, ((1, 100), (100, 20))),
    "A_S": sales(100_000),
    "A_L": sales(1_000_000),
    "B": stream(Events, B_TABLES, B_VIEW, "SELECT * FROM v WHERE grp = 7", ((1, 200), (100, 50), (10_000, 10))),
    "D_1k": stream(lambda: Components(1_000), D_TABLES, D_VIEW, "SELECT count(*) FROM v", ((1, 200), (10, 50))),
    "D_100k": stream(lambda: Components(100_000), D_TABLES, D_VIEW, "SELECT count(*) FROM v", ((1, 100), (100, 20))),
    **{
        name: stream(Orders, E_TABLES, view, "SELECT * FROM v", ((1, 100), (600, 20))) for name, view in E_VIEWS.items()
    },
}


def main() -> None:
    """Run the named workloads, or all."""
    for name in sys.argv[1:] or WORKLOADS:
        for what, figure in WORKLOADS[name]():
            print(f"{name:8} {what:18} {figure:>24}   load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
