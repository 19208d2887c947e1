"""Statements made from those of the tests and the documentation, by changes of a few tokens."""

from __future__ import annotations

import json
import random
import re
from functools import cache
from itertools import pairwise
from typing import Final

from ivm.errors import SqlError
from sql.parse import parse, split
from sql.syntax.lexing.lexer import Token, TokenKind, tokenize
from tests.support.paths import ANSWERS, ROOT
from tests.support.psql_pages import steps
from tests.support.statements import Statements

_BARRED: Final = re.compile(
    r"(?i)pg_sleep|pg_terminate|pg_cancel|advisory|\bcopy\b.*'|'s3|file:|://|\bsink\b|\bsource\b|subscribe|password|python"
    r"|\bload\b|spark|\bfrom '|repeat|statement_timeout|\be?\d{6,}|shutdown"
)
"""What waits, reads or writes files, or asks for much."""

_ODD: Final = ("NULL", "''", "0", "-1", "(", ")", ",", "[]", "2147483648", "$1", "'{}'", "*")


@cache
def corpus() -> tuple[str, ...]:
    """The statements of recorded answers and of the pages that parse."""
    texts = []
    for path in sorted(ANSWERS.rglob("*.sql")):
        texts += [line for line in path.read_text().splitlines() if line and not line.startswith("--")]
    texts += (ANSWERS / "syntax_trees.txt").read_text().splitlines()[::3]
    for path in sorted((ANSWERS / "changing").glob("*.json")):
        texts += [case[0] for case in json.loads(path.read_text())]
    for path in sorted((ROOT / "docs").rglob("*.md")):
        texts += [step.text for step in steps(path.read_text())]
    return tuple(sorted({piece for text in texts if not _BARRED.search(text) for piece in _pieces(text)}))


def _pieces(text: str) -> list[str]:
    try:
        found = [piece.text.strip() for piece in split(text)]
        for piece in found:
            parse(piece)
    except (SqlError, RecursionError):
        return []
    return [piece for piece in found if len(piece) < 600]


class Mutations:
    """Draws statements from one generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def statement(self, drawn: Statements) -> str:
        """A known or drawn statement with one to three changes."""
        text = self.rng.choice(corpus()) if self.rng.random() < 0.8 else drawn.statement()
        for _ in range(self.rng.randint(0, 3)):
            text = self._changed(text)
        return "SELECT 1" if _BARRED.search(text) else text

    def _changed(self, text: str) -> str:
        try:
            tokens = [t for t in tokenize(text) if t.end > t.start]
            other = self.rng.choice(corpus())
            others = [t for t in tokenize(other) if t.end > t.start]
        except SqlError:
            return text
        if not tokens or not others:
            return text
        at = self.rng.randrange(len(tokens))
        token = tokens[at]
        match self.rng.choice((0, 1, 2, 2, 2, 3, 3, 3, 3, 4, 5)):
            case 0:
                return text[: token.start] + text[token.end :]
            case 1:
                return text[: token.end] + " " + text[token.start :]
            case 2:
                same = [other[t.start : t.end] for t in others if t.kind is token.kind]
                same += [text[t.start : t.end] for t in tokens if t.kind is token.kind]
                return f"{text[: token.start]} {self.rng.choice(same)} {text[token.end :]}"
            case 3:
                return self._spliced(text, tokens, other, others)
            case 4:
                swap = tokens[self.rng.randrange(len(tokens))]
                a, b = sorted((token, swap), key=lambda t: t.start)
                return (
                    f"{text[: a.start]}{text[b.start : b.end]} {text[a.end : b.start]} "
                    f"{text[a.start : a.end]}{text[b.end :]}"
                )
            case _:
                new_text = self.rng.choice(
                    ("NULL", "''", "0", "-1", "(", ")", ",", "[]", "2147483648", "$1", "'{}'", "*")
                )
                return f"{text[: token.start]} {new_text} {text[token.end :]}"

    def _spliced(self, text: str, tokens: list[Token], other: str, others: list[Token]) -> str:
        """A part in parentheses replaced by one of another statement."""
        mine, theirs = _groups(tokens), _groups(others)
        if not mine or not theirs:
            return text
        (a, b), (c, d) = self.rng.choice(mine), self.rng.choice(theirs)
        return text[:a] + other[c:d] + text[b:]


def _groups(tokens: list[Token]) -> list[tuple[int, int]]:
    """The extents of parts in parentheses and of their items."""
    found, open_at = [], []
    for token in tokens:
        if token.kind is not TokenKind.SYMBOL:
            continue
        if token.value == "(":
            open_at.append([token.end])
        elif token.value == "," and open_at:
            open_at[-1].append(token.start)
        elif token.value == ")" and open_at:
            starts = [*open_at.pop(), token.start]
            found += [(a + (i > 0), b) for i, (a, b) in enumerate(pairwise(starts))]
            found.append((starts[0], token.start))
    return found
