"""Temporal filters: rows are spread over the moments at which they come and go, and wait for them."""

from __future__ import annotations

from ivm.errors import SqlError
from ivm.graph import Gather, Wait
from planner import gathers
from planner.logical.nodes import TemporalFilter
from planner.lower.state import Lowering
from planner.physical.nodes import Flow
from planner.physical.temporal_programs import Moments


def lower_temporal(low: Lowering, rel: TemporalFilter) -> Flow:
    """Raises 0A000 in a recursion, whose rounds have no time of day."""
    flow = low.rel(rel.input)
    if low.loop_of(flow) is not None:
        raise SqlError(
            "0A000", "a condition on the current time inside a recursion is not supported in a materialized view",
            hint="Filter in a view of its own, and let the recursion read that view.",
        )  # fmt: skip
    program = Moments(flow.schema, rel.conditions)
    waiting = low.builder.add(Wait(low.builder.map(flow, program), 0), program.out_width)
    width = gathers.width(flow.schema)
    return Flow(waiting, Gather(tuple(range(1, width + 1))), flow.schema)
