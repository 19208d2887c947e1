"""The check that PRIORITY BY makes on each row."""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words
from ivm.words import INT8
from planner.expr.functions.table import CallSite, vectorised

ROW_PRIORITY: Final = "row_priority"


@vectorised(ROW_PRIORITY, (INT8, INT8), INT8, key_is_name=True, internal=True)
def row_priority(site: CallSite, priorities: Words, count: Words) -> Words:
    """The priority. Raises 22003 unless it is at least 0 and below ``count``; a NULL arrives as a negative number."""
    wrong = (priorities < 0) | (priorities >= count)
    if np.count_nonzero(wrong):
        most = int(count[0]) - 1
        hint = "Priorities are integers from 0; logarithms, and smaller RECURSION LIMITs, make room for more."
        site.fail_where(wrong, SqlError("22003", f"priority must be between 0 and {most}, and not NULL", hint=hint))
    return np.where(wrong, np.int64(0), priorities)
