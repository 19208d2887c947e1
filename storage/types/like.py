"""LIKE patterns, matched in time linear in the text.

A pattern is the parts between its ``%``, each of a fixed length: the first stands at the text's begin, the last at its
end, and each other one is found as far left as it can be, which never rules out a match of the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError
from ivm.stops import polled
from storage.types.regex.matching import Regex, too_many_steps
from storage.types.regex.program import MOST_STEPS
from storage.types.regex.translate import leaf

_LONG: Final = 10_000
"""Longer patterns are compiled each time, since each kept one would take their memory."""
_NOTHING: Final = Regex(re.compile(""), (), False, False)


@dataclass(frozen=True, slots=True)
class Part:
    """``text``: what it is; None: ``pattern`` says. ``length``: how many characters it matches."""

    text: str | None
    pattern: Regex
    length: int

    def find(self, value: str, at: int, end: int) -> int:
        """Where it is found first from ``at`` on, wholly before ``end``; -1: nowhere. Raises 54001."""
        if self.text is not None:
            return value.find(self.text, at, end)
        found = self.pattern.find(value, at)
        return -1 if found is None or found.end > end else found.start

    def stands(self, value: str, at: int) -> bool:
        """Whether it is found here."""
        if self.text is not None:
            return value.startswith(self.text, at)
        return self.pattern.pattern.match(value, at) is not None


@dataclass(frozen=True, slots=True)
class Like:
    """A compiled LIKE pattern. ``dangling``: it ends with its escape character, so that matching fails (22025)."""

    parts: tuple[Part, ...]
    dangling: bool

    def matches(self, value: str) -> bool:
        """Whether a whole text matches. Raises 22025."""
        found = self._matches(value)
        if found and self.dangling:
            raise SqlError("22025", "LIKE pattern must not end with escape character")
        return found

    def _matches(self, value: str) -> bool:
        first, *middle = self.parts
        if not middle:
            return len(value) == first.length and first.stands(value, 0)
        last = middle.pop()
        at, end = first.length, len(value) - last.length
        if at > end or not first.stands(value, 0) or not last.stands(value, end):
            return False
        for part in middle:
            found = part.find(value, at, end)
            if found < 0:
                return False
            at = found + part.length
        return True


def like_pattern(pattern: str, escape: str, ignore_case: bool) -> Like:
    """Compiles a LIKE pattern; ``escape`` is one character, or empty for none. Raises 22025, 54001."""
    if len(escape) > 1:
        raise SqlError("22025", "invalid escape string", hint="Escape string must be empty or one character.")
    return (_compiled if len(pattern) < _LONG else _made)(pattern, escape, ignore_case)


def _made(pattern: str, escape: str, ignore_case: bool) -> Like:
    parts: list[list[str | None]] = [[]]
    dangling = after_any = False
    letters = iter(polled(pattern))
    for c in letters:
        if c == escape:
            following = next(letters, None)
            if following is None:
                # it fails where a character is left for it, or after a % in any case
                dangling = True
                if not after_any:
                    parts[-1].append(None)
                parts.append([])
            else:
                parts[-1].append(following)
            after_any = False
        elif c == "%":
            parts.append([])
            after_any = True
        else:
            parts[-1].append(None if c == "_" else c)
            after_any = after_any and c == "_"
    kept = [p for i, p in enumerate(parts) if p or i in (0, len(parts) - 1)]
    return Like(tuple(_part(p, ignore_case) for p in kept), dangling)


_compiled: Final = lru_cache(4096)(_made)


def _part(letters: list[str | None], ignore_case: bool) -> Part:
    plain = None not in letters and (not ignore_case or not letters)
    if plain:
        return Part("".join(c for c in letters if c is not None), _NOTHING, len(letters))
    if len(letters) > MOST_STEPS:
        raise too_many_steps()
    sources = ["." if c is None else re.escape(c) for c in letters]
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    return Part(None, Regex(re.compile("".join(sources), flags), tuple(map(leaf, sources)), False, False), len(letters))
