"""Writes rows to an open file in a sink's format, and translates disk errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ivm.errors import SqlError
from storage.dictionary import Dictionary
from storage.sinks.envelope import SinkFields, to_batch
from storage.sinks.lines import csv_header, csv_lines, json_lines
from storage.sinks.target import SinkFormat

_FULL: Final = (28, 122)
"""ENOSPC, EDQUOT."""


class DataWriter:
    """Writes rows of a schema (``Layout.arrow_schema``) to an open file. Use it as a context."""

    def __init__(self, file: BinaryIO, format: SinkFormat, schema: pa.Schema) -> None:
        self._file, self._format, self._schema = file, format, schema
        self._parquet: pq.ParquetWriter | None = None

    def __enter__(self) -> DataWriter:
        if self._format is SinkFormat.PARQUET:
            # without Arrow's own schema, by which readers would see its large strings
            self._parquet = pq.ParquetWriter(self._file, self._schema, compression="zstd", store_schema=False)
        elif self._format is SinkFormat.CSV:
            self._file.write(csv_header(self._schema.names))
        return self

    def write(self, fields: SinkFields, dictionary: Dictionary) -> None:
        """Appends rows."""
        if self._parquet is not None:
            self._parquet.write_batch(to_batch(fields, dictionary))
        else:
            lines = csv_lines if self._format is SinkFormat.CSV else json_lines
            self._file.write(lines(fields, dictionary))

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._parquet is not None:
            try:
                self._parquet.close()
            except OSError:
                if kind is None:  # an SqlError already
                    raise


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Translates the operating system's errors: 58P01, 42501, 53100, 58030."""
    try:
        yield
    except FileNotFoundError as error:
        raise SqlError("58P01", f'could not write "{error.filename or path}": No such file or directory') from error
    except PermissionError as error:
        raise SqlError("42501", f'could not write "{error.filename or path}": Permission denied') from error
    except OSError as error:
        state = "53100" if error.errno in _FULL else "58030"
        raise SqlError(state, f'could not write "{path}": {error.strerror or error}') from error
