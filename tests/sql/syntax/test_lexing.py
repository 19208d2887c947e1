"""The common tokens are recognised by one pattern; without it the text has the same tokens and errors."""

from __future__ import annotations

import random
import re

import pytest

from ivm.errors import SqlError
from sql.syntax.lexing import lexer

PIECES = (
    "a", "Ab_1", "values", "in", "1", "1.5", ".5", "1e3", "2.", "'x'", "''", "'it''s'", "E'a'", "$1", "$$q$$", '"Q"',
    "+", "-", "*", "/", "<", ">", "=", "<=", ">=", "<>", "!=", "||", "::", ":=", "..", ".", ":", "(", ")", ",", ";",
    "[", "]", "--c\n", "/*c*/", "~", "@", "#", "%", "^", "|", "?", "é", " ", "\n", "\t", "&", "=>", "u&'x'", "b'1'",
)  # fmt: skip


def tokens(text: str) -> object:
    try:
        return lexer.tokenize(text)
    except SqlError as error:
        return error.sqlstate, error.message, error.position


def test_the_same_tokens_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    texts = ["".join(draw.choices(PIECES, k=draw.randint(1, 12))) for _ in range(20_000)]
    texts += [f"{a}{b}" for a in PIECES for b in PIECES]
    found = [tokens(t) for t in texts]
    monkeypatch.setattr(lexer, "_PLAIN", re.compile("(?!)"))
    assert found == [tokens(t) for t in texts]
