"""The main job: a distribution's views over the Debian 12 package index, kept right while the real updates arrive.

``make demo`` runs it: a server on a fresh folder, the base loaded, the views created, 2,981 package updates as one
transaction each, ten libraries removed and restored, every view verified against a recompute.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from pyarrow import parquet

from examples.terminal import BOLD, RESET, Progress, quantile, step, table, title

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
VIEWS = ("needs", "section_dependencies", "needed", "would_break", "pulled_size", "unmet", "library_cycles")
RECURSIVE = ("needed", "would_break", "library_cycles")
TABLES = ("packages", "depends", "provides")
ARRAYS = {
    "packages": "text[], text[], text[], text[], text[], bigint[], bigint[]",
    "depends": "text[], text[], int[], int[], text[], text[], text[]",
    "provides": "text[], text[]",
}
Rows = dict[str, list[tuple[Any, ...]]]


@dataclass(slots=True)
class Tally:
    """The transactions' effects: seconds each, and rows added and removed by view."""

    seconds: list[float] = field(default_factory=list)
    recursive_seconds: list[float] = field(default_factory=list)
    added: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)

    def add(self, seconds: float, changes: dict[str, tuple[int, int]]) -> None:
        """Count one transaction."""
        in_loop = any(sum(changes[v]) for v in RECURSIVE)
        (self.recursive_seconds if in_loop else self.seconds).append(seconds)
        for view, (added, removed) in changes.items():
            self.added[view] += added
            self.removed[view] += removed

    def show(self) -> None:
        """Latencies and changes as two tables."""
        groups = (("changed no recursive view", self.seconds), ("changed a recursive view", self.recursive_seconds))
        table(
            ("transactions that", "count", "median ms", "p99 ms", "max ms"),
            [
                (name, len(s), *(f"{1e3 * quantile(s, q):.2f}" for q in (0.5, 0.99, 1.0)))
                for name, s in groups
            ],
        )  # fmt: skip
        print()
        table(("view", "rows added", "rows removed"), [(v, self.added[v], self.removed[v]) for v in VIEWS])


class Follower:
    """Follows every view through one SUBSCRIBE cursor each."""

    def __init__(self, dsn: str) -> None:
        self.connection = psycopg.connect(dsn)
        for view in VIEWS:
            self.connection.execute(f"DECLARE follow_{view} CURSOR FOR SUBSCRIBE {view} WITH (SNAPSHOT = false)")

    def changes(self) -> dict[str, tuple[int, int]]:
        """Rows added to and removed from each view since the last call."""
        result = {}
        for view in VIEWS:
            diffs = [row[1] for row in self.connection.execute(f"FETCH ALL follow_{view}")]
            result[view] = (sum(d for d in diffs if d > 0), -sum(d for d in diffs if d < 0))
        return result


def read_updates() -> dict[str, Rows]:
    """The update's rows by package and table."""
    updates: dict[str, Rows] = defaultdict(lambda: {t: [] for t in TABLES})
    for name in TABLES:
        for row in parquet.read_table(HERE / f"{name}_update.parquet").to_pylist():
            updates[row["package"]][name].append(tuple(row.values()))
    return updates


def replace_package(connection: psycopg.Connection, package: str, rows: Rows) -> float:
    """One transaction: the package's rows in the three tables are replaced by these; seconds until it is durable."""
    started = time.perf_counter()
    with connection.pipeline(), connection.transaction():
        for name in TABLES:
            connection.execute(f"DELETE FROM {name} WHERE package = %s", (package,))  # type: ignore[arg-type]
            if rows[name]:
                marks = ", ".join(f"%s::{t.strip()}" for t in ARRAYS[name].split(","))
                columns = [list(c) for c in zip(*rows[name], strict=True)]
                connection.execute(f"INSERT INTO {name} SELECT * FROM unnest({marks})", columns)  # type: ignore[arg-type]
    return time.perf_counter() - started


def current_rows(connection: psycopg.Connection, package: str) -> Rows:
    """A package's present rows."""
    return {
        name: connection.execute(f"SELECT * FROM {name} WHERE package = %s", (package,)).fetchall()  # type: ignore[arg-type]
        for name in TABLES
    }


