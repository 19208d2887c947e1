"""W1 to W5, W7 and W8: the graph that the planner renders for the workload's SQL, each transaction its own epoch.

``python -m benchmarks.engine [names] [flat]`` prints updates per CPU second of all threads, the latency of a step, and
the ratio to the compiled differential-dataflow, one worker, corrected by ``calibrate.factor()``. The output is checked
against an answer from scratch.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.calibrate import factor
from benchmarks.workloads import Words, Workload, checksum, workloads
from ivm.dataflow import Dataflow
from ivm.kernels.warm import warm
from planner.context import Context
from planner.lower import lower
from planner.lower_state import KnownIndexes
from planner.render import Renderer
from planner.transform.pipeline import optimize
from sql.bind.statement import bind_statement
from sql.catalog.catalog import Relation, RelationKind
from sql.statements import definitions, queries
from storage.dictionary import Dictionary

VIEW = 1
BATCHES = {1: 20_000, 10: 40_000, 100: 100_000, 1000: 300_000, 100_000: 1_000_000}


class Tables:
    """A catalog of the workload's tables."""

    def __init__(self, ddl: Sequence[str]) -> None:
        self.relations: dict[str, Relation] = {}
        for number, text in enumerate(ddl):
            made = bind_statement(text, self).statement
            assert isinstance(made, definitions.CreateTable)
            self.relations[made.name] = Relation(100 + number, "public", made.name, RelationKind.TABLE, made.columns)

    def resolve(self, schema_name: str | None, name: str) -> Relation | None:
        return self.relations.get(name)

    def by_id(self, relation: int) -> Relation | None:
        return next((r for r in self.relations.values() if r.id == relation), None)

    def below(self, relation: Relation) -> tuple[Relation, ...]:
        return ()

    def routines(self, schema_name: str | None, name: str) -> tuple[Relation, ...]:
        return ()

    def type(self, schema_name: str | None, name: str) -> None:
        return None

    def home(self, schema_name: str | None, temporary: bool) -> str:
        return "public"


class Bench:
    """One workload in one dataflow."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.flow = Dataflow()
        self.renderer = Renderer(self.flow, Context(Dictionary(b"freshet benchmark"[:16])))
        tables = Tables(workload.ddl)
        self.inputs = {}
        for name, relation in tables.relations.items():
            self.inputs[name] = self.renderer.add_table(relation.id, relation.schema, ())
        query = bind_statement(workload.view, tables).statement
        assert isinstance(query, queries.Query)
        self.renderer.install(lower(optimize(query.rel), KnownIndexes()), VIEW)
        self.flow.hydrate()
        self.output = self.renderer.output(VIEW)
        self.ordinal = 0
        self.updates = 0

    def feed(self, table: str, rows: Words, diffs: Words) -> None:
        """Updates of one table at the present ordinal."""
        self.flow.feed(self.inputs[table], rows, self.ordinal, diffs)

    def step(self) -> None:
        """One step to completion, published, as production does it."""
        self.flow.step()
        self.flow.changes(self.output)
        self.flow.publish()
        self.flow.allow_compaction(self.ordinal)

    def load(self) -> float:
        """The base, each chunk at one time; CPU seconds."""
        bases = {table: rows_of(0, self.workload.size) for table, rows_of in self.workload.tables.items()}
        started = time.process_time()
        self.ordinal = 1
        for table, rows in self.workload.initial.items():
            self.feed(table, rows, np.ones(len(rows), np.int64))
        for table, base in bases.items():
            for rows in np.array_split(base, self.workload.chunks):
                self.feed(table, rows, np.ones(len(rows), np.int64))
                if self.workload.chunks > 1:
                    self.step()
                    self.ordinal += 1
        self.step()
        return time.process_time() - started

    def changes(self, size: int) -> list[tuple[str, Words, Words]]:
        """The next ``size`` updates: for each table the rows that go and that come, and their diffs."""
        workload, turns = self.workload, self.workload.turns
        found = []
        for place, table in enumerate(turns):
            low, high = (
                (u + len(turns) - 1 - place) // len(turns) for u in (self.updates, self.updates + size)
            )  # fmt: skip
            rows = workload.tables[table]
            if low < high:
                moved = np.concatenate([rows(low, high), rows(workload.size + low, workload.size + high)])
                found.append((table, moved, np.repeat(np.array([-1, 1]), high - low)))
        self.updates += size
        return found

    def commit(self, batch: list[tuple[str, Words, Words]]) -> None:
        """One transaction, stepped."""
        self.ordinal += 1
        for table, rows, diffs in batch:
            self.feed(table, rows, diffs)
        self.step()

    def run(self, size: int, count: int) -> tuple[float, list[float]]:
        """``count`` updates in batches of ``size``; CPU seconds, and wall seconds of each batch."""
        prepared = [self.changes(size) for _ in range(max(1, count // size))]
        walls = []
        started = time.process_time()
        for batch in prepared:
            begun = time.perf_counter()
            self.commit(batch)
            walls.append(time.perf_counter() - begun)
        return time.process_time() - started, walls

    def flat(self, count: int) -> tuple[float, float]:
        """``count`` updates one at a time: p50 and p99 of the last tenth's thread CPU time over the first tenth's."""
        spent = []
        for _ in range(count):
            batch = self.changes(1)
            begun = time.thread_time_ns()
            self.commit(batch)
            spent.append(time.thread_time_ns() - begun)
        tenth = count // 10
        first, last = np.array(spent[:tenth]), np.array(spent[-tenth:])
        half, most = (float(np.percentile(last, q) / np.percentile(first, q)) for q in (50, 99))
        return half, most

    def right(self) -> bool:
        """Whether the output is what the workload's answer computes from scratch."""
        rows, diffs = self.flow.publish()[self.output].rows_at(self.ordinal)
        expected = self.workload.answer(self.updates)
        if int(diffs.sum()) != len(expected) or not (diffs > 0).all():
            return False
        rows = np.repeat(rows, diffs, axis=0)
        return checksum(rows[:, : expected.shape[1]]) == checksum(expected)  # without words of null bits


