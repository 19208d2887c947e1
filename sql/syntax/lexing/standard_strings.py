r"""Statements as they are read where strings are not standard, written so that they mean the same everywhere.

With standard_conforming_strings off, ``'a\n'`` is what ``E'a\n'`` is otherwise. It is written so once, where a
statement arrives: what is cached by the text, and what is kept of it (views, bodies, prepared statements), then means
the same in every session, and no way that a text takes has to know of the setting. Positions of errors are led back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from ivm.errors import SqlError
from sql.settings.quoting import Quoting
from sql.syntax.lexing.lexer import Token, TokenKind, one_by_one

_LANGUAGES: Final = ("sql", "plpgsql")
"""Those whose bodies have SQL's strings."""
_APART: Final = frozenset(" \t\r\n\f\v(,=|[")
"""After these, a prefix of a string begins a token of its own."""
_NONSTANDARD: Final = {
    "'": (r"\'", "Use '' to write quotes in strings, or use the escape string syntax (E'...')."),
    "\\": (r"\\", r"Use the escape string syntax for backslashes, e.g., E'\\'."),
}
_ESCAPE: Final = ("escape", r"Use the escape string syntax for escapes, e.g., E'\r\n'.")
_REFUSED: Final = r"Use '' to write quotes in strings. \' is insecure in client-only encodings."


Warn = Callable[[str, str, int | None], None]
"""Warns of a string (22P06): message, hint, position as of an error."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """``text[start:end]`` becomes ``new``."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class StandardText:
    """A text that means the same with every setting."""

    text: str
    _edits: tuple[_Edit, ...] = ()
    _starts: tuple[int, ...] = ()
    """Where each edit begins in the new text."""

    def led_back(self, error: SqlError) -> SqlError:
        """The error of this text, as one of the text that was sent."""
        if error.position is None or error.query is not None or not self._edits:
            return error
        at = error.position - 1
        last = bisect_right(self._starts, at) - 1
        if last < 0:
            return error
        edit, past = self._edits[last], at - self._starts[last]
        inside = past < len(edit.new)
        place = edit.start if inside else edit.end + past - len(edit.new)
        message = error.message.replace("at or near \"E'", "at or near \"'", 1) if inside else error.message
        return replace(error, message=message, position=place + 1)


def standard(text: str, quoting: Quoting, warn: Warn) -> StandardText:
    r"""A text in the session's manner as one in the standard's. Raises 22P06 for ``\'`` where it is refused, 0A000 for
    U&'…' in the session's manner, and what its tokens raise.

    Cost: one search for a backslash in texts that have none, otherwise a token at a time.
    """
    if "\\" not in text and not (quoting.escapes and "&'" in text):
        return StandardText(text)
    tokens = list(one_by_one(text, quoting.escapes))
    bodies = _bodies(tokens)
    edits: list[_Edit] = []
    for i, token in enumerate(tokens):
        if token.kind is not TokenKind.STRING:
            continue
        edit = _ordinary(text, token, quoting, warn)
        if i in bodies:
            edit = _body(text, token, quoting, warn) or edit
        if edit is not None:
            edits.append(edit)
    return _edited(text, tuple(edits))


def doubled(text: str) -> str:
    """A standard text for one who reads strings with escapes: each backslash of an ordinary string twice."""
    if "\\" not in text:
        return text
    strings = (t for t in one_by_one(text, escapes=False) if t.kind is TokenKind.STRING and text[t.start] == "'")
    edits = tuple(_Edit(t.start, t.end, text[t.start : t.end].replace("\\", "\\\\")) for t in strings)
    return _edited(text, edits).text


def _ordinary(text: str, token: Token, quoting: Quoting, warn: Warn) -> _Edit | None:
    """What makes a string of backslashes in quotes standard; None: it is."""
    prefix = text[token.start]
    if prefix in "$uU":
        return None
    backslash = text.find("\\", token.start, token.end)
    if backslash < 0 or not (quoting.escapes or prefix in "eE"):
        return None
    if quoting.refuses and _has_quote(text, backslash, token.end):
        raise SqlError("22P06", r"unsafe use of \' in a string literal", hint=_REFUSED, position=token.start + 1)
    if prefix in "eE":
        return None
    if quoting.warns:
        position = token.start + 1 + (prefix in "nN")
        what, hint = _NONSTANDARD.get(text[backslash + 1], _ESCAPE)
        warn(f"nonstandard use of {what} in a string literal", hint, position)
    if prefix in "nN":
        return _Edit(token.start, token.start + 1, "E")
    return _Edit(token.start, token.start, _prefix(text, token.start))


def _has_quote(text: str, at: int, end: int) -> bool:
    """Whether one of the escapes from an offset on is of a quote."""
    while 0 <= at < end:
        if text[at + 1] == "'":
            return True
        at = text.find("\\", at + 2, end)
    return False


def _prefix(text: str, at: int) -> str:
    return "E" if at == 0 or text[at - 1] in _APART else " E"


def _bodies(tokens: list[Token]) -> set[int]:
    """The places of the bodies of functions, procedures and DO in languages that have SQL's strings."""
    found: set[int] = set()
    verb = language = ""
    body: int | None = None
    ends = [*tokens, Token(TokenKind.SYMBOL, ";", 0, 0)]
    for i, (before, token) in enumerate(pairwise([ends[-1], *ends])):
        value = token.value if token.kind in (TokenKind.WORD, TokenKind.SYMBOL) else ""
        names_language = before.kind is TokenKind.WORD and before.value == "language"
        if value == ";":
            if body is not None and language in _LANGUAGES:
                found.add(body)
            verb, body = "", None
        elif value in ("function", "procedure") and before.value in ("create", "replace"):
            verb, language = "create", ""
        elif value == "do" and (ends[i + 1].kind is TokenKind.STRING or ends[i + 1].value == "language"):
            verb, language = "do", "plpgsql"
        elif verb and names_language:
            language = token.value.lower()
        elif verb and body is None and token.kind is TokenKind.STRING and (verb == "do" or before.value == "as"):
            body = i
    return found


def _body(text: str, token: Token, quoting: Quoting, warn: Warn) -> _Edit | None:
    """What makes the strings in a body standard; None: they are."""
    try:
        inner = standard(token.value, quoting, lambda message, hint, position: warn(message, hint, None)).text
    except SqlError as error:
        raise replace(error, position=None) from None
    if inner == token.value:
        return None
    if text[token.start] == "$":
        tag = text[token.start : text.index("$", token.start + 1) + 1]
        return _Edit(token.start, token.end, f"{tag}{inner}{tag}")
    written = inner.replace("\\", "\\\\").replace("'", "''")
    return _Edit(token.start, token.end, f"{_prefix(text, token.start)}'{written}'")


def _edited(text: str, edits: tuple[_Edit, ...]) -> StandardText:
    parts: list[str] = []
    starts: list[int] = []
    done = length = 0
    for edit in edits:
        kept = text[done : edit.start]
        starts.append(length + len(kept))
        parts += [kept, edit.new]
        done, length = edit.end, starts[-1] + len(edit.new)
    return StandardText("".join([*parts, text[done:]]), edits, tuple(starts))
