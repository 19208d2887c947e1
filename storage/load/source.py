"""Sources of a load: rows of some format, read in this process or on Spark's executors, as columns of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from ivm.rows import Vector, pack
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn, load_schema
from storage.load.rejects import Rejects
from storage.sorted_rows import Run


class ColumnBlock(NamedTuple):
    """Rows in columnar form: one vector per column of the load, and the number of rows."""

    vectors: list[Vector]
    size: int


class Decode(Protocol):
    """Arrow batches → blocks, in this process or, pickled, on an executor. Raises SqlError."""

    def __call__(self, batches: Iterable[pa.RecordBatch], dictionary: Dictionary) -> Iterator[ColumnBlock]: ...


class SourceDecode(Protocol):
    """``Decode`` that can continue after a bad row. ``rejects``: collects bad rows; without it the first one is an
    error."""

    def __call__(
        self, batches: Iterable[pa.RecordBatch], dictionary: Dictionary, rejects: Rejects | None = None
    ) -> Iterator[ColumnBlock]: ...


class LoadSource(Protocol):
    """Files or a database table, and the columns to fill from it."""

    @property
    def columns(self) -> Sequence[LoadColumn]: ...

    def check(self) -> int | None:
        """Validates what can be validated before the first row is read. Returns the number of rows if known."""

    def blocks(self, dictionary: Dictionary, rejects: Rejects | None = None) -> Iterator[ColumnBlock]:
        """The rows in order, read in this process; values are interned in the dictionary. ``rejects``: as for
        ``SourceDecode``."""

    def frames(self, session: Any, rejecting: bool = False) -> Sequence[tuple[Any, SourceDecode]]:
        """The rows as DataFrames of a Spark session, each with the decoder of its batches. ``rejecting``: include what
        rejects report of a row's position."""


def read_here(source: LoadSource, dictionary: Dictionary, rejects: Rejects | None = None) -> Iterator[Run]:
    """The source's rows in order, batch by batch, packed by ``load_schema``: like runs, but unsorted."""
    source.check()
    schema = load_schema(source.columns)
    for vectors, count in source.blocks(dictionary, rejects):
        yield Run(pack(vectors, schema, count))
