"""Building formulas, which ``ivm.kernels.formula`` interprets step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NewType

import numpy as np

from ivm.kernels.codes import (
    BITS_AND,
    CHOOSE,
    COMPARE,
    CONST,
    IS,
    LOAD,
    REQUIRE,
    STEP_WORDS,
)  # fmt: skip
from ivm.rows import Words

Register = NewType("Register", int)

# The kinds of comparisons.
LESS: Final = 0b001
EQUAL: Final = 0b010
GREATER: Final = 0b100
NOT_LESS: Final = 0b110
NOT_EQUAL: Final = 0b101
NOT_GREATER: Final = 0b011
# The kinds of tests.
FALSE: Final = 0b001
TRUE: Final = 0b010
NULL: Final = 0b100
NOT_FALSE: Final = 0b110
NOT_TRUE: Final = 0b101
NOT_NULL: Final = 0b011


class Formula:
    """A formula builder. Equal steps share one register."""

    __slots__ = ("_known", "_nullable", "_steps", "always")

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._known: dict[tuple[int, ...], Register] = {}
        self._nullable: list[bool] = []
        self.always = self.constant(1)
        """The constant 1: a mask that selects every row."""

    def step(
        self, how: int, a: Register, b: Register | None = None, mask: Register | None = None, constant: int = 0,
        *, nullable: bool | None = None,
    ) -> Register:  # fmt: skip
        """The register of a step's result. ``nullable``: whether it may be NULL; None: if a or b may be."""
        second = a if b is None else b
        if nullable is None:
            nullable = self._nullable[a] or self._nullable[second]
        return self._made((how, a, second, self.always if mask is None else mask, constant), nullable)

    def column(self, word: int, null: tuple[int, int] | None = None) -> Register:
        """A word of the input; ``null``: the (word, bit) that marks its NULLs."""
        null_word, bit = (-1, 0) if null is None else null
        return self._made((LOAD, word, null_word, 0, bit), null is not None)

    def constant(self, word: int | None) -> Register:
        """The same word for every row; None is NULL."""
        return self._made((CONST, int(word is None), 0, 0, word or 0), word is None)

    def both(self, a: Register, b: Register) -> Register:
        """Where both masks are 1."""
        return b if a == self.always else self.step(BITS_AND, a, b)

    def compare(self, a: Register, b: Register, how: int) -> Register:
        """Whether a is LESS than b, EQUAL, …, as integers; NULL where one is."""
        return self.step(COMPARE, a, b, constant=how)

    def test(self, a: Register, which: int) -> Register:
        """Whether a is FALSE, TRUE, NULL, …; never NULL."""
        return self.step(IS, a, constant=which, nullable=False)

    def where(self, mask: Register, a: Register, which: int) -> Register:
        """Where the mask is 1 and a test holds."""
        return self.both(mask, self.test(a, which))

    def choose(self, mask: Register, a: Register, b: Register) -> Register:
        """a where the mask is 1, b elsewhere."""
        return self.step(CHOOSE, a, b, mask)

    def require(self, a: Register, mask: Register) -> Register:
        """Register ``a``, required not to be NULL where the mask is 1."""
        return self.step(REQUIRE, a, None, mask, nullable=False) if self._nullable[a] else a

    def is_nullable(self, a: Register) -> bool:
        """Whether a register may be NULL."""
        return self._nullable[a]

    def _made(self, step: tuple[int, ...], nullable: bool) -> Register:
        found = self._known.get(step)
        if found is None:
            found = self._known[step] = Register(len(self._nullable))
            self._nullable.append(nullable)
            self._steps += (step[0], found, *step[1:])
        return found

    def made(
        self, keep: Register, words: Sequence[int], nulls: Sequence[tuple[int, int, Register]] = (),
        weights: Sequence[Register] = (),
    ) -> Words:  # fmt: skip
        """The finished formula. For rows where ``keep`` is 1 it yields these registers (~k: word k of the input) and
        these weights, with the bits (word, bit) of ``nulls`` set where their registers are NULL."""
        bits = [part for null in nulls for part in null]
        head = (len(self._nullable), len(self._steps) // STEP_WORDS, keep, len(words), len(nulls), len(weights))
        return np.array([*head, *self._steps, *words, *bits, *weights], np.int64)
