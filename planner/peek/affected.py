"""Whether a query that has run would have read some other rows of a relation: what a transaction checks at its end.

A relation is read through filters, which the rows pass or not, or by keys that the query itself gives. In every other
case all of it is read.
"""

from __future__ import annotations

from ivm.graph import Arrange, Join, Mapped, NodeId, Threshold
from ivm.rows import Words
from ivm.specs import inputs
from planner import gathers
from planner.expr.context import Context
from planner.memo import by_identity
from planner.physical.nodes import Constants, Map, Node, Plan, Table, reached
from planner.render.dataflow import constant_rows


def may_read(plan: Plan, relation: int, rows: Words, context: Context) -> bool:
    """Whether the plan, run once, may read one of these rows of a relation. Cost: in the rows and the plan's keys.

    ``rows`` in the relation's layout, with no values that ``context`` does not know.
    """
    uses = _uses(plan)
    return any(
        _reads(plan, use, number, rows, context)
        for number, node in enumerate(plan.nodes)
        if isinstance(node, Table) and node.relation == relation
        for use in uses.get(NodeId(number), ())
    )


@by_identity
def _uses(plan: Plan) -> dict[NodeId, tuple[NodeId, ...]]:
    """The nodes that read each node."""
    found: dict[NodeId, list[NodeId]] = {}
    for number in reached(plan, lambda _: False):
        for below in inputs(plan.nodes[number]):
            found.setdefault(below, []).append(number)
    roots = {plan.rows, *(limited.node for limited in plan.limits)}
    return {below: tuple(above) for below, above in found.items()} | {r: (*found.get(r, ()), r) for r in roots}


def _reads(plan: Plan, use: NodeId, number: int, rows: Words, context: Context) -> bool:
    node = plan.nodes[use]
    match node:
        case Map() if node.program.diff_width == 1 and use != number:
            made = node.program.run(rows, context)
            return bool(len(made.rows)) or _failed(made)
        case Arrange() if plan.stored[use] is not None and use != number:
            moved = gathers.apply(node.gather, rows)[0]
            return any(_looks_up(plan, above, use, node, moved, context) for above in _uses(plan).get(use, ()))
        case _:
            return True


def _looks_up(plan: Plan, use: NodeId, fixed: NodeId, arranged: Arrange, rows: Words, context: Context) -> bool:
    """Whether a node above an arrangement may read one of these rows of it."""
    join = plan.nodes[use]
    if not isinstance(join, Join) or join.left == join.right:
        return True
    keys = _given(plan, join.right if join.left == fixed else join.left, context)
    if keys is None:
        return True
    width = arranged.key_width
    sought = {key[:width].tobytes() for key in keys}
    return any(row[:width].tobytes() in sought for row in rows)


def _given(plan: Plan, number: NodeId, context: Context) -> Words | None:
    """The rows of a node that reads no relation; None if it does, or is not simple."""
    node: Node = plan.nodes[number]
    match node:
        case Constants():
            rows, errors = constant_rows(node.rows, node.schema, context)
            return None if len(errors) else rows
        case Map() if node.program.diff_width == 1:
            below = _given(plan, node.input, context)
            if below is None:
                return None
            made = node.program.run(below, context)
            return None if _failed(made) else made.rows
        case Arrange() if not node.order:
            below = _given(plan, node.input, context)
            return None if below is None else gathers.apply(node.gather, below)[0]
        case Threshold():
            return _given(plan, node.input, context)
        case _:
            return None


def _failed(made: Mapped) -> bool:
    return made.errors is not None and len(made.errors) > 0
