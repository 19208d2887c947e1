"""Parquet and ORC files: their columns, by name, as Arrow types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import orc

from ivm.errors import SqlError
from storage.dictionary import Dictionary
from storage.load.arrow import check_type
from storage.load.arrow_rejects import column_vectors, without_bad
from storage.load.columns import LoadColumn, match_names
from storage.load.partitions import NO_PARTITIONS, Partitions, partition_keys
from storage.load.paths import RemoteFiles, local_path, spark_path
from storage.load.rejects import Rejects
from storage.load.source import ColumnBlock, SourceDecode

BATCH_ROWS: Final = 1 << 17


class ColumnarFormat(Enum):
    PARQUET = "Parquet"
    ORC = "ORC"


@dataclass(frozen=True, slots=True)
class ColumnDecoder:
    """Decodes batches of the file's columns, in order. With ``partitions``, or if ``paths`` is set, a last column holds
    the file's path.

    ``types``: the columns' types in the files, for a reader that returns approximations of them: Spark has no
    nanoseconds, times of day or fixed widths.
    """

    columns: tuple[LoadColumn, ...]
    partitions: Partitions = NO_PARTITIONS
    types: tuple[pa.DataType, ...] | None = None
    paths: bool = False

    def __call__(
        self, batches: Iterable[pa.RecordBatch], dictionary: Dictionary, rejects: Rejects | None = None
    ) -> Iterator[ColumnBlock]:
        for batch in batches:
            if not self.partitions.keys and not self.paths:
                yield from self._block(batch, "", dictionary, rejects)
                continue
            paths = batch.column(batch.num_columns - 1).dictionary_encode()
            for i, path in enumerate(paths.dictionary.to_pylist()):
                of_path = batch if len(paths.dictionary) == 1 else batch.filter(pc.equal(paths.indices, i))
                yield from self._block(of_path, local_path(path), dictionary, rejects)

    def _block(
        self, batch: pa.RecordBatch, path: str, dictionary: Dictionary, rejects: Rejects | None
    ) -> Iterator[ColumnBlock]:
        columns = self.partitions.rest(self.columns)
        arrays = [self._array(batch.column(i), i) for i in range(len(columns))]
        count = batch.num_rows
        try:
            given = column_vectors(arrays, columns, dictionary)
        except SqlError:
            if rejects is None:
                raise
            rejects.file = path or None
            arrays, count = without_bad(arrays, columns, dictionary, rejects)
            given = column_vectors(arrays, columns, dictionary)
        if count:
            filled = dict(zip((column.name for column in columns), given, strict=True))
            yield ColumnBlock(self.partitions.fill(self.columns, filled, path, count, dictionary), count)

    def _array(self, array: pa.Array, index: int) -> pa.Array:
        if self.types is None or array.type == self.types[index]:
            return array
        type_ = self.types[index]
        types = pa.types
        if types.is_timestamp(type_) and type_.tz is None and types.is_timestamp(array.type):
            array = array.cast(pa.timestamp(array.type.unit))  # Spark returns an ORC file's in the session's zone, UTC
        lost = types.is_fixed_size_binary(type_) or types.is_timestamp(type_) or types.is_time(type_)
        return array.cast(type_) if lost or types.is_duration(type_) or types.is_nested(type_) else array


@dataclass(frozen=True, slots=True)
class ColumnarSource:
    """Files of one format. ``ignore_extra``: columns that are not to be loaded are allowed."""

    format: ColumnarFormat
    files: tuple[Path, ...]
    columns: tuple[LoadColumn, ...]
    ignore_extra: bool = False
    partitions: Partitions = NO_PARTITIONS
    batch_rows: int = BATCH_ROWS
    remote: RemoteFiles | None = None
    """Set instead of ``files`` for what only Spark reads."""

    def check(self) -> int | None:
        """Checks every file's columns against the target's by reading footers only. Returns the number of rows.

        Returns None for remote files, of which nothing is known yet. Raises 42703 for missing or extra columns, 42804
        for types that do not fit, 22P04 for a file of another format.
        """
        if self.remote is not None:
            return None
        count = 0
        for path in self.files:
            with opened(self.format, path) as file:
                found = schema_of(file)
                names = [name for name in found.names if name not in self.partitions.keys]
                match_names(self.columns, [*names, *self.partitions.keys], path.name, self.ignore_extra)
                for column in self.partitions.rest(self.columns):
                    check_type(found.field(column.source).type, column)
                count += rows_of(file)
        return count

    def blocks(self, dictionary: Dictionary, rejects: Rejects | None = None) -> Iterator[ColumnBlock]:
        if self.remote is not None:
            raise self.remote.not_here()
        decode = ColumnDecoder(self.columns, self.partitions, paths=True)
        names = [column.source for column in self.partitions.rest(self.columns)]
        for path in self.files:
            with opened(self.format, path) as file:
                batches = _batches(file, names, self.batch_rows)
                yield from decode((_with_path(batch, path.as_uri()) for batch in batches), dictionary, rejects)

    def frames(self, session: Any, rejecting: bool = False) -> Sequence[tuple[Any, SourceDecode]]:
        """One frame for all files of the same schema: in a single frame Spark would read all with the first one's."""
        if self.remote is not None:
            return [self._remote_frame(session, self.remote, rejecting)]
        rest = self.partitions.rest(self.columns)
        groups: dict[tuple[pa.DataType, ...], list[str]] = {}
        for path in self.files:
            with opened(self.format, path) as file:
                found = schema_of(file)
            types = tuple(found.field(column.source).type for column in rest)
            groups.setdefault(types, []).append(spark_path(path))
        return [
            (
                named_columns(self.frame(session, files), rest, bool(self.partitions.keys) or rejecting),
                ColumnDecoder(self.columns, self.partitions, types, rejecting),
            )
            for types, files in groups.items()
        ]

    def frame(self, session: Any, files: Sequence[str]) -> Any:
        """A frame over files, given as Spark's reader takes them."""
        reader = session.read.format(self.format.name.lower())
        if self.format is ColumnarFormat.ORC:  # dates before 1582 as they are read here, unless the file says otherwise
            reader = reader.option("orc.proleptic.gregorian.default", "true")
        return reader.load(list(files))

    def _remote_frame(self, session: Any, remote: RemoteFiles, rejecting: bool) -> tuple[Any, SourceDecode]:
        """The frame of remote files, whose columns are known only from Spark. Raises 42703."""
        found = self.frame(session, [remote.uri])
        paths = [remote.below(local_path(path)) for path in found.inputFiles()]
        partitions = replace(self.partitions, keys=partition_keys(paths))
        names = [name for name in found.columns if name not in partitions.keys]
        match_names(self.columns, [*names, *partitions.keys], remote.shown, self.ignore_extra)
        chosen = named_columns(found, partitions.rest(self.columns), bool(partitions.keys) or rejecting)
        return chosen, ColumnDecoder(self.columns, partitions, paths=rejecting)


