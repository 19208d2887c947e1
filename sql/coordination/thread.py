"""The one thread that owns the engine, and the queue of jobs that leads to it.

The thread takes all jobs that wait, runs them in order, ends the group (``flush``: durable, stepped, published) and
answers all of them with one wake-up of the event loop. So a commit is acknowledged only when its group stands, and
what a later job sees includes every earlier one.

While the thread rests and one client has the server to itself, the event loop's thread does a short job itself
(``begin``): two changes of threads cost as much as a small commit. What does not end in a moment, a loop that runs on
or a slow disk, is left to the thread in the middle.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from time import perf_counter
from typing import Any, Final, Generic, NoReturn, TypeVar

from ivm.errors import SqlError, too_deep
from storage.files import FatalStorageError

T = TypeVar("T")
GROUP_LIMIT: Final = 512
"""Jobs in one group at most, so that the first of them does not wait for ever."""
HERE_SECONDS: Final = 0.004
"""How long the event loop may be held up by a job that it does itself."""


@dataclass(slots=True, eq=False)
class Job(Generic[T]):
    """Work for the engine thread, and who waits for it.

    ``keep``: it cannot be cancelled. ``begun``: its commit stands already, and a cancel only interrupts its step.
    """

    work: Callable[[], T]
    future: asyncio.Future[T]
    keep: bool = False
    begun: bool = False
    result: T | None = None
    error: BaseException | None = None
    cancelled: bool = False


class EngineThread:
    """Runs jobs one after the other on a thread of its own.

    ``flush`` ends a group by a time (``perf_counter``); false when it is to be called again.
    ``interrupt`` is polled by whatever may run long; it is set only while the job that it is meant for runs.
    ``answered`` is called on the event loop whenever a group has been.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        flush: Callable[[float], bool],
        interrupt: threading.Event,
        answered: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop = loop
        self._flush = flush
        self._interrupt = interrupt
        self._answered = answered
        self._current: Job[Any] | None = None
        self._group: list[Job[Any]] = []
        """The jobs whose group is being flushed."""
        self._guard = threading.Lock()
        self._jobs: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._pending = 0
        """Jobs queued and not yet answered; the event loop's own count."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def idle(self) -> bool:
        """Whether every job has been answered. Jobs are queued from the event loop only, so whoever asks there has the
        engine to itself until it awaits."""
        return self._pending == 0 and not self._stopping

    def queue(self, work: Callable[[], T], keep: bool = False) -> Job[T]:
        """Queue a job, from the event loop; one to ``keep`` cannot be cancelled. 57P01 when the server ends."""
        if self._stopping:
            raise SqlError("57P01", "the server is shutting down")
        return self._put(Job(work, self._loop.create_future(), keep))

    def _put(self, job: Job[T]) -> Job[T]:
        self._pending += 1
        self._jobs.put(job)
        return job

    def begin(self, result: T, keep: bool = False) -> Job[T]:
        """A job that the event loop's thread has done while this one rested (``idle``): its group is ended here too if
        that takes but a moment, or else by this thread."""
        assert self.idle, "one thread at a time has the engine"

        def rest() -> T:
            self._end_group(math.inf)  # before the next job, which finds the engine in the middle of a step
            return result

        job = Job(rest, self._loop.create_future(), keep, begun=True)
        if not self._end_group(perf_counter() + HERE_SECONDS):
            return self._put(job)
        job.future.set_result(result)
        self._answered()
        return job

    def between(self, work: Callable[[], None]) -> None:
        """Work on the engine that no job has asked for, on the event loop's thread while this one rests (``idle``)."""
        assert self.idle, "one thread at a time has the engine"
        try:
            work()
        except BaseException:
            _end_server()

    def _end_group(self, until: float) -> bool:
        try:
            return self._flush(until)
        except BaseException:
            _end_server()

    async def wait(self, job: Job[T]) -> T:
        """The job's result, once its group stands.

        When the caller is cancelled the job is interrupted (57014) if it still can be, and what really happened is
        reported: its error, or its result.
        """
        try:
            return await asyncio.shield(job.future)
        except asyncio.CancelledError:
            self._cancel(job)
            await asyncio.wait([job.future])
            if job.future.exception() is not None:
                raise
            return job.future.result()

    def _cancel(self, job: Job[Any]) -> None:
        with self._guard:
            job.cancelled = not job.keep and not job.begun
            if job.keep:
                return
            if self._current is job or job in self._group:
                self._interrupt.set()

    def stop(self, timeout: float) -> bool:
        """Finish what was queued and end the thread; whether it ended in time."""
        self._stopping = True
        self._jobs.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        except BaseException:
            _end_server()

    def _turn(self) -> bool:
        job = self._jobs.get()
        group: list[Job[Any]] = []
        while job is not None:
            self._work(job)
            group.append(job)
            if len(group) >= GROUP_LIMIT or self._jobs.empty():
                break
            job = self._jobs.get()
        with self._guard:
            self._group = group
        try:
            self._flush(math.inf)
        finally:
            with self._guard:
                self._group = []
                self._interrupt.clear()
        self._loop.call_soon_threadsafe(self._answer, group)
        return job is not None

    def _work(self, job: Job[Any]) -> None:
        with self._guard:
            self._current = job
        try:
            if job.cancelled:
                raise SqlError("57014", "canceling statement due to user request")
            job.result = job.work()
        except SqlError as error:
            job.error = error
        except FatalStorageError:
            raise
        except RecursionError:
            job.error = too_deep()
        except Exception as error:  # a bug in one statement is that statement's error, not the server's end
            traceback.print_exc()
            job.error = SqlError("XX000", f"internal error: {type(error).__name__}: {error}")
        finally:
            with self._guard:
                self._current = None
                self._interrupt.clear()

    def _answer(self, group: list[Job[Any]]) -> None:
        self._pending -= len(group)
        self._answered()
        for job in group:
            if job.future.done():
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)


def _end_server() -> NoReturn:
    """An engine that is broken must not go on: the log has all that was acknowledged."""
    traceback.print_exc()
    sys.stderr.flush()
    os._exit(70)
