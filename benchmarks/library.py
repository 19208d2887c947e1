"""Workloads A to E with the planner and the engine alone: no wire, no server, nothing on disk.

A batch is timed from Python's rows until the view's changes have been applied to a dict of its rows, including
encoding, the step and decoding, as in the libraries' figures. The caller supplies a row's old value to delete it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.flow import Flow
from benchmarks.sql_more import B_TABLES, B_VIEW, D_TABLES, D_VIEW, E_TABLES, E_VIEWS, Components, Events, Orders
from benchmarks.sql_workloads import A_TABLES, A_VIEW, C_TABLES, C_VIEW, Batch, Graph, Row, Sales
from ivm.rows import Words, pack, unpack
from ivm.words import Kind, Schema
from storage.types import codec

Plan = tuple[tuple[int, int], ...]
"""(rows a batch, how many batches)."""
SMALL, WIDE = ((1, 200), (100, 50), (10_000, 10)), ((1, 100), (600, 20))


class Source(Protocol):
    """Generates a workload's rows and batches."""

    def base(self) -> dict[str, list[Row]]: ...
    def batches(self, size: int, count: int) -> Iterator[Batch]: ...


@dataclass(frozen=True, slots=True)
class Case:
    """A workload of A to E; ``read``: what a client reads after each batch."""

    made: Callable[[], Source]
    tables: dict[str, str]
    view: str
    read: str
    plan: Plan


WHOLE, COUNT, GROUP = "SELECT * FROM v", "SELECT count(*) FROM v", "SELECT * FROM v WHERE grp = 7"


def cases(shrink: int = 1) -> dict[str, Case]:
    """The cases by name, with the base divided by ``shrink``."""
    one_k, hundred_k = ((1, 200), (10, 50)), ((1, 100), (100, 20))
    thousand, hundred_thousand = 1_000 // shrink, 100_000 // shrink
    return {
        "A_S": Case(lambda: Sales(hundred_thousand), A_TABLES, A_VIEW, WHOLE, SMALL),
        "A_L": Case(lambda: Sales(10 * hundred_thousand), A_TABLES, A_VIEW, WHOLE, SMALL),
        "B": Case(lambda: Events(4 * hundred_thousand, thousand), B_TABLES, B_VIEW, GROUP, SMALL),
        "C_1k": Case(lambda: Graph(thousand), C_TABLES, C_VIEW, COUNT, one_k),
        "C_100k": Case(lambda: Graph(hundred_thousand), C_TABLES, C_VIEW, COUNT, hundred_k),
        "D_1k": Case(lambda: Components(thousand), D_TABLES, D_VIEW, COUNT, one_k),
        "D_100k": Case(lambda: Components(hundred_thousand), D_TABLES, D_VIEW, COUNT, hundred_k),
        **{name: Case(lambda: Orders(0.1 / shrink), E_TABLES, view, WHOLE, WIDE) for name, view in E_VIEWS.items()},
    }


Change = tuple[str, list[Row], list[int]]
"""A table, rows, and their diffs."""


class Contents:
    """The rows of every table by key, to find the old rows of a batch's updates and deletions."""

    def __init__(self, base: dict[str, list[Row]]) -> None:
        self.rows = {table: {row[0]: row for row in rows} for table, rows in base.items()}

    @property
    def tables(self) -> dict[str, list[Row]]:
        """All rows."""
        return {table: list(rows.values()) for table, rows in self.rows.items()}

    def changes(self, batch: Batch) -> list[Change]:
        """A batch as insertions and retractions of rows."""
        found: dict[str, tuple[list[Row], list[int]]] = {}

        def add(table: str, row: Row, diff: int) -> None:
            rows, diffs = found.setdefault(table, ([], []))
            rows.append(row)
            diffs.append(diff)

        for table, keys in batch.deletes.items():
            for key in keys:
                add(table, self.rows[table].pop(key), -1)
        for table, rows in batch.updates.items():
            for row in rows:
                add(table, self.rows[table][row[0]], -1)
                add(table, row, 1)
                self.rows[table][row[0]] = row
        for table, rows in batch.inserts.items():
            for row in rows:
                add(table, row, 1)
                self.rows[table][row[0]] = row
        return [(table, rows, diffs) for table, (rows, diffs) in found.items()]


class Library:
    """One view over tables, and its rows with their multiplicities in ``result``."""

    def __init__(self, tables: dict[str, str], view: str) -> None:
        self.flow = Flow([f"CREATE TABLE {name} ({columns})" for name, columns in tables.items()], view)
        self.schemas = {name: r.schema for name, r in self.flow.tables.relations.items()}
        self.result: dict[Row, int] = {}

    def encode(self, table: str, rows: list[Row]) -> Words:
        """Rows as words."""
        schema = self.schemas[table]
        if _plain(schema):
            return np.array(rows, np.int64)
        columns = zip(schema, zip(*rows, strict=True), strict=True)
        vectors = [codec.encode(column.type, values, self.flow.dictionary) for column, values in columns]
        return pack(vectors, schema, len(rows))

    def decode(self, words: Words) -> list[Row]:
        """Words as rows of the view."""
        schema = self.flow.schema
        if _plain(schema):
            return list(map(tuple, words.tolist()))
        vectors = zip(schema, unpack(words, schema), strict=True)
        return list(zip(*(codec.decode(c.type, v, self.flow.dictionary) for c, v in vectors), strict=True))

    def commit(self, changes: list[Change]) -> None:
        """Runs one transaction, until its effect is in ``result``."""
        flow, result = self.flow, self.result
        flow.ordinal += 1
        for table, rows, diffs in changes:
            flow.feed(table, self.encode(table, rows), np.array(diffs, np.int64))
        found = flow.step()
        if len(found.diffs):
            for row, diff in zip(self.decode(found.rows), found.diffs.tolist(), strict=True):
                count = result.get(row, 0) + diff
                if count:
                    result[row] = count
                else:
                    del result[row]


def _plain(schema: Schema) -> bool:
    """Whether rows are plain integers."""
    return all(c.type.kind is Kind.INT8 and not c.nullable for c in schema)


@dataclass(frozen=True, slots=True)
class Batches:
    """Wall and CPU milliseconds of each batch of one size."""

    size: int
    walls: NDArray[np.float64]
    cpus: NDArray[np.float64]

    @property
    def half(self) -> float:
        """The median wall time."""
        return float(np.median(self.walls))


@dataclass(frozen=True, slots=True)
class Found:
    """``load``: seconds; ``right``: whether the view equals another system's result from the same rows."""

    load: float
    batches: list[Batches]
    right: bool | None


def measure(case: Case, plan: Plan, expected: Callable[[Case, dict[str, list[Row]]], set[Row]] | None = None) -> Found:
    """Load, then the plan's batches."""
    made = case.made()
    base = made.base()
    contents = Contents(base)
    library = Library(case.tables, case.view)
    started = time.perf_counter()
    library.commit([(table, list(rows), [1] * len(rows)) for table, rows in base.items()])
    load = time.perf_counter() - started
    found = []
    for size, count in plan:
        walls, cpus = [], []
        for batch in made.batches(size, count):
            changes = contents.changes(batch)
            begun, mine = time.perf_counter(), time.process_time()
            library.commit(changes)
            cpus.append(1e3 * (time.process_time() - mine))
            walls.append(1e3 * (time.perf_counter() - begun))
        found.append(Batches(size, np.array(walls), np.array(cpus)))
    right = None
    if expected is not None:
        right = library.result == dict.fromkeys(expected(case, contents.tables), 1)
    return Found(load, found, right)
