"""What a join emits: the memory that it may take, and sharing the join over threads.

Its delta is cut into shards, each with blocks of its own, which are then concatenated.

A shard whose blocks are large, or that has worked for long, returns before it continues, so that the thread that owns
the dataflow can check for a cancel and for memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ivm.errors import SqlError
from ivm.kernels.join import LATER_FULL, OUT_FULL, STATS
from ivm.kernels.memory import B_COUNT, B_ROOM
from ivm.rows import Words
from ivm.runtime.operator import Later, Operator
from ivm.trace.batch import Block
from ivm.trace.shards import put_together
from ivm.workers import run


class EmittingOperator(Operator):
    """A join, whose blocks grow with what it emits, as far as memory allows."""

    __slots__ = ()

    later: Later

    def blocks(self) -> list[Block]:
        return [self.out, self.later.block]

    def abandon(self) -> None:
        """Drops the work that is left of the pass."""
        raise NotImplementedError

    def _may_grow(self, block: Block) -> bool:
        """Whether a block may double its room. If not, a maintained join fails; in other modes the error is raised."""
        return self._may_take(2 * block.nbytes)

    def _may_take(self, size: int) -> bool:
        """Whether the join's blocks may take ``size`` more bytes."""
        return self._stands(self.context.refusal(size, sum(block.nbytes for block in self.blocks())))

    def _stands(self, error: SqlError | None) -> bool:
        """Whether there is no error; otherwise the join fails."""
        if error is None:
            return True
        self.abandon()
        self.out.clear()
        self.later = Later(self, self.width)
        self.fail(error)
        return False


class Shard:
    """A range of a delta (its descriptor), the kernel's progress in it, its output and its counters."""

    __slots__ = ("delta", "full", "later", "out", "state", "stats")

    def __init__(self, delta: Words, width: int, state: Sequence[int]) -> None:
        self.delta = delta
        self.state = np.array(state, np.int64)
        self.stats = np.zeros(STATS, np.int64)
        room = 2 * int(delta[B_COUNT])
        self.out, self.later = Block(width, 1, room), Block(width, 1, room)
        self.full: Block | None = None

    def go_on(self, kernel: Callable[[Shard], int], large: int, most: int) -> bool:
        """Calls the kernel until the shard has ended, or needs memory or a check. Whether it has ended.

        ``large``: the rows from which a block is not enlarged here. ``most``: the rows that one call may emit."""
        while True:
            for block in (self.out, self.later):
                block.d[B_ROOM] = min(block.room, block.n + most)
            result = kernel(self)
            full = self.out if result == OUT_FULL else self.later if result == LATER_FULL else None
            self.full = full if full is not None and full.d[B_ROOM] == full.room else None
            for block in (self.out, self.later):
                block.sync()
                block.d[B_ROOM] = block.room
            if self.full is None or self.full.room >= large:
                return result >= 0
            self.full.grow()

    @property
    def growth(self) -> int:
        """Bytes that it holds plus those that it needs to continue."""
        more = 0 if self.full is None else 2 * self.full.nbytes
        return self.out.nbytes + self.later.nbytes + more


def emit(
    parts: Sequence[Shard], kernel: Callable[[Shard], int], large: int, most: int, may_take: Callable[[int], bool]
) -> bool:
    """Runs all shards to the end. False if ``may_take`` refuses the bytes that they would hold."""
    waiting = list(parts)
    while waiting:
        ended = run([partial(part.go_on, kernel, large, most) for part in waiting])
        waiting = [part for part, done in zip(waiting, ended, strict=True) if not done]
        if waiting and not may_take(sum(part.growth for part in parts)):
            return False
        for part in waiting:
            if part.full is not None:
                part.full.grow()
    return True


def collect(parts: Sequence[Shard], out: Block, later: Block, stats: Words) -> None:
    """Appends the shards' output, in order, and adds up their counters."""
    for part in parts:
        stats += part.stats
    put_together([part.out for part in parts], out)
    put_together([part.later for part in parts], later)
