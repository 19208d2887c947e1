"""Renders a physical plan as nodes of a Dataflow: one match, no decisions.

Sharing: a node is looked up by its spec over the dataflow's own node ids, so that equal subplans of all views are one
node. A loop is looked up as a whole: by all of its nodes over its inputs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ivm import graph
from ivm.dataflow import Dataflow
from ivm.errors import SqlError
from ivm.graph import Arrange, Concat, Errors, Gather, NodeId, NodeSpec, PlainSpec, Project, ScopeId
from ivm.rows import Mask, Vector, Words, pack
from ivm.specs import inputs, with_inputs
from ivm.time import last_width
from ivm.words import Schema, SqlType
from planner import gathers
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate
from planner.expr.literal_rows import LiteralRows
from planner.expr.row_errors import error_words
from planner.expr.scalar import Literal, Scalar
from planner.physical.key_checks import KeyCheck, KeyName
from planner.physical.layouts import Arranging, StoredKey, table_layout
from planner.physical.nodes import (
    Constants,
    Group,
    Lock,
    LoopVariable,
    Map,
    Node,
    Plan,
    Scope,
    Table,
    TableErrors,
    innermost_loops,
)  # fmt: skip
from planner.render.programs import Bound
from storage.types import codec


@dataclass(frozen=True, slots=True)
class Installed:
    """A view in the dataflow: its Output, the Output of its error rows (None: it cannot fail) and all its nodes.

    ``places``: the dataflow's node for each node of the plan; None for an error collection that does not exist.
    ``reads``: the relations whose rows it reads.
    """

    relation: int
    schema: Schema
    output: NodeId
    errors: NodeId | None
    nodes: tuple[NodeId, ...]
    places: tuple[NodeId | None, ...]
    reads: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Kept:
    """A locked join in the dataflow: its node, and the Output of its matches as rows of ``schema``.

    ``back`` turns such a row into one as the engine keeps it.
    """

    node: NodeId
    output: NodeId
    schema: Schema
    back: Gather


@dataclass(slots=True)
class Stored:
    """A relation in the dataflow. ``rows``: its whole rows; ``arrangements``: by key columns, () for the whole row."""

    schema: Schema
    rows: NodeId
    primary_key: tuple[int, ...] = ()
    arrangements: dict[tuple[int, ...], NodeId] = field(default_factory=dict)
    installed: Installed | None = None
    nodes: tuple[NodeId, ...] = ()
    key_checks: dict[KeyName, NodeId] = field(default_factory=dict)
    """The other arrangements: by equality class, by expressions, of a predicate's rows, or with NULLs in keys."""
    made: dict[Arranging, NodeId] = field(default_factory=dict)
    """The same, by what plans call them."""
    locks: dict[int, Kept] = field(default_factory=dict)
    """What a view's locked joins keep, by name."""

    def check_node(self, check: KeyCheck) -> NodeId | None:
        """A key check's arrangement, if there is one."""
        return self.arrangements.get(check.columns) if check.plain else self.key_checks.get(check.key)

    def node(self, key: StoredKey) -> NodeId | None:
        """The arrangement by this key, if there is one. (): the relation's own."""
        if isinstance(key, Arranging):
            return self.made.get(key) if self.made else None  # hashing a program takes microseconds
        return self.arrangements.get(key or self.primary_key)


