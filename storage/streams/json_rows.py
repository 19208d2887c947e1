"""JSON messages and events → rows: what sources FROM KAFKA read on Spark's executors, and Debezium's files.

An object's members are matched with columns by name. A missing member is NULL. An unknown member is an error, unless
the source lists the columns that it fills. Values are read as in ``storage.load.json_rows``.

A Debezium event is an object with ``op`` and ``before`` or ``after``, either bare or as the ``payload`` beside a
schema. It becomes its key's new state: ``after`` for c, r and u, no row for d. An update that changes the key first
deletes the old key's row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ivm.errors import SqlError
from ivm.rows import Vector
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn, check_nulls
from storage.load.json_rows import json_text, parsed_json
from storage.load.source import ColumnBlock
from storage.types.text import parse_rows

_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class JsonRows:
    """Objects as rows of ``columns``. ``key``: the positions of KEY. ``listed``: whether the source lists its columns.

    ``debezium``: the objects are events.
    """

    columns: tuple[LoadColumn, ...]
    key: tuple[int, ...] = ()
    listed: bool = False
    debezium: bool = False

    def block(
        self, values: Sequence[str | None], keys: Sequence[str | None] | None, dictionary: Dictionary
    ) -> ColumnBlock:
        """Rows in columnar form. Under an envelope a last vector marks the rows that delete their key.

        ``keys``: the messages' keys, if they have any. A NULL value deletes its key.
        """
        rows: list[list[str | None]] = []
        gone: list[bool] = []
        for i, value in enumerate(values):
            for row, goes in self._rows(value, None if keys is None else keys[i]):
                rows.append(row)
                gone.append(goes)
        vectors = [_vector([row[i] for row in rows], column, dictionary) for i, column in enumerate(self.columns)]
        if self.key:
            vectors.append(Vector(np.array(gone, np.int64)))
        return ColumnBlock(vectors, len(rows))

    def _rows(self, value: str | None, key: str | None) -> Iterator[tuple[list[str | None], bool]]:
        found = None if value is None else parsed(value)
        if self.debezium:
            if found is not None:
                yield from self._event(_object(found, value))
        elif found is None:
            if not self.key:
                raise SqlError(
                    "22023", "a message has no value", hint="ENVELOPE UPSERT takes such a message's key away."
                )
            yield self._key_row(key), True
        else:
            row = self._row(_object(found, value), self.listed)
            rest = [cell for i, cell in enumerate(row) if i not in self.key]
            yield row, bool(self.key) and bool(rest) and all(cell is None for cell in rest)

    def _event(self, event: dict[str, Any]) -> Iterator[tuple[list[str | None], bool]]:
        event = event["payload"] if isinstance(event.get("payload"), dict) else event
        op, before, after = (event.get(name) for name in ("op", "before", "after"))
        if op == "d" and isinstance(before, dict):
            yield self._only_key(self._row(before, True)), True
        elif op in ("c", "r", "u") and isinstance(after, dict):
            row = self._row(after, self.listed)
            if isinstance(before, dict):
                old = self._row(before, True)
                if any(old[i] != row[i] for i in self.key) and all(old[i] is not None for i in self.key):
                    yield self._only_key(old), True
            yield row, False
        else:
            message = f"a Debezium event with op {json.dumps(op)} has no {'before' if op == 'd' else 'after'}"
            if op not in ("c", "r", "u", "d"):
                message = f"a Debezium event has op {json.dumps(op)}, which is none of c, r, u and d"
            raise SqlError("22023", message)

    def _only_key(self, row: list[str | None]) -> list[str | None]:
        return [cell if i in self.key else None for i, cell in enumerate(row)]

    def _key_row(self, key: str | None) -> list[str | None]:
        found = None if key is None else parsed(key)
        if found is None:
            raise SqlError("22023", "a message has neither a value nor a key")
        if not isinstance(found, dict):
            if len(self.key) != 1:
                raise SqlError("22023", "a message's key is no JSON object, and KEY has several columns")
            found = {self.columns[self.key[0]].name: found}
        return self._only_key(self._row(found, True))

    def _row(self, members: dict[str, Any], listed: bool) -> list[str | None]:
        names = [column.name for column in self.columns]
        if not listed:
            for name in members:
                if name not in names:
                    hint = "Add the column, or name those to fill: INTO table (column, ...)."
                    raise SqlError("42703", f'an object has a member "{name}" that is no column', hint=hint)
        return [json_text(members.get(c.name), c.type.kind) for c in self.columns]


@dataclass(frozen=True, slots=True)
class Messages:
    """Kafka's messages: batches of the columns value and key, both text."""

    rows: JsonRows

    def __call__(self, batches: Iterable[pa.RecordBatch], dictionary: Dictionary) -> Iterator[ColumnBlock]:
        for batch in batches:
            yield self.rows.block(batch.column(0).to_pylist(), batch.column(1).to_pylist(), dictionary)


def parsed(text: str) -> Any:
    """JSON with numbers as written. Raises 22P02."""
    try:
        return parsed_json(text)
    except (ValueError, RecursionError) as error:
        detail = f"{error}, in {text[:_SHOWN]}"
        raise SqlError("22P02", "invalid input syntax for type json", detail) from None


def _object(found: Any, text: str | None) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise SqlError("22023", "a row is no JSON object", f"It is {(text or 'null')[:_SHOWN]}")
    return found


def _vector(texts: list[str | None], column: LoadColumn, dictionary: Dictionary) -> Vector:
    """A column's values. Raises 23502 and the errors of the type's input function, with the column's name."""
    vector, failures = parse_rows(column.type, texts, dictionary)
    if failures:
        error = failures[0][1]
        detail = error.detail or f'It is a value of column "{column.name}".'
        raise SqlError(error.sqlstate, error.message, detail, error.hint)
    check_nulls(vector, column)
    return vector
