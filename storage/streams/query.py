"""One Structured Streaming query: started, monitored, and each of its batches handed over as encoded rows.

Spark records which data a batch consists of (its offsets) before the batch runs, and its completion after the batch has
been handed over. A batch handed over just before a kill therefore comes again, with the same number and the same data.
The receiver recognises it by query id and number, and so handles it once. This also holds through a loss of power: what
Spark has recorded about a batch is synced to disk before the batch is handed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Final, Protocol

import pyarrow as pa

from ivm.errors import SqlError
from storage.files import sync_path
from storage.load.columns import LoadColumn
from storage.load.source import Decode
from storage.spark.errors import ERROR_MARK, spark_error
from storage.streams.encoded import encoder, stream_width

LOOK_SECONDS: Final = 0.2


class Stream(Protocol):
    """A stream that a source reads."""

    @property
    def columns(self) -> Sequence[LoadColumn]:
        """The columns that rows are encoded with."""

    @property
    def decode(self) -> Decode: ...

    def check(self) -> None:
        """Raises if the input does not exist, which Spark would take for no new data."""

    def frame(self, session: Any) -> Any:
        """The streaming DataFrame."""

    def batch(self, frame: Any) -> Any:
        """One batch, its rows in the order that counts, with the columns that ``decode`` reads."""


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """A batch. ``rows``: as ``storage.streams.arrived`` reads them. ``alone``: the same rows, encoded by one task."""

    query: str
    number: int
    rows: pa.Table
    alone: Callable[[], pa.Table]


Take = Callable[[StreamBatch], None]
"""Takes a batch. Returns once it is durable, immediately if it was already."""


def run_query(
    session: Any, stream: Stream, secret: bytes, checkpoint: Path, trigger: int, take: Take,
    look: Callable[[bool], None], stop: Event,
) -> None:  # fmt: skip
    """Runs until ``stop`` is set. ``trigger``: µs. ``look`` is called regularly with whether there may be data left.

    Raises what ``take`` raises, an executor's own error, and 58000 if Spark fails or is gone.
    """
    failures: list[Exception] = []

    def each(batch: Any, number: int) -> None:
        try:
            if stop.is_set():  # so that Spark does not record the batch as done
                raise InterruptedError("the source ends")
            frame = stream.batch(batch)
            rows = encoded(frame, stream.columns, stream.decode, secret)
            sync_batch(checkpoint, number)
            alone = partial(encoded, frame.coalesce(1), stream.columns, stream.decode, secret)
            take(StreamBatch(query_id(checkpoint), number, rows, alone))
        except Exception as error:
            failures.append(error)
            # Keep it short: Spark looks for an interruption in the text with a regular expression that overflows its
            # stack.
            raise RuntimeError("the batch failed") from None

    try:
        started = start_query(session, stream, each, checkpoint, trigger)
        try:
            _watch(started, stream, look, stop, failures)
        finally:
            started.stop()
    except Exception as error:
        if not stop.is_set():
            raise (failures[0] if failures else failure(error)) from error


def start_query(session: Any, stream: Stream, each: Callable[[Any, int], None], checkpoint: Path, trigger: int) -> Any:
    """Starts the query, whose batches go to ``each``. Raises what ``Stream.check`` raises."""
    stream.check()
    writer = stream.frame(session).writeStream.foreachBatch(each).option("checkpointLocation", f"file://{checkpoint}")
    return writer.trigger(processingTime=f"{trigger // 1000} milliseconds").start()


def _watch(
    query: Any, stream: Stream, look: Callable[[bool], None], stop: Event, failures: Sequence[Exception]
) -> None:  # fmt: skip
    """Returns when the query is to stop; raises the reason if it has ended by itself, or is about to."""
    while not stop.wait(LOOK_SECONDS):
        if failures:
            raise failures[0]
        look_at(query, stream, look)


def look_at(query: Any, stream: Stream, look: Callable[[bool], None]) -> None:
    """Reports a query's status to ``look``; raises the reason if it has ended by itself."""
    if not query.isActive:
        raise query.exception() or SqlError("58000", "Spark has ended the stream")
    stream.check()
    status = query.status
    look(bool(status["isDataAvailable"]) or not str(status["message"]).startswith("Waiting"))


def encoded(frame: Any, columns: Sequence[LoadColumn], decode: Decode, secret: bytes) -> pa.Table:
    """A frame's rows, encoded on executors, as one Arrow table in the frame's order. Raises as ``run_query``."""
    try:
        return _encoding(frame, columns, decode, secret).toArrow()
    except Exception as error:
        raise failure(error) from error


def encoded_frame(frame: Any, stream: Stream, secret: bytes) -> Any:
    """The frame of a batch's encoded rows."""
    return _encoding(frame, stream.columns, stream.decode, secret)


def _encoding(frame: Any, columns: Sequence[LoadColumn], decode: Decode, secret: bytes) -> Any:
    words = "".join(f"w{i} long, " for i in range(stream_width(columns)))
    schema = f"part int, {words}value binary"
    return frame.mapInArrow(encoder(tuple(columns), decode, secret), schema)


def failure(error: Exception) -> SqlError:
    """Translates any error of a query."""
    if isinstance(error, SqlError):
        return error
    if isinstance(error, OSError) or type(error).__module__.startswith(("py4j", "grpc")):
        if ERROR_MARK in str(error):
            return spark_error(error)
        return SqlError("58000", "Spark has gone away", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    return spark_error(error)


def query_id(checkpoint: Path) -> str:
    """Spark's id of the query, unique to a checkpoint."""
    return str(json.loads((checkpoint / "metadata").read_text())["id"])


def sync_batch(checkpoint: Path, number: int) -> None:
    """Syncs what Spark has recorded about a batch: its offsets, and the files that it found."""
    logs = [checkpoint, checkpoint / "offsets", *sorted((checkpoint / "sources").glob("*"))]
    names = ["metadata"] if number == 0 else []
    for folder in logs:
        for name in (*names, str(number), f"{number}.compact"):
            if (folder / name).is_file():
                sync_path(folder / name)
        sync_path(folder)
