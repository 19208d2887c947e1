"""One Structured Streaming query: started, watched, and each of its batches handed over as encoded rows.

Spark writes down which data a batch is made of (its offsets) before the batch runs, and that it is done after the batch
has been handed over. So a batch that was handed over just before a kill comes again, with the same number and the same
data, and who takes it knows it by the query's id and its number. That holds through a loss of power too: what Spark has
written down about a batch is synced to disk before the batch is handed over.
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
    """What a source reads as it comes."""

    @property
    def columns(self) -> Sequence[LoadColumn]:
        """What rows are encoded as."""

    @property
    def decode(self) -> Decode: ...

    def check(self) -> None:
        """Raises where what is read is not there, which Spark would take for no new data."""

    def frame(self, session: Any) -> Any:
        """The streaming DataFrame."""

    def batch(self, frame: Any) -> Any:
        """One batch of it, in the order in which rows count, with the columns that ``decode`` reads."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A batch. ``rows``: as ``storage.streams.arrived`` reads it; ``alone``: the same, encoded by one task."""

    query: str
    number: int
    rows: pa.Table
    alone: Callable[[], pa.Table]


Take = Callable[[Arrived], None]
"""Takes a batch and returns when it is durable, or was so before."""


def run_query(
    session: Any, stream: Stream, secret: bytes, checkpoint: Path, trigger: int, take: Take,
    look: Callable[[bool], None], stop: Event,
) -> None:  # fmt: skip
    """Runs until ``stop`` is set. ``trigger``: µs; ``look`` is told again and again whether there may be data left.

    Raises what ``take`` raises, an executor's own error, and 58000 where Spark fails or has gone.
    """
    failures: list[Exception] = []

    def each(batch: Any, number: int) -> None:
        try:
            if stop.is_set():  # Spark is not to take the batch for done
                raise InterruptedError("the source ends")
            frame = stream.batch(batch)
            rows = encoded(frame, stream.columns, stream.decode, secret)
            sync_batch(checkpoint, number)
            alone = partial(encoded, frame.coalesce(1), stream.columns, stream.decode, secret)
            take(Arrived(query_id(checkpoint), number, rows, alone))
        except Exception as error:
            failures.append(error)
            # In few words: Spark seeks an interruption in a long text by an expression that overflows its stack.
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
    """The running query, each of whose batches goes to ``each``. Raises what ``Stream.check`` does."""
    stream.check()
    writer = stream.frame(session).writeStream.foreachBatch(each).option("checkpointLocation", f"file://{checkpoint}")
    return writer.trigger(processingTime=f"{trigger // 1000} milliseconds").start()


def _watch(
    query: Any, stream: Stream, look: Callable[[bool], None], stop: Event, failures: Sequence[Exception]
) -> None:  # fmt: skip
    """Returns when the query is to stop; raises why it has ended by itself, or is about to."""
    while not stop.wait(LOOK_SECONDS):
        if failures:
            raise failures[0]
        look_at(query, stream, look)


def look_at(query: Any, stream: Stream, look: Callable[[bool], None]) -> None:
    """Tells how a query does; raises why it has ended by itself."""
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
    """The frame of a batch's rows, as executors encode them."""
    return _encoding(frame, stream.columns, stream.decode, secret)


def _encoding(frame: Any, columns: Sequence[LoadColumn], decode: Decode, secret: bytes) -> Any:
    words = "".join(f"w{i} long, " for i in range(stream_width(columns)))
    schema = f"part int, {words}value binary"
    return frame.mapInArrow(encoder(tuple(columns), decode, secret), schema)


def failure(error: Exception) -> SqlError:
    """Any error of a query as ours."""
    if isinstance(error, SqlError):
        return error
    if isinstance(error, OSError) or type(error).__module__.startswith(("py4j", "grpc")):
        if ERROR_MARK in str(error):
            return spark_error(error)
        return SqlError("58000", "Spark has gone away", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    return spark_error(error)


def query_id(checkpoint: Path) -> str:
    """What tells a checkpoint from any other: Spark's id of the query."""
    return str(json.loads((checkpoint / "metadata").read_text())["id"])


def sync_batch(checkpoint: Path, number: int) -> None:
    """Makes durable what Spark has written about a batch: its offsets, and the files that it found."""
    logs = [checkpoint, checkpoint / "offsets", *sorted((checkpoint / "sources").glob("*"))]
    names = ["metadata"] if number == 0 else []
    for folder in logs:
        for name in (*names, str(number), f"{number}.compact"):
            if (folder / name).is_file():
                sync_path(folder / name)
        sync_path(folder)
