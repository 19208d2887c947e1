"""Files that a source FROM FILES finds new: read whole on Spark's executors, as COPY reads them here.

Spark's stream has the files' names only; an executor opens each one itself, so that a file means the same to a source
and to a load, its columns are checked before its first row, and a file that lies outside of the folders is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
from pyarrow import csv

from ivm.errors import SqlError
from ivm.rows import Vector
from storage.dictionary import Dictionary
from storage.load.columnar import ColumnarFormat, ColumnarSource
from storage.load.columns import LoadColumn, match_names
from storage.load.source import Block
from storage.streams.json_rows import JsonRows
from storage.streams.texts import text_vector

BATCH_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class FileFormat:
    """``name``: parquet, orc, csv or json. ``header`` and ``delimiter``: of csv."""

    name: str
    header: bool = False
    delimiter: str = ","


@dataclass(frozen=True, slots=True)
class FilesDecoder:
    """Batches of the column ``path`` (a file's URI) → the rows of these files, in order.

    ``folders``: where they must lie. ``rows`` says which columns there are, and how JSON is read.
    """

    format: FileFormat
    folders: tuple[Path, ...]
    rows: JsonRows

    def __call__(self, batches: Iterable[pa.RecordBatch], dictionary: Dictionary) -> Iterator[Block]:
        for batch in batches:
            for uri in batch.column(0).to_pylist():
                yield from self._file(self._checked(uri), dictionary)

    def _checked(self, uri: str) -> Path:
        path = Path(os.path.realpath(unquote(urlparse(uri).path)))
        if not any(folder in path.parents for folder in self.folders):
            raise SqlError("42501", f'permission denied to read "{path}"',
                           "It is a link out of the folders that the server was started with.")  # fmt: skip
        return path

    def _file(self, path: Path, dictionary: Dictionary) -> Iterator[Block]:
        if self.format.name == "json":
            yield from self._lines(path, dictionary)
            return
        columns = self.rows.columns
        if self.format.name == "csv":
            blocks = _csv_blocks(path, self.format, columns, self.rows.listed, dictionary)
        else:
            source = ColumnarSource(
                _COLUMNAR[self.format.name], (path,), columns, self.rows.listed, batch_rows=BATCH_ROWS
            )
            source.check()
            blocks = source.blocks(dictionary)
        for block in blocks:
            yield with_gone(block, self.rows.key) if self.rows.key else block

    def _lines(self, path: Path, dictionary: Dictionary) -> Iterator[Block]:
        try:
            with path.open(encoding="utf-8") as file:
                while lines := list(islice(file, BATCH_ROWS)):
                    yield self.rows.block([line for line in lines if line.strip()], None, dictionary)
        except UnicodeDecodeError as error:
            raise SqlError("22021", 'invalid byte sequence for encoding "UTF8"', f'It is in "{path}".') from error
        except OSError as error:
            raise _unreadable(path, error) from error
        except SqlError as error:
            raise in_file(error, path) from error


_COLUMNAR: Final = {"parquet": ColumnarFormat.PARQUET, "orc": ColumnarFormat.ORC}


def in_file(error: SqlError, path: Path) -> SqlError:
    """The same error, which says in which file it is."""
    detail = f'{error.detail} (in "{path.name}")' if error.detail else f'It is in "{path.name}".'
    return SqlError(error.sqlstate, error.message, detail, error.hint)


def _unreadable(path: Path, error: OSError) -> SqlError:
    state = {FileNotFoundError: "58P01", PermissionError: "42501"}.get(type(error), "58030")
    return SqlError(state, f'could not open file "{path}" for reading: {error.strerror}')


def with_gone(block: Block, key: tuple[int, ...]) -> Block:
    """One more vector: rows that are NULL outside of their key take the key away."""
    rest = [v for i, v in enumerate(block.vectors) if i not in key]
    gone = np.full(block.size, bool(rest))
    for vector in rest:
        gone &= np.zeros(block.size, np.bool_) if vector.nulls is None else vector.nulls
    return Block([*block.vectors, Vector(gone.astype(np.int64))], block.size)


def _csv_blocks(
    path: Path, format_: FileFormat, columns: tuple[LoadColumn, ...], listed: bool, dictionary: Dictionary
) -> Iterator[Block]:
    """A csv file's rows: as COPY's, an empty cell is NULL unless it is in quotes."""
    try:
        if not path.stat().st_size:
            return
        with csv.open_csv(path, *_csv_options(path, format_, columns, listed)) as reader:
            for batch in reader:
                arrays = [batch.column(i).cast(pa.large_string()) for i in range(len(columns))]
                vectors = [text_vector(a, c, dictionary) for a, c in zip(arrays, columns, strict=True)]
                yield Block(vectors, batch.num_rows)
    except OSError as error:
        raise _unreadable(path, error) from error
    except pa.ArrowInvalid as error:
        detail = str(error).partition("\n")[0]
        raise SqlError("22P04", f'"{path.name}" cannot be read as a csv file', detail) from error
    except SqlError as error:
        raise in_file(error, path) from error


def _csv_options(
    path: Path, format_: FileFormat, columns: tuple[LoadColumn, ...], listed: bool
) -> tuple[csv.ReadOptions, csv.ParseOptions, csv.ConvertOptions]:
    parse = csv.ParseOptions(delimiter=format_.delimiter, newlines_in_values=True)
    names = [c.name for c in columns]
    if format_.header:
        match_names(columns, _header(path, parse), path.name, listed)
    read = csv.ReadOptions(block_size=1 << 22, column_names=None if format_.header else names)
    convert = csv.ConvertOptions(
        column_types={name: pa.string() for name in names}, include_columns=names, strings_can_be_null=True,
        null_values=[""], quoted_strings_can_be_null=False,
    )  # fmt: skip
    return read, parse, convert


def _header(path: Path, parse: csv.ParseOptions) -> list[str]:
    first = csv.ReadOptions(autogenerate_column_names=True, block_size=1 << 22)
    with csv.open_csv(path, first, parse) as reader:
        batch = reader.read_next_batch()
    return [str(batch.column(i)[0].as_py()) for i in range(batch.num_columns)]
