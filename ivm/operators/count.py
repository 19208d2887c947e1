"""Count: how many rows each key has, outside of loops; a kernel does the whole pass."""

from __future__ import annotations

from ivm.graph import CountRows, Reducer
from ivm.kernels.blocks import SAME
from ivm.kernels.memory import B_COUNT, address
from ivm.kernels.program import COUNT
from ivm.kernels.reduce import count_differences
from ivm.operators.base import FailingOperator, KeyedOperator
from ivm.rows import Words
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Operator, Scope
from ivm.runtime.program import Instruction, Program
from ivm.trace.batch import Block
from ivm.trace.shards import copied, in_parts, put_together, sort_into
from ivm.workers import SEARCHED, parts


def counts(source: Operator, reducer: Reducer) -> bool:
    """Whether a ``CountOperator`` can do the work of a reducer."""
    plain = source.width == source.key_width and source.diff_width == 1 and not source.scope.depth
    return plain and isinstance(reducer, CountRows)


class CountOperator(KeyedOperator, FailingOperator):
    """Output [key | count], itself an arrangement; no row fails. Cost of a pass: a search for each touched key."""

    __slots__ = ("_unsorted",)

    def __init__(self, context: FlowContext, scope: Scope, source: Operator) -> None:
        super().__init__(context, scope, source.key_width + 1, source)
        self.key_width = source.key_width
        self._unsorted = Block(self.width)

    def instruction(self, program: Program) -> Instruction | None:
        if not self.ran:
            return None
        words = [*self.traces(), address(self._unsorted.d)]
        return Instruction(COUNT, program.row(self.source), None, words, SEARCHED)

    def run(self, vector: int) -> bool:
        if self.source.out.n:
            self._count(self.source.out)
        if not self.ran:
            self.scope.changed(self)  # from now on it has an instruction
        self.ran = True
        self.keep()
        return self.out.n > 0

    def _count(self, delta: Block) -> None:
        out, unsorted = self.out, self._unsorted
        for block in (out, unsorted):
            block.reserve(2 * delta.n)
        if parts(delta.n, SEARCHED) > 1:
            ordered = self._count_in_parts(delta)
        else:
            ordered = self._differences(delta.d, out, self.context.stats)
        if out.sync() and not ordered:
            unsorted.n = copied(out, unsorted, 1, SAME, 0, 0)
            out.reset()
            out.n = sort_into(unsorted, out, 0 if self.spine is None else self.spine.order)
        unsorted.clear()

    def _count_in_parts(self, delta: Block) -> bool:
        """``_differences`` in parallel, the delta cut between keys."""

        def count(given: Words, stats: Words) -> tuple[Block, bool]:
            made = Block(self.width, 1, 2 * int(given[B_COUNT]))
            ordered = self._differences(given, made, stats)
            made.sync()
            return made, ordered

        found = in_parts(delta, self.key_width, count, self.context.stats)
        put_together([made for made, _ in found], self.out)
        return all(ordered for _, ordered in found)

    def _differences(self, delta: Words, out: Block, stats: Words) -> bool:
        """Appends the changes of counts. Returns whether they are sorted."""
        return bool(count_differences(self.read.desc, delta, self.context.nothing, out.d, not self.ran, stats))
