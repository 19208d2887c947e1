"""Fragmented plans, run part by part with traces written out and read back, against the engine at every epoch."""

from __future__ import annotations

import pickle
import random
from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np
import pytest

from ivm.graph import NodeId
from ivm.rows import RowSet, Words
from ivm.trace.batch import Block
from planner.distributed.fragment import FIRST, Cut, cut
from planner.distributed.fragment_run import run_fragment, settled
from planner.expr.context import Context
from planner.logical.nodes import Rel, schema
from planner.lower.plan import lower
from planner.options import Joins, Late, Planning
from planner.physical.nodes import Constants, Plan, Table
from planner.render.dataflow import constant_rows
from planner.transform.pipeline import maintained
from storage.dictionary import Dictionary
from tests.planner.test_views import changes
from tests.support.planner_bench import World, decode, encode
from tests.support.planner_queries import NESTED, PLAIN, TABLES
from tests.support.profiles import scaled

PARTS = 3
LINEAR = Planning(joins=Joins.LINEAR, late=Late.OFF)


class Scattered:
    """A plan over parts, each of which knows only what it was sent. All parts share one dictionary."""

    def __init__(self, plan: Plan, context: Context) -> None:
        self.plan, self.context = plan, context
        self.cut: Cut = pickle.loads(pickle.dumps(cut(plan)))
        self.traces: dict[tuple[int, int], list[list[Block]]] = {}
        self.rows: Counter[tuple[int, ...]] = Counter()
        self.errors: Counter[tuple[int, ...]] = Counter()
        self.emitted: dict[int, Counter[tuple[int, ...]]] = defaultdict(Counter)
        self.touched = 0

    def start(self) -> dict[NodeId, Block]:
        """Feeds the constants, once."""
        given = {}
        for number, node in self.cut.sources:
            if isinstance(node, Constants):
                rows, errors = constant_rows(node.rows, node.schema, self.context)
                assert not len(errors)
                given[number] = updates(rows, 1)
        return given

    def table(self, relation: int) -> NodeId | None:
        return next((i for i, n in self.cut.sources if isinstance(n, Table) and n.relation == relation), None)

    def run(self, given: Mapping[NodeId, Block], whole: bool) -> None:
        waiting: dict[tuple[int, int], dict[NodeId, list[Block]]] = defaultdict(lambda: defaultdict(list))
        for port, block in given.items():
            waiting[FIRST, 0][port].append(block)
        for fragment in self.cut.fragments[:-1]:
            for part in range(PARTS):
                arrived = waiting.pop((fragment.number, part), None)
                if arrived is None:
                    continue
                self.touched += 1
                at = (fragment.number, part)
                blocks = {port: added(found) for port, found in arrived.items()}
                ran = run_fragment(fragment, self.context, self.traces.get(at), blocks, PARTS)
                layers = self.traces.setdefault(at, [[] for _ in ran.traces])
                for layer, block in zip(layers, ran.traces, strict=True):
                    layer.append(block)
                if whole:
                    self.traces[at] = [[block] for block in settled(fragment, self.context, layers)]
                for sent in ran.sent:
                    assert self.cut.fragments[sent.fragment].level > fragment.level
                    waiting[sent.fragment, sent.part][sent.port].append(sent.block)
        for (number, _), arrived in waiting.items():
            assert number == self.cut.output.number
            for port, blocks in arrived.items():
                self._take(self.rows if port == self.cut.rows.node else self.errors, added(blocks), port)

    def _take(self, into: Counter[tuple[int, ...]], block: Block, port: NodeId) -> None:
        for row, time, diff in zip(*(a.tolist() for a in block.arrays()), strict=True):
            into[tuple(row)] += diff[0]
            if port == self.cut.rows.node:
                self.emitted[time][tuple(row)] += diff[0]

    def contents(self, rel: Rel, dictionary: Dictionary) -> object:
        if any(self.errors.values()):
            return "21000"
        held = {row: n for row, n in self.rows.items() if n}
        words = np.array(list(held), np.int64).reshape(len(held), self.cut.rows.width)
        return Counter(dict(zip(decode(RowSet(words, schema(rel)), dictionary), held.values(), strict=True)))


