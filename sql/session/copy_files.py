"""COPY … FROM 'path': files of the server, inside the folders that ``--files`` allows, in one change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words, unpack
from planner.context import Context
from sql.coordination.transaction import Transaction
from sql.engine.clock import POSTGRES_EPOCH, wall_clock
from sql.engine.loads import Load, LoadState
from sql.pgwire.copy import CopyParser
from sql.session.copy_in import gone, table_rows, write_load
from sql.statements.statements import CopyFormat, CopyFrom
from storage.load.columnar import ColumnarFormat, ColumnarSource
from storage.load.columns import LoadColumn, LoadedRows, load_schema
from storage.load.paths import data_files, resolve_path
from storage.load.source import read_here

if TYPE_CHECKING:
    from sql.coordination.coordinator import Coordinator
    from sql.session.session import Session

CHUNK_BYTES: Final = 1 << 20
LOOK_SECONDS: Final = 0.5
"""How soon a load notices that its table was dropped."""


async def load_file(session: Session, transaction: Transaction, statement: CopyFrom, context: Context) -> int:
    """Loads a file, or a folder of Parquet files; the number of rows, 0 where this load was committed before.

    42501: outside of --files; 58P01: not there; 55006: a load of the same id runs; 42P01: the table was dropped.
    """
    assert statement.path is not None
    coordinator = session.coordinator
    path = resolve_path(statement.path, coordinator.files)
    parquet = statement.options.format is CopyFormat.PARQUET
    files = data_files(path, coordinator.files, ".parquet" if parquet else ".csv")
    read = _parquet if parquet else _text
    load = _new_load(session, statement)
    loads = coordinator.engine.loads
    with loads.run(load):
        known = await coordinator.submit(lambda: loads.committed(load.relation, load.id))
        if known is None:
            rows = await _beside(coordinator, load, lambda: read(coordinator, statement, files, context, load))
            load.state = LoadState.COMMITTING
            known = await write_load(coordinator, transaction, statement.table, rows, context, load)
        if known is None:
            return load.rows
    session.notice(f'load "{load.id}" of table {load.table} was committed before: nothing is loaded again',
                   hint="Its rows are counted in freshet.loads.")  # fmt: skip
    return 0


def _new_load(session: Session, statement: CopyFrom) -> Load:
    table, options = statement.table, statement.options
    id_ = options.load_id or f"{wall_clock():x}-{session.backend_id}"
    engine = "spark" if options.engine == "spark" else "local"
    started = wall_clock() - POSTGRES_EPOCH
    assert statement.path is not None
    return Load(id_, table.oid, table.name, statement.path, engine, session.backend_id, started)


async def _beside(coordinator: Coordinator, load: Load, read: Callable[[], Words]) -> Words:
    """Reads on another thread; when the statement is cancelled, or the table dropped, it stops and leaves nothing."""
    there = _is_there(coordinator, load)  # else its own transaction has created it
    reading = asyncio.ensure_future(asyncio.to_thread(read))
    try:
        while not (await asyncio.wait({reading}, timeout=LOOK_SECONDS))[0]:
            if there and not _is_there(coordinator, load):
                raise gone(load.table)
        return reading.result()
    except BaseException:
        load.cancel.set()
        with suppress(SqlError):
            await asyncio.shield(reading)
        raise


def _is_there(coordinator: Coordinator, load: Load) -> bool:
    return any(r.oid == load.relation for r in coordinator.engine.published.catalog.relations.values())


def _text(coordinator: Coordinator, statement: CopyFrom, files: list[Path], context: Context, load: Load) -> Words:
    del coordinator
    parts = []
    columns = [statement.table.columns[i] for i in statement.columns]
    for path in files:
        parser = CopyParser(statement.table.name, columns, statement.options, context.dictionary)
        try:
            with path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    parser.feed(chunk)
                    parser.parse()
                    load.cancel.check()
        except PermissionError:
            raise SqlError("42501", f'could not open file "{path}" for reading: Permission denied') from None
        parts.append(table_rows(statement, *parser.finish(), context))
        load.rows += len(parts[-1])
    return np.concatenate(parts)


def _parquet(coordinator: Coordinator, statement: CopyFrom, files: list[Path], context: Context, load: Load) -> Words:
    table = statement.table
    columns = tuple(LoadColumn(c.name, c.type, c.nullable) for c in (table.columns[i] for i in statement.columns))
    schema = load_schema(columns)
    parts = []
    for rows, diffs in _loaded(coordinator, statement, files, columns, context, load):
        load.cancel.check()
        written = rows if (diffs == 1).all() else np.repeat(rows, diffs, axis=0)
        parts.append(table_rows(statement, unpack(written, schema), len(written), context))
        load.rows += len(written)
    return np.concatenate(parts) if parts else table_rows(statement, unpack(_none(schema), schema), 0, context)


def _loaded(
    coordinator: Coordinator, statement: CopyFrom, files: list[Path], columns: tuple[LoadColumn, ...],
    context: Context, load: Load,
) -> Iterator[LoadedRows]:  # fmt: skip
    ignore_extra = len(columns) < len(statement.table.columns)
    source = ColumnarSource(ColumnarFormat.PARQUET, tuple(files), columns, ignore_extra)
    load.total = source.check()
    if load.engine == "spark":
        from storage.load.spark import read_with_spark

        return read_with_spark(coordinator.spark(), source, context.dictionary, cancel=load.cancel)
    return read_here(source, context.dictionary)


def _none(schema: tuple[object, ...]) -> Words:
    return np.zeros((0, len(schema) + 1), np.int64)
