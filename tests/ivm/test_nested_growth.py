"""Strongly connected components, two loops in a loop: a change costs what it changes, whatever the graph's size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.engine import Bench
from benchmarks.workloads import Words, Workload, strong_edges, workloads
from ivm.counters import Counters

SIZE, RINGS, TURNS = 8, 60, 4


def rings(count: int) -> Words:
    """``count`` components: rings of eight nodes with a chord each, and an edge from each ring to the next."""
    start = SIZE * np.arange(count)
    around = [np.stack([start + k, start + (k + 1) % SIZE], axis=1) for k in range(SIZE)]
    chords = np.stack([start + 2, start + 6], axis=1)
    onwards = np.stack([start[:-1] + 5, start[1:] + 3], axis=1)
    return np.concatenate([*around, chords, onwards])


class Graph:
    """W8's view over a given graph."""

    def __init__(self, edges: Words) -> None:
        known = workloads()["W8"]
        empty: Words = np.empty((0, 2), np.int64)
        tables = {"edges": lambda _low, _high: empty}
        workload = Workload(
            "rings", known.view, known.ddl, 0, ("edges",), tables, {"edges": edges}, lambda _updates: empty, {}
        )
        self.bench = Bench(workload)
        self.edges = {(a, b) for a, b in edges.tolist()}
        self.bench.load()

    def change(self, edges: Sequence[tuple[int, int]], diff: int) -> Counters:
        """Adds or removes edges in one commit; gives the cost."""
        self.edges = self.edges | set(edges) if diff > 0 else self.edges - set(edges)
        before = self.bench.flow.counters
        self.bench.commit([("edges", np.array(edges, np.int64), np.full(len(edges), diff, np.int64))])
        return self.bench.flow.counters - before

    def right(self, nodes: int) -> bool:
        """Whether the view is what Tarjan's algorithm finds."""
        rows, diffs = self.bench.flow.publish()[self.bench.output].rows_at(self.bench.ordinal)
        expected = strong_edges(nodes, np.array(sorted(self.edges), np.int64))
        return bool((diffs == 1).all()) and sorted(rows.tolist()) == sorted(expected.tolist())


def local_changes(graph: Graph, count: int) -> list[Counters]:
    """Cuts and closes a ring, merges two rings and splits them again, at rings far from one another."""
    works = []
    for turn in range(TURNS):
        ring = SIZE * (1 + turn * (count - 3) // TURNS)
        works.append(graph.change([(ring, ring + 1)], -1))
        works.append(graph.change([(ring, ring + 1)], 1))
        works.append(graph.change([(ring + SIZE + 4, ring + 1)], 1))
        assert graph.right(SIZE * count)
        works.append(graph.change([(ring + SIZE + 4, ring + 1)], -1))
    assert graph.right(SIZE * count)
    return works


def test_a_local_change_costs_the_same_in_a_graph_ten_times_the_size() -> None:
    few = local_changes(Graph(rings(RINGS)), RINGS)
    many = local_changes(Graph(rings(10 * RINGS)), 10 * RINGS)
    for name, most in (("matches", 1.5), ("history", 2), ("segments", 1.5)):
        small, large = (sum(getattr(work, name) for work in works) for works in (few, many))
        assert 0 < large <= most * small, name


@pytest.mark.parametrize("size", [1, 4])
def test_a_change_costs_what_it_changes(size: int) -> None:
    """Cutting four rings costs at most four times as much as cutting one."""
    graph = Graph(rings(RINGS))
    one = graph.change([(8 * SIZE, 8 * SIZE + 1)], -1)
    some = graph.change([(SIZE * (12 + 4 * k), SIZE * (12 + 4 * k) + 1) for k in range(size)], -1)
    assert graph.right(SIZE * RINGS)
    assert some.matches <= 1.5 * size * one.matches
    assert some.history <= 2 * size * one.history
