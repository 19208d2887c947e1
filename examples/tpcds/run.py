"""TPC-DS's 99 queries as maintained views, under changes, compared with PostgreSQL's answers.

``python -m examples.tpcds.run --dsn DSN --reference DSN [--scale 0.01] [--rounds 3] [--extension FILE]``: DuckDB's
extension ``tpcds`` makes the rows and gives the queries (``--extension``: its file, if DuckDB cannot install it); a
server and a PostgreSQL get the rows, the server the views, and both the same changes, round by round.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from decimal import Decimal
from typing import Final, LiteralString, cast

import duckdb
import psycopg

from examples.terminal import quantile, step

Row = tuple[object, ...]
ROUNDS: Final = (
    "DELETE FROM store_sales WHERE ss_ticket_number % 97 = {0}",
    "DELETE FROM store_returns WHERE sr_ticket_number % 97 = {0}",
    "UPDATE catalog_sales SET cs_sales_price = cs_sales_price + 1, cs_net_profit = cs_net_profit + 1"
    " WHERE cs_order_number % 89 = {0}",
    "UPDATE customer SET c_birth_month = c_birth_month % 12 + 1 WHERE c_customer_sk % 50 = {0}",
    "UPDATE item SET i_current_price = i_current_price + 2 WHERE i_item_sk % 40 = {0}",
    "DELETE FROM inventory WHERE inv_item_sk % 60 = {0}",
    "UPDATE web_sales SET ws_quantity = ws_quantity + 1 WHERE ws_order_number % 83 = {0}",
    "DELETE FROM web_returns WHERE wr_order_number % 83 = {0}",
    "UPDATE store_sales SET ss_net_paid = ss_net_paid + 1 WHERE ss_ticket_number % 97 = {0} + 1",
)
"""The changes of a round, whose number is filled in."""
_USED: Final = """customer_demographics WHERE cd_demo_sk IN (
  SELECT c_current_cdemo_sk FROM customer UNION SELECT ss_cdemo_sk FROM store_sales UNION
  SELECT cs_bill_cdemo_sk FROM catalog_sales UNION SELECT cs_ship_cdemo_sk FROM catalog_sales UNION
  SELECT wr_refunded_cdemo_sk FROM web_returns UNION SELECT wr_returning_cdemo_sk FROM web_returns)"""
"""The two million rows that there are at every scale, without those that nothing refers to."""


class Source:
    """The rows and queries, from DuckDB."""

    def __init__(self, scale: float, extension: str | None) -> None:
        self.duck = duckdb.connect()
        if extension is None:
            self.duck.execute("INSTALL tpcds")
        self.duck.execute(f"LOAD '{extension or 'tpcds'}'")
        self.duck.execute(f"CALL dsdgen(sf={scale})")
        self.tables = [row[0] for row in self.duck.execute("SHOW TABLES").fetchall()]

    def queries(self) -> dict[str, str]:
        """By the name of the view."""
        found = self.duck.execute("FROM tpcds_queries()").fetchall()
        return {f"ds{number}": text.strip().rstrip(";") for number, text in found}

    def fill(self, other: psycopg.Connection[Row], table: str) -> int:
        """Creates a table and copies its rows; how many."""
        columns = self.duck.execute(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = ? "
            "ORDER BY ordinal_position", [table],
        ).fetchall()  # fmt: skip
        shown = ", ".join(f"{name} {type_.lower().replace('varchar', 'text')}" for name, type_ in columns)
        run(other, f"CREATE TABLE {table} ({shown})")
        rows = self.duck.execute(f"SELECT * FROM {_USED if table == 'customer_demographics' else table}").fetchall()
        with other.cursor().copy(cast("LiteralString", f"COPY {table} FROM STDIN")) as copy:
            for row in rows:
                copy.write_row(row)
        return len(rows)


def run(connection: psycopg.Connection[Row], text: str) -> list[Row]:
    """A statement's rows."""
    cursor = connection.execute(cast("LiteralString", text))
    return cursor.fetchall() if cursor.description else []


def answer(rows: Iterable[Row]) -> list[str]:
    """Rows whatever their order, with six digits of what is not exact."""

    def shown(value: object) -> str:
        if isinstance(value, float | Decimal):
            return f"{float(value):.6g}"
        return "" if value is None else str(value).strip()

    return sorted("|".join(map(shown, row)) for row in rows)


def compare(own: psycopg.Connection[Row], other: psycopg.Connection[Row], queries: dict[str, str]) -> list[str]:
    """The views whose rows are not what PostgreSQL answers, or not what a recompute gives."""
    return [
        name
        for name, query in queries.items()
        if answer(run(own, f"SELECT * FROM {name}")) != answer(run(other, query))
        or run(own, f"VERIFY MATERIALIZED VIEW {name}")
    ]


def main() -> None:
    """Loads, creates, changes, compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--extension")
    args = parser.parse_args()
    source = Source(args.scale, args.extension)
    own, other = (psycopg.connect(dsn, autocommit=True) for dsn in (args.dsn, args.reference))
    for table in source.tables:
        with step(f"COPY {table}") as outcome:
            source.fill(other, table)
            outcome.result = f"{source.fill(own, table):,} rows"
    queries = source.queries()
    for name, query in queries.items():
        with step(f"CREATE MATERIALIZED VIEW {name}") as outcome:
            run(own, f"CREATE MATERIALIZED VIEW {name} AS {query}")
            outcome.result = f"{run(own, f'SELECT count(*) FROM {name}')[0][0]:,} rows"
    print(f"  unlike PostgreSQL: {compare(own, other, queries) or 'none'}", flush=True)
    spent: list[float] = []
    for number in range(args.rounds):
        for statement in ROUNDS:
            text = statement.format(number)
            begun = time.perf_counter()
            run(own, text)
            spent.append(1e3 * (time.perf_counter() - begun))
            run(other, text)
        print(f"  unlike PostgreSQL after round {number + 1}: {compare(own, other, queries) or 'none'}", flush=True)
    print(f"  a change of all views, ms: p50 {quantile(spent, 0.5):.0f}, p99 {quantile(spent, 0.99):.0f}")


if __name__ == "__main__":
    main()
