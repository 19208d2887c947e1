"""kill -9 of executors and of the server while Spark loads: the exact rows or nothing, and the same load completes.

    python -m tests.spark_kills [--executors 50] [--servers 20] [--rows 400000] [--seed N]

Each round loads the same files under a new id into a table that feeds a view, kills at a random moment, looks at what
is there, and tries the same load again until it succeeds. All runs on a cluster of two workers on this machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from storage.spark.cluster import LocalCluster
from tests.program import Program

TRIES = 4
Sums = tuple[int, int]


def children(parent: int) -> list[int]:
    """The processes that one has started."""
    path = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def write_files(folder: Path, rows: int) -> Sums:
    """Six files; how many rows they have, and the sum of a column."""
    folder.mkdir(parents=True)
    each = rows // 6
    for i in range(6):
        ids = list(range(i * each, (i + 1) * each))
        table = pa.table({"id": ids, "note": [f"note {n % 997}" for n in ids], "amount": [n % 1000 for n in ids]})
        pq.write_table(table, folder / f"{i}.parquet")
    return each * 6, sum(n % 1000 for n in range(each * 6))


@dataclass(slots=True)
class Kills:
    """One run. ``loads``: how many are committed; ``usual``: seconds that a load takes undisturbed."""

    cluster: LocalCluster
    folder: Path
    one: Sums
    random: Random
    loads: int = 0
    usual: float = 10.0
    seen: Counter[str] = field(default_factory=Counter)
    program: Program | None = None

    def start(self) -> Program:
        """The server, on the same data each time."""
        self.program = Program(
            self.folder / "data", "--files", str(self.folder / "files"), "--spark", self.cluster.url,
            "--spark-shared", str(self.folder / "shared"), "--spark-memory", "500MiB",
        )  # fmt: skip
        return self.program

    def found(self) -> Sums:
        """What the table holds, which its view must say too."""
        assert self.program is not None
        with self.program.connect() as client:
            rows = client.execute("SELECT count(*), coalesce(sum(amount), 0)::bigint FROM t").fetchall()
            view = client.execute("SELECT coalesce(sum(n), 0)::bigint, coalesce(sum(s), 0)::bigint FROM v").fetchall()
        assert rows == view, f"the view says {view}, the table has {rows}"
        (count, total) = rows[0]
        assert isinstance(count, int)
        assert isinstance(total, int)
        return count, total

    def expected(self, loads: int) -> Sums:
        return self.one[0] * loads, self.one[1] * loads

    def load(self, id_: str) -> str:
        """Tries once: the tag, or the error."""
        assert self.program is not None
        try:
            with self.program.connect() as client:
                command = f"COPY t FROM 'rows' WITH (FORMAT parquet, ENGINE spark, LOAD_ID '{id_}')"
                return client.execute(command).statusmessage or ""
        except psycopg.Error as error:
            return f"error {error.sqlstate}"

    def complete(self, id_: str) -> None:
        """After a kill: all rows of this load are there, or none; then the load is completed."""
        found = self.found()
        whole = found == self.expected(self.loads + 1)
        assert whole or found == self.expected(self.loads), f"{found} after {self.loads} whole loads"
        self.seen["rows were there" if whole else "no row was there"] += 1
        for _ in range(TRIES):
            tag = self.load(id_)
            if tag in ("COPY 0", f"COPY {self.one[0]}"):
                break
        assert tag == ("COPY 0" if whole else f"COPY {self.one[0]}"), tag
        self.loads += 1
        assert self.found() == self.expected(self.loads)

    def round(self, id_: str, kill_server: bool) -> None:
        answers: list[str] = []
        loading = threading.Thread(target=lambda: answers.append(self.load(id_)))
        loading.start()
        time.sleep(self.random.uniform(0.1, self.usual))
        if kill_server:
            assert self.program is not None
            self.program.kill()
            loading.join()
            self.start()
        else:
            self.seen["executors killed"] += self.kill_executor()
            loading.join()
            self.seen[f"the load said: {answers[0].replace(str(self.one[0]), 'n')}"] += 1
        self.complete(id_)
        left = [path.name for path in (self.folder / "shared").glob("*/*")]
        assert not left, f"left in the shared folder: {left}"

    def kill_executor(self) -> int:
        """One of them, at random; how many were killed: there may be none at this moment."""
        running = [child for worker in self.cluster.worker_pids for child in children(worker)]
        if not running:
            return 0
        os.kill(self.random.choice(running), signal.SIGKILL)
        return 1

    def prepare(self) -> None:
        with self.start().connect() as client:
            client.execute("CREATE TABLE t (id bigint, note text, amount bigint)")
            client.execute(
                "CREATE MATERIALIZED VIEW v AS SELECT note, count(*) AS n, sum(amount) AS s FROM t GROUP BY note"
            )
        for id_ in ("first", "second"):  # the second one finds the session started
            start = time.monotonic()
            self.complete(id_)
            self.usual = time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--executors", type=int, default=50)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="spark-kills-") as name, LocalCluster(memory="600m") as cluster:
        folder = Path(name)
        kills = Kills(cluster, folder, write_files(folder / "files" / "rows", options.rows), Random(options.seed))
        try:
            kills.prepare()
            print(f"a load of {kills.one[0]} rows takes {kills.usual:.1f} s", flush=True)
            rounds = [False] * options.executors + [True] * options.servers
            for number, kill_server in enumerate(rounds, 1):
                kills.round(f"load {number}", kill_server)
                what = "server" if kill_server else "executor"
                print(f"{number}/{len(rounds)} {what}: {kills.loads} loads, {dict(kills.seen)}", flush=True)
        finally:
            if kills.program is not None:
                kills.program.kill()
    print("every kill left the exact rows or none, and every load was completed", flush=True)


if __name__ == "__main__":
    main()