@dataclass(frozen=True, slots=True)
class Measured:
    """One line of the table; ``ratio`` to the rival, None where it has no figure."""

    workload: str
    batch: int
    rate: float
    p50: float
    p99: float
    worst: float
    ratio: float | None
    right: bool

    def __str__(self) -> str:
        ratio = f"{self.ratio:6.2f}x" if self.ratio is not None else "      –"
        times = f"p50 {1e6 * self.p50:9,.0f} µs  p99 {1e6 * self.p99:9,.0f}  max {1e6 * self.worst:9,.0f}"
        state = "right" if self.right else "WRONG"
        return f"{self.workload} batch {self.batch:>7,}  {self.rate:>12,.0f}/s  {ratio}  {times}  {state}"


def measure(workload: Workload, speed: float) -> list[Measured]:
    """Load, then every batch size that the rival has a figure for, smallest first."""
    bench = Bench(workload)
    print(f"{workload.name} load {bench.load():.2f} s CPU, {'right' if bench.right() else 'WRONG'}", flush=True)
    results = []
    for size in workload.rival:
        bench.run(size, max(size, BATCHES[size] // 20))
        count = max(size * 5, BATCHES[size] // (10 if workload.name[:2] in ("W2", "W3", "W8") else 1))
        seconds, walls = bench.run(size, count)
        walls.sort()
        rate = len(walls) * size / seconds
        ratio = rate / (workload.rival[size] * speed)
        p99 = walls[min(len(walls) - 1, int(0.99 * len(walls)))]
        p50, right = walls[len(walls) // 2], bench.right()
        results.append(Measured(workload.name, size, rate, p50, p99, walls[-1], ratio, right))
        print(results[-1], flush=True)
    return results


def measure_flat(workload: Workload) -> None:
    """Whether 100,000 updates one at a time become slower as they go."""
    bench = Bench(workload)
    bench.load()
    half, most = bench.flat(100_000)
    state = "right" if bench.right() else "WRONG"
    print(f"{workload.name} flat: last 10,000 / first 10,000  p50 {half:.2f}  p99 {most:.2f}  {state}", flush=True)


def main() -> None:
    """Measure the named workloads, or all; with ``flat`` also a long run of each."""
    speed = factor()
    print(f"calibration factor {speed:.2f}, load average {os.getloadavg()[0]:.1f}", flush=True)
    warm(lambda _name, _done, _all: None)
    chosen = workloads()
    for name in [a for a in sys.argv[1:] if a != "flat"] or chosen:
        measure(chosen[name], speed)
        if "flat" in sys.argv:
            measure_flat(chosen[name])


if __name__ == "__main__":
    main()
