"""The six comparison operators, and how they relate to each other."""

from __future__ import annotations

from enum import Enum


class Comparison(Enum):
    """A comparison operator, by its SQL symbol."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    NOT_GREATER = "<="
    GREATER = ">"
    NOT_LESS = ">="

    @property
    def commutator(self) -> Comparison:
        """The operator with ``a op b`` = ``b commutator a``."""
        return _COMMUTATORS.get(self, self)

    @property
    def negator(self) -> Comparison:
        """The operator with ``not (a op b)`` = ``a negator b``."""
        return _NEGATORS[self]


_COMMUTATORS = {
    Comparison.LESS: Comparison.GREATER,
    Comparison.GREATER: Comparison.LESS,
    Comparison.NOT_GREATER: Comparison.NOT_LESS,
    Comparison.NOT_LESS: Comparison.NOT_GREATER,
}
_NEGATORS = {
    Comparison.EQUAL: Comparison.NOT_EQUAL,
    Comparison.NOT_EQUAL: Comparison.EQUAL,
    Comparison.LESS: Comparison.NOT_LESS,
    Comparison.NOT_LESS: Comparison.LESS,
    Comparison.GREATER: Comparison.NOT_GREATER,
    Comparison.NOT_GREATER: Comparison.GREATER,
}
