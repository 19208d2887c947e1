"""Random transactions of several clients, searched for what their isolation level forbids.

    python -m tests.programs.isolation --count 100000 --level serializable --clients 12

Clients append to lists and read them, by key, by condition, in a maintained view, in one over it and in one that the
transaction itself has made, with and without row locks and savepoints, by statements and by routines that others
interrupt, and roll back now and then.
``tests.support.histories_of_lists`` says what is looked for. Ends with status 1 if anything was found.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psycopg

from tests.support.histories_of_lists import Recorded, anomalies
from tests.support.program import Program

SETUP: Final = (
    "CREATE TABLE lists (k int PRIMARY KEY, v text NOT NULL DEFAULT '')",
    "CREATE MATERIALIZED VIEW seen AS SELECT k, v FROM lists WHERE v <> ''",
    "CREATE MATERIALIZED VIEW lengths AS SELECT k % 4 AS m, max(v) AS v, count(*) AS n FROM seen GROUP BY k, k % 4",
    "CREATE FUNCTION appended(key int, n int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.0003);"
    " UPDATE lists SET v = v || ',' || n WHERE k = key; PERFORM pg_sleep(0.0003); END $$",
    "CREATE PROCEDURE rewritten(key int, n int) LANGUAGE plpgsql AS $$ DECLARE old text; BEGIN"
    " SELECT v INTO old FROM lists WHERE k = key; PERFORM pg_sleep(0.0003);"
    " BEGIN UPDATE lists SET v = old || ',' || n WHERE k = key; EXCEPTION WHEN division_by_zero THEN NULL; END; END $$",
    "CREATE FUNCTION both_of(a int, b int) RETURNS SETOF lists LANGUAGE plpgsql AS $$ BEGIN"
    " RETURN QUERY SELECT * FROM lists WHERE k = a; PERFORM pg_sleep(0.0003);"
    " RETURN QUERY SELECT * FROM seen WHERE k = b; END $$",
)
APPENDS: Final = (
    "UPDATE lists SET v = v || ',' || %(n)s WHERE k = %(k)s",
    "UPDATE lists SET v = v || ',' || %(n)s WHERE k IN (%(k)s)",
    "INSERT INTO lists VALUES (%(k)s, ',' || %(n)s) ON CONFLICT (k) DO UPDATE SET v = lists.v || excluded.v",
    "SELECT appended(%(k)s, %(n)s)",
)
REWRITES: Final = ("CALL rewritten(%(k)s, %(n)s)",)
"""Those that lose another's append, unless nothing changes between what a transaction reads and writes."""
READS: Final = (
    "SELECT k, v FROM lists WHERE k = %(k)s",
    "SELECT k, v FROM lists WHERE k = %(k)s",
    "SELECT k, v FROM lists WHERE k = ANY (ARRAY[%(k)s, %(j)s])",
    "SELECT k, v FROM lists WHERE k BETWEEN %(k)s AND %(k)s + 2",
    "SELECT k, v FROM seen WHERE k = %(k)s",
    "SELECT l.k, l.v FROM lists l JOIN seen s ON s.k = l.k AND s.v = l.v WHERE l.k = %(k)s",
    "SELECT k, v FROM lists WHERE k = %(k)s FOR SHARE",
    "SELECT k, v FROM lists WHERE k = %(k)s FOR UPDATE",
    "SELECT k, v FROM both_of(%(k)s, %(j)s)",
)
OWN: Final = "CREATE MATERIALIZED VIEW own%(n)s AS SELECT k, v FROM lists"
"""A view of one transaction's own, which others never see or see for a moment."""
OWN_READ: Final = "SELECT k, v FROM own%(n)s WHERE k = %(k)s"
ALLOWED: Final = ("40001", "40P01")


@dataclass
class Run:
    """The clients' common state. ``present``: the transactions so far, in no order."""

    keys: int
    level: str
    deadline: float
    count: int
    present: list[Recorded] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    states: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def serializable(self) -> bool:
        """Whether the level is SERIALIZABLE, or as strict."""
        return "read" not in self.level or "repeatable" in self.level

    @property
    def going(self) -> bool:
        """Whether clients go on."""
        return len(self.present) < self.count and time.monotonic() < self.deadline and not self.wrong


