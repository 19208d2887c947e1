"""A Structured Streaming query over Spark Connect: its batches reach this process through the shared folder.

``foreachBatch`` runs its function in a Python process of the Connect server, which cannot call this one. There
executors encode a batch into files, in a folder that belongs to this run of the query. An *offer* beside the files
announces them. The *answer* says that they are durable here, so that Spark may record the batch as done, or that they
were refused. The guarantees of ``storage.streams.query`` for repeated batches hold here too. A run whose folder is
removed ends: a restarted server removes the folder of a killed one before it lets Spark continue.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from ivm.errors import SqlError
from storage.streams.encoded import stream_schema
from storage.streams.query import (
    LOOK_SECONDS,
    Stream,
    StreamBatch,
    Take,
    encoded_frame,
    failure,
    look_at,
    query_id,
    start_query,
    sync_batch,
)

ASK_SECONDS: Final = 0.02
PATIENCE: Final = 1800.0
"""Seconds without an answer after which the Connect server's side gives up and the query ends, since our server seems
gone for good. The batch comes again."""
OPEN: Final = "open"
"""A marker file that exists while the run is wanted."""
_OFFER: Final = "offer.json"
_ANSWER: Final = "answer.json"
TAKEN: Final = "taken"
REFUSED: Final = "refused"
ALONE: Final = "alone"
"""The answer that asks for the batch again, encoded by one task."""


@dataclass(frozen=True, slots=True)
class Handover:
    """The function for ``foreachBatch``, run on the Connect server's side. ``folder``: of this run."""

    stream: Stream
    secret: bytes
    folder: Path

    def __call__(self, batch: Any, number: int) -> None:
        frame = self.stream.batch(batch)
        answer = self._hand_over(frame, number)
        if answer == ALONE:
            answer = self._hand_over(frame.coalesce(1), number)
        if answer != TAKEN:  # so that Spark does not record the batch as done
            raise InterruptedError("the server has not taken the batch")

    def _hand_over(self, frame: Any, number: int) -> str:
        name, error = f"{number}-{uuid4().hex}", None
        try:
            encoded_frame(frame, self.stream, self.secret).write.parquet((self.folder / name).as_uri())
        except Exception as raised:
            found = failure(raised)
            error = [found.sqlstate, found.message, found.detail, found.hint]
        if (self.folder / OPEN).exists():
            _put(self.folder / _OFFER, {"name": name, "number": number, "error": error})
        until = monotonic() + PATIENCE
        while monotonic() < until and (self.folder / OPEN).exists():
            answer = _got(self.folder / _ANSWER)
            if answer is not None and answer["name"] == name:
                return str(answer["answer"])
            sleep(ASK_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)  # executors have created it again
        return REFUSED


@dataclass(slots=True)
class RunFolder:
    """Our server's side of a run's folder."""

    folder: Path
    stream: Stream
    answered: str = ""

    def offer(self) -> dict[str, Any] | None:
        """The offer that has no answer yet, if any. Raises the error that the offer reports."""
        found = _got(self.folder / _OFFER)
        if found is None or found["name"] == self.answered:
            return None
        if found["error"] is not None:
            self.answer(found, REFUSED)
            raise SqlError(*found["error"])
        return found

    def answer(self, offer: dict[str, Any], answer: str) -> None:
        """Answers an offer."""
        self.answered = offer["name"]
        _put(self.folder / _ANSWER, {"name": offer["name"], "answer": answer})

    def rows(self, offer: dict[str, Any]) -> pa.Table:
        """The offered rows in the frame's order: a task's file is named by the task's number."""
        folder = self.folder / offer["name"]
        tables = [pq.read_table(path, partitioning=None) for path in sorted(folder.glob("part-*.parquet"))]
        shutil.rmtree(folder)
        return pa.concat_tables(tables) if tables else stream_schema(self.stream.columns).empty_table()

    def alone(self, offer: dict[str, Any], stop: Event) -> pa.Table:
        """The batch of an offer, encoded again by one task."""
        self.answer(offer, ALONE)
        while not stop.wait(ASK_SECONDS):
            again = self.offer()
            if again is not None:
                offer.update(again)
                return self.rows(again)
        raise SqlError("57P01", "the source is ending")


def run_remote(
    session: Any, stream: Stream, secret: bytes, checkpoint: Path, trigger: int, take: Take,
    look: Callable[[bool], None], stop: Event, shared: Path,
) -> None:  # fmt: skip
    """``storage.streams.query.run_query`` over Spark Connect. Its driver and executors must see ``shared`` and
    ``checkpoint`` under the same paths."""
    failures: list[Exception] = []

    def taking(arrived: StreamBatch) -> None:
        try:
            take(arrived)
        except Exception as error:
            failures.append(error)
            raise

    try:
        with _folder(shared) as folder:
            inbox = RunFolder(folder, stream)
            started = start_query(session, stream, Handover(stream, secret, folder), checkpoint, trigger)
            try:
                _watch(started, stream, inbox, checkpoint, taking, look, stop)
            finally:
                shutil.rmtree(folder, ignore_errors=True)  # ends the wait for an answer, so that the query can end
                started.stop()
    except Exception as error:
        if not stop.is_set():
            raise (failures[0] if failures else failure(error)) from error


def _watch(
    query: Any,
    stream: Stream,
    inbox: RunFolder,
    checkpoint: Path,
    take: Take,
    look: Callable[[bool], None],
    stop: Event,
) -> None:
    """Takes batches until the query is to stop; raises the reason if it has ended by itself."""
    next_look = 0.0
    while not stop.wait(ASK_SECONDS):
        offer = inbox.offer()
        if offer is not None:
            _take(offer, inbox, checkpoint, take, stop)
        if monotonic() >= next_look:
            look_at(query, stream, look)
            next_look = monotonic() + LOOK_SECONDS


def _take(offer: dict[str, Any], inbox: RunFolder, checkpoint: Path, take: Take, stop: Event) -> None:
    try:
        number = int(offer["number"])
        sync_batch(checkpoint, number)
        take(StreamBatch(query_id(checkpoint), number, inbox.rows(offer), partial(inbox.alone, offer, stop)))
    except BaseException:
        inbox.answer(offer, REFUSED)
        raise
    inbox.answer(offer, TAKEN)


@contextmanager
def _folder(shared: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="freshet-source-", dir=shared))
    (folder / OPEN).touch()
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Removes the folder, repeatedly, since executors still at work on a batch may create it again."""
    until, gone = monotonic() + 5.0, 0
    while gone < 5 and monotonic() < until:
        gone = 0 if folder.exists() else gone + 1
        shutil.rmtree(folder, ignore_errors=True)
        sleep(0.1)


def _put(path: Path, found: dict[str, Any]) -> None:
    """Atomically writes a note, which need not survive a loss of power."""
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}")
    unfinished.write_text(json.dumps(found))
    unfinished.replace(path)


def _got(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return found
