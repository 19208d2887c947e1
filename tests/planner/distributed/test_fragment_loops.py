"""Maintained recursive plans in fragments, run round by round and part by part, against the engine."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping

import pytest

from ivm.graph import NodeId
from ivm.time import all_bits
from ivm.trace.batch import Block
from planner.distributed.fragment import FIRST
from planner.distributed.fragment_run import Sent, run_fragment
from planner.distributed.rounds import Due, Rounds
from planner.expr.context import Context
from planner.physical.nodes import Plan, innermost_loops
from tests.planner.distributed.test_fragment import LINEAR, PARTS, Scattered, added, at_epochs, deltas, planned
from tests.planner.test_views import changes
from tests.support.planner_bench import World
from tests.support.planner_queries import LOOPS, NESTED, TABLES

Layers = list[list[Block]]


class Looped(Scattered):
    """Runs a plan by its agenda. What a pass adds to traces keeps its ordinals until the pass has ended."""

    def __init__(self, plan: Plan, context: Context) -> None:
        super().__init__(plan, context)
        self.rounds, self.loops = Rounds(plan, self.cut), innermost_loops(plan)
        self.waiting: dict[Due, dict[int, list[Block]]] = {}
        self.now: dict[tuple[int, int], Layers] = {}
        self.vectors: set[int] = set()

    def run(self, given: Mapping[NodeId, Block], whole: bool) -> None:
        self.vectors.clear()
        output = self.cut.output.number
        self._send(run_fragment(self.cut.fragments[FIRST], self.context, None, given, PARTS).sent)
        while inner := [due for due in self.waiting if due.fragment != output]:
            dues = self.rounds.next(inner)
            taken = {due: self.waiting.pop(due) for due in dues}
            self.vectors.add(dues[0].vector)
            for number in dict.fromkeys(due.fragment for due in dues):
                for part in range(PARTS):
                    self._run(
                        number, part, {d: p[part] for d, p in taken.items() if d.fragment == number and part in p}
                    )
        for due, parts in self.waiting.items():
            into = self.rows if due.node == self.cut.rows.node else self.errors
            self._take(into, added([block for blocks in parts.values() for block in blocks]), due.node)
        self.waiting.clear()
        for at, layers in self.now.items():
            held = self.traces.setdefault(at, [[] for _ in layers])
            for before, blocks in zip(held, layers, strict=True):
                before.extend(blocks)
        self.now.clear()

    def _run(self, number: int, part: int, mine: dict[Due, list[Block]]) -> None:
        if not mine:
            return
        at, (first, *_) = (number, part), mine
        arrived = {due.node: added(blocks) for due, blocks in mine.items() if not due.owed}
        owed = {due.node: added(blocks) for due, blocks in mine.items() if due.owed}
        ran = run_fragment(
            self.cut.fragments[number], self.context, self.traces.get(at), arrived, PARTS, first.vector, owed,
            self.now.get(at), timed=True,
        )  # fmt: skip
        layers = self.now.setdefault(at, [[] for _ in ran.traces])
        for layer, block in zip(layers, ran.traces, strict=True):
            layer.append(block)
        self._send(ran.sent)
        self._send((Sent(number, part, node, block) for node, block in ran.owed), True)

    def _send(self, sent: Iterable[Sent], owed: bool = False) -> None:
        for one in sent:
            loop, (rows, times, diffs) = self.loops[one.port], one.block.arrays()
            outside = loop is None or one.fragment == self.cut.output.number
            mask = 0 if outside or loop is None else (1 << all_bits(self.plan.scopes[loop].shape)) - 1
            for vector in sorted(set((times & mask).tolist())):
                chosen = times & mask == vector
                parts = self.waiting.setdefault(Due(one.fragment, one.port, vector, owed), defaultdict(list))
                parts[one.part].append(Block.of(rows[chosen], times[chosen], diffs[chosen]))


@pytest.mark.parametrize("seed", range(2))
def test_rounds_give_what_the_engine_gives(seed: int) -> None:
    """Three commits per job, each at its own time."""
    world = World(TABLES)
    world.planning = LINEAR
    queries = LOOPS | {name: rel for name, rel in NESTED.items() if planned(world, rel).scopes}
    rnd = random.Random(seed)
    looped: dict[str, Looped] = {}
    for i, (name, rel) in enumerate(queries.items()):
        world.install(100 + i, rel)
        looped[name] = Looped(planned(world, rel), Context(world.dictionary))
        looped[name].run(looped[name].start(), True)
    before = {i: world.view(100 + i) for i in range(len(queries))}
    rounds = 0
    for _ in range(12):
        made = []
        for _ in range(3):
            commit = changes(world, rnd)
            world.commit(commit)
            made.append(commit)
        for i, (name, rel) in enumerate(queries.items()):
            one = looped[name]
            one.emitted.clear()
            one.run(deltas(world, one, made), True)
            rounds = max(rounds, len(one.vectors))
            errors = world.errors(100 + i)
            expected = "21000" if errors is not None and len(errors[0]) else world.view(100 + i)
            assert one.contents(rel, world.dictionary) == expected, name
            at_epochs(world, one, rel, 100 + i, before[i])
            before[i] = world.view(100 + i)
    assert rounds > 3
