"""Compiles the tree of a regular expression to a program of ``ivm.kernels.regex``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, assert_never

import numpy as np
from numpy.typing import NDArray

from ivm.errors import SqlError
from ivm.kernels import regex_codes as k
from storage.types.regex.syntax import (
    At,
    Back,
    Chain,
    Either,
    Group,
    Leaf,
    Look,
    Node,
    Repeat,
    leaves,
    nullable,
    width,
)
from storage.types.regex.translate import (
    AT_BEGIN,
    AT_EDGE,
    AT_END,
    AT_LINE,
    AT_LINE_END,
    AT_NO_EDGE,
    AT_WORD,
    AT_WORD_END,
)

MOST_STEPS: Final = 50_000
"""Of one program. Postgres's limit is a size in memory, which is of the same order."""
MOST_CHARACTERS: Final = 16_000
"""Of one expression: compiling it takes Python a second."""
_DEEPEST: Final = 10
"""Loops in each other whose bodies may match nothing: what is remembered doubles with each."""
_PAGES: Final = 0x110000 >> 8
_PLACES: Final = {
    AT_BEGIN.text: k.AT_BEGIN, AT_END.text: k.AT_END, AT_LINE.text: k.AT_LINE, AT_LINE_END.text: k.AT_LINE_END,
    AT_EDGE.text: k.AT_EDGE, AT_NO_EDGE.text: k.AT_NO_EDGE, AT_WORD.text: k.AT_WORD, AT_WORD_END.text: k.AT_WORD_END,
}  # fmt: skip
_WORD: Final = "\\w"


def too_complex() -> SqlError:
    """The error for an expression whose program would be too large."""
    return SqlError("2201B", "invalid regular expression: regular expression is too complex")


class Characters:
    """Which characters satisfy each of the leaves, page by page as texts need them. Python decides."""

    def __init__(self, sources: list[str], flags: int) -> None:
        self._leaves = [re.compile(source, flags) for source in sources]
        self.tables = np.zeros((max(1, len(sources)), 0), np.uint8), np.full(_PAGES, -1, np.int32)
        """The truth table and the places of pages in it. Replaced together: other threads use them."""

    def learn(self, page: int) -> None:
        """Adds a page of 256 characters."""
        truth, places = self.tables
        text = "".join(map(chr, range(page << 8, (page + 1) << 8)))
        fresh = np.zeros((len(truth), 256), np.uint8)
        for i, leaf in enumerate(self._leaves):
            for found in leaf.finditer(text):
                fresh[i, found.start()] = 1
        places = places.copy()
        places[page] = truth.shape[1] >> 8
        self.tables = np.hstack([truth, fresh]), places


@dataclass(frozen=True, slots=True)
class Program:
    """``words``: int64[n, COLUMNS]. ``memos``: how many bits each place of a text has; 0: it cannot remember.
    ``first``: the character with which each match begins, -1: any; ``anchored``: it matches at the text's begin only.
    """

    words: NDArray[np.int64]
    memos: int
    registers: int
    first: int
    anchored: bool


def leaf_sources(node: Node, found: dict[str, int] | None = None) -> dict[str, int]:
    """The leaves that need a truth table, numbered."""
    found = {} if found is None else found
    match node:
        case Leaf(source):
            if source != ".":
                found.setdefault(source, len(found))
        case At():
            found.setdefault(_WORD, len(found))
        case Chain(parts) | Either(parts):
            for part in parts:
                leaf_sources(part, found)
        case Group(body) | Look(body) | Repeat(body):
            leaf_sources(body, found)
        case Back():
            pass
        case _:
            assert_never(node)
    return found


def referred(node: Node) -> bool:
    """Whether it has back-references."""
    match node:
        case Back():
            return True
        case Chain(parts) | Either(parts):
            return any(map(referred, parts))
        case Group(body) | Look(body) | Repeat(body):
            return referred(body)
        case _:
            return False


