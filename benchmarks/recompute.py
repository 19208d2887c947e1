"""DuckDB for comparison: the same rows in memory, the same batches in transactions, the view recomputed after each."""

from __future__ import annotations

import time
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.library import Batches, Case, Plan
from benchmarks.sql_more import D_VIEW
from benchmarks.sql_workloads import Batch, Row

COMPONENTS = (
    "WITH RECURSIVE both_ways AS MATERIALIZED (SELECT src, dst FROM edges UNION ALL SELECT dst, src FROM edges), "
    "cc(node, label) USING KEY (node) AS (SELECT id, id FROM nodes UNION (SELECT e.dst, min(c.label) FROM cc c "
    "JOIN both_ways e ON e.src = c.node JOIN recurring.cc old ON old.node = e.dst WHERE c.label < old.label "
    "GROUP BY e.dst)) SELECT node, label FROM cc"
)


class Recompute:
    """A workload's tables in a database in memory."""

    def __init__(self, case: Case, base: dict[str, list[Row]]) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("SET enable_progress_bar = false")
        self.view = COMPONENTS if case.view == D_VIEW else case.view
        self.columns = {t: [c.split()[0] for c in columns.split(", ")] for t, columns in case.tables.items()}
        for table, columns in case.tables.items():
            self.connection.execute(f"CREATE TABLE {table} ({columns})")
            self.insert(table, base[table])

    def insert(self, table: str, rows: list[Row]) -> None:
        """Adds rows through Arrow."""
        given = pa.table({n: list(c) for n, c in zip(self.columns[table], zip(*rows, strict=True), strict=True)})
        self.connection.register("given", given)
        self.connection.execute(f"INSERT INTO {table} SELECT * FROM given")
        self.connection.unregister("given")

    def apply(self, batch: Batch) -> None:
        """Runs one transaction."""
        self.connection.execute("BEGIN")
        for table, keys in batch.deletes.items():
            if keys:
                self.connection.execute(
                    f"DELETE FROM {table} WHERE {self.columns[table][0]} IN (SELECT unnest(?))", [keys]
                )
        for table, rows in batch.updates.items():
            if rows:
                self._update(table, rows)
        for table, rows in batch.inserts.items():
            if rows:
                self.insert(table, rows)
        self.connection.execute("COMMIT")

    def _update(self, table: str, rows: list[Row]) -> None:
        key, *others = names = self.columns[table]
        given = pa.table({n: list(c) for n, c in zip(names, zip(*rows, strict=True), strict=True)})
        self.connection.register("given", given)
        sets = ", ".join(f"{name} = given.{name}" for name in others)
        self.connection.execute(f"UPDATE {table} SET {sets} FROM given WHERE {table}.{key} = given.{key}")
        self.connection.unregister("given")

    def read(self) -> list[Row]:
        """The view's rows, recomputed."""
        return self.connection.execute(self.view).fetchall()


def expected(case: Case, rows: dict[str, list[Row]]) -> set[Row]:
    """The view over these rows."""
    return set(Recompute(case, rows).read())


def measure(case: Case, plan: Plan, most: int = 20) -> list[Batches]:
    """As ``library.measure``, at most so many batches of a size."""
    made: Any = case.made()
    recompute = Recompute(case, made.base())
    recompute.read()
    found = []
    for size, count in plan:
        walls, cpus = [], []
        for batch in made.batches(size, min(count, most)):
            begun, mine = time.perf_counter(), time.process_time()
            recompute.apply(batch)
            recompute.read()
            cpus.append(1e3 * (time.process_time() - mine))
            walls.append(1e3 * (time.perf_counter() - begun))
        found.append(Batches(size, np.array(walls), np.array(cpus)))
    return found
