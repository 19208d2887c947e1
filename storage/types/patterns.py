"""LIKE patterns, SIMILAR TO patterns and Postgres's regular expressions, compiled to Python's.

Postgres has POSIX "advanced" regular expressions. Escapes, classes and constraints are translated; the rest is refused
(0A000). A match is the leftmost, and of those the longest (Python takes the first alternative): see ``find``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError, unsupported

_CLASSES: Final = {
    "alpha": "^\\W\\d_", "digit": "\\d", "alnum": "^\\W_", "upper": "A-ZÀ-ÖØ-Þ", "lower": "a-zß-öø-ÿ", "space": "\\s",
    "punct": "!-/:-@\\[-`{-~", "xdigit": "0-9A-Fa-f", "cntrl": "\\x00-\\x1f\\x7f", "blank": " \\t",
    "print": " -~\\u00a0-\\U0010ffff", "graph": "!-~\\u00a1-\\U0010ffff", "word": "\\w",
}  # fmt: skip
_SIMPLE_ESCAPES: Final = {
    "y": "\\b", "Y": "\\B", "m": "\\b(?=\\w)", "M": "\\b(?<=\\w)", "A": "\\A", "Z": "\\Z", "a": "\\x07", "b": "\\x08",
    "B": "\\\\", "e": "\\x1b", "f": "\\f", "n": "\\n", "r": "\\r", "t": "\\t", "v": "\\v",
}  # fmt: skip
_QUANTIFIERS: Final = "*+?{"
_NEVER: Final = "(?:(?!))"
_MAX_CODE: Final = 0x7FFFFFFE
"""Escapes may name characters beyond Unicode, which no text has."""


@lru_cache(4096)
def like_pattern(pattern: str, escape: str, ignore_case: bool) -> re.Pattern[str]:
    """Compiles a LIKE pattern; ``escape`` is one character, or empty for none.

    If the pattern ends with its escape character, the group ``dangling`` matches any text left for it, or none after
    a ``%``: raise 22025.
    """
    if len(escape) > 1:
        raise SqlError("22025", "invalid escape string", hint="Escape string must be empty or one character.")
    out: list[str] = []
    letters = iter(pattern)
    after_any = False
    for c in letters:
        if c == escape:
            following = next(letters, None)
            left = ".*" if after_any else ".+"
            out.append(f"(?P<dangling>{left})" if following is None else re.escape(following))
            after_any = False
        else:
            out.append(".*" if c == "%" else "." if c == "_" else re.escape(c))
            after_any = c == "%" or (after_any and c == "_")
    return re.compile("".join(out), re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def similar_to_regex(pattern: str, escape: str) -> str:
    """A SIMILAR TO pattern as one of Postgres's regular expressions, anchored at both ends.

    Two escaped double quotes divide it into three parts, of which ``SUBSTRING … SIMILAR`` returns the second. The first
    part matches as little as it can.
    """
    parts = _similar_parts(pattern, escape)
    joined = parts[0] + "".join(f"){{1,1}}{opening}{part}" for opening, part in zip(("?(", "(?:"), parts[1:]))  # noqa: B905
    return f"^(?:{joined})$"


@lru_cache(1024)
def _similar_parts(pattern: str, escape: str) -> list[str]:
    """The one to three parts of a SIMILAR TO pattern, as regular expressions."""
    if len(escape) > 1:
        raise SqlError("22025", "invalid escape string", hint="Escape string must be empty or one character.")
    parts: list[list[str]] = [[]]
    letters = iter(pattern)
    bracket = False
    for c in letters:
        out = parts[-1]
        if c == escape:
            following = next(letters, "")
            if following == '"' and not bracket:
                parts.append([])
            elif following:
                out.append("\\" + following)
        elif bracket:
            bracket = c != "]"
            out.append("\\\\" if c == "\\" else c)
        elif c == "[":
            bracket = True
            out.append(c)
        elif c in "%_":
            out.append(".*" if c == "%" else ".")
        elif c == "(":
            out.append("(?:")
        else:
            out.append("\\" + c if c in ".^$\\" else c)
    if len(parts) > 3:
        message = "SQL regular expression may not contain more than two escape-double-quote separators"
        raise SqlError("2200C", message)
    return ["".join(part) for part in parts]


def similar_substring(value: str, pattern: str, escape: str) -> str | None:
    """What the second part of a SIMILAR TO pattern matches, or the whole value if there is one part; None without a
    match. Cost: the square of the value's length."""
    whole = regex(similar_to_regex(pattern, escape))
    if not whole.matches(value):
        return None
    parts = [regex(f"^(?:{part})$") for part in _similar_parts(pattern, escape)]
    if len(parts) == 1:
        return value
    first, second, *third = parts
    for start in (i for i in range(len(value) + 1) if first.matches(value[:i])):
        for end in range(len(value), start - 1, -1) if third else (len(value),):
            if second.matches(value[start:end]) and all(part.matches(value[end:]) for part in third):
                return value[start:end]
    return None