class _Compiler:
    def __init__(self, numbers: dict[str, int], ignore_case: bool, captures: bool) -> None:
        self.numbers, self.ignore_case, self.captures = numbers, ignore_case, captures
        self.words: list[list[int]] = []
        self.memos = self.registers = 0
        self.loops: list[int] = []
        """The registers of the open loops whose bodies may match nothing; they are numbered without gaps."""

    def add(self, *word: int) -> int:
        if len(self.words) >= MOST_STEPS:
            raise too_complex()
        self.words.append([*word, *[0] * (k.COLUMNS - len(word))])
        return len(self.words) - 1

    def compile(self, node: Node) -> None:
        match node:
            case Leaf(source):
                self._leaf(source)
            case At(source):
                self.add(k.AT, _PLACES[source], self.numbers[_WORD])
            case Back(group):
                self.add(k.BACK, 2 * group, int(self.ignore_case))
            case Chain(items):
                for item in items:
                    self.compile(item)
            case Either(arms):
                self._either(arms)
            case Group(body, number):
                self._group(body, number)
            case Look(body, behind, negative):
                at = self.add(k.LOOK, 0, int(negative), width(body) if behind else 0)
                self.compile(body)
                self.add(k.LOOKED)
                self.words[at][1] = len(self.words)
            case Repeat():
                self._repeat(node)
            case _:
                assert_never(node)

    def _leaf(self, source: str) -> None:
        plain = literal(source)
        if source == ".":
            self.add(k.ANY)
        elif plain is not None and not self.ignore_case:
            self.add(k.CHAR, ord(plain))
        else:
            self.add(k.LEAF, self.numbers[source])

    def _group(self, body: Node, number: int) -> None:
        if number and self.captures:
            self.add(k.SAVE, 2 * number)
        self.compile(body)
        if number and self.captures:
            self.add(k.SAVE, 2 * number + 1)

    def _split(self) -> int:
        depth = len(self.loops)
        if depth > _DEEPEST:
            raise too_complex()
        first = self.loops[0] if self.loops else 0
        at = self.add(k.SPLIT, 0, 0, self.memos, depth, first)
        self.memos += 1 << depth
        return at

    def _choose(self, split: int, first: int, second: int) -> None:
        self.words[split][1:3] = first, second

    def _either(self, arms: tuple[Node, ...]) -> None:
        ends: list[int] = []
        for arm in arms[:-1]:
            split = self._split()
            self.compile(arm)
            ends.append(self.add(k.JUMP))
            self._choose(split, split + 1, len(self.words))
        self.compile(arms[-1])
        for end in ends:
            self.words[end][1] = len(self.words)

    def _repeat(self, node: Repeat) -> None:
        if (node.most or node.least) * leaves(node.body) > MOST_STEPS:
            raise too_complex()
        for _ in range(node.least):
            self.compile(node.body)
        if node.most is None:
            self._loop(node)
            return
        splits: list[int] = []
        checks: list[int] = []
        for _ in range(node.most - node.least):
            splits.append(self._split())
            checks += self._body(node.body)
        end = len(self.words)
        for split in splits:
            self._choose(split, *((end, split + 1) if node.lazy else (split + 1, end)))
        for check in checks:
            self.words[check][2] = end

    def _loop(self, node: Repeat) -> None:
        split = self._split()
        checks = self._body(node.body)
        self.add(k.JUMP, split)
        end = len(self.words)
        self._choose(split, *((end, split + 1) if node.lazy else (split + 1, end)))
        for check in checks:
            self.words[check][2] = end

    def _body(self, body: Node) -> list[int]:
        """One round of a loop. The place of its check, if it may match nothing."""
        if not nullable(body):
            self.compile(body)
            return []
        register = self.loops[-1] + 1 if self.loops else 0
        self.registers = max(self.registers, register + 1)
        self.add(k.MARK, register)
        self.loops.append(register)
        self.compile(body)
        self.loops.pop()
        return [self.add(k.CHECK, register)]


def compiled(node: Node, numbers: dict[str, int], ignore_case: bool, captures: bool) -> Program:
    """The program of a tree. ``captures``: it notes what groups match. Raises 2201B if it would be too large."""
    refers = referred(node)
    compiler = _Compiler(numbers, ignore_case, captures or refers)
    compiler.compile(node)
    compiler.add(k.MATCH)
    words = np.array(compiler.words, np.int64)
    first = next((word for word in compiler.words if word[0] != k.SAVE), compiler.words[0])
    begin = first[1] if first[0] == k.CHAR else -1
    anchored = first[0] == k.AT and first[1] == k.AT_BEGIN
    return Program(words, 0 if refers else compiler.memos, compiler.registers, begin, anchored)


def literal(source: str) -> str | None:
    """The character that a leaf's source stands for, if it is just one."""
    if len(source) == 1 and source not in ".^$*+?{}[]()|\\":
        return source
    return source[1] if len(source) == 2 and source[0] == "\\" and not source[1].isalnum() else None
