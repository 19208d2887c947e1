"""The join of two arrangements by their keys (bilinear): each delta meets the other side's trace.

Every pair of updates meets once, when the later of the two is processed. In one pass the left delta meets the right
trace with the right delta in it, the right delta the left trace without the left delta (which is subtracted).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ivm.graph import Gather
from ivm.kernels.join import J_POSITION, J_RAN, JOIN_WORDS, OUT_FULL, join
from ivm.kernels.memory import B_ROOM, address
from ivm.kernels.program import J_FRESH, JOIN
from ivm.operators.base import LARGE, check_gather, program
from ivm.operators.emitting import EmittingOperator, Shard, collect, emit
from ivm.rows import Words
from ivm.runtime.context import FlowContext, Mode
from ivm.runtime.operator import Held, Later, Operator, Scope
from ivm.runtime.program import Instruction, Program
from ivm.trace.batch import Block
from ivm.trace.shards import piece, ranges_of
from ivm.workers import SEARCHED, parts

SLICE: Final = 1 << 22
"""The rows that one kernel call may emit, limited so that a cancel is noticed soon."""


class Side:
    """One side of a join: ``delta``'s ``out`` has this pass's updates, ``arrangement`` holds everything.

    ``delta`` is the arrangement itself, or the operator that brings its updates into the join's loop. ``delay``: how
    many rounds later than in the arrangement's spine the updates count here.
    """

    __slots__ = ("arrangement", "delay", "delta")

    def __init__(self, arrangement: Operator, delta: Operator, delay: int = 0) -> None:
        self.arrangement = arrangement
        self.delta = delta
        self.delay = delay


class JoinOperator(EmittingOperator):
    """Cost of a pass: a seek for each key of a delta and layer of the other side, and the matches.

    In a query, what a pass emits outside of loops is cut into slices of ``LARGE`` rows (fuel): the scheduler lets
    everything downstream consume a slice before the next is made, so that a large product is never held in memory.
    """

    __slots__ = ("_halves", "_held", "_last", "_program", "_state", "left", "right")

    def __init__(self, context: FlowContext, scope: Scope, left: Side, right: Side, how: Gather) -> None:
        super().__init__(context, scope, len(how.words))
        a, b = left.arrangement, right.arrangement
        assert a.key_width == b.key_width, "joined arrangements have keys of one width"
        assert a.diff_width == 1
        assert b.diff_width == 1
        check_gather(how, a.width + b.width - a.key_width)
        self.left = left
        self.right = right
        self._program = program(how, a.width, a.key_width)
        self._state = np.array([0, 0, -1, 0], np.int64)
        assert len(self._state) == JOIN_WORDS
        assert (J_POSITION, J_RAN) == (2, 3)
        self.later = Later(self, self.width)
        self._last = scope.last_round
        self._halves: list[_Half] = []
        self._held: Block | None = None

    def inputs(self) -> list[Operator]:
        return [self.left.delta, self.right.delta]

    def needs(self) -> list[Operator]:
        return self.inputs() + [side.arrangement for side in (self.left, self.right) if not side.delay]

    def rebind(self, find: Callable[[Operator], Operator]) -> None:
        assert not self._halves
        self._held = None
        for side in (self.left, self.right):
            side.arrangement, side.delta = find(side.arrangement), find(side.delta)

    def resume(self) -> None:
        super().resume()
        self._state[J_RAN] = 1

    def run(self, vector: int) -> bool:
        out = self.out
        later = self.later
        if self.error is not None:
            return False
        if self._halves:
            return self._go_on(vector)
        if later.due == vector:
            later.take(vector, out)
        start = later.block.n
        a = self.left.delta.out
        b = self.right.delta.out
        nothing = self.context.nothing
        both = a.n > 0 and b.n > 0
        halves = self._halves
        ran = self._state[J_RAN] != 0
        if a.n and not (both and not ran and b.n < a.n):
            halves.append((a, self.right, nothing, True))
            if both and not ran:
                both = False
                b = _EMPTY
        if b.n:
            # An aliased variable's arrangement is the body itself; the new updates here are the variable's own delta.
            fresh = self.left.delta if self.left.delay else self.left.arrangement
            self._held = fresh.out  # its descriptor may be needed longer than ``fresh.out`` refers to it
            halves.append((b, self.left, fresh.out.d if both and ran else nothing, False))
        self._state[J_RAN] = 1
        self._go_on(vector)
        if later.block.n > start:
            later.added(start)
        return out.n > 0

    def _go_on(self, vector: int) -> bool:
        """Works on the remaining halves until the slice is full. Returns whether ``out`` has updates."""
        halves = self._halves
        while halves:
            if not self._half(*halves[0], vector):
                self.scope.unfinished.append(self)
                return True
            del halves[:1]
        self._held = None
        return self.out.n > 0

    def instruction(self, program: Program) -> Instruction | None:
        sides = [
            [
                address(spine.cell),
                side.arrangement.scope.shape,
                side.delay,
                program.row(side.arrangement) if side.delay else 0,
            ]
            for side in (self.left, self.right)
            if (spine := side.arrangement.spine) is not None
        ]
        fresh = self.left.delta if self.left.delay else self.left.arrangement
        words = [
            program.row(self.right.delta), address(self._program), len(self._program), address(self._state), self._last,
            program.out(fresh, program.row(self) + J_FRESH), *sides[0], *sides[1],
        ]  # fmt: skip
        return Instruction(JOIN, program.row(self.left.delta), self.later.block, words, SEARCHED)

    def contents(self, held: Held) -> Block:
        return self.twin().product(held(self.left.delta))

    def product(self, left: Block) -> Block:
        """All updates of the join if its left side holds these. On a ``twin`` only."""
        self.later = Later(self, self.width)
        self._state = np.array([0, 0, -1, 0], np.int64)
        self._half(left, self.right, self.context.nothing, True, -1)
        return self.later.block if self.scope.depth else self.out

    def _half(self, delta: Block, other: Side, minus: Words, left: bool, vector: int) -> bool:
        """Joins one delta with the other side. False if the slice is full before the delta's end."""
        context = self.context
        out = self.out
        later = self.later.block
        # What an aliased loop variable emitted in this pass counts only from the next round on.
        early = other.arrangement.out.d if other.delay else context.nothing
        spine = other.arrangement.spine
        assert spine is not None
        if parts(delta.n, SEARCHED) > 1 and context.mode is not Mode.ONCE and self._state[J_POSITION] < 0:
            return self._half_in_parts(delta, other, minus, early, left, vector)
        while True:
            sliced = out.room > SLICE or later.room > SLICE
            if sliced:
                for block in (out, later):
                    block.d[B_ROOM] = min(block.room, block.n + SLICE)
            result = join(
                delta.d, spine.desc, minus, early, out.d, later.d, self._program, self._state, context.stats, left,
                other.arrangement.scope.shape, self.scope.shape, other.delay, vector, self._last,
            )  # fmt: skip
            if sliced:
                for block in (out, later):
                    block.d[B_ROOM] = block.room
            if result >= 0:
                break
            full = out if result == OUT_FULL else later
            out.sync()
            later.sync()
            if full.n < full.room:
                if vector >= 0 and context.cancel.is_set() and not self._may_grow(full):
                    return True
                continue
            if full.room >= LARGE:
                if context.mode is Mode.ONCE and not self.scope.depth:
                    return False
                if vector >= 0 and not self._may_grow(full):
                    return True
            full.grow()
        out.n = result & 0xFFFFFFFF
        later.n = result >> 32
        self._stands(context.uncounted(vector < 0))
        return True

    def _half_in_parts(
        self, delta: Block, other: Side, minus: Words, early: Words, left: bool, vector: int
    ) -> bool:  # fmt: skip
        """``_half`` in parallel, the delta cut between keys. Large blocks of a shard grow only if memory and cancels
        allow."""
        context = self.context
        spine = other.arrangement.spine
        assert spine is not None
        trace, shapes = spine.desc, (other.arrangement.scope.shape, self.scope.shape)
        ranges = ranges_of(delta, spine.key_width, parts(delta.n, SEARCHED))
        found = [Shard(piece(delta, *ends), self.width, (0, 0, -1, 1)) for ends in ranges]

        def half(part: Shard) -> int:
            return join(
                part.delta, trace, minus, early, part.out.d, part.later.d, self._program, part.state, part.stats, left,
                *shapes, other.delay, vector, self._last,
            )  # fmt: skip

        if emit(found, half, LARGE, SLICE, lambda size: vector < 0 or self._may_take(size)):
            collect(found, self.out, self.later.block, context.stats)
            self._stands(context.uncounted(vector < 0))
        return True

    def abandon(self) -> None:
        self._state[:J_RAN] = (0, 0, -1)
        self._halves.clear()


_Half = tuple[Block, Side, Words, bool]
"""A delta, the side that it meets, the block subtracted from that side, and whether the delta is the left side's."""
_EMPTY = Block(1, 1, 1)
