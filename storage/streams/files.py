"""New files of a source FROM FILES: read whole on Spark's executors, in the way COPY reads them here.

Spark's stream contains only the files' names, and an executor opens each file itself. So a file means the same to a
source as to a load, its columns are checked before its first row, and a file outside the folders is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa

from ivm.errors import SqlError
from ivm.rows import Vector
from storage.dictionary import Dictionary
from storage.load.columnar import ColumnarFormat, ColumnarSource
from storage.load.compression import chunks
from storage.load.source import ColumnBlock, LoadSource
from storage.load.text import TextFormat
from storage.load.text_source import TextSource
from storage.streams.json_rows import JsonRows

BATCH_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class FilesDecoder:
    """Batches of the column ``path`` (a file's URI) → the rows of these files, in order.

    ``table``: its name, for messages. ``folders``: where the files must be. ``rows``: the columns, and how events are
    read.
    """

    format: ColumnarFormat | TextFormat
    table: str
    folders: tuple[Path, ...]
    rows: JsonRows

    def __call__(self, batches: Iterable[pa.RecordBatch], dictionary: Dictionary) -> Iterator[ColumnBlock]:
        for batch in batches:
            for uri in batch.column(0).to_pylist():
                yield from self._file(self._checked(uri), dictionary)

    def _checked(self, uri: str) -> Path:
        path = Path(os.path.realpath(unquote(urlparse(uri).path)))
        if not any(folder in path.parents for folder in self.folders):
            raise SqlError("42501", f'permission denied to read "{path}"',
                           "It is a link out of the folders that the server was started with.")  # fmt: skip
        return path

    def _file(self, path: Path, dictionary: Dictionary) -> Iterator[ColumnBlock]:
        if self.rows.debezium:
            yield from self._events(path, dictionary)
            return
        source = self._source(path)
        source.check()
        for block in source.blocks(dictionary):
            yield with_gone(block, self.rows.key) if self.rows.key else block

    def _source(self, path: Path) -> LoadSource:
        """The file as a source, as for COPY."""
        columns = self.rows.columns
        if isinstance(self.format, ColumnarFormat):
            return ColumnarSource(self.format, (path,), columns, self.rows.listed, batch_rows=BATCH_ROWS)
        return TextSource(f'{self.table}, file "{path.name}"', (path,), columns, self.format)

    def _events(self, path: Path, dictionary: Dictionary) -> Iterator[ColumnBlock]:
        try:
            for lines in _lines(path):
                yield self.rows.block(lines, None, dictionary)
        except UnicodeDecodeError as error:
            raise SqlError("22021", 'invalid byte sequence for encoding "UTF8"', f'It is in "{path}".') from error
        except SqlError as error:
            detail = f'{error.detail} (in "{path.name}")' if error.detail else f'It is in "{path.name}".'
            raise SqlError(error.sqlstate, error.message, detail, error.hint) from error


def _lines(path: Path) -> Iterator[list[str]]:
    """A file's lines that are not blank, in chunks of about a megabyte."""
    rest = b""
    for chunk in chain(chunks(path), [b"\n"]):
        *whole, rest = (rest + chunk).split(b"\n")
        yield [line.decode() for line in whole if line.strip()]


def with_gone(block: ColumnBlock, key: tuple[int, ...]) -> ColumnBlock:
    """Adds a vector that marks deletions: a row whose columns outside the key are all NULL deletes its key."""
    rest = [v for i, v in enumerate(block.vectors) if i not in key]
    gone = np.full(block.size, bool(rest))
    for vector in rest:
        gone &= np.zeros(block.size, np.bool_) if vector.nulls is None else vector.nulls
    return ColumnBlock([*block.vectors, Vector(gone.astype(np.int64))], block.size)
