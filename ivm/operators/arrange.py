"""Arrangements: a collection gathered, sorted, and kept in a spine; outputs, whose changes are drained."""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.graph import Gather
from ivm.kernels.arrange import arrange
from ivm.kernels.blocks import SAME
from ivm.kernels.memory import T_LAYERS, address
from ivm.kernels.program import ARRANGE, OUTPUT
from ivm.operators.base import LARGE, UnaryOperator, check_gather, inverse, is_identity, program
from ivm.rows import Words
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Operator, Scope
from ivm.runtime.program import Instruction, Program
from ivm.trace.batch import Batch, Block
from ivm.trace.shards import copied, gathered, sort_into, sorted_block
from ivm.trace.spine import Spine
from ivm.trace.trace import Version
from ivm.workers import SORTED, parts

_COPIED: Final = 1024
"""Up to this many changes are copied when drained, so that their block keeps its address."""


class ArrangeOperator(UnaryOperator):
    """Keeps its input as [key | val] in a spine. Cost of a pass: sorting the delta, and the spine's insert."""

    __slots__ = ("_gathered", "_given", "_order", "_program", "_taken", "gather", "kept")

    ARRANGED = True

    def __init__(
        self,
        context: FlowContext,
        scope: Scope,
        source: Operator,
        how: Gather,
        key_width: int,
        order: Words | None = None,
    ) -> None:
        super().__init__(context, scope, len(how.words), source, source.diff_width)
        check_gather(how, source.width)
        self.gather = how
        self.key_width = key_width
        self.kept = Spine(self.width, key_width, scope.shape, self.diff_width, order, context.since_of(scope.depth))
        self.spine = self.kept
        self._order = self.kept.order
        self._program = None if is_identity(how, source.width) else program(how, source.width, 0)
        self._gathered = Block(self.width, self.diff_width)
        self._given: tuple[Batch, Block | None] | None = None
        self._taken = False
        """Whether ``out`` is a block passed to ``give``, which must not be written to."""

    @property
    def primary(self) -> bool:
        return self.source.primary

    def give(self, batch: Batch, block: Block | None) -> None:
        """Supplies the next step's updates: as a batch to keep and, if it has readers, as a block. It gets no other
        updates in that step."""
        self._given = batch, block
        self.scope.changed(self)
        self.wake()

    def left_out(self) -> None:
        if self._given is not None:
            self._given = None
            self.scope.changed(self)

    def _take(self, batch: Batch, block: Block | None) -> bool:
        self._given = None
        self.scope.changed(self)
        self.source.taken()
        self.kept.touched(0)
        self.kept.adopt(batch)
        if block is None:
            return False
        self.out = block
        self._taken = True
        return True

    def clear(self) -> None:
        if self._taken:
            self._taken = False
            self.out = Block(self.width, self.diff_width)
        super().clear()

    def run(self, vector: int) -> bool:
        if self._given is not None:
            return self._take(*self._given)
        if self._order:
            self.context.refresh()  # earlier operators may have interned values in this pass
        given = self.source.out
        if given.n >= LARGE and given.n > self.out.room and not self._may_take(given.n):
            return False
        if self._program is not None:
            made = self._gathered
            made.reserve(given.n)
            made.n = gathered(given, made, self._program)
            given = made
        out = self.out
        if given.n > out.room:
            out.reserve(given.n)
        kept = self.kept
        if parts(given.n, SORTED) > 1:
            found = 2 * sort_into(given, out, self._order)
        else:
            found = arrange(given.d, out.d, kept.desc, self._order)
        n = out.n = found >> 1
        if self._program is not None:
            given.clear()
        self.source.taken()
        if not n:
            return False
        if found & 1:
            kept.touched(n)
        else:
            kept.insert(out, self.scope.depth == 0)
        return True

    def _may_take(self, count: int) -> bool:
        """Whether memory allows ``count`` updates to be sorted and kept."""
        error = None if self.primary else self.context.refusal(16 * count * (self.width + 1 + self.diff_width), 0)
        if error is not None:
            self.fail(error)
        return error is None

    def instruction(self, program: Program) -> Instruction | None:
        if self._given is not None:
            return None
        return Instruction(ARRANGE, program.row(self.source), None, self._words(), SORTED)

    def _words(self) -> list[int]:
        how = self._program
        return [
            address(self.kept.cell), self._order, 0 if how is None else address(how), 0 if how is None else len(how),
            address(self._gathered.d),
        ]  # fmt: skip

    def blocks(self) -> list[Block]:
        return [self.out, self._gathered]

    def recover(self) -> Gather | None:
        return inverse(self.gather, self.source.width)

    def input_contents(self) -> Block | None:
        return None if self.recover() is None else self.restored(self.kept.contents(self.context.since))

    def restored(self, block: Block) -> Block:
        """Converts a block of the arrangement's rows back to rows of its input; the arrangement must lose nothing
        (``recover``)."""
        back = self.recover()
        assert back is not None, "an arrangement that loses nothing"
        if is_identity(back, self.width):
            return Block.of(*block.arrays())
        made = Block(self.source.width, self.diff_width, max(block.n, 1))
        made.n = gathered(block, made, program(back, self.width, 0))
        return made


