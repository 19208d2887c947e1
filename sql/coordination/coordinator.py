"""The single owner: opens the data folder, runs the engine thread, and gives sessions what they share."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from ivm.budget import NO_BUDGET, Budget
from ivm.errors import SqlError
from sql.coordination.advisory import AdvisoryLocks
from sql.coordination.hydration import Hydrators
from sql.coordination.idle import IdleMerging
from sql.coordination.notifications import Channels
from sql.coordination.prepared import Statements
from sql.coordination.recovery import restore
from sql.coordination.scattered import ScatteredViews
from sql.coordination.sinks import Sinks
from sql.coordination.sweeper import Sweeper
from sql.coordination.thread import EngineThread
from sql.coordination.transaction import WriteToken
from sql.dml.key_index import KeyIndex
from sql.engine.clock import EpochClock
from sql.engine.engine import Engine
from sql.engine.indexing import Wish
from sql.engine.persist import Persistence, Tuning
from sql.engine.scratch import remove_scratch, scratch_folder
from sql.engine.snapshot import Published
from storage.spark.session import SparkSession, SparkSettings

if TYPE_CHECKING:
    from sql.session.session import Session
    from sql.session.sources import Sources

T = TypeVar("T")
READERS: Final = 8
SWITCH_SECONDS: Final = 0.0005
"""How long a Python thread may keep the interpreter while the engine waits for it: part of a commit's p99."""
COLLECT: Final = (10_000, 20, 20)
"""Objects, and collections, between collections of garbage: by Python's own figures these are half of what it costs to
parse and bind a long list of VALUES."""
DEFAULT_MEMORY: Final = 1 << 30
ALONE_SECONDS: Final = 0.05
"""For how long no other session must have run a statement for one to count as alone."""


def _half_of_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


