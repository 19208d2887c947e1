"""COPY … FROM 'path': files of the server, inside the folders that ``--files`` allows, in one change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words, unpack
from planner.context import Context
from sql.coordination.transaction import Transaction
from sql.pgwire.copy import CopyParser
from sql.session.copy_in import table_rows, write_rows
from sql.statements.statements import CopyFormat, CopyFrom
from storage.load.columnar import ColumnarFormat, ColumnarSource
from storage.load.columns import LoadColumn, LoadedRows, load_schema
from storage.load.paths import data_files, resolve_path
from storage.load.source import read_here

if TYPE_CHECKING:
    from sql.coordination.coordinator import Coordinator

CHUNK_BYTES: Final = 1 << 20


async def load_file(coordinator: Coordinator, transaction: Transaction, statement: CopyFrom, context: Context) -> int:
    """Loads a file, or a folder of Parquet files; the number of rows. 42501: outside of --files; 58P01: not there."""
    assert statement.path is not None
    path = resolve_path(statement.path, coordinator.files)
    parquet = statement.options.format is CopyFormat.PARQUET
    files = data_files(path, coordinator.files, ".parquet" if parquet else ".csv")
    read = _parquet if parquet else _text
    rows = await asyncio.to_thread(read, coordinator, statement, files, context)
    return await write_rows(coordinator, transaction, statement.table, rows, context)


def _text(coordinator: Coordinator, statement: CopyFrom, files: list[Path], context: Context) -> Words:
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
        except PermissionError:
            raise SqlError("42501", f'could not open file "{path}" for reading: Permission denied') from None
        parts.append(table_rows(statement, *parser.finish(), context))
    return np.concatenate(parts)


def _parquet(coordinator: Coordinator, statement: CopyFrom, files: list[Path], context: Context) -> Words:
    table = statement.table
    columns = tuple(LoadColumn(c.name, c.type, c.nullable) for c in (table.columns[i] for i in statement.columns))
    schema = load_schema(columns)
    parts = []
    for rows, diffs in _loaded(coordinator, statement, files, columns, context):
        written = rows if (diffs == 1).all() else np.repeat(rows, diffs, axis=0)
        parts.append(table_rows(statement, unpack(written, schema), len(written), context))
    return np.concatenate(parts) if parts else table_rows(statement, unpack(_none(schema), schema), 0, context)


def _loaded(
    coordinator: Coordinator, statement: CopyFrom, files: list[Path], columns: tuple[LoadColumn, ...], context: Context
) -> Iterator[LoadedRows]:
    ignore_extra = len(columns) < len(statement.table.columns)
    source = ColumnarSource(ColumnarFormat.PARQUET, tuple(files), columns, ignore_extra)
    if statement.options.engine.lower() == "spark":
        from storage.load.spark import read_with_spark

        return read_with_spark(coordinator.spark(), source, context.dictionary)
    return read_here(source, context.dictionary)


def _none(schema: tuple[object, ...]) -> Words:
    return np.zeros((0, len(schema) + 1), np.int64)
