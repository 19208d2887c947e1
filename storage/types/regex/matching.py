"""Searching texts for regular expressions, in time linear in the text.

Python's ``re`` holds the interpreter's lock and may take time exponential in the text. It is asked only where it can
try no more than ``QUICK`` ways; anything else runs in slices on ``ivm.kernels.regex``, which gives the same answers.
A match is the leftmost, and of those the longest where alternatives may give several (``re`` takes the first one).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ivm.errors import SqlError, unsupported
from ivm.kernels import regex_codes as k
from ivm.stops import Taking, poll
from storage.types.regex.program import Characters, Program, compiled, leaf_sources, referred
from storage.types.regex.syntax import Node, leaves, parsed, ways
from storage.types.regex.translate import Token

QUICK: Final = 100_000
"""The most ways that ``re`` may have to try: about a millisecond."""
QUICK_WITHOUT_CHOICE: Final = 20
"""As many times more where each character is tried once at each place of the expression."""
SLICE: Final = 400_000
"""Steps between two looks at what may stop the work: about 5 ms."""
LEAST_STEPS: Final = 5_000_000
STEPS_PER_CHARACTER: Final = 100
"""A search of a text of n characters may take ``LEAST_STEPS`` + n × this many steps; then it fails with 54001."""
MOST_ENTRIES: Final = 1 << 24
"""Of the stack: choices that are open at the same time."""
MOST_SEEN: Final = 1 << 28
"""Bytes of what is remembered of a search."""
_CHUNK: Final = 1 << 20
_LOG: Final = 1 << 20
"""What is remembered of one attempt and forgotten one by one before the next; of more, everything is forgotten."""


class Match:
    """What matched: the whole, and each group."""

    __slots__ = ("_spans", "_text")

    def __init__(self, text: str, spans: tuple[tuple[int, int], ...]) -> None:
        self._text, self._spans = text, spans

    def span(self, group: int = 0) -> tuple[int, int]:
        """Where a group begins and ends; -1 if it took no part."""
        return self._spans[group]

    @property
    def start(self) -> int:
        return self._spans[0][0]

    @property
    def end(self) -> int:
        return self._spans[0][1]

    @property
    def group_count(self) -> int:
        return len(self._spans) - 1

    def __getitem__(self, group: int) -> str | None:
        start, end = self._spans[group]
        return None if start < 0 else self._text[start:end]

    @property
    def whole(self) -> str:
        """The text that matched."""
        start, end = self._spans[0]
        return self._text[start:end]

    def groups(self) -> tuple[str | None, ...]:
        """The text of each group, None for those that took no part."""
        return tuple(self[i] for i in range(1, len(self._spans)))


@dataclass(eq=False)
class Regex:
    """A compiled regular expression of Postgres's. ``pattern`` is Python's. ``longest``: alternatives may give several
    matches, of which the longest counts; ``mixed``: it has greedy and lazy quantifiers."""

    pattern: re.Pattern[str]
    tokens: tuple[Token, ...]
    longest: bool
    mixed: bool

    @cached_property
    def tree(self) -> Node:
        return parsed(self.tokens)

    @cached_property
    def _quick(self) -> int:
        """The length of text up to which ``re`` is quick."""
        factor, degree = ways(self.tree)
        most = QUICK / (factor * leaves(self.tree)) if factor < QUICK else 0
        if degree == 0:
            most *= QUICK_WITHOUT_CHOICE
        return int(min(most ** (1 / (degree + 1)), 1e9)) - 1

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return leaf_sources(self.tree)

    @cached_property
    def characters(self) -> Characters:
        return Characters(list(self._numbers), self.pattern.flags)

    @cached_property
    def bare(self) -> Program:
        """The program that captures no groups."""
        return compiled(self.tree, self._numbers, self.ignores_case, False)

    @cached_property
    def capturing(self) -> Program:
        return compiled(self.tree, self._numbers, self.ignores_case, True)

    @property
    def ignores_case(self) -> bool:
        return bool(self.pattern.flags & re.IGNORECASE)

    def matches(self, text: str) -> bool:
        """Whether the expression matches anywhere in the text. Raises 54001."""
        if len(text) <= self._quick:
            return self.pattern.search(text) is not None
        with Search(self, text) as search:
            return search.run(self.bare, k.FIRST, 0, len(text)) is not None

    def find(self, text: str, start: int = 0) -> Match | None:
        """The leftmost match from ``start`` on, and of those the longest. Raises 54001."""
        return next(self.find_all(text, start), None)

    def find_all(self, text: str, at: int = 0) -> Iterator[Match]:
        """All matches from ``at`` on, left to right; after an empty one the search moves on by one character. Raises
        54001."""
        if self.mixed:
            raise unsupported("a regular expression that mixes greedy and non-greedy quantifiers")
        if not self.longest and len(text) <= self._quick:
            yield from self._each(text, at, self._simple)
            return
        with Search(self, text) as search:
            yield from self._each(text, at, lambda _, start: search.find(start))

    def _simple(self, text: str, at: int) -> Match | None:
        found = self.pattern.search(text, at)
        return None if found is None else Match(text, found.regs)

    def _each(self, text: str, at: int, find: Callable[[str, int], Match | None]) -> Iterator[Match]:
        while at <= len(text):
            poll()
            found = find(text, at)
            if found is None:
                return
            yield found
            at = found.end if found.end > found.start else found.end + 1


class Search:
    """The arrays of searches through one text, whose memory is taken from the thread's budget in its context."""

    def __init__(self, regex: Regex, text: str) -> None:
        self.regex, self.text = regex, text
        from ivm.kernels import regex as kernels

        self.kernels = kernels
        self.left = LEAST_STEPS + len(text) * STEPS_PER_CHARACTER
        self.taking = Taking()
        self.codes = self.folded = np.empty(0, np.uint32)
        self.stack = np.empty((64, 4), np.int64)
        self.seen = np.zeros(0, np.uint8)
        self.log = np.empty(64, np.int64)
        self.logged = 0
        """How many entries of the log say what is to be forgotten before the next run; -1: everything is."""
        self.slots = np.full(2 * (regex.pattern.groups + 1), -1, np.int64)
        self.state = np.zeros(k.STATES, np.int64)

    def __enter__(self) -> Search:
        self.taking.add(4 * len(self.text))
        self.codes = self.folded = codes_of(self.text)
        if self.regex.ignores_case and not self.regex.bare.memos and referred(self.regex.tree):
            self.taking.add(4 * len(self.text))
            self.folded = codes_of("".join(map(_folded, self.text)))
        return self

    def __exit__(self, *_: object) -> None:
        self.taking.release()

    def find(self, at: int) -> Match | None:
        """The leftmost match from ``at`` on, and of those the longest."""
        regex = self.regex
        span = self.run(regex.bare if regex.longest else regex.capturing, k.FIRST, at, len(self.text))
        if span is None:
            return None
        start, end = span
        if regex.longest:
            longest = self.run(regex.bare, k.LONGEST, start, start)
            end = end if longest is None else longest[1]
            if regex.pattern.groups:
                self.run(regex.capturing, k.EXACT, start, start, end)
        spans = self.slots[2:].tolist()
        return Match(self.text, ((start, end), *zip(spans[::2], spans[1::2], strict=True)))

    def run(self, program: Program, mode: int, first: int, last: int, end: int = -1) -> tuple[int, int] | None:
        """Where the first match that begins from ``first`` to ``last`` begins and ends; None: there is none."""
        state = self.state
        self._forget(program)
        state[:] = 0
        state[k.S_START], state[k.S_LAST] = first, min(last, 0) if program.anchored else last
        state[k.S_MODE], state[k.S_END], state[k.S_FIRST] = mode, end, program.first
        state[k.S_REMEMBERS] = program.memos > 0
        self.slots[:] = -1
        registers = np.full(max(1, program.registers), -1, np.int64)
        outcome = k.PAUSED
        while outcome not in (k.FOUND, k.NONE):
            outcome = self._slice(program, registers)
        if self.logged >= 0:
            self.logged = int(state[k.S_LOG])
        if outcome == k.NONE and mode == k.LONGEST and state[k.S_END] >= 0:
            return first, int(state[k.S_END])
        return None if outcome == k.NONE else (int(state[k.S_START]), int(state[k.S_END]))

    def _slice(self, program: Program, registers: NDArray[np.int64]) -> int:
        state, characters = self.state, self.regex.characters
        truth, pages = characters.tables
        state[k.S_FUEL] = SLICE
        outcome = self.kernels.run_regex(
            program.words, self.codes, self.folded, truth, pages, self.stack, self.seen,
            self.log, self.slots, registers, state,
        )  # fmt: skip
        self.left -= SLICE - int(state[k.S_FUEL])
        if self.left < 0:
            raise too_many_steps()
        match outcome:
            case k.NEEDS_PAGE:
                characters.learn(int(state[k.S_PAGE]))
            case k.NEEDS_STACK:
                self._grow_stack()
            case k.NEEDS_LOG:
                self._grow_log()
            case k.PAUSED:
                poll()
            case _:
                pass
        return outcome

    def _grow_stack(self) -> None:
        size = 4 * len(self.stack)
        if size > MOST_ENTRIES:
            raise too_many_steps()
        self.taking.add(32 * size)
        stack = np.empty((size, 4), np.int64)
        stack[: len(self.stack)] = self.stack
        self.stack = stack

    def _grow_log(self) -> None:
        if len(self.log) < _LOG:
            self.log = np.concatenate([self.log, np.zeros(3 * len(self.log), np.int64)])
            return
        # the log begins anew; what the open looks have tried is forgotten now, since it is no longer known
        self.logged = -1
        self.state[k.S_LOG] = 0
        look = int(self.state[k.S_LOOK])
        if look >= 0:
            self.seen[:] = 0
        while look >= 0:
            self.stack[look + 1, 1] = 0
            look = int(self.stack[look, 3])

    def _forget(self, program: Program) -> None:
        """Makes ``seen`` empty, and large enough for a program."""
        size = (program.memos * (len(self.text) + 1) >> 3) + 1
        if size > len(self.seen):
            if size > MOST_SEEN:
                raise too_many_steps()
            self.taking.add(size)
            self.seen = np.zeros(size, np.uint8)
        elif self.logged < 0:
            self.seen[:] = 0
        else:
            self.kernels.forget(self.seen, self.log, 0, self.logged)
        self.logged = 0


def too_many_steps() -> SqlError:
    """54001 for a search that takes more than its steps, or more choices than fit."""
    return SqlError(
        "54001", "regular expression is too complex for this text",
        hint="Write it without back-references, with fewer choices, or search shorter texts.",
    )  # fmt: skip


def codes_of(text: str) -> NDArray[np.uint32]:
    """The code points of a text, uint32[n]."""
    if len(text) <= _CHUNK:
        # copied, since the kernel would be compiled for arrays that cannot be written too
        return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).copy()
    codes = np.empty(len(text), np.uint32)
    for at in range(0, len(text), _CHUNK):
        part = text[at : at + _CHUNK].encode("utf-32-le", "surrogatepass")
        codes[at : at + _CHUNK] = np.frombuffer(part, np.uint32)
        poll()
    return codes


def _folded(c: str) -> str:
    lower = c.lower()
    return lower if len(lower) == 1 else c
