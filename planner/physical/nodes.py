"""The physical plan: all decisions made, as a list of nodes in the engine's terms.

A plan is in static single assignment form: ``nodes[i]`` names its inputs by positions less than i (a loop variable gets
its body through ``connections``). Most nodes are the engine's own specs over such positions. The nodes below need a
catalog, a dictionary or parameters, and are bound when rendered. Equal nodes are one node (common subexpressions):
plans are built through ``Builder``, which looks up each node first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ivm.graph import (
    Arrange,
    Arranged,
    Concat,
    DeltaJoin,
    Errors,
    Gather,
    Join,
    Leave,
    Linear,
    Mapped,
    NodeId,
    Order,
    Overflow,
    Path,
    PlainSpec,
    Project,
    Reducer,
    Spec,
    Threshold,
)
from ivm.rows import Words
from ivm.specs import inputs, with_inputs
from ivm.time import deeper, last_width, max_round
from ivm.words import INT8, ColumnType, Schema
from planner import gathers
from planner.expr.context import Context
from planner.expr.literal_rows import LiteralRows
from planner.expr.scalar import Scalar
from planner.logical.drivers import Driver
from planner.physical.layouts import Arranging, StoredKey, table_layout
from planner.physical.row_programs import MapFilter


class RowProgram(Hashable, Protocol):
    """A pure function of rows, bound to a context when it runs. Equal programs compute the same."""

    @property
    def out_width(self) -> int: ...
    @property
    def diff_width(self) -> int: ...
    @property
    def can_fail(self) -> bool: ...
    def run(self, rows: Words, context: Context) -> Mapped: ...


class Fold(Hashable, Protocol):
    """A pure function of groups, bound to a context when rendered."""

    @property
    def out_width(self) -> int: ...
    @property
    def can_fail(self) -> bool: ...
    def bind(self, context: Context) -> Reducer: ...


@dataclass(frozen=True, slots=True)
class Table(Spec):
    """A stored relation's rows."""

    relation: int
    schema: Schema

    def __hash__(self) -> int:
        """Without the columns, which may be many."""
        return self.relation


@dataclass(frozen=True, slots=True)
class TableErrors(Spec):
    """The error rows of a stored relation (a materialized view); none for a table."""

    relation: int


@dataclass(frozen=True, slots=True)
class Constants(Spec):
    """Rows of expressions without columns."""

    rows: tuple[tuple[Scalar, ...], ...] | LiteralRows
    schema: Schema


@dataclass(frozen=True, slots=True)
class Map(Linear):
    """Applies a program to each row."""

    input: NodeId
    program: RowProgram


@dataclass(frozen=True, slots=True)
class Group(Arranged):
    """Applies a fold to each key's group of an arrangement; the result is arranged as [key | out vals]."""

    input: NodeId
    fold: Fold


@dataclass(frozen=True, slots=True)
class Lock(Spec):
    """A locked join of two arrangements.

    Its matches are stored as rows of ``schema``: ``gather`` makes such rows, ``back`` turns them back.
    """

    left: NodeId
    right: NodeId
    name: int
    none: tuple[int, ...]
    schema: Schema
    gather: Gather
    back: Gather


@dataclass(frozen=True, slots=True)
class LoopVariable(Linear):
    """A variable of the plan's loop ``scope``; ``number`` distinguishes a scope's variables."""

    scope: int
    number: int
    width: int


Node = Table | TableErrors | Constants | Map | Group | Lock | LoopVariable | PlainSpec


