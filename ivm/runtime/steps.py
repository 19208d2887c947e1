"""A step of a maintained dataflow: one run of the program of its outermost scope, with the loops in it."""

from __future__ import annotations

from typing import Final

from ivm.kernels.program import (
    CALLED_SILENT,
    F_LOOKED,
    F_QUEUE,
    F_QUEUE_COUNT,
    F_RETURN,
    F_TOUCHED,
    F_TOUCHED_COUNT,
    R_QUEUED,
)
from ivm.runtime.compile import Compiled
from ivm.runtime.operator import Operator, Scope
from ivm.runtime.program_run import ProgramRun
from ivm.runtime.scheduler import broke

CROWDED: Final = 2
"""A program that has grown to this multiple of its first size is rebuilt from scratch."""


class FlowRun(ProgramRun):
    """The program of a whole dataflow. Cost of a step: what is fed, and the operators that this reaches."""

    __slots__ = ("_looked", "_new", "_running", "root")

    def __init__(self, root: Scope) -> None:
        super().__init__(root)
        root.on_remove = self._forget
        self.root = root
        self._running = False
        self._looked = 0
        self._new = 0

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
            if not self._go_on():
                return
        except BaseException:
            self._abandon()
            raise
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
