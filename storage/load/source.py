"""What a load reads: rows of some format, in this process or on Spark's executors, as columns of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from ivm.rows import Vector, pack
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn, load_schema
from storage.load.rejects import Rejects
from storage.sorted_rows import Run


class Block(NamedTuple):
    """Rows by columns: a vector for each of the load's columns, and how many rows they have."""

    vectors: list[Vector]
    size: int


class Decode(Protocol):
    """Arrow batches → blocks, the same in this process and, pickled, on an executor. Raises SqlError."""

    def __call__(self, batches: Iterable[pa.RecordBatch], dictionary: Dictionary) -> Iterator[Block]: ...


class SourceDecode(Protocol):
    """``Decode`` that can go on after a bad row. ``rejects``: takes them; without it the first one is an error."""

    def __call__(
        self, batches: Iterable[pa.RecordBatch], dictionary: Dictionary, rejects: Rejects | None = None
    ) -> Iterator[Block]: ...


class Source(Protocol):
    """Files or a database's table, and the columns to fill from it."""

    @property
    def columns(self) -> Sequence[LoadColumn]: ...

    def check(self) -> int | None:
        """Finds what can be found wrong before the first row is read; the number of rows if it is known."""

    def blocks(self, dictionary: Dictionary, rejects: Rejects | None = None) -> Iterator[Block]:
        """The rows in order, read here; values are interned in the dictionary. ``rejects``: as for
        ``SourceDecode``."""

    def frames(self, session: Any, rejecting: bool = False) -> Sequence[tuple[Any, SourceDecode]]:
        """The rows as DataFrames of a Spark session, each with what decodes its batches. ``rejecting``: with what
        rejects tell of a row's place too."""


def read_here(source: Source, dictionary: Dictionary, rejects: Rejects | None = None) -> Iterator[Run]:
    """The source's rows in order, a batch at a time, packed by ``load_schema``: runs but for their order."""
    source.check()
    schema = load_schema(source.columns)
    for vectors, count in source.blocks(dictionary, rejects):
        yield Run(pack(vectors, schema, count))
