"""The engine's workloads W1, W2, W4 and W5 through the graph API: rates per CPU second and latencies.

Usage: engine_probe.py [w1] [w2] [w4] [w5] [--batch N] [--seconds S]. Numbers come from SplitMix64 by index; the answers
after u updates are compared with a computation from scratch.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ivm.dataflow import Dataflow
from ivm.graph import (
    Arrange,
    Concat,
    Constant,
    Gather,
    Input,
    Join,
    Keep,
    Leave,
    NodeId,
    Output,
    Reduce,
    Reduced,
    Threshold,
    Variable,
    Words,
)  # fmt: skip

U = np.uint64


def mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finalizer."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
    return z ^ (z >> U(31))


def random(seed: int, index: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The index-th number of a seed."""
    with np.errstate(over="ignore"):
        return mix(U(seed) + (index + U(1)) * U(0x9E3779B97F4A7C15))


def edges(seed: int, nodes: int, low: int, high: int) -> Words:
    """Edges low … high-1, int64[n, 2]."""
    i = np.arange(low, high, dtype=np.uint64)
    ends = [random(seed, U(2) * i), random(seed, U(2) * i + U(1))]
    return np.stack(ends, axis=1).astype(np.uint64).__mod__(U(nodes)).astype(np.int64)


@dataclass(frozen=True)
class Count:
    """The total count of a group."""

    out_width: int = 1
    limit: int | None = None

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words) -> Reduced:
        return Reduced(np.arange(len(keys)), np.add.reduceat(diffs, offsets[:-1], axis=0))


@dataclass
class Workload:
    """A graph, how update u changes its inputs, and the right answer."""

    flow: Dataflow
    output: NodeId
    load: Callable[[], None]
    updates: Callable[[int, int], list[tuple[NodeId, Words, Words]]]
    answer: Callable[[int], Words]


def ones(n: int) -> Words:
    return np.ones(n, np.int64)


def replaced(node: NodeId, gone: Words, new: Words) -> list[tuple[NodeId, Words, Words]]:
    return [(node, np.concatenate([gone, new]), np.concatenate([-ones(len(gone)), ones(len(new))]))]


def reach(nodes: int, count: int) -> Workload:
    """W1, W2: nodes reachable from ten roots."""
    flow = Dataflow()
    given = flow.add(Input(2))
    arranged = flow.add(Arrange(given, Gather((0, 1)), 1))
    roots = flow.add(Constant(1, tuple((i,) for i in range(10))))
    scope = flow.scope()
    found = flow.add(Variable(scope, 1))
    by_node = flow.add(Arrange(found, Gather((0,)), 1))
    step = flow.add(Join(by_node, arranged, Gather((1,))))
    everything = flow.add(Concat((step, roots)))
    distinct = flow.add(Threshold(flow.add(Arrange(everything, Gather((0,)), 1)), Keep.DISTINCT))
    flow.connect(found, distinct)
    output = flow.add(Output(flow.add(Leave(distinct))))
    flow.hydrate()

    def answer(u: int) -> Words:
        held = edges(1, nodes, u, count + u)
        order = np.argsort(held[:, 0], kind="stable")
        targets = held[order, 1]
        starts = np.searchsorted(held[order, 0], np.arange(nodes + 1))
        seen = np.zeros(nodes, bool)
        frontier = np.arange(10)
        while len(frontier):
            seen[frontier] = True
            lists = [targets[starts[x] : starts[x + 1]] for x in frontier.tolist()]
            reached = np.unique(np.concatenate(lists))
            frontier = reached[~seen[reached]]
        return np.nonzero(seen)[0].reshape(-1, 1)

    def load() -> None:
        flow.feed(given, edges(1, nodes, 0, count), ones(count), ones(count))

    def updates(low: int, high: int) -> list[tuple[NodeId, Words, Words]]:
        return replaced(given, edges(1, nodes, low, high), edges(1, nodes, count + low, count + high))

    return Workload(flow, output, load, updates, answer)


