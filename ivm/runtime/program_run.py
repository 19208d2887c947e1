"""Running programs: calls the kernel, and does the work that it leaves to Python.

A step of a maintained dataflow is a run of one program (``ivm.runtime.steps``). In a query, which is hydrated once and
thrown away, only the outermost loops have programs (``LoopRun``), and the scheduler calls the operators around them.

While a program runs, its own agenda is authoritative. The scheduler's structures supply what is due at the start and
collect what operators running in Python schedule. For such an operator the kernel returns; called again, it continues
where it stopped.
"""

from __future__ import annotations

from time import perf_counter
from typing import Final

from ivm.kernels.memory import where
from ivm.kernels.program import (
    CALL,
    CALLED_EMITTED,
    CALLED_SILENT,
    F_QUEUE,
    F_QUEUE_COUNT,
    F_RETURN,
    F_SCOPE,
    F_TOUCHED_COUNT,
    FINISHED,
    NOT_CALLED,
    PAUSED,
    PROGRAM_HEAD,
    R_DUE,
    R_OPERATOR,
    R_OUT,
    R_QUEUED,
    ROW_WORDS,
    S_AT,
    S_END,
    S_FIRST,
    S_VECTOR,
)  # fmt: skip
from ivm.kernels.run import run_program
from ivm.runtime.compile import Compiled
from ivm.runtime.operator import Operator, Scope
from ivm.workers import Workers, workers

PASSES: Final = 16
"""The most passes that run between two checks of whether the step was cancelled or must pause."""
SLICE_SECONDS: Final = 0.002
"""Fewer passes run if so many take longer."""


