"""Results made from Python values."""

from __future__ import annotations

from collections.abc import Sequence

from ivm.rows import RowSet, pack
from ivm.words import TEXT, ColumnType
from sql.statements.queries import OutputColumn
from sql.statements.results import RowsResult
from storage.dictionary import Dictionary
from storage.types.codec import encode


def datum_rows(
    dictionary: Dictionary, columns: tuple[OutputColumn, ...], rows: Sequence[tuple[object, ...]], tag: str
) -> RowsResult:
    """A result from rows of datums. New values go to a scratch area of the dictionary."""
    scratch = dictionary.scratch()
    schema = tuple(ColumnType(c.type) for c in columns)
    vectors = [encode(c.type, [row[i] for row in rows], scratch) for i, c in enumerate(columns)]
    return RowsResult(columns, RowSet(pack(vectors, schema, len(rows)), schema), tag, scratch)


def text_rows(dictionary: Dictionary, name: str, lines: Sequence[str], tag: str) -> RowsResult:
    """A result of one text column."""
    return datum_rows(dictionary, (OutputColumn(name, TEXT),), [(line,) for line in lines], tag)