def _list(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def _client(run: Run, program: Program, seed: int) -> None:
    rnd = random.Random(seed)
    with psycopg.connect(program.dsn, autocommit=True) as connection:
        connection.execute(f"SET default_transaction_isolation = '{run.level}'")  # type: ignore[call-overload]
        connection.execute("SET statement_timeout = '2min'")  # somebody whom nobody wakes is found, too
        while run.going:
            recorded = Recorded(time.monotonic())
            try:
                recorded.committed = _transaction(run, connection, recorded, rnd)
            except psycopg.Error as error:
                run.states[str(error.sqlstate)] += 1
                if error.sqlstate not in ALLOWED:
                    run.wrong.append(f"{error.sqlstate} {error}")
                if connection.info.transaction_status:
                    connection.execute("ROLLBACK")
            recorded.ended = time.monotonic()
            run.present.append(recorded)


def _transaction(
    run: Run, connection: psycopg.Connection[tuple[object, ...]], recorded: Recorded, rnd: random.Random
) -> bool:
    steps = rnd.randint(1, 5)
    block = steps > 1 or rnd.random() < 0.5
    if block:
        connection.execute("BEGIN")
    own = 0
    for _ in range(steps):
        given = {"k": rnd.randrange(run.keys), "j": rnd.randrange(run.keys), "n": 0}
        if rnd.random() < 0.5:
            given["n"] = next(run.numbers)
            undone = block and rnd.random() < 0.05
            if undone:
                connection.execute("SAVEPOINT s")
            appends = (*APPENDS, *REWRITES) if run.serializable else APPENDS
            connection.execute(rnd.choice(appends), given)  # type: ignore[call-overload]
            if undone:
                connection.execute("ROLLBACK TO s")
            else:
                recorded.appends.append((given["k"], given["n"]))
        else:
            if block and not own and rnd.random() < 0.1:
                own = next(run.numbers)
                connection.execute(OWN % {"n": own})  # type: ignore[call-overload]
            read = OWN_READ % {"n": own, "k": "%(k)s"} if own and rnd.random() < 0.7 else rnd.choice(READS)
            rows = connection.execute(read, given).fetchall()  # type: ignore[call-overload]
            recorded.reads += [(int(k), _list(v)) for k, v in rows]
    if not block:
        return True
    if own and rnd.random() < 0.5:
        connection.execute(f"DROP MATERIALIZED VIEW own{own}")  # type: ignore[call-overload]
        own = 0
    if rnd.random() < 0.05:
        connection.execute("ROLLBACK")
        return False
    connection.execute("COMMIT")
    if own:
        if connection.execute(f"VERIFY MATERIALIZED VIEW own{own}").fetchall():  # type: ignore[call-overload]
            run.wrong.append(f"VERIFY own{own} found differences")
        connection.execute(f"DROP MATERIALIZED VIEW own{own}")  # type: ignore[call-overload]
    return True


def check(folder: Path, count: int, level: str, clients: int = 8, keys: int = 12, seconds: float = 3600,
          seed: int = 0) -> tuple[Run, list[str]]:  # fmt: skip
    """Run the test on a server of its own; the failures, ideally none."""
    program = Program(folder)
    run = Run(keys, level, time.monotonic() + seconds, count)
    with program.connect() as connection:
        for text in SETUP:
            connection.execute(text)  # type: ignore[call-overload]
        for key in range(keys):
            connection.execute("INSERT INTO lists VALUES (%s)", (key,))
        threads = [threading.Thread(target=_client, args=(run, program, seed * 100 + i)) for i in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rows = connection.execute("SELECT k, v FROM lists").fetchall()
        final = {int(str(k)): _list(str(v)) for k, v in rows}
        for view in ("seen", "lengths"):
            if connection.execute(f"VERIFY MATERIALIZED VIEW {view}").fetchall():  # type: ignore[call-overload]
                run.wrong.append(f"VERIFY {view} found differences")
    program.terminate()
    return run, run.wrong + anomalies(run.present, final, serializable=run.serializable)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--level", default="serializable")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--keys", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=36_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    done = failed = 0
    for round_ in itertools.count():  # a new server now and then: lists grow long
        count = min(asked.count - done, 4000)
        if count <= 0:
            break
        with tempfile.TemporaryDirectory() as folder:
            run, found = check(Path(folder), count, asked.level, asked.clients, asked.keys, asked.seconds,
                               asked.seed + round_)  # fmt: skip
        done += len(run.present)
        failed += len(found)
        committed = sum(bool(t.committed) for t in run.present)
        print(f"{done} transactions, {committed} of {len(run.present)} committed, {dict(run.states)}, "
              f"{failed} anomalies", flush=True)  # fmt: skip
        for text in found[:10]:
            print("--", text[:1000], flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
