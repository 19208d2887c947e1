"""What a load brings: the target's columns, rows as words, and how a file's columns are matched with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ivm.errors import SqlError
from ivm.rows import Words
from ivm.words import ColumnType, Schema, SqlType


@dataclass(frozen=True, slots=True)
class LoadColumn:
    """A column to fill, by its name in the file as in the table."""

    name: str
    type: SqlType
    nullable: bool = True


class LoadedRows(NamedTuple):
    """Rows of the load's columns in order, packed by ``load_schema``: int64[n, width]; diffs int64[n], all positive."""

    rows: Words
    diffs: Words


def load_schema(columns: Sequence[LoadColumn]) -> Schema:
    """The schema that a load's rows are packed by."""
    return tuple(ColumnType(column.type, column.nullable) for column in columns)


def match_names(columns: Sequence[LoadColumn], found: Sequence[str], file: str, ignore_extra: bool) -> None:
    """Checks that the file has every column once, and no others unless they are to be ignored. Raises 42703."""
    for column in columns:
        if found.count(column.name) != 1:
            problem = "has no column" if column.name not in found else "has more than one column"
            raise SqlError(
                "42703",
                f'"{file}" {problem} "{column.name}"',
                detail=f"Its columns are {', '.join(found)}.",
                hint="Name the columns that the file has: COPY table (column, ...) FROM ...",
            )
    wanted = {column.name for column in columns}
    extra = [name for name in found if name not in wanted]
    if extra and not ignore_extra:
        raise SqlError(
            "42703",
            f'"{file}" has columns that are not in the target: {", ".join(extra)}',
            hint="Name the columns to load to leave the others out: COPY table (column, ...) FROM ...",
        )