def planned(world: World, rel: Rel) -> Plan:
    return lower(maintained(rel), world.indexes(False))


def updates(rows: Words, diffs: Words | int, time: Words | int = 1) -> Block:
    count = len(rows)
    return Block.of(rows, np.zeros(count, np.int64) + time, np.zeros((count, 1), np.int64) + np.reshape(diffs, (-1, 1)))


def added(blocks: list[Block]) -> Block:
    return Block.of(*(np.concatenate(parts) for parts in zip(*(b.arrays() for b in blocks), strict=True)))


def deltas(world: World, scattered: Scattered, made: list[list[tuple[int, object, int]]]) -> dict[NodeId, Block]:
    """Several commits as updates of the sources, at times from 1 on."""
    found: dict[NodeId, list[Block]] = defaultdict(list)
    for time, commit in enumerate(made, 1):
        for table, row, diff in commit:
            source = scattered.table(table)
            if source is not None:
                words = encode([row], TABLES[table][0], world.dictionary)  # type: ignore[list-item]
                found[source].append(updates(words, diff, time))
    return {source: added(blocks) for source, blocks in found.items()}


@pytest.mark.parametrize("seed", range(scaled(2)))
@pytest.mark.parametrize("queries", [PLAIN, NESTED], ids=["plain", "nested"])
def test_parts_give_what_the_engine_gives(queries: dict[str, Rel], seed: int) -> None:
    """Three commits per job, each at its own time; traces are written whole or as layers."""
    world = World(TABLES)
    world.planning = LINEAR
    queries = {name: rel for name, rel in queries.items() if not planned(world, rel).scopes}
    assert len(queries) > 8
    rnd = random.Random(seed)
    scattered: dict[str, Scattered] = {}
    for i, (name, rel) in enumerate(queries.items()):
        world.install(100 + i, rel)
        scattered[name] = Scattered(planned(world, rel), Context(world.dictionary))
        scattered[name].run(scattered[name].start(), True)
    before = {i: world.view(100 + i) for i in range(len(queries))}
    for step in range(5):
        made = []
        for _ in range(3):
            commit = changes(world, rnd)
            world.commit(commit)
            made.append(commit)
        for i, (name, rel) in enumerate(queries.items()):
            one = scattered[name]
            one.emitted.clear()
            one.run(deltas(world, one, made), whole=step % 3 == 0)
            errors = world.errors(100 + i)
            expected = "21000" if errors is not None and len(errors[0]) else world.view(100 + i)
            assert one.contents(rel, world.dictionary) == expected, name
            at_epochs(world, one, rel, 100 + i, before[i])
            before[i] = world.view(100 + i)


def at_epochs(world: World, one: Scattered, rel: Rel, view: int, held: Counter[tuple[object, ...]]) -> None:
    """Maps the output's times to the epochs that caused it."""
    held = Counter(held)
    for time in (1, 2, 3):
        for row, diff in one.emitted[time].items():
            words = np.array([row], np.int64).reshape(1, -1)
            held[decode(RowSet(words, schema(rel)), world.dictionary)[0]] += diff
        expected = world.view(view, world.ordinal - 3 + time)
        assert {r: n for r, n in held.items() if n} == dict(expected)


def test_only_parts_that_rows_go_to_are_touched() -> None:
    """One row in a join and a group over thousands of rows touches one part of each fragment, whatever the size."""
    world = World(TABLES)
    world.planning = LINEAR
    one = Scattered(planned(world, PLAIN["group"]), Context(world.dictionary))
    many = [(1, (i % 500, i), 1) for i in range(4000)]
    one.run(deltas(world, one, [many]), whole=True)
    one.touched = 0
    one.run(deltas(world, one, [[(1, (3, 3), 1)]]), whole=True)
    assert one.touched < len(one.cut.fragments)
