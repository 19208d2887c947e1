"""What a load brings: the target's columns, rows as words, and how a file's columns are matched with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ivm.errors import SqlError
from ivm.rows import Vector
from ivm.words import ColumnType, Schema, SqlType


@dataclass(frozen=True, slots=True)
class LoadColumn:
    """A column to fill. ``found``: its name in the file where that is another (a number: its place in a CSV line)."""

    name: str
    type: SqlType
    nullable: bool = True
    found: str | None = None

    @property
    def source(self) -> str:
        """Its name in the file."""
        return self.name if self.found is None else self.found


def load_schema(columns: Sequence[LoadColumn]) -> Schema:
    """The schema that a load's rows are packed by."""
    return tuple(ColumnType(column.type, column.nullable) for column in columns)


def check_nulls(vector: Vector, column: LoadColumn) -> None:
    """Raises 23502 for a NULL that the column does not take."""
    if not column.nullable and vector.nulls is not None and vector.nulls.any():
        raise null_violation(column)


class FilledColumn(Protocol):
    """What a column is called that data fills, and whether it takes NULL."""

    @property
    def name(self) -> str: ...

    @property
    def nullable(self) -> bool: ...


def null_violation(column: FilledColumn) -> SqlError:
    """23502."""
    return SqlError("23502", f'null value in column "{column.name}" violates not-null constraint')


def alike(names: Sequence[str], name: str) -> str | None:
    """The name itself, or the only one that differs in case alone: databases fold names their own way."""
    found = [n for n in names if n.lower() == name.lower()]
    return name if name in names else found[0] if len(found) == 1 else None


def match_names(columns: Sequence[LoadColumn], found: Sequence[str], file: str, ignore_extra: bool) -> None:
    """Checks that the file has every column once, and no others unless they are to be ignored. Raises 42703."""
    for column in columns:
        if found.count(column.source) != 1:
            problem = "has no column" if column.source not in found else "has more than one column"
            raise SqlError(
                "42703",
                f'"{file}" {problem} "{column.source}"',
                detail=f"Its columns are {', '.join(found)}.",
                hint="Name the columns that the file has: COPY table (column, ...) FROM ..., or say by which name it "
                "has them: WITH (MAPPING (name AS column, ...)).",
            )
    wanted = {column.source for column in columns}
    extra = [name for name in found if name not in wanted]
    if extra and not ignore_extra:
        raise SqlError(
            "42703",
            f'"{file}" has columns that are not in the target: {", ".join(extra)}',
            hint="Name the columns to load to leave the others out: COPY table (column, ...) FROM ...",
        )