@dataclass(frozen=True, slots=True)
class Scope:
    """A loop: its enclosing scope (None: outermost) and how many rounds it may run.

    ``limit`` None: as many as times can distinguish; readers of the loop fail after that. With a limit, and without
    ``return_at_limit``, the variables' overflows report that the loop did not end. ``stride``: the rounds of each
    priority, 0 if there are none; with priorities the limit applies to each. ``shape``: that of the times inside.
    ``stoppable``: it may stop after any round if the plan ``grows``.
    """

    parent: int | None
    limit: int | None = None
    return_at_limit: bool = False
    stride: int = 0
    shape: int = 0
    stoppable: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A physical plan. Node ``rows`` gives rows in ``schema``'s layout, node ``errors`` error rows (one word each).

    ``stored``: for each node, the relation and key of a stored relation's arrangement with the same rows, if there is
    one. ``grows``: its rows are some of the result if stoppable loops stop early and series are cut short, and each of
    the ``limits`` is reached (``planner.logical.growth``); with ``limits`` alone they are then the result. ``drivers``:
    relations of which the plan of a query that runs once is linear.
    """

    nodes: tuple[Node, ...]
    widths: tuple[int, ...]
    scopes: tuple[Scope, ...]
    connections: tuple[tuple[NodeId, NodeId], ...]
    rows: NodeId
    errors: NodeId | None
    schema: Schema
    stored: tuple[tuple[int, StoredKey] | None, ...] = ()
    grows: bool = False
    limits: tuple[Limited, ...] = ()
    drivers: tuple[Driver, ...] = ()


@dataclass(frozen=True, slots=True)
class Limited:
    """A LIMIT that may end loops and series: the node of its rows, and how many there are if it is reached."""

    node: NodeId
    limit: Scalar | None


def arranged_by(plan: Plan, arranged: NodeId) -> Arrange:
    """The arrangement that determines the key of a node's rows: the node itself, or a reduce's or threshold's input."""
    node = plan.nodes[arranged]
    while isinstance(node, Arranged):
        node = plan.nodes[node.input]
    assert isinstance(node, Arrange), node
    return node


def innermost_loops(plan: Plan) -> list[int | None]:
    """For each node, the innermost loop that contains it; None outside of loops."""
    if not plan.scopes:
        return [None] * len(plan.nodes)
    loops: list[int | None] = []
    for node in plan.nodes:
        loops.append(_loop_of(node, loops, plan.scopes))
    return loops


def _loop_of(node: Node, loops: Sequence[int | None], scopes: Sequence[Scope]) -> int | None:
    """The innermost loop that contains a node, given those of the nodes before it."""
    if isinstance(node, LoopVariable):
        return node.scope
    around = innermost((loops[i] for i in inputs(node)), scopes)
    return scopes[around].parent if isinstance(node, Leave | Overflow) and around is not None else around


def innermost(loops: Iterable[int | None], scopes: Sequence[Scope]) -> int | None:
    """The innermost of nested loops; None: there are none."""
    return max(loops, default=None, key=lambda loop: _depth(loop, scopes))


def _depth(loop: int | None, scopes: Sequence[Scope]) -> int:
    """How many loops contain what is in a loop."""
    depth = 0
    while loop is not None:
        depth, loop = depth + 1, scopes[loop].parent
    return depth


@dataclass(frozen=True, slots=True)
class Pair:
    """A join that is not built yet, so that what reads it can still change its gather."""

    left: NodeId
    right: NodeId
    width: int


@dataclass(frozen=True, slots=True)
class Many:
    """A delta join that is not built yet. Its paths gather rows of ``width`` words."""

    paths: tuple[Path, ...]
    width: int


Open = Pair | Many


@dataclass(frozen=True, slots=True)
class Flow:
    """A collection during lowering: its source's rows, moved by ``gather``, are rows of ``schema``.

    The gather is kept apart so that the next arrangement or join can absorb it.
    """

    source: NodeId | Pair | Many
    gather: Gather
    schema: Schema

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """The nodes that the collection is computed from."""
        if isinstance(self.source, Pair):
            return self.source.left, self.source.right
        return inputs(DeltaJoin(self.source.paths)) if isinstance(self.source, Many) else (self.source,)


