"""Threshold (distinct, positive part), entirely in kernels. Its output is an arrangement of its input's layout."""

from __future__ import annotations

from ivm.graph import Keep
from ivm.kernels.interesting import THRESHOLDS
from ivm.kernels.memory import B_COUNT
from ivm.kernels.program import THRESHOLD, THRESHOLD_TOTAL
from ivm.kernels.threshold import DISTINCT, POSITIVE, threshold_total
from ivm.operators.base import KeyedOperator
from ivm.operators.correcting import CorrectingOperator, Due, Tactic
from ivm.rows import Words
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Later, Operator, Scope
from ivm.runtime.program import Instruction, Program
from ivm.trace.batch import Block
from ivm.trace.shards import in_parts, put_together
from ivm.workers import CORRECTED, SEARCHED, parts


class ThresholdOperator(KeyedOperator):
    """Outside of loops. Cost of a pass: the histories of the touched rows."""

    __slots__ = ("_keep",)

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, keep: Keep) -> None:
        super().__init__(context, scope, source.width, source)
        assert source.diff_width == 1
        assert source.key_width == source.width, "Threshold reads an arrangement without values"
        self.key_width = source.key_width
        self._keep = DISTINCT if keep is Keep.DISTINCT else POSITIVE

    def instruction(self, program: Program) -> Instruction | None:
        words = [*self.traces(), self._keep]
        return Instruction(THRESHOLD_TOTAL, program.row(self.source), None, words, SEARCHED)

    def run(self, vector: int) -> bool:
        delta, out, trace = self.source.out, self.out, self.read.desc
        context, keep = self.context, self._keep
        if parts(delta.n, SEARCHED) == 1:
            out.reserve(delta.n)
            out.n = threshold_total(trace, delta.d, context.nothing, out.d, keep, context.stats)
        else:

            def total(given: Words, stats: Words) -> Block:
                made = Block(self.width, 1, int(given[B_COUNT]))
                made.n = threshold_total(trace, given, context.nothing, made.d, keep, stats)
                return made

            put_together(in_parts(delta, self.width, total, context.stats), out)
        self.keep()
        return out.n > 0


class LoopThresholdOperator(CorrectingOperator, ThresholdOperator):
    """Inside loops. Cost of a pass: the histories of the touched rows."""

    __slots__ = ("_tactic", "due")

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, keep: Keep) -> None:
        super().__init__(context, scope, source, keep)
        self.later, self.due = Later(self, self.width), Due(self.width)
        self.arrange()
        self._tactic = Tactic(THRESHOLDS, context.nothing, self._keep, 1)

    def instruction(self, program: Program) -> Instruction | None:
        words = self.row_words(self._keep)
        return Instruction(THRESHOLD, program.row(self.source), self.later.block, words, CORRECTED)

    def correct(self, delta: Block, due: Block, vector: int) -> None:
        self.emit(self._tactic, delta, due, vector)
