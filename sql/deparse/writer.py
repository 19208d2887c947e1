"""Text under construction, in PostgreSQL's layout: clauses begin on lines of their own, indented by their depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

STEP: Final = 8
"""The depth of a query's clauses below the query."""
JOIN: Final = 4
ITEM: Final = 4
_DEEP: Final = 40
"""Deeper lines are indented less, and from the left again."""


class Writer:
    """``pretty``: parentheses are left out where precedence says the same. ``width``: of lines with several columns or
    items of FROM; a negative one has no end."""

    def __init__(self, *, pretty: bool, width: int = 0) -> None:
        self.pretty = pretty
        self._width = width
        self.level = 0
        self._parts: list[str] = []

    def __call__(self, text: str) -> None:
        """Appends text."""
        if text:
            self._parts.append(text)

    def line(self, text: str, before: int = 0, after: int = 0, plus: int = 0) -> None:
        """Appends text on a new line. ``before`` and ``after``: changes of the level; ``plus``: further spaces."""
        self.level += before
        self.trim()
        level = max(self.level, 0)
        if level >= _DEEP:
            level = (_DEEP + (level - _DEEP) // (STEP // 2)) % _DEEP
        self._parts.append("\n" + " " * (level + plus) + text)
        self.level = max(self.level + after, 0)

    def fits(self, text: str) -> bool:
        """Whether the text may be appended to the present line."""
        line = "".join(self._parts).rpartition("\n")[2] if self._width > 0 else ""
        return self._width < 0 or len(line) + len(text) <= self._width

    def trim(self) -> None:
        """Removes the spaces at the end."""
        while self._parts:
            last = self._parts[-1].rstrip(" ")
            if last:
                self._parts[-1] = last
                return
            self._parts.pop()

    def text(self) -> str:
        return "".join(self._parts)

    def apart(self, write: Callable[[], None]) -> str:
        """What ``write`` appends, which is not appended yet."""
        outer, self._parts = self._parts, []
        try:
            write()
            return "".join(self._parts)
        finally:
            self._parts = outer

    @contextmanager
    def query(self) -> Iterator[None]:
        """Inside, the level may change; afterwards it is what it was."""
        level = self.level
        try:
            yield
        finally:
            self.level = level
