"""Cells of VALUES that are the transaction's own time, which takes no evaluation."""

from __future__ import annotations

from enum import Enum, auto

from ivm.words import Kind
from planner.expr.functions.datetime.clock import now
from planner.expr.functions.library import RAISING_CASTS, called_function
from planner.expr.scalar import Call, Scalar


class Instant(Enum):
    """``NOW``: as timestamptz; ``LOCAL``: as timestamp, by the session's time zone."""

    NOW = auto()
    LOCAL = auto()


def instant_of(cell: Scalar) -> Instant | None:
    """Which instant a cell is; None: it is something else."""
    if not isinstance(cell, Call) or cell.type.precision is not None:
        return None
    called = called_function(cell)
    if called is not None and called.implementation is now and not cell.args:
        return Instant.NOW
    whole = cell.function in RAISING_CASTS and cell.type.kind is Kind.TIMESTAMP and len(cell.args) == 1
    return Instant.LOCAL if whole and instant_of(cell.args[0]) is Instant.NOW else None
