"""Envelopes: how a sink writes a view's changes. CHANGELOG writes them as they are, UPSERT and DEBEZIUM by key.

Every row carries its commit's epoch, ``mz_timestamp``. CHANGELOG writes rows with ``mz_diff``, as SUBSCRIBE does.
UPSERT writes for each changed key its new values (``mz_state`` upsert) or NULLs (delete). DEBEZIUM writes ``op`` (r in
a snapshot, c, u, d), ``before`` and ``after``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words, unpack
from ivm.words import INT8, TEXT, ColumnType, Schema, row_width
from storage.dictionary import Dictionary
from storage.sinks.arrow import SinkColumn, arrow_type, column_to_arrow
from storage.stored import History


class Envelope(Enum):
    """The form in which changes are written."""

    CHANGELOG = "changelog"
    UPSERT = "upsert"
    DEBEZIUM = "debezium"

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The columns that the envelope adds. The view must have no column of these names."""
        return {"changelog": ("mz_timestamp", "mz_diff"), "upsert": ("mz_timestamp", "mz_state")}.get(self.value, ())


class SinkField(NamedTuple):
    """An output column."""

    name: str
    column: ColumnType
    vector: Vector


class Nested(NamedTuple):
    """A struct column: DEBEZIUM's before and after. ``nulls``: where it is NULL."""

    name: str
    nulls: Mask
    fields: tuple[SinkField, ...]


SinkFields = tuple["SinkField | Nested", ...]


@dataclass(frozen=True, slots=True)
class SinkLayout:
    """The output of a sink: the relation's columns, the envelope, and the positions of the key's columns."""

    columns: tuple[SinkColumn, ...]
    envelope: Envelope
    key: tuple[int, ...] = ()

    @property
    def schema(self) -> Schema:
        """The relation's schema."""
        return tuple(c.column for c in self.columns)

    def fields(self, changes: History, snapshot: bool, dictionary: Dictionary) -> SinkFields:
        """The output for changes, ordered by epoch. With a key, each (epoch, key) must be complete (``grouped``).
        21000: a key has two rows."""
        match self.envelope:
            case Envelope.CHANGELOG:
                return self._changelog(changes)
            case Envelope.UPSERT:
                return self._upsert(changes, dictionary)
            case Envelope.DEBEZIUM:
                return self._debezium(changes, snapshot, dictionary)

    def arrow_schema(self) -> pa.Schema:
        """The schema of ``to_batch``'s result."""
        empty = History(np.zeros((0, self.width), np.int64), _NO_WORDS, _NO_WORDS)
        return to_batch(self.fields(empty, False, _SCRATCH), _SCRATCH).schema

    @property
    def width(self) -> int:
        """The width of a row in words."""
        return row_width(self.schema)

    def grouped(self, parts: Iterator[History]) -> Iterator[History]:
        """Re-chunks changes sorted by (epoch, key) so that no such group is split. Without a key, passes them
        through."""
        if not self.key:
            yield from parts
            return
        left: History | None = None
        for part in parts:
            whole = part if left is None else History(*(np.concatenate(pair) for pair in zip(left, part, strict=True)))
            starts = self._starts(whole)
            cut = int(starts[-1]) if len(starts) else 0
            left = History(whole.rows[cut:], whole.epochs[cut:], whole.diffs[cut:])
            if cut:
                yield History(whole.rows[:cut], whole.epochs[:cut], whole.diffs[:cut])
        if left is not None and len(left.rows):
            yield left

    def _changelog(self, changes: History) -> SinkFields:
        columns = unpack(changes.rows, self.schema)
        own = (
            SinkField("mz_timestamp", _INT8, Vector(changes.epochs)),
            SinkField("mz_diff", _INT8, Vector(changes.diffs)),
        )
        return (*own, *(SinkField(c.name, c.column, v) for c, v in zip(self.columns, columns, strict=True)))

    def _upsert(self, changes: History, dictionary: Dictionary) -> SinkFields:
        old, new = self._pairs(changes)
        gone = new < 0
        at = np.where(gone, old, new)
        state = dictionary.intern([b"upsert", b"delete"])
        fields: list[SinkField | Nested] = [
            SinkField("mz_timestamp", _INT8, Vector(changes.epochs[at])),
            SinkField("mz_state", _TEXT, Vector(np.where(gone, state[1], state[0]))),
        ]
        vectors = unpack(changes.rows[at], self.schema)
        for i in (*self.key, *(i for i in range(len(self.columns)) if i not in self.key)):
            column, vector = self.columns[i], vectors[i]
            if i in self.key:
                fields.append(SinkField(column.name, column.column, vector))
            else:
                fields.append(SinkField(column.name, ColumnType(column.column.type), _without(vector, gone)))
        return tuple(fields)

    def _debezium(self, changes: History, snapshot: bool, dictionary: Dictionary) -> SinkFields:
        old, new = self._pairs(changes)
        words = dictionary.intern([b"r" if snapshot else b"c", b"u", b"d"])
        kind = np.where(new < 0, 2, np.where(old < 0, 0, 1))
        return (
            SinkField("op", _TEXT, Vector(words[kind])),
            SinkField("mz_timestamp", _INT8, Vector(changes.epochs[np.where(new < 0, old, new)])),
            self._image("before", changes, old), self._image("after", changes, new),
        )  # fmt: skip

    def _image(self, name: str, changes: History, at: Words) -> Nested:
        nulls = at < 0
        vectors = unpack(changes.rows[np.maximum(at, 0)] if len(at) else changes.rows, self.schema)
        columns = zip(self.columns, vectors, strict=True)
        fields = (SinkField(c.name, ColumnType(c.column.type), _without(v, nulls)) for c, v in columns)
        return Nested(name, nulls, tuple(fields))

    def _starts(self, changes: History) -> Words:
        """The positions where a new (epoch, key) begins."""
        count = len(changes.epochs)
        if not count:
            return _NO_WORDS
        differs = np.ones(count, np.bool_)
        differs[1:] = changes.epochs[1:] != changes.epochs[:-1]
        vectors = unpack(changes.rows, self.schema)
        for i in self.key:
            words, nulls = vectors[i].words, vectors[i].nulls
            differs[1:] |= words[1:] != words[:-1]
            if nulls is not None:
                differs[1:] |= nulls[1:] != nulls[:-1]
        return np.flatnonzero(differs)

    def _pairs(self, changes: History) -> tuple[Words, Words]:
        """For each (epoch, key) the positions of the old row and of the new one, -1 for none."""
        starts = self._starts(changes)
        group = np.zeros(len(changes.epochs), np.int64)
        group[starts[1:]] = 1
        group = np.cumsum(group)
        for sign in (-1, 1):
            many = np.bincount(group, np.maximum(changes.diffs * sign, 0), minlength=len(starts)) > 1
            if many.any():
                raise self._not_unique()
        found = []
        for sign in (-1, 1):
            at = np.full(len(starts), -1, np.int64)
            rows = np.flatnonzero(changes.diffs == sign)
            at[group[rows]] = rows
            found.append(at)
        return found[0], found[1]

    def _not_unique(self) -> SqlError:
        names = ", ".join(self.columns[i].name for i in self.key)
        return SqlError("21000", f"the sink's key ({names}) has more than one row",
                        hint="Give the sink a key by which rows are unique, or ENVELOPE CHANGELOG.")  # fmt: skip


