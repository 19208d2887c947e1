"""What sources read from, as Spark streams: folders of files, Kafka, and a clock that generates rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ivm.errors import SqlError
from ivm.words import BOOL
from storage.dictionary import Dictionary
from storage.load.columnar import ColumnDecoder
from storage.load.columns import LoadColumn
from storage.load.source import ColumnBlock
from storage.spark.errors import ConnectorError
from storage.streams.files import FilesDecoder, with_gone
from storage.streams.json_rows import JsonRows, Messages

_SCALA: Final = "2.13"
"""Of every Spark from version 4 on."""
GONE = LoadColumn("", BOOL, nullable=False)
"""The last column of rows under an envelope: whether the row deletes its key."""


def encoded_columns(rows: JsonRows) -> tuple[LoadColumn, ...]:
    """The columns that rows are encoded with."""
    return (*rows.columns, GONE) if rows.key else rows.columns


@dataclass(frozen=True, slots=True)
class KeyedDecoder:
    """Columns by position → rows; under an envelope with the mark of deletions."""

    rows: JsonRows

    def __call__(self, batches: Iterable[pa.RecordBatch], dictionary: Dictionary) -> Iterator[ColumnBlock]:
        for block in ColumnDecoder(self.rows.columns)(batches, dictionary):
            yield with_gone(block, self.rows.key) if self.rows.key else block


@dataclass(frozen=True, slots=True)
class FilesStream:
    """New files in a folder, whose names end in ``suffix``. ``most``: the maximum per batch. ``decode``: how they are
    read.

    Under an envelope one task reads a batch, its files ordered by modification time, then name.
    """

    folder: Path
    suffix: str
    decode: FilesDecoder
    most: int

    @property
    def columns(self) -> tuple[LoadColumn, ...]:
        return encoded_columns(self.decode.rows)

    def check(self) -> None:
        if not self.folder.is_dir():
            raise SqlError("58P01", f'there is no folder "{self.folder}"')

    def frame(self, session: Any) -> Any:
        reader = session.readStream.format("binaryFile").schema(
            "path string, modificationTime timestamp, length long, content binary"
        )
        reader = reader.option("maxFilesPerTrigger", self.most).option("pathGlobFilter", f"*{self.suffix}")
        literal = re.sub(r"([\[\]{}*?\\])", r"\\\1", str(self.folder))  # Spark would read these as patterns
        return reader.load(f"file://{literal}").select("path", "modificationTime")

    def batch(self, frame: Any) -> Any:
        if self.decode.rows.key:
            frame = frame.coalesce(1).sortWithinPartitions("modificationTime", "path")
        return frame.select("path")


@dataclass(frozen=True, slots=True)
class KafkaStream:
    """A topic's messages, with values in JSON. ``options``: Spark's own for Kafka. Ordered within each partition."""

    options: Mapping[str, str]
    rows: JsonRows

    @property
    def columns(self) -> tuple[LoadColumn, ...]:
        return encoded_columns(self.rows)

    @property
    def decode(self) -> Messages:
        return Messages(self.rows)

    def check(self) -> None:
        """A no-op: Kafka's client reports errors itself."""

    def frame(self, session: Any) -> Any:
        try:
            frame = session.readStream.format("kafka").options(**self.options).load()
            frame.schema  # noqa: B018  (Spark Connect looks for the connector when it is asked for this)
        except Exception as error:
            if "data source: kafka" in str(error).lower():
                raise no_connector(session.version) from error
            raise
        return frame.select(frame["value"].cast("string"), frame["key"].cast("string"))

    def batch(self, frame: Any) -> Any:
        return frame


def no_connector(version: str) -> SqlError:
    """58000: Spark, of this version, has no connector to Kafka."""
    package = f"org.apache.spark:spark-sql-kafka-0-10_{_SCALA}:{version}"
    return ConnectorError(
        "58000", "this Spark has no connector for Kafka", f"Spark {version} needs the package {package}.",
        f"Start the server (for sc://, the Connect server) with it: PYSPARK_SUBMIT_ARGS='--packages {package} "
        "pyspark-shell'; or put its jars, and those that it needs, into pyspark's folder jars.",
    )  # fmt: skip


def kafka_options(given: Mapping[str, str], most: int | None) -> dict[str, str]:
    """Spark's options from a source's: brokers, topic, start, and those named kafka.…, passed through."""
    options = {
        "kafka.bootstrap.servers": given["brokers"],
        "subscribe": given["topic"],
        "startingOffsets": given.get("start", "earliest"),
        "failOnDataLoss": "true",
    }
    if most is not None:
        options["maxOffsetsPerTrigger"] = str(most)
    return options | {name: value for name, value in given.items() if name.startswith("kafka.")}


@dataclass(frozen=True, slots=True)
class RateStream:
    """Rows (time, number) that Spark generates, ``per_second`` of them: for demonstrations and tests."""

    rows: JsonRows
    per_second: int

    @property
    def columns(self) -> tuple[LoadColumn, ...]:
        return encoded_columns(self.rows)

    @property
    def decode(self) -> KeyedDecoder:
        return KeyedDecoder(self.rows)

    def check(self) -> None:
        if len(self.rows.columns) != 2:
            raise SqlError("42804", "a source FROM RATE fills two columns: timestamp with time zone and bigint",
                           hint="Name them: INTO table (column, column).")  # fmt: skip

    def frame(self, session: Any) -> Any:
        return session.readStream.format("rate").option("rowsPerSecond", self.per_second).load()

    def batch(self, frame: Any) -> Any:
        return frame
