"""The thread that owns the engine, and its queue of jobs.

The thread takes all queued jobs, runs them in order, ends the group (``flush``: durable, stepped, published) and
answers all of them with one wake-up of the event loop. So a commit is acknowledged only when its whole group is
durable, and a later job sees the effect of every earlier one.

While the thread is idle and only one client is active, the event loop's thread does a short job itself (``begin``),
because two thread switches cost as much as a small commit. If the job's step does not end within ``HERE_SECONDS`` (a
long-running loop, a slow disk), the engine thread finishes it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any, Final, Generic, NoReturn, TypeVar

from ivm.budget import NO_BUDGET, Budget
from ivm.errors import SqlError, too_deep
from ivm.stops import stoppable
from sql.engine.row_locks import BlockedError
from storage.files import DISK_ERRORS, DiskError, FatalStorageError, disk_error

T = TypeVar("T")
log = logging.getLogger("freshet.engine")
GROUP_LIMIT: Final = 512
"""The most jobs in one group, so that the first of them does not wait too long."""
RETRY_SECONDS: Final = 0.5
"""How long to wait before a group that the disk refused is written again."""
HERE_SECONDS: Final = 0.004
"""How long a job that the event loop does itself may block it."""
BRIEF_SECONDS: Final = 0.001
"""How long the event loop waits for the engine where it would otherwise queue a job, which takes as long."""


@dataclass(slots=True, eq=False)
class Job(Generic[T]):
    """Work for the engine thread, and its waiter.

    ``keep``: it cannot be cancelled. ``begun``: its commit has been made already, and a cancel only interrupts its
    step. ``firm``: a cancel does not interrupt that, but only its work.
    """

    work: Callable[[], T]
    future: asyncio.Future[T]
    keep: bool = False
    begun: bool = False
    firm: bool = False
    result: T | None = None
    error: BaseException | None = None
    cancelled: bool = False
    started: bool = False
    statement: str | None = None
    """The text of the statement that it belongs to."""


RUNNING_STATEMENT: ContextVar[str | None] = ContextVar("statement", default=None)
"""The text of the statement that a task runs."""


class EngineThread:
    """Runs jobs one after the other on a thread of its own.

    ``flush`` ends a group by a given time (``perf_counter``), and returns false if it must be called again.
    ``interrupt`` is polled by long-running work; it is set only while the job that it is meant for runs. ``answered``
    is called on the event loop after each group has been answered. ``budget``: what jobs take memory from.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        flush: Callable[[float], bool],
        interrupt: threading.Event,
        answered: Callable[[], None] = lambda: None,
        budget: Budget = NO_BUDGET,
    ) -> None:
        self._loop = loop
        self._flush = flush
        self._interrupt = interrupt
        self._answered = answered
        self._budget = budget
        self._current: Job[Any] | None = None
        self._group: list[Job[Any]] = []
        """The jobs of the group that is being flushed."""
        self._earlier = 0
        """How many jobs of its group the present job follows, which wait with it."""
        self._guard = threading.Lock()
        self._hold = threading.Lock()
        """Held by this thread while it uses the engine: in jobs and at the end of groups, but for the wait for the
        disk."""
        self._ending = False
        """Whether a group is being ended on this thread."""
        self._jobs: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._pending = 0
        """Jobs queued and not yet answered; the event loop's own count."""
        self._stopping = False
        self._left = False
        """Whether a group that the event loop has begun is left to this thread, in the middle of its step; the event
        loop's own."""
        self._blocked = False
        """Whether the disk refuses the group's records."""
        self._busy: tuple[float, str | None] | None = None
        self.lent: Callable[[], int | None] | None = None
        """Which thread does the present job, if another one does."""
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def waited_for(self) -> bool:
        """Whether several clients wait: for the group that is being flushed or made, or behind it. Asked on the thread
        that flushes."""
        return self._earlier > 0 or len(self._group) > 1 or not self._jobs.empty()

    def overstays(self, seconds: float) -> bool:
        """Whether the present job has run for so long, and others wait. Asked in the job."""
        busy = self._busy
        return self.waited_for and busy is not None and perf_counter() - busy[0] > seconds

    @property
    def busy(self) -> tuple[float, str | None] | None:
        """Since when the thread has run its present job, or ended the group (``perf_counter``), and for which
        statement; None: it waits. May be asked on any thread."""
        return self._busy

    @property
    def ident(self) -> int | None:
        """The identifier of the thread, or of the one that does its job."""
        lent = self.lent
        return self._thread.ident if lent is None else lent()

    @property
    def pending(self) -> int:
        """The number of jobs that have been queued and not answered."""
        return self._pending

    @property
    def idle(self) -> bool:
        """Whether every job has been answered. Jobs are queued from the event loop only, so code that asks there has
        the engine to itself until it awaits."""
        return self._pending == 0 and not self._stopping and not self._blocked

    def borrow(self) -> bool:
        """Whether the event loop may use the engine until it calls ``give_back``, for short work that steps nothing and
        ends no group: between jobs, or while a group becomes durable. Waits for ``BRIEF_SECONDS`` at most."""
        if self._stopping or self._blocked or self._left:
            return False
        if self._hold.acquire(blocking=False):
            return True
        busy = self._busy
        if busy is not None and perf_counter() - busy[0] > BRIEF_SECONDS:
            return False
        return self._hold.acquire(timeout=BRIEF_SECONDS)

    def give_back(self) -> None:
        """The event loop has used the engine."""
        self._hold.release()

    @contextmanager
    def meanwhile(self) -> Iterator[None]:
        """While the group that this thread ends becomes durable: the event loop may borrow the engine."""
        if not self._ending:
            yield
            return
        self._hold.release()
        try:
            yield
        finally:
            self._hold.acquire()

    def queue(self, work: Callable[[], T], keep: bool = False, firm: bool = False) -> Job[T]:
        """Queue a job, from the event loop; ``keep`` and ``firm`` as of ``Job``. 57P01 if the server is shutting
        down."""
        if self._stopping:
            raise SqlError("57P01", "the server is shutting down")
        return self._put(Job(work, self._loop.create_future(), keep, firm=firm))

    def _put(self, job: Job[T]) -> Job[T]:
        self._pending += 1
        job.statement = RUNNING_STATEMENT.get()
        self._jobs.put(job)
        return job

    def begin(self, result: T, keep: bool = False) -> Job[T]:
        """A job that the event loop's thread did while this one was ``idle``. Its group is ended here too if that takes
        less than ``HERE_SECONDS``, else by the engine thread."""
        assert self.idle, "one thread at a time has the engine"

        def rest() -> T:
            with suppress(DiskError):  # the group waits for the disk
                self._end_group(math.inf)  # before the next job, which otherwise finds the engine amid a step
            return result

        job = Job(rest, self._loop.create_future(), keep, begun=True)
        if not self._end_group(perf_counter() + HERE_SECONDS):
            self._left = True
            return self._put(job)
        job.future.set_result(result)
        self._answered()
        return job

    def between(self, work: Callable[[], None]) -> None:
        """Short work on the engine that belongs to no job, done on the event loop's thread while this one is
        ``idle``."""
        assert self.idle, "one thread at a time has the engine"
        try:
            work()
        except BaseException:
            _end_server()

    def _end_group(self, until: float) -> bool:
        try:
            return self._flush(until)
        except DiskError:
            if until == math.inf:
                raise
            return False
        except BaseException:
            _end_server()

    async def wait(self, job: Job[T]) -> T:
        """The job's result, once its group is durable and published.

        If the caller is cancelled, a job that has not started never does; else it is interrupted (57014) if that is
        still possible, and its actual outcome is reported: its error, or its result.
        """
        try:
            return await asyncio.shield(job.future)
        except asyncio.CancelledError:
            if self._cancel(job):
                job.future.add_done_callback(asyncio.Future.exception)  # nobody else asks for it
                raise
            await asyncio.wait([job.future])
            if job.future.exception() is not None:
                raise
            return job.future.result()
        finally:
            del job  # its error's traceback has this frame

    def _cancel(self, job: Job[Any]) -> bool:
        """Whether it will never start."""
        with self._guard:
            job.cancelled = not job.keep and not job.begun
            if job.keep:
                return False
            if self._current is job or (job in self._group and not job.firm):
                self._interrupt.set()
            return job.cancelled and not job.started

    def stop(self, timeout: float) -> bool:
        """Finish the queued jobs and end the thread. False if ``timeout`` seconds were not enough."""
        self._stopping = True
        self._jobs.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while self._run_group():
                pass
        except BaseException:
            _end_server()

    def _run_group(self) -> bool:
        job = self._jobs.get()
        group: list[Job[Any]] = []
        while job is not None:
            self._earlier = len(group)
            self._work(job)
            group.append(job)
            if job.begun or len(group) >= GROUP_LIMIT or self._jobs.empty():
                break  # what was begun is durable, and need not wait for another group
            job = self._jobs.get()
        self._earlier = 0
        with self._guard:
            self._group = group
        try:
            goes_on = self._flushed()
        finally:
            self._busy = None
            with self._guard:
                self._group = []
                self._interrupt.clear()
        if goes_on:
            self._loop.call_soon_threadsafe(self._answer, group)
        return goes_on and job is not None

    def _flushed(self) -> bool:
        """End the group. While the disk refuses it, other jobs are refused too. False: the thread is to stop."""
        aside: list[Job[Any]] = []
        statement = next((job.statement for job in self._group if job.statement is not None), None)
        while True:
            try:
                self._busy = perf_counter(), statement
                self._flush_group()
            except DiskError as error:
                self._busy = None
                if not self._blocked:
                    log.warning("commits wait: %s", error)
                self._blocked = True
                if not self._refuse(error, aside):
                    return False
                continue
            if self._blocked:
                log.warning("the disk takes commits again")
                self._blocked = False
            for job in aside:
                self._jobs.put(job)
            return True

    def _flush_group(self) -> None:
        with self._hold:
            self._ending = True
            try:
                self._flush(math.inf)
            finally:
                self._ending = False

    def _refuse(self, error: DiskError, aside: list[Job[Any]]) -> bool:
        """Answer the jobs that come within ``RETRY_SECONDS``, except those to be kept. False: the thread is to stop."""
        until = perf_counter() + RETRY_SECONDS
        while (left := until - perf_counter()) > 0:
            try:
                job = self._jobs.get(timeout=left)
            except Empty:
                return True
            if job is None:
                return False
            if job.keep or job.begun:
                aside.append(job)
                continue
            job.error = DiskError(error.sqlstate, error.message, error.detail, error.hint)
            self._loop.call_soon_threadsafe(self._answer, [job])
        return True

    def _work(self, job: Job[Any]) -> None:
        with self._guard:
            self._current, job.started = job, True
        self._busy = perf_counter(), job.statement
        try:
            if job.cancelled:
                raise SqlError("57014", "canceling statement due to user request")
            with self._hold, stoppable(self._interrupt, self._budget):
                job.result = job.work()
        except (SqlError, BlockedError) as error:
            job.error = error.with_traceback(None)  # this frame has the job
        except FatalStorageError:
            raise
        except OSError as error:
            if error.errno not in DISK_ERRORS:
                traceback.print_exc()
            job.error = disk_error(error, "a file cannot be written")
        except RecursionError:
            job.error = too_deep()
        except Exception as error:  # a bug in one statement fails that statement, not the server
            traceback.print_exc()
            job.error = SqlError("XX000", f"internal error: {type(error).__name__}: {error}")
        finally:
            self._busy = None
            with self._guard:
                self._current = None
                self._interrupt.clear()

    def _answer(self, group: list[Job[Any]]) -> None:
        self._pending -= len(group)
        self._left &= not any(job.begun for job in group)
        self._answered()
        for job in group:
            if job.future.done():
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)


def _end_server() -> NoReturn:
    """End the process: a broken engine must not continue. The log has every acknowledged commit."""
    traceback.print_exc()
    sys.stderr.flush()
    os._exit(70)
