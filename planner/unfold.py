"""Plans as Spark runs them: a join of several inputs at once unfolded, what is there already taken as it is.

A delta join keeps nothing because its inputs' arrangements are at hand, in one memory. Where rows of one key have to be
brought together first, it is a chain of joins along one of its paths: the combinations are the same, in every round
too, since a join is linear in each of its inputs. The chain's own arrangements are not part of the view.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from ivm.graph import Arrange, DeltaJoin, Errors, Gather, Join, Lookup, NodeId, Order, Project, Threshold
from planner import moves
from planner.physical import Constants, Group, Node, Plan, Table, inputs, reached, with_inputs


@dataclass(frozen=True, slots=True)
class Unfolded:
    """``origin``: the given plan's number of each node that stands for one of its nodes. ``sources``: the nodes whose
    rows come from outside, by the given plan's numbers; ``kept``: the arrangements of the given plan."""

    plan: Plan
    origin: dict[NodeId, NodeId]
    sources: dict[NodeId, NodeId]
    kept: frozenset[NodeId]


def unfold(plan: Plan, given: Collection[NodeId]) -> Unfolded:
    """The plan without what only ``given`` nodes read, whose rows come from outside as constants' do."""
    return _Unfolding(plan, frozenset(given)).run()


@dataclass(slots=True)
class _Unfolding:
    plan: Plan
    given: frozenset[NodeId]
    nodes: list[Node] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    place: dict[NodeId, NodeId] = field(default_factory=dict)
    sources: dict[NodeId, NodeId] = field(default_factory=dict)

    def run(self) -> Unfolded:
        plan = self.plan
        bodies = dict(self.plan.connections)
        for number in sorted(reached(self.plan, lambda n: self._is_source(n) and n not in bodies)):
            self.place[number] = self._placed(number)
        origin = {new: old for old, new in self.place.items()}
        connections = tuple((self.place[v], self.place[b]) for v, b in plan.connections if v in self.place)
        errors = None if plan.errors is None else self.place[plan.errors]
        nodes = tuple(self.nodes)
        made = Plan(nodes, tuple(self.widths), plan.scopes, connections, self.place[plan.rows], errors, plan.schema)
        kept = frozenset(
            new for new, old in origin.items() if isinstance(nodes[new], Arrange) and old not in self.given
        )
        return Unfolded(made, origin, self.sources, kept)

    def _is_source(self, number: NodeId) -> bool:
        node = self.plan.nodes[number]
        of_constants = isinstance(node, Errors) and isinstance(self.plan.nodes[node.input], Constants)
        return number in self.given or of_constants or not inputs(node)

    def _placed(self, number: NodeId) -> NodeId:
        node, width = self.plan.nodes[number], self.plan.widths[number]
        if self._is_source(number) and number not in dict(self.plan.connections):
            source = self.sources[number] = self._add(Table(-1 - number, ()), width)
            arranged = self._arranged(number)
            return source if arranged is None else self._add(replace(arranged, input=source), width)
        if isinstance(node, DeltaJoin):
            return self._chain(node)
        return self._add(with_inputs(node, self.place), width)

    def _arranged(self, number: NodeId) -> Arrange | None:
        """How a node's rows are arranged, where it is an arrangement."""
        node, width = self.plan.nodes[number], self.plan.widths[number]
        below = node
        while isinstance(below, Group | Threshold):
            below = self.plan.nodes[below.input]
        if not isinstance(below, Arrange):
            return None
        order = below.order
        if isinstance(node, Group):
            order = (*below.order[: below.key_width], *(Order.WORD,) * (width - below.key_width))
        plain = all(o is Order.WORD for o in order)
        return Arrange(number, moves.identity(width), below.key_width, () if plain else order)

    def _add(self, node: Node, width: int) -> NodeId:
        self.nodes.append(node)
        self.widths.append(width)
        return NodeId(len(self.nodes) - 1)

    def _chain(self, join: DeltaJoin) -> NodeId:
        """The joins along the first path; what is bound so far is a row of the last one."""
        path = join.paths[0]
        bound = self.place[path.start]
        for stage in path.stages:
            shared: int | None = None
            for lookup in stage:
                key = lookup.key if shared is None else (*lookup.key, shared)
                if shared is None and len(stage) > 1:
                    shared = self.widths[bound] + len(lookup.key)
                bound = self._looked_up(bound, lookup, key)
        return self._add(Project(bound, path.gather), len(path.gather.words))

    def _looked_up(self, bound: NodeId, lookup: Lookup, key: tuple[int, ...]) -> NodeId:
        """[what was bound | the row that was looked up]."""
        width, count = self.widths[bound], len(key)
        left = self._add(Arrange(bound, Gather((*key, *range(width))), count), count + width)
        right = self.place[lookup.node]
        found = self.widths[right]
        arranged = self.nodes[right]
        if not isinstance(arranged, Arrange) or arranged.key_width != count:
            right = self._add(Arrange(right, moves.identity(found), count), found)
        words = (*range(count, count + width), *range(count), *range(count + width, width + found))
        return self._add(Join(left, right, Gather(words)), width + found)
