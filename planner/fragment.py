"""A physical plan in fragments: what one machine can run over a part of the data, by key.

An arrangement is where rows of one key must meet, so that is where a plan is cut: rows that go into an arrangement
are sent to the part of their key's hash. A *fragment* is what can run over such a part without asking another one:
operators that read the same arrangements, and the linear nodes (map, project, concat, negate, …) that make of their
rows what the next fragments, or the plan's roots, take. Linear nodes work on each row alone, so each fragment runs
those that its rows reach, and what a concat adds up is added up where it arrives.

*Levels* order fragments: one takes only what those of lesser levels send. Level 0 is the first fragment, which keeps
nothing and takes the rows of tables; the last one is the output, where the plan's rows and errors arrive.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from ivm.errors import unsupported
from ivm.graph import (
    Arrange,
    AsOf,
    Concat,
    Consolidate,
    Errors,
    Gather,
    Join,
    Negate,
    NodeId,
    Order,
    Project,
    Threshold,
)
from planner import moves
from planner.physical import Constants, Group, Map, Node, Plan, Table, TableErrors, inputs, with_inputs

Linear = Map | Project | Errors | Concat | Negate | Consolidate
Source = Table | TableErrors | Constants
Keyed = Group | Threshold | Join | AsOf

FIRST: Final = 0
"""The number of the fragment that takes the sources' rows."""


@dataclass(frozen=True, slots=True)
class Port:
    """Where rows [key | val] enter a fragment, and are arranged; in the first and the last fragment they are not, and
    ``key_width`` is a row's width. ``node``: whose rows of the whole plan they are."""

    node: NodeId
    width: int
    key_width: int
    diff_width: int = 1
    order: tuple[Order, ...] = ()


@dataclass(frozen=True, slots=True)
class Exit:
    """Rows of ``node``, moved by ``gather``, go to a port of a fragment of a greater level."""

    node: NodeId
    gather: Gather | None
    fragment: int
    port: Port


@dataclass(frozen=True, slots=True)
class Fragment:
    """``nodes``: of the whole plan, under its numbers, inputs before what reads them. ``keyed``: what its ports bring
    is arranged by key, and it keeps traces."""

    number: int
    level: int
    ports: tuple[Port, ...]
    nodes: tuple[tuple[NodeId, Node], ...] = ()
    exits: tuple[Exit, ...] = ()
    keyed: bool = True


@dataclass(frozen=True, slots=True)
class Cut:
    """A plan in fragments, by number: the first, those with traces, and the output. ``rows`` and ``errors`` (None: no
    row fails) are the output's ports. ``sources``: the plan's nodes whose rows the first fragment takes."""

    fragments: tuple[Fragment, ...]
    sources: tuple[tuple[NodeId, Source], ...]
    rows: Port
    errors: Port | None

    @property
    def output(self) -> Fragment:
        """Where the plan's rows arrive."""
        return self.fragments[-1]

    @property
    def levels(self) -> int:
        """How many levels there are, the first fragment's and the output's among them."""
        return self.output.level + 1


def cut(plan: Plan, kept: Collection[NodeId] = (), weights: Mapping[NodeId, int] | None = None) -> Cut:
    """The plan in fragments; arrangements that are ``kept`` have a trace though nothing may read them.

    ``weights``: how many diffs updates of a source have, where it is not one.

    0A000: it has a loop, a locked join, or joins of several inputs at once.
    """
    if plan.scopes:
        raise unsupported("keeping a recursion in parts by key", _RECURSION)
    return _Cutting(plan, frozenset(kept), weights or {}).cut()


_RECURSION: Final = (
    "Inside a loop every round would be an exchange of rows; the server maintains recursive views itself."
)


