"""Long statements, beside PostgreSQL.

``python -m benchmarks.statements [names]``. A figure is the server's CPU time (all threads, user and system) of one
statement: the median of a few runs that alternate with the same text in PostgreSQL, whose backend is measured the same
way (``benchmarks.values`` says where it runs). *Cold*: each run has another length, so that no plan fits it; *again*:
the same length with other constants, after such a run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

import psycopg

from benchmarks.report import HERE, MILLISECONDS, Row
from benchmarks.server import started
from benchmarks.values import spent

TIMES: Final = 7
COLUMNS: Final = 1_600
"""Of the widest table that PostgreSQL makes."""
IDLE: Final = 0.025
"""Seconds of CPU in half a second that a server takes which has nothing to do, at most."""
AIM: Final = 3.0
"""Times PostgreSQL's CPU time."""
WIDE: Final = f"CREATE TABLE wide ({', '.join(f'c{i} int' for i in range(COLUMNS))})"
TABLES: Final = (
    "DROP TABLE IF EXISTS t, five, wide, small",
    "CREATE TABLE t (a int PRIMARY KEY, b int, s text, d date)",
    "INSERT INTO t SELECT g, g % 100, 'item ' || g, date '2024-01-01' + g FROM generate_series(0, 999) x(g)",
    "CREATE TABLE small (a int PRIMARY KEY)",
    "INSERT INTO small VALUES (1)",
    "CREATE TABLE five (a int, b text, c numeric(9,2), d int, e bool)",
    WIDE,
    f"INSERT INTO wide VALUES ({', '.join(map(str, range(COLUMNS)))})",
)
_OF_EIGHT: Final = (
    "a + {i} <> 5", "b <> {i}", "s <> 'x{i}'", "a * 2 < {i} + 5000", "(b > {i} OR a >= 0)", "length(s) < {i} + 100",
    "a IS NOT NULL", "d > date '2001-01-01' + {i}",
)  # fmt: skip
_SUMMED: Final = ("a + {i}", "b", "a * {i}", "(a - b)", "length(s)", "b % 7", "abs(a)", "{i}")


def _listed(form: str, between: str = ", ") -> Callable[[int, int], str]:
    return lambda n, first: between.join([form.format(i=first + i) for i in range(n)])


def _of_forms(forms: Sequence[str], between: str) -> Callable[[int, int], str]:
    return lambda n, first: between.join([forms[i % len(forms)].format(i=first + i) for i in range(n)])


def _nested(before: str, inner: str, after: str) -> Callable[[int, int], str]:
    return lambda n, first: before * n + inner.format(i=first) + after * n


@dataclass(frozen=True, slots=True)
class Form:
    """``text``: with a place for what ``part`` makes of a length and of the first of its constants."""

    text: str
    part: Callable[[int, int], str]
    length: int

    def statement(self, length: int, first: int) -> str:
        """Of this length, whose constants begin with ``first``."""
        return self.text.replace("{}", self.part(length, first))


_ROWS: Final = _listed("({i}, 'x{i}', {i}.5, NULL, true)")
FORMS: Final = {
    "IN, integers": Form("SELECT count(*) FROM t WHERE b IN ({})", _listed("{i}"), 1_000),
    "IN, more integers": Form("SELECT count(*) FROM t WHERE b IN ({})", _listed("{i}"), 10_000),
    "IN, strings": Form("SELECT count(*) FROM t WHERE s IN ({})", _listed("'item {i}'"), 10_000),
    "IN, dates": Form("SELECT count(*) FROM t WHERE d IN ({})", _listed("date '2024-01-01' + {i}"), 10_000),
    "VALUES": Form("SELECT count(*) FROM (VALUES {}) v(a, b, c, d, e)", _ROWS, 10_000),
    "SELECT *, columns": Form("SELECT * FROM wide WHERE c0 < {}", lambda _, first: str(first + 1), COLUMNS),
    "SELECT, columns": Form(
        "SELECT {} FROM wide", lambda n, first: ", ".join([f"c{(first + i) % COLUMNS}" for i in range(n)]), 1_500
    ),
    "UNION ALL": Form("SELECT count(*) FROM ({}) u", _listed("SELECT {i} AS x", " UNION ALL "), 300),
    "UNION ALL, keys": Form(
        "SELECT count(*) FROM ({}) u", _listed("SELECT a + {i} AS x FROM t WHERE a = {i}", " UNION ALL "), 300
    ),
    "tables": Form(
        "SELECT count(*) FROM small t0 {}",
        lambda n, first: " ".join([f"JOIN small t{i} ON t{i}.a = t{i - 1}.a + {first} * 0" for i in range(1, n)]),
        32,
    ),
    "AND": Form("SELECT count(*) FROM t WHERE {}", _listed("a + {i} <> 5", " AND "), 2_000),
    "AND, eight forms": Form("SELECT count(*) FROM t WHERE {}", _of_forms(_OF_EIGHT, " AND "), 2_000),
    "OR": Form("SELECT count(*) FROM t WHERE {}", _listed("(a = {i} AND b > {i})", " OR "), 2_000),
    "a sum": Form("SELECT sum({}) FROM t", _listed("a", " + "), 2_000),
    "a sum, eight forms": Form("SELECT {} FROM t", _of_forms(_SUMMED, " + "), 2_000),
    "text": Form("SELECT {} FROM t", _listed("s", " || "), 2_000),
    "calls in calls": Form("SELECT {} FROM t", _nested("abs(", "a - {i}", ")"), 2_000),
    "CASE in CASE": Form("SELECT {} FROM t", _nested("CASE WHEN a = 1 THEN b ELSE ", "{i}", " END"), 2_000),
    "INSERT": Form("INSERT INTO five VALUES {}", _ROWS, 1_000),
    "INSERT, more rows": Form("INSERT INTO five VALUES {}", _ROWS, 10_000),
    "INSERT, columns": Form(f"INSERT INTO wide VALUES ({{}}{', NULL' * 100})", _listed("{i}"), COLUMNS - 100),
}
Cost = Callable[[str], float]
"""A statement → milliseconds of CPU."""


