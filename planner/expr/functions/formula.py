"""Formula rules: how a function of the table is written as steps of a formula (``ivm.kernels.formula``).

A formula computes exactly what the evaluator does, on words alone and without calling Python. If a row would fail,
the engine discards the formula's result and the evaluator computes all of the rows. So a rule covers only what it can
compute exactly; for the rest it raises ``Beyond``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from ivm.words import SqlType
from planner.expr.comparison import Comparison

if TYPE_CHECKING:
    from ivm.formula import Register


class Beyond(Exception):
    """No formula covers this expression."""


class Truth(Enum):
    """What IS tests a three-valued boolean for."""

    TRUE = "true"
    FALSE = "false"
    NULL = "null"
    NOT_TRUE = "not true"
    NOT_FALSE = "not false"
    NOT_NULL = "not null"


class FormulaSite(Protocol):
    """The call that a rule translates. Registers hold a word and a NULL flag for each row.

    ``args`` and ``result`` are the types of the call; numerics have no typmod, as in the evaluator.
    """

    @property
    def args(self) -> tuple[SqlType, ...]: ...
    @property
    def result(self) -> SqlType: ...

    def constant(self, word: int | None) -> Register:
        """The same word for every row; None is NULL."""
        ...

    def add(self, a: Register, b: Register) -> Register:
        """The sum of two integers. Here and in the next four, a result outside the result type fails."""
        ...

    def subtract(self, a: Register, b: Register) -> Register: ...
    def multiply(self, a: Register, b: Register) -> Register: ...
    def divide(self, a: Register, b: Register) -> Register:
        """The quotient truncated towards zero; a divisor of 0 fails."""
        ...

    def remainder(self, a: Register, b: Register) -> Register:
        """The remainder; a divisor of 0 fails."""
        ...

    def bits_and(self, a: Register, b: Register) -> Register: ...
    def bits_or(self, a: Register, b: Register) -> Register: ...
    def bits_xor(self, a: Register, b: Register) -> Register: ...
    def fit(self, a: Register) -> Register:
        """The same integer; fails if outside the result type."""
        ...

    def to_decimal(self, a: Register, scale: int) -> Register:
        """An integer as an inline numeric of a scale; fails if too large."""
        ...

    def from_decimal(self, a: Register) -> Register:
        """An inline numeric of scale 0 as an integer of the result type; any other fails."""
        ...

    def compare(self, comparison: Comparison, a: Register, b: Register) -> Register:
        """Compares two integers; NULL if either is NULL."""
        ...

    def distinct(self, a: Register, b: Register) -> Register:
        """IS DISTINCT FROM of two integers, never NULL."""
        ...

    def not_distinct(self, a: Register, b: Register) -> Register: ...

    def test(self, a: Register, truth: Truth) -> Register:
        """An IS test; never NULL."""
        ...

    def choose(self, condition: Register, a: Register, b: Register) -> Register:
        """``a`` where the condition is 1, else ``b``."""
        ...

    def where(self, condition: Register) -> FormulaSite:
        """The same call on the rows where the condition is 1 only; steps may fail only there."""
        ...

    def equal_words(self, a: Register, b: Register) -> tuple[Register, Register]:
        """Two registers whose words are equal exactly where the arguments are. Raises Beyond if there are none."""
        ...


FormulaRule = Callable[..., "Register"]
"""(FormulaSite, a Register for each argument) → the result's Register. Raises Beyond."""