@dataclass(slots=True)
class Renderer:
    """The relations and views of one Dataflow.

    New nodes are dormant until ``dataflow.hydrate``. A view's Outputs keep alive what they read; arrangements are
    retained until their relation is dropped.
    """

    dataflow: Dataflow
    context: Context
    stored: dict[int, Stored] = field(default_factory=dict)
    known: dict[NodeSpec, NodeId] = field(default_factory=dict)
    loops: dict[Hashable, tuple[NodeId | None, ...]] = field(default_factory=dict)

    def add_table(self, relation: int, schema: Schema, primary_key: tuple[int, ...]) -> NodeId:
        """Adds a table: its Input (returned) and its arrangement by primary key, or by whole row without one."""
        rows = self.dataflow.add(graph.Input(gathers.width(schema)))
        self.stored[relation] = Stored(schema, rows, primary_key)
        self.add_arrangement(relation, primary_key)
        return rows

    def add_arrangement(self, relation: int, columns: tuple[int, ...]) -> NodeId:
        """Adds an arrangement of a relation, kept until the relation is dropped, or returns the existing one."""
        stored = self.stored[relation]
        found = stored.arrangements.get(columns)
        if found is not None:
            return found
        layout = table_layout(stored.schema, columns)
        node = self.add(Arrange(stored.rows, layout.gather, layout.key_width))
        self.dataflow.retain(node)
        stored.arrangements = {**stored.arrangements, columns: node}  # readers may hold the old dict
        stored.nodes = (*stored.nodes, node)
        return node

    def add_key_check(self, relation: int, key_check: KeyCheck) -> NodeId:
        """Adds the arrangement in which a key check looks up equal keys; kept like the others."""
        if key_check.plain:
            return self.add_arrangement(relation, key_check.columns)
        stored = self.stored[relation]
        found = stored.key_checks.get(key_check.key)
        if found is not None:
            return found
        rows = stored.rows
        if key_check.program is not None:
            rows = self.add(graph.FlatMap(rows, Bound(key_check.program, self.context)))
            stored.nodes = (*stored.nodes, rows)
        node = self.add(Arrange(rows, key_check.layout.gather, key_check.layout.key_width))
        self.dataflow.retain(node)
        stored.key_checks = {**stored.key_checks, key_check.key: node}
        stored.made = {**stored.made, key_check.arranging: node}
        stored.nodes = (*stored.nodes, node)
        return node

    def add_key_check_beside(self, relation: int, key_check: KeyCheck) -> tuple[NodeId, ...]:
        """As ``add_key_check``, in a renderer made by ``beside``; the new nodes, the arrangement last."""
        before = self.stored[relation]
        self.stored[relation] = replace(before)
        self.add_key_check(relation, key_check)
        return self.stored[relation].nodes[len(before.nodes) :]

    def adopt_key_check(self, other: Renderer, relation: int, key_check: KeyCheck, nodes: tuple[NodeId, ...]) -> None:
        """Takes over an arrangement that ``other``, made by ``beside``, has added with these nodes, which must be in
        this dataflow already."""
        stored = self.stored[relation]
        if key_check.plain:
            stored.arrangements = {**stored.arrangements, key_check.columns: nodes[-1]}
        else:
            stored.key_checks = {**stored.key_checks, key_check.key: nodes[-1]}
            stored.made = {**stored.made, key_check.arranging: nodes[-1]}
        stored.nodes = (*stored.nodes, *nodes)
        self.take(other, nodes)

    def has_key_check(self, relation: int, key_check: KeyCheck) -> bool:
        return self.stored[relation].check_node(key_check) is not None

    def drop_key_check(self, relation: int, key_check: KeyCheck) -> None:
        """Releases a key check's arrangement.

        A table's arrangement by primary key stays, and so do nodes that views share.
        """
        stored = self.stored[relation]
        if key_check.plain and key_check.columns == stored.primary_key:
            return
        if key_check.plain:
            # one by all columns is the same node as that of whole rows, which has a use of its own
            node = stored.arrangements[key_check.columns]
            stored.arrangements = {k: n for k, n in stored.arrangements.items() if k != key_check.columns}
        else:
            node = stored.key_checks[key_check.key]
            stored.key_checks = {k: n for k, n in stored.key_checks.items() if n != node}
            stored.made = {k: n for k, n in stored.made.items() if n != node}
        self.dataflow.release(node)
        # the map below the arrangement has gone with it
        alive = self.dataflow.nodes()
        place = stored.nodes.index(node)
        stored.nodes = tuple(n for i, n in enumerate(stored.nodes) if i != place and n in alive)
        self.forget_freed()

    def key_check_node(self, relation: int, key_check: KeyCheck) -> NodeId:
        """The key check's arrangement, which must exist."""
        node = self.stored[relation].check_node(key_check)
        assert node is not None, key_check.columns
        return node

    def install(self, plan: Plan, relation: int, waiting: bool = False) -> Installed:
        """Adds a view's nodes and Outputs, not yet hydrated.

        ``waiting``: its locked joins will be given what they kept.
        """
        render = Rendering(self, plan, waiting)
        places = render.all()
        rows = places[plan.rows]
        assert rows is not None
        output = self.dataflow.add(graph.Output(rows))
        failing = None if plan.errors is None else places[plan.errors]
        errors = None if failing is None else self.dataflow.add(graph.Output(failing))
        locks = {node.name: self._kept(node, place) for node, place in zip(plan.nodes, places, strict=True)
                 if isinstance(node, Lock) and place is not None}  # fmt: skip
        roots = tuple(n for n in (output, errors, *(k.output for k in locks.values())) if n is not None)
        nodes = tuple(dict.fromkeys(n for n in (*places, *roots) if n is not None))
        installed = Installed(relation, plan.schema, output, errors, nodes, tuple(places), tables_of(plan))
        self.stored[relation] = Stored(plan.schema, rows, (), {(): output}, installed, nodes, locks=locks)
        return installed

    def _kept(self, lock: Lock, place: NodeId) -> Kept:
        rows = self.add(Project(place, lock.gather))
        return Kept(place, self.dataflow.add(graph.Output(rows)), lock.schema, lock.back)

    def beside(self, dataflow: Dataflow) -> Renderer:
        """A renderer of the same relations into a second dataflow, under the same node ids."""
        return Renderer(dataflow, self.context, dict(self.stored), dict(self.known), dict(self.loops))

    def adopt(self, other: Renderer, relation: int) -> None:
        """Takes over a view that ``other``, made by ``beside``, installed.

        Its nodes must be in this dataflow already.
        """
        self.stored[relation] = other.stored[relation]
        self.take(other, self.stored[relation].nodes)

    def take(self, other: Renderer, taken: Iterable[NodeId | None]) -> None:
        """Takes over how nodes that ``other`` has added are looked up."""
        nodes = set(taken)
        for spec, node in other.known.items():
            if node in nodes:
                self.known.setdefault(spec, node)
        for key, places in other.loops.items():
            if any(place in nodes for place in places):
                self.loops.setdefault(key, places)

    def drop_relation(self, *relations: int) -> None:
        """Drops relations and releases their nodes. Nodes shared with other views stay. Cost: the dataflow's nodes, for
        any number of relations."""
        roots: list[NodeId] = []
        for stored in map(self.stored.pop, relations):
            roots += stored.key_checks.values()
            if stored.installed is None:
                roots += (*stored.arrangements.values(), stored.rows)
            else:
                roots += (n for n in (stored.installed.output, stored.installed.errors) if n is not None)
                roots += (kept.output for kept in stored.locks.values())
                roots += (node for key, node in stored.arrangements.items() if key)
        self.dataflow.release(*roots)
        self.forget_freed()

    def input(self, relation: int) -> NodeId:
        """A table's Input, for ``feed``."""
        return self.stored[relation].rows

    def output(self, relation: int) -> NodeId:
        """A view's Output, for ``changes`` and reads."""
        installed = self.stored[relation].installed
        assert installed is not None, relation
        return installed.output

    def errors(self, relation: int) -> NodeId | None:
        """The Output of a view's error rows; None for a table or a view that cannot fail."""
        installed = self.stored[relation].installed
        return None if installed is None else installed.errors

    def arrangement(self, relation: int, key: StoredKey) -> NodeId | None:
        """The arrangement by this key. (): a table's by primary key or whole row, or a view's Output."""
        return self.stored[relation].node(key)

    def keys(self, relation: int) -> tuple[tuple[int, ...], ...]:
        """The key columns of a relation's arrangements, for ``Indexes``."""
        stored = self.stored.get(relation)
        return () if stored is None else tuple(k for k in stored.arrangements if k)

    def add(self, spec: NodeSpec) -> NodeId:
        """A node of this spec: an existing one, or a new one."""
        found = self.known.get(spec)
        if found is None:
            found = self.dataflow.add(spec)
            self.known[spec] = found
        return found

    def forget_freed(self) -> None:
        """Removes nodes that the dataflow has freed from the lookup tables."""
        alive = {n for s in self.stored.values() for n in (*s.nodes, s.rows)}
        self.known = {spec: node for spec, node in self.known.items() if node in alive}
        self.loops = {k: nodes for k, nodes in self.loops.items() if all(n is None or n in alive for n in nodes)}


