"""One worker against several: the same batches go by turns through two dataflows.

``python -m benchmarks.cores [--workers N] [--rows N] [names]`` prints, for each load and batch size, the gain in wall
time (the median over pairs of batches) and in the *path*: CPU seconds of the engine's thread, where of each job that
is shared only its longest part counts, or a worker's share of all if that is more. The path is what a step takes where
every thread has a core; on a machine that is busy with other work, wall time says less.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TypeVar

import numpy as np

from benchmarks.engine import Bench
from benchmarks.workloads import random_words, workloads
from ivm import workers
from ivm.dataflow import Dataflow
from ivm.graph import Arrange, CountRows, Gather, Input, Output, Reduce
from ivm.kernels.warm import warm
from ivm.workers import Workers

T = TypeVar("T")

SIZES = {"W1": (1, 100), "W2": (100, 1000), "W4": (1, 1000, 100_000), "W5": (1, 1000, 100_000), "W7": (1000,)}
UPDATES = {1: 1000, 100: 5000, 1000: 40_000, 100_000: 800_000}
WAITING = 1000
"""W1's single updates that wait for a step, each with its own ordinal."""


class Timed(Workers):
    """Workers that record how much CPU time sharing saves the calling thread if every thread has a core."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.saved = 0.0
        self.jobs = 0

    def run(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        spent = [0.0] * len(calls)

        def timed(k: int) -> T:
            begun = time.thread_time()
            result = calls[k]()
            spent[k] = time.thread_time() - begun
            return result

        begun = time.thread_time()
        results = super().run([partial(timed, k) for k in range(len(calls))])
        own = time.thread_time() - begun
        self.jobs += 1
        self.saved += own - max(*spent, sum(spent) / self.number)
        return results


@dataclass(slots=True)
class Run:
    """Wall and path seconds of each piece of work with a number of workers; CPU seconds of all threads; jobs."""

    workers: Timed
    walls: list[float]
    paths: list[float]
    cpu: float = 0.0

    @staticmethod
    def of(number: int) -> Run:
        """A record with nothing run yet."""
        return Run(Timed(number), [], [])

    def measure(self, work: Callable[[], object]) -> None:
        """Do one piece of work with these workers."""
        workers.install(self.workers)
        self.workers.saved = 0.0
        wall, thread, cpu = time.perf_counter(), time.thread_time(), time.process_time()
        work()
        self.walls.append(time.perf_counter() - wall)
        self.paths.append(time.thread_time() - thread - self.workers.saved)
        self.cpu += time.process_time() - cpu


def line(name: str, one: Run, many: Run) -> None:
    """Print the comparison and forget the figures."""
    wall = median(a / b for a, b in zip(one.walls, many.walls, strict=True))
    path = sum(one.paths) / sum(many.paths)
    count = len(one.walls)
    print(
        f"{name:26} path {1e3 * sum(one.paths) / count:10.3f} → {1e3 * sum(many.paths) / count:10.3f} ms {path:5.2f}x"
        f"   wall {1e3 * median(one.walls):10.3f} → {1e3 * median(many.walls):10.3f} ms {wall:5.2f}x"
        f"   CPU {many.cpu / one.cpu:4.2f}x  {many.workers.jobs / count:.0f} jobs, load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    many.workers.jobs = 0
    for run in (one, many):
        run.walls, run.paths, run.cpu = [], [], 0.0


def compare(name: str, number: int) -> None:
    """Compares a workload: its load, then batches in turns."""
    one, many = Run.of(1), Run.of(number)
    a, b = Bench(workloads()[name]), Bench(workloads()[name])
    one.measure(a.load)
    many.measure(b.load)
    line(f"{name} load", one, many)
    for size in SIZES[name]:
        batches = [a.changes(size) for _ in range(max(UPDATES[size] // size, 3))]
        b.updates = a.updates
        for k, batch in enumerate(batches):
            runs = [(one, a), (many, b)]
            for run, bench in runs if k % 2 else runs[::-1]:
                run.measure(partial(bench.commit, batch))
        line(f"{name} batch {size:,}", one, many)
    if name == "W1":
        for k in range(20):
            batches = [a.changes(1) for _ in range(WAITING)]
            b.updates = a.updates
            runs = [(one, a), (many, b)]
            for run, bench in runs if k % 2 else runs[::-1]:
                run.measure(partial(commit_all, bench, batches))
        line(f"W1 {WAITING:,} commits a step", one, many)
    print(f"{name}: {'right' if a.right() and b.right() else 'WRONG'}", flush=True)


def commit_all(bench: Bench, batches: list[list[tuple[str, np.ndarray, np.ndarray]]]) -> None:
    """Processes waiting transactions, each with its ordinal, in one step."""
    for batch in batches:
        bench.ordinal += 1
        for table, rows, diffs in batch:
            bench.feed(table, rows, diffs)
    bench.step()


def hydrate(number: int, rows: int) -> None:
    """Adds a view that counts the rows of a large table by another column."""
    one, many = Run.of(1), Run.of(number)
    matrix = np.stack([np.arange(rows), random_words(5, np.arange(rows, dtype=np.uint64), rows // 10)], axis=1)
    counts = []
    for run in (one, many):
        flow = Dataflow()
        table = flow.add(Input(2))
        flow.add(Output(table))
        flow.hydrate()
        flow.feed(table, matrix, 1, np.ones(rows, np.int64))
        flow.step()
        groups = flow.add(Reduce(flow.add(Arrange(table, Gather((1,)), 1)), CountRows()))
        output = flow.add(Output(groups))
        run.measure(flow.hydrate)
        counts.append(flow.changes(output))
        del flow
    assert all(np.array_equal(a, b) for a, b in zip(counts[0].rows.T, counts[1].rows.T, strict=True))
    line(f"hydration of {rows:,} rows", one, many)


def main() -> None:
    """Flags → comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the table of the hydrated view")
    parser.add_argument("names", nargs="*", default=[*SIZES, "hydration"])
    options = parser.parse_args()
    warm(lambda _name, _done, _all: None)
    for name in options.names:
        if name == "hydration":
            hydrate(options.workers, options.rows)
        else:
            compare(name, options.workers)
    workers.use(1)


if __name__ == "__main__":
    main()
