"""A formula over one row, for changes of single rows."""

from __future__ import annotations

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.formula import apply_formula
from ivm.kernels.memory import where
from ivm.rows import Words


@kernel
def apply_to_row(formula: Words, row: Words, out: Words) -> int:
    """Writes the formula's row to ``out``. Returns whether the row was kept, -1 if the formula fails."""
    sources = np.empty(1, np.int64)
    return int(apply_formula(formula, where(row), len(row), 1, where(out), sources, 0))
