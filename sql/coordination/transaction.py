"""One session's transaction, as the event loop sees it.

A SERIALIZABLE transaction reads one snapshot, taken at its first read. From its first write on, each of its statements
runs over the newest commits, after it has been checked that none of them has changed what the transaction has read
(40001): its snapshot has moved on, and at COMMIT it is that of the commit itself. So the transactions that commit are
in the order of their commits (optimistic concurrency control with backward validation: Kung and Robinson, 1981). In
READ COMMITTED each statement reads the newest commits, and nothing is checked. In both, rows that are changed are
locked, and a statement that meets a lock waits, then runs again (``sql.coordination.waits``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeVar

from ivm.errors import SqlError, unsupported
from ivm.stops import movable
from sql.catalog.catalog import Catalog
from sql.catalog.databases import FIRST_DATABASE, Shared
from sql.catalog.merging import merged
from sql.coordination.jobs import Jobs
from sql.coordination.thread import Job
from sql.engine.inputs import made_from
from sql.engine.mark import Mark
from sql.engine.read_set import Reading, ReadSet
from sql.engine.row_locks import BlockedError, LockOwner
from sql.engine.snapshot import Published
from sql.engine.state import TooLongHereError
from sql.engine.writer import Writer

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
    """One statement that commits by itself: a write is one job of the engine thread."""
    ROUTINE = "routine"
    """One statement that calls a routine, whose own statements are jobs of the engine thread."""


@dataclass(slots=True)
class Transaction:
    """A transaction in progress. ``started``: its now(), in µs since 2000. ``patience``: milliseconds that a statement
    waits for a lock, 0 for any time. ``fresh``: whether each statement reads the newest commits."""

    jobs: Jobs
    started: int
    extent: Extent
    read_only: bool = False
    fresh: bool = False
    owner: LockOwner = field(default_factory=LockOwner)
    patience: Callable[[], int] = lambda: 0
    queried: bool = False
    """Whether a statement of it has read anything: then its modes are fixed."""
    writer: Writer | None = None
    savepoints: list[tuple[str, Mark | None]] = field(default_factory=list)
    afterwards: list[Callable[[], object]] = field(default_factory=list)
    """Called after commit or rollback; the published catalog tells which of the two it was."""
    reads: ReadSet = field(default_factory=ReadSet)
    _base: Published | None = None
    _own: Published | None = None
    _number: int | None = None
    _merged: tuple[Catalog, Catalog, Catalog] | None = None
    """Its own catalog, the newest one, and both together."""

    @property
    def catalog(self) -> Catalog:
        """The catalog in which names are resolved: that of the snapshot, with the transaction's own changes."""
        if self.writer is not None and self.writer.defines:
            return self._own_catalog(self.writer)
        if self.writer is not None:
            return self.jobs.engine.catalog
        return self.jobs.engine.published.catalog if self._base is None else self._base.catalog

    def _own_catalog(self, writer: Writer) -> Catalog:
        """With what others have committed, unless that contradicts it: then the next statement fails."""
        own, newest = writer.catalog, self.jobs.engine.catalog
        if writer.base is newest:
            return own
        known = self._merged
        if known is None or known[0] is not own or known[1] is not newest:
            made = own
            with suppress(SqlError):
                made = merged(newest, writer.base, own, self.jobs.engine.next_version())
            known = self._merged = own, newest, made
        return known[2]

    @property
    def shared(self) -> tuple[Shared, Shared] | None:
        """What all databases share, before and with its changes; None: it changes nothing of that, or is the first
        database's, whose commit is all it takes."""
        writer = self.writer
        if writer is None or not writer.defines or writer.catalog.access.database == FIRST_DATABASE:
            return None
        before, after = writer.base.access.shared, writer.catalog.access.shared
        return None if before is after else (before, after)

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
            return self.first_snapshot()
        if self._own is None:
            self._own = await self._run(lambda writer: writer.snapshot())
        return self._own

    def first_snapshot(self) -> Published:
        """What a transaction reads that has not written."""
        assert self.writer is None, "then it reads its own writes too"
        if self._base is None:
            self._base = self.jobs.engine.published
        return self._base

    def number(self) -> int:
        """The transaction's own number (txid_current)."""
        if self._number is None:
            self._number = self.jobs.next_number()
        return self._number

    def export(self) -> str:
        """Let other transactions read this one's snapshot until it ends: the snapshot's name. Raises 0A000, 25001."""
        if self.savepoints:
            raise SqlError("25001", "cannot export a snapshot from a subtransaction")
        if self.writer is not None:
            raise unsupported("pg_export_snapshot() in a transaction that has written")
        found = self._base or self.jobs.engine.published
        if not self.fresh:
            self._base = found
        exported, number = self.jobs.exported, 1
        while (name := f"{found.epoch:08X}-{number:08X}-1") in exported:
            number += 1
        exported[name] = found
        self.afterwards.append(lambda: exported.pop(name, None))
        return name

    def import_snapshot(self, name: str) -> None:
        """SET TRANSACTION SNAPSHOT. Raises 0A000, 22023, 25001."""
        if self.queried or self.has_read or self.savepoints:
            raise SqlError("25001", "SET TRANSACTION SNAPSHOT must be called before any query")
        if self.fresh:
            needed = "isolation level SERIALIZABLE or REPEATABLE READ"
            raise SqlError("0A000", f"a snapshot-importing transaction must have {needed}")
        found = self.jobs.exported.get(name)
        if found is None:
            raise SqlError("22023", f'invalid snapshot identifier: "{name}"')
        self._base = found

    def begin_statement(self) -> None:
        """The next statement begins: unless the transaction reads one snapshot, it takes a new one."""
        if self.fresh:
            self._base = self._own = None

    @property
    def checks_reads(self) -> bool:
        """Whether what it reads must be what it would read at its commit."""
        return not self.fresh and self.extent is not Extent.STATEMENT

    def note_reading(self, reading: Reading) -> None:
        """Remember what a statement reads."""
        if self.checks_reads:
            self.reads.add(reading)
            writer = self.writer
            own = reading.relations & {r.id for r in writer.created} if writer is not None else None
            if writer is not None and own:  # commits do not tell of it, but of what it is made from
                self.reads.add(Reading(made_from(own, writer.catalog, writer.base.relations)))

    def enter(self, inputs: Iterable[int]) -> bool:
        """On the event loop's thread: go on with the open writer while the engine is idle, and read these relations.
        False: that takes a job."""
        assert self.writer is not None, "the transaction has written"
        try:
            with self.jobs.engine.resting():
                self._enter().catch_up(inputs)
        except (TooLongHereError, BlockedError):
            return False
        return True

    async def write(
        self, work: Callable[[Writer], T], light: bool = False, quick: Callable[[Writer], T | None] | None = None
    ) -> T:
        """Run a statement's changes on the engine thread, again after each lock that it has waited for. The caller
        rolls back after an error.

        ``light``: when the engine thread is idle, first try on the event loop's thread. Work that would take long
        raises TooLongHereError there before it has changed anything. ``quick``: does the same as ``here`` takes it, if
        it can.
        """
        if self.extent is Extent.STATEMENT:
            here = (lambda: self._whole_here(work)) if light else None
            return await self.jobs.autocommit(lambda: self._whole(work), here, self.owner, self.patience())
        self._own = None
        return await self._run(work, light, quick)

    async def _run(
        self, work: Callable[[Writer], T], light: bool = False, quick: Callable[[Writer], T | None] | None = None
    ) -> T:
        """Run work of a transaction of several statements on the engine thread."""

        async def run() -> T:
            if quick is not None:
                with suppress(SqlError):  # the work raises it too
                    found = self._borrowed(quick)
                    if found is not None:
                        return found
            if light and self.jobs.idle:
                with suppress(TooLongHereError):
                    return self._here(work)
            return await self.jobs.submit(lambda: self._attempt(self._enter(), work))

        return await self.jobs.waits.attempt(run, self.owner, self.patience())

    def here(self, work: Callable[[Writer], T | None]) -> T | None:
        """Run a short statement of a block at once, on the event loop's thread. None, with nothing changed: ``write``
        must run it, since it would take long; so too after an error. Raises BlockedError, with nothing changed."""
        return self._borrowed(work)

    async def after(self, blocked: BlockedError, work: Callable[[Writer], T | None]) -> T | None:
        """``here``, once the lock that it has met is free. None, with nothing changed: ``write`` must run it. Raises
        55P03, 40P01."""
        met: BlockedError | None = blocked

        async def run() -> T | None:
            nonlocal met
            if met is not None:
                first, met = met, None
                raise first
            with suppress(SqlError):  # ``write`` raises it too
                return self.here(work)
            return None

        return await self.jobs.waits.attempt(run, self.owner, self.patience())

    def _borrowed(self, work: Callable[[Writer], T | None]) -> T | None:
        self._own = None
        jobs = self.jobs
        if not jobs.borrow():
            return None
        jobs.engine.rests = True
        try:
            writer = self._enter()
            with movable(HERE_SECONDS, unchanged(writer)):
                return self._attempt(writer, work, again=True)
        except TooLongHereError:
            return None
        finally:
            jobs.engine.rests = False
            jobs.give_back()

    def _here(self, work: Callable[[Writer], T]) -> T:
        with self.jobs.engine.resting():
            writer = self._enter()
            with movable(HERE_SECONDS, unchanged(writer)):
                return self._attempt(writer, work)

    def _attempt(self, writer: Writer, work: Callable[[Writer], T], again: bool = False) -> T:
        """``again``: if it fails it is run once more, to report that."""
        mark, reads = writer.mark(), self.reads.mark()
        try:
            return work(writer)
        except BlockedError:
            writer.rollback_to(mark)
            self.reads.return_to(reads)
            raise
        except TooLongHereError:  # what it has read is no longer what it goes by: it runs again from the beginning
            self.reads.return_to(reads)
            raise
        except SqlError:
            if again:
                writer.rollback_to(mark)
                self.reads.return_to(reads)
            raise

    def _whole(self, work: Callable[[Writer], T]) -> T:
        engine = self.jobs.engine
        if engine.dataflow.waits:
            engine.pass_time()
        writer = Writer.begin(engine, self.owner)
        try:
            result = work(writer)
            writer.commit()
        except BaseException:
            writer.rollback()
            raise
        return result

    def _whole_here(self, work: Callable[[Writer], T]) -> Awaitable[T] | None:
        job = self.begin_here(work)
        return None if job is None else self.jobs.wait(job)

    def begin_here(self, work: Callable[[Writer], T]) -> Job[T] | None:
        """``_whole`` on the event loop's thread. None, with nothing changed, if that would take long."""
        engine = self.jobs.engine
        if engine.dataflow.waits:
            engine.pass_time()
        writer = Writer.begin(engine, self.owner)
        try:
            with engine.resting(), movable(HERE_SECONDS, unchanged(writer)):
                result = work(writer)
            writer.commit()
        except TooLongHereError:
            return None
        except BaseException:
            if writer.updates:
                self.jobs.start(writer.rollback)
            raise
        return self.jobs.begin(result)

    def go_on(self) -> Writer:
        """On the engine thread: the writer, for the next part of a routine. Raises BlockedError, and 40001: commits
        have changed what was read."""
        self._own = None
        return self._enter()

    def commit_part(self) -> None:
        """Commit at the end of a part of a routine. Raises BlockedError, with nothing changed; other errors roll
        back."""
        self._commit_now()
        self.writer = None

    def renew(self, started: int, read_only: bool, fresh: bool) -> None:
        """Begin a new transaction, for a statement that has ended one."""
        assert self.writer is None, "it has ended"
        self.started, self.read_only, self.fresh, self.queried = started, read_only, fresh, False
        self._base = self._own = self._number = None
        self.reads = ReadSet()
        self.afterwards.clear()

    def _enter(self) -> Writer:
        """The writer, over the newest commits. Raises BlockedError, and 40001: they have changed what was read."""
        engine = self.jobs.engine
        if self.writer is None:
            self.writer = Writer.open(engine, self.owner)
        else:
            self.writer.enter()
        if self.checks_reads:
            self._check_reads()
        return self.writer

    def _check_reads(self) -> None:
        engine = self.jobs.engine
        if self.jobs.idle or not engine.rests:  # a borrowed engine shows nothing newer than what is published
            engine.flush()
        base, newest = self._base, engine.newest
        if base is not None and self._has_changed(base, newest):
            raise SqlError("40001", "could not serialize access due to concurrent update",
                           "Another transaction has committed a change of what this one has read.",
                           "Run the transaction again.")  # fmt: skip
        if base is not newest:
            self._base, self._own = newest, None

    def _has_changed(self, base: Published, newest: Published) -> bool:
        """Whether what has been read is not in the newest state as it was in the snapshot."""
        engine = self.jobs.engine
        if base is newest or not self.reads:
            return False
        gone = base.catalog is not engine.catalog and any(
            i in base.catalog.relations and i not in engine.catalog.relations for i in self.reads.relations
        )
        return gone or engine.recent.conflicts(self.reads, base.ordinal)

    async def commit(self) -> None:
        """The changes are durable and published on return. A cancel or an error rolls back."""
        writer = self.writer
        if writer is None:
            self.call_afterwards()
            return
        here = not (writer.deferred or writer.finishing or writer.may_be_long)
        try:
            await self.jobs.waits.attempt(lambda: self._commit(here), self.owner, self.patience())
        except BaseException:
            await self.rollback()
            raise
        self.writer = None
        self.call_afterwards()

    async def _commit(self, here: bool) -> None:
        """``here``: it is short enough for the event loop's thread."""
        if here and self.jobs.alone:
            await self.jobs.end_here(self._commit_now(), keep=True)
        else:
            await self.jobs.queue(self._commit_now, firm=True)

    def _commit_now(self) -> int:
        writer = self._enter()
        mark = writer.mark()
        try:
            return writer.commit()
        except BlockedError:
            writer.rollback_to(mark)
            raise

    async def rollback(self) -> None:
        writer, self.writer = self.writer, None
        if writer is not None:
            await self.jobs.queue(writer.rollback, keep=True)
        self.call_afterwards()

    def call_afterwards(self) -> None:
        """The transaction has ended."""
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
        await self.jobs.submit(
            lambda: writer.rollback_to(Mark(0, 0, self.jobs.engine.catalog) if mark is None else mark)
        )

    def _find(self, name: str) -> int:
        for place in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[place][0] == name:
                return place
        raise SqlError("3B001", f'savepoint "{name}" does not exist')
