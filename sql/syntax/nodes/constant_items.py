"""Many constants after IN, kept as text: as a node for each, a list of thousands would take a hundred times as long."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sql.syntax.nodes.constants import Number, String

_STRING: Final = re.compile("'([^']*+)'")
_NUMBER: Final = re.compile("(-?[0-9.]++)")


@dataclass(frozen=True, slots=True)
class ConstantItems:
    """``text``: numbers, or strings without quotes in them, in parentheses, at offset ``at``."""

    text: str
    at: int

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
