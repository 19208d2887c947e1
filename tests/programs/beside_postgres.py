"""Random queries and histories beside a PostgreSQL: ``python -m tests.programs.beside_postgres --dsn … --count 50``.

``--dsn``: a database of a PostgreSQL whose collation is C (``createdb -T template0 --locale=C``); its schema ``public``
is emptied. Each round makes tables, then views of random queries, half of them before any row, each with a view over
it, and runs transactions on both servers. Compared are the view, the view over it and the query itself after each
commit, views inside transactions, in binary, as of earlier epochs, and after a restart.
"""

from __future__ import annotations

import argparse
import random
import re
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psycopg

from tests.support.program import Program
from tests.support.random_sql import Maker

SESSION: Final = "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'; SET IntervalStyle = 'postgres'"
PLANNED: Final = ("22", "21")
"""Classes of errors that depend on which rows a plan reaches first."""
NUMERIC: Final = 1700
FLOATS: Final = (700, 701)
INTERVAL: Final = 1186
ARRAYS: Final = frozenset(range(1000, 1029)) | {1115, 1182, 1183, 1185, 1187, 1231, 2951, 3807}
Cells = tuple[bytes | None, ...]


@dataclass(frozen=True)
class Answer:
    """A query's rows in raw form, or the SQLSTATE with which it failed."""

    rows: Counter[Cells]
    state: str | None = None
    message: str = ""
    spellings: Mapping[int, Spelling] = field(default_factory=dict)
    """Of the columns whose equal values may be written differently."""

    def respelled(self) -> Counter[Cells]:
        """The rows, with equal values written equally: a group has the spelling of any of its rows."""
        found: Counter[Cells] = Counter()
        for row, count in self.rows.items():
            found[tuple(v if v is None else self.spellings.get(j, bytes)(v) for j, v in enumerate(row))] += count
        return found


class Side:
    """A connection to one of the servers."""

    def __init__(self, dsn: str) -> None:
        self.connection = psycopg.connect(dsn, autocommit=True, prepare_threshold=None)
        self.connection.execute(SESSION)  # type: ignore[arg-type]

    def run(self, sql: str) -> str | None:
        """Run a statement; the SQLSTATE if it fails."""
        return self.ask(sql).state

    def inside(self, sql: str) -> Answer:
        """Ask in a transaction that goes on if the query fails."""
        self.run("SAVEPOINT q")
        answer = self.ask(sql)
        self.run("ROLLBACK TO q; RELEASE q")
        return answer

    def ask(self, sql: str, binary: bool = False) -> Answer:
        try:
            cursor = self.connection.execute(sql, binary=binary)  # type: ignore[arg-type]
        except psycopg.Error as error:
            return Answer(Counter(), error.sqlstate or "08006", str(error).splitlines()[0])
        result = cursor.pgresult
        if result is None or not result.nfields:
            return Answer(Counter({(): 0 if result is None else result.ntuples}))
        floats = {j for j in range(result.nfields) if result.ftype(j) in FLOATS}
        spellings = {j: SPELLINGS[k] for j in range(result.nfields) if (k := (result.ftype(j), binary)) in SPELLINGS}
        special = {}
        for j in range(result.nfields) if binary else ():
            if result.ftype(j) == NUMERIC:
                special[j] = _numeric
            elif result.ftype(j) in ARRAYS:
                special[j] = _array
        rows = (
            tuple(
                special[j](result.get_value(i, j))
                if j in special
                else _cell(result.get_value(i, j), j in floats, binary)
                for j in range(result.nfields)
            )
            for i in range(result.ntuples)
        )
        return Answer(Counter(rows), spellings=spellings)


def _numeric(value: bytes | None) -> bytes | None:
    """A numeric in binary, without the scale that NaN and the infinities have by chance."""
    return value if value is None or value[4] & 0xC0 != 0xC0 else value[:6]


def _array(value: bytes | None) -> bytes | None:
    """An array in binary, without the mark of NULLs, which PostgreSQL leaves on a part of an array that has some."""
    return value if value is None else value[:4] + value[8:]


def _interval(value: bytes) -> bytes:
    """The length of an interval in binary, as PostgreSQL compares intervals: months of 30 days of 24 hours."""
    micros, days, months = struct.unpack("!qii", value)
    return f"{micros + (months * 30 + days) * 86_400_000_000}".encode()