def to_batch(fields: SinkFields, dictionary: Dictionary) -> pa.RecordBatch:
    """Converts fields to an Arrow batch."""
    arrays, types = [], []
    for field in fields:
        if isinstance(field, SinkField):
            arrays.append(column_to_arrow(field.vector, field.name, field.column.type, dictionary))
            types.append(pa.field(field.name, arrow_type(field.column.type), field.column.nullable))
            continue
        inner = to_batch(field.fields, dictionary)
        arrays.append(pa.StructArray.from_arrays(inner.columns, fields=list(inner.schema), mask=pa.array(field.nulls)))
        types.append(pa.field(field.name, arrays[-1].type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(types))


def key_of(columns: Sequence[str], names: Sequence[str]) -> tuple[int, ...]:
    """The positions of a key's columns. 42703 for an unknown column."""
    for name in names:
        if name not in columns:
            raise SqlError("42703", f'column "{name}" of the sink\'s key does not exist')
    return tuple(list(columns).index(name) for name in names)


def _without(vector: Vector, gone: Mask) -> Vector:
    """The column, with NULL wherever ``gone`` is set."""
    nulls = gone if vector.nulls is None else vector.nulls | gone
    return Vector(np.where(nulls, 0, vector.words), nulls) if nulls.any() else Vector(vector.words)


_INT8: Final = ColumnType(INT8, False)
_TEXT: Final = ColumnType(TEXT, False)
_NO_WORDS: Final = np.zeros(0, np.int64)
_SCRATCH: Final = Dictionary(bytes(16))
