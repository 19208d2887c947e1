"""Rewrites plans for Spark: delta joins become chains of linear joins, and existing contents become sources.

A delta join keeps nothing because its inputs' arrangements are at hand in one memory. Where rows of one key must first
be brought together, a chain of joins along one of its paths is used: it gives the same combinations, in every round
too, since a join is linear in each input. The chain's own arrangements are not part of the view. The path with the
fewest lookups that may find several rows is chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from ivm.graph import Arrange, DeltaJoin, Errors, Gather, Join, Lookup, NodeId, Order, Path, Project, Threshold
from ivm.specs import inputs, with_inputs
from planner import gathers
from planner.physical.nodes import Constants, Group, Node, Plan, Table, arranged_by, reached
from planner.physical.uniqueness import tells_apart


@dataclass(frozen=True, slots=True)
class Unfolded:
    """A rewritten plan.

    ``origin``: maps its nodes to those of the given plan that they stand for. ``sources``: maps nodes of the given plan
    to the new nodes whose rows come from outside. ``kept``: its arrangements that the given plan has.
    """

    plan: Plan
    origin: dict[NodeId, NodeId]
    sources: dict[NodeId, NodeId]
    kept: frozenset[NodeId]


def unfold(plan: Plan, given: Collection[NodeId]) -> Unfolded:
    """The plan without what only ``given`` nodes read. Their rows come from outside, like those of constants."""
    return _Unfolding(plan, frozenset(given)).run()


@dataclass(slots=True)
class _Unfolding:
    plan: Plan
    given: frozenset[NodeId]
    nodes: list[Node] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    numbers: dict[NodeId, NodeId] = field(default_factory=dict)
    sources: dict[NodeId, NodeId] = field(default_factory=dict)

    def run(self) -> Unfolded:
        plan = self.plan
        bodies = dict(self.plan.connections)
        for number in sorted(reached(self.plan, lambda n: self._is_source(n) and n not in bodies)):
            self.numbers[number] = self._rewritten(number)
        origin = {new: old for old, new in self.numbers.items()}
        connections = tuple((self.numbers[v], self.numbers[b]) for v, b in plan.connections if v in self.numbers)
        errors = None if plan.errors is None else self.numbers[plan.errors]
        nodes = tuple(self.nodes)
        made = Plan(nodes, tuple(self.widths), plan.scopes, connections, self.numbers[plan.rows], errors, plan.schema)
        kept = frozenset(
            new for new, old in origin.items() if isinstance(nodes[new], Arrange) and old not in self.given
        )
        return Unfolded(made, origin, self.sources, kept)

    def _is_source(self, number: NodeId) -> bool:
        node = self.plan.nodes[number]
        of_constants = isinstance(node, Errors) and isinstance(self.plan.nodes[node.input], Constants)
        return number in self.given or of_constants or not inputs(node)

    def _rewritten(self, number: NodeId) -> NodeId:
        node, width = self.plan.nodes[number], self.plan.widths[number]
        if self._is_source(number) and number not in dict(self.plan.connections):
            source = self.sources[number] = self._add(Table(-1 - number, ()), width)
            arranged = self._arranged(number)
            return source if arranged is None else self._add(replace(arranged, input=source), width)
        if isinstance(node, DeltaJoin):
            return self._chain(node)
        return self._add(with_inputs(node, self.numbers), width)

    def _arranged(self, number: NodeId) -> Arrange | None:
        """The arrangement of a node's rows, if the node is an arrangement."""
        node, width = self.plan.nodes[number], self.plan.widths[number]
        if not isinstance(node, Arrange | Group | Threshold):
            return None
        below = arranged_by(self.plan, number)
        order = below.order
        if isinstance(node, Group):
            order = (*below.order[: below.key_width], *(Order.WORD,) * (width - below.key_width))
        plain = all(o is Order.WORD for o in order)
        return Arrange(number, gathers.identity(width), below.key_width, () if plain else order)

    def _add(self, node: Node, width: int) -> NodeId:
        self.nodes.append(node)
        self.widths.append(width)
        return NodeId(len(self.nodes) - 1)

    def _chain(self, join: DeltaJoin) -> NodeId:
        """The chain of joins along one path; a row of the last join is all that is bound so far."""
        assert not join.spans, "rows of a range are in many parts: refused by hydration_choice"
        path = min(join.paths, key=self._spread)
        bound = self.numbers[path.start]
        at = [*range(self.widths[bound])]
        for stage in path.stages:
            bound = self._stage(bound, at, stage)
        gather = path.gather
        bits = tuple((at[word], bit, out, out_bit) for word, bit, out, out_bit in gather.bits)
        drop_if = tuple((at[word], bit) for word, bit in gather.drop_if)
        moved = Gather(tuple(-1 if word < 0 else at[word] for word in gather.words), bits, drop_if)
        return self._add(Project(bound, moved), len(moved.words))

    def _stage(self, bound: NodeId, at: list[int], stage: Sequence[Lookup]) -> NodeId:
        """A stage's lookups, one after another.

        ``at``: the current position of each of the path's words; extended in place.
        """
        starts: dict[Lookup, int] = {}
        shared: tuple[int, ...] = ()
        for lookup in self._in_turn(stage):
            width = starts[lookup] = self.widths[bound]
            bound = self._looked_up(bound, lookup, (*(at[word] for word in lookup.key), *shared))
            shared = shared or (width + len(lookup.key),)
        for lookup in stage:
            at += range(starts[lookup], starts[lookup] + self.plan.widths[lookup.node])
        return bound

    def _in_turn(self, stage: Sequence[Lookup]) -> list[Lookup]:
        """The lookups that find at most one row, whatever the others agree on, come first."""
        return sorted(stage, key=lambda lookup: not self._finds_one(lookup, 0))

    def _spread(self, path: Path) -> int:
        """The number of a path's lookups that may find several rows for one.

        After such a lookup the intermediate result may be much larger than the join's inputs and its result: for
        example where common neighbours of two nodes are enumerated before it is known that there is an edge between
        them.
        """
        return sum(
            not self._finds_one(lookup, min(i, 1))
            for stage in path.stages
            for i, lookup in enumerate(self._in_turn(stage))
        )

    def _finds_one(self, lookup: Lookup, more: int) -> bool:
        return tells_apart(self.plan, lookup.node, set(range(len(lookup.key) + more)))

    def _looked_up(self, bound: NodeId, lookup: Lookup, key: tuple[int, ...]) -> NodeId:
        """[the bound row | the row that was looked up]."""
        width, count = self.widths[bound], len(key)
        left = self._add(Arrange(bound, Gather((*key, *range(width))), count), count + width)
        right = self.numbers[lookup.node]
        found = self.widths[right]
        arranged = self.nodes[right]
        if not isinstance(arranged, Arrange) or arranged.key_width != count:
            right = self._add(Arrange(right, gathers.identity(found), count), found)
        words = (*range(count, count + width), *range(count), *range(count + width, width + found))
        return self._add(Join(left, right, Gather(words)), width + found)
