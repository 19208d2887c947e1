"""Runs sweeps of the dictionary: on VACUUM, and when the dictionary has grown."""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from ivm.errors import SqlError
from sql.coordination.jobs import Jobs
from sql.engine.sweeping import Sweeping

T = TypeVar("T")
GROWTH: Final = 2
"""A sweep is due when the values, or their bytes, are this many times what the last sweep left."""
LEAST_VALUES: Final = 1 << 17
LEAST_BYTES: Final = 1 << 26
LOOK_SECONDS: Final = 2.0
AGAIN_SECONDS: Final = 0.02
QUIET_BYTES: Final = 1 << 23
"""A sweep is due, too, when so many bytes of values, and an eighth of those in use, were added since the last one began
and no more are added: what was stopped has left them behind."""
RELEASE_SECONDS: Final = 0.5
"""How long VACUUM waits for readers that hold dead values. The sweep is finished in the background afterwards."""


@dataclass(frozen=True, slots=True)
class Swept:
    """The dictionary after the last sweep (or the start), and the number of sweeps."""

    values: int
    nbytes: int
    sweeps: int = 0
    found: int = 0
    """The total number of values removed."""


class Sweeper:
    """Runs one sweep at a time. Everything but the long parts of ``Sweeping`` runs on the event loop."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._arena = jobs.engine.dictionary.arena
        self._turns = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "sweeper")
        self._current: Sweeping | None = None
        self._pending: Sweeping | None = None
        """A sweep whose dead values readers still hold."""
        self.last = Swept(len(self._arena), self._arena.byte_size)
        self._looked = 0
        self._quiet = True
        self._seen = self._kept = self._arena.filled
        """``Arena.filled`` when the last sweep began, and what it has found in use; 0 if that may be left behind."""
        self._watching = asyncio.ensure_future(self._watch())

    @property
    def due(self) -> bool:
        """Whether the dictionary has grown enough since the last sweep."""
        arena, last = self._arena, self.last
        many = len(arena) > max(LEAST_VALUES, GROWTH * last.values)
        return many or arena.byte_size > max(LEAST_BYTES, GROWTH * last.nbytes)

    async def sweep(self, full: bool = False) -> None:
        """Run one whole sweep. Dead values that readers hold are removed later. SqlError: the store refuses."""
        await self._sweep(full, False)

    async def _sweep(self, full: bool, quiet: bool) -> None:
        """``quiet``: nothing else goes on that may leave values behind, or that a checkpoint would delay."""
        async with self._turns:
            sweeping = self._current = Sweeping(self._jobs.engine, full)
            try:
                await self._find(sweeping, quiet)
            except asyncio.CancelledError:
                sweeping.stop.set()
                raise
            finally:
                self._current = None
            self._pending = sweeping
            self._quiet = quiet
            await self._release(RELEASE_SECONDS)

    async def _find(self, sweeping: Sweeping, quiet: bool) -> None:
        """A cancel leaves what lives as it is until values are declared dead; that goes on to its end."""
        jobs = self._jobs
        await self._beside(sweeping.catch_up)
        while await self._unless_cancelled(jobs.autocommit(sweeping.compact)):
            pass
        while not await self._unless_cancelled(jobs.submit(sweeping.begin)):
            await asyncio.sleep(AGAIN_SECONDS)
        self._seen = self._arena.filled
        await self._beside(sweeping.mark)
        if sweeping.stop.is_set():
            raise SqlError("57P01", "the server is shutting down")
        while await jobs.queue(sweeping.condemn, keep=True):
            pass
        await jobs.autocommit(sweeping.conclude)
        persistence = jobs.engine.persistence
        if persistence is not None and sweeping.found:
            await self._beside(partial(persistence.flush, quiet))

    async def _unless_cancelled(self, job: Awaitable[T]) -> T:
        """A job's result. A cancel that came too late for the job takes effect after it."""
        task = asyncio.current_task()
        assert task is not None
        before = task.cancelling()
        result = await job
        if task.cancelling() > before:
            raise asyncio.CancelledError
        return result

    async def _release(self, seconds: float) -> None:
        """Free the memory of dead values as soon as nobody holds them, waiting this many seconds at most."""
        sweeping = self._pending
        assert sweeping is not None
        until = asyncio.get_running_loop().time() + seconds
        while not sweeping.released:
            if asyncio.get_running_loop().time() >= until:
                if seconds:
                    gc.collect()  # a holder may be garbage that has not been collected yet
                if not sweeping.released:
                    return
            await asyncio.sleep(AGAIN_SECONDS)
        added = self._arena.filled - self._seen
        await self._beside(sweeping.drop)
        await self._jobs.submit(sweeping.end)
        await self._beside(sweeping.forget)
        self._pending = None
        last, arena = self.last, self._arena
        self.last = Swept(len(arena), arena.byte_size - added, last.sweeps + 1, last.found + sweeping.found)
        self._kept = arena.filled - added if self._quiet else 0

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._look()
            except SqlError:
                continue  # the store refuses writes for now
            except Exception:
                traceback.print_exc()  # a bug; the next attempt may succeed

    async def _look(self) -> None:
        if self._pending is not None and not self._turns.locked():
            async with self._turns:
                if self._pending is not None:
                    await self._release(0)
        elif (left := self._left_behind()) or (self.due and self._pending is None):
            await self._sweep(False, left)
        elif self._arena.outgrown and not self._turns.locked():
            sweeping = Sweeping(self._jobs.engine)
            await self._jobs.submit(sweeping.start_generation)
            await self._beside(sweeping.forget)

    def _left_behind(self) -> bool:
        """Whether many values have been added, but none since the last look."""
        looked, self._looked = self._looked, self._arena.filled
        least = self._kept + max(QUIET_BYTES, self._kept >> 3)  # a sweep costs what is kept
        return self._pending is None and looked == self._looked > least

    async def _beside(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """Stop a running sweep and wait for its thread."""
        if self._current is not None:
            self._current.stop.set()
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        self._thread.shutdown(wait=True, cancel_futures=True)
