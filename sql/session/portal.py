"""Prepared statements, portals, and the rows that a portal or a cursor reads in parts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ivm.rows import RowSet
from ivm.words import SqlType
from sql.coordination.prepared import Prepared
from sql.statements.queries import OutputColumn
from sql.statements.results import RowsResult
from sql.statements.statements import Direction
from storage.dictionary import Dictionary


@dataclass(slots=True, eq=False)
class NamedStatement:
    """A prepared statement, of PREPARE (``by_sql``) or of the protocol's Parse. ``types``: as given by the client, None
    for those to infer. ``created``: µs since 2000-01-01 UTC."""

    text: str
    types: tuple[SqlType | None, ...]
    prepared: Prepared | None
    """None for an empty query string."""
    created: int = 0
    by_sql: bool = False
    constants: tuple[object, ...] = ()
    asked: tuple[int, int, NamedStatement | None] | None = None
    """How it was last bound: over which version of the catalog, after how many changes of settings, and to what (None:
    as it is)."""

    @property
    def parameters(self) -> tuple[SqlType, ...]:
        """The types of those that a client gives."""
        return () if self.prepared is None or self.constants else self.prepared.bound.parameters


@dataclass(slots=True)
class PortalRows:
    """A result that is read in parts. ``position``, as in Postgres: 0 before the first row, n on row n, and the number
    of rows + 1 after the last."""

    columns: tuple[OutputColumn, ...]
    rows: RowSet
    dictionary: Dictionary
    tag: str
    position: int = 0
    hold: object = field(init=False, repr=False, compare=False)
    """Keeps the values of the rows' words in the dictionary."""

    def __post_init__(self) -> None:
        self.hold = self.dictionary.generation

    def fetch(self, direction: Direction, count: int | None) -> RowSet:
        """The rows that a FETCH returns, in its order; ``count`` None is ALL."""
        start, after = self.position, len(self.rows) + 1
        if direction is Direction.FORWARD and count is None and not start:
            self.position = after
            return self.rows
        match direction:
            case Direction.ABSOLUTE:
                assert count is not None
                return self._stop_at(count if count >= 0 else after + count)
            case Direction.RELATIVE:
                assert count is not None
                return self._stop_at(start + count)
            case Direction.BACKWARD if count is None or count > 0:
                self.position = 0 if count is None else max(start - count, 0)
                return self._rows(max(self.position, 1), start, -1)
            case Direction.BACKWARD if count:
                return self.fetch(Direction.FORWARD, -count)
            case Direction.FORWARD if count is None or count > 0:
                self.position = after if count is None else min(start + count, after)
                return self._rows(start + 1, self.position + 1, 1)
            case Direction.FORWARD if count:
                return self.fetch(Direction.BACKWARD, -count)
            case _:
                return self._stop_at(start)

    def _stop_at(self, place: int) -> RowSet:
        after = len(self.rows) + 1
        self.position = min(max(place, 0), after)
        return self._rows(self.position, self.position + 1, 1)

    def _rows(self, start: int, end: int, step: int) -> RowSet:
        """The existing rows from ``start`` to ``end``, counted from 1, ``end`` excluded."""
        start = max(start, 1)
        end = max(start, min(end, len(self.rows) + 1))
        taken = self.rows.rows[start - 1 : end - 1][::step]
        return RowSet(np.ascontiguousarray(taken), self.rows.schema)


@dataclass(slots=True)
class Portal:
    """A statement with its parameters; ``rows`` once it has run."""

    statement: NamedStatement
    parameters: tuple[object, ...]
    formats: tuple[int, ...] = ()
    rows: PortalRows | None = None

    def result(self, max_rows: int) -> RowsResult:
        """The next rows; suspended if there are more than ``max_rows`` (0: no limit)."""
        assert self.rows is not None, "the portal has run"
        taken = self.rows.fetch(Direction.FORWARD, max_rows or None)
        suspended = max_rows > 0 and len(taken) == max_rows
        command, _, _ = self.rows.tag.rpartition(" ")
        tag = f"{command} {len(taken)}" if command == "SELECT" else self.rows.tag
        return RowsResult(
            self.rows.columns, taken, tag, self.rows.dictionary, suspended, describe=False, formats=self.formats
        )