def prepared(connection: psycopg.Connection[Any], process: int) -> Cost:
    """What measures statements, once the tables are there."""
    for statement in TABLES:
        connection.execute(statement)  # type: ignore[arg-type]

    def cost(statement: str) -> float:
        before = spent(process)
        connection.execute(statement)  # type: ignore[arg-type]
        found = 1e3 * (spent(process) - before)
        if statement.startswith("INSERT"):
            connection.execute("TRUNCATE five")
            connection.execute("DELETE FROM wide WHERE c0 > 0")
            rest(process)
        return found

    rest(process)
    return cost


def rest(process: int) -> None:
    """Wait until a process has done what it does after writes, beside statements; 20 s at most."""
    for _ in range(40):
        before = spent(process)
        time.sleep(0.5)
        if spent(process) - before < IDLE:
            return


@contextmanager
def postgres() -> Iterator[Cost | None]:
    """The cost in PostgreSQL, if there is one."""
    where = os.environ.get("FRESHET_POSTGRES")
    if not where:
        yield None
        return
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute("SET max_parallel_workers_per_gather = 0")
        yield prepared(connection, connection.info.backend_pid)


def measure(names: Sequence[str], shrink: int = 1, times: int = TIMES) -> Iterator[Row]:
    """Two rows for each form, as they are measured; ``shrink`` divides the lengths."""
    with started() as running, psycopg.connect(running.dsn, autocommit=True) as connection, postgres() as theirs:
        ours = prepared(connection, running.process)
        for name in names:
            yield from _compared(name, FORMS[name], max(FORMS[name].length // shrink, 2), ours, theirs, times)


def _compared(name: str, form: Form, length: int, ours: Cost, theirs: Cost | None, times: int) -> Iterator[Row]:
    """An odd number of ``times``. A length is that of the form, and in a cold run a few less."""
    cold: list[tuple[float, float]] = []
    again: list[tuple[float, float]] = []
    for i in range(times):
        for found, length_now in ((cold, length - 1 - i), (again, length)):
            statement = form.statement(max(length_now, 1), len(cold) + len(again) + 1)
            found.append((ours(statement), float("nan") if theirs is None else theirs(statement)))
    for case, found in (("cold", cold), ("again", again[1:] or again)):
        own, rival = (median(side) for side in zip(*found, strict=True))
        ratio = None if theirs is None else own / rival
        rivals = {} if theirs is None else {f"PostgreSQL{HERE}": rival}
        row = Row("statements", f"{name}, {length:,}, {case}", MILLISECONDS, own, rivals)
        yield row if ratio is None else replace(row, ratio=ratio, aim=f"≤ {AIM:g}×", met=ratio <= AIM)


def main() -> None:
    """Prints each figure when it is there; arguments are parts of names."""
    wanted = [n for n in FORMS if not sys.argv[1:] or any(part in n for part in sys.argv[1:])]
    for row in measure(wanted):
        theirs = next(iter(row.rivals.values()), float("nan"))
        print(f"{row.ours:8.2f} {theirs:8.2f} {row.ratio or float('nan'):7.1f}  {row.case}", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
