"""The error of invalid JSON text, as Postgres words it (jsonapi.c): the first token that cannot stand where it does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ivm.errors import SqlError, too_deep

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD: Final = re.compile(r"[A-Za-z0-9_\x80-\U0010ffff]*")
_NUMERIC: Final = re.compile(r"[-+.A-Za-z0-9_\x80-\U0010ffff]*")
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")
_MESSAGE: Final = "invalid input syntax for type json"
_END: Final = "The input string ended unexpectedly."


def json_error(text: str, characters: bool, *, required: bool = True) -> SqlError:
    """The error of text that is no JSON. ``characters``: escapes must stand for characters of SQL's text.

    Where not ``required``, raises the error if there is one.
    """
    reader = _Reader(text, characters)
    try:
        reader.document()
    except SqlError as error:
        if required:
            return error
        raise
    except RecursionError:
        return too_deep()
    return SqlError("22P02", _MESSAGE)


class _Reader:
    """A recursive descent over JSON text that raises SqlError at the first wrong token."""

    def __init__(self, text: str, characters: bool) -> None:
        self.text = text
        self.characters = characters
        self.at = 0

    def document(self) -> None:
        self._value("JSON value")
        if self._peek():
            raise self._unexpected("end of input")

    def _peek(self) -> str:
        """The next character after white space; empty at the end."""
        match = _SPACE.match(self.text, self.at)
        assert match is not None, "it matches nothing too"
        self.at = match.end()
        return self.text[self.at : self.at + 1]

    def _value(self, wanted: str) -> None:
        match self._peek():
            case "{":
                self._sequence("}", 'string or "}"', self._member)
            case "[":
                self._sequence("]", 'array element or "]"', self._element)
            case '"':
                self._string()
            case _:
                self._scalar(wanted)

    def _element(self, first: bool) -> None:
        self._value('array element or "]"' if first else "JSON value")

    def _member(self, first: bool) -> None:
        if self._peek() != '"':
            raise self._unexpected('string or "}"' if first else "string")
        self._string()
        if self._peek() != ":":
            raise self._unexpected('":"')
        self.at += 1
        self._value("JSON value")

    def _sequence(self, end: str, wanted: str, item: Callable[[bool], None]) -> None:
        """The parts of an array or object."""
        self.at += 1
        if self._peek() == end:
            self.at += 1
            return
        item(True)
        while (token := self._peek()) == ",":
            self.at += 1
            item(False)
        if token != end:
            raise self._unexpected(f'"," or "{end}"')
        self.at += 1

    def _scalar(self, wanted: str) -> None:
        token = self._token()
        if token in ("true", "false", "null") or _NUMBER.fullmatch(token):
            self.at += len(token)
            return
        raise self._unexpected(wanted)

    def _token(self) -> str:
        """The token that starts here, as Postgres's lexer cuts it."""
        text, first = self.text, self.text[self.at : self.at + 1]
        if first == "-" or first.isdigit():
            number = _NUMBER.match(text, self.at)
            end = self.at if number is None else number.end()
            rest = _NUMERIC.match(text, end)
        else:
            rest = _WORD.match(text, self.at)
        assert rest is not None, "it matches nothing too"
        return text[self.at : max(rest.end(), self.at + 1)]

    def _unexpected(self, wanted: str) -> SqlError:
        """The error of the next token, where ``wanted`` should stand."""
        first = self._peek()
        if not first:
            return SqlError("22P02", _MESSAGE, _END)
        if first == '"':
            start = self.at
            self._string()
            token, known = self.text[start : self.at], True
        elif first in "{}[],:":
            token, known = first, True
        else:
            token = self._token()
            known = token in ("true", "false", "null") or _NUMBER.fullmatch(token) is not None
        if not known:
            return SqlError("22P02", _MESSAGE, f'Token "{token}" is invalid.')
        return SqlError("22P02", _MESSAGE, f'Expected {wanted}, but found "{token}".')

    def _string(self) -> None:
        text, start = self.text, self.at
        self.at += 1
        high = False
        while True:
            c = text[self.at : self.at + 1]
            if not c:
                raise SqlError("22P02", _MESSAGE, f'Token "{text[start:]}" is invalid.')
            self.at += 1
            if c == "\\":
                high = self._escape(high)
                continue
            if c < " ":
                raise SqlError("22P02", _MESSAGE, f"Character with value 0x{ord(c):02x} must be escaped.")
            if high:
                raise _surrogate("low surrogate must follow a high surrogate")
            if c == '"':
                return

    def _escape(self, high: bool) -> bool:
        """What follows a backslash; whether it is a high surrogate, ``high``: as the one before was."""
        c = self.text[self.at : self.at + 1]
        self.at += 1
        if c == "u":
            code = _HEX.match(self.text, self.at)
            if code is None:
                raise SqlError("22P02", _MESSAGE, '"\\u" must be followed by four hexadecimal digits.')
            self.at += 4
            return self._code(int(code[0], 16), high) if self.characters else False
        if not c:
            raise SqlError("22P02", _MESSAGE, _END)
        if c not in '"\\/bfnrt':
            raise SqlError("22P02", _MESSAGE, f'Escape sequence "\\{c}" is invalid.')
        if high:
            raise _surrogate("low surrogate must follow a high surrogate")
        return False

    def _code(self, code: int, high: bool) -> bool:
        if 0xD800 <= code < 0xDC00:
            if high:
                raise _surrogate("high surrogate must not follow a high surrogate")
            return True
        if high is not (0xDC00 <= code < 0xE000):
            raise _surrogate("low surrogate must follow a high surrogate")
        if code == 0:
            raise SqlError("22P05", "unsupported Unicode escape sequence", "\\u0000 cannot be converted to text.")
        return False


def _surrogate(rule: str) -> SqlError:
    return SqlError("22P02", _MESSAGE, f"Unicode {rule}.")
