"""Entering, repeating and leaving a loop: enter, variable, feedback, delay, leave, overflow."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from ivm.errors import SqlError, unsupported
from ivm.graph import Delay, Priority
from ivm.kernels.blocks import ENTER, LEAVE, NEXT, SAME
from ivm.kernels.delay import delay
from ivm.kernels.memory import address
from ivm.kernels.program import DELAY, ENTERING, FEEDBACK, LEAVING, R_SOURCE, TAP, VARIABLE
from ivm.operators.base import UnaryOperator
from ivm.rows import Mask, Words
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import IN_RUNNING_LOOP, Held, Later, Operator, Scope
from ivm.runtime.program import Instruction, Program
from ivm.time import all_bits
from ivm.trace.batch import BIG, Block
from ivm.trace.shards import copied, sort_into, sorted_block


class EnterOperator(UnaryOperator):
    """A collection of the parent scope inside a loop, at round 0. An arrangement's updates keep their order."""

    __slots__ = ()

    IMPLICIT = True

    def __init__(self, context: FlowContext, scope: Scope, source: Operator) -> None:
        super().__init__(context, scope, source.width, source, source.diff_width)
        assert source.scope is scope.parent
        self.key_width = source.key_width

    def read_running(self, held: Held, new: Collection[int]) -> list[Operator]:
        return [source for source in self.inputs() if id(source) not in new]

    def contents(self, held: Held) -> Block:
        return _changed(held(self.source), ENTER, self.source.scope.shape, self.scope.shape)

    def wake(self) -> None:
        """Called in the parent's pass: enters the loop at round 0 of its vector."""
        self.scope.enter(self)

    def run(self, vector: int) -> bool:
        given = self.source.out
        shapes = (self.source.scope.shape, self.scope.shape)
        if given.n > BIG:  # entering a loop shifts times
            self.out = given.shifted(all_bits(shapes[1]) - all_bits(shapes[0]))
            return True
        if self.out.room > BIG:
            self.out = Block(self.width, self.diff_width)  # the old block's rows may be a source's
        out = self.out
        out.reserve(given.n)
        out.n = copied(given, out, 1, ENTER, *shapes)
        return out.n > 0

    def instruction(self, program: Program) -> Instruction | None:
        source = program.out(self.source, program.row(self) + R_SOURCE)
        return Instruction(ENTERING, source, words=[program.scope(self.scope)])


class VariableOperator(Operator):
    """A loop's variable: emits what its body emitted one round earlier."""

    __slots__ = ("body", "following", "overflow")

    LINEAR = True

    def __init__(self, context: FlowContext, scope: Scope, width: int) -> None:
        super().__init__(context, scope, width)
        self.overflow: OverflowOperator | None = None
        """The operator that gets what the body emits in the last round."""
        # Invariant: all at one loop vector, since the next round comes before everything else that is due in the loop.
        self.following = Block(width)
        self.body: Operator | None = None

    @property
    def feedback(self) -> Operator | None:
        return self.body

    def retained(self) -> list[Operator]:
        return [] if self.body is None else [self.body]

    @property
    def leavers(self) -> list[Operator]:
        return [] if self.overflow is None else [self.overflow]

    def run(self, vector: int) -> bool:
        out = self.out
        following = self.following
        if following.n > BIG and not out.n:
            self.out, self.following = following, Block(self.width)
            self.scope.changed()  # programs contain the blocks' addresses
            return True
        return self.run_called(vector)

    def run_called(self, vector: int) -> bool:
        out, following = self.out, self.following
        out.reserve(following.n)
        out.n = copied(following, out, 1, SAME, 0, 0)
        following.clear()
        return out.n > 0

    def instruction(self, program: Program) -> Instruction | None:
        return Instruction(VARIABLE, own=self.following)

    def blocks(self) -> list[Block]:
        return [self.out, self.following]

    def forget(self) -> None:
        super().forget()
        self.body = self.overflow = None

    def contents(self, held: Held) -> Block:
        """The body's contents, one round later; those of a last round are dropped."""
        assert self.body is not None
        rows, times, diffs = held(self.body).arrays()
        go_on = ~_of_last_round(times, self.scope)
        return Block.of(rows[go_on], times[go_on] + 1, diffs[go_on])


class DelayedOperator(UnaryOperator):
    """Stands in for an arrangement of a variable that is not kept: its body's spine holds the same, one round earlier.

    It never runs; joins read the variable and the body.
    """

    __slots__ = ()

    def __init__(self, source: VariableOperator, key_width: int) -> None:
        super().__init__(source.context, source.scope, source.width, source)
        self.key_width = key_width

    def run(self, vector: int) -> bool:
        raise AssertionError("not linked to anything")


ROOM: Final = 512


