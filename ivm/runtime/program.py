"""Programs: operators as rows of words that a kernel runs (``ivm.kernels.run``); ``ivm.runtime.program_run`` runs them.

An operator of the outermost scope has a row that stays where it is as long as the operator lives, so that linking and
freeing others costs nothing there. The rows of a loop, with those of the loops in it, are made together, and anew when
anything in it was linked, freed or has failed. Rows of the outermost scope lie in rank order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ivm.kernels.program import (
    CALL,
    F_QUEUE,
    F_SCOPE,
    F_TOUCHED,
    NESTED,
    PROGRAM_HEAD,
    R_ENTERS,
    ROW_WORDS,
    SCOPE_WORDS,
    TAP,
)
from ivm.trace.batch import Block, address

if TYPE_CHECKING:
    from ivm.runtime.scheduler import Operator, Scope

ROOM: Final = 128


class Instruction:
    """One operator's row: the kernel that it runs, its source's row, its own block, and words of its own kind."""

    __slots__ = ("operator", "own", "source", "words")

    def __init__(self, operator: int, source: int = 0, own: Block | None = None, words: Sequence[int] = ()) -> None:
        self.operator = operator
        self.source = source
        self.own = own
        self.words = words


class Section:
    """A loop, with the loops in it that have not failed, outer ones first, in a program."""

    __slots__ = ("arranged", "operators", "scopes", "taps")

    def __init__(self, loop: Scope) -> None:
        self.scopes = [loop]
        self.operators: list[Operator] = []
        self.arranged: list[Operator] = []
        self.taps: list[Operator] = []

    def emitted(self) -> None:
        """Gives merges the fuel for what a kernel has put into the loop's arrangements."""
        for operator in self.arranged:
            if operator.spine is not None:
                operator.spine.placed()


