"""What operators share: operators of one input, gather programs, and refilling blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

import numpy as np

from ivm.graph import Gather
from ivm.kernels.memory import B_COUNT, address
from ivm.rows import Words
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Operator, Scope
from ivm.trace.batch import Block
from ivm.trace.spine import Spine

LARGE: Final = 1 << 20
"""From this many rows on, a block grows only after a check of memory and cancellation; in a query, a slice ends
here."""


class UnaryOperator(Operator):
    """An operator that reads one other."""

    __slots__ = ("source",)

    def __init__(
        self, context: FlowContext, scope: Scope, width: int, source: Operator, diff_width: int = 1
    ) -> None:  # fmt: skip
        super().__init__(context, scope, width, diff_width)
        self.source = source

    def inputs(self) -> list[Operator]:
        return [self.source]

    def rebind(self, find: Callable[[Operator], Operator]) -> None:
        self.source = find(self.source)


class KeyedOperator(UnaryOperator):
    """An operator that turns an arrangement into another one of the same keys, which it keeps only if asked to."""

    __slots__ = ()

    ARRANGED = True

    def arrange(self) -> None:
        """Keeps an output spine from now on."""
        if self.spine is None:
            self.scope.changed(self)
            self.spine = self.spine_of(self.width)

    def spine_of(self, width: int) -> Spine:
        """An empty spine of rows [key | values]: keys in the order of its input, values as integers."""
        order = self.read.order_words
        if order is not None:
            order = np.concatenate([order[: 1 + self.key_width], np.zeros(width - self.key_width, np.int64)])
            if not order[1:].any():
                order = None
        context, scope = self.context, self.scope
        return Spine(width, self.key_width, scope.shape, 1, order, context.since_of(scope.depth))

    @property
    def read(self) -> Spine:
        """Its input's spine."""
        assert self.source.spine is not None
        return self.source.spine

    def traces(self) -> list[int]:
        """The words of its row that lead to its input's trace and its own (0: none)."""
        return [address(self.read.cell), 0 if self.spine is None else address(self.spine.cell)]

    def keep(self) -> None:
        """Inserts ``out`` into its spine, if it has one."""
        if self.out.n and self.spine is not None:
            self.spine.insert(self.out)


class FailingOperator(UnaryOperator):
    """An operator whose function may fail for some rows: ``errors`` holds the error rows (width 1) of the pass."""

    __slots__ = ("errors",)

    def __init__(
        self, context: FlowContext, scope: Scope, width: int, source: Operator, diff_width: int = 1
    ) -> None:  # fmt: skip
        super().__init__(context, scope, width, source, diff_width)
        self.errors = Block(1)

    def twin(self) -> Self:
        twin = super().twin()
        twin.errors = Block(1)
        return twin

    def clear(self) -> None:
        super().clear()
        self.errors.clear()

    def settle(self) -> None:
        super().settle()
        self.errors.clear()


def program(gather: Gather, left_width: int, key_width: int) -> Words:
    """The gather encoded for kernels (``ivm.kernels.blocks``).

    Its source is [key | left val | right val] with a left row of ``left_width`` words; a plain row is a left row.
    """
    words = [len(gather.words), len(gather.bits), len(gather.drop_if), left_width, key_width, *gather.words]
    for entry in gather.bits:
        words += entry
    for drop in gather.drop_if:
        words += drop
    return np.array(words, np.int64)


def check_gather(gather: Gather, width: int) -> None:
    """Asserts that a gather reads only words within a source of this width, and sets bits only within its own
    output."""
    assert all(-1 <= word < width for word in gather.words), f"{gather} on {width} words"
    for word, bit, target, to in gather.bits:
        assert 0 <= word < width
        assert 0 <= target < len(gather.words)
        assert 0 <= bit < 64
        assert 0 <= to < 64
    assert all(0 <= word < width and 0 <= bit < 64 for word, bit in gather.drop_if)


def is_identity(gather: Gather, width: int) -> bool:
    """Whether the gather leaves rows of this width as they are."""
    return not gather.bits and not gather.drop_if and gather.words == tuple(range(width))


def inverse(gather: Gather, width: int) -> Gather | None:
    """The gather that undoes this one on rows of ``width`` words; None when it loses something."""
    if gather.bits or gather.drop_if or not set(range(width)) <= set(gather.words):
        return None
    return Gather(tuple(gather.words.index(word) for word in range(width)))


def refill(block: Block, rows: Words, times: Words, diffs: Words) -> None:
    """Replaces a block's contents by copies of these updates; its descriptor keeps its address."""
    count = len(times)
    block.reset()
    block.reserve(count)
    block.rows[:count] = rows
    block.times[:count] = times
    block.diffs[:count] = diffs
    block.n = count
    block.d[B_COUNT] = count
