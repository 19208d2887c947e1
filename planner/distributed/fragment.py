"""Cuts a physical plan into fragments that can run over one part of the data, by key.

Rows of one key must meet in an arrangement, so that is where a plan is cut: rows that go into an arrangement are sent
to the part given by their key's hash. A *fragment* is what can run over such a part alone: operators that read the same
arrangements, and the linear nodes (map, project, concat, negate, …) that turn their rows into the inputs of later
fragments or the plan's roots. Linear nodes work on each row alone, so every fragment runs those that its rows reach,
and the summands of a concat are added up at its reader.

*Levels* order fragments: one takes only what fragments of lower levels send. Level 0 is the first fragment, which keeps
nothing and takes the rows of tables; the last level is the output, which receives the plan's rows and errors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ivm.errors import unsupported
from ivm.graph import (
    Arrange,
    Arranged,
    Concat,
    Errors,
    Gather,
    Keyed,
    Leave,
    Linear,
    NodeId,
    Order,
    Overflow,
    Project,
    Unchanged,
)  # fmt: skip
from ivm.specs import inputs, with_inputs
from planner import gathers
from planner.physical.nodes import (
    Constants,
    LoopVariable,
    Map,
    Node,
    Plan,
    Scope,
    Table,
    TableErrors,
    arranged_by,
    innermost_loops,
)

Source = Table | TableErrors | Constants

FIRST: Final = 0
"""The number of the fragment that takes the sources' rows."""


@dataclass(frozen=True, slots=True)
class Loops:
    """The plan's loops.

    ``connections``: (variable, body) where both are in the fragment; ``overflowing``: the loop of each Overflow of the
    plan.
    """

    scopes: tuple[Scope, ...] = ()
    connections: tuple[tuple[NodeId, NodeId], ...] = ()
    overflowing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Port:
    """Where rows [key | val] of the plan's node ``node`` enter a fragment and are arranged.

    In fragments that are not ``keyed`` rows are not arranged, and ``key_width`` is a row's width.
    """

    node: NodeId
    width: int
    key_width: int
    diff_width: int = 1
    order: tuple[Order, ...] = ()
    scope: int | None = None


@dataclass(frozen=True, slots=True)
class Exit:
    """Sends rows of ``node``, moved by ``gather``, to a port of a fragment; outside of loops, one of a higher level."""

    node: NodeId
    gather: Gather | None
    fragment: int
    port: Port


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment. ``nodes``: those of the whole plan, under its numbers, inputs before readers.

    ``keyed``: it arranges by key what its ports receive, and keeps traces.
    """

    number: int
    level: int
    ports: tuple[Port, ...]
    nodes: tuple[tuple[NodeId, Node], ...] = ()
    exits: tuple[Exit, ...] = ()
    keyed: bool = True
    loops: Loops = Loops()


@dataclass(frozen=True, slots=True)
class Cut:
    """A plan in fragments, by number: the first, those in between, and the output.

    ``rows`` and ``errors`` (None: no row can fail) are the output's ports. ``sources``: the plan's nodes whose rows the
    first fragment takes.
    """

    fragments: tuple[Fragment, ...]
    sources: tuple[tuple[NodeId, Source], ...]
    rows: Port
    errors: Port | None

    @property
    def output(self) -> Fragment:
        """The fragment that receives the plan's rows."""
        return self.fragments[-1]

    @property
    def levels(self) -> int:
        """The number of levels, including those of the first fragment and the output."""
        return self.output.level + 1


def cut(plan: Plan, kept: Collection[NodeId] = (), weights: Mapping[NodeId, int] | None = None) -> Cut:
    """Cuts a plan into fragments. Arrangements in ``kept`` get a trace even if nothing reads them.

    ``weights``: the number of diffs of a source's updates, if not one. A fragment in a loop may send to itself and to
    lower levels, for later rounds.

    0A000: the plan has a locked join, or a delta or worst-case optimal join.
    """
    return _Cutting(plan, frozenset(kept), weights or {}).cut()


