"""As-of joins on values: each left row with the last right row of its key not after it (``ivm.kernels.asof``)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ivm.errors import SqlError
from ivm.graph import AsOf, Gather
from ivm.kernels.asof import asof_left, asof_right, in_time_order, times_of
from ivm.kernels.memory import address
from ivm.operators.base import LARGE, check_gather, program
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Operator, Scope
from ivm.trace.batch import Block


class AsOfOperator(Operator):
    """Cost of a pass: a seek for each left update; for each right update a seek, and the left rows up to the next point
    that has a right row. A run of retracted rows that are not merged away yet costs one search by rank, whatever its
    length."""

    __slots__ = ("_none", "_prefix", "_program", "_strict", "left", "right")

    SPEC = AsOf

    def __init__(
        self, context: FlowContext, scope: Scope, left: Operator, right: Operator, gather: Gather, prefix: int,
        strict: bool, none: tuple[int, ...] | None,
    ) -> None:  # fmt: skip
        super().__init__(context, scope, len(gather.words))
        if scope.depth:
            raise SqlError("0A000", "an ASOF JOIN of what a recursion changes is not supported", _IN_LOOPS)
        assert left.key_width == right.key_width <= prefix <= min(left.width, right.width)
        assert left.diff_width == right.diff_width == 1
        check_gather(gather, left.width + right.width - left.key_width)
        self.left = left
        self.right = right
        self._program = program(gather, left.width, left.key_width)
        self._prefix = prefix
        self._strict = strict
        self._none = None if none is None else np.array(none, np.int64)
        assert self._none is None or len(self._none) == right.width

    def inputs(self) -> list[Operator]:
        return [self.left, self.right]

    def rebind(self, find: Callable[[Operator], Operator]) -> None:
        self.left, self.right = find(self.left), find(self.right)

    def run(self, vector: int) -> bool:
        if self.error is None:
            self._match(self.left.out, self.right.out)
        self.ran = True
        return self.out.n > 0

    def _match(self, left: Block, right: Block) -> None:
        context, out = self.context, self.out
        assert self.left.spine is not None
        assert self.right.spine is not None
        for spine in (self.left.spine, self.right.spine):
            if not spine.ranked:
                spine.rank()
        trace = self.right.spine.desc
        none = 0 if self._none is None else address(self._none)
        out.reserve(min(left.n + 2 * right.n, LARGE))
        done = 0
        while done < left.n:
            done = asof_left(
                left.d, done, trace, right.d, context.nothing, out.d, self._program, none, self._prefix, self._strict,
                context.stats,
            )  # fmt: skip
            if done < left.n and not self._grow():
                return
        if not right.n:
            out.sync()
            return
        times = times_of(left.d, right.d)
        sequence = in_time_order(right.d)
        done = 0
        while done < len(sequence):
            done = asof_right(
                right.d, sequence, done, times, not self.ran, self.left.spine.desc, left.d, trace, context.nothing,
                out.d, self._program, none, self._prefix, self._strict, context.stats,
            )  # fmt: skip
            if done < len(sequence) and not self._grow():
                return
        out.sync()

    def _grow(self) -> bool:
        """Makes room for more output. False if that is refused."""
        out = self.out
        out.sync()
        if out.room >= LARGE:
            error = self.context.refusal(2 * out.nbytes, out.nbytes)
            if error is not None:
                out.clear()
                self.fail(error)
                return False
        out.grow()
        return True


_IN_LOOPS = (
    "Inside a loop times are only partially ordered, and a row's match would have to be looked for again in every "
    "round that any row of its key has changed in."
)
