"""kill -9 of either side while data keeps arriving: at the end every row must be there exactly once.

    python -m tests.programs.source_kills --count 100 [--seed 7]

On a cluster of two workers, which stays up, files keep arriving, both in a table without a key (which would show a
batch applied twice) and by key, and Spark's clock generates rows. Then, for a third of the kills, a Derby database is
polled with local[2]. Kinds of kills: *server* (and with it the streams' driver), *late* (the server, after a batch's
rows are in but before Spark knows: its Java was stopped meanwhile), *executor* (its Java, while busy), *worker* (a
Python worker, while busy), *driver* (the server's Spark Java).

A kill counts if a batch was running: Spark had recorded which data the batch consists of but not that it was done,
neither just before the kill nor just after it; or, for a poll, some rows were not in yet. After each kill the tables
are checked, and at the end everything must be there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from storage.spark.cluster import LocalCluster
from tests.programs.crashes import Program
from tests.support.processes import below, busiest, executors
from tests.support.source_feeds import Arrivals, Derby
from tests.support.spark_local import hurry

ON_CLUSTER: Final = ("server", "executor", "late", "executor", "worker", "late", "server", "driver")
ON_LOCAL: Final = ("server", "driver", "server", "worker")
PATIENCE: Final = 240.0
STOPPED: Final = 0.3
"""Seconds in which a running commit ends."""
STREAMS: Final = (
    "CREATE TABLE bag (id bigint NOT NULL, note text)",
    "CREATE TABLE kv (k int PRIMARY KEY, v bigint)",
    "CREATE TABLE ticks (at timestamptz, n bigint)",
    "CREATE MATERIALIZED VIEW notes AS SELECT note, count(*) AS n, sum(id) AS s FROM bag GROUP BY note",
    "CREATE SOURCE bags FROM FILES (PATH '{0}/bag', FORMAT csv) INTO bag WITH (TRIGGER = '200 milliseconds')",
    "CREATE SOURCE kvs FROM FILES (PATH '{0}/kv', FORMAT json, MAX_FILES 200) INTO kv"
    " WITH (TRIGGER = '200 milliseconds', ENVELOPE UPSERT)",
    "CREATE SOURCE clock FROM RATE (ROWS_PER_SECOND 20) INTO ticks WITH (TRIGGER = '500 milliseconds')",
)
POLLS: Final = (
    "CREATE TABLE bought (id bigint, note text)",
    "CREATE MATERIALIZED VIEW buys AS SELECT note, count(*) AS n, sum(id) AS s FROM bought GROUP BY note",
    "CREATE SOURCE shop FROM JDBC (URL 'jdbc:derby:{0}/db', TABLE 'ARRIVING', POLL 'id') INTO bought"
    " WITH (TRIGGER = '100 milliseconds')",
)


@dataclass
class SourceKills:
    """A data folder, the arriving data, and the present server. ``derby``: a poll instead of the streams."""

    folder: Path
    random: Random
    cluster: LocalCluster | None = None
    polled: bool = False
    arrivals: Arrivals = field(init=False)
    derby: Derby = field(init=False)
    kinds: Counter[str] = field(default_factory=Counter)
    hit: Counter[str] = field(default_factory=Counter)
    """The sources in whose batches kills fell."""
    batches: int = 0
    _oids: dict[str, str] = field(default_factory=dict)
    _since: float = 0.0

    def __post_init__(self) -> None:
        self.arrivals = Arrivals(self.folder / "in", Random(self.random.random()))
        self.derby = Derby(self.folder / "in" / "db")

    def start(self) -> Program:
        """Start the server, on the same data each time."""
        flags = ["--files", str(self.folder / "in"), "--spark", "local[2]"]
        if self.cluster is not None:
            flags[-1] = self.cluster.url
            flags += ["--spark-shared", str(self.folder / "shared"), "--spark-memory", "500MiB"]
        program = Program(self.folder / "data", (), tuple(flags))
        program.wait()
        return program

    def set_up(self) -> Program:
        (self.folder / "in").mkdir(parents=True)
        if self.polled:
            self.derby.make()
            self.derby.wait()
        else:
            self.arrivals.start()
        program = self.start()
        with program.connect() as connection:
            for text in POLLS if self.polled else STREAMS:
                connection.execute(text.format(self.folder / "in"))  # type: ignore[call-overload]
            names = ("shop",) if self.polled else ("bags", "kvs", "clock")
            rows = connection.execute("SELECT relname, oid FROM pg_class WHERE relname = ANY (%s)", (list(names),))
            self._oids = {str(name): str(oid) for name, oid in rows.fetchall()}
            assert set(self._oids) == set(names)
        return program

    def under_way(self, program: Program | None) -> dict[str, int]:
        """The running batches, by source; those begun before the last kill do not count. ``program``: asked for a
        poll's progress; None: that is unknown."""
        found = {}
        for name, oid in self._oids.items():
            if self.polled:
                rows = (
                    [] if program is None else ask(program, "SELECT rows FROM freshet.sources WHERE state = 'running'")
                )
                if rows and rows[0][0] < self.derby.shown:
                    found[name] = int(rows[0][0])
                continue
            checkpoint = self.folder / "data" / "sources" / oid
            begun, done = newest(checkpoint / "offsets"), newest(checkpoint / "commits")
            if begun > done and (checkpoint / "offsets" / str(begun)).stat().st_mtime > self._since:
                found[name] = begun
        return found

    def one(self, program: Program, kind: str) -> tuple[Program, bool]:
        """Wait for a batch of a source, in turn, then kill at a random moment; the server that continues, and whether
        the kill counts."""
        self.batches = until_more(program, self.batches)
        aim = list(self._oids)[self.kinds.total() % len(self._oids)]
        end = time.monotonic() + PATIENCE
        while aim not in self.under_way(program):
            assert time.monotonic() < end, f"{aim}: no batch begins: {ask(program, 'TABLE freshet.sources')}"
            time.sleep(0.01)
        time.sleep(self.random.uniform(0.0, 0.4))
        if kind == "late":
            return self.kill_late(program)
        pid = self.victim(program, kind)
        before = self.under_way(program)
        if pid is None or not before:
            return program, False
        if kind == "server":
            program.kill()
        else:
            os.kill(pid, signal.SIGKILL)
        after = before if self.polled else self.under_way(None)
        hits = [name for name, batch in before.items() if after.get(name) == batch]
        if kind in ("server", "driver"):
            self._since = time.time()
        if kind == "server":
            program = self.start()
        self.noted(program, kind, hits)
        return program, bool(hits)

    def kill_late(self, program: Program) -> tuple[Program, bool]:
        """As ``one``. The kill counts if a batch's rows were in and Spark had not recorded that it was done, and could
        not. If the rows are not in, Spark continues undisturbed."""
        java = self.victim(program, "driver")
        assert java is not None, "a batch is under way"
        os.kill(java, signal.SIGSTOP)
        time.sleep(STOPPED)
        hits = [name for name, batch in self.under_way(None).items() if self.is_in(program, name, batch)]
        if not hits:
            os.kill(java, signal.SIGCONT)
            return program, False
        for pid in (program.process.pid, java):  # it would not notice, and keep the server's output open
            os.kill(pid, signal.SIGKILL)
        program.kill()
        self._since = time.time()
        program = self.start()
        self.noted(program, "late", hits)
        return program, True

    def noted(self, program: Program, kind: str, hits: list[str]) -> None:
        """Check everything, and record a kill that fell into batches of these sources, if any."""
        self.check(program)
        self.hit.update(hits)
        self.kinds[kind] += bool(hits)

    def victim(self, program: Program, kind: str) -> int | None:
        """The process to kill; None: no process of that kind is busy."""
        mine = below(program.process.pid)
        java = executors(self.cluster.worker_pids) if self.cluster is not None else []
        match kind:
            case "server":
                return program.process.pid
            case "driver":
                return next((process.pid for process in mine if process.is_java), None)
            case "executor":
                return busiest(java)
            case _:
                tree = [process for pid in java for process in below(pid)] if self.cluster is not None else mine
                return busiest([process.pid for process in tree if process.is_worker], with_children=False)

    def is_in(self, program: Program, source: str, batch: int) -> bool:
        """Whether a batch's rows are in."""
        return ask(program, f"SELECT batch FROM {source}") == [(batch,)]

    def check(self, program: Program) -> None:
        """Check that no row is duplicated, none is missing between others, and the view agrees with its table."""
        with program.connect() as connection:
            connection.execute("BEGIN")

            def asked(text: str) -> list[tuple[Any, ...]]:
                return connection.execute(text).fetchall()  # type: ignore[call-overload]

            table, view, source = ("bought", "buys", "shop") if self.polled else ("bag", "notes", "bags")
            recomputed = f"SELECT note, count(*), sum(id) FROM {table} GROUP BY note ORDER BY note"
            assert asked(f"SELECT note, n, s FROM {view} ORDER BY note") == asked(recomputed), (
                "the view is not its query"
            )
            ((rows, noted),) = asked(f"SELECT (SELECT count(*) FROM {table}), (SELECT max(rows) FROM {source})")
            assert rows == (noted or 0), f"{rows} rows, and the source says {noted}"
            ((count, distinct),) = asked(f"SELECT count(*), count(DISTINCT id) FROM {table}")
            assert count == distinct, f"{count - distinct} of {count} rows are there twice"
            for name, column in (("bought", "id"),) if self.polled else (("ticks", "n"),):
                ((count, distinct, low, high),) = asked(
                    f"SELECT count(*), count(DISTINCT {column}), coalesce(min({column}), 0),"
                    f" coalesce(max({column}), -1) FROM {name}"
                )
                expected = (high + 1, high + 1, 0)
                assert (count, distinct, low) == expected, f"{count} {name}, {distinct} of them, {low} to {high}"

    def finish(self, program: Program) -> str:
        """Check that everything that arrived is there at the end, exactly once; a description of it."""
        self.arrivals.stop()
        if self.polled:
            shown = self.derby.shown
            until(program, "SELECT count(*) FROM bought", lambda rows: rows[0][0] >= shown)
            until_equal(program, "SELECT count(*) FROM bought WHERE note <> 'note ' || id % 7", [(0,)])
            self.check(program)
            return f"{shown} rows of a database"
        ids = self.arrivals.ids
        bag = (ids, ids, ids * (ids - 1) // 2)
        until_equal(program, "SELECT count(*), count(DISTINCT id), coalesce(sum(id), 0)::bigint FROM bag", [bag])
        until_equal(program, "SELECT count(*) FROM bag WHERE note <> 'note ' || id % 7", [(0,)])
        until_equal(program, "SELECT k, v FROM kv ORDER BY k", sorted(self.arrivals.kv.items()))
        self.check(program)
        ((ticks,),) = ask(program, "SELECT count(*) FROM ticks")
        return f"{ids} rows of {self.arrivals.files} files, as many files by key, {ticks} ticks of the clock"


def newest(log: Path) -> int:
    """The highest number among a checkpoint's records; -1 if there are none."""
    if not log.is_dir():
        return -1
    return max((int(name) for name in os.listdir(log) if name.isdigit()), default=-1)


def ask(program: Program, text: str) -> list[tuple[Any, ...]]:
    with program.connect() as connection:
        return connection.execute(text).fetchall()  # type: ignore[call-overload]


def until(program: Program, text: str, good: Any) -> list[tuple[Any, ...]]:
    end = time.monotonic() + PATIENCE
    while not good(found := ask(program, text)):
        assert time.monotonic() < end, f"{text}: {found[:5]}…, {ask(program, 'TABLE freshet.sources')}"
        time.sleep(0.1)
    return found


def until_equal(program: Program, text: str, wanted: list[tuple[Any, ...]]) -> None:
    until(program, text, lambda found: found == wanted)


def until_more(program: Program, before: int) -> int:
    """Wait for more batches than ``before``; their number."""
    text = "SELECT coalesce(sum(batch + 1), 0)::bigint FROM freshet.sources"
    return int(until(program, text, lambda found: found[0][0] > before)[0][0])


def run(kills: SourceKills, count: int, kinds: tuple[str, ...]) -> str:
    """Run until this many kills fell into a batch; AssertionError if a row is lost or duplicated. A description of the
    final contents."""
    program = kills.set_up()
    hits = tries = 0
    try:
        while hits < count:
            kind, start = kinds[hits % len(kinds)], time.monotonic()
            tries += 1
            assert tries <= 50 * count + 20, f"only {hits} of {tries} kills fell into a batch"
            program, hit = kills.one(program, kind)
            hits += hit
            if hit:
                took = time.monotonic() - start
                known = f"{kills.batches} batches, in {dict(kills.hit)}"
                print(f"{hits}/{count} {kind}, {tries} tried, {took:.1f} s: {known}", flush=True)
        return kills.finish(program)
    finally:
        kills.arrivals.stop()
        program.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    hurry()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # ends the child processes too
    folder, start = Path(tempfile.mkdtemp(prefix="freshet-source-kills-")), time.monotonic()
    polls = options.count // 3
    for name, polled, count, kinds in (
        ("streams", False, options.count - polls, ON_CLUSTER),
        ("polls", True, polls, ON_LOCAL),
    ):
        with nullcontext() if polled else LocalCluster(memory="600m") as cluster:
            kills = SourceKills(folder / name, Random(options.seed + polled), cluster, polled)
            there = run(kills, count, kinds)
        hits = f"{dict(kills.kinds)} while a batch was under way, in batches of {dict(kills.hit)}"
        print(f"{name}: {count} kills {hits}; {kills.batches} batches and more; {there}: each once "
              f"({time.monotonic() - start:.0f} s)", flush=True)  # fmt: skip
    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
