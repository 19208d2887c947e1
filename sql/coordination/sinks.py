"""The running sinks: each follows its view in the store and writes its changes.

A sink reads the store and not the dataflow. The store's contents are durable, consist of whole epochs, and are kept as
long as the sink needs them (``Persistence.holds``), so that a sink continues seamlessly after a restart. No commit ever
waits for a sink. What a sink has written is defined by the last entry of its change log alone.
"""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import SqlError
from sql.catalog.catalog import Catalog, Relation, RelationKind
from sql.catalog.sink import Sink, sink_of, source_of
from sql.coordination.scattered import ScatteredViews
from sql.coordination.sink_sources import ScatteredSource, SinkSource, StoredSource
from sql.coordination.spark import SharedSpark
from sql.ddl.sinks import check_source, layout_of
from sql.engine.engine import Engine
from sql.engine.group import Delta
from sql.engine.guard import LeftError, ParkedError
from sql.engine.retries import pause_after
from sql.engine.snapshot import Published
from storage.duck import Store
from storage.sinks.envelope import SinkLayout
from storage.sinks.folder import FolderTarget
from storage.sinks.manifest import Entry, EntryKind, SinkFile, Totals
from storage.sinks.spark import SparkTarget
from storage.sinks.target import OutputBlock, SinkTarget, stem_of, writable_path, writable_uri
from storage.types.type_names import format_type

THREADS: Final = 4
PROGRESS_SECONDS: Final = 30.0
"""The least time between two entries that only record progress."""
LEAST_PAUSE: Final = 0.005
FIRST_PAUSE: Final = 0.5
END_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """A sink's status. ``epoch``: everything up to it is written. ``state``: starting, running, waiting or error."""

    state: str = "starting"
    last: Entry | None = None
    epoch: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Services:
    """Services for sinks. ``places``: the folders and URIs that they may write under."""

    engine: Engine
    spark: SharedSpark
    scattered: ScatteredViews
    places: tuple[str, ...]


