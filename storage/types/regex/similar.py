"""SIMILAR TO patterns, as regular expressions of Postgres's."""

from __future__ import annotations

from functools import lru_cache

from ivm.errors import SqlError
from storage.types.regex.expressions import regex


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
