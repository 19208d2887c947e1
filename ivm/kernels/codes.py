"""Numbers that both plans and kernels use. Nothing here imports numba, so that planning a query loads no kernels."""

from __future__ import annotations

from typing import Final

WIDTH_BITS: Final = 5
"""Bits of a shape for each loop (``ivm.kernels.times``)."""

# A row's part in the state of a locked join (``ivm.kernels.lock``).
MARKER: Final = 0
MATCH: Final = 1
ALONE: Final = 2

WINDOW_DIFFS: Final = 4
"""The diffs of a value in a window (``ivm.kernels.windows``): its multiplicity there, the window's number, its rank,
and how many rows of the group count. Number -1: the group has rows, but none that counts."""

# A formula (``ivm.kernels.formula``) begins with a head: the numbers of registers and steps, the register that says
# which rows are kept, the numbers of words of a result row, of null bits that it sets, and of weights. Then come the
# steps; then for each word of a row a register (~k: word k of the input); for each null bit the word, the bit and the
# register; for each weight a register.
H_REGISTERS: Final = 0
H_STEPS: Final = 1
H_KEEP: Final = 2
H_WIDTH: Final = 3
H_BITS: Final = 4
H_WEIGHTS: Final = 5
FORMULA_HEAD: Final = 6

# A step: what it does, the register that it makes, two that it reads, the one that masks it (or chooses), a constant.
STEP_WORDS: Final = 6

LOAD: Final = 0
"""The input's word a; NULL where bit ``constant`` of its word b is set (b -1: never)."""
CONST: Final = 1
"""The constant; NULL where a is 1."""
ADD: Final = 2
SUBTRACT: Final = 3
MULTIPLY: Final = 4
DIVIDE: Final = 5
"""Cut towards zero. The four fail beyond integers of ``constant`` bits, DIVIDE and REMAINDER at 0."""
REMAINDER: Final = 6
FIT: Final = 7
"""a, which must fit an integer of ``constant`` bits."""
BITS_AND: Final = 8
BITS_OR: Final = 9
BITS_XOR: Final = 10
SHIFT: Final = 11
"""a shifted left by ``constant`` bits, right if that is negative."""
COMPARE: Final = 12
"""Bit 0, 1 or 2 of the constant: where a is less than, equal to, greater than b."""
AND: Final = 13
OR: Final = 14
IS: Final = 15
"""Bit 0, 1 or 2 of the constant, where a is even, odd (false, true) or NULL; never NULL."""
DISTINCT: Final = 16
"""Whether a is distinct from b, xor the constant; never NULL."""
CHOOSE: Final = 17
"""a where the mask is 1, else b."""
TO_DECIMAL: Final = 18
"""An integer as a tagged decimal of scale ``constant``, inline; fails where it does not fit."""
FROM_DECIMAL: Final = 19
"""A tagged decimal that is inline and of scale 0 as an integer of ``constant`` bits; fails otherwise."""
SAME_SCALE: Final = 20
"""a; fails unless a and b are inline decimals of one scale."""
REQUIRE: Final = 21
"""a, which may not be NULL."""
