"""NOT NULL and CHECK constraints, and Postgres's errors for violations. Checked before anything is fed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from ivm.errors import SqlError, Subject
from ivm.rows import RowSet, Vector, Words, null_mask, pack, unpack
from ivm.words import null_words
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate, evaluated
from planner.expr.scalar import Scalar
from planner.identifiers import quoted
from planner.memo import by_identity
from sql.bind.constraints import domain_columns
from sql.bind.generation import generated_columns
from sql.bind.index_keys import index_parts, part_text
from sql.catalog.catalog import Relation
from sql.catalog.keys import Index
from storage.dictionary import Dictionary
from storage.types.text import format_text

CHECKED_ROWS: Final = 1 << 18
"""The number of rows for which a condition is evaluated at a time."""


def fit(table: Relation, source: RowSet, context: Context, first: int = 0) -> Words:
    """The source's columns from ``first`` on as rows of the table, generated columns computed; 23502 if a NOT NULL
    column is NULL; 23502, 23514 for a value outside its column's domain."""
    generated = generated_columns(table)
    if first == 0 and len(source.schema) == len(table.columns) and not (generated or domain_columns(table)):
        return _fit_whole(table, source, context)
    columns = source.columns()[first : first + len(table.columns)]
    _check_domains(table, columns, len(source), context)
    _check_nulls(table, columns, {i for i, _ in generated}, context.dictionary)
    schema = table.row_schema
    if generated:
        exprs = tuple(expr for _, expr in generated)
        for (i, _), vector in zip(generated, evaluated(exprs, columns, len(source), context), strict=True):
            columns[i] = vector
        _check_nulls(table, columns, set(), context.dictionary)
        return pack(columns, schema, len(source))
    return pack(columns, schema, len(source))


def _fit_whole(table: Relation, source: RowSet, context: Context) -> Words:
    """The same of a source whose columns are the table's, and where nothing is computed."""
    rows, width = source.rows, len(table.columns)
    given, wanted = null_words(source.schema), null_words(table.row_schema)
    if given and rows[:, width:].any() and required_columns(table):
        mask = null_mask(rows, width)
        for i in required_columns(table):
            if mask[:, i].any():
                row = [_cell(v, int(np.flatnonzero(mask[:, i])[0])) for v in source.columns()]
                raise not_null_violation(table, i, row, context.dictionary)
    if given == wanted:
        return rows
    if given:
        return np.ascontiguousarray(rows[:, :width])
    return np.concatenate([rows, np.zeros((len(rows), wanted), np.int64)], axis=1)


@by_identity
def required_columns(table: Relation) -> tuple[int, ...]:
    """The columns that are never NULL."""
    return tuple([i for i, column in enumerate(table.row_schema) if not column.nullable])


def _check_nulls(table: Relation, columns: list[Vector], skipped: set[int], dictionary: Dictionary) -> None:
    """23502 for a NULL in a NOT NULL column, but for the ``skipped`` ones."""
    for i, (column, vector) in enumerate(zip(table.row_schema, columns, strict=True)):
        if i in skipped:
            continue
        if not column.nullable and vector.nulls is not None and vector.nulls.any():
            row = int(np.flatnonzero(vector.nulls)[0])
            raise not_null_violation(table, i, [_cell(v, row) for v in columns], dictionary)


def _check_domains(table: Relation, columns: list[Vector], count: int, context: Context) -> None:
    found = domain_columns(table)
    if found:
        evaluated(tuple(expr for _, expr in found), columns, count, context)


def not_null_violation(table: Relation, column: int, row: list[Vector], dictionary: Dictionary) -> SqlError:
    """Postgres's error for a NULL in a NOT NULL column."""
    name = table.columns[column].name
    return SqlError(
        "23502",
        f'null value in column "{name}" of relation "{table.name}" violates not-null constraint',
        f"Failing row contains {row_text(table, row, dictionary)}.",
        subject=Subject(table.schema_name, table.name, column=name),
    )


