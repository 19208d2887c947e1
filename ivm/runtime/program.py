"""The words of a program, in which operators are rows that a kernel runs (``ivm.kernels.run``).

``ivm.runtime.compile`` makes programs from operators, ``ivm.runtime.program_run`` runs them. This module knows members
(operators and loops) by identity only, so that an operator can describe its own row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import numpy as np

from ivm.kernels.program import F_QUEUE, F_SCOPE, F_TOUCHED, PROGRAM_HEAD, ROW_WORDS, SCOPE_WORDS
from ivm.trace.batch import Block

ROOM: Final = 128


class Emitting(Protocol):
    """The part of an operator that a program of another scope reads: ``out`` is what it has emitted in the pass."""

    out: Block


class Instruction:
    """One operator's row: the kernel that it runs, its source's row, its own block, and words of its own kind.

    ``shared``: the kind of work (``ivm.workers``) that threads share. From that kind's least number of updates on, the
    kernel leaves the work to ``Operator.run_called``; 0: never.
    """

    __slots__ = ("operator", "own", "shared", "source", "words")

    def __init__(
        self, operator: int, source: int = 0, own: Block | None = None, words: Sequence[int] = (), shared: int = 0
    ) -> None:  # fmt: skip
        self.operator = operator
        self.source = source
        self.own = own
        self.words = words
        self.shared = shared


class Program:
    """The words, and the positions of members' rows and loops' words in them."""

    __slots__ = ("_end", "_queue_room", "_rows", "_scopes", "foreign", "view", "words")

    def __init__(self) -> None:
        self.words = np.zeros(ROOM, np.int64)
        self.view = self.words.data
        """The same memory; faster for reading and writing single words."""
        self._end = PROGRAM_HEAD + SCOPE_WORDS
        self._queue_room = 0
        self._rows: dict[int, int] = {}
        """The positions of members' rows, by identity."""
        self._scopes: dict[int, int] = {}
        """The positions of loops' words, by identity."""
        self.foreign: list[tuple[int, Emitting]] = []
        """Operators outside the program, each with the index of the word that is to hold the address of its ``out``."""
        self.view[F_SCOPE] = PROGRAM_HEAD

    @property
    def size(self) -> int:
        """Words in use, including those of rows that were replaced or forgotten."""
        return self._end

    # -- allocating ---------------------------------------------------------------------------------------------

    def place(self, members: Iterable[object]) -> None:
        """Gives rows to new members of the outermost scope, which come in rank order."""
        for member in members:
            if id(member) not in self._rows:
                self._rows[id(member)] = self._allocate(ROW_WORDS)
        if len(self._rows) > self._queue_room:
            room = self._queue_room = 2 * len(self._rows)
            queue, touched = self._allocate(room), self._allocate(room)
            self.view[F_QUEUE], self.view[F_TOUCHED] = queue, touched

    def place_loop(self, loop: object, members: Sequence[object]) -> tuple[int, int, int]:
        """Gives a loop its words, and its members adjacent rows: (the words' place, the first row, the rows' end)."""
        at = self._scopes[id(loop)] = self._allocate(SCOPE_WORDS)
        first = self._allocate(ROW_WORDS * len(members))
        for k, member in enumerate(members):
            self._rows[id(member)] = first + ROW_WORDS * k
        return at, first, first + ROW_WORDS * len(members)

    def free(self, member: object) -> int:
        """Frees a member's row. Returns where it was, -1 if it had none. The words stay unused."""
        return self._rows.pop(id(member), -1)

    def free_loop(self, loop: object) -> int:
        """Frees a loop's words. Returns where they were. Its row stays."""
        return self._scopes.pop(id(loop))

    def _allocate(self, count: int) -> int:
        start = self._end
        self._end += count
        if self._end > len(self.words):
            words = np.zeros(2 * self._end, np.int64)
            words[:start] = self.words[:start]
            self.words, self.view = words, words.data
        return start

    # -- for instructions ---------------------------------------------------------------------------------------

    def __contains__(self, member: object) -> bool:
        """Whether it has a row."""
        return id(member) in self._rows

    def scope(self, scope: object) -> int:
        """The index of a loop's words."""
        return self._scopes[id(scope)]

    def row(self, member: object) -> int:
        """The index of the row of an operator or a loop."""
        return self._rows[id(member)]

    def put(self, words: Sequence[int]) -> int:
        """Appends a list of words. Returns its index."""
        start = self._allocate(len(words))
        self.fill(start, words)
        return start

    def fill(self, start: int, words: Sequence[int]) -> None:
        """Overwrites words."""
        self.words[start : start + len(words)] = words

    def listed(self, operators: Iterable[object]) -> tuple[int, int]:
        """Appends the rows of some operators as a list. Returns (index, length). Operators in failed loops have no
        row."""
        rows = [self._rows[id(operator)] for operator in operators if id(operator) in self._rows]
        return self.put(rows), len(rows)

    def out(self, operator: Emitting, place: int) -> int:
        """The word at ``place`` for an operator's ``out``: its row, or 0 if it has none; then the program's runner
        fills it in (``foreign``)."""
        if id(operator) not in self._rows:
            self.foreign.append((place, operator))
        return self._rows.get(id(operator), 0)
