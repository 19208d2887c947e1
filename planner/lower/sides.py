"""The two sides of a join, with the keys that its condition compares computed as columns."""

from __future__ import annotations

from dataclasses import dataclass

from planner.expr.scalar import Scalar
from planner.physical.nodes import Flow


@dataclass(frozen=True, slots=True)
class Sides:
    """Both inputs with their keys as columns, and the rest of the condition."""

    left: Flow
    right: Flow
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    residual: tuple[Scalar, ...]
    """Over (left's columns, right's columns) of the join itself, without the key columns that were added."""
    left_columns: int
    right_columns: int
