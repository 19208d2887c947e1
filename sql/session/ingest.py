"""Writes a source's batch to its table, in one commit with the source's progress."""

from __future__ import annotations

from dataclasses import dataclass

from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words, unpack
from planner.expr.context import Context
from sql.bind.entry_points import environment_of
from sql.bind.target import column_default
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.connection import Connection
from sql.catalog.search_path import SearchPathReader
from sql.coordination.prepared import StaleError
from sql.ddl.connections import filled_columns, key_index
from sql.dml.changes import Changer
from sql.dml.key_index import KeyIndex
from sql.dml.upserts import upsert_by_key
from sql.engine.clock import timestamp_now
from sql.engine.writer import Writer
from sql.session.copy_in import table_rows
from sql.session.source_progress import SourceProgress, note_progress, progress
from sql.statements.statements import CopyFrom, CopyOptions
from storage.load.columns import LoadColumn, load_schema
from storage.streams.json_rows import JsonRows
from storage.streams.systems import encoded_columns


@dataclass(frozen=True, slots=True)
class IngestTarget:
    """A source and its table at one moment. ``statement``: the COPY that would fill the same columns."""

    source: Relation
    table: Relation
    statement: CopyFrom
    rows: JsonRows

    @property
    def connection(self) -> Connection:
        assert self.source.connection is not None, "a source"
        return self.source.connection


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Rows from a source. ``rows``: packed as ``target.rows`` is encoded. ``position``: of a poll."""

    query: str
    number: int
    rows: Words
    position: str | None = None


def target_of(source: Relation, catalog: Catalog) -> IngestTarget:
    """The table and columns that a source fills now. Raises 42703, 42P10 if its table has changed so that this is no
    longer possible."""
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
    env = environment_of(SearchPathReader(catalog))
    defaults = tuple(column_default(env, c) if c.defaulted else None for c in table.columns)
    rows = JsonRows(loaded, key, bool(connection.columns), connection.envelope == "debezium")
    return IngestTarget(source, table, CopyFrom(table, columns, defaults, CopyOptions()), rows)


def ingest(
    writer: Writer, keys: KeyIndex, context: Context, target: IngestTarget, batch: SourceBatch
) -> SourceProgress:
    """Add a batch and update the source's progress, on the engine thread; the new progress.

    A batch that is in the table already changes nothing. Raises StaleError, 55000 for a batch that cannot be the next
    one, and the errors of the table's constraints.
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
    now = timestamp_now()
    total = count + (0 if before is None else before.rows)
    after = SourceProgress(batch.query, batch.number, total, batch.position, now)
    note_progress(writer, source, before, after)
    return after


def _check_next(source: Relation, before: SourceProgress | None, batch: SourceBatch) -> None:
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


def _upsert(changer: Changer, target: IngestTarget, rows: Words) -> None:
    """Insert, replace or delete rows by key."""
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
    """A NOT NULL column, with the NULLs of the rows to delete ignored."""
    if vector.nulls is None:
        return vector
    left = vector.nulls & ~gone
    return Vector(vector.words, left if left.any() else None)
