"""A source's batch → its table, in one commit with the note that the batch is in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words, pack, unpack
from ivm.words import ColumnType
from planner.expr.context import Context
from sql.bind.entry_points import environment_of
from sql.bind.target import column_default
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.connection import Connection
from sql.catalog.search_path import Lookup
from sql.coordination.prepared import StaleError
from sql.ddl.connections import filled_columns, key_index
from sql.dml.changes import Changer
from sql.dml.key_index import KeyIndex
from sql.dml.upserts import upsert_by_key
from sql.engine.clock import POSTGRES_EPOCH, wall_clock
from sql.engine.snapshot import Published
from sql.engine.writer import Writer, ones
from sql.session.copy_in import table_rows
from sql.statements.statements import CopyFrom, CopyOptions
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn, load_schema
from storage.streams.json_rows import JsonRows
from storage.streams.systems import encoded_columns
from storage.types.codec import decode, encode


@dataclass(frozen=True, slots=True)
class Target:
    """A source and its table at one moment, and what of the table is filled (``statement``, as COPY fills it)."""

    source: Relation
    table: Relation
    statement: CopyFrom
    rows: JsonRows

    @property
    def connection(self) -> Connection:
        assert self.source.connection is not None, "a source"
        return self.source.connection


@dataclass(frozen=True, slots=True)
class Progress:
    """A source's row: see ``SOURCE_COLUMNS``. ``committed``: µs since 2000."""

    query: str
    batch: int
    rows: int
    position: str | None
    committed: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What came. ``rows``: packed as ``target.rows`` is encoded; ``position``: of a poll."""

    query: str
    number: int
    rows: Words
    position: str | None = None


def target_of(source: Relation, catalog: Catalog) -> Target:
    """What a source fills now. Raises 42703, 42P10 where its table has changed so that it cannot any more."""
    assert source.connection is not None, "a source"
    connection = source.connection
    table = catalog.relations[source.dependencies[0]]
    columns = filled_columns(table, connection)
    keyed = connection.envelope != "none"
    if keyed:
        key_index(table, connection)
    names = [table.columns[i].name for i in columns]
    key = tuple(names.index(n) for n in connection.key) if keyed else ()
    loaded = tuple(LoadColumn(c.name, c.type, keyed or c.nullable) for c in (table.columns[i] for i in columns))
    env = environment_of(Lookup(catalog))
    defaults = tuple(
        column_default(env, c) if c.default is not None or c.generated is not None else None for c in table.columns
    )
    rows = JsonRows(loaded, key, bool(connection.columns), connection.envelope == "debezium")
    return Target(source, table, CopyFrom(table, columns, defaults, CopyOptions()), rows)


def ingest(writer: Writer, keys: KeyIndex, context: Context, target: Target, batch: Batch) -> Progress:
    """Adds a batch and the note that it is in, on the engine thread; how far the source is then.

    A batch that is in already changes nothing. Raises StaleError, 55000 for a batch that cannot be the next one,
    and what the table's constraints raise.
    """
    writer.engine.check_room()
    source, table = (writer.catalog.relations.get(r.id) for r in (target.source, target.table))
    if source is None or source.connection != target.connection or table is None or table != target.table:
        raise StaleError
    before = progress(writer, source)
    if before is not None and before.query == batch.query and batch.number <= before.batch:
        return before
    _check_next(source, before, batch)
    changer = Changer(writer, keys, context)
    if target.rows.key:
        _upsert(changer, target, batch.rows)
        count = len(batch.rows)
    else:
        columns = unpack(batch.rows, load_schema(target.rows.columns))
        rows = table_rows(target.statement, columns, len(batch.rows), context)
        changer.insert_rows(table, rows)
        count = len(rows)
    now = wall_clock() - POSTGRES_EPOCH
    total = count + (0 if before is None else before.rows)
    after = Progress(batch.query, batch.number, total, batch.position, now)
    _note(writer, source, before, after)
    return after


def _check_next(source: Relation, before: Progress | None, batch: Batch) -> None:
    expected = 0 if before is None else before.batch + 1
    if before is not None and before.query != batch.query:
        raise SqlError(
            "55000", f'the checkpoint of source "{source.name}" is not the one that its rows came by',
            "The folder of its checkpoint was removed or replaced, so that it is not known what is in the table.",
            "Drop the source and create it again, over a table that has none of its rows.",
        )  # fmt: skip
    if batch.number != expected:
        raise SqlError(
            "55000", f'source "{source.name}" goes on with batch {batch.number}, and {expected} is the next',
            "Its checkpoint and the table are not of the same time: one of them was restored from a backup.",
            "Drop the source and create it again, over a table that has none of its rows.",
        )  # fmt: skip


def _upsert(changer: Changer, target: Target, rows: Words) -> None:
    """Rows by key, the last of each first checked for what it lacks."""
    *columns, flag = unpack(rows, load_schema(encoded_columns(target.rows)))
    gone: Mask = flag.words != 0
    table, count = target.table, len(rows)
    filled = {c: i for i, c in enumerate(target.statement.columns)}
    given = [_present(v, gone) if not table.columns[c].nullable else v for c, v in _placed(filled, columns)]
    whole = table_rows(target.statement, given, count, changer.context)
    upsert_by_key(changer, table, key_index(table, target.connection), whole, gone)


def _placed(filled: dict[int, int], columns: list[Vector]) -> list[tuple[int, Vector]]:
    return [(column, columns[i]) for column, i in filled.items()]


def _present(vector: Vector, gone: Mask) -> Vector:
    """A column that may not be NULL, where rows that go have nothing in it."""
    if vector.nulls is None:
        return vector
    left = vector.nulls & ~gone
    return Vector(vector.words, left if left.any() else None)


def progress(writer: Writer, source: Relation) -> Progress | None:
    """How far a source has come, the transaction's own changes seen; None before its first batch."""
    return progress_in(source, writer.snapshot((source.id,)), writer.engine.dictionary)


def progress_in(source: Relation, published: Published, dictionary: Dictionary) -> Progress | None:
    """How far a source has come in a published state; None before its first batch."""
    rows, diffs = published.rows(source.id, published.ordinal)
    rows = rows[diffs > 0]
    if not len(rows):
        return None
    vectors = unpack(rows, source.schema)
    query, batch, total, position, committed = (
        decode(c.type, v, dictionary)[0] for c, v in zip(source.columns, vectors, strict=True)
    )
    return Progress(str(query), _int(batch), _int(total), None if position is None else str(position), _int(committed))


def _int(datum: object) -> int:
    assert isinstance(datum, int), "a bigint or a moment"
    return datum


def _note(writer: Writer, source: Relation, before: Progress | None, after: Progress) -> None:
    """The source's one row is another now."""
    for found, diff in ((before, -1), (after, 1)):
        if found is not None:
            values = (found.query, found.batch, found.rows, found.position, found.committed)
            vectors = [
                encode(c.type, [v], writer.engine.dictionary) for c, v in zip(source.columns, values, strict=True)
            ]
            schema = tuple(ColumnType(c.type, c.nullable) for c in source.columns)
            writer.add(source.id, np.ascontiguousarray(pack(vectors, schema, 1)), ones(1, diff))
