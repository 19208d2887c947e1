"""Many constants after IN and VALUES, kept as text: with a node for each, thousands take a hundred times as long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from sql.syntax.lexing.constant_rows import CELL, FIRST, cells
from sql.syntax.nodes.constants import Boolean, Null, Number, String

Constant = Boolean | Null | Number | String

_STRING: Final = re.compile("'([^']*+)'")
_NUMBER: Final = re.compile("(-?[0-9.]++)")


@dataclass(frozen=True, slots=True)
class ConstantItems:
    """``text``: numbers, or strings without quotes in them, in parentheses, at offset ``at``. ``given``: a bound array
    that stands for them, of the binder's own."""

    text: str
    at: int
    given: object = None

    @property
    def are_strings(self) -> bool:
        return "'" in self.text

    def values(self) -> list[str]:
        """The strings, or the numbers as they are written."""
        return _STRING.findall(self.text) if self.are_strings else self.text[1:-1].split(",")

    def expressions(self) -> tuple[Number | String, ...]:
        """A node for each."""
        if self.are_strings:
            return tuple(String(m[1], self.at + m.start()) for m in _STRING.finditer(self.text))
        return tuple(Number(m[1], self.at + m.start()) for m in _NUMBER.finditer(self.text))


@dataclass(frozen=True)
class ConstantRows:
    """``text``: rows of constants (``TokenKind.ROWS``), at offset ``at``. As a sequence it gives a node for each."""

    text: str
    at: int

    @property
    def width(self) -> int:
        """The number of constants in each row."""
        return len(self._texts)

    def columns(self) -> list[list[str]]:
        """The constants of each column as they are written."""
        if self._end == len(self.text):
            return [[cell] for cell in self._texts]
        return list(map(list, zip(*cells(self.text, self.width), strict=True)))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[tuple[Constant, ...]]:
        return iter(self._rows)

    def __getitem__(self, index: int) -> tuple[Constant, ...]:
        return self._first if index == 0 else self._rows[index]

    @cached_property
    def _end(self) -> int:
        """Where the first row ends."""
        found = FIRST.match(self.text)
        assert found is not None, "recognised by the same pattern"
        return found.end()

    @cached_property
    def _texts(self) -> list[str]:
        """The constants of the first row."""
        return CELL.findall(self.text, 0, self._end)

    @cached_property
    def _first(self) -> tuple[Constant, ...]:
        return tuple(map(self._node, CELL.finditer(self.text, 0, self._end)))

    @cached_property
    def _rows(self) -> tuple[tuple[Constant, ...], ...]:
        nodes = [self._node(m) for m in CELL.finditer(self.text)]
        return tuple(tuple(nodes[i : i + self.width]) for i in range(0, len(nodes), self.width))

    def _node(self, found: re.Match[str]) -> Constant:
        text, at = found.group(), self.at + found.start()
        if text[0] == "'":
            return String(text[1:-1].replace("''", "'"), at)
        if text[0] in "nN":
            return Null(at)
        return Boolean(text[0] in "tT", at) if text[0] in "tTfF" else Number(text, at)
