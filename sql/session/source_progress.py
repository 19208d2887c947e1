"""A source's progress: the one row of its relation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ivm.rows import pack, unpack
from ivm.words import ColumnType
from sql.catalog.catalog import Relation
from sql.engine.snapshot import Published
from sql.engine.writer import Writer, ones
from storage.dictionary import Dictionary
from storage.types.codec import decode, encode


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """A source's row: see ``SOURCE_COLUMNS``. ``committed``: µs since 2000."""

    query: str
    batch: int
    rows: int
    position: str | None
    committed: int


def progress(writer: Writer, source: Relation) -> SourceProgress | None:
    """A source's progress, with the transaction's own changes; None before its first batch."""
    return progress_in(source, writer.snapshot((source.id,)), writer.engine.dictionary)


def progress_in(source: Relation, published: Published, dictionary: Dictionary) -> SourceProgress | None:
    """A source's progress in a published state; None before its first batch."""
    rows, diffs = published.rows(source.id, published.ordinal)
    rows = rows[diffs > 0]
    if not len(rows):
        return None
    vectors = unpack(rows, source.schema)
    query, batch, total, position, committed = (
        decode(c.type, v, dictionary)[0] for c, v in zip(source.columns, vectors, strict=True)
    )
    return SourceProgress(
        str(query), _int(batch), _int(total), None if position is None else str(position), _int(committed)
    )


def _int(datum: object) -> int:
    assert isinstance(datum, int), "a bigint or a moment"
    return datum


def note_progress(writer: Writer, source: Relation, before: SourceProgress | None, after: SourceProgress) -> None:
    """Replace the source's one row."""
    for found, diff in ((before, -1), (after, 1)):
        if found is not None:
            values = (found.query, found.batch, found.rows, found.position, found.committed)
            vectors = [
                encode(c.type, [v], writer.engine.dictionary) for c, v in zip(source.columns, values, strict=True)
            ]
            schema = tuple(ColumnType(c.type, c.nullable) for c in source.columns)
            writer.add(source.id, np.ascontiguousarray(pack(vectors, schema, 1)), ones(1, diff))