@dataclass(slots=True)
class Builder:
    """Builds a plan."""

    nodes: list[Node] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    connections: list[tuple[NodeId, NodeId]] = field(default_factory=list)
    errors: list[NodeId] = field(default_factory=list)
    """The error collections of the loop (or plan) that is being lowered."""
    known: dict[Node, NodeId] = field(default_factory=dict)
    scope_of: list[int | None] = field(default_factory=list)

    def add(self, node: Node, width: int) -> NodeId:
        """The position of a node: an existing equal one, or a new one."""
        found = self.known.get(node)
        if found is not None:
            return found
        number = NodeId(len(self.nodes))
        self.nodes.append(node)
        self.widths.append(width)
        self.scope_of.append(_loop_of(node, self.scope_of, self.scopes) if self.scopes else None)
        self.known[node] = number
        return number

    def flow(self, node: NodeId, schema: Schema) -> Flow:
        """A flow of a node whose rows are already in the schema's layout."""
        assert self.widths[node] == gathers.width(schema), (self.nodes[node], self.widths[node], schema)
        return Flow(node, gathers.identity(self.widths[node]), schema)

    def raw(self, node: NodeId) -> Flow:
        """A node's words as they are: bigint columns that are never NULL."""
        width = self.widths[node]
        return Flow(node, gathers.identity(width), (ColumnType(INT8, False),) * width)

    def force(self, flow: Flow) -> NodeId:
        """A node whose rows are in the layout of the flow's schema."""
        return self.gathered(flow, flow.gather)

    def gathered(self, flow: Flow, gather: Gather) -> NodeId:
        """A node with the flow's source moved by ``gather``, which is relative to the source."""
        if isinstance(flow.source, Pair):
            return self.add(Join(flow.source.left, flow.source.right, gather), len(gather.words))
        if isinstance(flow.source, Many):
            paths = (replace(path, gather=gathers.compose(path.gather, gather)) for path in flow.source.paths)
            return self.add(DeltaJoin(tuple(paths)), len(gather.words))
        if gathers.is_identity(gather, self.widths[flow.source]):
            return flow.source
        return self.add(Project(flow.source, gather), len(gather.words))

    def move(self, flow: Flow, indexes: tuple[int, ...], target: Schema | None = None) -> Flow:
        """Some of the flow's columns, as ``target``."""
        target = target or tuple([flow.schema[i] for i in indexes])
        return Flow(flow.source, gathers.compose(flow.gather, gathers.columns(flow.schema, indexes, target)), target)

    def map(self, flow: Flow, program: RowProgram) -> NodeId:
        """The flow through a program. Notes its errors."""
        node = self.add(Map(self.force(flow), program), program.out_width)
        if program.can_fail:
            self.fails(node)
        return node

    def arrange(self, flow: Flow, gather: Gather, key_width: int, order: tuple[Order, ...] = ()) -> NodeId:
        """An arrangement of the flow. ``gather`` makes [key | val], relative to the layout of the flow's schema."""
        whole = gathers.compose(flow.gather, gather)
        if isinstance(flow.source, Open):
            node = self.force(flow)
            return self.add(Arrange(node, gather, key_width, order), len(gather.words))
        source = self.nodes[flow.source]
        is_set = isinstance(source, Threshold) and key_width == self.widths[flow.source]
        if is_set and not order and gathers.is_identity(whole, key_width):
            return flow.source
        unmoved = not order and gathers.is_identity(whole, self.widths[flow.source])
        if unmoved and self._is_reduced(flow.source, key_width):
            return flow.source
        return self.add(Arrange(flow.source, whole, key_width, order), len(whole.words))

    def arrange_raw(self, node: NodeId, key_width: int, order: tuple[Order, ...] = ()) -> NodeId:
        """An arrangement of a node whose rows are [key | val] already."""
        return self.arrange(self.raw(node), gathers.identity(self.widths[node]), key_width, order)

    def _is_reduced(self, node: NodeId, key_width: int) -> bool:
        """Whether a node is a reduce by a key of this width in a loop, where it keeps its output arranged anyway."""
        group = self.nodes[node]
        if not isinstance(group, Group) or self.scope_of[node] is None:
            return False
        below = self.nodes[group.input]
        return isinstance(below, Arrange) and not below.order and below.key_width == key_width

    def group(self, arrangement: NodeId, key_width: int, fold: Fold) -> NodeId:
        """A reduce over an arrangement. Notes its errors."""
        node = self.add(Group(arrangement, fold), key_width + fold.out_width)
        if fold.can_fail:
            self.fails(node)
        return node

    def fails(self, node: NodeId) -> None:
        """Notes that a node has an error collection."""
        self.add_errors(self.add(Errors(node), 1))

    def add_errors(self, errors: NodeId) -> None:
        """Adds an error collection to the current loop's."""
        if errors not in self.errors:
            self.errors.append(errors)

    def shape(self, scope: int | None) -> int:
        """The shape of the times in a scope (``ivm.kernels.times``)."""
        return 0 if scope is None else self.scopes[scope].shape

    def open_scope(self, parent: int | None, width: int) -> int:
        """Opens a loop inside ``parent`` (None: outermost), with a round of ``width`` bits.

        0A000: nested too deeply.
        """
        self.scopes.append(Scope(parent, shape=deeper(self.shape(parent), width)))
        return len(self.scopes) - 1

    def max_rounds(self, scope: int) -> int:
        """The number of rounds that a loop without priorities can distinguish."""
        return max_round(last_width(self.scopes[scope].shape)) + 1

    def concat(self, nodes: tuple[NodeId, ...]) -> NodeId:
        """The sum of collections of one width."""
        if len(nodes) == 1:
            return nodes[0]
        return self.add(Concat(nodes), self.widths[nodes[0]])

    def finish(self, flow: Flow, limits: tuple[Limited, ...] = ()) -> Plan:
        """The plan, with only the nodes that its roots reach."""
        rows = self.force(flow)
        errors = self.concat(tuple(self.errors)) if self.errors else None
        scopes, connections = tuple(self.scopes), tuple(self.connections)
        plan = Plan(tuple(self.nodes), tuple(self.widths), scopes, connections, rows, errors, flow.schema)
        return prune(replace(plan, limits=limits))


