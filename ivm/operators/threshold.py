"""Threshold (distinct, positive part), entirely in kernels. Its output is an arrangement of its input's layout."""

from __future__ import annotations

from ivm.graph import Keep
from ivm.kernels.interesting import THRESHOLDS, reduce_partial
from ivm.kernels.memory import B_COUNT, T_ROOM, address
from ivm.kernels.program import THRESHOLD, THRESHOLD_TOTAL
from ivm.kernels.threshold import DISTINCT, POSITIVE, threshold_total
from ivm.operators.base import UnaryOperator
from ivm.rows import Words
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Later, Operator, Scope
from ivm.runtime.program import Instruction, Program
from ivm.trace.batch import Block
from ivm.trace.shards import in_parts, in_parts_of_both, put_together, sort_into
from ivm.trace.spine import Spine
from ivm.workers import CORRECTED, SEARCHED, parts


class ThresholdOperator(UnaryOperator):
    """Cost of a pass: the histories of the touched rows."""

    __slots__ = ("_keep", "_ordered", "_owed")

    ARRANGED = True
    later: Later

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, keep: Keep) -> None:
        super().__init__(context, scope, source.width, source)
        assert source.diff_width == 1
        assert source.key_width == source.width, "Threshold reads an arrangement without values"
        self.key_width = source.key_width
        self._keep = DISTINCT if keep is Keep.DISTINCT else POSITIVE
        self.later = Later(self, self.width)
        self._owed = Block(self.width)
        self._ordered = Block(self.width)
        if scope.depth:
            self.arrange()

    def arrange(self) -> None:
        """Keeps an output spine from now on."""
        if self.spine is None:
            given = self.source.spine
            assert given is not None
            self.scope.changed(self)
            since = self.context.since_of(self.scope.depth)
            self.spine = Spine(self.width, self.key_width, self.scope.shape, 1, given.order_words, since)

    def instruction(self, program: Program) -> Instruction | None:
        if not self.scope.depth:
            return Instruction(THRESHOLD_TOTAL, program.row(self.source), None, self._cells(), SEARCHED)
        return Instruction(THRESHOLD, program.row(self.source), self.later.block, self._cells(), CORRECTED)

    def _cells(self) -> list[int]:
        assert self.source.spine is not None
        kept = 0 if self.spine is None else address(self.spine.cell)
        return [
            address(self.source.spine.cell), kept, self._keep, address(self._owed.d), address(self._ordered.d)
        ]  # fmt: skip

    def blocks(self) -> list[Block]:
        return [self.out, self.later.block, self._owed, self._ordered]

    def run(self, vector: int) -> bool:
        given = self.source
        assert given.spine is not None
        out = self.out
        if self.scope.depth:
            self._partial(given.out, given.spine, vector)
        else:
            self._total(given.out, given.spine)
            if out.n and self.spine is not None:
                self.spine.insert(out)
        return out.n > 0

    def _total(self, delta: Block, trace: Spine) -> None:
        context = self.context
        out = self.out
        if parts(delta.n, SEARCHED) == 1:
            out.reserve(delta.n)
            out.n = threshold_total(trace.desc, delta.d, context.nothing, out.d, self._keep, context.stats)
            return

        def total(given: Words, stats: Words) -> Block:
            made = Block(self.width, 1, int(given[B_COUNT]))
            made.n = threshold_total(trace.desc, given, context.nothing, made.d, self._keep, stats)
            return made

        put_together(in_parts(delta, self.width, total, context.stats), out)

    def _partial(self, delta: Block, trace: Spine, vector: int) -> None:
        later = self.later
        owed = self._owed
        assert self.spine is not None
        if later.due == vector and later.take(vector, owed) > 1:
            ordered = self._ordered
            ordered.reserve(owed.n)
            ordered.n = sort_into(owed, ordered, trace.order)
            owed.reset()
            owed = ordered
        start = later.block.n
        if parts(delta.n + owed.n, CORRECTED) > 1:
            self._partial_in_parts(delta, owed, trace, vector)
        else:
            self._partial_at_once(delta, owed, trace, vector)
        if owed.n:
            owed.clear()
        if later.block.n > start:
            later.added(start)

    def _correct(
        self, delta: Words, owed: Words, trace: Spine, output: Words, out: Words, later: Words, vector: int,
        stats: Words,
    ) -> int:  # fmt: skip
        """See ``ivm.kernels.interesting``; all but the trace are descriptors."""
        nothing = self.context.nothing
        return int(
            reduce_partial(
                THRESHOLDS, trace.desc, delta, owed, output, nothing, out, later, nothing, nothing, nothing, self._keep,
                vector, self.context.again, stats,
            )
        )  # fmt: skip

    def _partial_at_once(self, delta: Block, owed: Block, trace: Spine, vector: int) -> None:
        out = self.out
        later = self.later
        assert self.spine is not None
        start = later.block.n
        room = 2 * (delta.n + owed.n + start) + 8  # as much as a program requires
        for block in (out, later.block, self._owed, self._ordered):
            if room > block.room:
                block.reserve(room)
        while True:
            counts = self._correct(
                delta.d, owed.d, trace, self.spine.desc, out.d, later.block.d, vector, self.context.stats
            )
            if counts >= 0:
                break
            out.grow()
            later.block.grow()
        out.n = counts & 0x7FFFFFFF
        if not (counts >> 31) & 1:
            self.spine.insert(out)
        elif out.n:
            self.spine.touched(out.n)
        later.block.n = counts >> 32

    def _partial_in_parts(self, delta: Block, owed: Block, trace: Spine, vector: int) -> None:
        """The same in parallel, cut between rows. No part may insert its output: each sees the output's spine as
        full."""
        context = self.context
        assert self.spine is not None
        full = self.spine.desc.copy()
        full[T_ROOM] = 0

        def correct(given: Words, due: Words, stats: Words) -> tuple[Block, Block]:
            room = 2 * int(given[B_COUNT] + due[B_COUNT]) + 8
            out, later = Block(self.width, 1, room), Block(self.width, 1, room)
            counts = -1
            while counts < 0:
                counts = self._correct(given, due, trace, full, out.d, later.d, vector, stats)
                if counts < 0:
                    out.grow()
                    later.grow()
            out.sync()
            later.sync()
            return out, later

        found = in_parts_of_both(delta, owed, self.width, trace.order, correct, context.stats)
        put_together([out for out, _ in found], self.out)
        put_together([later for _, later in found], self.later.block)
        if self.out.n:
            self.spine.insert(self.out)