class DelayOperator(UnaryOperator):
    """Introduces rows at the round of their priority (PrioritizedFP's ingress, CIDR 2013, section 4.2). An insertion
    and its retraction are of one row and so of one priority: a row retracted before its round is never seen. Cost: the
    delta and, for each due round, everything that waits."""

    __slots__ = ("_how",)

    SPEC = Delay
    later: Later

    def __init__(
        self, context: FlowContext, scope: Scope, source: Operator, word: int, priority: Priority, stride: int
    ) -> None:  # fmt: skip
        super().__init__(context, scope, source.width, source, source.diff_width)
        assert scope.depth, "only in a loop"
        assert 0 <= word < source.width
        assert stride > 0
        self.later = Later(self, self.width, self.diff_width)
        self._how = np.array([word, priority.value, stride, scope.last_round, scope.return_at_limit], np.int64)
        for block in self.blocks():
            block.reserve(ROOM)  # with less, a program leaves the work to Python

    def run(self, vector: int) -> bool:
        out = self.out
        later = self.later
        if later.due == vector:
            later.take(vector, out)
        given = self.source.out
        if given.n:
            start = later.block.n
            self._delay(given, out, later.block, vector)
            if later.block.n > start:
                later.added(start)
        return out.n > 0

    def _delay(self, given: Block, out: Block, later: Block, vector: int) -> None:
        out.reserve(out.n + given.n)
        later.reserve(later.n + given.n)
        delay(given.d, out.d, later.d, self._how, vector, self.scope.shape)
        out.sync()
        later.sync()

    def contents(self, held: Held) -> Block:
        block = Block(self.width, self.diff_width)
        self._delay(held(self.source), Block(self.width, self.diff_width), block, -1)
        return block

    def instruction(self, program: Program) -> Instruction | None:
        return Instruction(DELAY, program.row(self.source), self.later.block, [address(self._how)])

    def blocks(self) -> list[Block]:
        return [self.out, self.later.block]


class FeedbackOperator(UnaryOperator):
    """Passes a body's updates to its variable for the next round, and enforces the loop's limit of rounds."""

    __slots__ = ("_mask", "variable")

    IMPLICIT = True

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, variable: VariableOperator) -> None:
        super().__init__(context, scope, 0, source)
        assert source.width == variable.width, "a variable's body has the variable's width"
        assert source.scope is variable.scope, "a variable's body is in the variable's scope"
        self.variable = variable
        self._mask = (1 << scope.width) - 1

    def run(self, vector: int) -> bool:
        scope = self.scope
        given = self.source.out
        if not given.n:
            return False
        variable = self.variable
        now = vector & self._mask
        ended = scope.stride > 0 and now % scope.stride >= scope.last_of_priority
        if ended or now >= scope.last_round:
            if variable.overflow is not None:
                variable.overflow.collect(given, scope)
            elif not self._is_idle:
                scope.fail(SqlError("54001", f"recursion did not end within {scope.rounds} rounds"))
            return False
        block = variable.following
        assert not block.n
        if given.n > block.room:
            block.reserve(given.n)
        block.n = copied(given, block, 1, NEXT, 0, 0)
        scope.schedule(vector + 1, variable)
        return False

    @property
    def _is_idle(self) -> bool:
        """Whether updates in the last round are dropped: the loop returns there, or another variable's overflow reports
        them."""
        return self.variable.overflow is None and (self.scope.return_at_limit or self.scope.overflows > 0)

    def instruction(self, program: Program) -> Instruction | None:
        scope = self.scope
        words = [program.row(self.variable), scope.last_round, scope.stride, scope.last_of_priority, self._is_idle]
        return Instruction(FEEDBACK, program.row(self.source), None, words)

    def blocks(self) -> list[Block]:
        overflow = self.variable.overflow
        return [self.out, self.variable.following, *([] if overflow is None else [overflow.gathered])]

    def fail(self, error: SqlError) -> None:
        """A loop fails as a whole."""
        if self.error is None:
            self.error = error
            self.variable.fail(error)
            if self.variable.overflow is not None:
                self.variable.overflow.fail(error)


