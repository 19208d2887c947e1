"""A bound query and its columns."""

from __future__ import annotations

from dataclasses import dataclass

from ivm.words import SqlType
from planner.expr.scalar import Scalar
from planner.logical.nodes import Finishing, Rel


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A result column; ``table`` and ``attribute`` (from 1) if it is a plain column of a relation, else 0."""

    name: str
    type: SqlType
    table: int = 0
    attribute: int = 0


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT, VALUES, TABLE or WITH. ``as_of``: an expression without columns (bigint epoch or timestamptz).

    ``locking``: FOR UPDATE or the like; a transaction takes the write token before it reads.
    """

    rel: Rel
    finishing: Finishing
    columns: tuple[OutputColumn, ...]
    as_of: Scalar | None = None
    as_of_at_least: bool = False
    locking: bool = False