class Sinks:
    """The catalog's sinks. They write on a few shared threads; everything else runs on the event loop."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(THREADS, "sink")
        self._running: dict[int, _Run] = {}
        self._seen: Catalog = services.engine.catalog
        services.engine.listeners.append(self._listen)
        self._follow(self._seen)

    def status(self, sink: int) -> SinkStatus:
        """The status of one sink."""
        running = self._running.get(sink)
        return SinkStatus() if running is None else running.status

    def _listen(self, delta: Delta, published: Published) -> None:
        del delta
        if published.catalog is not self._seen:
            self._seen = published.catalog
            self._loop.call_soon_threadsafe(self._follow, published.catalog)

    def _follow(self, catalog: Catalog) -> None:
        """Start new sinks, end dropped ones, wake altered ones."""
        sinks = {i: r for i, r in catalog.relations.items() if r.kind is RelationKind.SINK}
        for gone in self._running.keys() - sinks.keys():
            self._running.pop(gone).end()
            if (persistence := self._services.engine.persistence) is not None:
                persistence.holds.pop(gone, None)
        for id_, relation in sinks.items():
            if id_ not in self._running:
                self._running[id_] = _Run(self._services, relation, self._threads)
            else:
                self._running[id_].alter(relation)

    async def close(self) -> None:
        """End all sinks. A file that is being written is abandoned, and written again after the next start."""
        running = list(self._running.values())
        for run in running:
            run.end()
        if running:
            await asyncio.wait([r.task for r in running], timeout=END_SECONDS)
        for run in running:
            run.task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Run:
    """One sink, from its creation (or the server's start) to its end."""

    def __init__(self, services: Services, relation: Relation, threads: ThreadPoolExecutor) -> None:
        self._services = services
        self._threads = threads
        self._relation = relation
        self._spark = services.spark.session() if sink_of(relation).spark else None
        self._wake = asyncio.Event()
        self._stop = threading.Event()
        self._target: SinkTarget | None = None
        """None until it is opened, and after an error."""
        self._committed = 0.0
        self._failures = 0
        self.status = SinkStatus()
        self.task = asyncio.ensure_future(self._go_on())

    def alter(self, relation: Relation) -> None:
        """Apply the definition, which may have changed."""
        if relation.connection != self._relation.connection or relation.dependencies != self._relation.dependencies:
            self._relation = relation
            self._wake.set()

    def end(self) -> None:
        """End the sink soon."""
        self._stop.set()
        self._wake.set()

    async def _go_on(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._stop.is_set():
            self._wake.clear()
            sink = sink_of(self._relation)
            pause = max(sink.every / 1e6, LEAST_PAUSE)
            if not sink.paused:
                try:
                    await loop.run_in_executor(self._threads, self._advance, self._relation)
                    self._failures = 0
                except Exception as error:  # of the disk, of Spark, or a bug: shown as the sink's error, and retried
                    if self._stop.is_set():
                        return
                    self._record_error(error)
                    self._failures += 1
                    pause = pause_after(self._failures, FIRST_PAUSE)
            try:
                await asyncio.wait_for(self._wake.wait(), pause)
            except TimeoutError:
                continue

    def _record_error(self, error: Exception) -> None:
        self._target = None
        if not isinstance(error, SqlError):
            traceback.print_exception(error)
            error = SqlError("XX000", f"{type(error).__name__}: {error}")
        parts = (f"{error.sqlstate}: {error.message}", error.detail, error.hint)
        self.status = replace(self.status, state="error", error=" ".join(p for p in parts if p))

    def _advance(self, relation: Relation) -> None:
        """On a thread: write what the store has and the sink has not written yet."""
        engine, sink = self._services.engine, sink_of(relation)
        persistence = engine.persistence
        if persistence is None:
            return
        target = self._target or self._opened(sink)
        stored, published = persistence.store.committed(), engine.published
        source = published.catalog.relations.get(source_of(relation))
        if source is None:
            return
        check_source(source)
        changes = self._changes(source, persistence.store, stored, published)
        if changes is None or changes.upto < max(source.created, relation.created):
            return
        upto = changes.upto
        if (error := changes.error(engine.dictionary)) is not None:
            if isinstance(error, ParkedError) and not isinstance(error, LeftError):
                return  # it is back soon
            self.status = replace(self.status, state="waiting", error=_waits(error, source))
            return
        round_ = _Round(engine, relation, sink, source, changes, target, self._stop)
        last, seen = self.status.last, self.status.epoch or 0
        before = last
        if last is None or not round_.goes_on(last):
            last = round_.begin(last, upto)
            seen = last.upto
        elif last.upto > published.epoch:
            raise _ahead(last, published)
        last = round_.follow(last, max(seen, last.upto), upto, self._is_late())
        if last is not before:
            self._committed = time.monotonic()
        persistence.holds[relation.id] = last.upto
        self.status = SinkStatus("running", last, max(upto, last.upto))

    def _changes(self, source: Relation, store: Store, upto: int, published: Published) -> SinkSource | None:
        """The changes to read; None: none yet."""
        if not source.parts:
            return StoredSource(store, source.id, upto, published)
        among = self._services.scattered.among([source.id])
        served, upto = among[0].current if among else (None, 0)
        return None if served is None else ScatteredSource(among[0], served, upto)

    def _is_late(self) -> bool:
        return time.monotonic() - self._committed > PROGRESS_SECONDS

    def _opened(self, sink: Sink) -> SinkTarget:
        places = self._services.places
        target: SinkTarget
        if self._spark is not None:
            uri = sink.uri if "://" in sink.uri else writable_path(sink.uri, places).as_uri()
            if not uri.startswith("file:"):
                uri = writable_uri(uri, places)
            target = SparkTarget(self._spark, uri, sink.format)
        else:
            target = FolderTarget(writable_path(sink.uri, places), sink.format)
        last = target.open(sink.owner)
        self._target = target
        self._committed = time.monotonic()
        self.status = replace(self.status, last=last, epoch=None if last is None else last.upto)
        return target


@dataclass(frozen=True, slots=True)
class _Round:
    """One pass over the store."""

    engine: Engine
    relation: Relation
    sink: Sink
    source: Relation
    changes: SinkSource
    target: SinkTarget
    stop: threading.Event

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the relation's columns now."""
        return tuple(c.name for c in self.source.columns)

    def goes_on(self, last: Entry) -> bool:
        """Whether the next entry belongs to the same generation: same columns, and no RESTART since."""
        same = (last.relation, last.columns) == (self.source.id, self.columns)
        return same and last.restarts == self.sink.restarts

    def begin(self, last: Entry | None, upto: int) -> Entry:
        """Begin a new generation with all rows, or (SNAPSHOT = false) with none."""
        layout = layout_of(self.sink, self.source)
        version, generation = (0, 1) if last is None else (last.version + 1, last.generation + 1)
        whole = self.sink.snapshot or (last is not None and last.restarts != self.sink.restarts)
        start = upto if whole else max(self.relation.created, self.source.created) - 1
        first = Entry(
            self.sink.owner, version, generation, EntryKind.SNAPSHOT if whole else EntryKind.START, start, start,
            self.source.id, self.sink.restarts, self.columns,
            layout=_description(self.relation, self.source, self.sink, layout),
        )  # fmt: skip
        if whole:
            files = self.target.write(stem_of(generation, None, start), layout, self._parts(layout, None, start))
            first = replace(first, files=files, totals=Totals().plus(files))
        elif start < self.changes.since:
            raise self._lost(start)
        self.target.commit(first)
        return first

    def follow(self, last: Entry, seen: int, upto: int, late: bool) -> Entry:
        """Write what changed after the last entry; nothing did up to ``seen``. ``late``: write an entry in any case."""
        if upto <= last.upto:
            return last
        files: tuple[SinkFile, ...] = ()
        if upto > seen:
            layout = layout_of(self.sink, self.source)
            stem = stem_of(last.generation, last.upto, upto)
            files = self.target.write(stem, layout, self._parts(layout, seen, upto))
        if not files and not late:
            return last
        kind = EntryKind.CHANGES if files else EntryKind.PROGRESS
        entry = replace(last, version=last.version + 1, kind=kind, after=last.upto, upto=upto, files=files,
                        totals=last.totals.plus(files), layout={})  # fmt: skip
        self.target.commit(entry)
        return entry

    def _parts(self, layout: SinkLayout, after: int | None, upto: int) -> Iterator[OutputBlock]:
        engine, snapshot = self.engine, after is None
        hold = engine.dictionary.generation  # taken before words are read, to keep their values
        try:
            for changes in layout.grouped(self.changes.read(after, upto, layout)):
                if self.stop.is_set():
                    raise SqlError("57P01", "the sink is ending")
                scratch = engine.dictionary.scratch()
                yield OutputBlock(changes, layout.fields(changes, snapshot, scratch), scratch)
        except SqlError as error:
            if error.sqlstate in ("22023", "42P01") and after is not None:
                raise self._lost(after) from error
            raise
        finally:
            del hold

    def _lost(self, after: int) -> SqlError:
        name = self.source.name
        return SqlError(
            "55000", f'the history of "{name}" after {after} is not kept any more',
            f"It is kept from {self.changes.since} on: the sink was behind for longer than its RETAIN HISTORY, or the "
            "view was down.",
            f"ALTER SINK {self.relation.name} RESTART writes all rows anew, as another generation.",
        )  # fmt: skip


def _description(relation: Relation, source: Relation, sink: Sink, layout: SinkLayout) -> dict[str, object]:
    """The description of a generation's files, for its first entry."""
    columns = [{"name": c.name, "type": format_type(c.type), "nullable": c.nullable} for c in source.columns]
    key = [source.columns[i].name for i in layout.key]
    names = {"sink": f"{relation.schema_name}.{relation.name}", "from": f"{source.schema_name}.{source.name}"}
    return {**names, "format": sink.format.value, "envelope": sink.envelope.value, "key": key, "columns": columns}


def _waits(error: SqlError, source: Relation) -> str:
    """The message shown while the view's rows are unknown."""
    return f"{error.sqlstate}: {error.message} (in {source.name}); the sink goes on when it has healed"


def _ahead(last: Entry, published: Published) -> SqlError:
    return SqlError(
        "55000", f"the sink's folder has changes up to {last.upto}, and this database only up to {published.epoch}",
        "The data folder may have been restored from an older copy.", "ALTER SINK … RESTART begins anew.",
    )  # fmt: skip
