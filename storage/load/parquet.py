"""Parquet files → rows of words, in batches, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ivm.errors import SqlError
from ivm.rows import pack
from storage.dictionary import Dictionary
from storage.load.arrow import check_type, column_vector
from storage.load.columns import LoadColumn, LoadedRows, load_schema, match_names

BATCH_ROWS: Final = 1 << 17


def check_parquet(files: Sequence[Path], columns: Sequence[LoadColumn], ignore_extra: bool = False) -> int:
    """Checks every file's columns against the target's from the footers alone; gives the number of rows.

    Raises 42703 for missing or extra columns, 42804 for types that do not fit, 22P04 for what is no Parquet file.
    """
    count = 0
    for path in files:
        file = _open(path)
        with file:
            found = file.schema_arrow
            match_names(columns, found.names, path.name, ignore_extra)
            for column in columns:
                check_type(found.field(column.name).type, column)
            count += file.metadata.num_rows
    return count


def read_parquet(
    files: Sequence[Path],
    columns: Sequence[LoadColumn],
    dictionary: Dictionary,
    ignore_extra: bool = False,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[LoadedRows]:
    """The rows of the files in order, a batch at a time, each with diff 1; strings are interned in the dictionary.

    Checks as ``check_parquet`` does, before the first row; then raises what ``storage.load.arrow`` does.
    """
    check_parquet(files, columns, ignore_extra)
    schema = load_schema(columns)
    for path in files:
        with _open(path) as file:
            try:
                for batch in file.iter_batches(batch_rows, columns=[column.name for column in columns]):
                    count = batch.num_rows
                    vectors = [column_vector(batch.column(c.name), c, dictionary) for c in columns]
                    yield LoadedRows(pack(vectors, schema, count), np.ones(count, np.int64))
            except (pa.ArrowInvalid, OSError) as error:
                raise _unreadable(path, error) from error


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, memory_map=True)
    except PermissionError as error:
        raise SqlError("42501", f'could not open file "{path}" for reading: Permission denied') from error
    except FileNotFoundError as error:
        raise SqlError("58P01", f'could not open file "{path}" for reading: No such file or directory') from error
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> SqlError:
    return SqlError("22P04", f'"{path}" cannot be read as a Parquet file', detail=str(error).partition("\n")[0])