class ProgramRun:
    """A run of a program, with the operators it has called in Python, by row: their state may lag behind what the
    program left in their blocks."""

    __slots__ = ("_called", "_context", "_outside", "_workers", "program")

    def __init__(self, scope: Scope) -> None:
        self._context = scope.context
        self.program = Compiled()
        self._called: dict[int, Operator] = {}
        self._workers: Workers | None = None
        self._outside: Scope | None = None
        """The outermost loop of a ``LoopRun``: what leaves it is passed on by the scheduler, not the program."""

    def _share(self) -> None:
        """Stores in the program the numbers of updates from which the present workers share work."""
        present = workers()
        if present is not self._workers:
            self._workers = present
            self.program.share(present)

    def _go_on(self) -> bool:
        """Runs until nothing is due. False: the step must pause; the next call continues it."""
        context, program = self._context, self.program
        most = PASSES if context.cut is None else 1
        passes, begun = most, perf_counter()
        while True:
            found = run_program(program.words, context.nothing, context.again, context.stats, passes)
            if found == FINISHED:
                return True
            self._went_on(found)
            now = perf_counter()
            passes = max(passes >> 1, 1) if now - begun > SLICE_SECONDS else min(passes << 1, most)
            begun = now
            if now > context.deadline or self._is_cut():
                context.paused = True
                return False

    def _went_on(self, found: int) -> None:
        """After a call of the kernel that has not finished: does what it leaves to Python."""
        program = self.program
        if found != PAUSED:
            self._serve(found >> 1, bool(found & 1))
        if program.view[F_SCOPE] != PROGRAM_HEAD:
            self._look(program.scopes[program.view[F_SCOPE]].outermost)

    def _is_cut(self) -> bool:
        cut = self._context.cut
        return cut is not None and self.program.view[F_SCOPE] == PROGRAM_HEAD and cut.is_set()

    def _look(self, loop: Scope) -> None:
        """Ends the running outermost loop if it was cancelled, takes too much memory, or has failed."""
        context = self._context
        context.enter(loop)
        refused = context.look(loop)
        if refused is not None:
            loop.fail(refused)
        if loop.error is not None:
            self._end(loop)

    def _serve(self, at: int, unplaced: bool) -> None:
        """Runs the operator at the row where the kernel has returned; if ``unplaced``, only inserts its output."""
        member = self.program.operators[at]
        try:
            if unplaced:
                assert member.spine is not None
                member.out.sync()
                member.spine.insert(member.out)
                emits = member.out.n > 0
            else:
                emits = self._call(member, at)
        except Exception as error:
            self._broke(member, error)
            return
        self.program.view[F_RETURN] = CALLED_EMITTED if emits else CALLED_SILENT

    def _call(self, member: Operator, at: int) -> bool:
        """Runs an operator in Python. Returns whether it has emitted anything."""
        view = self.program.view
        self._called[at] = member
        self._context.called += 1
        inside = member.scope.depth > 0
        if view[at + R_OPERATOR] != CALL or inside:
            if view[at + R_OPERATOR] == CALL:
                member.clear()
            for block in member.blocks():
                block.sync()
        for source in member.inputs():
            source.out.sync()
        later = member.later
        if later is not None:
            later.due = view[at + R_DUE]
        emits = member.run_called(view[view[F_SCOPE] + S_VECTOR])
        view[at + R_DUE] = -1 if later is None else later.due
        view[at + R_OUT] = where(member.out.d)
        if inside:
            self._take_up(member.scope)
            if member.scope.error is not None and member.scope is not member.scope.outermost:
                self._quieten(member.scope)
        else:
            self._context.refresh()
        return emits

    def _take_up(self, scope: Scope) -> None:
        """Moves due entries from the agendas of a loop, and of the loops around it, into the program."""
        program, view = self.program, self.program.view
        while scope.depth:
            for vector, items in scope.agenda.items():
                for item in items:
                    if item not in program:
                        continue
                    at = program.row(item)
                    later = item.later
                    due = vector if later is None else later.due
                    if later is None and view[at + R_DUE] >= 0:
                        due = min(due, view[at + R_DUE])
                    view[at + R_DUE] = due
            scope.agenda.clear()
            scope.due.clear()
            scope = scope.around

    def _broke(self, member: Operator, error: Exception) -> None:
        """Called when an operator has raised."""
        raise error

    def _quieten(self, loop: Scope) -> None:
        """Removes everything in a loop from the program's agenda."""
        view = self.program.view
        at = self.program.scope(loop)
        for row in range(view[at + S_FIRST], view[at + S_END], ROW_WORDS):
            view[row + R_DUE] = -1
            view[row + R_QUEUED] = 0
        view[at + S_AT] = 0

    def _end(self, loop: Scope) -> None:
        """Ends a running outermost loop after a failure; the enclosing scope continues."""
        self._context.leave(loop)
        section = self.program.sections[id(loop)]
        for scope in section.scopes:
            self._quieten(scope)
            scope.drop()
        for operator in section.operators:
            for block in operator.blocks():
                block.clear()
            operator.clear()
        view = self.program.view
        view[F_SCOPE] = PROGRAM_HEAD
        view[PROGRAM_HEAD + S_AT] = 0
        view[F_RETURN] = NOT_CALLED

    def _settle_called(self) -> None:
        """Makes the operators that were called take over what the program has left in their blocks since."""
        view = self.program.view
        for at, member in self._called.items():
            member.settle()
            if member.later is not None:
                member.later.due = -1
            if member.scope.depth and member.scope is not self._outside:
                member.scope.leaving.clear()
            if view[at + R_OPERATOR] == CALL:
                member.clear()
                view[at + R_OUT] = where(member.out.d)
        self._called.clear()


class LoopRun(ProgramRun):
    """The program of one outermost loop; the scheduler calls the operators around it."""

    __slots__ = ("_loop", "_section")

    def __init__(self, loop: Scope) -> None:
        super().__init__(loop)
        self._loop = self._outside = loop
        self.program.place([loop])
        self.program.make_loop(loop)
        self._section = self.program.sections[id(loop)]

    def run(self) -> None:
        """Runs until nothing is due on the loop's agenda. Raises what an operator raises."""
        program = self.program
        self._share()
        for scope in self._section.scopes:
            self._take_up(scope)
        for place, operator in program.foreign:
            program.view[place] = where(operator.out.d)
        row = program.row(self._loop)
        program.view[row + R_QUEUED] = 1
        program.view[program.view[F_QUEUE]] = row
        program.view[F_QUEUE_COUNT], program.view[F_TOUCHED_COUNT] = 1, 0
        try:
            self._go_on()
        except BaseException:
            self._end(self._loop)
            raise
        self._settle_called()
        for tap in self._section.taps:
            tap.settle()
        self._section.emitted()
