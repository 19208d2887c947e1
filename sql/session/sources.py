"""The running sources: a thread for each, which survives any failure of its source.

The newest committed catalog says which sources run; it is checked after each commit that changes it. So sources start
by themselves after a restart and when the transaction that creates or resumes them commits. They end when a transaction
that drops or pauses them, or drops their table, commits.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ivm.errors import SqlError
from ivm.rows import Words
from planner.expr.context import Context
from sql.admission.admission import OWN
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.connection import revealed
from sql.coordination.coordinator import Coordinator
from sql.coordination.prepared import StaleError
from sql.coordination.source_status import SourceStatus
from sql.coordination.transaction import Extent, Transaction
from sql.engine.clock import timestamp_now
from sql.engine.group import Delta
from sql.engine.retries import pause_after
from sql.engine.snapshot import Published
from sql.session.information import SystemInformation
from sql.session.ingest import IngestTarget, SourceBatch, ingest, target_of
from sql.session.session import Session
from sql.session.source_progress import SourceProgress, progress_in
from sql.session.source_streams import poll_of, stream_of
from storage.load.columns import LoadColumn
from storage.streams.arrived import arrived_rows
from storage.streams.jdbc import poll
from storage.streams.query import LOOK_SECONDS, StreamBatch, run_query
from storage.streams.remote import run_remote

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_PAUSE: Final = 1.0
"""Seconds from the first failure to the retry."""
JOIN_SECONDS: Final = 5.0


class StoppedError(Exception):
    """Raised when the source must stop."""


class Sources:
    """Every source of a server. Made and used on the event loop."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._loop = asyncio.get_running_loop()
        persistence = coordinator.engine.persistence
        self._temporary = None if persistence is not None else tempfile.mkdtemp(prefix="freshet-sources-")
        folder = checkpoints_folder(coordinator) if persistence is not None else Path(str(self._temporary))
        self._folder = folder.resolve()
        self._running: dict[int, Running] = {}
        self._ending: list[Running] = []
        self._own: Session | None = None
        self._version = -1
        self._closed = False
        self._statuses: dict[int, SourceStatus] = {}
        coordinator.sources = self._statuses
        coordinator.closing.append(self.close)
        coordinator.engine.listeners.append(self._published)
        self._remove_unknown()
        self.look()

    def look(self) -> None:
        """Start and end sources according to the newest catalog."""
        catalog = self._coordinator.engine.published.catalog
        if self._closed or catalog.version == self._version:
            return
        self._version = catalog.version
        sources = {r.id: r for r in catalog.relations.values() if r.kind is RelationKind.SOURCE}
        for id_, running in list(self._running.items()):
            wanted = sources.get(id_)
            if wanted is None:
                running.end(remove=True)
                self._ending = [other for other in self._ending if other.is_alive] + [self._running.pop(id_)]
                del self._statuses[id_]
            elif wanted.connection != running.source.connection:
                running.end()
        for id_, source in sources.items():
            known = self._running.get(id_)
            if known is None or known.source.connection != source.connection:
                running = Running(self._coordinator, source, self._folder / str(source.oid), self._session(), known)
                self._running[id_], self._statuses[id_] = running, running.status

    async def close(self) -> None:
        """End all sources. An unfinished batch is read again after the next start."""
        self._closed = True
        self._coordinator.engine.listeners.remove(self._published)
        for running in self._running.values():
            running.end()
        for running in [*self._running.values(), *self._ending]:
            await asyncio.to_thread(running.join, JOIN_SECONDS)
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _session(self) -> Session:
        """The sources' own session, in which column defaults are evaluated."""
        if self._own is None:
            self._own = Session(self._coordinator, "freshet", "freshet", {"application_name": "sources"}, OWN)
        return self._own

    def _published(self, _: Delta, published: Published) -> None:
        if published.catalog.version != self._version:
            self._loop.call_soon_threadsafe(self.look)

    def _remove_unknown(self) -> None:
        """Remove the checkpoints of dropped sources: ids are never used again."""
        known = {str(r.oid) for r in self._coordinator.engine.catalog.relations.values()}
        if self._folder.is_dir():
            for folder in self._folder.iterdir():
                if folder.name not in known:
                    shutil.rmtree(folder, ignore_errors=True)


def checkpoints_folder(coordinator: Coordinator) -> Path:
    """The folder where Spark records what each batch consists of: in the data folder, or, if Spark's driver runs on
    another machine, in the folder that it shares with this server."""
    engine, settings = coordinator.engine, coordinator.spark.session().settings
    assert engine.persistence is not None, "a server has a store"
    if settings.remote:
        assert coordinator.spark.shared is not None, "Spark Connect has one"
        return coordinator.spark.shared / f"sources-{hashlib.sha256(engine.dictionary.secret).hexdigest()[:12]}"
    return engine.persistence.folder / "sources"


