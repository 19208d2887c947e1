"""Lexemes as written in a tsvector or a tsquery: quoted or not, with positions and weights."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError

MOST_POSITION: Final = 16383
WEIGHTS: Final = "DCBA"
"""A weight's letter by its number."""
_LONGEST: Final = 2046


def syntax_error(label: str, text: str) -> SqlError:
    """42601 for text that is no value of the type."""
    return SqlError("42601", f'syntax error in {label}: "{text}"')


def checked(lexeme: str) -> str:
    """The lexeme. Raises 54000 if it is too long."""
    size = len(lexeme.encode())
    if size > _LONGEST:
        raise SqlError("54000", f"word is too long ({size} bytes, max {_LONGEST} bytes)")
    return lexeme


def quoted(lexeme: str) -> str:
    """A lexeme as it is written."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def read_lexeme(text: str, start: int, label: str, delimiters: str = "", plain: bool = False) -> tuple[str, int]:
    """The lexeme that begins at ``start``, and where it ends. ``delimiters`` end an unquoted one, beside space and
    colon; ``plain``: quotes and backslashes are letters, a double quote ends it. Raises 42601."""
    at, out = start, []
    if not plain and text[at] == "'":
        return _read_quoted(text, start, label)
    while at < len(text):
        letter = text[at]
        if letter.isspace() or (letter == ":" and at > start) or letter in delimiters or (plain and letter == '"'):
            break
        if letter == "\\" and not plain:
            at += 1
            if at == len(text):
                raise SqlError("42601", f'there is no escaped character: "{text}"')
            letter = text[at]
        out.append(letter)
        at += 1
    if not out:
        raise syntax_error(label, text)
    return "".join(out), at


def _read_quoted(text: str, start: int, label: str) -> tuple[str, int]:
    at, out = start + 1, []
    while at < len(text):
        letter = text[at]
        if letter == "'":
            if text[at + 1 : at + 2] != "'":
                break
            at += 1
        elif letter == "\\":
            at += 1
            if at == len(text):
                raise SqlError("42601", f'there is no escaped character: "{text}"')
            letter = text[at]
        out.append(letter)
        at += 1
    if at == len(text) or not out:
        raise syntax_error(label, text)
    return "".join(out), at + 1
