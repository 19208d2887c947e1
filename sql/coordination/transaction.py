"""One session's transaction, as the event loop sees it.

A transaction reads one snapshot, taken at its first read. Its first write takes the write token. If the snapshot is no
longer the newest by then, the transaction fails with 40001, so that it never overwrites commits that it has not seen.
The token is released as soon as COMMIT or ROLLBACK is queued: from there the engine thread's queue keeps the order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeVar

from ivm.errors import SqlError
from ivm.stops import movable
from sql.catalog.catalog import Catalog
from sql.coordination.jobs import Jobs
from sql.engine.snapshot import Published
from sql.engine.state import TooLongHereError
from sql.engine.writer import Mark, Writer

T = TypeVar("T")
HERE_SECONDS: Final = 0.01
"""How long light work may take on the event loop's thread before the engine thread begins it anew."""


def unchanged(writer: Writer) -> Callable[[], TooLongHereError | None]:
    """What ends work that has changed nothing yet."""
    before = len(writer.updates)
    return lambda: TooLongHereError() if len(writer.updates) == before else None


class Extent(Enum):
    """What a transaction spans."""

    BLOCK = "block"
    """BEGIN to COMMIT."""
    MESSAGE = "message"
    """The statements of one message, or those up to the extended protocol's Sync."""
    STATEMENT = "statement"
    """One statement that commits by itself: a write is one job of the engine thread, which needs no write token."""


@dataclass(slots=True)
class Transaction:
    """A transaction in progress. ``started``: its now(), in µs since 2000."""

    jobs: Jobs
    started: int
    extent: Extent
    read_only: bool = False
    queried: bool = False
    """Whether a statement of it has read anything: then its modes are fixed."""
    writer: Writer | None = None
    savepoints: list[tuple[str, Mark | None]] = field(default_factory=list)
    afterwards: list[Callable[[], object]] = field(default_factory=list)
    """Called after commit or rollback; the published catalog tells which of the two it was."""
    _base: Published | None = None
    _own: Published | None = None
    _holds: bool = False

    @property
    def catalog(self) -> Catalog:
        """The catalog in which names are resolved: that of the snapshot, with the transaction's own changes."""
        if self.writer is not None:
            return self.writer.catalog
        return self.jobs.engine.published.catalog if self._base is None else self._base.catalog

    @property
    def has_read(self) -> bool:
        """Whether what it reads is settled: it has a snapshot, or has written."""
        return self._base is not None or self.writer is not None

    @property
    def is_block(self) -> bool:
        """Whether BEGIN has opened it."""
        return self.extent is Extent.BLOCK

    @property
    def alone(self) -> bool:
        """Whether its one statement may commit by itself, in more than one job of the engine thread."""
        return self.extent is Extent.STATEMENT and not self.read_only

    async def snapshot(self) -> Published:
        """What the transaction reads: one snapshot, and its own writes."""
        if self.writer is None:
            if self._base is None:
                self._base = self.jobs.engine.published
            return self._base
        if self._own is None:
            self._own = await self.jobs.submit(self.writer.snapshot)
        return self._own

    async def write(self, work: Callable[[Writer], T], light: bool = False) -> T:
        """Run a statement's changes on the engine thread. The caller rolls back after an error.

        ``light``: when the engine thread is idle, first try on the event loop's thread. Work that would take long
        raises TooLongHereError there before it has changed anything.
        """
        if self.extent is Extent.STATEMENT:
            here = (lambda: self._whole_here(work)) if light else None
            return await self.jobs.autocommit(lambda: self._whole(work), here)
        if not self._holds:
            await self.jobs.token.acquire()
            self._holds = True
        self._own = None
        if light and self.jobs.idle:
            try:
                writer = self._begin()
                with self.jobs.engine.resting(), movable(HERE_SECONDS, unchanged(writer)):
                    return work(writer)
            except TooLongHereError:
                pass
        return await self.jobs.submit(lambda: work(self._begin()))

    def _whole(self, work: Callable[[Writer], T]) -> T:
        self.jobs.engine.pass_time()
        writer = Writer.begin(self.jobs.engine)
        try:
            result = work(writer)
            writer.commit()
        except BaseException:
            writer.rollback()
            raise
        return result

    def _whole_here(self, work: Callable[[Writer], T]) -> Awaitable[T] | None:
        """``_whole`` on the event loop's thread. None, with nothing changed, if that would take long."""
        self.jobs.engine.pass_time()
        writer = Writer.begin(self.jobs.engine)
        try:
            with self.jobs.engine.resting(), movable(HERE_SECONDS, unchanged(writer)):
                result = work(writer)
            writer.commit()
        except TooLongHereError:
            return None
        except BaseException:
            if writer.updates:
                self.jobs.start(writer.rollback)
            raise
        return self.jobs.end_here(result)

    def _begin(self) -> Writer:
        if self.writer is None:
            engine = self.jobs.engine
            engine.flush()
            engine.pass_time()
            engine.flush()  # so that a tentative step never shares a group with earlier commits
            if self._base is not None and self._base.ordinal < engine.changed_at:
                raise SqlError("40001", "could not serialize access due to concurrent update",
                               detail="Another transaction has committed since this one first read.",
                               hint="Run the transaction again.")  # fmt: skip
            self.writer = Writer.begin(engine)
            self.writer.start_clock()
        return self.writer

    async def commit(self) -> None:
        """The changes are durable and published on return."""
        await self._end(
            lambda writer: writer.commit(),
            here=self.writer is None or not (self.writer.deferred or self.writer.finishing),
        )

    async def rollback(self) -> None:
        await self._end(lambda writer: writer.rollback(), here=False)

    async def _end(self, work: Callable[[Writer], object], here: bool) -> None:
        """``here``: the work is short enough for the event loop's thread."""
        writer = self.writer
        if not self._holds:
            return
        self._holds = False
        try:
            if here and writer is not None and self.jobs.alone:
                job = self.jobs.end_here(work(writer), keep=True)
            else:
                job = self.jobs.queue(lambda: None if self.writer is None else work(self.writer), keep=True)
        finally:
            self.jobs.token.release()
        try:
            await job
        except SqlError:
            self._call_afterwards()
            raise
        self._call_afterwards()

    def _call_afterwards(self) -> None:
        for work in self.afterwards:
            work()

    async def savepoint(self, name: str) -> None:
        mark = await self.jobs.submit(self.writer.mark) if self.writer is not None else None
        self.savepoints.append((name, mark))

    def release_savepoint(self, name: str) -> None:
        del self.savepoints[self._find(name) :]

    async def rollback_to(self, name: str) -> None:
        """Undo the changes made after the savepoint, which stays. 3B001: there is none of this name."""
        place = self._find(name)
        mark = self.savepoints[place][1]
        del self.savepoints[place + 1 :]
        if self.writer is None:
            return
        writer = self.writer
        self._own = None
        await self.jobs.submit(lambda: writer.rollback() if mark is None else writer.rollback_to(mark))

    def _find(self, name: str) -> int:
        for place in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[place][0] == name:
                return place
        raise SqlError("3B001", f'savepoint "{name}" does not exist')
