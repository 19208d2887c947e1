"""kill -9 of executors and of the server while Spark loads: a load has all of its rows or none, and a retry completes
it.

    python -m tests.programs.spark_kills [--executors 50] [--servers 20] [--rows 120000] [--seed N]

Each round loads the same files under a new id into a table that feeds a view, kills at a random moment, checks the
table, and retries the load until it succeeds. It runs on a cluster of two workers on this machine, which stays up. A
kill counts if the load was running: it had not answered, and the executor was busy. A third of the server's kills wait
until Spark is done and the rows are being added.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from storage.spark.cluster import LocalCluster
from tests.support.processes import busiest, executors
from tests.support.program import Program
from tests.support.spark_local import hurry

TRIES: Final = 4
FILES: Final = 6
KEPT_LOADS: Final = 6
"""The number of loads after which the table is emptied, so that checking it does not become slower."""
EACH: Final = (
    "SELECT count(*), coalesce(min(id), -1), coalesce(max(id), -1), coalesce(min(n), 0), coalesce(max(n), 0) FROM"
    " (SELECT id, count(*) AS n FROM t WHERE note = 'note ' || id % 997 AND amount = id % 1000 GROUP BY id) AS each"
)
"""The number of ids, the least and the greatest, and the multiplicity of the rarest and of the most frequent."""
NO_ANSWER: Final = "no answer"


def write_files(folder: Path, rows: int) -> int:
    """Write the files; their number of rows, with ids from 0 on."""
    folder.mkdir(parents=True)
    each = rows // FILES
    for i in range(FILES):
        ids = list(range(i * each, (i + 1) * each))
        table = pa.table({"id": ids, "note": [f"note {n % 997}" for n in ids], "amount": [n % 1000 for n in ids]})
        pq.write_table(table, folder / f"{i}.parquet")
    return each * FILES


@dataclass(slots=True)
class Kills:
    """One run. ``rows``: of a load; ``loads``: the number of loads in the table; ``usual``: the seconds of an
    undisturbed load."""

    cluster: LocalCluster
    folder: Path
    rows: int
    random: Random
    loads: int = 0
    usual: float = 10.0
    seen: Counter[str] = field(default_factory=Counter)
    program: Program | None = None

    def start(self) -> Program:
        """Start the server, on the same data each time."""
        self.program = Program(
            self.folder / "data", "--files", str(self.folder / "files"), "--spark", self.cluster.url,
            "--spark-shared", str(self.folder / "shared"), "--spark-memory", "500MiB",
        )  # fmt: skip
        return self.program

    def found(self) -> int:
        """The number of whole loads in the table, checked row by row; its view must agree."""
        assert self.program is not None
        with self.program.connect() as client:
            client.execute("BEGIN")
            ((count,),) = client.execute("SELECT count(*) FROM t").fetchall()
            assert isinstance(count, int)
            loads, rest = divmod(count, self.rows)
            assert not rest, f"{count} rows are {loads} loads and {rest} rows"
            ids = client.execute(EACH).fetchall()
            expected = (self.rows, 0, self.rows - 1, loads, loads) if loads else (0, -1, -1, 0, 0)
            assert ids == [expected], f"ids, from, to, least, most: {ids}, not {expected}"
            recomputed = "SELECT note, count(*), sum(amount) FROM t GROUP BY note ORDER BY note"
            view = client.execute("SELECT note, n, s FROM v ORDER BY note").fetchall()
            assert view == client.execute(recomputed).fetchall(), "the view is not its query"
        return loads

    def load(self, id_: str) -> str:
        """Try once; the tag, or the error."""
        assert self.program is not None
        try:
            with self.program.connect() as client:
                command = f"COPY t FROM 'rows' WITH (FORMAT parquet, ENGINE spark, LOAD_ID '{id_}')"
                return client.execute(command).statusmessage or ""
        except psycopg.Error as error:
            return NO_ANSWER if error.sqlstate is None else f"error {error.sqlstate}"

    def complete(self, id_: str) -> None:
        """After a kill: check that all rows of this load are there, or none; then complete the load."""
        found = self.found()
        assert found in (self.loads, self.loads + 1), f"{found} loads after {self.loads}"
        whole = found > self.loads
        self.seen["rows were there" if whole else "no row was there"] += 1
        for _ in range(TRIES):
            tag = self.load(id_)
            if tag in ("COPY 0", f"COPY {self.rows}"):
                break
        assert tag == ("COPY 0" if whole else f"COPY {self.rows}"), tag
        self.loads += 1
        assert self.found() == self.loads
        if self.loads == KEPT_LOADS:
            self.empty()

    def empty(self) -> None:
        assert self.program is not None
        with self.program.connect() as client:
            client.execute("TRUNCATE t")
        self.loads = 0

    def round(self, id_: str, kill_server: bool, wait_for_rows: bool) -> bool:
        """One load with a kill; whether the load was running at the kill."""
        answers: list[str] = []
        loading = threading.Thread(target=lambda: answers.append(self.load(id_)))
        loading.start()
        if kill_server:
            hit = self.kill_server(loading, answers, id_, wait_for_rows)
        else:
            hit = self.kill_executor(answers)
            loading.join()
            if hit:
                self.seen[f"the load said: {answers[0].replace(str(self.rows), 'n')}"] += 1
        self.complete(id_)
        left = [path.name for path in (self.folder / "shared").glob("*/*")]
        assert not left, f"left in the shared folder: {left}"
        return hit

    def kill_executor(self, answers: list[str]) -> bool:
        """Kill a busy executor, at a random moment of the load."""
        time.sleep(self.random.uniform(0.0, 0.8 * self.usual))
        while not answers:
            found = busiest(executors(self.cluster.worker_pids))
            if found is not None:
                os.kill(found, signal.SIGKILL)
                return not answers
        return False

    def kill_server(self, loading: threading.Thread, answers: list[str], id_: str, wait_for_rows: bool) -> bool:
        assert self.program is not None
        with self.program.connect() as client:
            state = "none"
            if not wait_for_rows:
                time.sleep(self.random.uniform(0.0, 0.9 * self.usual))
                state = state_of(client, id_)
                time.sleep(self.random.uniform(0.0, 0.05))
            while wait_for_rows and not answers and state != "committing":
                state = state_of(client, id_)
            self.program.kill()
        loading.join()
        self.start()
        hit = answers == [NO_ANSWER]
        if hit:
            self.seen[f"the server was killed while {state}"] += 1
        return hit

    def prepare(self) -> None:
        with self.start().connect() as client:
            client.execute("CREATE TABLE t (id bigint, note text, amount bigint)")
            client.execute(
                "CREATE MATERIALIZED VIEW v AS SELECT note, count(*) AS n, sum(amount) AS s FROM t GROUP BY note"
            )
        for id_ in ("first", "second", "third"):  # the later ones find the session running
            start = time.monotonic()
            assert self.load(id_) == f"COPY {self.rows}"
            self.usual = time.monotonic() - start
            self.loads += 1
        assert self.found() == self.loads

    def kill(self, count: int, kill_server: bool) -> int:
        """Run until this many kills fell into a load; the number of tries."""
        what, hits, tries = "server" if kill_server else "executor", 0, 0
        while hits < count:
            tries += 1
            assert tries <= 3 * count + 10, f"only {hits} of {tries} kills fell into a load"
            start = time.monotonic()
            hits += self.round(f"{what} {tries}", kill_server, wait_for_rows=tries % 3 == 2)
            print(
                f"{what} {hits}/{count}, {tries} tried, {time.monotonic() - start:.1f} s: {dict(self.seen)}", flush=True
            )
        return tries


def state_of(client: psycopg.Connection[tuple[object, ...]], id_: str) -> str:
    """The load's state in freshet.loads: reading, committing, committed."""
    rows = client.execute("SELECT state FROM freshet.loads WHERE load_id = %s", (id_,)).fetchall()
    return str(rows[0][0]) if rows else "none"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--executors", type=int, default=50)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--rows", type=int, default=120_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    hurry()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # ends the child processes too
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="spark-kills-") as name, LocalCluster(memory="600m") as cluster:
        folder = Path(name)
        kills = Kills(cluster, folder, write_files(folder / "files" / "rows", options.rows), Random(options.seed))
        try:
            kills.prepare()
            print(f"a load of {kills.rows} rows takes {kills.usual:.1f} s", flush=True)
            of_executors, of_servers = kills.kill(options.executors, False), kills.kill(options.servers, True)
        finally:
            if kills.program is not None:
                kills.program.kill()
    print(f"{options.executors} kills of an executor at work ({of_executors} tried) and {options.servers} of the "
          f"server ({of_servers} tried) during loads, {time.monotonic() - start:.0f} s, {dict(kills.seen)}: each left "
          "the exact rows or none, and every load was completed", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
