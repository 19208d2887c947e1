"""CREATE SOURCE and ALTER SOURCE, as changes of a writer's catalog; the running sources follow the catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import INT8, TEXT, TIMESTAMPTZ
from sql.catalog.catalog import LABELS, Relation, RelationKind, TableColumn
from sql.catalog.connection import Connection
from sql.catalog.keys import Index
from sql.catalog.search_path import check_creatable
from sql.ddl.create import Definer
from sql.ddl.source_options import check_options
from sql.engine.persist import DEFAULT_RETAIN
from sql.statements.connections import CreateSource, SetPaused

SOURCE_COLUMNS: Final = (
    TableColumn("query", TEXT, False), TableColumn("batch", INT8, False), TableColumn("rows", INT8, False),
    TableColumn("position", TEXT), TableColumn("committed", TIMESTAMPTZ, False),
)  # fmt: skip
"""A source's one row of progress. ``query``: the id of Spark's checkpoint, '' if there is none; ``batch``: the newest
committed batch, from 0; ``rows``: the total number of rows received; ``position``: where the next poll continues."""


def create_source(definer: Definer, statement: CreateSource) -> None:
    """Create the source, which starts when this is committed. 42P01, 42809, 42703, 42P10, 42601, 22023."""
    schema_name = definer.names.home(statement.schema_name, temporary=False)
    check_creatable(schema_name, statement.name)
    if definer.exists(schema_name, statement.name, statement.if_not_exists):
        return
    connection = statement.connection
    check_options(connection)
    table = _target(definer, *statement.table)
    filled_columns(table, connection)
    _check_envelope(table, connection)
    if connection.envelope != "none":
        connection = replace(connection, key=connection.key or _primary_key(table))
        key_index(table, connection)
    made = definer.relation(schema_name, statement.name, RelationKind.SOURCE, SOURCE_COLUMNS)
    made = replace(made, dependencies=(table.id,), connection=connection, retain=DEFAULT_RETAIN)
    definer.writer.create(made, None)


def set_paused(definer: Definer, statement: SetPaused) -> None:
    """PAUSE or RESUME; no effect if the source is in that state already. 42P01, 42809."""
    found = definer.names.resolve(statement.schema_name, statement.name)
    if found is None and statement.if_exists:
        definer.say(f'relation "{statement.name}" does not exist, skipping')
        return
    if found is None:
        raise SqlError("42P01", f'relation "{statement.name}" does not exist')
    if found.kind is not statement.kind or found.connection is None:
        raise SqlError("42809", f'"{found.name}" is not a {LABELS[statement.kind]}')
    if found.connection.paused != statement.paused:
        changed = replace(found, connection=replace(found.connection, paused=statement.paused))
        definer.writer.redefine(changed)


def filled_columns(table: Relation, connection: Connection) -> tuple[int, ...]:
    """The positions of the columns that a source fills, in order. 42703: no such column; 42701: a column is listed
    twice."""
    names = [c.name for c in table.columns]
    for name in connection.columns:
        if name not in names:
            raise SqlError("42703", f'column "{name}" of relation "{table.name}" does not exist')
        if connection.columns.count(name) > 1:
            raise SqlError("42701", f'column "{name}" specified more than once')
    return tuple(names.index(n) for n in connection.columns) or tuple(range(len(names)))


def key_index(table: Relation, connection: Connection) -> Index:
    """The unique index by which a source finds the rows to change. 42P10, 42703: no unique index matches its KEY."""
    names = [c.name for c in table.columns]
    filled = {names[i] for i in filled_columns(table, connection)}
    for name in connection.key:
        if name not in filled:
            raise SqlError("42703", f'the source fills no column "{name}" of relation "{table.name}"')
    for index in table.keys:
        if index.columns and {names[i] for i in index.columns} == set(connection.key):
            return index
    raise SqlError(
        "42P10", "there is no unique or exclusion constraint matching the KEY of the source",
        hint="ENVELOPE UPSERT and DEBEZIUM find rows by a PRIMARY KEY, or by a UNIQUE constraint that KEY names.",
    )  # fmt: skip


def _primary_key(table: Relation) -> tuple[str, ...]:
    return tuple(table.columns[i].name for i in table.primary_key)


def _target(definer: Definer, schema_name: str | None, name: str) -> Relation:
    table = definer.names.resolve(schema_name, name)
    if table is None:
        shown = name if schema_name is None else f"{schema_name}.{name}"
        raise SqlError("42P01", f'relation "{shown}" does not exist')
    if table.kind is not RelationKind.TABLE:
        raise SqlError("42809", f'"{table.name}" is not a table', hint="A source fills a table.")
    if table.temporary:
        raise SqlError("42809", f'"{table.name}" is a temporary table, and a source goes on after its session')
    return table


def _check_envelope(table: Relation, connection: Connection) -> None:
    """0A000 for a table whose rows cannot be looked up by KEY."""
    if connection.envelope != "none" and (table.partitioning is not None or table.bound is not None):
        raise unsupported(f"ENVELOPE {connection.envelope.upper()} into a partitioned table or a partition")
