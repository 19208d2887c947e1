"""The members of a dataflow in which nothing is maintained yet, whose passes check for a cancel and for memory."""

from __future__ import annotations

from ivm.runtime.context import FlowContext, Mode
from ivm.runtime.operator import Operator, Scope


class Watched(dict[int, Operator | Scope]):
    """The items of the outermost scope, by rank, while nothing is maintained yet. Each look-up during a pass checks for
    a cancel and for too much memory, so that the pass ends between two items."""

    def __init__(self, context: FlowContext) -> None:
        super().__init__()
        self._context = context

    def __getitem__(self, rank: int) -> Operator | Scope:
        if self._context.mode is not Mode.MAINTAINED:
            self._context.look()
        return super().__getitem__(rank)