@dataclass(slots=True)
class _Cutting:
    plan: Plan
    kept: frozenset[NodeId]
    weights: Mapping[NodeId, int]
    scopes: list[int | None] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)
    diff_widths: list[int] = field(default_factory=list)
    turning: dict[NodeId, LoopVariable] = field(default_factory=dict)
    owner: dict[NodeId, NodeId] = field(default_factory=dict)
    """Union-find: maps each keyed node to another of its fragment, the representative to itself."""

    def cut(self) -> Cut:
        self.scopes = innermost_loops(self.plan)
        self._find_levels()
        for number, node in enumerate(self.plan.nodes):
            self.diff_widths.append(self._diff_width(NodeId(number), node))
            if isinstance(node, Keyed):
                self._unite(NodeId(number))
        groups: dict[NodeId, list[NodeId]] = {}
        for keyed in self.owner:
            groups.setdefault(self._owner(keyed), []).append(keyed)
        read = {i for keyed in self.owner for i in inputs(self.plan.nodes[keyed])}
        members = [*groups.values(), *([i] for i in self.kept - read)]
        members.sort(key=lambda group: (self.levels[group[0]], group[0]))
        self.turning = self._turning()
        found = [self._first(), *(self._keyed(i, group) for i, group in enumerate(members, 1))]
        for loop in sorted({variable.scope for variable in self.turning.values()}):
            found.append(self._turns(len(found), loop))
        found.append(self._output(len(found)))
        fragments = tuple(self._with_exits(fragment, found) for fragment in found)
        sources = tuple((NodeId(i), n) for i, n in enumerate(self.plan.nodes) if isinstance(n, Source))
        rows, *errors = fragments[-1].ports
        return Cut(fragments, sources, rows, errors[0] if errors else None)

    def _find_levels(self) -> None:
        """Repeats until nothing changes: what leaves a loop has the highest level in the loop."""
        nodes, before = self.plan.nodes, None
        self.levels = [0] * len(nodes)
        while self.levels != before:
            before = self.levels.copy()
            for number, node in enumerate(nodes):
                self.levels[number] = self._level(node)

    def _level(self, node: Node) -> int:
        match node:
            case Leave() | Overflow():
                return max(self.levels[i] for i in self._inside(self.scopes[node.input]))
            case Table() | TableErrors() | Constants() | LoopVariable():
                return 0
            case Arrange():
                return self._collected(node.input) + 1
            case Keyed():
                return max(self.levels[i] for i in inputs(node))
            case Linear():
                return max(self._collected(i) for i in inputs(node))
        raise unsupported(f"keeping a {type(node).__name__} in parts by key")

    def _inside(self, loop: int | None) -> Iterator[NodeId]:
        """The nodes of a loop, including nested ones."""
        for number, innermost in enumerate(self.scopes):
            around = innermost
            while around is not None and around != loop:
                around = self.plan.scopes[around].parent
            if around is not None:
                yield NodeId(number)

    def _collected(self, number: NodeId) -> int:
        """The level at which a node's rows exist as a collection; for an arrangement, before they are arranged."""
        node = self.plan.nodes[number]
        return self.levels[number] - 1 if isinstance(node, Arrange) else self.levels[number]

    def _diff_width(self, number: NodeId, node: Node) -> int:
        match node:
            case Table():
                return self.weights.get(number, 1)
            case Map():
                return node.program.diff_width
            case Arrange() | Project() | Unchanged():
                return self.diff_widths[inputs(node)[0]]
        return 1

    # -- grouping keyed nodes into fragments ---------------------------------------------------------------------

    def _unite(self, number: NodeId) -> None:
        """Unites nodes of one level that read the same arrangement or one another."""
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
            return Port(number, width, node.key_width, self.diff_widths[number], node.order, self.scopes[number])
        assert isinstance(node, Arranged), node
        below = arranged_by(self.plan, number)
        order = (*below.order[: below.key_width], *(Order.WORD for _ in range(width - below.key_width)))
        order = order if set(order) != {Order.WORD} else ()
        return Port(number, width, below.key_width, 1, order, self.scopes[number])

    def _reached(self, found: set[NodeId]) -> tuple[tuple[NodeId, Node], ...]:
        """The linear nodes that these nodes' rows reach. Inputs without rows here are left out.

        An arrangement that is read as a collection becomes a projection.
        """
        bodies, count = dict(self.plan.connections), 0
        made: dict[NodeId, Node] = {}
        while count < len(found):  # repeats when a body is reached, for its variable
            count = len(found)
            for i, node in enumerate(self.plan.nodes):
                read = (bodies[NodeId(i)],) if isinstance(node, LoopVariable) else inputs(node)
                if isinstance(node, Overflow) and node.input in self.turning:
                    read = (turned(node.input),)
                if any(i in found for i in read):
                    self._reach(NodeId(i), node, found, made)
        return tuple(sorted(made.items(), key=lambda item: item[0]))

    def _reach(self, number: NodeId, node: Node, found: set[NodeId], made: dict[NodeId, Node]) -> None:
        if isinstance(node, Arrange) and self._is_collection(number):
            made[number] = Project(node.input, node.gather)
            found.add(number)
        elif number in self.turning:
            made[turned(number)] = node
            found.add(turned(number))
        elif isinstance(node, Overflow) and node.input in self.turning:
            made[number] = Overflow(turned(node.input))
            found.add(number)
        elif isinstance(node, Linear) and not self._is_constants(node):
            made[number] = self._present(number, node, found, made) if isinstance(node, Concat) else node
            found.add(number)

    def _present(self, number: NodeId, node: Concat, found: set[NodeId], made: dict[NodeId, Node]) -> Concat:
        """The summands of a concat that are present, in the concat's own loop even if all of them are from outside."""
        present = tuple(i for i in node.inputs if i in found)
        loop = self.scopes[number]
        if loop is None or any(self.scopes[i] == loop for i in present):
            return Concat(present)
        nothing = NodeId(-1 - len(self.plan.nodes) - number)
        made[nothing] = LoopVariable(loop, nothing, self.plan.widths[number])
        return Concat((*present, nothing))

    def _turning(self) -> dict[NodeId, LoopVariable]:
        """The variables that return to themselves through linear nodes alone.

        Updates must cancel within their round, so all that a round makes of such a variable is brought together before
        the next one.
        """
        variables = {NodeId(i): n for i, n in enumerate(self.plan.nodes) if isinstance(n, LoopVariable)}
        bodies = dict(self.plan.connections)
        return {i: n for i, n in variables.items() if bodies[i] in self._from(i)}

    def _from(self, variable: NodeId) -> set[NodeId]:
        """What linear nodes make of a variable's rows, in this and later rounds."""
        found = {variable}
        self._reached(found)
        return found

    def _turns(self, number: int, loop: int) -> Fragment:
        """The fragment that receives a loop's variables of ``_turning``, distributed by whole row."""
        mine = [i for i, variable in self.turning.items() if variable.scope == loop]
        widths = self.plan.widths
        ports = tuple(Port(i, widths[i], widths[i], scope=loop) for i in mine)
        return Fragment(number, 0, ports, self._reached(set(mine)), keyed=False)

    def _is_constants(self, node: Node) -> bool:
        """Whether the node is the errors of constants, which the supplier of their rows has checked."""
        return isinstance(node, Errors) and isinstance(self.plan.nodes[node.input], Constants)

    def _is_collection(self, arranged: NodeId) -> bool:
        roots = (self.plan.rows, self.plan.errors)
        return arranged in roots or any(
            arranged in inputs(n) for n in self.plan.nodes if isinstance(n, Linear | Arrange)
        )

    def _output(self, number: int) -> Fragment:
        roots = [self.plan.rows] if self.plan.errors is None else [self.plan.rows, self.plan.errors]
        ports = tuple(Port(i, self.plan.widths[i], self.plan.widths[i]) for i in roots)
        return Fragment(number, max((*self.levels, 0)) + 1, ports, keyed=False)

    # -- where rows are sent -------------------------------------------------------------------------------------

    def _with_exits(self, fragment: Fragment, fragments: list[Fragment]) -> Fragment:
        here = {number for number, _ in fragment.nodes}
        if not fragment.keyed:
            here |= {port.node for port in fragment.ports}
        exits: list[Exit] = []
        for other in fragments[1:]:
            for port in other.ports if other is not fragment or self.plan.scopes else ():
                found = self._exit(here, other, port)
                if found is not None:
                    exits.append(found)
        ends = {v: turned(v) if v in self.turning else v for v, _ in self.plan.connections}
        connections = tuple((ends[v], b) for v, b in self.plan.connections if ends[v] in here and b in here)
        return replace(fragment, exits=tuple(exits), loops=Loops(self.plan.scopes, connections, self._overflowing()))

    def _overflowing(self) -> tuple[int, ...]:
        nodes = self.plan.nodes
        variables = (nodes[node.input] for node in nodes if isinstance(node, Overflow))
        return tuple(variable.scope for variable in variables if isinstance(variable, LoopVariable))

    def _exit(self, here: set[NodeId], to: Fragment, port: Port) -> Exit | None:
        node = self.plan.nodes[port.node]
        if to.keyed and isinstance(node, Arrange):
            if node.input not in here:
                return None
            unmoved = gathers.is_identity(node.gather, self.plan.widths[node.input])
            return Exit(node.input, None if unmoved else node.gather, to.number, port)
        end = turned(port.node) if port.node in self.turning else port.node
        return Exit(end, None, to.number, port) if end in here else None


def turned(variable: NodeId) -> NodeId:
    """The number under which a fragment sets a variable's body, distinct from where it reads the variable's rows."""
    return NodeId(-1 - variable)


def renumbered(node: Node, places: dict[NodeId, NodeId]) -> Node:
    """A fragment's node with its inputs renumbered."""
    return with_inputs(node, {i: places[i] for i in inputs(node)})
