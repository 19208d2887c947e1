"""Nexmark's queries q0 to q22 as maintained views over generated events, compared with PostgreSQL's answers.

``python -m examples.nexmark.run --dsn DSN [--events 100000] [--changes 200] [--reference DSN]``: creates the tables and
views on a server, inserts events, then some one at a time, and prints what each view took to follow. ``--reference``: a
PostgreSQL with an empty database, which gets the same rows and answers the same queries.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, LiteralString, cast

import psycopg

from examples.nexmark.generate import changed, inserted, side_input
from examples.terminal import quantile, step, table

FOLDER: Final = Path(__file__).parent
_TUMBLE: Final = re.compile(r"TUMBLE\((\w+), (\w+), (INTERVAL '[^']+')\) (\w+)")
_HOP: Final = re.compile(r"HOP\((\w+), (\w+), (INTERVAL '[^']+'), (INTERVAL '[^']+')\) (\w+)")
Answer = tuple[int, str]
"""How many rows a view has, and a digest of them."""


def tables() -> list[str]:
    """The statements of ``tables.sql``."""
    return _statements("tables.sql")


def views() -> dict[str, str]:
    """The query of each view."""
    made = {}
    for statement in _statements("views.sql"):
        head, _, query = statement.partition(" AS\n")
        made[head.split()[-1]] = query
    return made


def _statements(name: str) -> list[str]:
    lines = [line for line in (FOLDER / name).read_text().splitlines() if not line.startswith("--")]
    return [text.strip() for text in "\n".join(lines).split(";") if text.strip()]


def for_postgres(query: str) -> str:
    """The query with TUMBLE and HOP as the subqueries that they stand for."""
    query = _TUMBLE.sub(
        r"(SELECT *, date_bin(\3, \2, '1970-01-01') AS window_start, date_bin(\3, \2, '1970-01-01') + \3 AS window_end"
        r" FROM \1) \4", query,
    )  # fmt: skip
    return _HOP.sub(
        r"(SELECT r.*, begun AS window_start, begun + \4 AS window_end FROM \1 r, generate_series("
        r"date_bin(\3, \2, '1970-01-01') - \4 + \3, date_bin(\3, \2, '1970-01-01'), \3) begun) \5", query,
    )  # fmt: skip


def answer(rows: Iterable[str]) -> Answer:
    """Of a view's rows as texts, whatever their order."""
    shown = sorted(rows)
    return len(shown), hashlib.sha256("\n".join(shown).encode()).hexdigest()[:16]


def rows_of(name: str, query: str | None = None) -> str:
    """The query that gives a view's rows as texts, or those of ``query``."""
    return f"SELECT {name}::text FROM {name if query is None else f'({query}) {name}'}"


def main() -> None:
    """Loads, changes, compares; prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--reference")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--changes", type=int, default=200)
    args = parser.parse_args()
    own = Database(args.dsn)
    loaded = [*tables(), side_input(), *inserted(0, args.events)]
    with step(f"{args.events:,} events") as outcome:
        own.play(loaded)
        outcome.result = "inserted"
    lines: list[tuple[str, ...]] = []
    done: list[str] = []
    for i, (name, query) in enumerate(views().items()):
        begun = time.perf_counter()
        own.play([f"CREATE MATERIALIZED VIEW {name} AS {query}"])
        created, spent = time.perf_counter() - begun, []
        for number in range(args.changes):
            made = changed(args.events + args.changes * i + number)
            done += made
            begun = time.perf_counter()
            own.play(made)
            spent.append(1e3 * (time.perf_counter() - begun) / len(made))
        own.play([f"DROP MATERIALIZED VIEW {name}"])
        shown = (f"{created:.2f}", f"{quantile(spent, 0.5):.2f}", f"{quantile(spent, 0.99):.2f}")
        lines.append((name, *shown))
    table(("view", "created, s", "a change, p50 ms", "p99 ms"), lines)
    if args.reference:
        compare(own, Database(args.reference), loaded + done)


def compare(own: Database, other: Database, played: list[str]) -> None:
    """Plays the same on PostgreSQL, and says of each query whether the answers are equal."""
    other.play(played)
    for name, query in views().items():
        own.play([f"CREATE MATERIALIZED VIEW {name} AS {query}"])
        same = answer(own.texts(rows_of(name))) == answer(other.texts(rows_of(name, for_postgres(query))))
        print(f"{name}: {'equal' if same else 'DIFFERENT'}")


class Database:
    """A connection that plays statements."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)

    def play(self, statements: Iterable[str]) -> None:
        """Runs them one by one."""
        for statement in statements:
            self._connection.execute(cast("LiteralString", statement))

    def texts(self, query: str) -> list[str]:
        """The only column of a query's rows."""
        return [row[0] for row in self._connection.execute(cast("LiteralString", query))]


if __name__ == "__main__":
    main()
