"""Rows as often as they are there."""

from __future__ import annotations

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words
from planner.expr.context import Bounds


class NegativeCountError(SqlError):
    """A collection with more deletions than insertions of a row was read: a maintained view is wrong."""

    def __init__(self) -> None:
        super().__init__("XX001", "more rows were deleted from a materialized view than it had",
                         hint="It will be filled anew; see freshet.view_errors.")  # fmt: skip


def written_out(rows: Words, diffs: Words, bounds: Bounds) -> Words:
    """Each row as often as its diff says. 53200: too many rows."""
    if not len(diffs) or (diffs == 1).all():
        return rows
    if diffs.min() < 0:
        raise NegativeCountError
    bounds.check(8 * rows.shape[1] * int(diffs.sum()))
    return np.repeat(rows, diffs, axis=0)
