"""The inputs of a dataflow over a part of the data, and what it owes to later rounds of loops."""

from __future__ import annotations

from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Later, Operator, Scope
from ivm.trace.batch import Block


class PartialInputOperator(Operator):
    """Emits what it is given; in a loop, all at one loop vector, when that is due."""

    __slots__ = ("given",)

    def __init__(self, context: FlowContext, scope: Scope, width: int, diff_width: int) -> None:
        super().__init__(context, scope, width, diff_width)
        self.given = Block(width, diff_width)

    def run(self, vector: int) -> bool:
        self.out, self.given = self.given, Block(self.width, self.diff_width)
        return self.out.n > 0

    def clear(self) -> None:
        self.out = Block(self.width, self.diff_width)


class Owed(Later):
    """What an operator owes to later rounds that run elsewhere: nothing is scheduled here."""

    __slots__ = ()

    def added(self, start: int) -> None:
        pass

    def owe(self, given: Block, vector: int) -> None:
        """Takes what was owed to a vector that is now due."""
        self.block, self.due = given, vector


def enter(scope: Scope, vector: int, operator: Operator) -> None:
    """Schedules an operator at a loop vector, and all loops around it at theirs."""
    if not scope.depth:
        operator.wake()
        return
    scope.schedule(vector, operator)
    while scope.depth > 1:
        vector >>= scope.width
        scope.around.schedule(vector, scope)
        scope = scope.around
    scope.wake()
