"""Postgres's "advanced" regular expressions (POSIX), translated to tokens in Python's syntax.

Escapes, classes and constraints are translated; the rest is refused (0A000).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ivm.errors import SqlError, unsupported


class Sort(Enum):
    """``LEAF``: matches one character. ``AT``: a place between characters."""

    LEAF = 0
    AT = 1
    OPEN = 2
    LOOK = 3
    CLOSE = 4
    CLOSE_LOOK = 5
    BAR = 6
    REPEAT = 7
    BACK = 8


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` is Python's syntax. ``number``: of the group that it opens (0: none) or refers to. ``least``, ``most``
    (None: any) and ``lazy``: of a quantifier."""

    sort: Sort
    text: str
    number: int = 0
    least: int = 0
    most: int | None = None
    lazy: bool = False


def leaf(text: str) -> Token:
    """The token of a leaf."""
    return Token(Sort.LEAF, text)


AT_BEGIN: Final = Token(Sort.AT, "\\A")
AT_END: Final = Token(Sort.AT, "\\Z")
AT_LINE: Final = Token(Sort.AT, "(?:(?<=\\n)|\\A)")
AT_LINE_END: Final = Token(Sort.AT, "(?=\\n|\\Z)")
AT_EDGE: Final = Token(Sort.AT, "\\b")
AT_NO_EDGE: Final = Token(Sort.AT, "\\B")
AT_WORD: Final = Token(Sort.AT, "\\b(?=\\w)")
AT_WORD_END: Final = Token(Sort.AT, "\\b(?<=\\w)")
_CONSTRAINTS: Final = {
    "y": AT_EDGE, "Y": AT_NO_EDGE, "m": AT_WORD, "M": AT_WORD_END, "A": AT_BEGIN, "Z": AT_END,
}  # fmt: skip
_CLASSES: Final = {
    "alpha": "^\\W\\d_", "digit": "\\d", "alnum": "^\\W_", "upper": "A-ZÀ-ÖØ-Þ", "lower": "a-zß-öø-ÿ", "space": "\\s",
    "punct": "!-/:-@\\[-`{-~", "xdigit": "0-9A-Fa-f", "cntrl": "\\x00-\\x1f\\x7f", "blank": " \\t",
    "print": " -~\\u00a0-\\U0010ffff", "graph": "!-~\\u00a1-\\U0010ffff", "word": "\\w",
}  # fmt: skip
_SIMPLE_ESCAPES: Final = {
    "a": "\\x07", "b": "\\x08", "B": "\\\\", "e": "\\x1b", "f": "\\f", "n": "\\n", "r": "\\r", "t": "\\t", "v": "\\v",
}  # fmt: skip
_OPERANDS: Final = (Sort.LEAF, Sort.CLOSE, Sort.BACK)
_QUANTIFIERS: Final = "*+?{"
_NEVER: Final = "(?:(?!))"
_MAX_CODE: Final = 0x7FFFFFFE
"""Escapes may name characters beyond Unicode, which no text has."""


