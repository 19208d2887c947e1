"""The tokens of a jsonpath, as PostgreSQL's scanner (jsonpath_scan.l) cuts them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ivm.errors import SqlError

_BLANK: Final = " \t\n\r\f"
_SPECIAL: Final = "?%$.[]{}()|&!=<>@#,*:-+/"
_SYMBOLS: Final = ("&&", "||", "**", "<=", "==", "<>", "!=", ">=")
_OTHER: Final = r"""[^?%$.\[\]{}()|&!=<>@#,*:\-+/\\" \t\n\r\f]"""
_WORD: Final = re.compile(rf"{_OTHER}+")
_INTEGER: Final = r"(?:0|[1-9][0-9]*)"
_DECIMAL: Final = rf"(?:{_INTEGER}\.[0-9]*|\.[0-9]+)"
_REAL: Final = rf"(?:{_DECIMAL}|{_INTEGER})[eE][-+]?[0-9]+"
_UNICODE: Final = re.compile(r"\\u(?:([0-9A-Fa-f]{4})|\{([0-9A-Fa-f]{1,6})\})")
_HEX: Final = re.compile(r"\\x([0-9A-Fa-f]{2})")
_BROKEN: Final = re.compile(r"\\u(?:[0-9A-Fa-f]{0,3}|\{[0-9A-Fa-f]{0,6})|\\x[0-9A-Fa-f]?")
_CONTROLS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_INVALID: Final = "invalid input syntax for type jsonpath"


class TokenKind(Enum):
    """What a token is; a keyword is a WORD, told from a key by ``Token.keyword``."""

    WORD = "word"
    STRING = "string"
    NUMBER = "number"
    INTEGER = "integer"
    VARIABLE = "variable"
    SYMBOL = "symbol"
    END = "end"


_NUMBERS: Final = (
    (re.compile(_REAL), TokenKind.NUMBER, ""),
    (re.compile(_DECIMAL), TokenKind.NUMBER, ""),
    (re.compile(_INTEGER), TokenKind.INTEGER, ""),
    (re.compile(rf"(?:{_DECIMAL}|{_INTEGER})[eE][-+]"), TokenKind.END, "invalid numeric literal"),
    (re.compile(rf"(?:{_REAL}|{_DECIMAL}|{_INTEGER}){_OTHER}"), TokenKind.END, "trailing junk after numeric literal"),
)
_EXACT: Final = ("null", "true", "false")
_KEYWORDS: Final = frozenset(
    {
        "is", "to", "abs", "lax", "flag", "last", "size", "type", "with", "floor", "double", "exists", "starts",
        "strict", "ceiling", "unknown", "datetime", "keyvalue", "like_regex", *_EXACT,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """``text``: its characters, escapes decoded; ``shown``: what an error says of it; ``keyword``: which it is, or
    empty."""

    kind: TokenKind
    text: str
    shown: str
    keyword: str = ""


def syntax_error(message: str, shown: str) -> SqlError:
    """42601 at a token, or at the end where nothing is shown."""
    where = f'at or near "{shown}" of' if shown else "at end of"
    return SqlError("42601", f"{message} {where} jsonpath input")


def tokens(text: str) -> list[Token]:
    """All tokens, the last of which is END. Raises 42601, 22P02, 22P05."""
    reader = _Reader(text)
    found: list[Token] = []
    while not found or found[-1].kind is not TokenKind.END:
        found.append(reader.next())
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def next(self) -> Token:
        text = self.text
        while self.at < len(text) and (text[self.at] in _BLANK or text.startswith("/*", self.at)):
            if text[self.at] in _BLANK:
                self.at += 1
                continue
            end = text.find("*/", self.at + 2)
            if end < 0:
                raise syntax_error("unexpected end of comment", "")
            self.at = end + 2
        c = text[self.at : self.at + 1]
        if not c:
            return Token(TokenKind.END, "", "")
        if c == '"':
            self.at += 1
            return Token(TokenKind.STRING, self._quoted(), '"')
        if c == "$":
            return self._variable()
        if c in "0123456789" or (c == "." and text[self.at + 1 : self.at + 2].isdecimal()):
            return self._number()
        if c in _SPECIAL:
            symbol = next((s for s in _SYMBOLS if text.startswith(s, self.at)), c)
            self.at += len(symbol)
            return Token(TokenKind.SYMBOL, symbol, symbol)
        return self._word()

    def _variable(self) -> Token:
        if self.text.startswith('$"', self.at):
            self.at += 2
            return Token(TokenKind.VARIABLE, self._quoted(), '"')
        word = _WORD.match(self.text, self.at + 1)
        self.at = self.at + 1 if word is None else word.end()
        if word is None:
            return Token(TokenKind.SYMBOL, "$", "$")
        return Token(TokenKind.VARIABLE, word[0], f"${word[0]}")

    def _number(self) -> Token:
        """The longest that matches; of two as long, the first."""
        found = [(m[0], kind, error) for form, kind, error in _NUMBERS if (m := form.match(self.text, self.at))]
        text, kind, error = max(found, key=lambda one: len(one[0]))
        if error:
            raise syntax_error(error, text)
        self.at += len(text)
        return Token(kind, text, text)

    def _word(self) -> Token:
        parts: list[str] = []
        while True:
            if (word := _WORD.match(self.text, self.at)) is not None:
                parts.append(word[0])
                self.at = word.end()
            elif self.text[self.at : self.at + 1] == "\\":
                parts.append(self._escape())
            else:
                break
        start = self.at
        while self.text[self.at : self.at + 1] and self.text[self.at] in _BLANK:
            self.at += 1
        text = "".join(parts)
        lower = text.lower()
        known = lower in _KEYWORDS and (lower not in _EXACT or text == lower)
        return Token(TokenKind.WORD, text, self.text[start : self.at], lower if known else "")

    def _quoted(self) -> str:
        parts: list[str] = []
        while True:
            start = self.at
            while self.at < len(self.text) and self.text[self.at] not in '"\\':
                self.at += 1
            parts.append(self.text[start : self.at])
            if self.at == len(self.text):
                raise syntax_error("unexpected end of quoted string", "")
            if self.text[self.at] == '"':
                self.at += 1
                return "".join(parts)
            parts.append(self._escape())

    def _escape(self) -> str:
        """The characters of an escape, or of several in a row that are codes. Raises 42601, 22P02, 22P05."""
        if _UNICODE.match(self.text, self.at):
            return self._codes()
        if (found := _HEX.match(self.text, self.at)) is not None:
            self.at = found.end()
            return _character(int(found[1], 16))
        if (broken := _BROKEN.match(self.text, self.at)) is not None:
            kind = "unicode" if broken[0][1] == "u" else "hex character"
            raise syntax_error(f"invalid {kind} sequence", broken[0])
        c = self.text[self.at + 1 : self.at + 2]
        if not c:
            raise syntax_error("unexpected end after backslash", "\\")
        self.at += 2
        return _CONTROLS.get(c, c)

    def _codes(self) -> str:
        parts: list[str] = []
        high = 0
        start = self.at
        while (found := _UNICODE.match(self.text, self.at)) is not None:
            self.at = found.end()
            code = int(found[1] or found[2], 16)
            if 0xD800 <= code < 0xDC00:
                if high:
                    raise SqlError("22P02", _INVALID, "Unicode high surrogate must not follow a high surrogate.")
                high = code
                continue
            if (0xDC00 <= code < 0xE000) is not bool(high):
                raise SqlError("22P02", _INVALID, "Unicode low surrogate must follow a high surrogate.")
            parts.append(_character(0x10000 + ((high - 0xD800) << 10) + code - 0xDC00 if high else code))
            high = 0
        if (broken := _BROKEN.match(self.text, self.at)) is not None and broken[0][1] == "u":
            raise syntax_error("invalid unicode sequence", self.text[start : broken.end()])
        if high:
            raise SqlError("22P02", _INVALID, "Unicode low surrogate must follow a high surrogate.")
        return "".join(parts)


def _character(code: int) -> str:
    if code == 0:
        raise SqlError("22P05", "unsupported Unicode escape sequence", "\\u0000 cannot be converted to text.")
    if code > 0x10FFFF:
        raise SqlError("42601", "could not convert Unicode to server encoding")
    return chr(code)
