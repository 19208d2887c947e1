"""Window functions over frames as a fold of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from ivm.graph import Reducer
from ivm.words import row_width
from planner.expr.context import Context
from planner.frames.plan import WindowPlan


def out_width(plan: WindowPlan) -> int:
    """The words of [how often | row | results]."""
    return 1 + row_width(plan.layout.row) + row_width(plan.columns)


@dataclass(frozen=True, slots=True)
class FramedFold:
    """``planner.frames.reducer.FramedRows`` before there is a context."""

    plan: WindowPlan

    @property
    def out_width(self) -> int:
        return out_width(self.plan)

    @property
    def can_fail(self) -> bool:
        return self.plan.can_fail

    def bind(self, context: Context) -> Reducer:
        """Raises 22004 and 22013 for bad offsets."""
        from planner.frames.reducer import FramedRows  # it needs kernels, which plans are made without

        edges = {of[0]: self.plan.edges(frame, context) for frame, of in self.plan.frames.items()}
        return FramedRows(self.plan, context, edges)
