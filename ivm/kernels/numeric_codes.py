"""What ``ivm.kernels.numerics`` computes."""

from __future__ import annotations

from typing import Final

# of two numerics
ADD: Final = 0
SUBTRACT: Final = 1
MULTIPLY: Final = 2
DIVIDE: Final = 3
MODULO: Final = 4

# of one
ROUND: Final = 0
TRUNCATE: Final = 1
FLOOR: Final = 2
CEILING: Final = 3
NEGATE: Final = 4
ABSOLUTE: Final = 5
