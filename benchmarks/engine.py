"""W1 to W5, W7 and W8: the graph that the planner renders for the workload's SQL, each transaction its own epoch.

``python -m benchmarks.engine [names]`` prints updates per CPU second of all threads, the latency of a step, and the
ratio to the compiled differential-dataflow, one worker, where ``benchmarks.compiled`` has it. The output is checked
against an answer from scratch.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import compiled, rivals
from benchmarks.flow import Flow
from benchmarks.report import HERE, RATE, SECONDS, Row, at_least, at_most, below, not_measured
from benchmarks.workloads import Words, Workload, checksum, workloads
from ivm.kernels.warm import warm

BATCHES = {1: 20_000, 10: 40_000, 100: 100_000, 1000: 300_000, 100_000: 1_000_000}


BUDGET = 20.0
"""Seconds that one size of batch may take."""
PREPARED = 1_000
"""Batches that are made before they are timed."""


@dataclass(frozen=True, slots=True)
class Load:
    """CPU seconds, and whether the output was right."""

    seconds: float
    right: bool


@dataclass(frozen=True, slots=True)
class Spent:
    """``cpu``: seconds of all threads in all batches; for each batch, wall seconds and its thread's CPU seconds."""

    cpu: float
    walls: NDArray[np.float64]
    steps: NDArray[np.float64]


class Bench(Flow):
    """One workload in one dataflow."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload.ddl, workload.view)
        self.workload = workload
        self.updates = 0

    def load(self) -> float:
        """Loads the base, each chunk at one time; CPU seconds."""
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
        """The next ``size`` updates: for each table, the rows deleted and inserted, and their diffs."""
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
        """Steps one transaction."""
        self.ordinal += 1
        for table, rows, diffs in batch:
            self.feed(table, rows, diffs)
        self.step()

    def run(self, size: int, count: int, budget: float = BUDGET) -> Spent:
        """Runs ``count`` updates in batches of ``size``, or as many as ``budget`` seconds allow; each batch's cost."""
        walls: list[float] = []
        steps: list[int] = []
        cpu = 0.0
        todo = max(1, count // size)
        end = time.perf_counter() + budget
        while len(walls) < todo and (not walls or time.perf_counter() < end):
            prepared = [self.changes(size) for _ in range(min(PREPARED, todo - len(walls)))]
            started = time.process_time()
            for batch in prepared:
                mine = time.thread_time_ns()
                begun = time.perf_counter()
                self.commit(batch)
                walls.append(time.perf_counter() - begun)
                steps.append(time.thread_time_ns() - mine)
            cpu += time.process_time() - started
        return Spent(cpu, np.array(walls), 1e-9 * np.array(steps))

    def right(self) -> bool:
        """Whether the output equals the workload's answer computed from scratch."""
        rows, diffs = self.flow.publish()[self.output].rows_at(self.ordinal)
        expected = self.workload.answer(self.updates)
        if int(diffs.sum()) != len(expected) or not (diffs > 0).all():
            return False
        rows = np.repeat(rows, diffs, axis=0)
        return checksum(rows[:, : expected.shape[1]]) == checksum(expected)  # without words of null bits


@dataclass(frozen=True, slots=True)
class Measured:
    """A workload at one size of batch. ``p50``, ``p99`` and ``worst``: CPU seconds of a step's thread, which exclude
    other load on a shared machine. ``wall``: p99 of wall seconds."""

    batch: int
    rate: float
    p50: float
    p99: float
    worst: float
    wall: float
    right: bool


def measure_batch(bench: Bench, size: int, count: int) -> Measured:
    """Measures ``count`` updates in batches of ``size``, after a warm-up of a twentieth as many."""
    bench.run(size, max(size, count // 20), BUDGET / 10)
    spent = bench.run(size, max(size * 5, count))
    rate = len(spent.walls) * size / spent.cpu
    p50, p99, worst = (float(np.percentile(spent.steps, q)) for q in (50, 99, 100))
    return Measured(size, rate, p50, p99, worst, float(np.percentile(spent.walls, 99)), bench.right())


def counts(workload: Workload, most: dict[int, int] = BATCHES) -> dict[int, int]:
    """How many updates in batches of each size that the rival has a figure for, smallest first."""
    return {size: most[size] for size in workload.rival}


def measure(workload: Workload, most: dict[int, int] = BATCHES) -> tuple[Load, list[Measured]]:
    """Load, then the batches."""
    bench = Bench(workload)
    load = Load(bench.load(), bench.right())
    return load, [measure_batch(bench, size, count) for size, count in counts(workload, most).items()]


def compare(name: str, load: Load, cells: Sequence[Measured], theirs: compiled.Theirs | None) -> list[Row]:
    """Compares with the compiled system and the aims."""
    aims = rivals.RATIOS.get(name, {})
    row = {"workload": name, "case": "load", "unit": SECONDS, "ours": load.seconds, "right": load.right}
    rows = [_beside(row, None if theirs is None else theirs.load, aims.get(0), lambda least: least / load.seconds)]
    for cell in cells:
        row = {"workload": name, "case": f"batch {cell.batch:,}", "unit": RATE, "ours": cell.rate, "right": cell.right}
        found = None if theirs is None else theirs.rates.get(cell.batch)
        rows.append(_beside(row, found, aims.get(cell.batch), lambda rate, cell=cell: cell.rate / rate))
    return rows + [row for cell in cells if cell.batch == 1 for row in latencies(name, cell, theirs)]


def _beside(row: dict[str, Any], theirs: float | None, aim: float | None, ratio: Callable[[float], float]) -> Row:
    """A row whose aim is a minimum of a ratio to their figure."""
    if theirs is None:
        return not_measured(row, aim)
    return at_least({**row, "rivals": {rivals.COMPILED + HERE: theirs}}, ratio(theirs), aim)


def latencies(name: str, cell: Measured, theirs: compiled.Theirs | None) -> list[Row]:
    """Latencies of single updates."""
    row: dict[str, Any] = {"workload": name, "case": "p50 of a step", "unit": SECONDS, "ours": cell.p50}
    rows = [Row(**row)]
    row = {"workload": name, "case": "p99", "unit": SECONDS, "ours": cell.p99}
    aim = rivals.P99_RATIOS.get(name)
    if theirs is None:
        rows.append(not_measured(row, aim, "≤"))
    else:
        most = theirs.p99s[cell.batch]
        rows.append(at_most({**row, "rivals": {rivals.COMPILED + HERE: most}}, cell.p99 / most, aim, "theirs"))
    if name == "W2":
        rows.append(below({**row, "case": "p99 itself"}, rivals.W2_P99))
        rows.append(below({**row, "case": "longest step", "ours": cell.worst}, rivals.W2_MOST))
    if name in ("W1", "W4", "W5"):
        rows.append(below({**row, "case": "longest step", "ours": cell.worst}, rivals.STEP_CPU))
    return [*rows, Row(**{**row, "case": "p99 by the wall", "ours": cell.wall})]


def main() -> None:
    """Measure the named workloads, or all."""
    print(f"load average {os.getloadavg()[0]:.1f}", flush=True)
    warm(lambda _name, _done, _all: None)
    chosen = workloads()
    for name in sys.argv[1:] or chosen:
        load, cells = measure(chosen[name])
        for row in compare(name, load, cells, compiled.measure(name, counts(chosen[name]))):
            print(row, flush=True)


if __name__ == "__main__":
    main()
