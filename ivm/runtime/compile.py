"""Compiling operators to the rows of a program.

An operator of the outermost scope keeps its row for as long as it lives, so that linking and freeing others costs
nothing there. The rows of a loop, and of the loops in it, are made together, and made again when anything in it was
linked, freed or has failed. Rows of the outermost scope lie in rank order.
"""

from __future__ import annotations

from typing import Final

from ivm.kernels.memory import address
from ivm.kernels.program import CALL, F_LEAST, KINDS, NESTED, PROGRAM_HEAD, R_ENTERS, R_NOTED, TAP
from ivm.runtime.operator import Operator, Scope
from ivm.runtime.program import Instruction, Program
from ivm.workers import CORRECTED, EXTENDED, SEARCHED, SORTED, Workers

SHARED: Final = (SEARCHED, CORRECTED, SORTED, EXTENDED)
"""The kinds of work that threads share, in the program's order."""
assert len(SHARED) == KINDS


class Section:
    """A loop in a program, with the loops in it that have not failed, outer ones first."""

    __slots__ = ("arranged", "operators", "scopes", "taps")

    def __init__(self, loop: Scope) -> None:
        self.scopes = [loop]
        self.operators: list[Operator] = []
        self.arranged: list[Operator] = []
        self.taps: list[Operator] = []

    def emitted(self) -> None:
        """Gives merges the fuel for updates that kernels have put into the loop's arrangements."""
        for operator in self.arranged:
            if operator.spine is not None:
                operator.spine.placed()


class Compiled(Program):
    """A program, and which operators and loops its rows and words belong to."""

    __slots__ = ("operators", "scopes", "sections", "told")

    def __init__(self) -> None:
        super().__init__()
        self.operators: dict[int, Operator] = {}
        """Operators by row."""
        self.scopes: dict[int, Scope] = {}
        """The loops, by the index of their words."""
        self.sections: dict[int, Section] = {}
        """Sections by the outermost loop's identity."""
        self.told: dict[int, Operator | Section] = {}
        """By row: what to notify, by ``emitted``, at the end of a step in which the row has emitted something."""

    def make_loop(self, loop: Scope) -> None:
        """Makes the rows in an outermost loop, and the loop's own row, whose place is already allocated."""
        self._forget_section(loop)
        section = self.sections[id(loop)] = Section(loop)
        for scope in section.scopes:
            section.operators += scope.operators()
            section.scopes += [inner for inner in scope.loops() if inner.error is None]
            at, first, end = self.place_loop(scope, scope.living())
            self.scopes[at] = scope
            around = PROGRAM_HEAD if scope is loop else self.scope(scope.around)
            self.fill(at, [around, self.row(scope), scope.shape, first, end, 0, 0, 0])
        for operator in section.operators:
            self.make(operator)
        for scope in section.scopes:
            self._make_nested(scope)
        self.told[self.row(loop)] = section
        section.arranged = [operator for operator in section.operators if operator.ARRANGED]
        section.taps = [o for o in section.operators if self.words[self.row(o)] == TAP]

    def make(self, operator: Operator) -> None:
        """Makes the row of an operator whose place is already allocated."""
        at = self.row(operator)
        told = not operator.scope.depth and operator.told
        self.operators[at] = operator
        if told:
            self.told[at] = operator
        self.fill(at, self._row(operator, told))

    def share(self, present: Workers) -> None:
        """Stores the numbers of updates from which these threads share work."""
        self.fill(F_LEAST, [present.least(kind) for kind in SHARED])

    def _row(self, operator: Operator, told: bool) -> list[int]:
        instruction = None if operator.error is not None else operator.instruction(self)
        if instruction is None:
            later = operator.later
            instruction = Instruction(CALL, own=None if later is None else later.block)
        own = 0 if instruction.own is None else address(instruction.own.d)
        row = [instruction.operator, -1, 0, address(operator.out.d), instruction.source, own]
        row += [*self.listed(operator.inside), *instruction.words]
        row += [0] * (R_ENTERS - len(row))
        shared = F_LEAST + SHARED.index(instruction.shared) if instruction.shared else 0
        return [*row, *self.listed(operator.entering), int(told), shared]

    def _make_nested(self, loop: Scope) -> None:
        """Makes a loop's own row."""
        leaving = self.listed([leave for operator in loop.operators() for leave in operator.leavers])
        row = [NESTED, -1, 0, address(loop.context.nothing), self.scope(loop), 0, *leaving]
        row += [0] * (R_NOTED - len(row))
        self.fill(self.row(loop), [*row, int(loop.depth == 1), 0])

    def forget(self, member: Operator | Scope, loop: Scope) -> None:
        """Forgets a member that is freed or has failed and, if it is in a loop, everything in its outermost loop. Rows
        that link to it must be made again."""
        at = self.free(member)
        self.operators.pop(at, None)
        self.told.pop(at, None)
        self._forget_section(loop)

    def _forget_section(self, loop: Scope) -> None:
        section = self.sections.pop(id(loop), None)
        if section is None:
            return
        for scope in section.scopes:
            self.scopes.pop(self.free_loop(scope))
            if scope is not section.scopes[0]:
                self.free(scope)
        for operator in section.operators:
            self.operators.pop(self.free(operator), None)
