"""The boundary between a dataflow and new nodes that are hydrated beside it on another thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ivm.graph import Gather
from ivm.kernels.blocks import LEAVE, SAME, gather, transfer
from ivm.kernels.memory import HEAD, L_COUNT, LAYER_WORDS, T_LAYERS, T_ORDER, T_SINCE, address
from ivm.kernels.read import collect
from ivm.operators.base import UnaryOperator, program
from ivm.operators.linear import SourceOperator
from ivm.rows import Words
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Operator, Scope
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from ivm.trace.spine import EVERYTHING, Spine


class RecordOperator(UnaryOperator):
    """Records, in the running dataflow, what ``source`` emits."""

    __slots__ = ("block",)

    def __init__(self, context: FlowContext, scope: Scope, source: Operator) -> None:
        super().__init__(context, scope, 0, source)
        self.block = Block(source.width, source.diff_width)

    def run(self, vector: int) -> bool:
        given, block = self.source.out, self.block
        block.reserve(block.n + given.n)
        block.n = transfer(given.d, block.d, 1, SAME, 0, 0)
        return False

    def take(self) -> Block:
        """Drains what was recorded since the last call."""
        block, self.block = self.block, Block(self.source.width, self.source.diff_width)
        return block


class FrozenSpine(Spine):
    """A read-only snapshot of another spine, taken by the last ``follow``, for a thread other than the owner's. Its
    ordered words compare by a cell of its own, and its since does not advance."""

    __slots__ = ()

    READ_ONLY = True

    def __init__(self, spine: Spine, since_word: Words, cell: Words) -> None:
        order = spine.order_words
        if order is not None:
            order = order.copy()
            order[0] = address(cell)
        super().__init__(spine.width, spine.key_width, spine.shape, spine.diff_width, order, since_word)
        self.follow(spine)

    def follow(self, spine: Spine) -> None:
        """Takes a snapshot of the other spine. Call it on the owner's thread."""
        desc, self.parts = spine.frozen()
        desc[T_ORDER] = self.order
        desc[T_SINCE] = address(self.since_word)
        if self.peaked:
            self._list_peaks()
        self.describe(desc)

    def timeless(self, most: int) -> Iterator[Block]:
        """Its updates with all times 0, not consolidated, in read-only blocks of up to ``most``."""
        small = self.desc[: HEAD + LAYER_WORDS].copy()
        small[T_LAYERS] = 1
        block = Block(self.width, self.diff_width, max(int(small[HEAD + L_COUNT]), 1))
        collect(small, block.d, EVERYTHING, 0)
        if block.sync():
            rows, times, diffs = block.arrays()
            yield Block.of(rows, np.zeros_like(times), diffs)
        for batch in self.parts:
            yield from batch.timeless(most)

    def rank(self) -> None:
        """Does nothing: the batches belong to their owner, and searches by rank work without sums."""
        self.ranked = True

    @property
    def nbytes(self) -> int:
        """Almost no memory of its own."""
        return 0


class TraceImportOperator(SourceOperator):
    """Runs beside the dataflow: emits what ``real`` holds, then what it has emitted since, up to the last ``advance``.

    ``base`` is the spine with its contents: its own (then it is an arrangement here too), or one inside of the loop
    that it leaves; None: it was always empty.
    """

    __slots__ = ("_back", "_base", "_begun", "_delta", "_frozen", "real", "record")

    ARRANGED = True

    def __init__(
        self, context: FlowContext, scope: Scope, real: Operator, record: RecordOperator, base: Operator | None,
        cell: Words, back: Gather | None,
    ) -> None:  # fmt: skip
        super().__init__(context, scope, np.empty((0, real.width), np.int64), np.empty(0, np.int64))
        self.diff_width = real.diff_width
        self.key_width = real.key_width
        self.real = real
        self.record = record
        self._back = back
        self._base = base
        self._begun = False
        self._delta = Block(real.width, real.diff_width)
        self._frozen: FrozenSpine | None = None
        if base is not None:
            assert base.spine is not None
            self._frozen = FrozenSpine(base.spine, context.since_of(base.spine.shape), cell)
        if base is real:
            self.spine = self._frozen

    def advance(self) -> int:
        """Takes over what the real operator has emitted since. Call it on that operator's thread. Returns the number of
        updates."""
        self._delta = self.record.take()
        if isinstance(self.spine, FrozenSpine):
            assert self.real.spine is not None
            self.spine.follow(self.real.spine)
        return self._delta.n

    def run(self, vector: int) -> bool:
        if not self._begun:
            self._begun = True
            self.out = self.held()
            if self.spine is None:
                self._frozen = None
        else:
            delta, self._delta = self._delta, Block(self.width, self.diff_width)
            self.out = sorted_block(delta, 0 if self.spine is None else self.spine.order)
        return self.out.n > 0

    def resume(self) -> None:
        self._begun = True
        if self.spine is None:
            self._frozen = None

    def held(self) -> Block:
        """What the real operator held when this was made. Call it before the first ``run``."""
        frozen = self._frozen
        if frozen is None:
            return Block(self.width, self.diff_width)
        held = frozen.contents(self.context.since)
        if self.spine is not None:
            return held
        if self._back is not None:
            held = moved(held, self._back)
        block = Block(self.width, self.diff_width, max(held.n, 1))
        block.n = transfer(held.d, block.d, 1, LEAVE, frozen.shape, 0)
        return sorted_block(block)

    def timeless(self, most: int) -> Iterator[Block]:
        """The updates of ``held``, in the form of ``FrozenSpine.timeless``: without copying all of them."""
        for block in () if self._frozen is None else self._frozen.timeless(most):
            yield block if self.spine is not None or self._back is None else moved(block, self._back)

    def spines(self) -> list[Spine]:
        """None of its own."""
        return []

    def clear(self) -> None:
        self.out = Block(self.width, self.diff_width)


def moved(block: Block, how: Gather) -> Block:
    """Applies a gather to a block's updates."""
    made = Block(len(how.words), block.diff_width, max(block.n, 1))
    made.n = gather(block.d, made.d, program(how, block.width, 0))
    return made