class Program:
    """The words, and what stands where in them, for the instructions of operators too."""

    __slots__ = (
        "_end", "_queue_room", "_rows", "_scopes", "foreign", "operators", "scopes", "sections", "told", "view",
        "words",
    )  # fmt: skip

    def __init__(self) -> None:
        self.words = np.zeros(ROOM, np.int64)
        self.view = self.words.data
        """The same, quicker where single words are read and written."""
        self._end = PROGRAM_HEAD + SCOPE_WORDS
        self._queue_room = 0
        self._rows: dict[int, int] = {}
        """Where members stand, by identity."""
        self._scopes: dict[int, int] = {}
        self.operators: dict[int, Operator] = {}
        """By where their rows are."""
        self.scopes: dict[int, Scope] = {}
        """The loops, by where their words are."""
        self.sections: dict[int, Section] = {}
        """By the loop's identity."""
        self.told: dict[int, Operator | Section] = {}
        """By row, what is told at the end of a step that it has emitted."""
        self.foreign: list[tuple[int, Operator]] = []
        """Operators that are not in the program, by the words that are to hold where their outs are."""
        self.view[F_SCOPE] = PROGRAM_HEAD

    # -- making it ----------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Words in use, those of rows that were made anew or forgotten among them."""
        return self._end

    def place(self, members: Iterable[Operator | Scope]) -> None:
        """Gives rows to new members of the outermost scope, which come in rank order."""
        for member in members:
            if id(member) not in self._rows:
                self._rows[id(member)] = self._allocate(ROW_WORDS)
        if len(self._rows) > self._queue_room:
            room = self._queue_room = 2 * len(self._rows)
            queue, touched = self._allocate(room), self._allocate(room)
            self.view[F_QUEUE], self.view[F_TOUCHED] = queue, touched

    def make_loop(self, loop: Scope) -> None:
        """The rows of a loop, and its own, which has a place."""
        self._forget_section(loop)
        section = self.sections[id(loop)] = Section(loop)
        members: list[list[Operator | Scope]] = []
        for scope in section.scopes:
            members.append(scope.living())
            operators = scope.operators()
            section.operators += operators
            section.scopes += [inner for inner in scope.loops() if inner.error is None]
            at = self._scopes[id(scope)] = self._allocate(SCOPE_WORDS)
            self.scopes[at] = scope
            first = self._allocate(ROW_WORDS * len(members[-1]))
            for k, member in enumerate(members[-1]):
                self._rows[id(member)] = first + ROW_WORDS * k
            end = first + ROW_WORDS * len(members[-1])
            around = PROGRAM_HEAD if scope is loop else self._scopes[id(scope.around)]
            self.fill(at, [around, self._rows[id(scope)], scope.shape, first, end, 0, 0, 0])
        for operator in section.operators:
            self.make(operator)
        for scope in section.scopes:
            self._make_nested(scope)
        self.told[self._rows[id(loop)]] = section
        section.arranged = [operator for operator in section.operators if operator.ARRANGED]
        section.taps = [o for o in section.operators if self.words[self.row(o)] == TAP]

    def make(self, operator: Operator) -> None:
        """The row of an operator that has a place."""
        at = self.row(operator)
        told = not operator.scope.depth and operator.told
        self.operators[at] = operator
        if told:
            self.told[at] = operator
        self.fill(at, [*self._row(operator), int(told)])

    def _row(self, operator: Operator) -> list[int]:
        instruction = None if operator.error is not None else operator.instruction(self)
        if instruction is None:
            later = operator.later
            instruction = Instruction(CALL, own=None if later is None else later.block)
        own = 0 if instruction.own is None else address(instruction.own.d)
        row = [instruction.operator, -1, 0, address(operator.out.d), instruction.source, own]
        row += [*self.listed(operator.inside), *instruction.words]
        row += [0] * (R_ENTERS - len(row))
        return [*row, *self.listed(operator.entering)]

    def _make_nested(self, loop: Scope) -> None:
        """A loop's own row."""
        leaving = self.listed([leave for operator in loop.operators() for leave in operator.leavers])
        row = [NESTED, -1, 0, address(loop.core.nothing), self.scope(loop), 0, *leaving]
        row += [0] * (ROW_WORDS - 1 - len(row))
        self.fill(self._rows[id(loop)], [*row, int(loop.depth == 1)])

    def forget(self, member: Operator | Scope, loop: Scope) -> None:
        """Lets go of a member that is freed or has failed, and of all that is in its outermost loop, if it is in one;
        what links to it is to be made anew."""
        at = self._rows.pop(id(member), -1)
        self.operators.pop(at, None)
        self.told.pop(at, None)
        self._forget_section(loop)

    def _forget_section(self, loop: Scope) -> None:
        section = self.sections.pop(id(loop), None)
        if section is None:
            return
        for scope in section.scopes:
            self.scopes.pop(self._scopes.pop(id(scope)))
            if scope is not section.scopes[0]:
                self._rows.pop(id(scope), None)
        for operator in section.operators:
            self.operators.pop(self._rows.pop(id(operator), -1), None)

    def _allocate(self, count: int) -> int:
        start = self._end
        self._end += count
        if self._end > len(self.words):
            words = np.zeros(2 * self._end, np.int64)
            words[:start] = self.words[:start]
            self.words, self.view = words, words.data
        return start

    # -- for instructions ---------------------------------------------------------------------------------------

    def __contains__(self, member: Operator | Scope) -> bool:
        """Whether it has a row."""
        return id(member) in self._rows

    def scope(self, scope: Scope) -> int:
        """Where a loop's words stand."""
        return self._scopes[id(scope)]

    def row(self, member: Operator | Scope) -> int:
        """Where an operator or a loop stands."""
        return self._rows[id(member)]

    def put(self, words: Sequence[int]) -> int:
        """Where some words stand among the lists."""
        start = self._allocate(len(words))
        self.fill(start, words)
        return start

    def fill(self, start: int, words: Sequence[int]) -> None:
        """Puts words in the place of others."""
        self.words[start : start + len(words)] = words

    def listed(self, operators: Sequence[Operator]) -> tuple[int, int]:
        """(where, how many): the rows of some operators as a list, without those in loops that have failed."""
        rows = [self._rows[id(operator)] for operator in operators if id(operator) in self._rows]
        return self.put(rows), len(rows)

    def out(self, operator: Operator, place: int) -> int:
        """What names an operator's out in the word at ``place``: its row, or where it lies if it has none."""
        if id(operator) not in self._rows:
            self.foreign.append((place, operator))
        return self._rows.get(id(operator), 0)
