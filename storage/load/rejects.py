"""Rejects: rows that a load leaves out, with the reason; at most as many as its statement allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Mask, Vector
from storage.load.columns import FilledColumn, null_violation

TEXT_LENGTH: Final = 500
"""How many characters of a row are kept."""


class Reject(NamedTuple):
    """A row that could not be loaded.

    ``line``: the number of its last line in the file, or of its element in a JSON array, from 1; None if the format has
    none, or if the error was found after parsing. ``text``: the row as in the file, or its values. ``column``: the
    column of the bad value, None if the row itself is bad.
    """

    file: str | None
    line: int | None
    column: str | None
    text: str
    sqlstate: str
    reason: str

    @property
    def order(self) -> tuple[bool, str, int, str]:
        """A load's sort key for rejects: by file and line, those without a file last."""
        return self.file is None, self.file or "", self.line or 0, self.text


class TooManyRejects(SqlError):
    """One more reject than the load allows."""


@dataclass(slots=True)
class Rejects:
    """Collects a load's rejects. ``table``: for messages. ``file``: the file being read. ``most``: how many are
    allowed.

    Each reader adds its rejects in order.
    """

    table: str
    most: int
    file: str | None = None
    found: list[Reject] = field(default_factory=list)

    def add(self, error: SqlError, text: str, line: int | None = None, column: str | None = None) -> None:
        """Adds a row of ``file``. Raises TooManyRejects."""
        self.take([Reject(self.file, line, column, shortened(text), error.sqlstate, error.message)])

    def take(self, rejects: Iterable[Reject]) -> None:
        """Adds rejects made elsewhere. Raises TooManyRejects."""
        self.found += rejects
        if len(self.found) > self.most:
            raise self._too_many()

    def _too_many(self) -> TooManyRejects:
        first = min(self.found, key=lambda reject: reject.order)
        where = f"COPY {self.table}"
        if first.file is not None:
            where += ', file "' + first.file.rpartition("/")[2] + '"'
        if first.line is not None:
            where += f", line {first.line}"
        if first.column is not None:
            where += f", column {first.column}"
        hint = f"More rows are bad than MAX REJECTS {self.most} allows; this is the first. Nothing was loaded."
        return TooManyRejects(first.sqlstate, first.reason, f'{where}: "{first.text}"', hint)


class BadValue(NamedTuple):
    """A value that its column cannot hold: the positions of row and column, and the error."""

    row: int
    column: int
    error: SqlError


def bad_nulls(vector: Vector, column: FilledColumn, place: int) -> Iterator[BadValue]:
    """NULLs in a NOT NULL column (23502)."""
    if not column.nullable and vector.nulls is not None:
        for row in np.flatnonzero(vector.nulls).tolist():
            yield BadValue(row, place, null_violation(column))


def first_of_rows(bad: Iterable[BadValue]) -> list[BadValue]:
    """Sorted by row, keeping for each row the first column's error; for one value the error given first."""
    first: dict[int, BadValue] = {}
    for value in sorted(bad, key=lambda value: value[:2]):
        first.setdefault(value.row, value)
    return list(first.values())


def without_rows(vectors: Sequence[Vector], bad: Iterable[BadValue], size: int) -> tuple[list[Vector], int]:
    """The vectors, of ``size`` rows, without the bad rows; and the number of rows left."""
    kept: Mask = np.ones(size, np.bool_)
    kept[[value.row for value in bad]] = False
    return [Vector(v.words[kept], None if v.nulls is None else v.nulls[kept]) for v in vectors], int(kept.sum())


def shortened(text: str) -> str:
    """At most ``TEXT_LENGTH`` characters of a row, without those that text cannot hold."""
    plain = text.replace("\0", "\ufffd").encode(errors="replace").decode()
    return plain if len(plain) <= TEXT_LENGTH else plain[:TEXT_LENGTH] + "..."
