"""What a row must keep: NOT NULL and the primary key. Checked before anything is fed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Mask, RowSet, Vector, Words, pack, unpack
from planner.context import Context
from planner.evaluate import evaluate
from planner.scalar import Call, Column
from sql.catalog import Relation
from sql.engine import Engine
from storage.dictionary import Dictionary
from storage.text import format_text

FEW: Final = 64
"""Rows of one statement up to which their keys are remembered one by one instead of stepping first."""
LATEST: Final = 2**62


def fit(table: Relation, source: RowSet, dictionary: Dictionary, first: int = 0) -> Words:
    """The source's columns from ``first`` on as rows of the table; 23502 when a NOT NULL column is NULL."""
    columns = source.columns()[first : first + len(table.columns)]
    schema = table.schema
    given = source.schema[first : first + len(table.columns)]
    for i, (column, vector) in enumerate(zip(table.columns, columns, strict=True)):
        if not column.nullable and vector.nulls is not None and vector.nulls.any():
            row = int(np.flatnonzero(vector.nulls)[0])
            raise not_null_violation(table, i, [_cell(v, row) for v in columns], dictionary)
    if (
        first == 0
        and len(given) == len(source.schema)
        and all(a.nullable == b.nullable for a, b in zip(given, schema, strict=True))
    ):
        return source.rows
    return pack(columns, schema, len(source))


def not_null_violation(table: Relation, column: int, row: list[Vector], dictionary: Dictionary) -> SqlError:
    """Postgres's error for a NULL where none may be."""
    name = table.columns[column].name
    return SqlError(
        "23502",
        f'null value in column "{name}" of relation "{table.name}" violates not-null constraint',
        f"Failing row contains {_row_text(table, row, dictionary)}.",
    )


def key_words(table: Relation, rows: Words, context: Context) -> Words:
    """The primary key's words of rows of the table, by equality class: int64[n, k]."""
    return _classes(table, np.ascontiguousarray(rows[:, list(table.primary_key)]), context)


def _classes(table: Relation, keys: Words, context: Context) -> Words:
    for place, column in enumerate(table.columns[i] for i in table.primary_key):
        if column.type.has_equality_class:
            call = Call("equality_class", (Column(0, column.type, False),), column.type, False)
            vectors, _ = evaluate((call,), [Vector(np.ascontiguousarray(keys[:, place]))], len(keys), context)
            keys[:, place] = vectors[0].words
    return keys


class KeyIndex:
    """Which primary keys are taken: the arrangements as they were stepped last, and what was fed since.

    Invariant: ``_since`` holds, for each table, the change in every key's count since ``engine.head``; a table whose
    changes were too many stands in ``_bulk`` instead and is stepped before it is looked at.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._steps = engine.steps
        self._since: dict[int, dict[bytes, int]] = {}
        self._bulk: set[int] = set()

    def free(
        self, table: Relation, removed: Words, inserted: Words, context: Context, settle: Callable[[], None]
    ) -> Mask:
        """For each row to be inserted, whether its key is free once ``removed`` (rows) are gone: bool[n].

        Of several rows with one key the first counts. ``settle`` feeds and steps what the writer has changed so far.
        Cost: O(rows · log state).
        """
        keys = key_words(table, inserted, context)
        if table.id in self._bulk or len(keys) > FEW:
            settle()
        self._renew()
        counts = self._stored(table, keys, context)
        if len(keys) > FEW:
            return _free_of_many(keys, key_words(table, removed, context), counts)
        gone = _counted(key_words(table, removed, context)) if len(removed) else {}
        since = self._since.get(table.id, {})
        result = counts <= 0
        if gone or since or len(keys) > 1:
            seen: set[bytes] = set()
            for i, row in enumerate(keys):
                key = row.tobytes()
                result[i] = key not in seen and counts[i] + since.get(key, 0) - gone.get(key, 0) <= 0
                if result[i]:
                    seen.add(key)
        return result

    def note(self, table: Relation, rows: Words, diff: int, context: Context) -> None:
        """Rows that a statement adds or removes, and that are not stepped yet."""
        self._renew()
        if len(rows) > FEW:
            self._bulk.add(table.id)
            return
        since = self._since.setdefault(table.id, {})
        for row in key_words(table, rows, context):
            key = row.tobytes()
            since[key] = since.get(key, 0) + diff

    def _stored(self, table: Relation, keys: Words, context: Context) -> Words:
        """How many stepped rows each key has, int64[n]."""
        counts = np.zeros(len(keys), np.int64)
        version = self._engine.arrangement(table.id)
        if not any(table.columns[i].type.has_equality_class for i in table.primary_key):
            _, diffs, index = version.lookup(keys, LATEST)
            np.add.at(counts, index, diffs)
            return counts
        rows, diffs = version.rows_at(LATEST)  # arranged by identity; equal keys may differ in their words
        held = _counted(_classes(table, rows[:, : keys.shape[1]].copy(), context), diffs)
        return np.array([held.get(row.tobytes(), 0) for row in keys], np.int64)

    def _renew(self) -> None:
        if self._engine.steps != self._steps:
            self._steps = self._engine.steps
            self._since.clear()
            self._bulk.clear()


def _free_of_many(keys: Words, gone: Words, counts: Words) -> Mask:
    """As the loop in ``free``, over whole arrays: sorts instead of remembering."""
    both = np.ascontiguousarray(np.concatenate([keys, gone]))
    single = both[:, 0] if both.shape[1] == 1 else both.view([("", np.int64)] * both.shape[1]).reshape(-1)
    _, first, place = np.unique(single, return_index=True, return_inverse=True)
    removed = np.bincount(place[len(keys) :], minlength=len(first))
    group = place[: len(keys)]
    return np.asarray((first[group] == np.arange(len(keys))) & (counts - removed[group] <= 0))


def _counted(keys: Words, diffs: Words | None = None) -> dict[bytes, int]:
    counts: dict[bytes, int] = {}
    for i, row in enumerate(keys):
        key = row.tobytes()
        counts[key] = counts.get(key, 0) + (1 if diffs is None else int(diffs[i]))
    return counts


def duplicate_key(table: Relation, row: Words, dictionary: Dictionary) -> SqlError:
    """Postgres's error for a key that is taken; ``row`` is one row of the table."""
    columns = unpack(row.reshape(1, -1), table.schema)
    names = ", ".join(table.columns[i].name for i in table.primary_key)
    values = ", ".join(_text(table, i, columns[i], dictionary) for i in table.primary_key)
    return SqlError(
        "23505",
        f'duplicate key value violates unique constraint "{table.name}_pkey"',
        f"Key ({names})=({values}) already exists.",
    )


def _cell(vector: Vector, row: int) -> Vector:
    return Vector(vector.words[row : row + 1], None if vector.nulls is None else vector.nulls[row : row + 1])


def _row_text(table: Relation, row: list[Vector], dictionary: Dictionary) -> str:
    return "(" + ", ".join(_text(table, i, vector, dictionary) for i, vector in enumerate(row)) + ")"


def _text(table: Relation, column: int, vector: Vector, dictionary: Dictionary) -> str:
    text = format_text(table.columns[column].type, vector, dictionary)[0]
    return "null" if text is None else text.decode()
