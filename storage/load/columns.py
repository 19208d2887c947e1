"""A load's target columns, and how a file's columns are matched with them by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ivm.errors import SqlError
from ivm.rows import Vector
from ivm.words import ColumnType, Schema, SqlType


@dataclass(frozen=True, slots=True)
class LoadColumn:
    """A column to fill. ``found``: its name in the file, if different (a number: its position in a CSV line)."""

    name: str
    type: SqlType
    nullable: bool = True
    found: str | None = None

    @property
    def source(self) -> str:
        """Its name in the file."""
        return self.name if self.found is None else self.found


def load_schema(columns: Sequence[LoadColumn]) -> Schema:
    """The schema by which a load's rows are packed."""
    return tuple(ColumnType(column.type, column.nullable) for column in columns)


def check_nulls(vector: Vector, column: LoadColumn) -> None:
    """Raises 23502 for a NULL in a NOT NULL column."""
    if not column.nullable and vector.nulls is not None and vector.nulls.any():
        raise null_violation(column)


class FilledColumn(Protocol):
    """A column being filled: its name, and whether it accepts NULL."""

    @property
    def name(self) -> str: ...

    @property
    def nullable(self) -> bool: ...


def null_violation(column: FilledColumn) -> SqlError:
    """23502, for a NULL in a NOT NULL column."""
    return SqlError("23502", f'null value in column "{column.name}" violates not-null constraint')


def alike(names: Sequence[str], name: str) -> str | None:
    """The name itself, or else the only one that equals it up to case, since databases fold names differently."""
    found = [n for n in names if n.lower() == name.lower()]
    return name if name in names else found[0] if len(found) == 1 else None


def match_names(columns: Sequence[LoadColumn], found: Sequence[str], file: str, ignore_extra: bool) -> None:
    """Checks that the file has every column exactly once, and no others unless these are ignored. Raises 42703."""
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
