"""Figures 1 and 6 of *Differential Dataflow* (CIDR 2013): connected components of a mention graph, round by round.

Four ways to the same labels: *stateless* recomputes every label in each round; *incremental* propagates only changes;
*prioritised* propagates small labels first; *differential* takes the prioritised loop and slides its window by a
second. Records are those that the loop's body passes to the next round: an old and a new label for each change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from benchmarks.engine import Bench
from benchmarks.flow import Flow, Words
from benchmarks.workloads import LEAST, Workload
from examples.graphs.sliding import stream
from ivm.operators.loop import VariableOperator
from ivm.runtime import scheduler
from ivm.runtime.operator import Scope
from ivm.runtime.steps import FlowRun

DDL = ("CREATE TABLE nodes (id bigint NOT NULL)", "CREATE TABLE edges (src bigint NOT NULL, dst bigint NOT NULL)")
ROUND = (
    "SELECT node, min(least) FROM (SELECT node, least FROM label UNION ALL SELECT e.b, l.least FROM label l JOIN "
    "(SELECT src AS a, dst AS b FROM edges UNION ALL SELECT dst, src FROM edges) e ON l.node = e.a) t GROUP BY node"
)


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of the loop: its loop vector, the records in difference after it, milliseconds of CPU."""

    vector: int
    records: int
    milliseconds: float


@contextmanager
def watched(found: list[Pass]) -> Iterator[None]:
    """Runs every pass of every loop separately, not in the kernel that runs them all, and reports it to ``found``."""
    run_vector, step = scheduler.run_vector, FlowRun.run

    def run(scope: Scope, vector: int) -> None:
        started = time.thread_time()
        run_vector(scope, vector)
        took = 1e3 * (time.thread_time() - started)
        variables = [m for m in scope.members.values() if isinstance(m, VariableOperator)]
        found.append(Pass(vector, sum(v.following.n for v in variables), took))

    scheduler.run_vector = run
    FlowRun.run = lambda steps: scheduler.run_pass(steps.root, 0)  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        scheduler.run_vector = run_vector
        FlowRun.run = step  # type: ignore[method-assign]


@dataclass(frozen=True, slots=True)
class Window:
    """Mentions by time: ``rate`` a second among ``people``, of which the last ``seconds`` are the graph."""

    seconds: int
    rate: int
    people: int

    def pairs(self, slides: int) -> Words:
        """(author, mentioned): the window's mentions, then the slides'. Popular people have arbitrary numbers."""
        mentions, _ = stream(self.seconds + slides, self.rate, self.people, 1)
        numbers: Words = np.random.default_rng(1).permutation(self.people)
        return numbers[np.array(mentions, np.int64)[:, 1:]]


def bench(window: Window, pairs: Words, view: str) -> Bench:
    """The loop over the window. Update u removes mention u and adds the one a window later."""
    nodes = {"nodes": np.arange(window.people, dtype=np.int64)[:, None]}
    tables: dict[str, Callable[[int, int], Words]] = {"edges": lambda low, high: pairs[low:high]}
    size = window.seconds * window.rate

    def answer(updates: int) -> Words:
        return components(window.people, pairs[updates : size + updates])

    return Bench(Workload("mentions", view, DDL, size, ("edges",), tables, nodes, answer, {}))


def components(nodes: int, pairs: Words) -> Words:
    """(node, the least node of its component)."""
    label = np.arange(nodes)
    while True:
        before = label.copy()
        for ends in (pairs, pairs[:, ::-1]):
            np.minimum.at(label, ends[:, 1], label[ends[:, 0]])
        label = label[label]
        if (label == before).all():
            return np.stack([np.arange(nodes), label], axis=1)


def stateless(window: Window, pairs: Words) -> list[Pass]:
    """Computes every round from scratch: labels and edges in, labels out."""
    label = np.stack([np.arange(window.people)] * 2, axis=1)
    ones = np.ones(len(label), np.int64)
    found: list[Pass] = []
    while True:
        flow = Flow(("CREATE TABLE label (node bigint NOT NULL, least bigint NOT NULL)", *DDL[1:]), ROUND)
        started = time.thread_time()
        flow.ordinal = 1
        flow.feed("edges", pairs, np.ones(len(pairs), np.int64))
        flow.feed("label", label, ones)
        rows = flow.step().rows[:, :2]
        found.append(Pass(len(found), len(rows), 1e3 * (time.thread_time() - started)))
        rows = rows[np.argsort(rows[:, 0])]
        if (rows == label).all():
            return found
        label = rows


def measure(window: Window, slides: int = 101) -> dict[str, list[Pass]]:
    """The passes of each way. The slide reported is the one of median time among ``slides``."""
    pairs = window.pairs(slides)
    found = {"stateless": stateless(window, pairs[: window.seconds * window.rate])}
    for name, view in (("incremental", LEAST.replace("RECURSIVE", "RECURSIVE (NO PRIORITY)")), ("prioritised", LEAST)):
        loop = bench(window, pairs, view)
        passes: list[Pass] = []
        with watched(passes):
            loop.load()
        assert loop.right()
        found[name] = passes
    turns = []
    for _ in range(slides):
        passes = []
        batch = loop.changes(window.rate)
        with watched(passes):
            loop.commit(batch)
        turns.append(passes)
    assert loop.right()
    found["differential"] = sorted(turns, key=lambda turn: sum(p.milliseconds for p in turn))[slides // 2]
    return found
