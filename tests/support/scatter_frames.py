"""A stand-in for the Spark frames of scattered views' jobs. It runs each task twice, as Spark does after losing one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sql.coordination import scattered_view
from storage.spark.blocks import RECORDS, REPORT
from storage.spark.session import SparkSettings

Map = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Session:
    """Reads record files. ``fails``: the number of task calls that succeed before one raises."""

    def __init__(self, fails: int = 1 << 60) -> None:
        self.left = fails

    def addTag(self, tag: str) -> None: ...  # noqa: N802 - Spark's name
    def removeTag(self, tag: str) -> None: ...  # noqa: N802 - Spark's name
    def interruptTag(self, tag: str) -> None: ...  # noqa: N802 - Spark's name

    @property
    def read(self) -> Any:
        return SimpleNamespace(schema=lambda ddl: SimpleNamespace(parquet=self._parquet))

    def _parquet(self, *uris: str) -> Frame:
        found = [path for uri in uris for path in Path(unquote(urlparse(uri).path)).glob("*.parquet")]
        tables = [pq.read_table(path, schema=RECORDS, partitioning=None) for path in found]
        return Frame(self, pa.concat_tables(tables))

    def run(self, task: Callable[[], pa.Table]) -> pa.Table:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("the executor is gone")
        task()
        return task()


class Frame:
    """Records. Each partition number is a group."""

    def __init__(self, session: Session, table: pa.Table) -> None:
        self.session, self.table = session, table

    def __getitem__(self, name: str) -> str:
        return name

    def mapInArrow(self, function: Map, ddl: str) -> Frame:  # noqa: N802 - Spark's name
        batches = self.table.to_batches(max_chunksize=2)
        return Frame(self.session, self.session.run(lambda: _table(function(batches), ddl)))

    def repartition(self, parts: int, column: str) -> Frame:
        return self

    def groupBy(self, column: str) -> Frame:  # noqa: N802 - Spark's name
        return self

    def applyInArrow(self, function: Callable[[pa.Table], pa.Table], ddl: str) -> Frame:  # noqa: N802 - Spark's name
        places = self.table.column("place").to_pylist()
        made = [] if places else [RECORDS.empty_table()]
        for place in dict.fromkeys(places):
            group = self.table.filter(pa.array([p == place for p in places]))
            made.append(self.session.run(lambda group=group: function(group)))  # type: ignore[misc]
        return Frame(self.session, pa.concat_tables(made))

    @property
    def write(self) -> Frame:
        return self

    def partitionBy(self, column: str) -> Any:  # noqa: N802 - Spark's name
        return SimpleNamespace(parquet=lambda uri: self._partitions(column, Path(unquote(urlparse(uri).path))))

    def _partitions(self, column: str, out: Path) -> None:
        out.mkdir(parents=True)
        for value in self.table[column].unique().to_pylist():
            folder = out / f"{column}={value}"
            folder.mkdir()
            rows = self.table.filter(pc.equal(self.table[column], value)).drop_columns([column])
            pq.write_table(rows, folder / "part-0.parquet")

    def where(self, condition: object) -> Frame:
        ports = self.table.column("port").to_pylist()
        return Frame(self.session, self.table.filter(pa.array([p == REPORT for p in ports], pa.bool_())))

    def collect(self) -> list[dict[str, Any]]:
        return list(self.table.to_pylist())


def _table(batches: Iterable[pa.RecordBatch], ddl: str) -> pa.Table:
    found = list(batches)
    schema = pa.schema([("due", pa.string()), *RECORDS]) if ddl.startswith("due") else RECORDS
    return pa.Table.from_batches(found, schema)


class Frames:
    """Replaces Spark's session. ``gate``: jobs wait for it; ``fails``: how many more jobs fail."""

    gate = threading.Event()
    fails = 0
    runs = 0

    def __init__(self, settings: SparkSettings | None = None) -> None:
        self.settings = settings or SparkSettings()

    def __enter__(self) -> Session:
        Frames.runs += 1
        assert Frames.gate.wait(30)
        if Frames.fails:
            Frames.fails -= 1
            return Session(2)
        return Session()

    def __exit__(self, *exception: object) -> None: ...
    def stop(self) -> None: ...


def install(monkeypatch: pytest.MonkeyPatch) -> type[Frames]:
    """Make servers use ``Frames`` instead of Spark from now on, and retry a failed job soon."""
    monkeypatch.setattr("sql.coordination.spark.SparkSession", Frames)
    monkeypatch.setattr(scattered_view, "FIRST_PAUSE", 0.05)
    Frames.gate.set()
    Frames.fails = Frames.runs = 0
    return Frames
