"""The threads that share large pieces of a step.

Kernels release the GIL, so calls of them run in parallel. A job is a few calls that share only what they all read. Free
threads, the caller's among them, take the next call each, so a descheduled worker delays only the call that it has
begun. One job runs at a time in the whole program: a thread that finds the workers busy makes all of its calls itself,
so no thread waits for a turn.
"""

from __future__ import annotations

import os
import threading
from _thread import allocate_lock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from time import thread_time_ns
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")

# Updates under which one thread does it all: by what one costs, so that all of them cost several times what waking
# another thread does (15 to 60 µs; docs/internals/parallel-steps.md). Extended along the path of a delta join: 10 µs
# and more; corrected at the times of a loop: about 800 ns; searched for in another's layers: 200 ns and more; merged:
# 30 ns; sorted: dealing out to the parts comes on top; copied: 3 ns.
EXTENDED: Final = 32
CORRECTED: Final = 512
SEARCHED: Final = 512
MERGED: Final = 1 << 14
SORTED: Final = 1 << 14
COPIED: Final = 1 << 16


@dataclass(slots=True)
class Tally:
    """One thread's share of all jobs: calls, and its CPU time in them."""

    calls: int = 0
    nanoseconds: int = 0


class _Job:
    """Calls, their results, and how many are still to be taken."""

    __slots__ = ("_calls", "_ended", "_finished", "_taken", "errors", "results")

    def __init__(self, calls: Sequence[Callable[[], Any]]) -> None:
        self._calls = calls
        self._taken = iter(range(len(calls)))
        self._finished = count(1)
        self._ended = allocate_lock()
        self._ended.acquire()
        self.results: list[Any] = [None] * len(calls)
        self.errors: dict[int, BaseException] = {}

    def work(self, tally: Tally) -> None:
        """Takes calls until none is left; the last one done ends the job. Both iterators are stepped atomically."""
        for i in self._taken:
            begun = thread_time_ns()
            try:
                self.results[i] = self._calls[i]()
            except BaseException as error:
                self.errors[i] = error
            tally.calls += 1
            tally.nanoseconds += thread_time_ns() - begun
            if next(self._finished) == len(self._calls):
                self._ended.release()

    def wait(self) -> None:
        """Waits until every call has ended; an exception that interrupts the wait is raised after that."""
        interrupted: BaseException | None = None
        while True:
            try:
                self._ended.acquire()
                break
            except BaseException as error:
                interrupted = error
        if interrupted is not None:
            raise interrupted


class Workers:
    """``number`` threads in all, including the caller's; ``least`` overrides the threshold of every kind of work, for
    tests."""

    def __init__(self, number: int = 1, least: int | None = None) -> None:
        self.number = number
        self._least = least
        self._free = allocate_lock()
        self._wakes = [allocate_lock() for _ in range(number - 1)]
        self._job: _Job | None = None
        self._ended = False
        self.tallies = tuple(Tally() for _ in range(number))
        """First the callers' tally, then each worker's."""
        for wake, tally in zip(self._wakes, self.tallies[1:], strict=True):
            wake.acquire()
            threading.Thread(target=self._serve, args=(wake, tally), name="worker", daemon=True).start()

    def least(self, kind: int) -> int:
        """The least number of updates from which work of a kind (``SEARCHED`` and so on) is shared."""
        if self.number == 1:
            return 1 << 62
        return kind if self._least is None else self._least

    def _serve(self, wake: Any, tally: Tally) -> None:
        while True:
            wake.acquire()
            if self._ended:
                return
            job = self._job
            if job is not None:
                job.work(tally)
            del job  # do not keep its data alive until the next job

    def run(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Runs the calls and returns their results in order. Once all have ended, raises the exception of the first
        that failed."""
        if not self._wakes or len(calls) < 2 or not self._free.acquire(blocking=False):
            return [call() for call in calls]
        job = _Job(calls)
        try:
            self._job = job
            for wake in self._wakes[: len(calls) - 1]:
                if wake.locked():  # otherwise it has not yet seen the previous job
                    wake.release()
            job.work(self.tallies[0])
            job.wait()
        finally:
            self._job = None
            self._free.release()
        if job.errors:
            raise job.errors[min(job.errors)]
        return cast(list[T], job.results)

    def end(self) -> None:
        """Stops the threads, once no job runs."""
        with self._free:
            self._ended = True
            for wake in self._wakes:
                if wake.locked():
                    wake.release()
            self._wakes = []


class _Present:
    """Holds the program's workers."""

    workers = Workers()


def use(number: int, least: int | None = None) -> None:
    """Sets the number of threads that share large work (from ``least`` updates on, if given). Not to be called during a
    step."""
    install(Workers(number, least)).end()


def install(present: Workers) -> Workers:
    """Installs workers. Returns the previous ones, which still have their threads. Not to be called during a step."""
    before, _Present.workers = _Present.workers, present
    return before


def workers() -> Workers:
    """The installed workers."""
    return _Present.workers


def parts(count: int, kind: int) -> int:
    """The number of parts into which work of a kind on ``count`` updates is cut."""
    present = _Present.workers
    return present.number if present.number > 1 and count >= present.least(kind) else 1


def run(calls: Sequence[Callable[[], T]]) -> list[T]:
    """``Workers.run`` of the installed workers."""
    return _Present.workers.run(calls)


# A forked child does not have its parent's threads.
os.register_at_fork(after_in_child=lambda: setattr(_Present, "workers", Workers()))
