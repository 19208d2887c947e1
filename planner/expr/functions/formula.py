"""Formula rules: how a function of the table is written as steps of a formula (``ivm.kernels.formula``).

A formula computes exactly what the evaluator does, on words alone and without calling Python. If a row would fail,
the engine discards the formula's result and the evaluator computes all of the rows. So a rule covers only what it can
compute exactly; for the rest it raises ``Beyond``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ivm.formula import EQUAL, GREATER, LESS, NOT_EQUAL, NOT_GREATER, NOT_LESS, Formula, Register
from ivm.kernels.codes import (
    ADD,
    BITS_AND,
    BITS_OR,
    BITS_XOR,
    DISTINCT,
    DIVIDE,
    FIT,
    FROM_DECIMAL,
    MULTIPLY,
    REMAINDER,
    SAME_SCALE,
    SUBTRACT,
    TO_DECIMAL,
)  # fmt: skip
from ivm.words import NUMERIC, Kind, SqlType
from planner.expr.comparison import Comparison

BITS: Final = {Kind.INT2: 16, Kind.INT4: 32, Kind.INT8: 64}
_COMPARISONS: Final = {
    Comparison.LESS: LESS, Comparison.EQUAL: EQUAL, Comparison.NOT_GREATER: NOT_GREATER, Comparison.GREATER: GREATER,
    Comparison.NOT_EQUAL: NOT_EQUAL, Comparison.NOT_LESS: NOT_LESS,
}  # fmt: skip


class Beyond(Exception):
    """No formula covers this expression."""


@dataclass(frozen=True, slots=True)
class FormulaSite:
    """The call that a rule translates. Registers hold a word and a NULL flag for each row.

    ``args`` and ``result`` are the types of the call; numerics have no typmod, as in the evaluator. Only rows where
    ``mask`` is 1 may fail.
    """

    formula: Formula
    mask: Register
    args: tuple[SqlType, ...]
    result: SqlType

    def constant(self, word: int | None) -> Register:
        """The same word for every row; None is NULL."""
        return self.formula.constant(word)

    def add(self, a: Register, b: Register) -> Register:
        """The sum of two integers. Here and in the next four, a result outside the result type fails."""
        return self._integer(ADD, a, b)

    def subtract(self, a: Register, b: Register) -> Register:
        return self._integer(SUBTRACT, a, b)

    def multiply(self, a: Register, b: Register) -> Register:
        return self._integer(MULTIPLY, a, b)

    def divide(self, a: Register, b: Register) -> Register:
        """The quotient truncated towards zero; a divisor of 0 fails."""
        return self._integer(DIVIDE, a, b)

    def remainder(self, a: Register, b: Register) -> Register:
        """The remainder; a divisor of 0 fails."""
        return self._integer(REMAINDER, a, b)

    def _integer(self, opcode: int, a: Register, b: Register) -> Register:
        return self.formula.step(opcode, a, b, self.mask, BITS[self.result.kind])

    def bits_and(self, a: Register, b: Register) -> Register:
        return self.formula.step(BITS_AND, a, b)

    def bits_or(self, a: Register, b: Register) -> Register:
        return self.formula.step(BITS_OR, a, b)

    def bits_xor(self, a: Register, b: Register) -> Register:
        return self.formula.step(BITS_XOR, a, b)

    def fit(self, a: Register) -> Register:
        """The same integer; fails if outside the result type."""
        return self.formula.step(FIT, a, None, self.mask, BITS[self.result.kind])

    def to_decimal(self, a: Register, scale: int) -> Register:
        """An integer as an inline numeric of a scale; fails if too large."""
        return self.formula.step(TO_DECIMAL, a, None, self.mask, scale)

    def from_decimal(self, a: Register) -> Register:
        """An inline numeric of scale 0 as an integer of the result type; any other fails."""
        return self.formula.step(FROM_DECIMAL, a, None, self.mask, BITS[self.result.kind])

    def compare(self, comparison: Comparison, a: Register, b: Register) -> Register:
        """Compares two integers; NULL if either is NULL."""
        return self.formula.compare(a, b, _COMPARISONS[comparison])

    def distinct(self, a: Register, b: Register) -> Register:
        """IS DISTINCT FROM of two integers, never NULL."""
        return self.formula.step(DISTINCT, a, b, nullable=False)

    def not_distinct(self, a: Register, b: Register) -> Register:
        return self.formula.step(DISTINCT, a, b, constant=1, nullable=False)

    def test(self, a: Register, truth: int) -> Register:
        """An IS test, never NULL. ``truth``: what it tests for (``ivm.formula``: TRUE, NOT_NULL, …)."""
        return self.formula.test(a, truth)

    def choose(self, condition: Register, a: Register, b: Register) -> Register:
        """``a`` where the condition is 1, else ``b``."""
        return self.formula.choose(condition, a, b)

    def where(self, condition: Register) -> FormulaSite:
        """The same call on the rows where the condition is 1 only; steps may fail only there."""
        return replace(self, mask=self.formula.both(self.mask, condition))

    def equal_words(self, a: Register, b: Register) -> tuple[Register, Register]:
        """Two registers whose words are equal exactly where the arguments are. Raises Beyond if there are none."""
        if self.args == (NUMERIC, NUMERIC):
            # inline numerics of one scale compare as their words do, too
            return self.formula.step(SAME_SCALE, a, b, self.mask, nullable=self.formula.is_nullable(a)), b
        if any(t.has_equality_class for t in self.args):
            raise Beyond
        return a, b


FormulaRule = Callable[..., Register]
"""(FormulaSite, a Register for each argument) → the result's Register. Raises Beyond."""
