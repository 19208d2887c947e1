"""Steps as programs: bit for bit as operators called one by one, no work for operators not due, failures midway."""

from __future__ import annotations

import math
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ivm import contents as live
from ivm import workers
from ivm.dataflow import Dataflow
from ivm.errors import SqlError
from ivm.graph import (
    Arrange,
    Concat,
    CountRows,
    FlatMap,
    Gather,
    Input,
    Keep,
    Mapped,
    Negate,
    NodeId,
    Output,
    Reduce,
    Threshold,
)  # fmt: skip
from ivm.kernels.memory import address
from ivm.kernels.program import R_OUT
from ivm.operators.count import CountOperator
from ivm.operators.threshold import ThresholdOperator
from ivm.runtime import program_run as running
from ivm.runtime.compile import Compiled
from ivm.runtime.operator import Operator
from ivm.runtime.scheduler import run_pass
from ivm.runtime.steps import FlowRun
from tests.ivm.test_dataflow import run
from tests.ivm.test_loops import SAME, closure, counting, feed, transitive
from tests.ivm.test_workers import Recorded
from tests.support.ivm_model import Words


def called(steps: FlowRun) -> None:
    """A step without a program."""
    run_pass(steps.root, 0)


@pytest.mark.parametrize("seed", range(24))
def test_the_same_bits_as_operators_called_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for step in (FlowRun.run, called):
        monkeypatch.setattr(FlowRun, "run", step)
        pair = Recorded(seed, prioritised=seed % 3 == 0)
        run(pair, 5, seed % 3)
        found.append(pair.bits)
    assert found[0] == found[1]
    assert len(found[0]) > 10