class Rendering:
    """The rendering of one plan.

    A place is the dataflow's node, or None for an error collection that does not exist.
    """

    def __init__(self, renderer: Renderer, plan: Plan, waiting: bool = False) -> None:
        self.renderer, self.plan, self.waiting = renderer, plan, waiting
        self.places: list[NodeId | None] = [None] * len(plan.nodes)
        self.failures: dict[int, NodeId] = {}
        self.scopes: dict[int, ScopeId] = {}
        self.loop_of = outermost_loops(plan)
        self.done: set[int] = set()

    def all(self) -> list[NodeId | None]:
        """Renders all nodes and returns their places.

        A loop is rendered before its first reader outside, after its inputs.
        """
        for number, node in enumerate(self.plan.nodes):
            if self.loop_of[number] is not None:
                continue
            for i in inputs(node):
                loop = self.loop_of[i]
                if loop is not None and loop not in self.done:
                    self.done.add(loop)
                    self._loop(loop)
            self.places[number] = self.node(NodeId(number), node)
        return self.places

    def _loop(self, loop: int) -> None:
        members = [NodeId(i) for i, o in enumerate(self.loop_of) if o == loop]
        key = self._loop_key(members)
        found = self.renderer.loops.get(key)
        if found is not None:
            for number, place in zip(members, found, strict=True):
                self.places[number] = place
            return
        for number in members:
            self.places[number] = self.node(number, self.plan.nodes[number])
        for variable, body in self.plan.connections:
            if variable in members:
                self.renderer.dataflow.connect(self.at(variable), self.at(body))
        self.renderer.loops[key] = tuple(self.places[i] for i in members)

    def _loop_key(self, members: list[NodeId]) -> Hashable:
        """The identity of a loop: its nodes, with members named by position in the loop and inputs by place."""
        local = {number: NodeId(-1 - k) for k, number in enumerate(members)}
        first = min(s.scope for i in members if isinstance(s := self.plan.nodes[i], LoopVariable))
        specs: list[Hashable] = []
        for number in members:
            node = self.plan.nodes[number]
            if isinstance(node, LoopVariable):
                scope = self.plan.scopes[node.scope]
                parent = -1 if scope.parent is None else scope.parent - first
                bounds = (scope.limit, scope.return_at_limit, scope.stride, last_width(scope.shape))
                specs.append((node.scope - first, node.number, node.width, parent, bounds))
                continue
            names = {i: local.get(i, self.places[i]) for i in inputs(node)}
            present = {i: _ABSENT if n is None else n for i, n in names.items()}
            specs.append(with_inputs(node, present))
        bodies = tuple((local[v], local.get(b, b)) for v, b in self.plan.connections if v in local)
        return tuple(specs), bodies

    def at(self, number: NodeId) -> NodeId:
        place = self.places[number]
        assert place is not None
        return place

    def scope(self, number: int) -> ScopeId:
        if number not in self.scopes:
            scope: Scope = self.plan.scopes[number]
            parent = None if scope.parent is None else self.scope(scope.parent)
            bounds = (scope.limit, scope.return_at_limit, scope.stride, last_width(scope.shape))
            self.scopes[number] = self.renderer.dataflow.scope(parent, *bounds)
        return self.scopes[number]

    def node(self, number: NodeId, node: Node) -> NodeId | None:
        """The dataflow's node for a plan's node with rendered inputs; None: an error collection that does not exist."""
        renderer = self.renderer
        match node:
            case Table():
                return renderer.stored[node.relation].rows
            case TableErrors():
                return _errors_of(renderer.stored.get(node.relation))
            case Constants():
                return self._constants(number, node)
            case LoopVariable():
                return renderer.dataflow.add(graph.Variable(self.scope(node.scope), node.width))
            case Concat():
                present = tuple(p for i in node.inputs if (p := self.places[i]) is not None)
                return renderer.add(Concat(present)) if len(present) > 1 else (present[0] if present else None)
            case Map():
                return self.mapped(self.at(node.input), node)
            case Lock():
                left, right = self.at(node.left), self.at(node.right)
                return renderer.add(graph.Lock(left, right, node.name, node.none, self.waiting))
            case Group():
                return renderer.add(graph.Reduce(self.at(node.input), node.fold.bind(renderer.context)))
            case Errors() if node.input in self.failures or isinstance(self.plan.nodes[node.input], Constants):
                return self.failures.get(node.input)
            case _:
                return self._made(node)

    def mapped(self, source: NodeId, node: Map) -> NodeId:
        """A node's program over the rows of a node of the dataflow."""
        return self.renderer.add(graph.FlatMap(source, Bound(node.program, self.renderer.context)))

    def _made(self, node: PlainSpec) -> NodeId | None:
        if any(self.places[i] is None for i in inputs(node)):
            return None
        return self.renderer.add(with_inputs(node, {i: self.at(i) for i in inputs(node)}))

    def constant_context(self) -> Context:
        """The context in which constants are computed."""
        return self.renderer.context

    def _constants(self, number: NodeId, node: Constants) -> NodeId:
        words, errors = constant_rows(node.rows, node.schema, self.constant_context())
        add = self.renderer.add
        if len(errors):
            rows = tuple(tuple(r) for r in errors.tolist())
            self.failures[number] = add(graph.Constant(1, rows))
        return self.fixed(words)

    def fixed(self, rows: Words) -> NodeId:
        """The node of rows that never change."""
        return self.renderer.add(graph.Constant(rows.shape[1], tuple(tuple(r) for r in rows.tolist())))


