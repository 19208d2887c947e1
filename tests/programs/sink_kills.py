"""kill -9 of the server at random moments while sinks write; each change of their views must be in the files exactly
once.

    python -m tests.programs.sink_kills --kills 50 [--seed 7]

A client changes rows all the time. Every other server moves commits into its store many times a second, so that sinks
have something to write whenever it is killed. After the last kill the changes listed by the entries are compared with
SUBSCRIBE over the relation's history, epoch by epoch, and, applied in order, with the relation's present rows.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psycopg

from tests.programs.crashes import Program
from tests.support.sink_reader import Change, changes, contents, entries, stray

KEYS = 12
SINKS = {"parquet": "v", "jsonl": "v", "csv": "t"}
SETUP = (
    "CREATE TABLE t (k int PRIMARY KEY, n int, s text)",
    "CREATE MATERIALIZED VIEW v AS SELECT s, count(*), sum(n) FROM t GROUP BY s",
)


@dataclass
class Load:
    """A client that changes rows until the server dies."""

    port: int
    seed: int
    commits: int = 0

    def run(self) -> None:
        random = Random(self.seed)
        try:
            with psycopg.connect(
                f"host=127.0.0.1 port={self.port} user=me dbname=postgres", autocommit=True
            ) as connection:
                while True:
                    connection.execute(statement(random))
                    self.commits += 1
        except psycopg.Error:
            return


def statement(random: Random) -> str:
    key, label = random.randrange(KEYS), random.choice(["'a'", "'b'", "'c,\"d'", "NULL"])
    match random.randrange(4):
        case 0:
            return f"DELETE FROM t WHERE k = {key}"
        case 1:
            return f"UPDATE t SET n = n + 1, s = {label} WHERE k < {key}"
        case _:
            row = f"({key}, {random.randrange(99)}, {label})"
            return f"INSERT INTO t VALUES {row} ON CONFLICT (k) DO UPDATE SET s = {label}"


def kill_often(folder: Path, kills: int, seed: int) -> tuple[int, int]:
    """Run everything; the numbers of acknowledged commits and of entries. Raises AssertionError."""
    random, commits = Random(seed), 0
    data, out = folder / "data", folder / "out"
    out.mkdir(parents=True)
    for i in range(kills):
        server = Program(data, ("--hurry",) if i % 2 else (), ("--sinks", str(out)))
        server.wait()
        if not i:
            with connect(server) as connection:
                for text in SETUP:
                    connection.execute(text)
                for format_, relation in SINKS.items():
                    connection.execute(f"CREATE SINK {format_} FROM {relation} INTO '{format_}' FORMAT {format_} "
                                       "WITH (EVERY = '5 ms')")  # fmt: skip
        else:
            with connect(server) as connection:  # or its history would say that the view was being filled
                connection.execute("SELECT count(*) FROM v")
        load = Load(server.port, seed * 1000 + i)
        thread = threading.Thread(target=load.run)
        thread.start()
        time.sleep(random.random() * 1.5 + 0.2)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        thread.join()
        commits += load.commits
    server = Program(data, (), ("--sinks", str(out)))
    server.wait()
    try:
        with connect(server) as connection:
            check(connection, out)
    finally:
        server.process.terminate()
        server.process.wait()
    return commits, sum(len(entries(out / format_)) for format_ in SINKS)


def connect(server: Program) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(f"host=127.0.0.1 port={server.port} user=me dbname=postgres", autocommit=True)


def check(connection: psycopg.Connection[tuple[object, ...]], out: Path) -> None:
    """Compare every sink with its relation's own history, which the store has kept."""
    for relation in SINKS.values():  # filled before anything is committed, for the history to be whole
        connection.execute(f"SELECT count(*) FROM {relation}".encode())
    connection.execute("CREATE TABLE mark ()")
    connection.execute("INSERT INTO mark DEFAULT VALUES")
    until = time.monotonic() + 60
    behind = "SELECT 1 FROM freshet.sinks WHERE error IS NOT NULL OR lag > '0' OR lag IS NULL"
    while connection.execute(behind).fetchall():
        assert time.monotonic() < until, connection.execute("SELECT * FROM freshet.sinks").fetchall()
        time.sleep(0.1)
    for format_, relation in SINKS.items():
        folder = out / format_
        assert not stray(folder)
        generations = {e["generation"] for e in entries(folder)}
        assert generations == {1}, generations
        compare(connection, relation, changes(folder), entries(folder)[0]["upto"])


def compare(connection: psycopg.Connection[tuple[object, ...]], relation: str, found: list[Change], start: int) -> None:
    """Compare the changes, epoch by epoch, with SUBSCRIBE's and with the relation's present rows."""
    assert len({(epoch, row) for epoch, _, row in found}) == len(found), "a change is there twice"
    given: list[Change] = []
    with connection.cursor() as cursor:
        cursor.execute("SELECT mz_now()")
        now = int(str((cursor.fetchone() or (0,))[0]))
        query = f"COPY (SUBSCRIBE {relation} WITH (SNAPSHOT = false) AS OF {start} UP TO {now}) TO STDOUT"
        with cursor.copy(query) as copy:
            for fields in copy.rows():
                epoch, diff, *row = fields
                given.append((int(epoch or 0), int(diff or 0), shown(row)))
        rows = cursor.execute(f"SELECT * FROM {relation}").fetchall()
    mine = [(epoch, diff, shown(row)) for epoch, diff, row in found if epoch > start]
    assert net(mine) == net(given)
    assert contents([(e, d, shown(r)) for e, d, r in found], now) == Counter(shown(row) for row in rows)


def net(of: list[Change]) -> Counter[tuple[object, ...]]:
    """Diffs by epoch and row."""
    summed: Counter[tuple[object, ...]] = Counter()
    for epoch, diff, row in of:
        summed[epoch, row] += diff
    return Counter({key: diff for key, diff in summed.items() if diff})


def shown(row: object) -> tuple[str, ...]:
    """Values as text; CSV has no text for NULL, and there are no other empty values here."""
    assert isinstance(row, tuple | list)
    return tuple("" if v is None else str(v) for v in row)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sink-kills-"))
    try:
        commits, found = kill_often(folder, options.kills, options.seed)
    except AssertionError:
        print(f"seed {options.seed}: what is there stays in {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder)
    print(f"{options.kills} kills, {commits:,} commits, {found:,} entries: every change once")


if __name__ == "__main__":
    main()
