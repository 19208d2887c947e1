"""An expression's text after a table or a column that it names was renamed."""

from __future__ import annotations

from planner.identifiers import quoted
from sql.syntax.lexing.lexer import TokenKind, tokenize


def renamed_text(text: str, old: str, new: str, *, table: bool) -> str:
    """The text with a name replaced where it stands for the column, or for the ``table``."""
    tokens = tokenize(text)
    for i in range(len(tokens) - 1, -1, -1):
        token = tokens[i]
        named = token.kind in (TokenKind.WORD, TokenKind.QUOTED) and token.value == old
        behind = tokens[i + 1].value if i + 1 < len(tokens) else ""
        if named and (behind == "." if table else behind != "("):
            text = text[: token.start] + quoted(new) + text[token.end :]
    return text
