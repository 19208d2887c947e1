"""kill -9 at random moments under load: everything acknowledged must be there exactly once, and every view correct.

    python -m tests.programs.crashes --kills 100 [--forgetful] [--seed 7]

Kinds of kills: *load* (a random moment), *ddl* (right after a DDL was acknowledged), *start* (while a server starts),
*burst* (within the first commits after a start). Starts vary too: server.py itself, or a server that checkpoints all
the time (``tests/support/crash_server.py``), with or without a disk that forgets unsynced bytes.
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
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import psycopg

from tests.support.crash_load import ACCOUNTS, OWNED, SETUP, VIEWS, Client, Connection, Prober, State, Vacuumer
from tests.support.nursery import forked

KINDS: Final = ("load", "load", "load", "ddl", "start", "burst")
QUIET: Final = (
    "ready on",
    "freshet: starting",
    "freshet: hydrating",
    "freshet: filling",
    "freshet: all views",
    "freshet: compiling",
)
CLIENTS: Final = 4
KEPT_READS: Final = 60
FIRST_ANSWER: Final = 60.0  # seconds; the first commits are slow while kernels are compiled


class Program:
    """A server on a free port; call ``wait`` until it serves."""

    def __init__(self, data: Path, how: tuple[str, ...], more: tuple[str, ...] = ()) -> None:
        flags = ["--port", "0", "--data", str(data), "--memory", "512MiB", *more]
        self.lines: list[str] = []
        self.port = 0
        if how:
            self.process = forked("tests.support.crash_server", *how, "--", *flags)
        else:
            self.process = forked("server", *flags)
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip())
            if line.startswith("ready on "):
                self.port = int(line.strip().rpartition(":")[2])
                self._ready.set()
        self._ready.set()

    def wait(self) -> None:
        """Wait until it is ready; an AssertionError with its last output if it ends instead."""
        assert self._ready.wait(120), "no ready in two minutes"
        assert self.port, "the server did not start:\n" + "\n".join(self.lines[-30:])

    def connect(self) -> Connection:
        return psycopg.connect(f"host=127.0.0.1 port={self.port} user=u dbname=postgres", autocommit=True)

    def kill(self) -> None:
        """kill -9; its output is in ``lines``."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._reader.join()


@dataclass
class Crashes:
    """A data folder, its clients, and the failures found."""

    folder: Path
    random: Random
    forgetful: bool
    clients: list[Client] = field(default_factory=list)
    prober: Prober = field(default_factory=Prober)
    kinds: Counter[str] = field(default_factory=Counter)
    unanswered: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def start(self) -> Program:
        """Start a server of a random kind on the folder."""
        hurry = ("--hurry",) if self.random.random() < 0.6 else ()
        return Program(self.folder, (*(("--forgetful",) if self.forgetful else ()), *hurry))

    def set_up(self) -> None:
        """Create tables, views and clients."""
        program = self.start()
        program.wait()
        with program.connect() as connection:
            for text in SETUP:
                connection.execute(text)  # type: ignore[call-overload]
            for name, query in VIEWS.items():
                connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")  # type: ignore[call-overload]
        program.kill()
        self.clients = [Client(i, Random(self.random.random())) for i in range(CLIENTS)]

    def one(self, kind: str) -> None:
        """Start, check the state after the last kill, then load and kill (for *start*, kill a few more times during
        startup)."""
        self.kinds[kind] += 1
        program = self.checked()
        if self.wrong:
            program.kill()
            return
        self._load_and_kill(program, kind)
        for _ in range(self.random.randint(1, 3) if kind == "start" else 0):
            program = self.start()
            time.sleep(self.random.uniform(0.3, 2.5))
            program.kill()

    def checked(self) -> Program:
        """A checked server, running unless something was wrong."""
        program = self.start()
        try:
            program.wait()
            self._check(program)
        except (AssertionError, psycopg.Error) as error:
            self.wrong.append(f"{type(error).__name__}: {error}")
        if program.process.poll() is not None:
            last = "\n".join(program.lines[-30:])
            self.wrong.append(f"the server ended by itself with status {program.process.returncode}:\n{last}")
        return program

    def _moment(self, kind: str) -> None:
        """Wait for the moment of the kill; except for *burst*, until work was acknowledged, however slow the
        machine."""
        if kind == "burst":
            time.sleep(self.random.uniform(0.0, 0.25))
            return
        before, patience = self.acknowledged, time.monotonic() + FIRST_ANSWER
        while self.acknowledged == before and time.monotonic() < patience:
            time.sleep(0.01)
        time.sleep(self.random.uniform(0.0, 2.0))
        if kind == "ddl":
            client = self.random.choice(self.clients)
            client.ddl_done.clear()
            client.ddl_done.wait(3)
            time.sleep(self.random.choice((0, 0, 0.002, 0.02)))

    @property
    def acknowledged(self) -> int:
        """The number of transactions acknowledged to the clients so far."""
        return sum(client.acknowledged for client in self.clients)

    def _load_and_kill(self, program: Program, kind: str) -> None:
        stop = threading.Event()
        work = [*self.clients, self.prober, Vacuumer(Random(self.random.random()))]
        failed: list[str] = []

        def load(one: Client | Prober | Vacuumer) -> None:
            try:
                one.load(program.port, stop)
            except Exception as error:
                failed.append(f"{type(error).__name__}: {error}")

        threads = [threading.Thread(target=load, args=(one,)) for one in work]
        for client in self.clients:
            client.ddl_done.clear()
        for thread in threads:
            thread.start()
        self._moment(kind)
        alive = program.process.poll() is None
        program.kill()
        stop.set()
        for thread in threads:
            thread.join()
        if not alive:
            failed.append("the server ended by itself:\n" + "\n".join(program.lines[-20:]))
        self.wrong += failed
        self.said += [line for line in program.lines if not line.startswith(QUIET) and not line.endswith(" rows")]

    def _check(self, program: Program) -> None:
        with program.connect() as connection:
            for client in self.clients:
                self._check_client(client, connection)
            self._check_accounts(connection)
            self._check_views(connection)
            self.wrong += self.prober.check(connection)
        self.prober.seen = self.random.sample(self.prober.seen, min(len(self.prober.seen), KEPT_READS))

    def _check_client(self, client: Client, connection: Connection) -> None:
        found = _owned(client.number, connection)
        if client.pending is None or client.pending == client.state:
            self.unanswered["none"] += 1
        elif found == client.pending:
            self.unanswered["done"] += 1
        else:
            self.unanswered["not done"] += 1
        if found not in (client.state, client.pending):
            self.wrong.append(f"client {client.number}: " + _difference(client.state, found))
        client.state, client.pending = found, None

    def _check_accounts(self, connection: Connection) -> None:
        expected = dict.fromkeys(range(1, ACCOUNTS + 1), 1000)
        for a, b, amount in connection.execute("SELECT a, b, amount FROM moves").fetchall():
            expected[a] -= amount
            expected[b] += amount
        found = dict(connection.execute("SELECT id, amount FROM accounts").fetchall())
        if found != expected:
            self.wrong.append(f"accounts: {found}, not {expected}")

    def _check_views(self, connection: Connection) -> None:
        names = connection.execute("SELECT relname FROM pg_class WHERE relkind = 'm' AND relname LIKE 'own%'")
        for name in [*VIEWS, *(str(row[0]) for row in names.fetchall())]:
            rows = connection.execute(f"VERIFY MATERIALIZED VIEW {name}").fetchall()  # type: ignore[call-overload]
            if rows:
                self.wrong.append(f"VERIFY {name}: {rows[:5]}")
        for name, query in VIEWS.items():
            view = Counter(connection.execute(f"SELECT * FROM {name}").fetchall())  # type: ignore[call-overload]
            computed = Counter(connection.execute(query).fetchall())  # type: ignore[call-overload]
            if view != computed:
                self.wrong.append(f"{name}: {view - computed} too much, {computed - view} missing")