_ABSENT = NodeId(-(10**9))


def enters(loop: Hashable, node: NodeId) -> bool:
    """Whether a loop, by its identity in ``Renderer.loops``, reads a node from outside."""
    assert isinstance(loop, tuple)
    return any(node in inputs(spec) for spec in loop[0] if not isinstance(spec, tuple))


def outermost_loops(plan: Plan) -> list[int | None]:
    """For each node, the outermost loop that contains it; None outside of loops."""
    return [_outermost(loop, plan.scopes) for loop in innermost_loops(plan)]


def _outermost(loop: int | None, scopes: Sequence[Scope]) -> int | None:
    while loop is not None and (parent := scopes[loop].parent) is not None:
        loop = parent
    return loop


def tables_of(plan: Plan) -> frozenset[int]:
    """The relations whose rows a plan reads."""
    return frozenset(node.relation for node in plan.nodes if isinstance(node, Table))


def _errors_of(stored: Stored | None) -> NodeId | None:
    if stored is None or stored.installed is None or stored.installed.errors is None:
        return None
    return stored.installed.errors


def constant_rows(rows: Sequence[tuple[Scalar, ...]], schema: Schema, context: Context) -> tuple[Words, Words]:
    """Rows of expressions without columns, as words (int64[n, width]) and error rows (int64[e, 1]).

    Literals are encoded a column at a time.
    """
    if not schema:
        return np.zeros((len(rows), 1), np.int64), np.zeros((0, 1), np.int64)
    if isinstance(rows, LiteralRows):
        encoded = [codec.encode(t, c, context.dictionary) for t, c in zip(rows.types, rows.columns, strict=True)]
        return pack(encoded, schema, len(rows)), np.zeros((0, 1), np.int64)
    good = np.ones(len(rows), np.bool_)
    errors: list[SqlError] = []
    vectors = [_column(rows, i, column.type, good, errors, context) for i, column in enumerate(schema)]
    if not good.all():
        kept = [Vector(v.words[good], None if v.nulls is None else v.nulls[good]) for v in vectors]
        words = pack(kept, schema, int(good.sum()))
    else:
        words = pack(vectors, schema, len(rows))
    return words, error_words(errors, [None] * len(errors), context.dictionary)


def _column(
    rows: Sequence[tuple[Scalar, ...]], i: int, type_: SqlType, good: Mask, errors: list[SqlError], context: Context
) -> Vector:
    cells = [row[i] for row in rows]
    if all(isinstance(c, Literal) for c in cells):
        return codec.encode(type_, [c.value for c in cells if isinstance(c, Literal)], context.dictionary)
    words, nulls = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
    for k, cell in enumerate(cells):
        (vector,), failures = evaluate((cell,), [], 1, context)
        if failures is not None and len(failures.rows):
            good[k] = False
            errors.append(failures.errors[0])
            continue
        words[k] = vector.words[0]
        nulls[k] = vector.nulls is not None and bool(vector.nulls[0])
    return Vector(words, nulls if nulls.any() else None)