def named_columns(frame: Any, columns: Sequence[LoadColumn], paths: bool) -> Any:
    """Renames the columns to c0, c1, …, and adds the path if wanted."""
    quoted = [frame["`" + column.source.replace("`", "``") + "`"] for column in columns]
    path = [frame["_metadata.file_path"].alias("path")] if paths else []
    return frame.select([column.alias(f"c{i}") for i, column in enumerate(quoted)] + path)


def _with_path(batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
    zeros = pa.array(np.zeros(batch.num_rows, np.int32))
    paths = pa.DictionaryArray.from_arrays(zeros, pa.array([path]))
    return pa.RecordBatch.from_arrays([*batch.columns, paths], names=[*map(str, range(batch.num_columns)), "path"])


@contextmanager
def opened(format_: ColumnarFormat, path: Path) -> Iterator[Any]:
    """Opens the file for the duration of the context. Read errors become 22P04."""
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


def schema_of(file: Any) -> pa.Schema:
    """The file's schema. Here and below a file is a pq.ParquetFile or an orc.ORCFile."""
    return file.schema_arrow if isinstance(file, pq.ParquetFile) else file.schema


def rows_of(file: Any) -> int:
    return int(file.metadata.num_rows if isinstance(file, pq.ParquetFile) else file.nrows)


def _batches(file: Any, names: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
    """Batches of at most ``size`` rows; an ORC file's stripes are cut."""
    if isinstance(file, pq.ParquetFile):
        for batch in file.iter_batches(size, columns=names):
            yield batch.select(names)
        return
    for stripe in range(file.nstripes):
        whole = file.read_stripe(stripe, columns=list(names)).select(names)
        for start in range(0, whole.num_rows, size):
            yield whole.slice(start, size)
