"""Spark's exchange in one process, as far as hydration uses it: frames are lists of record batches, written to folders.

The executors' code is the real one; Spark's handling of frames is not tested here.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.spark.session import SparkSettings


class FakeSpark:
    """Replaces ``storage.spark.session.SparkSession``."""

    def __init__(self, shared: Path) -> None:
        self.settings = SparkSettings(shared=shared)
        self.read = self
        self.jobs = 0
        self.before_stage: Callable[[], None] = lambda: None

    def __enter__(self) -> FakeSpark:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def stop(self) -> None:
        pass

    def addTag(self, tag: str) -> None:  # noqa: N802
        pass

    removeTag = interruptTag = addTag  # noqa: N815

    def range(self, start: int, end: int, step: int, parts: int) -> Frame:
        return Frame(self, lambda: [[pa.record_batch({"id": pa.array([i])})] for i in range(start, end, step)])

    def schema(self, text: str) -> FakeSpark:
        return self

    def parquet(self, *folders: str) -> Frame:
        paths = [path for folder in folders for path in Path(unquote(urlsplit(folder).path)).glob("*.parquet")]
        return Frame(self, lambda: [[b for path in paths for b in _read(path).to_batches()]])


Parts = list[list[pa.RecordBatch]]


@dataclass
class Frame:
    """``parts``: computed when the frame is written, as in Spark."""

    spark: FakeSpark
    parts: Callable[[], Parts]

    def repartitionById(self, count: int, column: str) -> Frame:  # noqa: N802
        def parts() -> Parts:
            whole = [b for part in self.parts() for b in part]
            return [[b.filter(pc.equal(b[column], i)) for b in whole] for i in range(count)]

        return Frame(self.spark, parts)

    def mapInArrow(  # noqa: N802
        self, function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str
    ) -> Frame:
        shipped = pickle.dumps(function)

        def parts() -> Parts:
            given = self.parts()
            self.spark.before_stage()
            return [list(pickle.loads(shipped)(iter(part))) for part in given]

        return Frame(self.spark, parts)

    @property
    def write(self) -> Any:
        return self

    def format(self, name: str) -> Frame:
        assert name == "noop"
        return self

    def mode(self, name: str) -> Frame:
        return self

    def save(self) -> None:
        self.spark.jobs += 1
        assert not [batch for part in self.parts() for batch in part]

    def partitionBy(self, column: str) -> Any:  # noqa: N802
        return _Writer(self, column)


@dataclass
class _Writer:
    frame: Frame
    column: str

    def parquet(self, uri: str) -> None:
        self.frame.spark.jobs += 1
        batches = [b for part in self.frame.parts() for b in part]
        out = Path(unquote(urlsplit(uri).path))
        out.mkdir(parents=True)
        if not batches:
            return
        table = pa.Table.from_batches(batches)
        for value in table[self.column].unique().to_pylist():
            folder = out / f"{self.column}={value}"
            folder.mkdir()
            found = table.filter(pc.equal(table[self.column], value)).drop_columns(self.column)
            pq.write_table(found, folder / "part-0.parquet")


def _read(path: Path) -> pa.Table:
    """A file read through its folder's path: the columns in the folder's own name are missing."""
    table = pq.read_table(path, partitioning=None)
    return table.add_column(0, "due", pa.nulls(len(table), pa.string()))
