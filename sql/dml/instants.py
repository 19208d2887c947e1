"""Cells of VALUES that are the transaction's own time, which takes no evaluation."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from ivm.words import Kind
from planner.expr.scalar import Call, Scalar

_NOW: Final = frozenset({"current_timestamp()", "now()", "transaction_timestamp()"})
_CASTS: Final = frozenset({"cast", "assignment_cast"})


class Instant(Enum):
    """``NOW``: as timestamptz; ``LOCAL``: as timestamp, by the session's time zone."""

    NOW = auto()
    LOCAL = auto()


def instant_of(cell: Scalar) -> Instant | None:
    """Which instant a cell is; None: it is something else."""
    if not isinstance(cell, Call) or cell.type.precision is not None:
        return None
    if cell.function in _NOW and cell.type.kind is Kind.TIMESTAMPTZ:
        return Instant.NOW
    whole = cell.function in _CASTS and cell.type.kind is Kind.TIMESTAMP and len(cell.args) == 1
    return Instant.LOCAL if whole and instant_of(cell.args[0]) is Instant.NOW else None
