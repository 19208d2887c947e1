"""Loops that run in a kernel: their operators as rows of a program, and the way between it and the scheduler.

A loop of depth 1 whose operators all have an instruction is compiled when it runs first, and again when anything was
linked or freed. Between runs the scheduler's own structures are what counts; the program is loaded from them and, where
the kernel stops in the middle of a pass, unloaded into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np

from ivm.batch import Block, Words, address
from ivm.kernels.loop import (
    F_CORRECTED,
    F_SEARCHED,
    F_VECTOR,
    FINISHED,
    PAUSED,
    PROGRAM_HEAD,
    R_DUE,
    R_QUEUED,
    ROW_WORDS,
    TAP,
    run_loop,
)  # fmt: skip
from ivm.kernels.memory import where
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

    __slots__ = ("foreign", "lists", "rows")

    def __init__(self, members: list[Operator]) -> None:
        self.rows = {id(member): PROGRAM_HEAD + ROW_WORDS * k for k, member in enumerate(members)}
        self.lists: list[int] = []
        self.foreign: list[tuple[int, Operator]] = []

    def row(self, operator: Operator) -> int:
        """Where an operator of the loop stands."""
        return self.rows[id(operator)]

    def listed(self, operators: list[Operator]) -> tuple[int, int]:
        """(where, how many): the rows of some operators as a list."""
        start = PROGRAM_HEAD + ROW_WORDS * len(self.rows) + len(self.lists)
        self.lists += [self.row(operator) for operator in operators]
        return start, len(operators)

    def read(self, reader: Operator, word: int, operator: Operator) -> None:
        """Lets a word of the reader's row be the address of the block that an operator outside of the loop emits."""
        self.foreign.append((self.row(reader) + word, operator))


class CompiledLoop:
    """A loop's operators in rank order, and their program."""

    __slots__ = ("_foreign", "_members", "_program", "_rows", "_scope", "_taps", "_unloaded")

    def __init__(self, scope: Scope, members: list[Operator], program: Words, made: Program) -> None:
        self._scope = scope
        self._members = members
        self._program = program
        self._rows = made.rows
        self._foreign = made.foreign
        self._unloaded = True
        self._taps = [member for member in members if program[made.row(member)] == TAP]

    @staticmethod
    def of(scope: Scope) -> CompiledLoop | None:
        """The loop compiled, if it can be."""
        members = scope.operators()
        if scope.depth != 1 or members is None:
            return None
        made = Program(members)
        rows: list[int] = []
        for member in members:
            instruction = member.instruction(made)
            if instruction is None or member.error is not None:
                return None
            own = 0 if instruction.own is None else address(instruction.own.d)
            row = [instruction.operator, -1, 0, address(member.out.d), instruction.source, own]
            row += [*made.listed(member.inside), *instruction.words]
            rows += row + [0] * (ROW_WORDS - len(row))
        return CompiledLoop(scope, members, np.array([len(members), -1, 0, 0, *rows, *made.lists], np.int64), made)

    def run(self) -> None:
        """Runs what is due, until nothing is, one pass has gone on in Python, or the step is to pause or cancelled."""
        core = self._scope.core
        program = self._program
        self._load()
        while True:
            found = run_loop(program, core.nothing, core.again, core.stats, PASSES)
            if found != PAUSED or core.interrupted or perf_counter() > core.deadline:
                break
        if found == FINISHED:
            for member in self._members if self._unloaded else self._taps:
                member.settle()
            self._unloaded = False
        elif found == PAUSED:
            core.paused = not core.interrupted
            self._unload(-1)
        else:
            vector = int(program[F_VECTOR])
            self._unload(vector)
            operator = self._members[found >> 1]
            if found & 1:
                assert operator.spine is not None
                operator.spine.insert(operator.out)
            self._scope.run_vector(vector)

    def _load(self) -> None:
        """The agenda, and what operators outside of the loop emit."""
        scope = self._scope
        program = self._program
        program[F_SEARCHED] = workers().least(SEARCHED)
        program[F_CORRECTED] = workers().least(CORRECTED)
        for vector, items in scope.agenda.items():
            for item in items:
                later = item.later
                program[self._rows[id(item)] + R_DUE] = vector if later is None else later.due
        scope.agenda.clear()
        scope.due.clear()
        for word, operator in self._foreign:
            program[word] = where(operator.out.d)

    def _unload(self, vector: int) -> None:
        """Everything as it would be in the middle of the pass at the vector; -1: between two passes."""
        scope = self._scope
        program = self._program
        self._unloaded = True
        for row, member in zip(self._rows.values(), self._members, strict=True):
            member.settle()
            due = int(program[row + R_DUE])
            if member.later is not None:
                member.later.due = due
            if due > vector:
                scope.schedule(due, member)
            if program[row + R_QUEUED]:
                scope.queue(member)
            if member.out.n:
                scope.touched.append(member)
            program[row + R_DUE] = -1
            program[row + R_QUEUED] = 0
