"""The sources that run: one thread for each, which follows the catalog and survives whatever its source does.

What should run is what the newest committed catalog says; every commit that changes the catalog has it looked at again.
So sources start by themselves after a restart, with the transaction that creates or resumes them, and end with the one
that drops or pauses them, or drops their table.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ivm.errors import SqlError
from ivm.rows import Words
from planner.expr.context import Context
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.search_path import Lookup
from sql.coordination.prepared import StaleError
from sql.coordination.transaction import Transaction
from sql.engine.clock import POSTGRES_EPOCH, wall_clock
from sql.engine.group import Delta
from sql.engine.retries import pause_after
from sql.engine.snapshot import Published
from sql.session.ingest import Batch, Progress, Target, ingest, progress_in, target_of
from sql.session.session import Session
from sql.session.source_streams import poll_of, stream_of
from sql.session.state import SessionState
from storage.load.columns import LoadColumn
from storage.streams.arrived import arrived_rows
from storage.streams.jdbc import poll
from storage.streams.query import LOOK_SECONDS, Arrived, run_query
from storage.streams.remote import run_remote

if TYPE_CHECKING:
    import pyarrow as pa

    from sql.coordination.coordinator import Coordinator

FIRST_PAUSE: Final = 1.0
"""Seconds from a first failure to the next try."""
JOIN_SECONDS: Final = 5.0

Datums = tuple[object, ...]


class StoppedError(Exception):
    """The source is to run no longer."""


@dataclass(slots=True)
class Status:
    """What freshet.sources shows, times in µs since 2000. ``behind``: since when there is data that is not in."""

    state: str = "starting"
    since: int = field(default_factory=lambda: wall_clock() - POSTGRES_EPOCH)
    error: SqlError | None = None
    failed_at: int | None = None
    failures: int = 0
    behind: int | None = None

    def enter(self, state: str) -> None:
        if state != self.state:
            self.state, self.since = state, wall_clock() - POSTGRES_EPOCH


class Sources:
    """Every source of a server. Made on the event loop, and looked at there."""

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
        coordinator.sources = self
        coordinator.engine.listeners.append(self._published)
        self._remove_unknown()
        self.look()

    def look(self) -> None:
        """Starts and ends sources as the newest catalog has them."""
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
            elif wanted.connection != running.source.connection:
                running.end()
        for id_, source in sources.items():
            known = self._running.get(id_)
            if known is None or known.source.connection != source.connection:
                self._running[id_] = Running(
                    self._coordinator, source, self._folder / str(source.oid), self._session(), known
                )

    def rows(self, published: Published, names: Lookup) -> Iterable[Datums]:
        """The rows of freshet.sources, by name."""
        for source in sorted(published.catalog.relations.values(), key=lambda r: (r.schema_name, r.name)):
            if source.kind is RelationKind.SOURCE:
                running = self._running.get(source.id)
                yield _shown(source, published, names, Status() if running is None else running.status,
                             self._coordinator)  # fmt: skip

    async def close(self) -> None:
        """Ends all of them; what is in the middle of a batch comes again at the next start."""
        self._closed = True
        self._coordinator.engine.listeners.remove(self._published)
        for running in self._running.values():
            running.end()
        for running in [*self._running.values(), *self._ending]:
            await asyncio.to_thread(running.join, JOIN_SECONDS)
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _session(self) -> Session:
        """What columns' defaults ask about the session: one of the sources' own."""
        if self._own is None:
            self._own = Session(self._coordinator, "freshet", "freshet", {"application_name": "sources"})
        return self._own

    def _published(self, _: Delta, published: Published) -> None:
        if published.catalog.version != self._version:
            self._loop.call_soon_threadsafe(self.look)

    def _remove_unknown(self) -> None:
        """Checkpoints of sources that are no more: ids are never used again."""
        known = {str(r.oid) for r in self._coordinator.engine.catalog.relations.values()}
        if self._folder.is_dir():
            for folder in self._folder.iterdir():
                if folder.name not in known:
                    shutil.rmtree(folder, ignore_errors=True)


def checkpoints_folder(coordinator: Coordinator) -> Path:
    """Where Spark notes what batches are made of: in the data folder; where its driver is another machine's, in the
    folder that it shares with this server."""
    engine, settings = coordinator.engine, coordinator.spark().settings
    assert engine.persistence is not None, "a server has a store"
    if settings.remote:
        assert coordinator.shared is not None, "Spark Connect has one"
        return coordinator.shared / f"sources-{hashlib.sha256(engine.dictionary.secret).hexdigest()[:12]}"
    return engine.persistence.folder / "sources"


def _shown(source: Relation, published: Published, names: Lookup, status: Status, coordinator: Coordinator) -> Datums:
    assert source.connection is not None, "a source"
    table = published.catalog.relations[source.dependencies[0]]
    done = progress_in(source, published, coordinator.engine.dictionary)
    now = wall_clock() - POSTGRES_EPOCH
    behind = None if status.state == "paused" else 0 if status.behind is None else max(0, now - status.behind)
    error = None if status.error is None else f"{status.error.sqlstate}: {status.error.message}"
    detail = None if status.error is None else " ".join(filter(None, (status.error.detail, status.error.hint))) or None
    return (
        names.shown(source), names.shown(table), source.connection.system, status.state, status.since,
        None if done is None else done.batch, 0 if done is None else done.rows,
        None if done is None else done.committed, None if behind is None else (0, 0, behind),
        error, detail, status.failed_at, status.failures,
    )  # fmt: skip


class Running:
    """A source's thread. ``before``: the one that ran the source until now, whose end is waited for."""

    def __init__(
        self, coordinator: Coordinator, source: Relation, checkpoint: Path, session: Session, before: Running | None
    ) -> None:
        self.source = source
        self.status = Status()
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
        """Has it end soon. ``remove``: its checkpoint goes too."""
        self._remove |= remove
        self._stop.set()

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._thread.is_alive()

    def _run(self) -> None:
        if self._before is not None:
            self._before._thread.join()
            self._before = None
        assert self.source.connection is not None, "a source"
        if not self.source.connection.paused:
            while not self._stop.is_set():
                self._try()
        self._stop.wait()
        if self._remove:
            shutil.rmtree(self._checkpoint, ignore_errors=True)
            with suppress(OSError):  # other sources have theirs in it
                self._checkpoint.parent.rmdir()

    def _try(self) -> None:
        """Runs the source until it is to stop, or fails; then waits a while, longer each time."""
        status = self.status
        try:
            self._attempt()
        except StoppedError:
            return
        except StaleError:
            status.enter("starting")
            self._stop.wait(0.05)  # the commit that changed it is about to be published
        except SqlError as error:
            self._failed(error)
        except Exception as error:  # a bug in one source is that source's error
            traceback.print_exc()
            self._failed(SqlError("XX000", f"internal error: {type(error).__name__}: {error}"))

    def _failed(self, error: SqlError) -> None:
        status = self.status
        status.error, status.failed_at = error, wall_clock() - POSTGRES_EPOCH
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

    def _stream(self, target: Target) -> None:
        coordinator = self._coordinator
        self._checkpoint.mkdir(parents=True, exist_ok=True)
        spark = coordinator.spark()
        stream = stream_of(target, coordinator.files)
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

    def _take(self, target: Target, columns: Sequence[LoadColumn], arrived: Arrived) -> None:
        """A batch of the stream: durable on return."""
        self._look(True)
        context = self._context(target)
        rows = self._decoded(columns, arrived.rows, arrived.alone)
        self._commit(target, Batch(arrived.query, arrived.number, rows), context)

    def _poll(self, target: Target) -> None:
        coordinator = self._coordinator
        source, secret = poll_of(target, coordinator.files), coordinator.engine.dictionary.secret
        while not self._stop.is_set():
            done = progress_in(target.source, coordinator.engine.published, coordinator.engine.dictionary)
            with coordinator.spark() as session:
                polled = poll(session, source, None if done is None else done.position, secret)
            if polled is None:
                self._look(False)
                self._stop.wait(target.connection.trigger / 1e6)
                continue
            self._look(True)
            context = self._context(target)
            rows = self._decoded(source.columns, polled.rows, polled.alone)
            number = 0 if done is None else done.batch + 1
            self._commit(target, Batch("", number, rows, polled.position), context)

    def _context(self, target: Target) -> Context:
        """What the batch's defaults may ask, and the hold on the values that it brings."""
        dictionary = self._coordinator.engine.dictionary
        now, held = wall_clock() - POSTGRES_EPOCH, dictionary.generation
        state = SessionState(self._session, self._coordinator.engine.published.catalog)
        return Context(dictionary, (), now, now, "UTC", 0, state, hold=held)

    def _decoded(self, columns: Sequence[LoadColumn], table: pa.Table, alone: Callable[[], pa.Table]) -> Words:
        dictionary = self._coordinator.engine.dictionary
        rows = arrived_rows(table, columns, dictionary)
        if rows is None:
            rows = arrived_rows(alone(), columns, dictionary)
        assert rows is not None, "one task has one dictionary"
        return rows

    def _commit(self, target: Target, batch: Batch, context: Context) -> None:
        """The batch's transaction, begun on the event loop; it is durable on return."""
        future = asyncio.run_coroutine_threadsafe(self._write(target, batch, context), self._loop)
        while not future.done():
            wait([future], LOOK_SECONDS)
            if self._stop.is_set() and not self._loop.is_running():
                raise StoppedError
        future.result()
        self.status.failures = 0
        self.status.enter("running")

    async def _write(self, target: Target, batch: Batch, context: Context) -> Progress:
        keys = self._coordinator.keys
        transaction = Transaction(self._coordinator, context.now, explicit=False, single=True)
        return await transaction.write(lambda writer: ingest(writer, keys, context, target, batch))

    def _look(self, behind: bool) -> None:
        status = self.status
        if not behind:
            status.behind, status.failures = None, 0
            status.enter("running")
        elif status.behind is None:
            status.behind = wall_clock() - POSTGRES_EPOCH