def grouped(flow: Dataflow, given: NodeId) -> tuple[NodeId, NodeId]:
    """The count of each first word, and the distinct pairs."""
    counts = flow.add(Reduce(flow.add(Arrange(given, Gather((0,)), 1)), CountRows()))
    distinct = flow.add(Threshold(flow.add(Arrange(given, SAME, 2)), Keep.DISTINCT))
    return flow.add(Output(counts)), flow.add(Output(distinct))


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_counts_and_distinct_rows_stay_in_the_kernel(seed: int, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Insertions and retractions of duplicates, several ordinals a step, and steps that are large."""
    monkeypatch.setattr(running, "PASSES", 1 + 15 * (seed % 2))
    calls = Counter[type]()
    for kind in (CountOperator, ThresholdOperator):
        real = kind.run

        def watched(self: Any, vector: int, real: Any = real) -> bool:
            calls[type(self)] += 1
            return bool(real(self, vector))

        monkeypatch.setattr(kind, "run", watched)
    workers.use(number, None if seed % 3 else 40)
    rng = random.Random(seed)
    flow = Dataflow()
    given = flow.add(Input(2))
    flow.add(Arrange(given, SAME, 2))
    counts, distinct = grouped(flow, given)
    flow.hydrate()
    held = Counter[tuple[int, int]]()
    steps = 30
    at = 0
    for k in range(steps):
        expected = {}
        for _ in range(rng.choice([1, 1, 3])):
            at += 1
            updates = []
            for _ in range(rng.randrange(1, 5) if k % 10 else 700):
                row = rng.choice(list(held)) if held and rng.random() < 0.5 else (rng.randrange(9), rng.randrange(90))
                diff = -1 if held[row] > 0 and rng.random() < 0.6 else rng.choice([1, 1, 2])
                held[row] += diff
                if not held[row]:
                    del held[row]
                updates.append((row, diff))
            feed(flow, given, at, updates)
            groups = Counter[int]()
            for (key, _), count in held.items():
                groups[key] += count
            expected[at] = set(groups.items()), set(held)
        flow.step()
        root = flow.publish()
        for ordinal, (groups_then, rows_then) in expected.items():
            found, diffs = root[counts].rows_at(ordinal)
            assert set(map(tuple, found.tolist())) == groups_then
            assert (diffs == 1).all()
            assert set(map(tuple, root[distinct].rows_at(ordinal)[0].tolist())) == rows_then
    workers.use(1)
    assert 0 < calls[CountOperator] < steps / 2
    assert calls[ThresholdOperator] < steps / 2


VIEWS = 500


def test_a_step_touches_what_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 500 views, a commit that two of them read visits only their operators, and adding or dropping a view costs
    only its own rows."""
    flow = Dataflow()
    inputs = [flow.add(Input(2)) for _ in range(VIEWS // 2)]
    for given in inputs:
        flow.add(Arrange(given, SAME, 2))
        grouped(flow, given)
    flow.hydrate()
    at = 0

    def step(*given: NodeId) -> int:
        nonlocal at
        at += 1
        for node in given:
            feed(flow, node, at, [((1, at), 1)])
        before = flow.counters.looked
        flow.step()
        return flow.counters.looked - before

    first = step(inputs[0])
    assert 8 <= first <= 10
    assert step(inputs[0], inputs[99], inputs[200]) == 3 * first
    step(inputs[7])  # counts have an instruction once they have run
    step(inputs[7])
    made: list[Operator] = []
    real = Compiled.make

    def make(program: Compiled, operator: Operator) -> None:
        made.append(operator)
        real(program, operator)

    monkeypatch.setattr(Compiled, "make", make)
    assert step(inputs[7]) == first
    assert not made
    views = grouped(flow, inputs[7])
    flow.hydrate()
    assert step(inputs[7]) == first + 6
    assert 6 <= len(made) <= 10
    made.clear()
    for view in views:
        flow.release(view)
    assert step(inputs[7]) == first
    assert 1 <= len(made) <= 4
    root = flow.publish()
    assert set(map(tuple, root[flow_output(flow, inputs[7])].rows_at(at)[0].tolist())) == {(1, 5)}


def flow_output(flow: Dataflow, given: NodeId) -> NodeId:
    """The counts over an input."""
    arranged = [o for o in flow._operators[given].inside if o.key_width == 1]
    (count,) = arranged[0].inside
    (output,) = count.inside
    return output.id


@dataclass(frozen=True)
class Touchy:
    """Passes rows unchanged; raises at a 13."""

    error: type[BaseException]
    out_width: int = 2
    diff_width: int = 1

    def __call__(self, rows: Words) -> Mapped:
        if (rows[:, 0] == 13).any():
            raise SqlError("22012", "no") if self.error is SqlError else self.error("no")
        return Mapped(rows.copy())


@pytest.mark.parametrize(("error", "sqlstate"), [(ValueError, "XX000"), (SqlError, "22012")])
def test_an_operator_that_raises_fails_alone(error: type[Exception], sqlstate: str) -> None:
    flow = Dataflow()
    given = flow.add(Input(2))
    flow.add(Arrange(given, SAME, 2))
    before, _ = grouped(flow, given)
    mapped = flow.add(FlatMap(given, Touchy(error)))
    bad, _ = grouped(flow, mapped)
    looped = transitive(flow, mapped, False)
    behind, _ = grouped(flow, given)
    good = transitive(flow, given, False)
    flow.hydrate()
    edges = set()
    for at, edge in enumerate([(1, 2), (2, 3), (13, 1), (3, 4), (4, 1)], 1):
        feed(flow, given, at, [(edge, 1)])
        edges.add(edge)
        flow.step()
        root = flow.publish()
        counts = set(Counter(source for source, _ in edges).items())
        for node in (before, behind):
            assert set(map(tuple, root[node].rows_at(at)[0].tolist())) == counts
        assert set(map(tuple, root[good].rows_at(at)[0].tolist())) == closure(edges)
        for node in (bad, looped):
            failure = flow.failure(node)
            assert (failure is not None) == (at >= 3)
            assert failure is None or failure.sqlstate == sqlstate


def test_a_step_that_is_interrupted_leaves_what_was_there() -> None:
    """The caller discards the new input, and continues with the next step."""
    flow = Dataflow()
    given, other = flow.add(Input(2)), flow.add(Input(2))
    for node in (given, other):
        flow.add(Arrange(node, SAME, 2))
    grouped(flow, flow.add(FlatMap(given, Touchy(KeyboardInterrupt))))
    good = transitive(flow, other, True)
    flow.hydrate()
    feed(flow, other, 1, [((1, 2), 1)])
    flow.step()
    feed(flow, given, 2, [((13, 2), 1)])
    with pytest.raises(KeyboardInterrupt):
        flow.step()
    feed(flow, other, 3, [((2, 3), 1), ((3, 1), 1)])
    flow.step()
    found = flow.publish()[good].rows_at(3)[0]
    assert set(map(tuple, found.tolist())) == closure({(1, 2), (2, 3), (3, 1)})


def to_its_end(flow: Dataflow, pausing: bool) -> None:
    """Runs a step to its end, pausing wherever it can."""
    while not flow.step(0.0 if pausing else math.inf):
        assert pausing


@pytest.mark.parametrize("pausing", [False, True])
def test_a_loop_that_is_ended_fails_alone(pausing: bool) -> None:
    flow = Dataflow()
    given = flow.add(Input(1))
    whole = flow.add(Output(given))
    endless = counting(flow, given, None)
    short = counting(flow, given, 5, return_at_limit=True)
    flow.hydrate()
    leave = flow._operators[endless].source  # type: ignore[attr-defined]

    def end() -> None:
        while not flow.end_loop([leave.source.id], []):
            time.sleep(0.01)

    ending = threading.Thread(target=end)
    ending.start()
    feed(flow, given, 1, [((1,), 1)])
    with pytest.raises(SqlError) as raised:
        to_its_end(flow, pausing)
    ending.join()
    assert raised.value.sqlstate == "57014"
    failure = flow.failure(endless)
    assert failure is not None
    assert failure.sqlstate == "57014"
    for at, row in ((1, None), (2, 50)):
        if row is not None:
            feed(flow, given, at, [((row,), 1), ((1,), -1)])
            flow.step()
        root = flow.publish()
        start = 1 if row is None else row
        assert root[short].rows_at(at)[0][:, 0].tolist() == list(range(start, start + 5))
        assert root[whole].rows_at(at)[0].tolist() == [[start]]


def test_what_is_called_may_let_its_block_go() -> None:
    """A concat reads all of its sources, also one that emitted much in an earlier step and nothing in this one."""
    flow = Dataflow()
    one, two = flow.add(Input(2)), flow.add(Input(2))
    for node in (one, two):
        flow.add(Arrange(node, SAME, 2))
    mapped = flow.add(FlatMap(one, Touchy(ValueError)))
    output = flow.add(Output(flow.add(Concat((mapped, two)))))
    flow.hydrate()
    rows = np.stack([np.arange(5000), np.arange(5000)], axis=1) + 20
    flow.feed(one, rows, 1, np.ones(5000, np.int64))
    flow.step()
    assert len(flow.changes(output).diffs) == 5000
    program, operator = flow._steps.program, flow._operators[mapped]
    assert program.view[program.row(operator) + R_OUT] == address(operator.out.d)
    for at in range(2, 40):
        feed(flow, two, at, [((at, 1), 1)])
        flow.step()
        assert flow.changes(output).rows.tolist() == [[at, 1]]


def test_what_a_step_has_emitted_is_not_alive_after_it() -> None:
    """Python's view of a kernel's block is dropped with the block."""
    flow = Dataflow()
    given = flow.add(Input(2))
    flow.add(Arrange(given, SAME, 2))
    output = flow.add(Output(flow.add(FlatMap(flow.add(Negate(given)), Touchy(ValueError)))))
    flow.hydrate()
    for at in range(1, 700):
        diff = 1 if at % 2 else -1
        feed(flow, given, at, [((777, 7), diff), ((1000 + at, 5), 1)])
        flow.step()
        flow.changes(output)
        flow.allow_compaction(at)
    feed(flow, given, 700, [((777, 7), -1)])
    flow.step()
    flow.changes(output)
    flow.allow_compaction(700)
    for spine in live.spines(flow):
        spine.compact()
    held = np.concatenate([words.reshape(-1) for words in live.words(flow)])
    assert 1349 in held
    assert 777 not in held


def test_a_root_stays_as_it_was() -> None:
    """Roots share pages; a page that changes, or loses a node, is copied."""
    flow = Dataflow()
    inputs = [flow.add(Input(2)) for _ in range(90)]
    outputs = [flow.add(Output(given)) for given in inputs]
    flow.hydrate()
    first = flow.publish()
    assert sorted(first) == sorted(outputs)
    for at, k in ((1, 0), (2, 89), (3, 0)):
        before = flow.publish()
        held = {node: before[node].count for node in before}
        feed(flow, inputs[k], at, [((at, at), 1)])
        flow.step()
        after = flow.publish()
        assert {node: before[node].count for node in before} == held
        assert [node for node in outputs if after[node] is not before[node]] == [outputs[k]]
        assert after[outputs[k]].count == held[outputs[k]] + 1
        assert (before.upper, after.upper) == (at - 1, at)
    for node in outputs[:80]:
        flow.release(node)
    assert sorted(flow.publish()) == outputs[80:]
    assert len(first) == 90
    assert len(flow.publish()) == 10
    assert outputs[3] not in flow.publish()
