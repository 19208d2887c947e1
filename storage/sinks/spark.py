"""A sink's folder written by Spark: object stores, HDFS, or any file system that its Java knows.

Only DataFrames are written, so that ``local[*]``, ``spark://`` and ``sc://`` are interchangeable. A part of the changes
becomes a folder named after the entry that is to name it; a retry that finds no such entry overwrites the folder whole.
An entry is a folder ``_changes/<number>.json`` with one line of text in one file, which appears atomically. Unlike a
local folder, nothing prevents two servers from writing at once, since object stores differ in what they can refuse: the
entry's owner only reveals it afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from storage.sinks.envelope import SinkLayout, to_batch
from storage.sinks.lines import csv_header, csv_lines, json_lines
from storage.sinks.manifest import FOLDER, Entry, SinkFile, entry_from_json, taken
from storage.sinks.target import FILE_ROWS, OutputBlock, SinkFormat
from storage.spark.errors import spark_error
from storage.spark.session import SparkSession, frame_of


class SparkTarget:
    """The ``target.Target`` of a folder written by Spark. 58000: Spark is missing or fails. ``SinkFile.bytes`` is the
    size of the values in Arrow, since the size of what Spark wrote is not queried."""

    def __init__(self, spark: SparkSession, uri: str, format: SinkFormat) -> None:
        self._spark, self._uri, self._format = spark, uri, format
        self._next = 0

    def open(self, owner: str) -> Entry | None:
        with self._spark as session:
            texts = _lines(session, f"{self._uri}/{FOLDER}")
        entries = sorted((entry_from_json(t, f"{self._uri}/{FOLDER}") for t in texts), key=lambda e: e.version)
        last = entries[-1] if entries else None
        if last is not None and last.owner != owner:
            raise taken(self._uri)
        self._next = 0 if last is None else last.version + 1
        return last

    def write(self, stem: str, layout: SinkLayout, parts: Iterator[OutputBlock]) -> tuple[SinkFile, ...]:
        files: list[SinkFile] = []
        for first in parts:
            tables, rows = [self._table(first)], first.rows
            low, high = int(first.changes.epochs.min()), int(first.changes.epochs.max())
            while rows < FILE_ROWS and (part := next(parts, None)) is not None:
                tables.append(self._table(part))
                rows += part.rows
                high = max(high, int(part.changes.epochs.max()))
            table = pa.concat_tables(tables)
            path = f"{self._next:020}-{len(files):04}.{self._format.value}"
            with self._spark as session:
                self._save(session, table, layout, f"{self._uri}/{path}")
            files.append(SinkFile(path, rows, table.nbytes, low, high))
        return tuple(files)

    def commit(self, entry: Entry) -> None:
        with self._spark as session:
            _write(session, pa.table({"value": [entry.to_json()]}), "text", f"{self._uri}/{FOLDER}/{entry.name}")
        self._next = entry.version + 1

    def _table(self, part: OutputBlock) -> pa.Table:
        if self._format is SinkFormat.PARQUET:
            batch = to_batch(part.fields, part.dictionary)
            return pa.Table.from_batches([batch]).cast(_for_spark(batch.schema))
        lines = csv_lines if self._format is SinkFormat.CSV else json_lines
        return pa.table({"value": [lines(part.fields, part.dictionary).decode().removesuffix("\n")]})

    def _save(self, session: Any, table: pa.Table, layout: SinkLayout, uri: str) -> None:
        if self._format is SinkFormat.PARQUET:
            _write(session, table, "parquet", uri)
            return
        if self._format is SinkFormat.CSV:
            header = csv_header(layout.arrow_schema().names).decode().removesuffix("\n")
            table = pa.concat_tables([pa.table({"value": [header]}), table])
        _write(session, table, "text", uri)


def _for_spark(schema: pa.Schema) -> pa.Schema:
    """The columns with types that Spark has: a time becomes text."""
    return pa.schema([pa.field(f.name, _known(f.type), f.nullable) for f in schema])


def _known(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_time(type_) or pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_large_binary(type_):
        return pa.binary()
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, _known(f.type), f.nullable) for f in type_])
    return pa.list_(_known(type_.value_type)) if pa.types.is_list(type_) else type_


def _write(session: Any, table: pa.Table, format: str, uri: str) -> None:
    """Writes one file, overwriting what an unfinished attempt has left."""
    try:
        frame_of(session, table).coalesce(1).write.mode("overwrite").format(format).save(uri)
    except Exception as error:
        raise spark_error(error) from error


def _lines(session: Any, uri: str) -> list[str]:
    """The lines of all text files in a folder's subfolders; none if it does not exist."""
    try:
        rows = session.read.option("recursiveFileLookup", "true").text(uri).collect()
    except Exception as error:
        if "PATH_NOT_FOUND" in str(error) or "does not exist" in str(error):
            return []
        raise spark_error(error) from error
    return [row[0] for row in rows if row[0]]
