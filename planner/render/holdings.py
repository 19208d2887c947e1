"""What the dataflow holds: its arrangements, the relations they come from, and their users.

Any thread may ask; the figures are those of some moment during the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ivm import graph
from ivm.dataflow import Dataflow
from ivm.graph import NodeId, NodeSpec
from ivm.inspect import nodes
from ivm.runtime.operator import Operator
from ivm.specs import inputs
from planner.render.dataflow import Stored

Nodes = Mapping[NodeId, tuple[NodeSpec, Operator]]


@dataclass(frozen=True, slots=True)
class Origin:
    """Column ``column`` of a stored relation."""

    relation: int
    column: int


@dataclass(frozen=True, slots=True)
class Arrangement:
    """An arrangement. ``key``: by its words (None: not a relation's column); ``reads``: the relations it is made from.

    ``records`` and ``size`` (bytes): the updates held. ``users``: the relations with it among their nodes.
    """

    node: NodeId
    kind: str
    key: tuple[Origin | None, ...]
    reads: tuple[int, ...]
    in_loop: bool
    records: int
    size: int
    users: tuple[int, ...]


def arrangements(dataflow: Dataflow, stored: Mapping[int, Stored]) -> list[Arrangement]:
    """Every arrangement, oldest first."""
    found = nodes(dataflow)
    holdings = _Holdings(found, stored)
    return [holdings.arrangement(n) for n, (_, o) in sorted(found.items(), key=lambda i: i[0]) if o.spines()]


def users(stored: Mapping[int, Stored]) -> dict[NodeId, list[int]]:
    """The relations that use each node."""
    found: dict[NodeId, list[int]] = {}
    for relation, known in sorted(stored.items()):
        for node in dict.fromkeys((known.rows, *known.nodes)):
            found.setdefault(node, []).append(relation)
    return found


class _Holdings:
    def __init__(self, nodes: Nodes, stored: Mapping[int, Stored]) -> None:
        self.nodes, self.stored = nodes, stored
        self.users = users(stored)
        self.whole = {known.rows: relation for relation, known in stored.items()}

    def arrangement(self, node: NodeId) -> Arrangement:
        spec, operator = self.nodes[node]
        spines = operator.spines()
        key = () if isinstance(spec, graph.Output) else tuple(self.origin(node, w) for w in range(spines[0].key_width))
        records, size = sum(s.count for s in spines), sum(s.nbytes for s in spines)
        mine = tuple(self.users.get(node, ()))
        return Arrangement(
            node, _kind(spec), key, self.reads(node), bool(operator.scope.depth), records, size, mine
        )  # fmt: skip

    def reads(self, node: NodeId) -> tuple[int, ...]:
        """The nearest stored relations upstream."""
        found: set[int] = set()
        seen: set[NodeId] = set()
        todo = list(inputs(self.nodes[node][0]))
        if isinstance(self.nodes[node][0], graph.Output):  # of a view: its sources, not the view itself
            todo = [i for n in todo if n in self.nodes for i in inputs(self.nodes[n][0]) or (n,)]
        while todo:
            current = todo.pop()
            if current in seen or current not in self.nodes:
                continue
            seen.add(current)
            if current in self.whole:
                found.add(self.whole[current])
            else:
                todo += inputs(self.nodes[current][0])
        return tuple(sorted(found))

    def origin(self, node: NodeId, word: int) -> Origin | None:
        """The stored relation's column that a word of a node's rows is a copy of; None: it is no copy."""
        while word >= 0 and node in self.nodes:
            if node in self.whole:
                relation = self.whole[node]
                return Origin(relation, word) if word < len(self.stored[relation].schema) else None
            spec = self.nodes[node][0]
            match spec:
                case graph.Project() | graph.Arrange():
                    node, word = spec.input, spec.gather.words[word]
                case graph.Threshold():
                    node = spec.input
                case graph.Unchanged():
                    node = inputs(spec)[0]
                case graph.Reduce() if word < self.key_width(spec.input):
                    node = spec.input
                case graph.Join():
                    node, word = self._side(spec, spec.gather.words[word])
                case _:
                    return None
        return None

    def _side(self, join: graph.Join, word: int) -> tuple[NodeId, int]:
        """The (node, word) that a word of a join's [key | left val | right val] comes from."""
        if join.left not in self.nodes:
            return join.left, word
        width = self.nodes[join.left][1].width
        return (join.left, word) if word < width else (join.right, word - width + self.key_width(join.left))

    def key_width(self, node: NodeId) -> int:
        spines = self.nodes[node][1].spines() if node in self.nodes else []
        return spines[0].key_width if spines else 0


def _kind(spec: NodeSpec) -> str:
    if isinstance(spec, graph.Threshold) and spec.keep is graph.Keep.DISTINCT:
        return "Distinct"
    return type(spec).__name__
