"""The join of two arrangements by their keys (bilinear): each delta meets the other side's trace.

Every pair of updates is met once, when the later of the two is processed. In one pass the left delta meets the right
trace with the right delta in it, the right delta the left trace without the left delta (which is subtracted).
"""

from __future__ import annotations

import numpy as np

from ivm.batch import Block, Words
from ivm.graph import Gather
from ivm.kernels.join import J_POSITION, JOIN_WORDS, OUT_FULL, join
from ivm.operators.base import check_gather, program
from ivm.scheduler import Core, Later, Operator, Scope


class Side:
    """One side of a join: ``delta``'s out is what is new in this pass, ``arrangement`` holds everything.

    ``delta`` is the arrangement itself, or what brings its updates into the join's loop. ``delay``: how many rounds
    later than in the arrangement's spine the updates count here.
    """

    __slots__ = ("arrangement", "delay", "delta")

    def __init__(self, arrangement: Operator, delta: Operator, delay: int = 0) -> None:
        self.arrangement = arrangement
        self.delta = delta
        self.delay = delay


class JoinOperator(Operator):
    """Cost of a pass: a seek for each key of a delta and layer of the other side, and the matches."""

    __slots__ = ("_last", "_later", "_program", "_state", "left", "right")

    def __init__(self, core: Core, scope: Scope, left: Side, right: Side, how: Gather) -> None:
        super().__init__(core, scope, len(how.words))
        a, b = left.arrangement, right.arrangement
        assert a.key_width == b.key_width, "joined arrangements have keys of one width"
        assert a.diff_width == 1
        assert b.diff_width == 1
        check_gather(how, a.width + b.width - a.key_width)
        self.left = left
        self.right = right
        self._program = program(how, a.width, a.key_width)
        self._state = np.array([0, 0, -1], np.int64)
        assert len(self._state) == JOIN_WORDS
        assert J_POSITION == 2
        self._later = Later(self, self.width)
        self._last = scope.last_round

    def run(self, vector: int) -> bool:
        out = self.out
        later = self._later
        if later.due == vector:
            later.take(vector, out)
        start = later.block.n
        a = self.left.delta.out
        b = self.right.delta.out
        nothing = self.core.nothing
        both = a.n > 0 and b.n > 0
        if a.n and not (both and not self.ran and b.n < a.n):
            self._half(a, self.right, nothing, True, vector)
            if both and not self.ran:
                both = False
                b = _EMPTY
        if b.n:
            # An aliased variable's arrangement is the body itself: what is new here is the variable's own delta.
            fresh = self.left.delta if self.left.delay else self.left.arrangement
            minus = fresh.out.d if both and self.ran else nothing
            self._half(b, self.left, minus, False, vector)
        self.ran = True
        if later.block.n > start:
            later.added(start)
        return out.n > 0

    def replay(self, left: Operator) -> Block:
        """All updates of the join, on a copy: ``left`` emits the left side's contents."""
        self._later = Later(self, self.width)
        self._state = np.array([0, 0, -1], np.int64)
        self._half(left.out, self.right, self.core.nothing, True, -1)
        block = self._later.block
        return block if self.scope.depth else self.out

    def _half(self, delta: Block, other: Side, minus: Words, left: bool, vector: int) -> None:
        core = self.core
        out = self.out
        later = self._later.block
        # What an aliased loop variable emitted in this very pass counts only from the next round on.
        early = other.arrangement.out.d if other.delay else core.nothing
        spine = other.arrangement.spine
        assert spine is not None
        while True:
            result = join(
                delta.d, spine.desc, minus, early, out.d, later.d, self._program, self._state, core.stats, left,
                other.arrangement.scope.depth, self.scope.depth, other.delay, vector, self._last,
            )  # fmt: skip
            if result >= 0:
                break
            full = out if result == OUT_FULL else later
            full.sync()
            full.grow()
        out.n = result & 0xFFFFFFFF
        later.n = result >> 32


_EMPTY = Block(1, 1, 1)