def degrees(nodes: int = 1_000_000, count: int = 5_000_000) -> Workload:
    """W4: how many nodes have each out-degree."""
    flow = Dataflow()
    given = flow.add(Input(2))
    degree = flow.add(Reduce(flow.add(Arrange(given, Gather((0,)), 1)), Count()))
    output = flow.add(Output(flow.add(Reduce(flow.add(Arrange(degree, Gather((1,)), 1)), Count()))))
    flow.hydrate()

    def answer(u: int) -> Words:
        c = np.bincount(edges(3, nodes, u, count + u)[:, 0], minlength=nodes)
        return np.stack(np.unique(c[c > 0], return_counts=True), axis=1)

    def load() -> None:
        flow.feed(given, edges(3, nodes, 0, count), ones(count), ones(count))

    def updates(low: int, high: int) -> list[tuple[NodeId, Words, Words]]:
        return replaced(given, edges(3, nodes, low, high), edges(3, nodes, count + low, count + high))

    return Workload(flow, output, load, updates, answer)


def joined(count: int = 1_000_000, keys: int = 100_000) -> Workload:
    """W5: joined pairs of two tables by key, counted."""
    flow = Dataflow()
    sides = [flow.add(Input(2)), flow.add(Input(2))]
    a, b = (flow.add(Arrange(side, Gather((0, 1)), 1)) for side in sides)
    pairs = flow.add(Join(a, b, Gather((0,))))
    output = flow.add(Output(flow.add(Reduce(flow.add(Arrange(pairs, Gather((0,)), 1)), Count()))))
    flow.hydrate()

    def rows(side: int, low: int, high: int) -> Words:
        i = np.arange(low, high, dtype=np.uint64)
        return np.stack([(random(40 + side, i) % U(keys)).astype(np.int64), i.astype(np.int64)], axis=1)

    def answer(u: int) -> Words:
        c = [np.bincount(rows(s, (u + 1 - s) // 2, (u + 1 - s) // 2 + count)[:, 0], minlength=keys) for s in (0, 1)]
        k = np.nonzero(c[0] * c[1])[0]
        return np.stack([k, (c[0] * c[1])[k]], axis=1)

    def load() -> None:
        for side in (0, 1):
            flow.feed(sides[side], rows(side, 0, count), ones(count), ones(count))

    def updates(low: int, high: int) -> list[tuple[NodeId, Words, Words]]:
        result = []
        for side in (0, 1):
            first, last = (low + 1 - side) // 2, (high + 1 - side) // 2
            if last > first:
                result += replaced(sides[side], rows(side, first, last), rows(side, count + first, count + last))
        return result

    return Workload(flow, output, load, updates, answer)


def checked(work: Workload, held: dict[tuple[int, ...], int], u: int) -> bool:
    expected = work.answer(u)
    version = work.flow.publish()[work.output]
    rows, diffs = version.rows_at(2**60)
    return bool((diffs == 1).all()) and np.array_equal(rows, expected) and held is not None


def measure(name: str, work: Workload, batch: int, seconds: float) -> None:
    """Loads, then runs batches for about ``seconds``, and prints what that took."""
    flow = work.flow
    begin = time.process_time()
    work.load()
    flow.step()
    flow.changes(work.output)
    load = time.process_time() - begin
    flow.allow_compaction(1)
    ready = []
    chunk = 4000 if batch < 1000 else 40 * batch
    latencies = []
    u = 0
    at = 2
    spent = 0.0
    while spent < seconds:
        ready = [work.updates(low, low + batch) for low in range(u, u + chunk, batch)]
        for fed in ready:
            times = [np.full(len(diffs), at) for _, _, diffs in fed]
            start = time.process_time()
            for (node, rows, diffs), stamp in zip(fed, times, strict=True):
                flow.feed(node, rows, stamp, diffs)
            flow.step()
            flow.changes(work.output)
            flow.allow_compaction(at)
            took = time.process_time() - start
            latencies.append(took)
            spent += took
            at += 1
        u += chunk
    right = checked(work, {}, u)
    p50, p99, worst = (np.percentile(latencies, q) * 1e6 for q in (50, 99, 100))
    print(
        f"{name} batch {batch}: load {load:.2f} s, {u / spent:,.0f} updates/s, p50 {p50:.0f} µs, p99 {p99:.0f} µs, "
        f"max {worst:.0f} µs after {u} updates, {'right' if right else 'WRONG'}",
        flush=True,
    )


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "w1": lambda: reach(1_000, 2_000),
    "w2": lambda: reach(1_000_000, 2_000_000),
    "w4": degrees,
    "w5": joined,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["w1"])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name in options.names:
        measure(name, WORKLOADS[name](), options.batch, options.seconds)


if __name__ == "__main__":
    main()
