"""The root object of one database: opens its folder, starts the services, and holds what its sessions share."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from ivm.budget import NO_BUDGET, Budget
from ivm.errors import SqlError
from sql.admission.gate import Gate
from sql.coordination.advisory import AdvisoryLocks
from sql.coordination.collecting import bound_collections
from sql.coordination.databases import Databases
from sql.coordination.depth import allow_depth
from sql.coordination.followers import Followers
from sql.coordination.hydration import Hydrators
from sql.coordination.jobs import Jobs
from sql.coordination.notifications import Channels
from sql.coordination.planning import Planning
from sql.coordination.prepared import Statements
from sql.coordination.recovery import restore
from sql.coordination.refilling import Refills
from sql.coordination.scattered import ScatteredViews
from sql.coordination.sessions import OpenSession
from sql.coordination.shapes import Shapes
from sql.coordination.sinks import Services, Sinks
from sql.coordination.source_status import SourceStatus
from sql.coordination.spark import SharedSpark
from sql.coordination.sweeper import Sweeper
from sql.dml.key_index import KeyIndex
from sql.engine.clock import EpochClock
from sql.engine.engine import Engine
from sql.engine.persist import Persistence, Tuning
from sql.engine.scratch import remove_scratch
from sql.settings.limits import MOST_SESSIONS
from storage.outbound import Reach
from storage.secrets import Secrets, absent
from storage.spark.session import SparkSettings

T = TypeVar("T")
READERS: Final = 8
SWITCH_SECONDS: Final = 0.0005
"""Python's thread switch interval while the engine waits for the interpreter: part of a commit's p99."""
DEFAULT_MEMORY: Final = 1 << 30
_NUMBERS = itertools.count()


def _half_of_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


class Coordinator:
    """The state shared by all sessions. ``files``: the folders that COPY FROM 'path' may read; ``reach`` has the hosts
    too.

    ``places``: the folders and URIs that sinks and COPY TO may write under. ``budget``: the limit of intermediate
    results. ``python``: whether clients may create aggregates in Python. ``spark``: the settings of Spark.
    """

    def __init__(
        self, engine: Engine, files: tuple[Path, ...] = (), budget: Budget = NO_BUDGET, python: bool = False,
        spark: SparkSettings | None = None, places: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.number = next(_NUMBERS)
        """Another one for each database that this process has opened."""
        self.engine = engine
        self.budget = budget
        self.reach = Reach(files)
        self.secrets: Secrets | None = None
        self.python = python
        self.places = places
        self.channels = Channels()
        self.keys = KeyIndex(engine)
        self.statements = Statements()
        self.shapes = Shapes(self.statements)
        self.planning = Planning(budget)
        self.readers = ThreadPoolExecutor(READERS, "reader")
        self.sessions: set[OpenSession] = set()
        self.most_sessions = MOST_SESSIONS
        self.closing: list[Callable[[], Awaitable[None]]] = []
        """Called first when the server shuts down; services on top of the coordinator register their shutdown here."""
        self.sources: Mapping[int, SourceStatus] | None = None
        """The status of each running source, by its relation's id; None if this server runs no sources."""
        self.gate: Gate | None = None
        """Who may connect; None on a server that does not listen."""
        self.databases: Databases | None = None
        """All of the server's; None if this one is alone."""
        self._temporary = 1 << 40
        self.jobs = Jobs(engine)
        self.advisory = AdvisoryLocks(self.jobs.unlocked)
        self.followers = Followers(engine, lambda: self.jobs.pending > 0)
        self.jobs.telling = lambda: self.followers.telling
        self.jobs.goes_on = self.followers.give_way
        self.spark = SharedSpark(engine, spark)
        self.hydrators = Hydrators(self.jobs)
        self.refills = Refills(self.jobs, self.hydrators, self.readers)
        self.sweeper = Sweeper(self.jobs)
        self.scattered = ScatteredViews(self.jobs, self.spark)
        self.sinks = Sinks(Services(engine, self.spark, self.scattered, places))

    def reveal(self, name: str) -> str:
        """The text of a secret. Raises 42704."""
        if self.secrets is None:
            raise absent(name)
        return self.secrets.value(name)

    @property
    def files(self) -> tuple[Path, ...]:
        return self.reach.folders

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
        safe: bool = False,
        budget: Budget | None = None,
    ) -> Coordinator:
        """Open (or create) a data folder and restore its state. SqlError 55006, XX001.

        ``memory``: the bytes that the store may use, and the same again for intermediate results. None: 1 GiB for the
        store, and half of the machine's memory for intermediate results. ``safe``: views are left down. ``budget``:
        that of another database, to share.
        """
        sys.setswitchinterval(SWITCH_SECONDS)
        allow_depth()
        bound_collections()
        persistence = Persistence.open(folder, memory or DEFAULT_MEMORY, tuning)
        clock = EpochClock(folder / "lease")
        budget = budget or Budget(memory or _half_of_memory())
        try:
            engine = await asyncio.to_thread(restore, persistence, clock, progress, budget, safe)
        except BaseException:
            with suppress(SqlError):
                await asyncio.to_thread(persistence.close)
            raise
        await asyncio.to_thread(remove_scratch, engine, spark)
        coordinator = cls(engine, files, budget, python, spark, places)
        coordinator.refills.start(progress)
        return coordinator

    def everybody(self) -> Sequence[OpenSession]:
        """The sessions of all databases of the server."""
        return tuple(self.sessions) if self.databases is None else self.databases.sessions

    async def read(self, work: Callable[[], T], cancel: threading.Event) -> T:
        """Run a read on a reader thread. ``cancel`` is set when the caller is cancelled."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self.readers, work)
        except asyncio.CancelledError:
            cancel.set()
            raise

    def temporary_id(self) -> int:
        """An id for a relation that only one running subscription knows."""
        self._temporary += 1
        return self._temporary

    async def close(self) -> None:
        """Orderly end: queued jobs are committed, and the store is brought up to date if there is time for it."""
        for close in self.closing:
            await close()
        for session in list(self.sessions):
            await session.close()
        await self.refills.close()
        self.hydrators.close()
        await self.sinks.close()
        await self.scattered.close()
        await self.sweeper.close()
        stopped = await asyncio.to_thread(self.jobs.stop)
        self.jobs.merging.stop()
        self.jobs.moments.stop()
        await asyncio.to_thread(self.spark.stop)
        await asyncio.to_thread(self.scattered.wait)
        self.readers.shutdown(wait=False, cancel_futures=True)
        if stopped:
            await asyncio.to_thread(self._close_storage)

    def _close_storage(self) -> None:
        self.engine.rest_sequences()
        self.engine.close()
        self.engine.clock.close()
        if self.engine.persistence is not None:
            self.engine.persistence.close()