class Translator:
    """Translates one of Postgres's regular expressions to Python's in one pass, and notes what ``find`` needs.

    ``lines``: ``^`` and ``$`` match at every line; ``stops``: ``.`` and ``[^…]`` match no newline. ``nested``: of each
    open parenthesis, whether it is a lookaround; ``looks``: how many are; ``groups``: how many captured so far."""

    def __init__(self, source: str, lines: bool, stops: bool, expanded: bool) -> None:
        self.source, self.at, self.out = source, 0, list[Token]()
        self.lines, self.stops, self.expanded = lines, stops, expanded
        self.alternatives = self.greedy = self.lazy = self.in_brackets = False
        self.groups = self.looks = 0
        self.nested: list[bool] = []

    def run(self) -> list[Token]:
        """The tokens, whose texts joined are the expression in Python's syntax."""
        while self.at < len(self.source):
            self._one()
        return self.out

    def _leaf(self, text: str) -> None:
        self.out.append(leaf(text))

    def _one(self) -> None:
        c = self.source[self.at]
        self.at += 1
        if c == "\\":
            self._escape()
        elif c == "[":
            self._bracket()
        elif c == "(":
            self._group()
        elif c == ")":
            self._close()
        elif c in _QUANTIFIERS:
            self._quantifier(c)
        elif c == "$":
            self.out.append(AT_LINE_END if self.lines else AT_END)
        elif c == "^":
            self.out.append(AT_LINE if self.lines else AT_BEGIN)
        elif c == ".":
            self._leaf("[^\\n]" if self.stops else ".")
        elif c == "|":
            self.alternatives = True
            self.out.append(Token(Sort.BAR, c))
        elif self.expanded and c.isspace():
            pass
        elif self.expanded and c == "#":
            end = self.source.find("\n", self.at)
            self.at = len(self.source) if end < 0 else end + 1
        else:
            self._leaf(re.escape(c))

    def _escape(self) -> None:
        if self.at >= len(self.source):
            raise SqlError("2201B", "invalid regular expression: invalid escape \\ sequence")
        c = self.source[self.at]
        self.at += 1
        if c in _CONSTRAINTS and not self.in_brackets:
            self.out.append(_CONSTRAINTS[c])
        elif c in _SIMPLE_ESCAPES:
            self._leaf(_SIMPLE_ESCAPES[c])
        elif c in "dDsSwW":
            self._leaf("\\" + c)
        elif c in "xuU":
            found = re.compile({"x": "[0-9a-fA-F]+", "u": "[0-9a-fA-F]{4}", "U": "[0-9a-fA-F]{8}"}[c]).match(
                self.source, self.at
            )
            if found is None or int(found[0], 16) > _MAX_CODE:
                raise SqlError("2201B", "invalid regular expression: invalid escape \\ sequence")
            self.at = found.end()
            self._code(int(found[0], 16))
        elif "0" <= c <= "9":
            self._digits()
        elif c.isalpha():
            raise SqlError("2201B", "invalid regular expression: invalid escape \\ sequence")
        else:
            self._leaf(re.escape(c))

    def _code(self, code: int) -> None:
        if code <= 0x10FFFF:
            self._leaf(re.escape(chr(code)))
        else:
            # in brackets it may end a range
            self._leaf("\U0010ffff" if self.in_brackets else _NEVER)

    def _digits(self) -> None:
        """A back-reference, or a character by up to three octal digits."""
        found = re.compile(r"[1-9]\d*", re.ASCII).match(self.source, self.at - 1)
        if found is not None and not self.in_brackets and (len(found[0]) == 1 or int(found[0]) <= self.groups):
            if self.looks:
                raise SqlError("2201B", "invalid regular expression: invalid backreference number")
            self.at = found.end()
            self.out.append(Token(Sort.BACK, f"(?:\\{found[0]})", number=int(found[0])))
            return
        octal = re.compile("[0-3][0-7]{0,2}|[4-7][0-7]?").match(self.source, self.at - 1)
        if octal is None:
            raise SqlError("2201B", "invalid regular expression: invalid escape \\ sequence")
        self.at = octal.end()
        self._code(int(octal[0], 8))

    def _group(self) -> None:
        if self.source.startswith("?#", self.at):
            end = self.source.find(")", self.at)
            self.at = len(self.source) if end < 0 else end + 1
            return
        for prefix in ("?:", "?=", "?!", "?<=", "?<!"):
            if self.source.startswith(prefix, self.at):
                self.at += len(prefix)
                self._open("(" + prefix, looks=prefix != "?:")
                return
        if self.source.startswith("?", self.at):
            raise SqlError("2201B", "invalid regular expression: quantifier operand invalid")
        # inside of a lookaround no parentheses capture
        self.groups += not self.looks
        self._open("(?:" if self.looks else "(", looks=False)

    def _open(self, text: str, *, looks: bool) -> None:
        sort = Sort.LOOK if looks else Sort.OPEN
        self.out.append(Token(sort, text, number=self.groups if text == "(" else 0))
        self.nested.append(looks)
        self.looks += looks

    def _close(self) -> None:
        looks = bool(self.nested) and self.nested.pop()
        self.out.append(Token(Sort.CLOSE_LOOK if looks else Sort.CLOSE, ")"))
        self.looks -= looks

    def _quantifier(self, c: str) -> None:
        token, fixed, least, most = c, False, int(c == "+"), 1 if c == "?" else None
        if c == "{":
            end = self.source.find("}", self.at)
            body = self.source[self.at : end] if end >= 0 else ""
            if not re.fullmatch(r"\d+(,\d*)?", body):
                if not self.source[self.at : self.at + 1].isdigit():
                    self._leaf("\\{")
                    return
                raise SqlError("2201B", "invalid regular expression: braces {} not balanced")
            bounds = [int(part) for part in body.split(",") if part]
            if max(bounds) > 255 or (len(bounds) > 1 and bounds[0] > bounds[1]):
                raise SqlError("2201B", "invalid regular expression: invalid repetition count(s)")
            self.at, token, fixed = end + 1, "{" + body + "}", "," not in body
            least, most = bounds[0], None if body.endswith(",") else bounds[-1]
        lazy = self.source.startswith("?", self.at)
        if lazy:
            self.at += 1
            token += "?"
            self.lazy = True
        elif not fixed:
            self.greedy = True
        operand = self.out[-1].sort if self.out else Sort.BAR
        if operand not in _OPERANDS or self.source[self.at : self.at + 1] in tuple("*+?"):
            raise SqlError("2201B", "invalid regular expression: quantifier operand invalid")
        self.out.append(Token(Sort.REPEAT, token, least=least, most=most, lazy=lazy))

    def _bracket(self) -> None:
        if self.source.startswith("[:<:]]", self.at) or self.source.startswith("[:>:]]", self.at):
            self.out.append(_CONSTRAINTS["m" if self.source[self.at + 2] == "<" else "M"])
            self.at += 6
            return
        negated = self.source.startswith("^", self.at)
        self.at += negated
        plain: list[str] = ["\\n"] if negated and self.stops else []
        options: list[str] = []
        first = True
        while True:
            if self.at >= len(self.source):
                raise SqlError("2201B", "invalid regular expression: brackets [] not balanced")
            c = self.source[self.at]
            self.at += 1
            if c == "]" and not first:
                break
            first = False
            if c == "[" and self.source[self.at : self.at + 1] in (":", ".", "="):
                self._class(plain, options)
            elif c == "\\":
                self._bracket_escape(plain)
            else:
                plain.append("\\" + c if c in "\\]^[&~|" or (c == "-" and self._edge()) else c)
        self._write_bracket(plain, options, negated)

    def _edge(self) -> bool:
        # a dash is literal at either end of the brackets
        return self.source[self.at : self.at + 1] == "]" or self.source[self.at - 2] in "[^"

    def _class(self, plain: list[str], options: list[str]) -> None:
        kind = self.source[self.at]
        end = self.source.find(kind + "]", self.at + 1)
        name = self.source[self.at + 1 : end] if end >= 0 else ""
        self.at = end + 2
        if kind != ":":
            if len(name) != 1:
                raise unsupported("a collating element in a regular expression")
            plain.append(re.escape(name))
        elif name not in _CLASSES:
            raise SqlError("2201B", "invalid regular expression: invalid character class")
        elif _CLASSES[name].startswith("^"):
            options.append(f"[{_CLASSES[name]}]")
        else:
            plain.append(_CLASSES[name])

    def _bracket_escape(self, plain: list[str]) -> None:
        mark = len(self.out)
        self.in_brackets = True
        self._escape()
        self.in_brackets = False
        plain.append("".join(token.text for token in self.out[mark:]))
        del self.out[mark:]

    def _write_bracket(self, plain: list[str], options: list[str], negated: bool) -> None:
        choices = ([f"[{''.join(plain)}]"] if plain else []) + options
        if len(choices) == 1 and not negated:
            self._leaf(choices[0])
        elif not options:
            self._leaf(f"[^{''.join(plain)}]")
        elif negated:
            self._leaf("(?:" + "".join(f"(?!{choice})" for choice in choices) + "(?s:.))")
        else:
            self._leaf("(?:" + "|".join(choices) + ")")