class Coordinator:
    """Everything that sessions share. ``files``: the folders that COPY FROM 'path' may read.

    ``places``: the folders and URIs that sinks and COPY TO may write under.
    ``budget``: what intermediate results may take. ``python``: whether clients may create aggregates in Python.
    ``spark``: the server's one Spark session, which starts when it is first needed.
    """

    def __init__(
        self, engine: Engine, files: tuple[Path, ...] = (), budget: Budget = NO_BUDGET, python: bool = False,
        spark: SparkSettings | None = None, places: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.engine = engine
        self.budget = budget
        self.files = files
        self.python = python
        self.places = places
        self.advisory = AdvisoryLocks()
        self.channels = Channels()
        self.keys = KeyIndex(engine)
        self.token = WriteToken()
        self.statements = Statements()
        self.readers = ThreadPoolExecutor(READERS, "reader")
        self.hydrators = Hydrators()
        self.sessions: set[Session] = set()
        self._temporary = 1 << 40
        self._latest: Session | None = None
        self._alone_from = 0.0
        self._wished: set[Wish] = set()
        self._spark_settings = spark
        self._spark: SparkSession | None = None
        self.sources: Sources | None = None
        """Set by themselves when they begin to run."""
        self.merging = IdleMerging(self)
        self._thread = EngineThread(
            asyncio.get_running_loop(), engine.flush, engine.dataflow.cancel, self.merging.rest
        )  # fmt: skip
        self._thread.start()
        self.sweeper = Sweeper(self)
        self.sinks = Sinks(self)
        self.scattered = ScatteredViews(self)

    @classmethod
    async def open(
        cls,
        folder: Path,
        memory: int | None = None,
        files: tuple[Path, ...] = (),
        progress: Callable[[str], None] = lambda _: None,
        tuning: Tuning | None = None,
        python: bool = False,
        spark: SparkSettings | None = None,
        places: tuple[str, ...] = (),
    ) -> Coordinator:
        """Opens (or makes) a data folder and brings its state back. SqlError 55006, XX001.

        ``memory``: bytes that the store may take, and intermediate results (half of the machine's where it is not
        said).
        """
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.set_threshold(*COLLECT)
        persistence = Persistence.open(folder, memory or DEFAULT_MEMORY, tuning)
        clock = EpochClock(folder / "lease")
        budget = Budget(memory or _half_of_memory())
        engine = await asyncio.to_thread(restore, persistence, clock, progress, budget)
        await asyncio.to_thread(remove_scratch, engine, spark)
        return cls(engine, files, budget, python, spark, places)

    def queue(self, work: Callable[[], T], keep: bool = False) -> Awaitable[T]:
        """Queue a job for the engine thread at once; done when its group is durable and published.

        ``keep``: it runs whatever happens to the caller.
        """
        return self._thread.wait(self._thread.queue(work, keep))

    def start(self, work: Callable[[], object]) -> None:
        """Queue a job that nobody waits for."""
        self._thread.queue(work, keep=True)

    @property
    def idle(self) -> bool:
        """Whether the event loop, which asks, may use the engine itself until it awaits."""
        return self._thread.idle

    def note(self, session: Session) -> None:
        """A session runs a statement."""
        if session is not self._latest:
            self._latest, self._alone_from = session, monotonic() + ALONE_SECONDS

    @property
    def alone(self) -> bool:
        """``idle``, and the session whose statement runs has been the only one lately: nobody's commit could join its
        group, and nobody waits while the event loop is held up."""
        return self._thread.idle and monotonic() > self._alone_from

    def end_here(self, result: T, keep: bool = False) -> Awaitable[T]:
        """End the group of a commit that the caller, the event loop, has made itself while the engine was ``idle``."""
        return self._thread.wait(self._thread.begin(result, keep))

    def between(self, work: Callable[[], None]) -> None:
        """Short work on the engine while it is ``idle``, by the event loop, which calls."""
        self._thread.between(work)

    async def submit(self, work: Callable[[], T]) -> T:
        """Run a job on the engine thread."""
        return await self.queue(work)

    async def autocommit(self, work: Callable[[], T], here: Callable[[], Awaitable[T] | None] | None = None) -> T:
        """A job that is a whole transaction: it waits its turn for the write token, and is queued at once.

        ``here``: tries the same on the event loop's thread where nobody else is about; None: it takes too long.
        """
        await self.token.enter()
        try:
            done = here() if here is not None and self.alone else None
            if done is None:
                done = self.queue(work)
        finally:
            self.token.leave()
        return await done

    async def read(self, work: Callable[[], T], cancel: threading.Event) -> T:
        """Run a read on a reader thread; ``cancel`` is set when the caller is cancelled."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self.readers, work)
        except asyncio.CancelledError:
            cancel.set()
            raise

    async def published_at_least(self, epoch: int) -> Published:
        """A state that has everything up to ``epoch``, which is not in the future; later commits lie above it."""
        if epoch <= self.engine.published.epoch:
            return self.engine.published
        engine = self.engine

        def observe() -> None:
            engine.flush()
            engine.clock.observe(epoch)

        await self.submit(observe)
        return engine.published

    def arrange(self, wishes: tuple[Wish, ...]) -> None:
        """Have the engine make arrangements when it gets to it; the caller does not wait."""
        new = [w for w in wishes if w not in self._wished]
        if not new:
            return
        self._wished.update(new)

        def make() -> None:
            self.engine.flush()
            self.engine.arrange(tuple(new))
            self.engine.republish()

        async def later() -> None:
            await self.autocommit(make)

        self._arranging = asyncio.ensure_future(later())

    def spark(self) -> SparkSession:
        """The server's one Spark session."""
        if self._spark is None:
            self._spark = SparkSession(self._own_folder())
        return self._spark

    @property
    def shared(self) -> Path | None:
        """The folder that executors share with this server, and perhaps with others; None: it is not said."""
        return None if self._spark_settings is None else self._spark_settings.shared

    def _own_folder(self) -> SparkSettings:
        """A folder of this server's own inside the shared one, or of its data where there is none."""
        settings = self._spark_settings or SparkSettings()
        scratch = scratch_folder(self.engine, settings)
        if scratch is None:
            return settings
        scratch.mkdir(parents=True, exist_ok=True)
        return replace(settings, shared=scratch)

    def clean_up(self, work: Callable[[], None]) -> None:
        """Queue a job that nobody waits for; a server that ends needs it no more."""
        with suppress(SqlError):
            self.start(work)

    def temporary_id(self) -> int:
        """An id for a relation that only a running subscription knows."""
        self._temporary += 1
        return self._temporary

    async def close(self) -> None:
        """A clean end: what was queued is committed, the store is brought up to date where there is time for it."""
        if self.sources is not None:
            await self.sources.close()
        for session in list(self.sessions):
            await session.close()
        self.hydrators.close()
        await self.sinks.close()
        await self.scattered.close()
        await self.sweeper.close()
        stopped = await asyncio.to_thread(self._stop)
        self.merging.stop()
        if self._spark is not None:
            await asyncio.to_thread(self._spark.stop)
            remove_scratch(self.engine, self._spark_settings)
        await asyncio.to_thread(self.scattered.wait)
        self.readers.shutdown(wait=False, cancel_futures=True)
        if stopped:
            await asyncio.to_thread(self._close_storage)

    def _stop(self) -> bool:
        """Ends the engine thread, interrupting a loop that does not end by itself; the log has what is acknowledged."""
        if self._thread.stop(1.5):
            return True
        self.engine.dataflow.cancel.set()
        return self._thread.stop(1.5)

    def _close_storage(self) -> None:
        self.engine.rest_sequences()
        self.engine.close()
        self.engine.clock.close()
        if self.engine.persistence is not None:
            self.engine.persistence.close()
