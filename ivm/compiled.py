"""Loops that run in a kernel: their operators as rows of a program, and what the kernel leaves to Python.

A loop, with the loops in it, is compiled when it runs first, and again when anything was linked or freed. While it
runs, the program is what counts; the scheduler's own structures say what is due when it begins, and take up what an
operator says that is run in Python. Such a run is a return of the kernel and a call: everything stands where it stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np

from ivm.batch import Block, Words, address
from ivm.errors import SqlError
from ivm.kernels.loop import run_loop
from ivm.kernels.memory import where
from ivm.kernels.program import (
    AWAY,
    CALL,
    F_CORRECTED,
    F_RETURN,
    F_SCOPE,
    F_SEARCHED,
    FINISHED,
    LOUD,
    NESTED,
    PAUSED,
    PROGRAM_HEAD,
    QUIET,
    R_DUE,
    R_ENTERS,
    R_OPERATOR,
    R_OUT,
    R_QUEUED,
    ROW_WORDS,
    S_AT,
    S_END,
    S_FIRST,
    S_VECTOR,
    SCOPE_WORDS,
    TAP,
)  # fmt: skip
from ivm.workers import CORRECTED, SEARCHED, workers

if TYPE_CHECKING:
    from ivm.scheduler import Operator, Scope

PASSES: Final = 16
"""How many run before the loop looks whether it was cancelled, or is to pause."""


class Instruction:
    """One operator's row: the kernel that it runs, its source's row, its own block, and words of its own kind."""

    __slots__ = ("operator", "own", "source", "words")

    def __init__(self, operator: int, source: int = 0, own: Block | None = None, words: Sequence[int] = ()) -> None:
        self.operator = operator
        self.source = source
        self.own = own
        self.words = words


class Program:
    """A loop's program while it is made, for the instructions of its operators."""

    __slots__ = ("_leaving", "_room", "foreign", "heads", "lists", "operators", "rows", "scopes")

    def __init__(self, loop: Scope) -> None:
        self.scopes = [loop]
        """The loop, and those in it that have not failed, outer ones first."""
        self.operators: list[Operator | None] = []
        """By place; None for a loop."""
        self.rows: dict[int, int] = {}
        """Where members stand, by identity."""
        self.lists: list[int] = []
        self.foreign: list[tuple[int, Operator]] = []
        self._leaving: dict[int, list[int]] = {}
        places: list[int] = []
        bounds: list[tuple[int, int]] = []
        for scope in self.scopes:
            start = len(places)
            places += [id(member) for member in scope.living()]
            operators = {id(operator): operator for operator in scope.operators()}
            self.operators += [operators.get(place) for place in places[start:]]
            self.scopes += [inner for inner in scope.loops() if id(inner) in places]
            bounds.append((start, len(places)))
        first = PROGRAM_HEAD + SCOPE_WORDS * len(self.scopes)
        self.rows = {place: first + ROW_WORDS * k for k, place in enumerate(places)}
        self._room = first + ROW_WORDS * len(places)
        self.heads = [PROGRAM_HEAD, 0, first, 0, 0]
        for scope, (start, stop) in zip(self.scopes, bounds, strict=True):
            around = (0, 0) if scope is loop else (self.scope(scope.around), self.rows[id(scope)])
            self.heads += [*around, scope.shape, first + ROW_WORDS * start, first + ROW_WORDS * stop, 0, 0, 0]

    def scope(self, scope: Scope) -> int:
        """Where a scope's words stand."""
        return PROGRAM_HEAD + SCOPE_WORDS * self.scopes.index(scope)

    def row(self, operator: Operator) -> int:
        """Where an operator of the loop stands."""
        return self.rows[id(operator)]

    def put(self, words: Sequence[int]) -> int:
        """Where some words stand among the lists."""
        start = self._room + len(self.lists)
        self.lists += words
        return start

    def fill(self, start: int, words: Sequence[int]) -> None:
        """Puts words in the place of some of the lists'."""
        at = start - self._room
        self.lists[at : at + len(words)] = words

    def listed(self, operators: Sequence[Operator]) -> tuple[int, int]:
        """(where, how many): the rows of some operators as a list, without those in loops that have failed."""
        rows = [self.rows[id(operator)] for operator in operators if id(operator) in self.rows]
        return self.put(rows), len(rows)

    def out(self, operator: Operator, place: int) -> int:
        """What names an operator's out in the word at ``place``: its row, or where it lies outside of the loop."""
        if id(operator) not in self.rows:
            self.foreign.append((place, operator))
        return self.rows.get(id(operator), 0)

    def leaves(self, operator: Operator, scope: Scope) -> None:
        """Lets an operator run when a nested loop has run."""
        self._leaving.setdefault(id(scope), []).append(self.row(operator))

    def made(self) -> Words:
        """All of its words."""
        rows = [word for operator in self.operators if operator is not None for word in self._row(operator)]
        at = 0
        words: list[int] = []
        nested = iter(self.scopes[1:])
        for operator in self.operators:
            if operator is None:
                words += self._loop(next(nested))
            else:
                words += rows[at : at + ROW_WORDS]
                at += ROW_WORDS
        return np.array([*self.heads, *words, *self.lists], np.int64)

    def _loop(self, scope: Scope) -> list[int]:
        """A nested loop's row."""
        leaving = self._leaving.get(id(scope), [])
        row = [NESTED, -1, 0, address(scope.core.nothing), self.scope(scope), 0, self.put(leaving), len(leaving)]
        return row + [0] * (ROW_WORDS - len(row))

    def _row(self, operator: Operator) -> list[int]:
        """An operator's row."""
        instruction = None if operator.error is not None else operator.instruction(self)
        if instruction is None:
            later = operator.later
            instruction = Instruction(CALL, own=None if later is None else later.block)
        own = 0 if instruction.own is None else address(instruction.own.d)
        row = [instruction.operator, -1, 0, address(operator.out.d), instruction.source, own]
        row += [*self.listed(operator.inside), *instruction.words]
        row += [0] * (R_ENTERS - len(row))
        return [*row, *self.listed(operator.entering)]