class _Translator:
    """Translates one of Postgres's regular expressions to Python's in one pass, and notes what ``find`` needs.

    ``lines``: ``^`` and ``$`` match at every line; ``stops``: ``.`` and ``[^…]`` match no newline. ``nested``: of each
    open parenthesis, whether it is a lookaround; ``looks``: how many are; ``groups``: how many captured so far."""

    def __init__(self, source: str, lines: bool, stops: bool, expanded: bool) -> None:
        self.source, self.at, self.out = source, 0, list[str]()
        self.lines, self.stops, self.expanded = lines, stops, expanded
        self.alternatives = self.greedy = self.lazy = self.in_brackets = False
        self.groups = self.looks = 0
        self.nested: list[bool] = []

    def run(self) -> str:
        while self.at < len(self.source):
            self._one()
        return "".join(self.out)

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
            self.out.append("(?=\\n|\\Z)" if self.lines else "\\Z")
        elif c == "^":
            self.out.append("(?:(?<=\\n)|\\A)" if self.lines else "\\A")
        elif c == ".":
            self.out.append("[^\\n]" if self.stops else ".")
        elif c == "|":
            self.alternatives = True
            self.out.append(c)
        elif self.expanded and c.isspace():
            pass
        elif self.expanded and c == "#":
            end = self.source.find("\n", self.at)
            self.at = len(self.source) if end < 0 else end + 1
        else:
            self.out.append(re.escape(c))

    def _escape(self) -> None:
        if self.at >= len(self.source):
            raise SqlError("2201B", "invalid regular expression: invalid escape \\ sequence")
        c = self.source[self.at]
        self.at += 1
        if c in _SIMPLE_ESCAPES:
            self.out.append(_SIMPLE_ESCAPES[c])
        elif c in "dDsSwW":
            self.out.append("\\" + c)
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
            self.out.append(re.escape(c))

    def _code(self, code: int) -> None:
        if code <= 0x10FFFF:
            self.out.append(re.escape(chr(code)))
        else:
            # in brackets it may end a range
            self.out.append("\U0010ffff" if self.in_brackets else _NEVER)

    def _digits(self) -> None:
        """A back-reference, or a character by up to three octal digits."""
        found = re.compile(r"[1-9]\d*", re.ASCII).match(self.source, self.at - 1)
        if found is not None and not self.in_brackets and (len(found[0]) == 1 or int(found[0]) <= self.groups):
            if self.looks:
                raise SqlError("2201B", "invalid regular expression: invalid backreference number")
            self.at = found.end()
            self.out.append(f"(?:\\{found[0]})")
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
        self.out.append(text)
        self.nested.append(looks)
        self.looks += looks

    def _close(self) -> None:
        self.out.append(")")
        if self.nested:
            self.looks -= self.nested.pop()

    def _quantifier(self, c: str) -> None:
        token, fixed = c, False
        if c == "{":
            end = self.source.find("}", self.at)
            body = self.source[self.at : end] if end >= 0 else ""
            if not re.fullmatch(r"\d+(,\d*)?", body):
                if not self.source[self.at : self.at + 1].isdigit():
                    self.out.append("\\{")
                    return
                raise SqlError("2201B", "invalid regular expression: braces {} not balanced")
            bounds = [int(part) for part in body.split(",") if part]
            if max(bounds) > 255 or (len(bounds) > 1 and bounds[0] > bounds[1]):
                raise SqlError("2201B", "invalid regular expression: invalid repetition count(s)")
            self.at, token, fixed = end + 1, "{" + body + "}", "," not in body
        if self.source.startswith("?", self.at):
            self.at += 1
            token += "?"
            self.lazy = True
        elif not fixed:
            self.greedy = True
        if self.source[self.at : self.at + 1] in tuple("*+?"):
            raise SqlError("2201B", "invalid regular expression: quantifier operand invalid")
        self.out.append(token)

    def _bracket(self) -> None:
        if self.source.startswith("[:<:]]", self.at) or self.source.startswith("[:>:]]", self.at):
            self.out.append(_SIMPLE_ESCAPES["m" if self.source[self.at + 2] == "<" else "M"])
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
        plain.append("".join(self.out[mark:]))
        del self.out[mark:]

    def _write_bracket(self, plain: list[str], options: list[str], negated: bool) -> None:
        choices = ([f"[{''.join(plain)}]"] if plain else []) + options
        if len(choices) == 1 and not negated:
            self.out.append(choices[0])
        elif not options:
            self.out.append(f"[^{''.join(plain)}]")
        elif negated:
            self.out.append("(?:" + "".join(f"(?!{choice})" for choice in choices) + "(?s:.))")
        else:
            self.out.append("(?:" + "|".join(choices) + ")")