def _interval_text(value: bytes) -> bytes:
    text, micros, days = value.decode(), 0, 0
    for count, unit in re.findall(r"(-?\d+) ([ymd])", text):
        days += int(count) * {"y": 360, "m": 30, "d": 1}[unit]
    for sign, hours, minutes, seconds in re.findall(r"(-?)(\d+):(\d+):([\d.]+)", text):
        micros += (-1 if sign else 1) * round((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1e6)
    return f"{micros + days * 86_400_000_000}".encode()


def _numeric_text(value: bytes) -> bytes:
    return value.rstrip(b"0").rstrip(b".") if b"." in value else value


def _numeric_scale(value: bytes) -> bytes:
    """A numeric in binary without the scale with which it is shown."""
    return value[:6] + value[8:]


Spelling = Callable[[bytes], bytes]
SPELLINGS: Final[dict[tuple[int, bool], Spelling]] = {
    (INTERVAL, False): _interval_text, (INTERVAL, True): _interval,
    (NUMERIC, False): _numeric_text, (NUMERIC, True): _numeric_scale,
    **{(oid, False): lambda v: b"0" if v == b"-0" else v for oid in FLOATS},
}  # fmt: skip


def _cell(value: bytes | None, is_float: bool, binary: bool) -> bytes | None:
    """A float to twelve digits, since sums depend on the order there; not compared in binary."""
    if value is None or not is_float:
        return value
    return b"" if binary else f"{float(value):.12g}".encode()


@dataclass
class View:
    name: str
    query: str
    past: list[tuple[str, Answer]] = field(default_factory=list)
    """Epochs, and what PostgreSQL answered then."""
    differs: bool = False
    """One difference is reported of a view, the first."""


@dataclass
class Tally:
    compared: int = 0
    queries: int = 0
    invalid: int = 0
    raised: Counter[str] = field(default_factory=Counter)
    """Errors that PostgreSQL's plan did not meet."""
    spelled: int = 0
    """Answers that differ in the spelling of equal values only."""
    refused: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def differ(self, seed: int, what: str, query: str, ours: Answer, theirs: Answer) -> None:
        text = f"-- seed {seed}, {what}\n{query};"
        if ours.state:
            text += f"\n-- ours: {ours.state} {ours.message}"
        else:
            missing, extra = theirs.rows - ours.rows, ours.rows - theirs.rows
            text += f"\n-- missing {_shown(missing)}\n-- extra {_shown(extra)}"
        self.differences.append(text)
        print(text, flush=True)


def _shown(rows: Counter[Cells]) -> str:
    return ", ".join(f"{n}x{cells}" for cells, n in list(rows.items())[:4])


class Round:
    """One schema, its views and its history."""

    def __init__(self, seed: int, ours: Side, theirs: Side, tally: Tally, views: int) -> None:
        self.seed, self.ours, self.theirs, self.tally = seed, ours, theirs, tally
        self.rng = random.Random(seed)
        self.maker = Maker(self.rng)
        self.views: list[View] = []
        self.wanted = views

    def run(self, steps: int) -> None:
        for table in self.maker.tables:
            for side in (self.ours, self.theirs):
                assert side.run(table.definition) is None, table.definition
        self._create(self.wanted // 2)
        for step in range(steps):
            self._transaction()
            self._compare(f"step {step}")
            if step == steps // 2:
                self._create(self.wanted - self.wanted // 2)
                self._compare("created over rows")

    def _create(self, count: int) -> None:
        for _ in range(count):
            query, _ = self.maker.query()
            answer = self.theirs.ask(query)
            if answer.state is not None and answer.state[:2] == "42":
                self.tally.invalid += 1
                continue
            name = f"v{len(self.views)}"
            self.tally.queries += 1
            made = self.ours.ask(f"CREATE MATERIALIZED VIEW {name} AS {query}")
            if made.state == "0A000":
                self.tally.refused[made.message] += 1
                continue
            if made.state is not None:
                self.tally.differ(self.seed, "CREATE", query, made, answer)
                continue
            self.ours.run(f"CREATE MATERIALIZED VIEW {name}_over AS SELECT * FROM {name}")
            self.views.append(View(name, query))

    def _transaction(self) -> None:
        changes = [self.maker.change() for _ in range(self.rng.randint(1, 4))]
        if len(changes) > 1 and self.rng.random() < 0.6:
            end = "ROLLBACK" if self.rng.random() < 0.2 else "COMMIT"
            middle = ["SAVEPOINT s", self.maker.change(), "ROLLBACK TO s"] if self.rng.random() < 0.4 else []
            self._both(["BEGIN", changes[0], *middle, *changes[1:]])
            for view in self.rng.sample(self.views, min(len(self.views), 2)):
                expected = self.theirs.inside(view.query)
                self._same(view, "in the transaction", f"SELECT * FROM {view.name}", expected, inside=True)
            self._both([end])
        else:
            self._both(changes)

    def _both(self, statements: Sequence[str]) -> None:
        for sql in statements:
            ours, theirs = self.ours.ask(sql), self.theirs.ask(sql)
            if (ours.state is None) != (theirs.state is None):
                self.tally.differ(self.seed, f"change; theirs {theirs.state}", sql, ours, theirs)

    def _compare(self, when: str) -> None:
        epoch = self.ours.connection.execute("SELECT mz_now()").fetchone()
        for table in self.maker.tables:
            query = f"SELECT * FROM {table.name}"
            self._same(View("", query), f"{when}, table", query, self.theirs.ask(query))
        for view in self.views:
            expected = self.theirs.ask(view.query)
            self._same(view, f"{when}, view", f"SELECT * FROM {view.name}", expected)
            self._same(view, f"{when}, view over it", f"SELECT * FROM {view.name}_over", expected)
            self._same(view, f"{when}, query", view.query, expected)
            if epoch is not None and expected.state is None:
                view.past.append((str(epoch[0]), expected))

    def _same(
        self, view: View, what: str, sql: str, expected: Answer, binary: bool = False, inside: bool = False
    ) -> None:
        if expected.state is not None:  # Postgres fails, or not, depending on its plan
            return
        if view.differs:
            return
        self.tally.compared += 1
        found = self.ours.inside(sql) if inside else self.ours.ask(sql, binary)
        if found.state is not None and (found.state[:2] in PLANNED or "cannot convert" in found.message):  # so do we
            if not self.tally.raised[f"{found.state} {found.message}"]:
                print(f"-- seed {self.seed}, {what}, raised here only: {found.message}\n{view.query};", flush=True)
            self.tally.raised[f"{found.state} {found.message}"] += 1
            return
        if found.state is None and found.rows != expected.rows and found.respelled() == expected.respelled():
            self.tally.spelled += 1
            return
        if found.state is not None or found.rows != expected.rows:
            view.differs = True
            self.tally.differ(self.seed, what, view.query, found, expected)

    def finish(self, ours: Side) -> None:
        """After a restart, in binary, and as of the past."""
        self.ours = ours
        self._compare("restarted")
        for view in self.views:
            self._same(view, "binary", f"SELECT * FROM {view.name}", self.theirs.ask(view.query, True), binary=True)
            for epoch, expected in self.rng.sample(view.past, min(len(view.past), 2)):
                self._same(view, f"as of {epoch}", f"SELECT * FROM {view.name} AS OF {epoch}", expected)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", required=True, help="the PostgreSQL to compare with")
    parser.add_argument("--count", type=int, default=20, help="rounds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--views", type=int, default=20, help="queries in a round")
    parser.add_argument("--steps", type=int, default=6, help="transactions in a round")
    options = parser.parse_args(arguments)
    tally, begun = Tally(), time.monotonic()
    theirs = Side(options.dsn)
    for seed in range(options.seed, options.seed + options.count):
        theirs.connection.execute("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")
        with tempfile.TemporaryDirectory() as folder:
            program = Program(Path(folder))
            try:
                played = Round(seed, Side(program.dsn), theirs, tally, options.views)
                played.run(options.steps)
                assert program.terminate() == 0
                program = Program(Path(folder))
                played.finish(Side(program.dsn))
            finally:
                program.kill()
        print(
            f"seed {seed}: {tally.queries} queries, {tally.compared} comparisons, {len(tally.differences)} "
            f"differences, {sum(tally.refused.values())} refused, {tally.invalid} invalid, "
            f"{sum(tally.raised.values())} raised here only, {tally.spelled} spelled otherwise, "
            f"{time.monotonic() - begun:.0f} s",
            flush=True,
        )
    for message, count in tally.refused.most_common(20):
        print(f"refused {count}: {message}")
    for message, count in tally.raised.most_common(20):
        print(f"raised {count}: {message}")
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
