"""kill -9 of either side while data keeps coming: at the end every row is there, and once.

    python -m tests.source_kills --count 100 [--seed 7]

Files arrive all the time, in a table without a key (so that a batch that counted twice would show) and by key; Spark's
clock makes rows as well. Kinds of kills: *server* (with it goes the driver of the streams), *driver* (Spark's Java),
*worker* (a Python worker of an executor), *start* (the server, while it and its sources start).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.crashes import Program
from tests.source_waits import drop_in

KINDS: Final = ("server", "server", "driver", "driver", "worker", "start")
PATIENCE: Final = 240.0
SETUP: Final = (
    "CREATE TABLE bag (id bigint NOT NULL, note text)",
    "CREATE TABLE kv (k int PRIMARY KEY, v bigint)",
    "CREATE TABLE ticks (at timestamptz, n bigint)",
    "CREATE MATERIALIZED VIEW notes AS SELECT note, count(*) AS n, sum(id) AS s FROM bag GROUP BY note",
    "CREATE SOURCE bags FROM FILES (PATH '{}/bag', FORMAT csv) INTO bag WITH (TRIGGER = '200 milliseconds')",
    "CREATE SOURCE kvs FROM FILES (PATH '{}/kv', FORMAT json, MAX_FILES 200) INTO kv"
    " WITH (TRIGGER = '200 milliseconds', ENVELOPE UPSERT)",
    "CREATE SOURCE clock FROM RATE (ROWS_PER_SECOND 20) INTO ticks WITH (TRIGGER = '500 milliseconds')",
)


@dataclass
class Arrivals:
    """Files that keep arriving on a thread of their own, and what the tables should have in the end."""

    folder: Path
    random: Random
    ids: int = 0
    files: int = 0
    kv: dict[int, int] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        for name in ("bag", "kv"):
            (self.folder / name).mkdir()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        assert self._thread is not None, "started"
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self.random.uniform(0.05, 0.8)):
            self.one()

    def one(self) -> None:
        """One more file in each folder."""
        self.files += 1
        count = self.random.randint(1, 200)
        lines = [f"{i},note {i % 7}" for i in range(self.ids, self.ids + count)]
        self.ids += count
        drop_in(self.folder / "bag" / f"{self.files:06d}.csv", "\n".join(lines) + "\n")
        events = []
        for i in range(self.random.randint(1, 50)):
            k = self.random.randrange(100)
            if self.random.random() < 0.2:
                self.kv.pop(k, None)
                events.append(json.dumps({"k": k}))
            else:
                self.kv[k] = self.files * 1000 + i
                events.append(json.dumps({"k": k, "v": self.kv[k]}))
        drop_in(self.folder / "kv" / f"{self.files:06d}.json", "\n".join(events) + "\n")


@dataclass
class SourceKills:
    """A data folder, what arrives, and the server of the moment."""

    folder: Path
    random: Random
    arrivals: Arrivals = field(init=False)
    kinds: Counter[str] = field(default_factory=Counter)
    batches: int = 0

    def __post_init__(self) -> None:
        self.arrivals = Arrivals(self.folder / "in", Random(self.random.random()))

    def start(self) -> Program:
        files = ("--files", str(self.folder / "in"), "--spark", "local[2]")
        return Program(self.folder / "data", (), files)

    def set_up(self) -> Program:
        self.arrivals.folder.mkdir()
        self.arrivals.start()
        program = self.start()
        program.wait()
        with program.connect() as connection:
            for text in SETUP:
                connection.execute(text.format(self.arrivals.folder))  # type: ignore[call-overload]
        return program

    def one(self, program: Program, kind: str) -> Program:
        """Waits for a batch, then kills at a random moment; the server that goes on."""
        self.kinds[kind] += 1
        self.batches = until_more(program, self.batches)
        time.sleep(self.random.uniform(0.0, 1.5))
        if kind in ("driver", "worker"):
            kill_below(program.process.pid, kind, self.random)
            return program
        program.kill()
        for _ in range(self.random.randint(1, 2) if kind == "start" else 0):
            program = self.start()
            time.sleep(self.random.uniform(0.5, 8.0))
            program.kill()
        program = self.start()
        program.wait()
        check_once(program)
        return program

    def finish(self, program: Program) -> None:
        """Everything that has arrived is there in the end, once."""
        self.arrivals.stop()
        bag = (self.arrivals.ids, self.arrivals.ids, self.arrivals.ids * (self.arrivals.ids - 1) // 2)
        until_equal(program, "SELECT count(*), count(DISTINCT id), coalesce(sum(id), 0)::bigint FROM bag", [bag])
        until_equal(program, "SELECT k, v FROM kv ORDER BY k", sorted(self.arrivals.kv.items()))
        check_once(program)


def ask(program: Program, text: str) -> list[tuple[Any, ...]]:
    with program.connect() as connection:
        return connection.execute(text).fetchall()  # type: ignore[call-overload]


def check_once(program: Program) -> None:
    """No row twice, none missing between others, and the view is what the table makes it."""
    with program.connect() as connection:
        connection.execute("BEGIN")
        ((count, distinct),) = connection.execute("SELECT count(*), count(DISTINCT id) FROM bag").fetchall()
        assert count == distinct, f"{count - distinct} of {count} rows are there twice"
        ((count, distinct, low, high),) = connection.execute(
            "SELECT count(*), count(DISTINCT n), coalesce(min(n), 0), coalesce(max(n), -1) FROM ticks"
        ).fetchall()
        assert (count, distinct, low) == (high + 1, high + 1, 0), f"{count} ticks, {distinct} of them, {low} to {high}"
        recomputed = "SELECT note, count(*), sum(id) FROM bag GROUP BY note ORDER BY note"
        view = connection.execute("SELECT note, n, s FROM notes ORDER BY note").fetchall()
        assert view == connection.execute(recomputed).fetchall(), "the view is not its query"
        ((rows, noted),) = connection.execute(
            "SELECT (SELECT count(*) FROM bag), (SELECT max(rows) FROM bags)"
        ).fetchall()
        assert rows == (noted or 0), f"{rows} rows, and the source says {noted}"


def until_equal(program: Program, text: str, wanted: list[tuple[Any, ...]]) -> None:
    end = time.monotonic() + PATIENCE
    while (found := ask(program, text)) != wanted:
        assert time.monotonic() < end, (
            f"{text}: {found[:5]}…, not {wanted[:5]}…, {ask(program, 'TABLE freshet.sources')}"
        )
        time.sleep(0.2)


def until_more(program: Program, before: int) -> int:
    """How many batches are in, once there are more than before."""
    end = time.monotonic() + PATIENCE
    while True:
        ((found,),) = ask(program, "SELECT coalesce(sum(batch + 1), 0)::bigint FROM freshet.sources")
        if found > before:
            return int(found)
        assert time.monotonic() < end, f"no batch: {ask(program, 'TABLE freshet.sources')}"
        time.sleep(0.1)


def kill_below(pid: int, kind: str, random: Random) -> None:
    """kill -9 of Spark's Java, or of one of its Python workers, below the server's process, if there is one."""
    found = [child for child, words in below(pid) if _is(kind, words)]
    if found:
        os.kill(random.choice(found), signal.SIGKILL)


def _is(kind: str, words: list[str]) -> bool:
    if kind == "driver":
        return bool(words) and words[0].endswith("java")
    return "pyspark.daemon" in words


def below(pid: int) -> list[tuple[int, list[str]]]:
    """The processes below one, each with its command line."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(path.joinpath("stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(path.name))
    found: list[tuple[int, list[str]]] = []
    waiting = list(children.get(pid, ()))
    while waiting:
        child = waiting.pop()
        waiting += children.get(child, ())
        try:
            found.append((child, Path(f"/proc/{child}/cmdline").read_text().split("\0")))
        except OSError:
            continue
    return found


def run(folder: Path, count: int, seed: int, kinds: tuple[str, ...] = KINDS) -> SourceKills:
    """So many kills; AssertionError where a row is lost or doubled."""
    kills = SourceKills(folder, Random(seed))
    program = kills.set_up()
    try:
        for i in range(count):
            kind = kinds[i % len(kinds)]
            program = kills.one(program, kind)
            print(f"{i + 1} {kind}: {kills.batches} batches, {kills.arrivals.ids} rows arrived", flush=True)
        kills.finish(program)
    finally:
        kills.arrivals.stop()
        program.kill()
    return kills


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="freshet-source-kills-"))
    kills = run(folder, options.count, options.seed)
    print(f"{options.count} kills {dict(kills.kinds)}: {kills.batches} batches and more, "
          f"{kills.arrivals.ids} rows of {kills.arrivals.files} files, each once")  # fmt: skip
    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