class Regex:
    """A compiled regular expression of Postgres's. ``pattern`` is Python's."""

    def __init__(self, pattern: re.Pattern[str], longest: bool, mixed: bool) -> None:
        self.pattern, self.longest, self.mixed = pattern, longest, mixed

    def matches(self, text: str) -> bool:
        """Whether the expression matches anywhere in the text."""
        return self.pattern.search(text) is not None

    def find(self, text: str, start: int = 0) -> re.Match[str] | None:
        """The leftmost match from ``start`` on; the longest one, where alternatives may give several."""
        if self.mixed:
            raise unsupported("a regular expression that mixes greedy and non-greedy quantifiers")
        found = self.pattern.search(text, start)
        if found is None or not self.longest:
            return found
        for end in range(len(text), found.end(), -1):
            longer = self.pattern.fullmatch(text, found.start(), end)
            if longer is not None and (end == len(text) or self._stands(text, longer)):
                return longer
        return found

    def _stands(self, text: str, match: re.Match[str]) -> bool:
        # a match that ends at ``endpos`` must also hold with the rest of the text in view
        source = self.pattern.pattern
        if "\\Z" not in source and "(?" not in source.replace("(?:", "") and "\\b" not in source.lower():
            return True
        rest = re.escape(text[match.end() :])
        return re.compile(f"(?:{source}){rest}\\Z", self.pattern.flags).match(text, match.start()) is not None

    def find_all(self, text: str, at: int = 0) -> Iterator[re.Match[str]]:
        """All matches from ``at`` on, left to right; after an empty one the search moves on by one character."""
        while at <= len(text):
            found = self.find(text, at)
            if found is None:
                return
            yield found
            at = found.end() if found.end() > found.start() else found.end() + 1


@lru_cache(4096)
def regex(pattern: str, flags: str = "") -> Regex:
    """Compiles an expression. ``flags``: any of i, c, n, m, s, p, w, x, q, t (not g). Raises 2201B if malformed."""
    ignore, lines, stops, expanded, literal = False, False, False, False, False
    if pattern.startswith("***="):
        pattern, literal = pattern[4:], True
    elif pattern.startswith("***:"):
        pattern = pattern[4:]
    embedded = re.match(r"\(\?([a-z]+)\)", pattern)
    if embedded and not literal:
        flags, pattern = flags + embedded[1], pattern[embedded.end() :]
    for flag in flags:
        match flag:
            case "i":
                ignore = True
            case "c":
                ignore = False
            case "n" | "m":
                lines = stops = True
            case "s":
                lines = stops = False
            case "p":
                lines, stops = False, True
            case "w":
                lines, stops = True, False
            case "x":
                expanded = True
            case "t":
                expanded = False
            case "q":
                literal = True
            case "e" | "b":
                raise unsupported(f'the regular expression option "{flag}"')
            case _:
                raise SqlError("22023", f'invalid regular expression option: "{flag}"')
    translator = _Translator(pattern, lines, stops, expanded)
    source = re.escape(pattern) if literal else translator.run()
    try:
        compiled = re.compile(source, re.DOTALL | (re.IGNORECASE if ignore else 0))
    except (re.error, OverflowError) as error:
        raise SqlError("2201B", f"invalid regular expression: {_reason(str(error))}") from None
    return Regex(compiled, translator.alternatives, translator.greedy and translator.lazy)


def _reason(message: str) -> str:
    if "parenthes" in message or "subpattern" in message:
        return "parentheses () not balanced"
    if "repeat" in message:
        return "quantifier operand invalid"
    if "group reference" in message:
        return "invalid backreference number"
    if "range" in message:
        return "invalid character range"
    return message
