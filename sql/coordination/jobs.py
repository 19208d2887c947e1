"""The engine and the jobs of its thread: how sessions and background services use the engine.

Nothing else touches the engine's state. A caller passes a function, which runs on the engine thread, or on the event
loop's thread while the engine thread is idle.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Final, TypeVar

from ivm.errors import SqlError
from sql.coordination.idle import IdleMerging
from sql.coordination.moments import MomentTimer
from sql.coordination.planning import SHOWN_CHARACTERS
from sql.coordination.stalls import Stalls
from sql.coordination.thread import RUNNING_STATEMENT, EngineThread, Job
from sql.coordination.waits import Waits
from sql.engine.engine import Engine
from sql.engine.indexing import Wish
from sql.engine.row_locks import LockOwner, Target
from sql.engine.snapshot import Published

T = TypeVar("T")
ALONE_SECONDS: Final = 0.005
"""A session is alone when no other session has run a statement for this long."""
STOP_SECONDS: Final = 1.5


class Jobs:
    """Queues jobs for the engine thread. Made and used on the event loop."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.waits = Waits(engine)
        self.exported: dict[str, Published] = {}
        """The snapshots that transactions have exported, by their names, until they end (pg_export_snapshot)."""
        self._loop = asyncio.get_running_loop()
        self._thread = EngineThread(
            self._loop, engine.flush, engine.dataflow.cancel, self._answered, engine.dataflow.budget
        )
        engine.meanwhile = self._meanwhile
        engine.watch.others_wait = lambda: self._thread.waited_for
        self.merging = IdleMerging(self._thread, engine.dataflow)
        self.stalls = Stalls(engine, self._thread)
        self.moments = MomentTimer(engine, self.autocommit)
        self._latest = -1
        self._number = 0
        self._numbering = threading.Lock()
        self.telling: Callable[[], bool] = lambda: False
        """Whether the event loop is telling subscribers of changes."""
        self.goes_on: Callable[[], None] = lambda: None
        """Called when a client's statement has come, and when its job has ended."""
        self._latest_at = 0.0
        """When the latest session has run its last statement so far."""
        self._alone_from = 0.0
        self._wished: set[Wish] = set()
        self._thread.start()
        self.moments.look()

    def next_number(self) -> int:
        """A number that no transaction has had; not before any epoch that has been published. On any thread."""
        with self._numbering:
            self._number = max(self._number + 1, self.engine.published.epoch)
            return self._number

    def _answered(self) -> None:
        self.goes_on()
        self.waits.look()
        self.merging.rest()
        self.moments.look()

    @contextmanager
    def _meanwhile(self) -> Iterator[None]:
        """While a group becomes durable: those who wait for its locks go on, whose own commits come after it in the log
        (early lock release: DeWitt and others, Implementation techniques for main memory database systems, 1984)."""
        if self.engine.released:
            self._loop.call_soon_threadsafe(self.waits.look)
        with self._thread.meanwhile():
            yield

    def unlocked(self, target: Target) -> None:
        """Others may take what a session held. On any thread."""
        if self.waits.is_waited_for(target):
            self.engine.released.append(target)
            self._loop.call_soon_threadsafe(self.waits.look)

    def queue(self, work: Callable[[], T], keep: bool = False, firm: bool = False) -> Awaitable[T]:
        """Queue a job at once. Its result comes when the job's group is durable and published.

        ``keep``: the job runs even if the caller is cancelled. ``firm``: a cancel ends its work, but not its group's
        step.
        """
        return self._thread.wait(self._thread.queue(work, keep, firm))

    async def submit(self, work: Callable[[], T]) -> T:
        """Run a job on the engine thread."""
        return await self.queue(work)

    def start(self, work: Callable[[], object]) -> None:
        """Queue a job without waiting for it."""
        self._thread.queue(work, keep=True)

    def clean_up(self, work: Callable[[], None]) -> None:
        """As ``start``, for work that a server which is shutting down may skip."""
        with suppress(SqlError):
            self.start(work)

    @property
    def pending(self) -> int:
        """The number of jobs that have not been answered yet."""
        return self._thread.pending

    @property
    def waited_for(self) -> bool:
        """See ``EngineThread.waited_for``."""
        return self._thread.waited_for

    @contextmanager
    def lent(self, ident: Callable[[], int | None]) -> Iterator[None]:
        """While another thread, given by its identifier, does a job of the engine thread."""
        self._thread.lent = ident
        try:
            yield
        finally:
            self._thread.lent = None

    def overstays(self, seconds: float) -> bool:
        """See ``EngineThread.overstays``."""
        return self._thread.overstays(seconds)

    @property
    def idle(self) -> bool:
        """Whether every job has been answered. The event loop may then use the engine itself until it next awaits."""
        return self._thread.idle

    def borrow(self) -> bool:
        """See ``EngineThread.borrow``."""
        return self._thread.borrow()

    def give_back(self) -> None:
        """See ``EngineThread.give_back``."""
        self._thread.give_back()

    @property
    def alone(self) -> bool:
        """``idle``, and only one session has run statements lately: no other commit could then join this one's group,
        and nobody waits while the event loop runs it. Or the event loop tells subscribers of changes, and the engine
        thread would have to share the interpreter with that.
        """
        return self._thread.idle and (monotonic() > self._alone_from or self.telling())

    def record_statement(self, backend: int, text: str) -> None:
        """Record that a session, given by its backend id, runs a statement."""
        self.goes_on()
        RUNNING_STATEMENT.set(text[:SHOWN_CHARACTERS])
        if backend != self._latest:
            self._latest, self._alone_from = backend, self._latest_at + ALONE_SECONDS
        self._latest_at = monotonic()

    def begin(self, result: T, keep: bool = False) -> Job[T]:
        """End the group of a commit that the event loop itself made while the engine thread was ``idle``. The job is
        done if that took no longer than a moment."""
        return self._thread.begin(result, keep)

    async def wait(self, job: Job[T]) -> T:
        """The result of a job that was begun."""
        return await self._thread.wait(job)

    async def end_here(self, result: T, keep: bool = False) -> T:
        """``begin`` and ``wait``."""
        return await self.wait(self.begin(result, keep))

    async def autocommit(
        self,
        work: Callable[[], T],
        here: Callable[[], Awaitable[T] | None] | None = None,
        owner: LockOwner | None = None,
        patience: int = 0,
    ) -> T:
        """Run a job that is a whole transaction, over committed state. It waits for the locks of other transactions,
        for ``patience`` milliseconds at most (0: any time).

        ``here``: does the same on the event loop's thread if this session is ``alone``; returns None if that would take
        too long.
        """

        def alone() -> T:
            self.engine.make_room()
            return work()

        async def run() -> T:
            done = here() if here is not None and self.alone else None
            return await (self.queue(alone) if done is None else done)

        return await self.waits.attempt(run, LockOwner() if owner is None else owner, patience)

    async def published_at_least(self, epoch: int) -> Published:
        """A published state that covers ``epoch``, which is not in the future. Later commits get later epochs."""
        if epoch <= self.engine.published.epoch:
            return self.engine.published
        engine = self.engine
        if engine.next_moment <= epoch and not engine.is_held:
            await self.autocommit(lambda: engine.pass_time(epoch))

        def observe() -> None:
            engine.flush()
            engine.clock.observe(epoch)

        await self.submit(observe)
        return engine.published

    def arrange(self, wishes: tuple[Wish, ...]) -> None:
        """Have the engine create arrangements soon, each of them once. The caller does not wait."""
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

    def stop(self) -> bool:
        """End the engine thread after the queued jobs; whether it ended. Called on any thread but the engine's.

        A loop that does not end by itself is interrupted: the log has every acknowledged commit.
        """
        self.stalls.stop()
        if self._thread.stop(STOP_SECONDS):
            return True
        self.engine.dataflow.cancel.set()
        return self._thread.stop(STOP_SECONDS)
