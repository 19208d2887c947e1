"""A bound query and its columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from ivm.words import SqlType
from planner.expr.scalar import Scalar
from planner.logical.nodes import Finishing, Rel
from sql.catalog.catalog import Relation


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A result column; ``table`` and ``attribute`` (from 1) if it is a plain column of a relation, else 0. ``shown``:
    what the wire keeps of its description, once it has been described."""

    name: str
    type: SqlType
    table: int = 0
    attribute: int = 0
    shown: bytes = field(default=b"", init=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LockedRows:
    """Rows of a table that a query locks. ``columns``: where they stand among the query's columns, None for all rows of
    the table; ``strength`` and ``wait``: as written, in lower case."""

    table: Relation
    columns: tuple[int, ...] | None
    strength: str
    wait: str


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT, VALUES, TABLE or WITH. ``as_of``: an expression without columns (bigint epoch or timestamptz).

    ``locks``: what FOR UPDATE and its like lock.
    """

    rel: Rel
    finishing: Finishing
    columns: tuple[OutputColumn, ...]
    as_of: Scalar | None = None
    as_of_at_least: bool = False
    locks: tuple[LockedRows, ...] = ()
