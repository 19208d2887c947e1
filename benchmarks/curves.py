"""Measurements for the pictures, besides ``fixpoints.py``: latencies, rates, interning, graph algorithms."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import interning
from benchmarks.engine import Bench, measure_batch
from benchmarks.flow import Flow, Words
from benchmarks.workloads import Workload, edges
from examples.graphs.sliding import FOLDER as GRAPHS

ALGORITHMS = ("wcc", "scc", "shortest_paths", "pagerank", "salsa")
QUANTILES = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9)


def latencies(workload: Workload, after: tuple[int, ...], window: int) -> dict[int, list[float]]:
    """Quantiles (µs of CPU) of ``window`` single updates after given numbers of updates; AssertionError if wrong."""
    bench = Bench(workload)
    bench.load()
    found = {}
    for count in after:
        while bench.updates < count:
            bench.commit(bench.changes(1))
        spent = np.empty(window)
        for i in range(window):
            batch = bench.changes(1)
            begun = time.thread_time_ns()
            bench.commit(batch)
            spent[i] = 1e-3 * (time.thread_time_ns() - begun)
        found[count] = [float(np.percentile(spent, q)) for q in QUANTILES]
    assert bench.right()
    return found


def rates(workload: Workload, sizes: tuple[int, ...], count: int) -> dict[int, float]:
    """Updates per CPU second by size of batch; AssertionError if the output is wrong."""
    bench = Bench(workload)
    bench.load()
    found = {}
    for size in sizes:
        cell = measure_batch(bench, size, max(count, 5 * size))
        assert cell.right, f"{workload.name} at batch {size}"
        found[size] = cell.rate
    return found


def interned(counts: tuple[int, ...]) -> dict[int, tuple[float, float]]:
    """Nanoseconds of CPU to intern a value, and bytes held of each, by number of values."""
    cells = {count: interning.measure(count) for count in counts}
    return {count: (1e9 * cell.load / count, cell.held) for count, cell in cells.items()}


@dataclass(frozen=True, slots=True)
class Grown:
    """An algorithm on a random graph: CPU seconds of the load, median CPU milliseconds of a change of one edge."""

    load: float
    change: float


def random_graph(nodes: int) -> Words:
    """Distinct edges (source, target) in order of arrival: more than 4 per node."""
    pairs = edges(9, nodes, 0, 5 * nodes)
    _, first = np.unique(pairs[:, 0] * nodes + pairs[:, 1], return_index=True)
    return pairs[np.sort(first)]


def query(name: str) -> str:
    """The query of the view in a file of examples/graphs."""
    return _code(GRAPHS / f"{name}.sql").split(" AS\n", 1)[1].rstrip().rstrip(";")


class Graph:
    """A query of examples/graphs over distinct edges (source, target), of which the first ``size`` are loaded."""

    def __init__(self, query: str, pairs: Words, size: int) -> None:
        self.flow = Flow([text for text in _code(GRAPHS / "tables.sql").split(";") if text.strip()], query)
        self.edges: Words = np.column_stack([pairs, np.ones(len(pairs), np.int64)])
        self.size = size
        self.moved = 0

    def feed(self, table: str, rows: Words, diff: int) -> None:
        """Inserts or deletes rows."""
        self.flow.feed(table, rows, np.full(len(rows), diff, np.int64))

    def load(self) -> float:
        """CPU seconds."""
        started = time.process_time()
        self.flow.ordinal = 1
        self.feed("landmark", np.arange(4, dtype=np.int64)[:, None], 1)
        self.feed("edge", self.edges[: self.size], 1)
        self.flow.step()
        return time.process_time() - started

    def change(self) -> float:
        """Deletes the oldest edge or inserts a new one; CPU milliseconds."""
        place, diff = (self.moved // 2, -1) if self.moved % 2 == 0 else (self.size + self.moved // 2, 1)
        self.moved += 1
        begun = time.process_time()
        self.flow.ordinal += 1
        self.feed("edge", self.edges[place : place + 1], diff)
        self.flow.step()
        return 1e3 * (time.process_time() - begun)


def _code(path: Path) -> str:
    """A file of SQL without its comments."""
    return "\n".join(line for line in path.read_text().splitlines() if not line.startswith("--"))


def grown(name: str, sizes: tuple[int, ...], changes: int) -> dict[int, Grown]:
    """By number of nodes."""
    found = {}
    for nodes in sizes:
        graph = Graph(query(name), random_graph(nodes), 2 * nodes)
        load = graph.load()
        found[nodes] = Grown(load, float(np.median([graph.change() for _ in range(changes)])))
    return found
