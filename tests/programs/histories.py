"""Random histories against the oracle, from the command line: ``python -m tests.programs.histories --count 2000``.

``--dsn`` plays them on a running server instead of one of its own (without restarts); with ``--reference`` that server
is a PostgreSQL, whose plain views check the oracle itself.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

from ivm import workers
from ivm.errors import SqlError
from sql.statements.results import RowsResult
from storage.types.codec import decode
from tests.support.grammar import History, history
from tests.support.grammar_blocks import block_history
from tests.support.model_sql import PLAIN
from tests.support.program import Program
from tests.support.replay import SHAPES, Database, Mismatch, Refused, Replay, drop_all, shrink
from tests.support.sessions import Server


class Connected:
    """A database on a server that was started elsewhere, over the wire."""

    def __init__(self, dsn: str, materialized: str = "MATERIALIZED") -> None:
        self.materialized = materialized
        self.dsn = dsn
        self.connection = psycopg.connect(dsn, autocommit=True, prepare_threshold=None)

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            cursor = self.connection.execute(sql)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise Refused(error.sqlstate or "08006", str(error)) from error

    def restart(self) -> None:
        raise NotImplementedError("a server that somebody else started is not restarted")


class Owned(Connected):
    """A server of its own, which can be restarted on its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = Program(folder)
        super().__init__(self.program.dsn)

    def restart(self) -> None:
        """SIGTERM and a new start, sometimes a kill instead."""
        self.connection.close()
        self.restarts += 1
        if self.restarts % 3:
            assert self.program.terminate() == 0
        else:
            self.program.kill()
        self.program = Program(self.folder)
        self.dsn = self.program.dsn
        self.connection = psycopg.connect(self.dsn, autocommit=True, prepare_threshold=None)

    restarts = 0

    def end(self) -> None:
        """Stop the server."""
        self.connection.close()
        self.program.kill()


class InProcess:
    """A coordinator in this process: no sockets, and a restart takes a tenth of a second."""

    materialized = "MATERIALIZED"

    def __init__(self, folder: Path) -> None:
        self.server = Server(folder)
        self.client = self.server.client()

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            last = self.client.results(sql)[-1]
        except SqlError as error:
            raise Refused(error.sqlstate, error.message) from error
        if not isinstance(last, RowsResult):
            return []
        vectors = zip(last.columns, last.rows.columns(), strict=False)
        columns = [decode(column.type, vector, last.dictionary) for column, vector in vectors]
        return list(zip(*columns, strict=True))

    def restart(self) -> None:
        self.client.close()
        self.server.restart()
        self.client = self.server.client()

    def end(self) -> None:
        """Stop the coordinator."""
        self.server.close()


def fails(candidate: History, database: Database, shape: str) -> bool:
    """Whether a history still fails; empties the database."""
    try:
        Replay(candidate, database, shape).run()
    except (Mismatch, Refused):
        return True
    finally:
        clean(database, candidate)
    return False


def clean(database: Database, candidate: History) -> None:
    """Drop what a history created, whatever its final state."""
    try:
        database.execute("ROLLBACK")
    finally:
        drop_all(database, candidate)


def play(seed: int, database: Database, shape: str, steps: int, blocks: bool = False, asof: int = 0) -> int:
    """Play one seed's history; shrinks and raises a failure. ``blocks``: its views are WITH MUTUALLY RECURSIVE."""
    made = block_history(seed, steps) if blocks else history(seed, steps, recursive=seed % 5 == 0, asof=asof)
    try:
        checked = Replay(made, database, shape).run()
    except (Mismatch, Refused) as error:
        print(f"seed {seed} fails in shape {shape}; shrinking", flush=True)
        clean(database, made)
        small = shrink(made, lambda h: fails(h, database, shape))
        try:
            Replay(small, database, shape).run()
        except (Mismatch, Refused) as smaller:
            clean(database, small)
            raise Mismatch(f"seed {seed}: {smaller}\n{small.steps}") from error
        raise
    clean(database, made)
    return checked


def main() -> None:
    """Parse flags and play histories."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES))
    parser.add_argument("--asof", type=int, default=0, help="how many of a hundred joins are ASOF")
    parser.add_argument("--dsn")
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--blocks", action="store_true", help="views of WITH MUTUALLY RECURSIVE")
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--workers", type=int, default=1, help="threads that share each step, however small")
    options = parser.parse_args()
    workers.use(options.workers, 1)
    if options.reference:
        PLAIN.append(True)
    with tempfile.TemporaryDirectory(prefix="freshet-histories-") as folder:
        if options.dsn:
            database = Connected(options.dsn, "" if options.reference else "MATERIALIZED")
            shapes = [s for s in options.shapes if s != "restart"]
            failed = play_all(database, shapes, options)
        else:
            inside = InProcess(Path(folder))
            failed = play_all(inside, options.shapes, options)
            inside.end()
    sys.exit(1 if failed else 0)


def play_all(database: Database, shapes: list[str], options: argparse.Namespace) -> int:
    """Play every seed in every shape; the number of failures."""
    failed = 0
    for shape in shapes:
        checked, started = 0, time.perf_counter()
        for seed in range(options.first, options.first + options.count):
            try:
                checked += play(seed, database, shape, options.steps, options.blocks, options.asof)
            except Mismatch as error:
                failed += 1
                print(error, flush=True)
                if not options.keep_going:
                    return failed
        seconds = time.perf_counter() - started
        print(f"{shape}: {options.count} histories, {checked} views compared, {seconds:.0f} s", flush=True)
    return failed


if __name__ == "__main__":
    main()