def reached(
    plan: Plan, ends: Callable[[NodeId], bool], read: Callable[[Node], Iterable[NodeId]] = inputs
) -> set[NodeId]:
    """The nodes that the plan's roots reach, through variables' bodies too.

    ``ends`` is asked once for each node; where it is true, nothing is followed. ``read``: the inputs that are followed.
    """
    bodies = dict(plan.connections)
    found: set[NodeId] = set()
    todo = [plan.rows, *(limited.node for limited in plan.limits)]
    if plan.errors is not None:
        todo.append(plan.errors)
    while todo:
        number = todo.pop()
        if number in found:
            continue
        found.add(number)
        if not ends(number):
            todo += read(plan.nodes[number])
            if number in bodies:
                todo.append(bodies[number])
    return found


def prune(plan: Plan) -> Plan:
    """The plan without unreachable nodes, renumbered."""
    used = reached(plan, lambda _: False)
    place = {old: NodeId(new) for new, old in enumerate(sorted(used))}
    nodes = tuple(with_inputs(plan.nodes[i], place) for i in place)
    return Plan(
        nodes,
        tuple(plan.widths[i] for i in place),
        plan.scopes,
        tuple((place[v], place[b]) for v, b in plan.connections if v in place),
        place[plan.rows],
        None if plan.errors is None else place[plan.errors],
        plan.schema,
        tuple(_stored(nodes, n) for n in nodes),
        plan.grows,
        tuple(Limited(place[limited.node], limited.limit) for limited in plan.limits),
    )


def _stored(nodes: tuple[Node, ...], node: Node) -> tuple[int, StoredKey] | None:
    if not isinstance(node, Arrange) or node.order:
        return None
    table: Node = nodes[node.input]
    program = None
    if isinstance(table, Map) and isinstance(table.program, MapFilter):
        program, table = table.program, nodes[table.input]
    if not isinstance(table, Table):
        return None
    columns = node.gather.words[: node.key_width]
    plain = program is None and all(0 <= c < len(table.schema) for c in columns)
    if plain and table_layout(table.schema, columns).gather == node.gather:
        return table.relation, columns
    return table.relation, Arranging(program, node.gather, node.key_width)