def _owned(client: int, connection: Connection) -> State:
    state: State = {}
    for table, columns in OWNED.items():
        query = f"SELECT {columns} FROM {table} WHERE client = {client}"
        state[table] = Counter(connection.execute(query).fetchall())  # type: ignore[call-overload]
    query = f"SELECT relname FROM pg_class WHERE relname LIKE 'own\\__\\_{client}\\_%'"
    state["relations"] = Counter((str(row[0]),) for row in connection.execute(query).fetchall())  # type: ignore[call-overload]
    for (name,) in state["relations"]:
        if name.startswith("own_t"):
            number = int(name.rpartition("_")[2])
            (row,) = connection.execute(f"SELECT count(*), count(DISTINCT a) FROM {name}").fetchall()  # type: ignore[call-overload]
            assert row == (number % 40, number % 40), f"{name} has {row} rows"
    return state


def _difference(expected: State, found: State) -> str:
    parts = []
    for table, rows in expected.items():
        if rows != found[table]:
            lost, new = rows - found[table], found[table] - rows
            parts.append(f"{table} lost {list(lost.items())[:3]}, has {list(new.items())[:3]} more")
    return "; ".join(parts)


def run(kills: int, forgetful: bool, seed: int, kinds: tuple[str, ...] = KINDS, folder_life: int = 20) -> Crashes:
    """Many kills, over a fresh folder now and then; the sum of the results, with ``wrong`` ideally empty."""
    random = Random(seed)
    total = Crashes(Path(), random, forgetful)
    done = 0
    while done < kills:
        with tempfile.TemporaryDirectory(prefix="freshet-crash-") as folder:
            crashes = Crashes(Path(folder) / "data", random, forgetful)
            crashes.set_up()
            turns = min(folder_life, kills - done)
            for turn in range(turns + 1):
                if turn == turns:
                    crashes.checked().kill()
                    kind = "the last one's check"
                else:
                    kind = kinds[done] if len(kinds) == kills else random.choice(kinds)
                    crashes.one(kind)
                    done += 1
                print(f"{done}: {kind}, {crashes.acknowledged} acknowledged, "
                      f"{len(crashes.wrong)} wrong", flush=True)  # fmt: skip
                if crashes.wrong:
                    kept = Path(tempfile.mkdtemp(prefix="freshet-crash-kept-"))
                    shutil.copytree(folder, kept, dirs_exist_ok=True)
                    print(*(f"  {w[:2000]}" for w in crashes.wrong), f"  folder kept: {kept}", sep="\n", flush=True)
                    break
        total.clients += crashes.clients
        total.kinds += crashes.kinds
        total.unanswered += crashes.unanswered
        total.wrong += crashes.wrong
        total.said += crashes.said
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--forgetful", action="store_true", help="a disk that drops every byte not yet synced")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    options = parser.parse_args()
    total = run(options.kills, options.forgetful, options.seed)
    refused = sum((client.refused for client in total.clients), Counter[str]())
    acknowledged = sum(client.acknowledged for client in total.clients)
    print(f"seed {options.seed}; kills {dict(total.kinds)}; transactions acknowledged {acknowledged}; "
          f"at a kill without an answer {dict(total.unanswered)}; "
          f"refused {dict(refused)}; wrong {len(total.wrong)}")  # fmt: skip
    for line in sorted(set(total.said))[:40]:
        print("said:", line)
    sys.exit(1 if total.wrong else 0)


if __name__ == "__main__":
    main()
