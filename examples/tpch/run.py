"""TPC-H's 22 queries as views: loads the tables from Parquet files, creates the views and maintains them under change.

``python -m examples.tpch.run --scale 1 --engine spark`` makes the files (by ``tpchgen-cli``), starts a server on a
fresh folder, loads, creates, changes, and verifies every view by a recompute. Other flags are the server's.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import psycopg

from examples.terminal import Progress, quantile, step, table, title
from examples.tpch.oracle import Oracle
from examples.tpch.refresh import changes, comes, goes
from examples.tpch.script import TABLES, make_files, statements, views

ROOT: Final = Path(__file__).parents[2]


def start_server(folder: Path, files: Path, flags: list[str]) -> tuple[subprocess.Popen[str], str]:
    """A server on a fresh folder, and how to reach it, once it says that it is ready."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "server.py", "--data", str(folder), "--port", "0", "--files", str(files), *flags]
    server = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    for line in server.stderr:
        print(f"  {line.rstrip()}", flush=True)
        if line.startswith("ready on "):
            threading.Thread(target=_show, args=(server.stderr,), daemon=True).start()
            port = line.split()[2].rstrip(",").rpartition(":")[2]
            return server, f"host=127.0.0.1 port={port} user=freshet dbname=freshet"
    raise SystemExit(f"the server ended with status {server.wait()} before it was ready")


def _show(lines: Iterable[str]) -> None:
    for line in lines:
        print(f"  {line.rstrip()}", flush=True)


def load(connection: psycopg.Connection, files: Path, engine: str) -> None:
    """Creates the tables and loads each from its file."""
    for statement in statements("tables.sql"):
        connection.execute(statement)  # type: ignore[arg-type]
    for name in TABLES:
        with step(f"COPY {name} (engine {engine})") as outcome:
            path = files / f"{name}.parquet"
            text = f"COPY {name} FROM '{path}' WITH (FORMAT parquet, ENGINE {engine})"
            outcome.result = f"{connection.execute(text).rowcount:,} rows"  # type: ignore[arg-type]


def create_views(connection: psycopg.Connection, by: str) -> None:
    """Creates the 22 views; ``by``: what hydrates them (HYDRATE)."""
    for name, statement in views().items():
        with step(f"CREATE MATERIALIZED VIEW {name}") as outcome:
            text = statement if by == "local" else statement.replace(" AS\n", f" WITH (HYDRATE = {by}) AS\n", 1)
            connection.execute(text)  # type: ignore[arg-type]
            count = connection.execute(f"SELECT count(*) FROM {name}").fetchone()  # type: ignore[arg-type]
            outcome.result = f"{count[0]:,} rows" if count else ""


def change(connection: psycopg.Connection, rounds: int, oracle: Oracle | None) -> None:
    """Runs rounds of refreshing: inserts, deletes and corrections, one transaction each."""
    progress = Progress(rounds, "rounds")
    seconds: dict[str, list[float]] = {"orders that come": [], "orders that go": [], "corrections": []}
    for number in range(1, rounds + 1):
        for said, made in zip(seconds.values(), (comes, goes, changes), strict=True):
            if oracle is not None:
                oracle.change(made(number))
            started = time.perf_counter()
            with connection.transaction():
                for statement in made(number):
                    connection.execute(statement)  # type: ignore[arg-type]
            said.append(time.perf_counter() - started)
        progress.at(number)
    progress.end()
    figures = [(n, len(s), *(f"{1e3 * quantile(s, q):.1f}" for q in (0.5, 1.0))) for n, s in seconds.items()]
    table(("transactions over all views", "count", "median ms", "max ms"), figures)


def verify(connection: psycopg.Connection) -> bool:
    """VERIFY every view; whether all were right."""
    right = True
    for name in views():
        with step(f"VERIFY MATERIALIZED VIEW {name}") as outcome:
            wrong = connection.execute(f"VERIFY MATERIALIZED VIEW {name}").fetchall()  # type: ignore[arg-type]
            outcome.result = f"{len(wrong):,} rows differ"
            right &= not wrong
    return right


def compare(connection: psycopg.Connection, oracle: Oracle) -> bool:
    """Compares every view with the oracle's answer; whether all were equal."""
    right = True
    for name in views():
        with step(f"{name} against DuckDB") as outcome:
            count, unlike = oracle.difference(connection, name)
            outcome.result = f"{count:,} rows, {unlike:,} differ"
            right &= not unlike
    return right


def show_memory(server: subprocess.Popen[str]) -> None:
    """Prints the server's memory and its peak, if the system reports them."""
    status = Path(f"/proc/{server.pid}/status")
    if status.exists():
        found = dict(line.split(":", 1) for line in status.read_text().splitlines())
        now, most = (int(found[key].split()[0]) / 2**20 for key in ("VmRSS", "VmHWM"))
        load = f"{os.getloadavg()[0]:.1f}"
        print(f"  the server takes {now:.1f} GiB, at most {most:.1f} GiB until now; load average {load}", flush=True)


def main() -> None:
    """Flags → the whole run; its status says whether every view was right."""
    parser = argparse.ArgumentParser(description="TPC-H's 22 queries as maintained views")
    parser.add_argument("--scale", type=float, default=0.1, help="1 is a gigabyte (default: 0.1)")
    parser.add_argument("--engine", choices=("auto", "local", "spark"), default="auto", help="who reads the files")
    parser.add_argument("--hydrate", choices=("auto", "local", "spark"), default="local", help="who fills the views")
    parser.add_argument("--rounds", type=int, default=10, help="of changes (default: 10)")
    parser.add_argument("--oracle", action="store_true", help="compare with DuckDB's answers too")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "tpch", help="for files and data")
    options, flags = parser.parse_known_args()
    files = options.folder / f"sf{options.scale:g}"
    title(f"TPC-H's tables at scale factor {options.scale:g}, as Parquet files")
    make_files(options.scale, files)
    title("A server on a fresh folder")
    server, dsn = start_server(options.folder / "data", files, flags)
    oracle = Oracle(files, options.folder) if options.oracle else None
    with psycopg.connect(dsn, autocommit=True) as connection:
        title("Loading")
        load(connection, files, options.engine)
        show_memory(server)
        title("The 22 views (examples/tpch/views.sql)")
        create_views(connection, options.hydrate)
        show_memory(server)
        title("Orders come and go")
        change(connection, options.rounds, oracle)
        show_memory(server)
        title("Every view against a recompute from the tables")
        right = verify(connection)
        if oracle is not None:
            title("Every view against DuckDB's answer over the same tables and changes")
            right &= compare(connection, oracle)
        show_memory(server)
    server.terminate()
    status = server.wait(timeout=60)
    print(f"  the server ended with status {status}", flush=True)
    sys.exit(0 if right and status == 0 else "some view was wrong")


if __name__ == "__main__":
    main()
