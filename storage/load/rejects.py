"""Rows that a load leaves out, with why: at most as many as its statement allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Mask, Vector
from storage.load.columns import FilledColumn, null_violation

TEXT_LENGTH: Final = 500
"""Characters of a row that are kept."""


class Reject(NamedTuple):
    """A row that could not be loaded.

    ``line``: the number of its last line in the file, or of its element in a JSON array, from 1; None where a format
    has none, or the row was found bad when it was a row already. ``text``: the row as it stands in the file, or its
    values; ``column``: whose value it was, None where it was the row.
    """

    file: str | None
    line: int | None
    column: str | None
    text: str
    sqlstate: str
    reason: str

    @property
    def order(self) -> tuple[bool, str, int, str]:
        """Of a load's rejects: by file and line, those that are of no file last."""
        return self.file is None, self.file or "", self.line or 0, self.text


class TooManyRejects(SqlError):
    """One more than the load may have."""


@dataclass(slots=True)
class Rejects:
    """Takes a load's rejects. ``table`` is for messages; ``file``: what is being read; ``most``: how many there may be.

    Of one reader they come in order.
    """

    table: str
    most: int
    file: str | None = None
    found: list[Reject] = field(default_factory=list)

    def add(self, error: SqlError, text: str, line: int | None = None, column: str | None = None) -> None:
        """A row of ``file``. Raises TooManyRejects."""
        self.take([Reject(self.file, line, column, shortened(text), error.sqlstate, error.message)])

    def take(self, rejects: Iterable[Reject]) -> None:
        """As ``add``, for rejects made elsewhere."""
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
    """A value that a row cannot have: its row and its column, by their places, and why."""

    row: int
    column: int
    error: SqlError


def bad_nulls(vector: Vector, column: FilledColumn, place: int) -> Iterator[BadValue]:
    """NULLs that the column does not take (23502)."""
    if not column.nullable and vector.nulls is not None:
        for row in np.flatnonzero(vector.nulls).tolist():
            yield BadValue(row, place, null_violation(column))


def first_of_rows(bad: Iterable[BadValue]) -> list[BadValue]:
    """By row, of each row the value of the first column; of one value the reason that is given first."""
    first: dict[int, BadValue] = {}
    for value in sorted(bad, key=lambda value: value[:2]):
        first.setdefault(value.row, value)
    return list(first.values())


def without_rows(vectors: Sequence[Vector], bad: Iterable[BadValue], size: int) -> tuple[list[Vector], int]:
    """The vectors, of ``size`` rows, without the bad ones; and how many rows are left."""
    kept: Mask = np.ones(size, np.bool_)
    kept[[value.row for value in bad]] = False
    return [Vector(v.words[kept], None if v.nulls is None else v.nulls[kept]) for v in vectors], int(kept.sum())


def shortened(text: str) -> str:
    """At most ``TEXT_LENGTH`` characters of a row, and none that text cannot have."""
    plain = text.replace("\0", "\ufffd").encode(errors="replace").decode()
    return plain if len(plain) <= TEXT_LENGTH else plain[:TEXT_LENGTH] + "..."