class OutputOperator(ArrangeOperator):
    """A collection kept for readers, with the changes since they were last drained."""

    __slots__ = ("_none", "_runs", "drained")

    def __init__(self, context: FlowContext, scope: Scope, source: Operator) -> None:
        assert scope.depth == 0, "an Output reads a collection outside of loops"
        super().__init__(context, scope, source, Gather(tuple(range(source.width))), source.width)
        self.drained = Block(self.width)
        self._runs = 0
        self._none = (np.zeros((0, self.width), np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))

    def run(self, vector: int) -> bool:
        self._runs += 1
        return self.run_called(vector)

    def run_called(self, vector: int) -> bool:
        if not super().run(vector):
            return False
        self.drained.reserve(self.drained.n + self.out.n)
        self.drained.n = copied(self.out, self.drained, 1, SAME, 0, 0)
        return True

    def instruction(self, program: Program) -> Instruction | None:
        return Instruction(OUTPUT, program.row(self.source), self.drained, self._words(), SORTED)

    def blocks(self) -> list[Block]:
        return [*super().blocks(), self.drained]

    def emitted(self) -> None:
        super().emitted()
        self._runs += 1
        self.drained.sync()

    def filled(self, block: Block) -> None:
        """Adds a block to the changes; its spine was filled by other means than ``run``."""
        self._runs += 2
        self.drained.reserve(self.drained.n + block.n)
        self.drained.n = copied(block, self.drained, 1, SAME, 0, 0)

    def changes(self) -> tuple[Words, Words, Words]:
        """(rows, times, diffs) since the last call, consolidated and sorted by row, then time."""
        block = self.drained
        n = block.n
        if not n:
            return self._none
        if self._runs > 1:
            rows, times, diffs = sorted_block(block).arrays()
            block.clear()
        elif n > _COPIED:
            rows, times, diffs = block.arrays()
            block.renew()
        else:
            rows, times, diffs = block.rows[:n].copy(), block.times[:n].copy(), block.diffs[:n].copy()
            block.reset()
        self._runs = 0
        return rows, times, diffs[:, 0]


class StaticSpine(Spine):
    """A published version used as a spine: read only."""

    __slots__ = ("_version",)

    READ_ONLY = True

    def __init__(self, version: Version, at: int) -> None:
        super().__init__(version.width, version.key_width, 0, 1, version.order_words)
        if version.upper <= at:
            self._version = version
            self.describe(version.timeless())
            self.parts = version.batches
            return
        rows, diffs = version.rows_at(at)
        self.insert(Block.of(rows, diffs * 0, diffs))

    def rank(self) -> None:
        """Does nothing: the batches belong to their owner, and searches by rank work without sums."""
        self.ranked = True

    @property
    def nbytes(self) -> int:
        """Almost no memory of its own."""
        return 0


class StaticOperator(Operator):
    """An arrangement that is only looked up."""

    __slots__ = ()

    ARRANGED = True

    def __init__(self, context: FlowContext, scope: Scope, version: Version, at: int) -> None:
        super().__init__(context, scope, version.width)
        self.key_width = version.key_width
        self.spine = StaticSpine(version, at)
        assert self.spine.desc[T_LAYERS] >= 1

    def run(self, vector: int) -> bool:
        return False
