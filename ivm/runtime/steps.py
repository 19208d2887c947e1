"""A step of a maintained dataflow: one run of the program of its outermost scope, with the loops in it."""

from __future__ import annotations

from typing import Final

from ivm.kernels.program import (
    CALLED_SILENT,
    F_LOOKED,
    F_QUEUE,
    F_QUEUE_COUNT,
    F_RETURN,
    F_SCOPE,
    F_TOUCHED,
    F_TOUCHED_COUNT,
    FINISHED,
    PAUSED,
    PROGRAM_HEAD,
    R_QUEUED,
)
from ivm.kernels.run import run_program
from ivm.runtime.compile import Compiled
from ivm.runtime.operator import Operator, Scope
from ivm.runtime.program_run import ProgramRun
from ivm.runtime.scheduler import broke

CROWDED: Final = 2
"""A program that has grown to this multiple of its first size is rebuilt from scratch."""


class FlowRun(ProgramRun):
    """The program of a whole dataflow. Cost of a step: what is fed, and the operators that this reaches."""

    __slots__ = ("_limit", "_looked", "_new", "_running", "root")

    def __init__(self, root: Scope) -> None:
        super().__init__(root)
        root.on_remove = self._forget
        self.root = root
        self._running = False
        self._looked = 0
        self._new = 0
        self._limit: int | None = None
        """The rank from which on the next step runs nothing."""

    @property
    def looked(self) -> int:
        """How many rows the kernel has visited so far."""
        return self._looked + self.program.view[F_LOOKED]

    def reorder(self) -> None:
        """Compiles everything anew before the next step: ranks have changed."""
        self._new = 0

    def run(self) -> None:
        """Runs a step, or the rest of a paused one. Raises if an operator's failure ends the step."""
        try:
            if not self._running:
                self._load()
            if not (self._go_on() if self._limit is None else self._go_on_to(self._limit)):
                return
        except BaseException:
            self._abandon()
            raise
        self._finish()

    def cut(self) -> bool:
        """Ends a paused step where it is, between two operators. False: it had ended.

        Whoever calls it feeds the opposite of all that was fed since the step before, at the same ordinal, and runs
        that: it runs only what has run now.
        """
        try:
            cut = self._call_kernel(0) != FINISHED
            if cut:
                self._limit = self._leave_out()
        except BaseException:
            self._abandon()
            raise
        self._finish()
        return cut

    def _go_on_to(self, limit: int) -> bool:
        """Runs what ranks below ``limit``. Invariant: operators read only what ranks below them, so that these are a
        dataflow of their own; what they emit beyond the limit is dropped."""
        root, program = self.root, self.program
        beyond = [program.row(m) for rank, m in root.members.items() if rank >= limit and m in program]
        first = min(beyond, default=program.size)
        self._limit = None
        while (found := self._call_kernel(0)) != FINISHED:
            view = program.view
            if found == PAUSED and view[F_SCOPE] == PROGRAM_HEAD and view[view[F_QUEUE]] >= first:
                self._leave_out()
                break
            self._went_on(found)
            if found == PAUSED:
                found = self._call_kernel(1)
                if found == FINISHED:
                    break
                self._went_on(found)
        return True

    def _call_kernel(self, passes: int) -> int:
        context, program = self._context, self.program
        return int(run_program(program.words, context.nothing, context.again, context.stats, passes))

    def _leave_out(self) -> int:
        """Drops what waits in the queue of the outermost scope, whose pass ends so; the least rank of that."""
        program, view = self.program, self.program.view
        queue, count = view[F_QUEUE], view[F_QUEUE_COUNT]
        waiting = set(view[queue : queue + count])
        found = {rank: m for rank, m in self.root.members.items() if m in program and program.row(m) in waiting}
        for member in found.values():
            view[program.row(member) + R_QUEUED] = 0
            if isinstance(member, Operator):
                member.left_out()
            else:
                for scope in program.sections[id(member)].scopes:
                    self._quieten(scope)
        view[F_QUEUE_COUNT] = 0
        ended = self._call_kernel(0)
        assert ended == FINISHED
        return min(found)

    def _finish(self) -> None:
        """After the pass: the operators take over what the program has left in their blocks."""
        self._running = False
        program = self.program
        if self._called:
            self._settle_called()
        first, count = program.view[F_TOUCHED], program.view[F_TOUCHED_COUNT]
        for at in program.view[first : first + count]:
            program.told[at].emitted()

    def _load(self) -> None:
        """Compiles what has changed, and queues what is awake."""
        root = self.root
        while root.stale or not self._new:
            self._renew()
        self._running = True
        self._share()
        program, view = self.program, self.program.view
        queue = view[F_QUEUE]
        for k, rank in enumerate(root.heap):  # a heap ordered by rank is also one ordered by row
            member = root.members[rank]
            member.queued = False
            at = program.row(member)
            view[at + R_QUEUED] = 1
            view[queue + k] = at
        view[F_QUEUE_COUNT], view[F_TOUCHED_COUNT] = len(root.heap), 0
        root.heap.clear()

    def _renew(self) -> None:
        """Compiles the members that were linked or have changed. Cost: those; occasionally, all members."""
        root = self.root
        everything = not self._new or self.program.size > CROWDED * self._new
        if everything:
            self._looked = self.looked
            self._workers = None
            self.program = Compiled()
            stale = [root.members[rank] for rank in sorted(root.members)]
        else:
            present = [member for member in root.stale.values() if root.members.get(member.rank) is member]
            stale = sorted(present, key=lambda member: member.rank)
        root.stale.clear()
        program = self.program
        loops = [member for member in stale if isinstance(member, Scope)]
        operators = {id(member): member for member in stale if isinstance(member, Operator)}
        for loop in loops:
            for source in loop.sources():
                operators[id(source)] = source
        program.place([member for member in stale if isinstance(member, Operator) or member.error is None])
        for loop in loops:
            if loop.error is None:
                program.make_loop(loop)
            else:
                program.forget(loop, loop)
        for operator in operators.values():
            program.make(operator)
        if everything:
            self._new = program.size

    def _forget(self, member: Operator | Scope, loop: Scope) -> None:
        """Called when a member of the dataflow, or of an outermost loop in it, is freed."""
        self.program.forget(member, loop)

    def _broke(self, member: Operator, error: Exception) -> None:
        root = self.root
        if member.scope.depth:
            self._end(member.scope.outermost)
            broke(root, member.scope.outermost, error)
        else:
            broke(root, member, error)
            self.program.view[F_RETURN] = CALLED_SILENT

    def _abandon(self) -> None:
        """After an exception: drops all work, and the program with it."""
        root = self.root
        self._running = False
        self._limit = None
        self._called.clear()
        self._new = 0
        for section in self.program.sections.values():
            for scope in section.scopes:
                scope.drop()
            for operator in section.operators:
                for block in operator.blocks():
                    block.clear()
                operator.clear()
        for operator in root.operators():
            operator.clear()
        root.give_up()
