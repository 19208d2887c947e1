"""PRIORITY BY: the rows of a binding wait in the loop for the round of their priority.

PrioritizedFP (McSherry et al., Differential dataflow, CIDR 2013, section 4.2) delays what enters the loop. Here a
binding's rows are delayed as the block sees them, including those derived by the recursion. All are seen in the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from ivm.errors import SqlError
from ivm.graph import Delay, Priority
from ivm.words import INT8
from planner import gathers
from planner.expr.functions.internal.recursion import ROW_PRIORITY
from planner.expr.scalar import Call, Coalesce, Literal, Scalar
from planner.logical.nodes import LetRec
from planner.logical.traversal import own_columns
from planner.lower.state import Lowering
from planner.physical.nodes import Flow


@dataclass(frozen=True, slots=True)
class Priorities:
    """A loop's priorities by binding: 0 … ``count`` − 1, each of ``stride`` rounds."""

    exprs: dict[int, Scalar]
    scope: int
    stride: int
    count: int

    @staticmethod
    def of(rel: LetRec, scope: int, width: int) -> Priorities:
        """Raises 54001 if the limit leaves no bits for priorities."""
        rounds = 1 << width
        stride = 1 << (rounds.bit_length() // 2) if rel.limit is None else 1 << (rel.limit - 1).bit_length()
        if 2 * stride > rounds:
            message = f"a block with PRIORITY BY can do {rounds // 2} rounds in each priority at most"
            raise SqlError("54001", message, hint="Make RECURSION LIMIT smaller.")
        exprs = {b: p for (b, _), p in zip(rel.bindings, rel.priorities, strict=True) if p is not None}
        return Priorities(exprs, scope, stride, rounds // stride)

    def delay(self, low: Lowering, binding: int, flow: Flow) -> Flow:
        """A binding's rows as the block sees them. Rows outside of the loop do not change in it and are not delayed."""
        expr = self.exprs.get(binding)
        node = low.builder.force(flow)
        if expr is None or low.builder.scope_of[node] != self.scope:
            return flow
        own = own_columns(flow.schema)
        given = Coalesce((expr, Literal(-1, INT8)), INT8)
        checked = Call(ROW_PRIORITY, (given, Literal(self.count, INT8)), INT8, False)
        computed = low.compute(flow, (), (*own, checked))
        width = gathers.width(computed.schema)
        delayed = low.builder.add(Delay(low.builder.force(computed), len(own), Priority.VALUE, self.stride), width)
        moved = low.moved(low.builder.flow(delayed, computed.schema), own)
        return low.builder.flow(low.builder.force(moved), flow.schema)