class CompiledLoop:
    """A loop's operators, scope by scope in rank order, and their program."""

    __slots__ = (
        "_arranged",
        "_called",
        "_foreign",
        "_operators",
        "_program",
        "_reads",
        "_rows",
        "_scope",
        "_scopes",
        "_taps",
    )

    def __init__(self, scope: Scope) -> None:
        program = Program(scope)
        self._scope = scope
        self._scopes = program.scopes
        self._operators = program.operators
        self._program = program.made()
        self._rows = program.rows
        self._foreign = program.foreign
        members = [operator for operator in self._operators if operator is not None]
        self._called = {id(member): member for member in members}
        """Those whose blocks may not be as the program has them."""
        self._arranged = [member for member in members if member.ARRANGED]
        self._taps = [member for member in members if self._program[self._rows[id(member)]] == TAP]
        self._reads: dict[int, list[Operator]] = {id(member): [] for member in members}
        for member in members:
            for consumer in member.consumers:
                if id(consumer) in self._reads:
                    self._reads[id(consumer)].append(member)

    def run(self) -> None:
        """Runs what is due, until nothing is, or the step is to pause or cancelled; goes on where it has paused."""
        core = self._scope.core
        program = self._program
        self._load()
        try:
            while True:
                found = run_loop(program, core.nothing, core.again, core.stats, PASSES)
                if found == FINISHED:
                    break
                if found != PAUSED:
                    self._call(found)
                if core.interrupted:
                    self._scope.fail(SqlError("57014", "canceling statement due to user request"))
                if self._scope.error is not None:
                    self._abandon()
                    return
                if perf_counter() > core.deadline:
                    core.paused = True
                    self._scope.paused_loop = self
                    return
        except BaseException:
            self._abandon()
            raise
        self._settle()

    def _load(self) -> None:
        """The agenda, and what operators outside of the loop emit."""
        program = self._program
        program[F_SEARCHED] = workers().least(SEARCHED)
        program[F_CORRECTED] = workers().least(CORRECTED)
        for scope in self._scopes:
            self._take_up(scope)
        for place, operator in self._foreign:
            program[place] = where(operator.out.d)

    def _take_up(self, scope: Scope) -> None:
        """What a scope's agenda says is due."""
        program = self._program
        for vector, items in scope.agenda.items():
            for item in items:
                at = self._rows.get(id(item), -1)
                if at >= 0:
                    later = item.later
                    due = vector if later is None else later.due
                    if later is None and program[at + R_DUE] >= 0:
                        due = min(due, int(program[at + R_DUE]))
                    program[at + R_DUE] = due
        scope.agenda.clear()
        scope.due.clear()

    def _call(self, found: int) -> None:
        """Runs the operator at which the kernel has returned, or inserts what it has emitted."""
        program = self._program
        member = self._operators[found >> 1]
        assert member is not None
        if found & 1:
            assert member.spine is not None
            member.out.sync()
            member.spine.insert(member.out)
            program[F_RETURN] = LOUD if member.out.n else QUIET
            return
        at = self._rows[id(member)]
        self._called[id(member)] = member
        if program[at + R_OPERATOR] == CALL:
            member.clear()
        for block in member.blocks():
            block.sync()
        for source in self._reads[id(member)]:
            source.out.sync()
        later = member.later
        if later is not None:
            later.due = int(program[at + R_DUE])
        emits = member.run_called(int(program[program[F_SCOPE] + S_VECTOR]))
        program[at + R_DUE] = -1 if later is None else later.due
        program[at + R_OUT] = where(member.out.d)
        program[F_RETURN] = LOUD if emits else QUIET
        for scope in self._scopes:
            if scope.agenda:
                self._take_up(scope)
        if member.scope.error is not None and member.scope in self._scopes:
            self._end(member.scope)

    def _end(self, scope: Scope) -> None:
        """Lets nothing of a nested loop, which has failed, be due any more."""
        program = self._program
        at = PROGRAM_HEAD + SCOPE_WORDS * self._scopes.index(scope)
        for row in range(program[at + S_FIRST], program[at + S_END], ROW_WORDS):
            program[row + R_DUE] = -1
            program[row + R_QUEUED] = 0

    def _settle(self) -> None:
        """Lets the scheduler's structures say what has come of it."""
        for member in self._called.values():
            member.settle()
            if member.later is not None:
                member.later.due = -1
            if self._program[self._rows[id(member)]] == CALL:
                member.clear()
        for member in self._taps:
            member.settle()
        for member in self._arranged:
            spine = member.spine
            if spine is not None and spine.merging:
                spine.pay()
        self._called.clear()
        for scope in self._scopes[1:]:
            scope.leaving.clear()

    def _abandon(self) -> None:
        """After a failure nothing is left to do."""
        program = self._program
        for at in self._rows.values():
            program[at + R_DUE] = -1
            program[at + R_QUEUED] = 0
        for member in self._operators:
            if member is not None:
                for block in member.blocks():
                    block.clear()
                member.clear()
        for k in range(len(self._scopes)):
            program[PROGRAM_HEAD + SCOPE_WORDS * k + S_AT] = 0
        program[F_SCOPE] = PROGRAM_HEAD
        program[F_RETURN] = AWAY
        for scope in self._scopes:
            scope.drop()
