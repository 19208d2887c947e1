"""Trades and quotes: as-of joins on values and on the commit's time, maintained; beside DuckDB's ASOF JOIN recomputed.

1,000,000 quotes and 100,000 trades of 1,000 symbols; then single trades and quotes that come late, anywhere in time.
A figure is milliseconds from sending a transaction until its acknowledgement; DuckDB's is that of a transaction that
inserts the same and makes the result's table anew.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import psycopg
from numpy.typing import NDArray

from benchmarks.report import HERE, MILLISECONDS, SECONDS, Row
from benchmarks.rivals import RECOMPUTE

Words = NDArray[np.int64]
Samples = dict[str, list[float]]
QUOTES, TRADES, SYMBOLS, SPAN = 1_000_000, 100_000, 1_000, 1_000_000_000
TABLES = (
    "CREATE TABLE quotes (sym bigint NOT NULL, ts bigint NOT NULL, price bigint NOT NULL)",
    "CREATE TABLE trades (id bigint PRIMARY KEY, sym bigint NOT NULL, ts bigint NOT NULL, qty bigint NOT NULL)",
)
ASOF = (
    "SELECT t.id, t.sym, t.ts, t.qty, q.ts AS at, q.price "
    "FROM trades t ASOF JOIN quotes q ON t.sym = q.sym AND t.ts >= q.ts"
)
PROCTIME = (
    "SELECT t.id, t.sym, t.qty, r.price FROM trades t JOIN rates r FOR SYSTEM_TIME AS OF PROCTIME() ON t.sym = r.sym"
)


class Market:
    """The quotes and trades generated from a seed."""

    def __init__(self, seed: int = 14) -> None:
        self.rng = np.random.default_rng(seed)
        self.traded = 0

    def quotes(self, count: int) -> Words:
        """Rows of quotes."""
        rng = self.rng
        return np.stack([rng.integers(SYMBOLS, size=count), rng.integers(SPAN, size=count),
                         rng.integers(1, 1_000_000, size=count)], axis=1)  # fmt: skip

    def trades(self, count: int) -> Words:
        """Rows of trades."""
        ids = np.arange(self.traded, self.traded + count)
        self.traded += count
        rng = self.rng
        return np.stack([ids, rng.integers(SYMBOLS, size=count), rng.integers(SPAN, size=count),
                         rng.integers(1, 100, size=count)], axis=1)  # fmt: skip


def on_values(dsn: str) -> list[Row]:
    """ASOF JOIN."""
    market = Market()
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in TABLES:
            connection.execute(statement)  # type: ignore[arg-type]
        seconds = _copy(connection, "quotes", market.quotes(QUOTES))
        seconds += _copy(connection, "trades", market.trades(TRADES))
        started = time.perf_counter()
        connection.execute(f"CREATE MATERIALIZED VIEW v AS {ASOF}")  # type: ignore[arg-type]
        rows = [
            Row("asof", "COPY of quotes and trades", SECONDS, seconds),
            Row("asof", "the view", SECONDS, time.perf_counter() - started),
        ]
        samples = _changes(lambda table, rows: _insert(connection, table, rows), market, (500, 500, 100))
        found = connection.execute("SELECT count(*), sum(price) FROM v").fetchone()
    theirs, expected = _duckdb()
    return rows + [_row("asof", what, mine, theirs[what], found == expected) for what, mine in samples.items()]


def on_the_commit(dsn: str) -> list[Row]:
    """FOR SYSTEM_TIME AS OF PROCTIME(): the newest quote of each symbol, upserted."""
    market = Market()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TABLES[1])  # type: ignore[arg-type]
        connection.execute("CREATE TABLE rates (sym bigint PRIMARY KEY, ts bigint NOT NULL, price bigint NOT NULL)")
        _copy(connection, "rates", np.stack([np.arange(SYMBOLS)] * 3, axis=1))
        _copy(connection, "trades", market.trades(TRADES))
        started = time.perf_counter()
        connection.execute(f"CREATE MATERIALIZED VIEW v AS {PROCTIME}")  # type: ignore[arg-type]
        rows = [Row("proctime", "the view", SECONDS, time.perf_counter() - started)]

        def change(table: str, rows: Words) -> None:
            if table == "trades":
                _insert(connection, table, rows)
                return
            rows = rows[np.unique(rows[:, 0], return_index=True)[1]]
            text = "INSERT INTO rates SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) " \
                   "ON CONFLICT (sym) DO UPDATE SET ts = excluded.ts, price = excluded.price"  # fmt: skip
            connection.execute(text, rows.T.tolist())

        samples = _changes(change, market, (500, 500, 100))
        different = connection.execute("VERIFY MATERIALIZED VIEW v").fetchall()  # type: ignore[arg-type]
        return rows + [_row("proctime", what, mine, [], not different) for what, mine in samples.items()]


def _row(name: str, what: str, mine: list[float], theirs: list[float], right: bool) -> Row:
    half = float(np.median(mine))
    rivals = {RECOMPUTE + HERE: float(np.median(theirs))} if theirs else {}
    ratio = half / min(rivals.values()) if rivals else None
    return Row(name, what, MILLISECONDS, half, rivals, ratio, right=right, most=float(np.percentile(mine, 99)))


def _changes(change: Callable[[str, Words], None], market: Market, counts: tuple[int, int, int]) -> Samples:
    """Milliseconds of each change, without the first tenth."""
    plan = (
        ("one trade", "trades", market.trades, 1),
        ("one late quote", "quotes", market.quotes, 1),
        ("100 late quotes", "quotes", market.quotes, 100),
    )
    found = {}
    for (what, table, draw, size), count in zip(plan, counts, strict=True):
        samples = []
        for _ in range(count):
            rows = draw(size)
            started = time.perf_counter()
            change(table, rows)
            samples.append(1e3 * (time.perf_counter() - started))
        found[what] = samples[len(samples) // 10 :]
    return found


def _duckdb() -> tuple[Samples, tuple[int, ...] | None]:
    """The same, recomputed by DuckDB in its own file with one thread per core: fewer changes of each kind; and the
    result after all of Freshet's changes."""
    with tempfile.TemporaryDirectory(prefix="freshet-bench-") as folder:
        connection = duckdb.connect(str(Path(folder) / "market.duckdb"))

        def fill() -> Market:
            market = Market()
            for statement, rows in zip(TABLES, (market.quotes(QUOTES), market.trades(TRADES)), strict=True):
                connection.execute(statement.replace("CREATE TABLE", "CREATE OR REPLACE TABLE"))
                _append(connection, statement.split()[2], rows)
            return market

        def change(table: str, rows: Words) -> None:
            connection.execute("BEGIN")
            _append(connection, table, rows)
            connection.execute(f"CREATE OR REPLACE TABLE v AS {ASOF}")
            connection.execute("COMMIT")

        samples = _changes(change, fill(), (20, 20, 20))
        _changes(lambda table, rows: _append(connection, table, rows), fill(), (500, 500, 100))
        expected = connection.execute(f"SELECT count(*), sum(price)::bigint FROM ({ASOF})").fetchone()
        connection.close()
    return samples, expected


def _append(connection: duckdb.DuckDBPyConnection, table: str, rows: Words) -> None:
    columns = {f"c{i}": np.ascontiguousarray(rows[:, i]) for i in range(rows.shape[1])}
    connection.register("given", columns)
    connection.execute(f"INSERT INTO {table} SELECT * FROM given")
    connection.unregister("given")


def _copy(connection: psycopg.Connection, table: str, rows: Words) -> float:
    """COPY as text; seconds from the first byte sent."""
    data = "".join("\t".join(map(str, row)) + "\n" for row in rows.tolist()).encode()
    started = time.perf_counter()
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:  # type: ignore[arg-type]
        for start in range(0, len(data), 1 << 18):
            copy.write(data[start : start + (1 << 18)])
    return time.perf_counter() - started


def _insert(connection: psycopg.Connection, table: str, rows: Words) -> None:
    marks = ", ".join(["%s::bigint[]"] * rows.shape[1])
    connection.execute(f"INSERT INTO {table} SELECT * FROM unnest({marks})", rows.T.tolist(), prepare=True)  # type: ignore[arg-type]
