"""One-shot queries: runs a physical plan once over published versions.

A plan of row programs and lookups only needs no dataflow (``run_direct``). Any other plan runs on a private Dataflow
whose sources are ``Scan`` (read once) and ``Static`` (looked up by the other side of a join).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from ivm import graph
from ivm.contents import dispose
from ivm.dataflow import Dataflow
from ivm.errors import SqlError
from ivm.graph import Arrange, DeltaJoin, Errors, Join, NodeId, Path
from ivm.rows import RowSet, Words
from ivm.specs import inputs
from planner.expr.context import Bounds, Context
from planner.expr.row_errors import first_error
from planner.peek.direct import run_direct
from planner.peek.early import Ran, first_rows
from planner.peek.enough import Counted, given, passed
from planner.peek.multiplicity import written_out
from planner.peek.ranges import Access, filters, narrowed, rows_of
from planner.peek.snapshot import Snapshot, rows_to_read, static_path, static_side, stored_version
from planner.physical.nodes import Map, Node, Plan, Table, TableErrors, reached
from planner.render.dataflow import Renderer, Rendering


def run(
    plan: Plan, snapshot: Snapshot, context: Context, bounds: Bounds | None = None, wanted: int | None = None
) -> RowSet:
    """The plan's rows. Raises the SqlError of its least error row, if any; 57014, 53200, 54001 from loops;
    NegativeCountError. ``wanted``: how many rows suffice, if the plan grows; None: all."""
    bounds = bounds or Bounds()

    def whole(plan: Plan, context: Context) -> Ran:
        known = given(plan, snapshot, context, bounds)
        direct = run_direct(plan, snapshot, context, bounds, known)
        return _dataflow(plan, snapshot, context, bounds, known) if direct is None else Ran(*direct)

    wanted = wanted if plan.grows else None
    if wanted is None and (plan.grows or not plan.limits):
        ran = whole(plan, context)
    else:
        ran = first_rows(whole, plan, context, wanted)
    rows, diffs, errors = ran.rows, ran.diffs, ran.errors
    if errors is not None and len(errors):
        raise first_error(errors, context.dictionary)
    return RowSet(written_out(rows, diffs, bounds), plan.schema)


def _dataflow(plan: Plan, snapshot: Snapshot, context: Context, bounds: Bounds, known: dict[NodeId, Counted]) -> Ran:
    dataflow = Dataflow(context.dictionary.arena, bounds.cancel, once=True)
    try:
        return _run_once(dataflow, plan, snapshot, context, bounds, known)
    except SqlError as error:
        raise error.with_traceback(None)  # noqa: B904 - the frames hold what the dataflow held
    finally:
        dispose(dataflow)


def _run_once(
    dataflow: Dataflow, plan: Plan, snapshot: Snapshot, context: Context, bounds: Bounds, known: dict[NodeId, Counted]
) -> Ran:
    dataflow.limit_memory(bounds.budget)
    rendering = OneShot(Renderer(dataflow, context), plan, snapshot, known)
    places = rendering.all()
    rows = places[plan.rows]
    assert rows is not None
    output = dataflow.add(graph.Output(rows))
    failing = None if plan.errors is None else places[plan.errors]
    errors = None if failing is None else dataflow.add(graph.Output(failing))
    limited = [dataflow.add(graph.Output(place)) for end in plan.limits if (place := places[end.node]) is not None]
    dataflow.hydrate()
    for node in (output, errors, *limited):
        if node is not None and (error := dataflow.failure(node)) is not None:
            raise error
    changes = dataflow.changes(output)
    found = None if errors is None else dataflow.changes(errors).rows
    return Ran(changes.rows, changes.diffs, found, tuple(int(dataflow.changes(n).diffs.sum()) for n in limited))


class OneShot(Rendering):
    """Renders a plan over a snapshot."""

    def __init__(
        self, renderer: Renderer, plan: Plan, snapshot: Snapshot, known: dict[NodeId, Counted] | None = None
    ) -> None:
        """``known``: what takes the place of some nodes' inputs (``planner.peek.enough``)."""
        super().__init__(renderer, plan)
        self.snapshot = snapshot
        self.known = known or {}
        self.passed = passed(plan, frozenset(self.known))
        self.static: dict[NodeId, NodeId] = {}
        self.accesses: dict[NodeId, Access] = {}
        for number, asked in filters(plan).items():
            access = narrowed(*asked, snapshot, renderer.context)
            if access is not None:
                self.accesses[number] = access
        self.needed = read_as_rows(plan, snapshot, self.accesses.keys() | self.known.keys(), self.passed)

    def node(self, number: NodeId, node: Node) -> NodeId | None:
        match node:
            case Table() | Map() | Arrange() if number not in self.needed:
                return None
            case Errors() if node.input in self.passed and node.input not in self.needed:
                return None
            case Map() if number in self.known:
                return self.mapped(self.renderer.dataflow.add(graph.Rows(*self.known[number])), node)
            case Arrange() if number in self.known:
                return self.renderer.dataflow.add(
                    replace(node, input=self.renderer.dataflow.add(graph.Rows(*self.known[number])))
                )
            case Map() if number in self.accesses:
                source = self.renderer.dataflow.add(graph.Rows(*rows_of(self.accesses[number])))
                return self.mapped(source, node)
            case Table():
                return self.renderer.dataflow.add(graph.Rows(*rows_to_read(node, self.snapshot)))
            case TableErrors():
                found = self.snapshot.errors(node.relation)
                return None if found is None else self.renderer.dataflow.add(graph.Rows(*found))
            case Join():
                return self._join(node)
            case DeltaJoin():
                return self._delta_join(number, node)
            case _:
                return super().node(number, node)

    def fixed(self, rows: Words) -> NodeId:
        """As they are: nothing is shared with other plans."""
        return self.renderer.dataflow.add(graph.Rows(rows, np.ones(len(rows), np.int64)))

    def _join(self, node: Join) -> NodeId:
        side = static_side(self.plan, node, self.snapshot)
        left = self._static(node.left) if side == "left" else self.at(node.left)
        right = self._static(node.right) if side == "right" else self.at(node.right)
        return self.renderer.dataflow.add(Join(left, right, node.gather))

    def _delta_join(self, number: NodeId, node: DeltaJoin) -> NodeId | None:
        """One path does if nothing changes in what it looks up: its only input is the one that it starts from."""
        path = static_path(self.plan, node, self.snapshot)
        if path is None:
            return super().node(number, node)
        found = replace(path.lookups[0], input=0, node=self._static(path.lookups[0].node))
        return self.renderer.dataflow.add(DeltaJoin((Path(self.at(path.start), ((found,),), path.gather),)))

    def _static(self, number: NodeId) -> NodeId:
        if number not in self.static:
            version = stored_version(self.plan, number, self.snapshot)
            assert version is not None
            self.static[number] = self.renderer.dataflow.add(graph.Static(version, self.snapshot.at))
        return self.static[number]


def read_as_rows(
    plan: Plan, snapshot: Snapshot, narrow: Collection[NodeId] = (), passed: frozenset[NodeId] = frozenset()
) -> set[NodeId]:
    """The nodes whose rows are read as a collection: those that the roots reach without a lookup. ``narrow``: nodes
    that read a part of their input by themselves; ``passed``: nodes that need not be read for their errors."""
    apart = {id(plan.nodes[number]) for number in narrow}

    def read(node: Node) -> tuple[NodeId, ...]:
        if id(node) in apart or (isinstance(node, Errors) and node.input in passed):
            return ()
        if isinstance(node, DeltaJoin) and (path := static_path(plan, node, snapshot)) is not None:
            return (path.start,)
        if not isinstance(node, Join):
            return inputs(node)
        side = static_side(plan, node, snapshot)
        return tuple(i for i, name in ((node.left, "left"), (node.right, "right")) if name != side)

    return reached(plan, lambda _: False, read)
