"""Spark's exchange in one process, as far as plans' fragments use it: frames are lists of record batches.

The executors' code is the real one; Spark's handling of frames is not tested here.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from storage.spark.session import SparkSettings


class FakeSession:
    """A session. ``fails``: the number of tasks that succeed before one raises; ``runs``: how often each task runs, of
    which the last counts, as after Spark has lost one. ``before_stage``: called when a stage begins."""

    def __init__(self, fails: int = 1 << 60, runs: int = 1) -> None:
        self.read = self
        self.jobs = 0
        self.before_stage: Callable[[], None] = lambda: None
        self._left, self._runs = fails, runs

    def addTag(self, tag: str) -> None:  # noqa: N802
        pass

    removeTag = interruptTag = addTag  # noqa: N815

    def range(self, start: int, end: int, step: int, parts: int) -> Frame:
        return Frame(self, lambda: [[pa.record_batch({"id": pa.array([i])})] for i in range(start, end, step)])

    def schema(self, text: str) -> FakeSession:
        return self

    def parquet(self, *folders: str) -> Frame:
        paths = [path for folder in folders for path in Path(unquote(urlsplit(folder).path)).glob("*.parquet")]
        return Frame(self, lambda: [[b for path in paths for b in _read(path).to_batches()]])

    def task(self, function: Map, part: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        self._left -= 1
        if self._left < 0:
            raise RuntimeError("the executor is gone")
        return [list(function(iter(part))) for _ in range(self._runs)][-1]


class FakeSpark(FakeSession):
    """Replaces ``storage.spark.session.SparkSession``; it is its own session."""

    def __init__(self, shared: Path) -> None:
        super().__init__()
        self.settings = SparkSettings(shared=shared)

    def __enter__(self) -> FakeSpark:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def stop(self) -> None:
        pass


class Frames:
    """Replaces Spark's session in servers. ``gate``: jobs wait for it; ``fails``: how many more jobs fail."""

    gate = threading.Event()
    fails = 0
    runs = 0

    def __init__(self, settings: SparkSettings | None = None) -> None:
        self.settings = settings or SparkSettings()

    def __enter__(self) -> FakeSession:
        Frames.runs += 1
        assert Frames.gate.wait(30)
        if Frames.fails:
            Frames.fails -= 1
            return FakeSession(2, runs=2)
        return FakeSession(runs=2)

    def __exit__(self, *exception: object) -> None: ...
    def stop(self) -> None: ...


def install(monkeypatch: pytest.MonkeyPatch) -> type[Frames]:
    """Make servers use ``Frames`` instead of Spark from now on, and retry a failed job soon."""
    from sql.coordination import scattered_view

    monkeypatch.setattr("sql.coordination.spark.SparkSession", Frames)
    monkeypatch.setattr(scattered_view, "FIRST_PAUSE", 0.05)
    Frames.gate.set()
    Frames.fails = Frames.runs = 0
    return Frames


Map = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Parts = list[list[pa.RecordBatch]]


@dataclass
class Frame:
    """``parts``: computed when the frame is written, as in Spark."""

    session: FakeSession
    parts: Callable[[], Parts]

    def repartitionById(self, count: int, column: str) -> Frame:  # noqa: N802
        def parts() -> Parts:
            whole = [b for part in self.parts() for b in part]
            return [[b.filter(pa.array(b[column].to_numpy() % count == i)) for b in whole] for i in range(count)]

        return Frame(self.session, parts)

    def mapInArrow(self, function: Map, schema: str) -> Frame:  # noqa: N802
        shipped = pickle.dumps(function)

        def parts() -> Parts:
            given = self.parts()
            self.session.before_stage()
            return [self.session.task(pickle.loads(shipped), part) for part in given]

        return Frame(self.session, parts)

    def collect(self) -> list[dict[str, Any]]:
        self.session.jobs += 1
        return [row for part in self.parts() for batch in part for row in batch.to_pylist()]

    @property
    def write(self) -> Any:
        return self

    def partitionBy(self, column: str) -> Any:  # noqa: N802
        return _Writer(self, column)


@dataclass
class _Writer:
    frame: Frame
    column: str

    def parquet(self, uri: str) -> None:
        self.frame.session.jobs += 1
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