def check_conditions(table: Relation, rows: Words, conditions: tuple[Scalar, ...], context: Context) -> None:
    """23514 for the first row that fails a CHECK (NULL passes). If it fails several, the error names the first by
    name."""
    columns = unpack(rows, table.schema)
    vectors = evaluated(conditions, columns, len(rows), context)
    worst: tuple[int, str] | None = None
    for check, vector in zip(table.checks, vectors, strict=True):
        failed = vector.words == 0 if vector.nulls is None else (vector.words == 0) & ~vector.nulls
        if failed.any():
            found = int(np.flatnonzero(failed)[0]), check.name
            worst = found if worst is None else min(worst, found)
    if worst is not None:
        row = [_cell(v, worst[0]) for v in columns]
        raise SqlError(
            "23514", f'new row for relation "{table.name}" violates check constraint "{worst[1]}"',
            f"Failing row contains {row_text(table, row, context.dictionary)}.",
            subject=Subject(table.schema_name, table.name, constraint=worst[1]),
        )  # fmt: skip


def failing_rows(
    table: Relation, rows: Words, conditions: tuple[Scalar, ...], context: Context
) -> Iterator[tuple[int, str, SqlError]]:
    """All rows that fail ``check_conditions``, in order: position, text, and the error for each."""
    for start in range(0, len(rows), CHECKED_ROWS):
        part = rows[start : start + CHECKED_ROWS]
        columns = unpack(part, table.schema)
        vectors, failures = evaluate(conditions, columns, len(part), context)
        wrong = np.zeros(len(part), np.bool_)
        for vector in vectors:
            wrong |= vector.words == 0 if vector.nulls is None else (vector.words == 0) & ~vector.nulls
        if failures is not None:
            wrong[failures.rows] = True
        for row in np.flatnonzero(wrong).tolist():
            try:
                check_conditions(table, part[row : row + 1], conditions, context)
            except SqlError as error:
                yield start + row, row_text(table, [_cell(v, row) for v in columns], context.dictionary), error


def duplicate_key(table: Relation, index: Index, row: Words, context: Context) -> SqlError:
    """Postgres's error for a duplicate key; ``row`` is one row of the table."""
    message = f'duplicate key value violates unique constraint "{index.name}"'
    detail = f"{index_text(table, index, row, context)} already exists."
    return SqlError("23505", message, detail, subject=Subject(table.schema_name, table.name, constraint=index.name))


def conflicting_key(table: Relation, index: Index, row: Words, other: Words, context: Context) -> SqlError:
    """Postgres's error for a row that conflicts with another one by an EXCLUDE constraint."""
    own, held = (index_text(table, index, r, context) for r in (row, other))
    return SqlError(
        "23P01", f'conflicting key value violates exclusion constraint "{index.name}"',
        f"{own} conflicts with existing {held.replace('Key', 'key', 1)}.",
        subject=Subject(table.schema_name, table.name, constraint=index.name),
    )  # fmt: skip


def index_text(table: Relation, index: Index, row: Words, context: Context) -> str:
    """``Key (a, lower(b))=(1, x)`` for one row of the table."""
    if not index.expressions:
        return key_text(table, index.columns, row, context.dictionary)
    parts = index_parts(table, index)
    vectors = evaluated(parts, unpack(row.reshape(1, -1), table.schema), 1, context)
    texts = [format_text(p.type, v, context.dictionary)[0] for p, v in zip(parts, vectors, strict=True)]
    values = ", ".join("null" if text is None else text.decode() for text in texts)
    return f"Key ({', '.join(part_text(table, index, i) for i in range(index.width))})=({values})"


def key_text(table: Relation, columns: tuple[int, ...], row: Words, dictionary: Dictionary) -> str:
    """``Key (a, b)=(1, x)`` for one row of the table."""
    vectors = unpack(row.reshape(1, -1), table.schema)
    names = ", ".join(quoted(table.columns[i].name) for i in columns)
    values = ", ".join(_text(table, i, vectors[i], dictionary) for i in columns)
    return f"Key ({names})=({values})"


def _cell(vector: Vector, row: int) -> Vector:
    return Vector(vector.words[row : row + 1], None if vector.nulls is None else vector.nulls[row : row + 1])


def failing_row(table: Relation, columns: list[Vector], row: int, dictionary: Dictionary) -> str:
    """The detail of errors about one of a table's rows."""
    return f"Failing row contains {row_text(table, [_cell(v, row) for v in columns], dictionary)}."


def row_text(table: Relation, row: list[Vector], dictionary: Dictionary) -> str:
    """A row, given as columns of length one, in the format of Postgres's errors."""
    return "(" + ", ".join(_text(table, i, vector, dictionary) for i, vector in enumerate(row)) + ")"


def _text(table: Relation, column: int, vector: Vector, dictionary: Dictionary) -> str:
    text = format_text(table.columns[column].type, vector, dictionary)[0]
    return "null" if text is None else text.decode()