class Running:
    """A source's thread. ``before``: the thread that ran the source until now; this one waits for its end."""

    def __init__(
        self, coordinator: Coordinator, source: Relation, checkpoint: Path, session: Session, before: Running | None
    ) -> None:
        self.source = source
        self.status = SourceStatus()
        self._coordinator = coordinator
        self._loop = asyncio.get_running_loop()
        self._checkpoint = checkpoint
        self._before = before
        self._stop = threading.Event()
        self._remove = False
        self._session = session
        assert source.connection is not None, "a source"
        if source.connection.paused:
            self.status.enter("paused")
        self._thread = threading.Thread(target=self._run, name=f"source {source.name}", daemon=True)
        self._thread.start()

    def end(self, remove: bool = False) -> None:
        """Ask the thread to end. ``remove``: remove the source's checkpoint too."""
        self._remove |= remove
        self._stop.set()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread's end, at most this many seconds."""
        self._thread.join(timeout)

    @property
    def is_alive(self) -> bool:
        """Whether the thread is still running."""
        return self._thread.is_alive()

    def _run(self) -> None:
        if self._before is not None:
            self._before.join()
            self._before = None
        assert self.source.connection is not None, "a source"
        if not self.source.connection.paused:
            while not self._stop.is_set():
                self._try()
        self._stop.wait()
        if self._remove:
            shutil.rmtree(self._checkpoint, ignore_errors=True)
            with suppress(OSError):  # other sources' checkpoints are in it
                self._checkpoint.parent.rmdir()

    def _try(self) -> None:
        """Run the source until it must stop or fails. After a failure, wait, longer each time."""
        status = self.status
        try:
            self._attempt()
        except StoppedError:
            return
        except StaleError:
            status.enter("starting")
            self._stop.wait(0.05)  # the commit that changed the source is about to be published
        except SqlError as error:
            self._failed(error)
        except Exception as error:  # a bug in one source is that source's error
            traceback.print_exc()
            self._failed(SqlError("XX000", f"internal error: {type(error).__name__}: {error}"))

    def _failed(self, error: SqlError) -> None:
        status = self.status
        status.error, status.failed_at = error, timestamp_now()
        status.behind = status.behind or status.failed_at
        status.enter("failed")
        status.failures += 1
        self._stop.wait(pause_after(status.failures, FIRST_PAUSE))

    def _attempt(self) -> None:
        catalog = self._coordinator.engine.published.catalog
        source = catalog.relations.get(self.source.id)
        if source is None:
            raise StoppedError
        target = target_of(source, catalog)
        if source.connection is not None and source.connection.system == "jdbc":
            self._poll(target)
        else:
            self._stream(target)

    def _revealed(self, target: IngestTarget) -> IngestTarget:
        """The target with the texts of its secrets, for Spark alone. Raises 42704."""
        connection = revealed(target.connection, self._coordinator.reveal)
        return replace(target, source=replace(target.source, connection=connection))

    def _stream(self, target: IngestTarget) -> None:
        coordinator = self._coordinator
        self._checkpoint.mkdir(parents=True, exist_ok=True)
        spark = coordinator.spark.session()
        stream = stream_of(self._revealed(target), coordinator.reach)
        secret = coordinator.engine.dictionary.secret
        with spark as session:
            if self.status.state == "starting":
                self.status.enter("running")
            run = run_query
            if spark.settings.remote:
                assert spark.settings.shared is not None, "Spark Connect has one"
                run = partial(run_remote, shared=spark.settings.shared)
            run(
                session, stream, secret, self._checkpoint, target.connection.trigger,
                lambda arrived: self._take(target, stream.columns, arrived), self._look, self._stop,
            )  # fmt: skip

    def _take(self, target: IngestTarget, columns: Sequence[LoadColumn], arrived: StreamBatch) -> None:
        """Take a batch of the stream. It is durable on return."""
        self._look(True)
        context = self._context(target)
        rows = self._decoded(columns, arrived.rows, arrived.alone)
        self._commit(target, SourceBatch(arrived.query, arrived.number, rows), context)

    def _poll(self, target: IngestTarget) -> None:
        coordinator = self._coordinator
        source, secret = poll_of(self._revealed(target), coordinator.reach), coordinator.engine.dictionary.secret
        while not self._stop.is_set():
            done = progress_in(target.source, coordinator.engine.published, coordinator.engine.dictionary)
            with coordinator.spark.session() as session:
                polled = poll(session, source, None if done is None else done.position, secret)
            if polled is None:
                self._look(False)
                self._stop.wait(target.connection.trigger / 1e6)
                continue
            self._look(True)
            context = self._context(target)
            rows = self._decoded(source.columns, polled.rows, polled.alone)
            number = 0 if done is None else done.batch + 1
            self._commit(target, SourceBatch("", number, rows, polled.position), context)

    def _context(self, target: IngestTarget) -> Context:
        """The context of the batch's defaults, with a hold on its new values."""
        dictionary = self._coordinator.engine.dictionary
        now, held = timestamp_now(), dictionary.generation
        information = SystemInformation(self._session.state, self._coordinator.engine.published.catalog)
        return Context(dictionary, (), now, now, "UTC", 0, information, hold=held)

    def _decoded(self, columns: Sequence[LoadColumn], table: pa.Table, alone: Callable[[], pa.Table]) -> Words:
        dictionary = self._coordinator.engine.dictionary
        rows = arrived_rows(table, columns, dictionary)
        if rows is None:
            rows = arrived_rows(alone(), columns, dictionary)
        assert rows is not None, "one task has one dictionary"
        return rows

    def _commit(self, target: IngestTarget, batch: SourceBatch, context: Context) -> None:
        """Run the batch's transaction on the event loop. It is durable on return."""
        future = asyncio.run_coroutine_threadsafe(self._write(target, batch, context), self._loop)
        while not future.done():
            wait([future], LOOK_SECONDS)
            if self._stop.is_set() and not self._loop.is_running():
                raise StoppedError
        future.result()
        self.status.failures = 0
        self.status.enter("running")

    async def _write(self, target: IngestTarget, batch: SourceBatch, context: Context) -> SourceProgress:
        keys = self._coordinator.keys
        transaction = Transaction(self._coordinator.jobs, context.now, Extent.STATEMENT)
        return await transaction.write(lambda writer: ingest(writer, keys, context, target, batch))

    def _look(self, behind: bool) -> None:
        status = self.status
        if not behind:
            status.behind, status.failures = None, 0
            status.enter("running")
        elif status.behind is None:
            status.behind = timestamp_now()
