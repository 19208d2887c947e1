"""COPY … TO 'path': writes a query's rows to a file of the server, inside the folders that ``--sinks`` allows."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from ivm.errors import SqlError, unsupported
from ivm.rows import RowSet
from ivm.words import Schema, row_width
from sql.pgwire.copy_writer import CopyWriter
from sql.statements.statements import CopyFormat, CopyTo
from sql.system.state import CopyInfo
from storage.dictionary import Dictionary
from storage.sinks.envelope import SinkField, to_batch
from storage.sinks.manifest import FOLDER, taken
from storage.sinks.target import PART_ROWS, SinkFormat, scheme_of, writable_path
from storage.sinks.writer import DataWriter, translated
from storage.types.text_style import TextStyle

RowParts = Callable[[BinaryIO], Iterable[RowSet]]
"""The text of the rows, in parts."""
_OF_SINKS: Final = {CopyFormat.PARQUET: SinkFormat.PARQUET, CopyFormat.JSON: SinkFormat.JSONL}


def file_to_write(statement: CopyTo, places: Sequence[str]) -> Path:
    """The file that a statement names. 42501: outside of ``--sinks``; 42809: a folder; 55006: a sink's; 0A000."""
    assert statement.path is not None, "a file"
    if scheme_of(statement.path) not in ("", "file"):
        raise unsupported("COPY … TO an object store", "CREATE SINK … INTO writes to one.")
    path = writable_path(statement.path, places)
    if path.is_dir():
        raise SqlError("42809", f'"{path}" is a directory')
    if any((folder / FOLDER).exists() or folder.name == FOLDER for folder in path.parents):
        raise taken(str(path.parent))
    return path


async def write_file(
    path: Path, statement: CopyTo, names: Sequence[str], rows: RowSet, dictionary: Dictionary, style: TextStyle,
    progress: CopyInfo,
) -> None:  # fmt: skip
    """Write the rows under a hidden name, then rename the file, so that readers see the whole file or the previous one.

    58P01, 42501, 53100, 58030; 42701: the format needs distinct names, and there are duplicates.
    """
    writer: Callable[[BinaryIO], None]
    parts = partial(_parts, rows, progress)
    if statement.options.format in _OF_SINKS:
        writer = _fields(statement.options.format, names, rows.schema, parts, dictionary)
    else:
        writer = _lines(statement, names, parts, dictionary, style)
    stop = threading.Event()
    try:
        await asyncio.to_thread(_written, path, writer, stop)
    except asyncio.CancelledError:
        stop.set()  # the thread continues, but nobody must see what it writes
        raise


def _written(path: Path, write: Callable[[BinaryIO], None], stop: threading.Event) -> None:
    hidden = path.with_name(f".unfinished-{secrets.token_hex(4)}-{path.name}"[:255])
    with translated(path):
        try:
            with hidden.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            if stop.is_set():
                hidden.unlink()
            else:
                hidden.replace(path)
        except BaseException:
            hidden.unlink(missing_ok=True)
            raise


def _parts(rows: RowSet, progress: CopyInfo, file: BinaryIO) -> Iterator[RowSet]:
    """Report each part when it has been written."""
    for start in range(0, len(rows), PART_ROWS):
        yield RowSet(rows.rows[start : start + PART_ROWS], rows.schema)
        progress.rows, progress.done = min(len(rows), start + PART_ROWS), file.tell()


def _lines(
    statement: CopyTo, names: Sequence[str], parts: RowParts, dictionary: Dictionary, style: TextStyle
) -> Callable[[BinaryIO], None]:
    def write(file: BinaryIO) -> None:
        writer = CopyWriter(statement.options, names, dictionary)
        file.write(writer.header())
        for part in parts(file):
            file.write(writer.rows(part, style))
        file.write(writer.trailer())

    return write


def _fields(
    format_: CopyFormat, names: Sequence[str], schema: Schema, parts: RowParts, dictionary: Dictionary
) -> Callable[[BinaryIO], None]:
    for i, name in enumerate(names):
        if name in names[:i]:
            message = f'column "{name}" is there more than once, which format {format_.value} cannot tell apart'
            raise SqlError("42701", message)
    scratch = dictionary if dictionary.arena.parent is not None else dictionary.scratch()

    def fields(part: RowSet) -> tuple[SinkField, ...]:
        return tuple(SinkField(n, c, v) for n, c, v in zip(names, part.schema, part.columns(), strict=True))

    def write(file: BinaryIO) -> None:
        none = RowSet(np.zeros((0, row_width(schema)), np.int64), schema)
        with DataWriter(file, _OF_SINKS[format_], to_batch(fields(none), scratch).schema) as writer:
            for part in parts(file):
                writer.write(fields(part), scratch)

    return write
