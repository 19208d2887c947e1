"""Parquet and ORC files: their columns, by name, as Arrow's types have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from ivm.errors import SqlError
from storage.dictionary import Dictionary
from storage.load.arrow import check_type, column_vector
from storage.load.columns import LoadColumn, match_names
from storage.load.paths import spark_path
from storage.load.source import Block, Decode

BATCH_ROWS: Final = 1 << 17


class ColumnarFormat(Enum):
    PARQUET = "Parquet"
    ORC = "ORC"


@dataclass(frozen=True, slots=True)
class ColumnDecoder:
    """Batches whose columns are the load's, in order → words. ``types``: what the files say that the columns are, for
    a reader that shows them as something near: Spark has no nanoseconds, times of day or fixed widths."""

    columns: tuple[LoadColumn, ...]
    types: tuple[pa.DataType, ...] | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch], dictionary: Dictionary) -> Iterator[Block]:
        for batch in batches:
            arrays = [self._array(batch.column(i), i) for i in range(len(self.columns))]
            vectors = [column_vector(a, c, dictionary) for a, c in zip(arrays, self.columns, strict=True)]
            yield Block(vectors, batch.num_rows)

    def _array(self, array: pa.Array, index: int) -> pa.Array:
        if self.types is None or array.type == self.types[index]:
            return array
        type_ = self.types[index]
        types = pa.types
        lost = types.is_fixed_size_binary(type_) or types.is_timestamp(type_) or types.is_time(type_)
        return array.cast(type_) if lost else array


@dataclass(frozen=True, slots=True)
class ColumnarSource:
    """Files of one format. ``ignore_extra``: they may have other columns than those to be loaded."""

    format: ColumnarFormat
    files: tuple[Path, ...]
    columns: tuple[LoadColumn, ...]
    ignore_extra: bool = False
    batch_rows: int = BATCH_ROWS

    def check(self) -> int:
        """Checks every file's columns against the target's from the footers alone; gives the number of rows.

        Raises 42703 for missing or extra columns, 42804 for types that do not fit, 22P04 for a file of another format.
        """
        count = 0
        for path in self.files:
            with _opened(self.format, path) as file:
                found = _schema(file)
                match_names(self.columns, found.names, path.name, self.ignore_extra)
                for column in self.columns:
                    check_type(found.field(column.name).type, column)
                count += _rows(file)
        return count

    def blocks(self, dictionary: Dictionary) -> Iterator[Block]:
        decode = ColumnDecoder(self.columns)
        names = [column.name for column in self.columns]
        for path in self.files:
            with _opened(self.format, path) as file:
                yield from decode(_batches(file, names, self.batch_rows), dictionary)

    def frames(self, session: Any) -> Sequence[tuple[Any, Decode]]:
        """A frame for all files of one schema: Spark would read them all by the first one's."""
        groups: dict[tuple[pa.DataType, ...], list[str]] = {}
        for path in self.files:
            with _opened(self.format, path) as file:
                types = tuple(_schema(file).field(column.name).type for column in self.columns)
            groups.setdefault(types, []).append(spark_path(path))
        return [(self._frame(session, files), ColumnDecoder(self.columns, types)) for types, files in groups.items()]

    def _frame(self, session: Any, files: Sequence[str]) -> Any:
        found = session.read.parquet(*files) if self.format is ColumnarFormat.PARQUET else session.read.orc(list(files))
        quoted = [found["`" + column.name.replace("`", "``") + "`"] for column in self.columns]
        return found.select([column.alias(f"c{i}") for i, column in enumerate(quoted)])


@contextmanager
def _opened(format_: ColumnarFormat, path: Path) -> Iterator[Any]:
    """The file, while it is read: errors of reading it are 22P04."""
    try:
        with pa.memory_map(str(path)) as mapped:
            yield pq.ParquetFile(mapped) if format_ is ColumnarFormat.PARQUET else orc.ORCFile(mapped)
    except PermissionError as error:
        raise SqlError("42501", f'could not open file "{path}" for reading: Permission denied') from error
    except FileNotFoundError as error:
        raise SqlError("58P01", f'could not open file "{path}" for reading: No such file or directory') from error
    except (pa.ArrowInvalid, OSError) as error:
        message = f'"{path}" cannot be read as {_ARTICLES[format_]} {format_.value} file'
        raise SqlError("22P04", message, detail=str(error).partition("\n")[0]) from error


_ARTICLES: Final = {ColumnarFormat.PARQUET: "a", ColumnarFormat.ORC: "an"}


def _schema(file: Any) -> pa.Schema:
    """The file is a pq.ParquetFile or an orc.ORCFile, here and below."""
    return file.schema_arrow if isinstance(file, pq.ParquetFile) else file.schema


def _rows(file: Any) -> int:
    return int(file.metadata.num_rows if isinstance(file, pq.ParquetFile) else file.nrows)


def _batches(file: Any, names: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
    """At most ``size`` rows each; an ORC file's stripes are cut."""
    if isinstance(file, pq.ParquetFile):
        for batch in file.iter_batches(size, columns=names):
            yield batch.select(names)
        return
    for stripe in range(file.nstripes):
        whole = file.read_stripe(stripe, columns=list(names)).select(names)
        for start in range(0, whole.num_rows, size):
            yield whole.slice(start, size)
