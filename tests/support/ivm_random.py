"""Random dataflow graphs, built both in the engine and in its oracle."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import numpy as np

from ivm.dataflow import Dataflow
from ivm.graph import (
    Arrange,
    AsOf,
    Concat,
    Consolidate,
    Constant,
    Delay,
    DeltaJoin,
    Errors,
    FirstWords,
    FlatMap,
    Gather,
    Input,
    Join,
    Keep,
    Leave,
    Negate,
    NodeId,
    NodeSpec,
    Output,
    Overflow,
    Priority,
    Project,
    Reduce,
    ScopeId,
    Threshold,
    Variable,
)  # fmt: skip
from ivm.specs import inputs
from tests.support.ivm_model import Collection, Count, Least, Loop, Members, Model, Twist, Two, clean
from tests.support.ivm_patterns import random_band, random_join

SWAP = Gather((1, 0))
SAME = Gather((0, 1))
FIRSTS = [(SAME, FirstWords((0,))), (SWAP, FirstWords((0,), complement=True)), (SWAP, FirstWords((0,)))]
GATHERS = [SWAP, Gather((0, 0)), Gather((1, 0), (), ((0, 2),)), Gather((0, -1), ((1, 0, 1, 1),))]


KINDS = (
    "project", "map", "concat", "negate", "join", "join", "delta", "distinct", "positive", "count", "least", "two",
    "members", "errors", "consolidate", "reduced",
)  # fmt: skip


class Pair:
    """An engine and its oracle with the same graph. All collections have two words."""

    def __init__(self, seed: int, prioritised: bool = False, kinds: tuple[str, ...] = KINDS) -> None:
        self.kinds = kinds
        self.arranged: dict[tuple[NodeId, bool, int], NodeId] = {}
        self.rng = random.Random(seed)
        self.prioritised = prioritised
        self.engine = Dataflow()
        self.model = Model()
        self.inputs: list[NodeId] = []
        self.outputs: list[NodeId] = []
        self.emitted: dict[NodeId, Collection] = {}
        self.expected: dict[tuple[NodeId, int], Collection] = {}

    def add(self, spec: NodeSpec, scope: ScopeId | None = None) -> NodeId:
        node = self.engine.add(spec)
        self.model.specs[node] = spec
        self.model.scope_of[node] = scope
        return node

    def input(self) -> NodeId:
        node = self.add(Input(2))
        self.model.inputs[node] = Counter()
        self.inputs.append(node)
        self.add(Arrange(node, SWAP, 1))
        return node

    def output(self, node: NodeId) -> NodeId:
        out = self.add(Output(node))
        self.outputs.append(out)
        self.emitted[out] = Counter()
        return out

    def deeper(self, *nodes: NodeId) -> ScopeId | None:
        """The nodes' innermost scope."""
        scopes = [self.model.scope_of[node] for node in nodes]
        best = None
        for scope in scopes:
            if scope is not None and (best is None or self._depth(scope) > self._depth(best)):
                best = scope
        return best

    def _depth(self, scope: ScopeId | None) -> int:
        return 0 if scope is None else 1 + self._depth(self.model.parent[scope])

    def grow(self, pool: list[NodeId], count: int, linear: bool = False) -> None:
        """Add random operators on the pool's collections to the pool."""
        rng = self.rng
        more = ["first", "first", "delay"] if self.prioritised else []
        for _ in range(count):
            a, b = rng.choice(pool), rng.choice(pool)
            scope = self.deeper(a)
            asof = [] if self.deeper(a, b) is not None else ["asof", "asof"]
            kind = rng.choice([*self.kinds, *more, *(asof if self.kinds is KINDS else [])])
            match kind:
                case "project":
                    how = rng.choice(GATHERS)
                    node = self.add(Project(a, how), scope)
                case "map":
                    twist = Twist(rng.randrange(5), rng.randrange(7), rng.choice([-1, 1, 2]))
                    node = self.add(FlatMap(a, twist), scope)
                case "errors":
                    flat = self.add(FlatMap(a, Twist(rng.randrange(5), rng.randrange(7), 1)), scope)
                    if rng.random() < 0.5:
                        arranged = self.add(Arrange(a, SAME, 1), scope)
                        flat = self.add(Reduce(arranged, Count()), scope)
                    wrong = self.add(Errors(flat), scope)
                    node = self.add(Project(wrong, Gather((0, 0))), scope)
                case "concat":
                    node = self.add(Concat((a, b)), self.deeper(a, b))
                case "negate":
                    node = self.add(Negate(a), scope)
                case "consolidate":
                    node = self.add(Consolidate(a), scope)
                case "join":
                    left = self.add(Arrange(a, rng.choice([SAME, SWAP]), 1), scope)
                    right = self.add(Arrange(b, rng.choice([SAME, SWAP]), 1), self.deeper(b))
                    if rng.random() < 0.2:
                        right = left
                    joined = self.add(Join(left, right, Gather((1, 2))), self.deeper(left, right))
                    node = self.distinct(joined) if rng.random() < 0.7 else joined
                case "delta":
                    node = self.delta(rng.sample(pool, min(len(pool), rng.randrange(1, 4))))
                case "band":
                    node = self.delta(rng.sample(pool, min(len(pool), 2)), random_band)
                case "distinct":
                    node = self.distinct(a)
                case "positive":
                    arranged = self.add(Arrange(a, SAME, 2), scope)
                    node = self.add(Threshold(arranged, Keep.POSITIVE), scope)
                case "asof":
                    node = self.asof(a, b)
                case "count":
                    arranged = self.add(Arrange(a, Gather((0,)), 1), scope)
                    node = self.add(Reduce(arranged, Count()), scope)
                case "least" | "two":
                    arranged = self.add(Arrange(a, rng.choice([SAME, SWAP]), 1), scope)
                    node = self.add(Reduce(arranged, Least() if kind == "least" else Two()), scope)
                case "first":
                    how, reducer = rng.choice(FIRSTS)
                    arranged = self.add(Arrange(a, how, 1), scope)
                    node = self.add(Project(self.add(Reduce(arranged, reducer), scope), SWAP), scope)
                case "delay":
                    node = self.delayed(a)
                case "members":
                    arranged = self.add(Arrange(a, SWAP, 1), scope)
                    wide = self.add(Reduce(arranged, Members()), scope)
                    node = self.add(Project(wide, Gather((0, 2))), scope)
                case _:
                    arranged = self.add(Arrange(a, SAME, 1), scope)
                    least = self.add(Reduce(arranged, Least()), scope)
                    other = self.add(Arrange(b, SWAP, 1), self.deeper(b))
                    node = self.add(Join(least, other, Gather((2, 1))), self.deeper(least, other))
            pool.append(node)

    def delayed(self, node: NodeId) -> NodeId:
        scope = self.deeper(node)
        if scope is None:
            return node
        how = self.rng.choice([Priority.VALUE, Priority.VALUE, Priority.LENGTH, Priority.INVERSE])
        return self.add(Delay(node, self.rng.randrange(2), how, self.rng.randrange(1, 4)), scope)

    def asof(self, left: NodeId, right: NodeId) -> NodeId:
        """An as-of join: points of one word by a key of one word, or points of a constant and the first word without a
        key; sometimes keeps all left rows."""
        rng = self.rng
        if rng.random() < 0.5:
            one = self.add(Arrange(left, rng.choice([SAME, SWAP]), 1))
            two = self.add(Arrange(right, rng.choice([SAME, SWAP]), 1))
            how, none = Gather((1, 2)), (0, 9)
        else:
            wide = Gather((-1, 0, 1))
            one, two = self.add(Arrange(left, wide, 1)), self.add(Arrange(right, wide, 1))
            how, none = Gather(rng.choice([(2, 4), (1, 3), (3, 4)])), (0, 8, 9)
        return self.add(AsOf(one, two, how, 2, rng.random() < 0.5, none if rng.random() < 0.5 else None))

    def delta(self, pool: list[NodeId], pattern: Callable[..., DeltaJoin] = random_join) -> NodeId:
        """A delta join of some of the pool's collections."""
        spec = pattern(self.rng, pool, self._arranged)
        scope = self.deeper(*inputs(spec))
        node = self.add(spec, scope)
        # Diffs multiply: with many inputs, or round after round, they would overflow a word.
        many = scope is not None or len(spec.paths) > 3
        return self.distinct(node) if many or self.rng.random() < 0.7 else node

    def _arranged(self, node: NodeId, swapped: bool, key_width: int) -> NodeId:
        known = self.arranged.get((node, swapped, key_width))
        if known is None or self.rng.random() < 0.3:
            known = self.add(Arrange(node, SWAP if swapped else SAME, key_width), self.deeper(node))
            self.arranged[node, swapped, key_width] = known
        return known

    def distinct(self, node: NodeId) -> NodeId:
        scope = self.deeper(node)
        arranged = self.add(Arrange(node, SAME, 2), scope)
        return self.add(Threshold(arranged, Keep.DISTINCT), scope)

    def loop(self, pool: list[NodeId], parent: ScopeId | None = None, depth: int = 1) -> None:
        """Add a loop over the pool's collections, maybe with an inner loop, and its results to the pool."""
        rng = self.rng
        limit = rng.randrange(2, 16 if self.prioritised and depth == 1 else 7)
        scope = self.engine.scope(parent, limit, return_at_limit=True)
        self.model.parent[scope] = parent
        variables = [self.add(Variable(scope, 2), scope) for _ in range(rng.randrange(1, 3))]
        inner = rng.sample(pool, min(len(pool), 3)) + variables
        seed = self.add(Concat((rng.choice(pool), variables[0])), scope)
        inner.append(seed)
        if self.prioritised:
            inner.append(self.delayed(seed))
        self.grow(inner, rng.randrange(1, 5))
        if depth < MAX_LOOPS and rng.random() < (0.5 if depth > 1 else 0.4):
            self.loop(inner, scope, depth + 1)
            self.grow(inner, 2)
        bodies = {}
        local = [node for node in inner if self.model.scope_of[node] == scope and node not in variables] or [seed]
        for variable in variables:
            body = self.distinct(rng.choice(local))
            if rng.random() < 0.3:
                body = rng.choice(local)
            bodies[variable] = body
            self.engine.connect(variable, body)
        self.model.loops[scope] = Loop(bodies, limit)
        for variable in variables:
            pool.append(self.add(Overflow(variable), parent))
        for _ in range(2):
            pool.append(self.add(Leave(rng.choice([*local, bodies[variables[0]]])), parent))

    def feed(self, at: int, rows: int, negative: bool = False) -> None:
        """Feed random insertions, and retractions of existing rows, at one ordinal."""
        rng = self.rng
        for node in self.inputs:
            held = self.model.inputs[node]
            updates = []
            for _ in range(rng.randrange(rows + 1)):
                if held and rng.random() < 0.45:
                    row = rng.choice(sorted(held))
                    diff = -1
                else:
                    row = (rng.randrange(6), rng.randrange(6))
                    diff = rng.choice([1, 1, 2])
                    if negative and rng.random() < 0.2:
                        diff = -1
                updates.append((row, diff))
                held[row] += diff
                if held[row] == 0:
                    del held[row]
            if updates:
                n = len(updates)
                matrix = np.array([row for row, _ in updates], np.int64)
                self.engine.feed(node, matrix, np.full(n, at), np.array([d for _, d in updates]))

    def remember(self, at: int) -> None:
        """Recompute all outputs as of an ordinal."""
        for out in self.outputs:
            self.expected[out, at] = self.model.value(out)

    def check(self, ordinals: list[int]) -> None:
        """Compare the outputs' changes at each of these ordinals with the recomputed collections."""
        root = self.engine.publish()
        for out in self.outputs:
            changes = self.engine.changes(out)
            rows = list(map(tuple, changes.rows.tolist()))
            assert set(changes.times.tolist()) <= set(ordinals)
            assert (changes.diffs != 0).all()
            for at in ordinals:
                for row, time, diff in zip(rows, changes.times.tolist(), changes.diffs.tolist(), strict=True):
                    if time == at:
                        self.emitted[out][row] += diff
                assert clean(self.emitted[out]) == self.expected[out, at], (self.model.specs[out], at)
                held, counts = root[out].rows_at(at)
                found = dict(zip(map(tuple, held.tolist()), counts.tolist(), strict=True))
                assert found == self.expected[out, at]


MAX_LOOPS = 4
CONSTANT = Constant(2, ((1, 2), (3, 1)))


def step(pair: Pair, at: int, ordinals: int) -> int:
    """Feed this many ordinals from ``at`` on, run them in one step, and check each; the next ordinal."""
    done = list(range(at, at + ordinals))
    for ordinal in done:
        pair.feed(ordinal, 4)
        pair.remember(ordinal)
    pair.engine.step()
    pair.check(done)
    return at + ordinals
