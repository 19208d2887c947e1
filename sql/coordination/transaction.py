"""One session's transaction, on the event loop's side, and the write token.

A transaction reads one snapshot, taken at its first read. Its first write takes the token, first come first served;
when by then the snapshot is no longer the newest, the transaction fails with 40001 instead of writing on what it did
not see. The token goes on when COMMIT or ROLLBACK has been queued: the engine's queue keeps the order from there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from ivm.errors import SqlError
from sql.catalog.catalog import Catalog
from sql.engine.engine import TooLongHereError
from sql.engine.snapshot import Published
from sql.engine.writer import Mark, Writer

if TYPE_CHECKING:
    from sql.coordination.coordinator import Coordinator

T = TypeVar("T")


class WriteToken:
    """First come, first served: one holder, or any number that pass (statements that commit by themselves, each one
    job of the engine thread: they only wait their turn, and may be queued together).

    Invariant: between ``enter`` and ``leave`` a passing statement's job is queued, and nobody holds the token.
    """

    def __init__(self) -> None:
        self._held = False
        self._passing = 0
        self._waiting: deque[tuple[asyncio.Future[None], bool]] = deque()

    async def acquire(self) -> None:
        """Hold the token until ``release``."""
        await self._turn(hold=True)

    def release(self) -> None:
        assert self._held, "released by its holder"
        self._held = False
        self._wake()

    async def enter(self) -> None:
        """Begin to pass; ``leave`` once the job is queued."""
        await self._turn(hold=False)

    def leave(self) -> None:
        self._passing -= 1
        self._wake()

    async def _turn(self, hold: bool) -> None:
        if not self._held and not self._waiting and not (hold and self._passing):
            self._grant(hold)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((future, hold))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                if hold:
                    self.release()
                else:
                    self.leave()
            raise

    def _grant(self, hold: bool) -> None:
        if hold:
            self._held = True
        else:
            self._passing += 1

    def _wake(self) -> None:
        while self._waiting and not self._held:
            future, hold = self._waiting[0]
            if future.done():
                self._waiting.popleft()
                continue
            if hold and self._passing:
                return
            self._waiting.popleft()
            self._grant(hold)
            future.set_result(None)


@dataclass(slots=True)
class Transaction:
    """A transaction in progress. ``started`` is its now(), µs since 2000. ``explicit``: opened by BEGIN.

    ``single``: one statement that commits by itself, so that a write is one job of the engine thread.
    """

    coordinator: Coordinator
    started: int
    explicit: bool
    single: bool = False
    read_only: bool = False
    writer: Writer | None = None
    savepoints: list[tuple[str, Mark | None]] = field(default_factory=list)
    afterwards: list[Callable[[], object]] = field(default_factory=list)
    """Called when it has ended, one way or the other, and the catalog says which."""
    _base: Published | None = None
    _own: Published | None = None
    _holds: bool = False

    @property
    def catalog(self) -> Catalog:
        """The catalog that names resolve in: the snapshot's, with the transaction's own changes."""
        if self.writer is not None:
            return self.writer.catalog
        return self.coordinator.engine.published.catalog if self._base is None else self._base.catalog

    @property
    def has_snapshot(self) -> bool:
        return self._base is not None

    @property
    def alone(self) -> bool:
        """Whether its one statement may commit by itself, in more than one job of the engine thread."""
        return self.single and not self.read_only

    async def snapshot(self) -> Published:
        """What the transaction reads: one snapshot, and its own writes."""
        if self.writer is None:
            if self._base is None:
                self._base = self.coordinator.engine.published
            return self._base
        if self._own is None:
            self._own = await self.coordinator.submit(self.writer.snapshot)
        return self._own

    async def write(self, work: Callable[[Writer], T], light: bool = False) -> T:
        """Run a statement's changes on the engine thread. After an error the caller rolls back.

        ``light``: where the engine rests, try here first; work that would take long raises TooLongHereError before
        it has changed anything.
        """
        if self.read_only:
            raise SqlError("25006", "cannot execute a statement that writes in a read-only transaction")
        if self.single:
            here = (lambda: self._whole_here(work)) if light else None
            return await self.coordinator.autocommit(lambda: self._whole(work), here)
        if not self._holds:
            await self.coordinator.token.acquire()
            self._holds = True
        self._own = None
        if light and self.coordinator.idle:
            try:
                with self.coordinator.engine.resting():
                    return work(self._begin())
            except TooLongHereError:
                pass
        return await self.coordinator.submit(lambda: work(self._begin()))

    def _whole(self, work: Callable[[Writer], T]) -> T:
        writer = Writer.begin(self.coordinator.engine)
        try:
            result = work(writer)
            writer.commit()
        except BaseException:
            writer.rollback()
            raise
        return result

    def _whole_here(self, work: Callable[[Writer], T]) -> Awaitable[T] | None:
        """``_whole`` on the event loop's thread; None, with nothing changed, when that would take long."""
        writer = Writer.begin(self.coordinator.engine)
        try:
            with self.coordinator.engine.resting():
                result = work(writer)
            writer.commit()
        except TooLongHereError:
            return None
        except BaseException:
            if writer.updates:
                self.coordinator.start(writer.rollback)
            raise
        return self.coordinator.end_here(result)

    def _begin(self) -> Writer:
        if self.writer is None:
            engine = self.coordinator.engine
            engine.flush()  # so that a tentative step never shares a group with commits before it
            if self._base is not None and self._base.ordinal != engine.timeline.last:
                raise SqlError("40001", "could not serialize access due to concurrent update",
                               detail="Another transaction has committed since this one first read.",
                               hint="Run the transaction again.")  # fmt: skip
            self.writer = Writer.begin(engine)
        return self.writer

    async def commit(self) -> None:
        """Durable and published on return."""
        await self._end(lambda writer: writer.commit(), here=True)

    async def rollback(self) -> None:
        await self._end(lambda writer: writer.rollback(), here=False)

    async def _end(self, work: Callable[[Writer], object], here: bool) -> None:
        """``here``: the work itself is short."""
        writer = self.writer
        if not self._holds:
            return
        self._holds = False
        try:
            if here and writer is not None and self.coordinator.alone:
                job = self.coordinator.end_here(work(writer), keep=True)
            else:
                job = self.coordinator.queue(lambda: None if self.writer is None else work(self.writer), keep=True)
        finally:
            self.coordinator.token.release()
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
        mark = await self.coordinator.submit(self.writer.mark) if self.writer is not None else None
        self.savepoints.append((name, mark))

    def release_savepoint(self, name: str) -> None:
        del self.savepoints[self._find(name) :]

    async def rollback_to(self, name: str) -> None:
        """Take back what came after the savepoint, which stays."""
        place = self._find(name)
        mark = self.savepoints[place][1]
        del self.savepoints[place + 1 :]
        if self.writer is None:
            return
        writer = self.writer
        self._own = None
        await self.coordinator.submit(lambda: writer.rollback() if mark is None else writer.rollback_to(mark))

    def _find(self, name: str) -> int:
        for place in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[place][0] == name:
                return place
        raise SqlError("3B001", f'savepoint "{name}" does not exist')
