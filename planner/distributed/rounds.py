"""The agenda of a plan with loops: in which order fragments take what waits for them, round by round.

Within a loop vector a fragment takes what waits at its ports once nothing that they depend on has anything left at that
vector. A nested loop counts as one item, which runs until nothing is left, least vector first. So a plan with loops
runs in the engine's own order, except that linear nodes never wait.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import InitVar, dataclass, field

from ivm.graph import Arrange, Keyed, NodeId
from ivm.specs import inputs
from ivm.time import all_bits
from planner.distributed.fragment import Cut, Fragment
from planner.physical.nodes import Plan, Scope, innermost_loops

Loop = int | None
"""A loop of the plan; None: outside of all loops."""


@dataclass(frozen=True, slots=True)
class Due:
    """What waits for a port, or is owed to a node (``owed``), of a fragment, at a loop vector of the node's loop."""

    fragment: int
    node: NodeId
    vector: int
    owed: bool = False

    @classmethod
    def of(cls, fragment: int, port: int, vector: int) -> Due:
        """By ``port``, which may stand for what is owed."""
        return cls(fragment, NodeId(port if port >= 0 else -1 - port), vector, port < 0)

    @classmethod
    def parse(cls, text: str) -> Due:
        """The inverse of ``str``."""
        return cls.of(*map(int, text.split(".")))

    @property
    def port(self) -> NodeId:
        """The port; for what is owed, a negative number that stands for the node."""
        return NodeId(-1 - self.node) if self.owed else self.node

    def __str__(self) -> str:
        """A name for files."""
        return f"{self.fragment}.{self.port}.{self.vector}"


@dataclass(frozen=True, slots=True)
class Item:
    """An item of the agenda of a loop: a node that is not keyed, a fragment's share of the loop, or a nested loop."""

    kind: str
    number: int
    loop: Loop


@dataclass(slots=True)
class Rounds:
    """The agenda. It is sent to executors without the plan."""

    plan: InitVar[Plan]
    cut: InitVar[Cut]
    _output: int = 0
    _scopes: tuple[Scope, ...] = ()
    _loops: list[Loop] = field(default_factory=list)
    _ranks: dict[Item, int] = field(default_factory=dict)
    _before: dict[Item, set[Item]] = field(default_factory=dict)

    def __post_init__(self, plan: Plan, cut: Cut) -> None:
        self._output, self._scopes = cut.output.number, plan.scopes
        self._loops = innermost_loops(plan)
        items = {NodeId(i): Item("node", i, loop) for i, loop in enumerate(self._loops)}
        for fragment in cut.fragments[1:-1]:
            mine = [i for i, node in fragment.nodes if isinstance(node, Keyed)]
            mine += [port.node for port in fragment.ports if not fragment.keyed]
            items.update({i: Item("fragment", fragment.number, self._loops[i]) for i in mine})
        for number, item in list(items.items()):
            for source in inputs(plan.nodes[number]):
                self._edge(items[source], item)
        for fragment in cut.fragments[1:-1]:
            self._ports(fragment, plan, items)

    def _ports(self, fragment: Fragment, plan: Plan, items: dict[NodeId, Item]) -> None:
        for port in fragment.ports if fragment.keyed else ():
            node, at = plan.nodes[port.node], Item("fragment", fragment.number, port.scope)
            self._edge(items[node.input if isinstance(node, Arrange) else port.node], at)
            for number, keyed in fragment.nodes:
                if isinstance(keyed, Keyed) and port.node in inputs(keyed):
                    self._edge(at, items[number])

    def next(self, waiting: Collection[Due]) -> list[Due]:
        """What to take next of all that waits; all of it has one loop vector. The output comes last."""
        waiting = [due for due in waiting if due.fragment != self._output] or waiting
        if all(due.fragment == self._output for due in waiting):
            return list(waiting)
        loop: Loop = None
        while True:
            ranked = [(self._rank(self._lifted(self._item(due), loop)), due) for due in waiting]
            least = min(rank for rank, _ in ranked)
            first = [due for rank, due in ranked if rank == least]
            here = [due for due in first if self._loops[due.node] == loop]
            if here:
                return here
            inner = min(self._lifted(self._item(due), loop).number for due in first)
            inside = [due for due in first if self._lifted(self._item(due), loop).number == inner]
            vector = min(self._vector(due, inner) for due in inside)
            waiting, loop = [due for due in inside if self._vector(due, inner) == vector], inner

    def _item(self, due: Due) -> Item:
        return Item("fragment", due.fragment, self._loops[due.node])

    def _vector(self, due: Due, loop: int) -> int:
        """The vector as counted by ``loop``, which may enclose the node's loop."""
        own = self._loops[due.node]
        assert own is not None
        return due.vector >> all_bits(self._scopes[own].shape) - all_bits(self._scopes[loop].shape)

    def _around(self, loop: Loop) -> list[Loop]:
        """The loop, its enclosing loops, and None."""
        found = [loop]
        while (last := found[-1]) is not None:
            found.append(self._scopes[last].parent)
        return found

    def _lifted(self, item: Item, loop: Loop) -> Item:
        """The item of ``loop`` that contains the item."""
        around = self._around(item.loop)
        place = around.index(loop)
        inner = around[place - 1] if place else None
        return item if inner is None else Item("loop", inner, loop)

    def _edge(self, source: Item, item: Item) -> None:
        loop = next(loop for loop in self._around(item.loop) if loop in self._around(source.loop))
        before, after = self._lifted(source, loop), self._lifted(item, loop)
        if before != after:
            self._before.setdefault(after, set()).add(before)

    def _rank(self, item: Item) -> int:
        if item not in self._ranks:
            before = max((self._rank(other) for other in self._before.get(item, ())), default=0)
            self._ranks[item] = before + (item.kind != "node")
        return self._ranks[item]
