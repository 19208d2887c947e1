"""What reads each node of a plan."""

from __future__ import annotations

from ivm.graph import NodeId
from ivm.specs import inputs
from planner.memo import by_identity
from planner.physical.nodes import Plan, reached


@by_identity
def uses(plan: Plan) -> dict[NodeId, tuple[NodeId, ...]]:
    """The nodes that read each node; roots read themselves."""
    found: dict[NodeId, list[NodeId]] = {}
    for number in reached(plan, lambda _: False):
        for below in inputs(plan.nodes[number]):
            found.setdefault(below, []).append(number)
    roots = {plan.rows, *(limited.node for limited in plan.limits)}
    return {below: tuple(above) for below, above in found.items()} | {r: (*found.get(r, ()), r) for r in roots}