@dataclass(slots=True)
class _Cutting:
    plan: Plan
    kept: frozenset[NodeId]
    weights: Mapping[NodeId, int]
    levels: list[int] = field(default_factory=list)
    diff_widths: list[int] = field(default_factory=list)
    owner: dict[NodeId, NodeId] = field(default_factory=dict)
    """For each keyed node another one of its fragment, itself for one that stands for all."""

    def cut(self) -> Cut:
        for number, node in enumerate(self.plan.nodes):
            self.levels.append(self._level(node))
            self.diff_widths.append(self._diff_width(NodeId(number), node))
            if isinstance(node, Keyed):
                self._unite(NodeId(number))
        groups: dict[NodeId, list[NodeId]] = {}
        for keyed in self.owner:
            groups.setdefault(self._owner(keyed), []).append(keyed)
        read = {i for keyed in self.owner for i in inputs(self.plan.nodes[keyed])}
        members = [*groups.values(), *([i] for i in self.kept - read)]
        members.sort(key=lambda group: (self.levels[group[0]], group[0]))
        found = [self._first(), *(self._keyed(i, group) for i, group in enumerate(members, 1))]
        found.append(self._output(len(found)))
        fragments = tuple(self._with_exits(fragment, found) for fragment in found)
        sources = tuple((NodeId(i), n) for i, n in enumerate(self.plan.nodes) if isinstance(n, Source))
        rows, *errors = fragments[-1].ports
        return Cut(fragments, sources, rows, errors[0] if errors else None)

    def _level(self, node: Node) -> int:
        match node:
            case Table() | TableErrors() | Constants():
                return 0
            case Arrange():
                return self._collected(node.input) + 1
            case Group() | Threshold() | Join() | AsOf():
                return max(self.levels[i] for i in inputs(node))
            case Map() | Project() | Errors() | Concat() | Negate() | Consolidate():
                return max(self._collected(i) for i in inputs(node))
        raise unsupported(f"keeping a {type(node).__name__} in parts by key")

    def _collected(self, number: NodeId) -> int:
        """The level at which a node's rows are there as a collection: an arrangement's before they are arranged."""
        node = self.plan.nodes[number]
        return self.levels[number] - 1 if isinstance(node, Arrange) else self.levels[number]

    def _diff_width(self, number: NodeId, node: Node) -> int:
        match node:
            case Table():
                return self.weights.get(number, 1)
            case Map():
                return node.program.diff_width
            case Arrange() | Project() | Negate() | Consolidate():
                return self.diff_widths[node.input]
            case Concat():
                return self.diff_widths[node.inputs[0]]
        return 1

    # -- which keyed nodes make a fragment -----------------------------------------------------------------------

    def _unite(self, number: NodeId) -> None:
        """Nodes of one level that read the same arrangement are together, or that read one another."""
        self.owner[number] = number
        read = set(inputs(self.plan.nodes[number]))
        for other in list(self.owner):
            if self.levels[other] == self.levels[number] and other != number:
                shared = read & set(inputs(self.plan.nodes[other]))
                if other in read or shared:
                    self.owner[self._owner(other)] = self._owner(number)

    def _owner(self, number: NodeId) -> NodeId:
        while self.owner[number] != number:
            number = self.owner[number]
        return number

    def _first(self) -> Fragment:
        nodes = self.plan.nodes
        sources = [NodeId(i) for i, node in enumerate(nodes) if isinstance(node, Source)]
        ports = tuple(Port(i, self.plan.widths[i], self.plan.widths[i], self.diff_widths[i]) for i in sources)
        return Fragment(FIRST, 0, ports, self._reached(set(sources)), keyed=False)

    def _keyed(self, number: int, group: list[NodeId]) -> Fragment:
        if group[0] in self.kept:
            return Fragment(number, self.levels[group[0]], (self._port(group[0]),))
        read = {i for keyed in group for i in inputs(self.plan.nodes[keyed])} - set(group)
        ports = tuple(self._port(i) for i in sorted(read))
        nodes = {i: self.plan.nodes[i] for i in group} | dict(self._reached(set(group)))
        return Fragment(number, self.levels[group[0]], ports, tuple(sorted(nodes.items(), key=lambda item: item[0])))

    def _port(self, number: NodeId) -> Port:
        node, width = self.plan.nodes[number], self.plan.widths[number]
        if isinstance(node, Arrange):
            return Port(number, width, node.key_width, self.diff_widths[number], node.order)
        assert isinstance(node, Group | Threshold), node
        below = self.plan.nodes[node.input]
        while isinstance(below, Group | Threshold):
            below = self.plan.nodes[below.input]
        assert isinstance(below, Arrange)
        order = (*below.order[: below.key_width], *(Order.WORD for _ in range(width - below.key_width)))
        return Port(number, width, below.key_width, order=order if set(order) != {Order.WORD} else ())

    def _reached(self, found: set[NodeId]) -> tuple[tuple[NodeId, Node], ...]:
        """The linear nodes that these nodes' rows reach; an arrangement that is read as a collection is a projection,
        and what has no rows here is left out."""
        made: dict[NodeId, Node] = {}
        for i, node in enumerate(self.plan.nodes):
            number = NodeId(i)
            if isinstance(node, Arrange) and node.input in found:
                if self._is_collection(number):
                    made[number] = Project(node.input, node.gather)
                    found.add(number)
                continue
            if not isinstance(node, Linear) or not any(i in found for i in inputs(node)):
                continue
            present = tuple(i for i in inputs(node) if i in found)
            made[number] = Concat(present) if isinstance(node, Concat) else node
            found.add(number)
        return tuple(made.items())

    def _is_collection(self, arranged: NodeId) -> bool:
        roots = (self.plan.rows, self.plan.errors)
        return arranged in roots or any(
            arranged in inputs(n) for n in self.plan.nodes if isinstance(n, Linear | Arrange)
        )

    def _output(self, number: int) -> Fragment:
        roots = [self.plan.rows] if self.plan.errors is None else [self.plan.rows, self.plan.errors]
        ports = tuple(Port(i, self.plan.widths[i], self.plan.widths[i]) for i in roots)
        return Fragment(number, max((*self.levels, 0)) + 1, ports, keyed=False)

    # -- where rows go -------------------------------------------------------------------------------------------

    def _with_exits(self, fragment: Fragment, fragments: list[Fragment]) -> Fragment:
        here = {number for number, _ in fragment.nodes}
        if fragment.number == FIRST:
            here |= {port.node for port in fragment.ports}
        exits: list[Exit] = []
        for other in fragments[1:]:
            for port in other.ports if other is not fragment else ():
                found = self._exit(here, other, port)
                if found is not None:
                    exits.append(found)
        return Fragment(fragment.number, fragment.level, fragment.ports, fragment.nodes, tuple(exits), fragment.keyed)

    def _exit(self, here: set[NodeId], to: Fragment, port: Port) -> Exit | None:
        node = self.plan.nodes[port.node]
        if to.keyed and isinstance(node, Arrange):
            if node.input not in here:
                return None
            unmoved = moves.is_identity(node.gather, self.plan.widths[node.input])
            return Exit(node.input, None if unmoved else node.gather, to.number, port)
        return Exit(port.node, None, to.number, port) if port.node in here else None


def renumbered(node: Node, places: dict[NodeId, NodeId]) -> Node:
    """A fragment's node over other numbers."""
    return with_inputs(node, {i: places[i] for i in inputs(node)})
