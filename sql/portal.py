"""Portals, cursors and prepared statements: what a session keeps by name."""

from __future__ import annotations

from dataclasses import dataclass

from ivm.rows import RowSet
from ivm.words import SqlType
from sql.prepared import Prepared
from sql.results import RowsResult
from sql.statements import OutputColumn
from storage.dictionary import Dictionary


@dataclass(frozen=True, slots=True)
class NamedStatement:
    """PREPARE (``by_sql``), or the extended protocol's Parse. ``types``: as the client gave them, None where it did
    not. ``created``: µs since 2000-01-01 UTC."""

    text: str
    types: tuple[SqlType | None, ...]
    prepared: Prepared | None
    """None for an empty query string."""
    created: int = 0
    by_sql: bool = False


@dataclass(slots=True)
class Rows:
    """A result being read in pieces."""

    columns: tuple[OutputColumn, ...]
    rows: RowSet
    dictionary: Dictionary
    tag: str
    position: int = 0

    def take(self, count: int | None) -> RowSet:
        """The next ``count`` rows (None: all that are left)."""
        end = len(self.rows) if count is None else min(self.position + count, len(self.rows))
        taken = RowSet(self.rows.rows[self.position : end], self.rows.schema)
        self.position = end
        return taken

    @property
    def done(self) -> bool:
        return self.position >= len(self.rows)


@dataclass(slots=True)
class Portal:
    """A statement with its parameters; ``rows`` once it has run."""

    statement: NamedStatement
    parameters: tuple[object, ...]
    formats: tuple[int, ...] = ()
    rows: Rows | None = None

    def result(self, max_rows: int) -> RowsResult:
        """The next rows; suspended when there are more than ``max_rows`` (0: no limit)."""
        assert self.rows is not None, "the portal has run"
        taken = self.rows.take(max_rows or None)
        suspended = not self.rows.done or (max_rows > 0 and len(taken) == max_rows)
        command, _, _ = self.rows.tag.rpartition(" ")
        tag = f"{command} {len(taken)}" if command == "SELECT" else self.rows.tag
        return RowsResult(
            self.rows.columns, taken, tag, self.rows.dictionary, suspended, describe=False, formats=self.formats
        )
