"""Rows that wait for their moment: temporal filters.

The source says by (moment, row, diff) that a row comes or goes at a moment. What is due passes; the rest waits in a
spine sorted by moment, and is emitted in the step in which the clock reaches it. So a row that nobody changes enters
and leaves at the cost of its own updates, and costs nothing meanwhile. After Materialize's temporal filters, which send
updates into the future instead; our ordinals are dense, so the future has none yet.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Self

import numpy as np

from ivm.distinct import distinct
from ivm.errors import unsupported
from ivm.graph import Wait
from ivm.kernels.memory import HEAD, L_COUNT, T_LAYERS
from ivm.kernels.read import collect
from ivm.moments import NEVER
from ivm.operators.base import UnaryOperator, refill
from ivm.rows import Words
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Operator, Scope
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from ivm.trace.spine import EVERYTHING, Spine

Updates = tuple[Words, Words, Words]


class WaitOperator(UnaryOperator):
    """Emits each update at the first ordinal, not before its own, at which its moment has come.

    Cost of a step: its delta, and what is due in it, with a search in each layer of the spine.
    """

    __slots__ = ("_held", "_passed", "_word", "next")

    SPEC = Wait

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, word: int) -> None:
        super().__init__(context, scope, source.width, source)
        assert source.diff_width == 1
        if scope.depth:
            raise unsupported("a temporal filter in a recursion")
        self._word = word
        self._held = self._empty()
        self._passed = -NEVER
        """No update waits for this moment or an earlier one."""
        self.next = NEVER
        """No update is due before this moment; NEVER: none waits."""
        context.waiting.append(self)

    def _empty(self) -> Spine:
        """A spine of rows [moment | row]."""
        return Spine(self.width + 1, 1, self.scope.shape, 1, None, self.context.since_of(self.scope.depth))

    def run(self, vector: int) -> bool:
        parts = [self._pass(*self.source.out.arrays())] if self.source.out.n else []
        now = self.context.moments.at(self.context.newest)
        if self.next <= now:
            parts.append(self._release(now))
        rows, times, diffs = (np.concatenate(columns) for columns in zip(*parts, strict=True)) if parts else _NOTHING
        if not len(times):
            return False
        if diffs.min() < 0 < diffs.max():  # what has come and gone already
            rows, times, diffs = sorted_block(Block.of(rows, times, diffs)).arrays()
        refill(self.out, rows, times, diffs)
        return True

    def _pass(self, rows: Words, times: Words, diffs: Words) -> Updates:
        """Of new updates, those that are due; the others wait."""
        moments = rows[:, self._word]
        reached = self.context.moments.reached(moments, self.context.newest)
        due = reached < NEVER
        waiting = ~due & (moments < NEVER)
        if waiting.any():
            self._hold(np.column_stack([moments, rows])[waiting], times[waiting], diffs[waiting])
            self.next = min(self.next, int(moments[waiting].min()))
        return rows[due], np.maximum(times[due], reached[due]), diffs[due]

    def _release(self, now: int) -> Updates:
        """What waits for a moment up to ``now``, which no longer waits then."""
        rows, times, diffs = self._until(now)
        if len(times):
            self._hold(rows, times, -diffs)
        self._advance(now)
        reached = self.context.moments.reached(rows[:, 0], self.context.newest)
        return rows[:, 1:], np.maximum(times, reached), diffs

    def due(self, now: int) -> Words:
        """The distinct moments up to ``now`` at which something happens, ascending."""
        if self.next > now:
            return np.zeros(0, np.int64)
        rows, times, diffs = self._until(now)
        rows = sorted_block(Block.of(rows, np.zeros_like(times), diffs)).arrays()[0]
        if not len(rows):
            self._advance(now)
        return distinct(rows[:, 0])

    def _hold(self, rows: Words, times: Words, diffs: Words) -> None:
        self._held.insert(sorted_block(Block.of(rows, times, diffs)))

    def _until(self, now: int) -> Updates:
        """The updates that wait for a moment up to ``now``, those of equal rows and times added up."""
        parts = [Block.of(*columns) for columns in self._layers(now)]
        both = [np.concatenate(columns) for columns in zip(*(part.arrays() for part in parts), strict=True)]
        return sorted_block(Block.of(*both)).arrays()

    def _layers(self, now: int) -> Iterator[Updates]:
        """The same in each layer, without those that have left."""
        rows, times, diffs = self._small().arrays()
        chosen = (rows[:, 0] > self._passed) & (rows[:, 0] <= now)
        yield rows[chosen], times[chosen], diffs[chosen]
        for batch in self._held.parts:
            rows, times, diffs = batch.arrays()
            start, stop = (_after(rows, moment) for moment in (self._passed, now))
            yield rows[start:stop], times[start:stop], diffs[start:stop]

    def _small(self) -> Block:
        """A copy of the spine's small layer."""
        desc = self._held.desc.copy()
        desc[T_LAYERS] = 1
        block = Block(self.width + 1, 1, max(int(desc[HEAD + L_COUNT]), 1))
        collect(desc, block.d, EVERYTHING, 0)
        block.sync()
        return block

    def _advance(self, now: int) -> None:
        """Notes that nothing waits up to ``now``."""
        self._passed = max(self._passed, now)
        least = NEVER
        small = self._small().arrays()[0][:, 0]
        later = small[small > self._passed]
        if len(later):
            least = int(later.min())
        for batch in self._held.parts:
            at = _after(batch.rows, self._passed)
            if at < batch.n:
                least = min(least, int(batch.rows[at, 0]))
        self.next = least

    def twin(self) -> Self:
        twin = super().twin()
        twin._held, twin._passed, twin.next = twin._empty(), -NEVER, NEVER
        return twin

    def spines(self) -> list[Spine]:
        return [*super().spines(), self._held]

    def move(self, context: FlowContext, scope: Scope, cell: Words, find: Callable[[Operator], Operator]) -> None:
        self.release()
        super().move(context, scope, cell, find)
        context.waiting.append(self)

    def release(self) -> None:
        self.context.waiting.remove(self)

    def forget(self) -> None:
        if self in self.context.waiting:
            self.release()
        super().forget()


_NOTHING: Updates = np.zeros((0, 1), np.int64), np.zeros(0, np.int64), np.zeros((0, 1), np.int64)


def _after(rows: Words, moment: int) -> int:
    """The first of sorted rows whose moment is later than this one."""
    return bisect_right(range(len(rows)), moment, key=lambda i: int(rows[i, 0]))