class LeavingOperator(UnaryOperator):
    """Emits, outside of a loop, what was gathered inside during its run, consolidated without the round."""

    __slots__ = ("gathered",)

    def __init__(self, context: FlowContext, scope: Scope, source: Operator) -> None:
        super().__init__(context, scope, source.width, source, source.diff_width)
        assert source.scope.parent is scope
        self.gathered = Block(source.width, source.diff_width)

    def inputs(self) -> list[Operator]:
        return []

    def needs(self) -> list[Operator]:
        return [self.source]

    def contents(self, held: Held) -> Block:
        return sorted_block(_changed(held(self.source), LEAVE, self.source.scope.shape, 0))

    def leave_again(self, held: Block) -> None:
        """Emits updates, already without their round, from a loop that is already running when new nodes are
        hydrated."""
        if self.scope.depth:
            raise unsupported(IN_RUNNING_LOOP)
        waiting = self.gathered
        waiting.reserve(held.n)
        waiting.n = copied(held, waiting, 1, SAME, 0, 0)
        self.scope.leaving.append(self)

    def collect(self, given: Block, loop: Scope) -> None:
        """Gathers updates from the loop's pass."""
        gathered = self.gathered
        if not gathered.n:
            loop.leaving.append(self)
        if gathered.n + given.n > gathered.room:
            gathered.reserve(gathered.n + given.n)
        gathered.n = copied(given, gathered, 1, LEAVE, loop.shape, 0)

    def left_out(self) -> None:
        self.gathered.clear()

    def run(self, vector: int) -> bool:
        """Called when the loop has run: emits in the enclosing pass."""
        if not self.run_called(vector):
            return False
        self.scope.touched.append(self)
        for consumer in self.consumers:
            consumer.wake()
        return True

    def run_called(self, vector: int) -> bool:
        out = self.out
        gathered = self.gathered
        out.reserve(gathered.n)
        out.n = sort_into(gathered, out, 0)
        gathered.clear()
        return out.n > 0

    def instruction(self, program: Program) -> Instruction | None:
        return Instruction(LEAVING, own=self.gathered)

    def blocks(self) -> list[Block]:
        return [self.out, self.gathered]


class LeaveTap(UnaryOperator):
    """Gathers a loop's collection for its Leave."""

    __slots__ = ("leave",)

    def __init__(self, context: FlowContext, scope: Scope, source: Operator, leave: LeaveOperator) -> None:
        super().__init__(context, scope, 0, source)
        self.leave = leave

    def read_running(self, held: Held, new: Collection[int]) -> list[Operator]:
        if id(self.source) not in new:
            self.leave.leave_again(_changed(held(self.source), LEAVE, self.source.scope.shape, 0))
        return []

    def run(self, vector: int) -> bool:
        if self.source.out.n:
            self.leave.collect(self.source.out, self.scope)
        return False

    def instruction(self, program: Program) -> Instruction | None:
        return Instruction(TAP, program.row(self.source), self.leave.gathered)

    @property
    def leavers(self) -> list[Operator]:
        return [self.leave]

    def blocks(self) -> list[Block]:
        return [self.out, self.leave.gathered]

    def settle(self) -> None:
        leaving = self.scope.leaving
        if self.leave.gathered.sync() and self.leave not in leaving:
            leaving.append(self.leave)

    def fail(self, error: SqlError) -> None:
        """Fails the operators outside too."""
        self.leave.fail(error)


class LeaveOperator(LeavingOperator):
    """A loop's collection outside of the loop."""

    __slots__ = ("tap",)

    def __init__(self, context: FlowContext, scope: Scope, source: Operator) -> None:
        super().__init__(context, scope, source)
        self.tap = LeaveTap(context, source.scope, source, self)

    def retained(self) -> list[Operator]:
        return [self.tap]

    def forget(self) -> None:
        super().forget()
        del self.tap


class OverflowOperator(LeavingOperator):
    """Emits, outside of the loop, what a variable's body still changed in the loop's last round."""

    __slots__ = ()

    def __init__(self, context: FlowContext, scope: Scope, source: VariableOperator) -> None:
        super().__init__(context, scope, source)
        assert source.overflow is None, "a variable has one overflow"
        source.overflow = self
        source.scope.overflows += 1

    def release(self) -> None:
        self.variable.overflow = None
        self.source.scope.overflows -= 1

    @property
    def variable(self) -> VariableOperator:
        """The variable whose overflow it is."""
        assert isinstance(self.source, VariableOperator)
        return self.source

    def read_running(self, held: Held, new: Collection[int]) -> list[Operator]:
        if id(self.variable) not in new:
            self.leave_again(self.contents(held))
        return []

    def contents(self, held: Held) -> Block:
        """The body's updates of the last round, or of a priority's last."""
        assert self.variable.body is not None
        rows, times, diffs = held(self.variable.body).arrays()
        loop = self.source.scope
        last = _of_last_round(times, loop)
        return sorted_block(_changed(Block.of(rows[last], times[last], diffs[last]), LEAVE, loop.shape, 0))


def _changed(given: Block, change: int, shape: int, to_shape: int) -> Block:
    """A copy of a block with its times changed (``ivm.kernels.blocks.transfer``)."""
    block = Block(given.width, given.diff_width, max(given.n, 1))
    block.n = copied(given, block, 1, change, shape, to_shape)
    return block


def _of_last_round(times: Words, loop: Scope) -> Mask:
    """A mask of the times in the loop's last round, or in a priority's last."""
    rounds = times & ((1 << loop.width) - 1)
    last: Mask = rounds == loop.last_round
    if loop.stride:
        last |= rounds % loop.stride == loop.last_of_priority
    return last