def start_server(folder: Path, port: int) -> subprocess.Popen[str]:
    """A server on a fresh folder, once it says that it is ready."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "server.py", "--data", str(folder), "--port", str(port), "--files", str(HERE)]
    server = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    for line in server.stderr:
        print(f"  {line.rstrip()}", flush=True)
        if line.startswith("ready on "):
            return server
    raise SystemExit(f"the server ended with status {server.wait()} before it was ready")


def load(connection: psycopg.Connection, engine: str) -> None:
    """Create the tables and load the base."""
    connection.execute((HERE / "tables.sql").read_text())  # type: ignore[arg-type]
    for name in TABLES:
        with step(f"COPY {name} FROM '{name}_base.parquet' (engine {engine})") as outcome:
            path = HERE / f"{name}_base.parquet"
            cursor = connection.execute(
                f"COPY {name} FROM '{path}' WITH (FORMAT parquet, ENGINE {engine})"  # type: ignore[arg-type]
            )
            outcome.result = f"{cursor.rowcount:,} rows"


def create_views(connection: psycopg.Connection) -> None:
    """Create the views of views.sql, each in a statement of its own."""
    for statement in (HERE / "views.sql").read_text().split(";"):
        if "CREATE" not in statement:
            continue
        name = statement.split("VIEW ", 1)[1].split()[0]
        with step(f"CREATE {'MATERIALIZED ' if name in VIEWS else ''}VIEW {name}") as outcome:
            connection.execute(statement)  # type: ignore[arg-type]
            if name in VIEWS:
                count = connection.execute(f"SELECT count(*) FROM {name}").fetchone()  # type: ignore[arg-type]
                outcome.result = f"{count[0]:,} rows" if count else ""


def apply_updates(connection: psycopg.Connection, follower: Follower) -> None:
    """The real updates, one transaction a package."""
    updates, tally = read_updates(), Tally()
    progress = Progress(len(updates), "packages updated")
    for number, (package, rows) in enumerate(updates.items(), 1):
        seconds = replace_package(connection, package, rows)
        changes = follower.changes()
        tally.add(seconds, changes)
        said = ", ".join(f"{v} +{a} -{r}" for v, (a, r) in changes.items() if a or r)
        progress.at(number, f"{package}: {said or 'no view changed'}")
    progress.end()
    tally.show()


def remove_and_restore(connection: psycopg.Connection, follower: Follower) -> None:
    """Remove each watched library from the distribution and restore it."""
    rows = []
    libraries = [r[0] for r in connection.execute("SELECT library FROM watched ORDER BY library")]
    tally = Tally()
    for library in libraries:
        kept = current_rows(connection, library)
        gone = replace_package(connection, library, {t: [] for t in TABLES})
        lost = follower.changes()
        tally.add(gone, lost)
        back = replace_package(connection, library, kept)
        tally.add(back, follower.changes())
        changed = (lost[v][0] + lost[v][1] for v in ("needs", "needed", "would_break", "unmet"))
        rows.append((library, f"{1e3 * gone:.1f}", f"{1e3 * back:.1f}", *changed))
    table(("library", "gone ms", "back ms", "needs", "needed", "would_break", "unmet"), rows)


def verify(connection: psycopg.Connection) -> bool:
    """VERIFY every view; whether all were right."""
    right = True
    for view in VIEWS:
        with step(f"VERIFY MATERIALIZED VIEW {view}") as outcome:
            wrong = connection.execute(f"VERIFY MATERIALIZED VIEW {view}").fetchall()  # type: ignore[arg-type]
            outcome.result = f"{len(wrong):,} rows differ"
            right &= not wrong
    return right


def run(folder: Path, port: int, engine: str) -> tuple[subprocess.Popen[str], bool]:
    """The whole demo; the running server, and whether every view was right at the end."""
    title("A server on a fresh folder")
    server = start_server(folder, port)
    dsn = f"host=127.0.0.1 port={port} user=freshet dbname=freshet"
    connection = psycopg.connect(dsn, autocommit=True)
    title("The Debian 12 package index")
    load(connection, engine)
    title("Views that a distribution's maintainer would want (examples/debian/views.sql)")
    create_views(connection)
    follower = Follower(dsn)
    title("The real updates, one transaction a package")
    apply_updates(connection, follower)
    title("Ten libraries removed and restored: rows changed in each view when it goes")
    remove_and_restore(connection, follower)
    title("Every view against a recompute from the tables")
    right = verify(connection)
    follower.connection.close()
    connection.close()
    return server, right


def main() -> None:
    """Flags → demo; ends by itself with --exit, else when interrupted."""
    parser = argparse.ArgumentParser(description="Freshet's demo over the Debian 12 package index")
    parser.add_argument("--exit", action="store_true", help="stop the server and end when done")
    parser.add_argument("--load", choices=("local", "spark"), default="local", help="who reads the base")
    parser.add_argument("--port", type=int, default=7432)
    parser.add_argument("--folder", type=Path, default=ROOT / "demo-data")
    options = parser.parse_args()
    server, right = run(options.folder, options.port, options.load)
    if not options.exit:
        title("The server is up; go on with")
        print(f"  {BOLD}psql -h 127.0.0.1 -p {options.port} -U freshet freshet{RESET}")
        print("  SELECT * FROM pulled_size ORDER BY installed_kib DESC;   -- Ctrl-C here stops the server", flush=True)
        signal.signal(signal.SIGINT, lambda *_: server.terminate())
        server.wait()
    else:
        server.terminate()
        status = server.wait(timeout=10)
        right &= status == 0
        print(f"  the server ended with status {status}", flush=True)
    sys.exit(0 if right else "some view was wrong")


if __name__ == "__main__":
    main()
