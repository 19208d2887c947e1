"""The form of table functions: their entries, what they return, and implementations from one row's datums.

An implementation takes (argument vectors, their types, count, context) and returns an ``Expansion``: ``source``
int64[m], ascending, the row that each returned row came from; ``columns``, one Vector[m] for each result column;
``failures``, the rows whose call failed (they return no rows). ``table_functions.py`` has the complete table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words
from ivm.words import ColumnType, Kind, Schema, SqlType
from planner.expr.context import Context
from planner.expr.functions.table import ArgumentType, function_key
from planner.expr.rows import Failures
from storage.types import codec

MAX_ROWS: Final = 50_000_000
"""Rows that one call of a batch may return; past it 54000, since a series is made whole."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """What a table function returns; see the module docstring."""

    source: Words
    columns: list[Vector]
    failures: Failures | None = None


Implementation = Callable[[Sequence[Vector], tuple[SqlType, ...], int, Context], Expansion]
Results = Callable[[Sequence[SqlType]], Sequence[SqlType]]
"""The types of the result columns for arguments of these types."""


@dataclass(frozen=True, slots=True)
class TableFunctionEntry:
    """A table function. ``names``: of its columns, where they have names of their own; ``row``: the key of the same
    function with a row as its one column, where there are several."""

    key: str
    name: str
    args: tuple[ArgumentType, ...]
    results: Results
    implementation: Implementation
    nullable: bool = True
    variadic: bool = False
    names: tuple[str, ...] = ()
    row: str | None = None

    def columns(self, args: Sequence[SqlType]) -> Schema:
        """The result columns for arguments of these types."""
        return tuple(ColumnType(type_, self.nullable) for type_ in self.results(args))

    def column_names(self, args: Sequence[SqlType]) -> tuple[str, ...]:
        """The columns' own names: those of a row where it returns one; () if it has none."""
        if self.row is not None and not self.names:
            return tuple(name for name, _ in args[0].fields)
        return self.names


TABLE_FUNCTIONS: Final[dict[str, TableFunctionEntry]] = {}
"""By key. ``table_functions.py`` has imported all families."""
_BY_NAME: Final[dict[str, list[TableFunctionEntry]]] = {}


def table_overloads(name: str) -> tuple[TableFunctionEntry, ...]:
    """All overloads of a table function's name; () if there are none."""
    return tuple(_BY_NAME.get(name, ()))


def _enter(entry: TableFunctionEntry) -> None:
    TABLE_FUNCTIONS[entry.key] = entry
    _BY_NAME.setdefault(entry.name, []).append(entry)


def add(
    name: str, args: tuple[ArgumentType, ...], results: SqlType | Results, implementation: Implementation, *,
    nullable: bool = False, key: str | None = None, names: tuple[str, ...] = (), row: bool = False,
) -> None:  # fmt: skip
    """Adds an entry. ``key``: of one whose last argument repeats; ``row``: it has several columns."""
    found: Results = (lambda _: (results,)) if isinstance(results, SqlType) else results
    own = key or function_key(name, args)
    packed = f"row of {own}" if row else None
    entry = TableFunctionEntry(own, name, args, found, implementation, nullable, key is not None, names, packed)
    _enter(entry)
    if packed is not None:
        _enter(TableFunctionEntry(packed, packed, args, lambda types: (row_type(entry, types),), _packed(entry)))


def row_type(entry: TableFunctionEntry, args: Sequence[SqlType]) -> SqlType:
    """The type of the rows that a function of several columns returns."""
    fields = tuple(zip(entry.column_names(args), entry.results(args), strict=True))
    return SqlType(Kind.RECORD, fields=fields)


def _packed(entry: TableFunctionEntry) -> Implementation:
    """The function with a row as its one column."""

    def run(vectors: Sequence[Vector], types: tuple[SqlType, ...], count: int, context: Context) -> Expansion:
        expansion = entry.implementation(vectors, types, count, context)
        results = entry.results(types)
        columns = [
            codec.decode(t, vector, context.dictionary) for t, vector in zip(results, expansion.columns, strict=True)
        ]
        rows = list(zip(*columns, strict=True))
        packed = codec.encode(row_type(entry, types), rows, context.dictionary)
        return Expansion(expansion.source, [packed], expansion.failures)

    return run


def present(vectors: Sequence[Vector], count: int) -> Mask:
    """The rows where no argument is NULL."""
    mask = np.ones(count, np.bool_)
    for vector in vectors:
        if vector.nulls is not None:
            mask &= ~vector.nulls
    return mask


def failures(found: dict[int, SqlError]) -> Failures | None:
    """The failures of these rows."""
    if not found:
        return None
    rows = sorted(found)
    return Failures(np.array(rows, np.int64), [found[row] for row in rows])


def each(result: SqlType, compute: Callable[..., Sequence[Any]]) -> Implementation:
    """Makes an implementation of a function from one row's datums to datums; ``compute`` takes the context first."""

    def rows(context: Context, types: tuple[SqlType, ...], *datums: Any) -> Sequence[tuple[Any, ...]]:
        return [(value,) for value in compute(context, *datums)]

    return each_row(lambda _: (result,), rows)


def each_row(results: Results, compute: Callable[..., Sequence[tuple[Any, ...]]], strict: int = 0) -> Implementation:
    """The same for rows of several columns; ``compute`` takes the context and the arguments' types first.

    ``strict``: the first argument whose NULL returns no rows; those before it are passed as None.
    """

    def run(vectors: Sequence[Vector], types: tuple[SqlType, ...], count: int, context: Context) -> Expansion:
        rows = np.flatnonzero(present(vectors[strict:], count))
        decoded = [
            codec.decode(t, Vector(v.words[rows], None if v.nulls is None else v.nulls[rows]), context.dictionary)
            for t, v in zip(types, vectors, strict=True)
        ]
        sizes: list[int] = []
        made: list[tuple[Any, ...]] = []
        found: dict[int, SqlError] = {}
        for at, row in enumerate(rows.tolist()):
            try:
                values = compute(context, types, *(column[at] for column in decoded))
            except SqlError as error:
                found[row] = error.with_traceback(None)
                values = ()
            sizes.append(len(values))
            made += values
        source = np.repeat(rows, np.array(sizes, np.int64))
        types_of = results(types)
        columns = list(zip(*made, strict=True)) if made else [()] * len(types_of)
        vectors_of = [codec.encode(t, c, context.dictionary) for t, c in zip(types_of, columns, strict=True)]
        return Expansion(source, vectors_of, failures(found))

    return run
