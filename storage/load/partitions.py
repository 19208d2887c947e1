"""Hive partitioning: columns whose values are in folder names, as in ``day=2024-01-31/city=Bonn/part-0.csv``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Vector
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn, check_nulls
from storage.types.text import parse_rows
from storage.types.text_style import DEFAULT_STYLE, TextStyle

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


def partition_values(path: str) -> dict[str, str | None]:
    """The partition values in a path's folders, outermost first; None is NULL."""
    found: dict[str, str | None] = {}
    for folder in path.split("/")[:-1]:
        key, equals, value = folder.partition("=")
        if key and equals:
            found[unquote(key)] = None if value == _NULL else unquote(value)
    return found


def partition_keys(paths: Sequence[str]) -> tuple[str, ...]:
    """The partition columns in the paths' folders. 22023 if the files differ in them."""
    keys = {tuple(partition_values(path)): path for path in paths}
    if len(keys) > 1:
        (one, here), (other, there) = list(keys.items())[:2]
        raise SqlError(
            "22023",
            "the files' folders name different partition columns",
            f'"{here}" has ({", ".join(one)}), "{there}" has ({", ".join(other)}).',
        )
    return next(iter(keys), ())


@dataclass(frozen=True, slots=True)
class Partitions:
    """``keys``: the partition columns. ``style``: the session's, by which their values are read."""

    keys: tuple[str, ...] = ()
    style: TextStyle = DEFAULT_STYLE

    def has(self, column: LoadColumn) -> bool:
        """Whether the column comes from the folder names rather than from the file."""
        return column.source in self.keys

    def rest(self, columns: Sequence[LoadColumn]) -> tuple[LoadColumn, ...]:
        """The columns that come from the file."""
        return tuple(column for column in columns if not self.has(column))

    def fill(
        self, columns: Sequence[LoadColumn], given: Mapping[str, Vector], path: str, size: int, dictionary: Dictionary
    ) -> list[Vector]:
        """All columns in order, ``size`` rows each: those of the file taken by name, the others from its path."""
        values = partition_values(path) if self.keys else {}
        return [
            self._constant(column, values[column.source], size, dictionary) if self.has(column) else given[column.name]
            for column in columns
        ]

    def _constant(self, column: LoadColumn, text: str | None, size: int, dictionary: Dictionary) -> Vector:
        vector, failures = parse_rows(column.type, [text], dictionary, self.style)
        if failures:
            error = failures[0][1]
            where = f'partition {column.source}={text}, column "{column.name}"'
            raise SqlError(error.sqlstate, error.message, where, error.hint)
        check_nulls(vector, column)
        words = np.repeat(vector.words, size)
        return Vector(words, None if vector.nulls is None else np.repeat(vector.nulls, size))


NO_PARTITIONS: Final = Partitions()
