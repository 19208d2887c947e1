"""A routine's statements, between which others go on, as between those of a transaction block.

Each part of the routine is a job of the engine thread, which enters the transaction anew. A part ends between two
statements when others wait, and where a statement has met a lock: only that one is undone and runs again. What the
transaction has read is checked when it goes on. If it is alone in its transaction and has lost against another one
(40001), it is undone and runs again, then in one part, so that it cannot lose. A procedure that has committed cannot be
undone: unless it is in READ COMMITTED, others go on at its commits only, which are made in the part that asks for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Final, Generic, NamedTuple, TypeVar, cast

from ivm.errors import SqlError
from sql.coordination.parts import Parts
from sql.coordination.prepared import StaleError
from sql.coordination.transaction import Extent, Transaction
from sql.engine.mark import Mark
from sql.engine.row_locks import BlockedError
from sql.engine.writer import Writer

T = TypeVar("T")
PART_SECONDS: Final = 0.002
"""How long a part lasts at least, while others wait."""
LONGEST_SECONDS: Final = 0.025
"""How long it lasts at least if the others took as long."""
_TIMES: Final = 4
"""How many times as long as it has taken to go on."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A routine asks for its transaction to be ended."""

    commit: bool
    chain: bool


@dataclass(frozen=True, slots=True)
class Pause:
    """A routine asks to be left alone for some seconds (pg_sleep)."""

    seconds: float


class Begun(NamedTuple):
    """Where a statement began: its writer, and what the transaction had changed and read."""

    writer: Writer
    mark: Mark
    reads: tuple[int, frozenset[int]]


class LostError(SqlError):
    """A transaction's part cannot go on (40001): others have changed what it has read."""


class Steps(Generic[T]):
    """One run of a routine. ``work`` interprets it, and calls what comes first here. ``whole``: in one part, and if it
    meets a lock it is undone and runs again as a whole. ``ended_one``: whether it has ended a transaction."""

    def __init__(self, transaction: Transaction, work: Callable[[Writer], T], *, whole: bool = False) -> None:
        self.whole = whole
        self.ended_one = False
        self.part = 0
        self._transaction = transaction
        self._work = work
        self._parts: Parts[T] | None = None
        self._start: Begun | None = None
        self._given: SqlError | None = None
        self._ending: Ending | None = None
        """What it has asked for, while a lock keeps it from being done."""
        self._failed = False
        self._until = 0.0
        self._left = 0.0
        """When it let others go on, in its last part; 0: it did not."""

    # For the routine, on its thread.

    @property
    def writer(self) -> Writer:
        """The transaction's."""
        assert self._transaction.writer is not None, "a part runs"
        return self._transaction.writer

    def between(self) -> None:
        """Between two statements: let others go on who wait. Raises Stopped, and errors of a lock that was waited
        for."""
        if self.whole or (self.ended_one and self._transaction.checks_reads):
            return
        now = perf_counter()
        if now > self._until and self._transaction.jobs.waited_for:
            self._left = now
            self._rest(None)

    def begin(self) -> Begun:
        """A statement begins."""
        writer = self.writer
        return Begun(writer, writer.mark(), self._transaction.reads.mark())

    def wait(self, begun: Begun, blocked: BlockedError) -> None:
        """Undo a statement, and wait for the lock that it has met. Raises BlockedError, 40P01, 55P03."""
        if self.whole:
            raise blocked
        if begun.writer is not self.writer:
            raise blocked.error
        self._undo(begun)
        self._rest(blocked)

    def pause(self, seconds: float) -> bool:
        """Wait for some seconds, in which others go on. False: not now."""
        if not self.whole:
            self._rest(Pause(seconds))
        return not self.whole

    def end(self, *, commit: bool, chain: bool) -> None:
        """End the transaction, and go on in a new one. Raises the errors of the commit."""
        self.whole, self.ended_one = False, True
        self._rest(Ending(commit, chain))

    def _rest(self, reason: object) -> None:
        assert self._parts is not None, "a part runs"
        self._parts.rest(reason)

    # For the session, on the event loop.

    async def run(self, ending: Callable[[Ending], Awaitable[SqlError | None]], *, commits: bool) -> T:
        """The routine's result. ``commits``: its last part commits. ``ending`` ends the transaction and begins a new
        one; the error of the commit. Raises the routine's errors, and LostError."""
        cancelled = _cancelling()
        try:
            while (reason := await self._next(commits)) is not self:
                if isinstance(reason, Pause):
                    await asyncio.sleep(reason.seconds)
                elif isinstance(reason, Ending):
                    failed = self._given
                    error = await ending(Ending(reason.commit and failed is None, reason.chain))
                    self._given = failed or error
                if _cancelling() > cancelled:
                    raise asyncio.CancelledError  # it came when a job had done its work
        finally:
            if self._parts is not None:
                self._parts.stop(SqlError("57014", "canceling statement due to user request"))
        assert self._parts is not None, "it has run"
        return cast("T", self._parts.result)

    async def _next(self, commits: bool) -> object:
        """Run a part, once it may: why it has ended, and this itself at the end of the routine."""
        transaction = self._transaction

        async def attempt() -> object:
            self._failed = True
            try:
                found = await transaction.jobs.submit(lambda: self._job(commits))
            except BlockedError:
                self._failed = False
                raise
            self._failed = False
            return found

        try:
            reason = await transaction.jobs.waits.attempt(attempt, transaction.owner, transaction.patience())
        except SqlError as error:
            if self._failed or self._parts is None or self._parts.ended:
                raise
            if self._ending is not None:
                self._given, reason, self._ending = error, self._ending, None
                return reason
            self._given, reason = error, None  # of the lock that it has waited for, which its handlers may catch
        return reason

    @property
    def _ended(self) -> bool:
        return self._parts is not None and self._parts.ended

    def _job(self, commits: bool) -> object:
        """A part, on the engine thread. Raises BlockedError, after which it goes on where it was."""
        before = perf_counter()
        transaction = self._transaction
        writer = self._enter()
        now = perf_counter()
        gone = before - self._left if self._left else 0.0
        self._left = 0.0
        self._until = now + max(PART_SECONDS, min(gone, LONGEST_SECONDS), _TIMES * (now - before))
        self.part += 1
        reason: object = self._ending
        if reason is None and not self._ended:
            reason = self._run_part(writer)
        if isinstance(reason, BlockedError):
            raise reason
        if isinstance(reason, Ending):
            self._end(reason)
        elif self._ended:
            if commits and transaction.shared is None:
                transaction.commit_part()
            return self
        return reason

    def _end(self, asked: Ending) -> None:
        """Commit, if that is asked for and no other database takes part."""
        if not asked.commit or self._transaction.shared is not None:
            return
        self._ending = asked
        try:
            self._transaction.commit_part()
        except SqlError as error:
            self._given = error
        self._ending = None

    def _enter(self) -> Writer:
        try:
            return self._transaction.go_on()
        except SqlError as error:
            if error.sqlstate != "40001":
                raise
            raise LostError(error.sqlstate, error.message, error.detail, error.hint) from None

    def _run_part(self, writer: Writer) -> object:
        engine, jobs = writer.engine, self._transaction.jobs
        if self._parts is None:
            self._start = self.begin()
            self._parts = Parts(lambda: self._work(writer), engine.dataflow.cancel, engine.dataflow.budget)
        given, self._given = self._given, None
        parts = self._parts
        try:
            with jobs.lent(lambda: parts.ident):
                return parts.go_on(given)
        except (BlockedError, StaleError) as error:
            if self.ended_one or self._start is None:
                raise (error.error if isinstance(error, BlockedError) else error) from None
            self._undo(self._start)
            self._parts = None
            raise

    def _undo(self, begun: Begun) -> None:
        begun.writer.rollback_to(begun.mark)
        self._transaction.reads.return_to(begun.reads)


def _cancelling() -> int:
    """How many cancels the running task has been given. The task is not kept: a frame that an error has passed would
    keep it with the error, and it the error."""
    task = asyncio.current_task()
    assert task is not None, "a task runs statements"
    return task.cancelling()


def is_alone(transaction: Transaction) -> bool:
    """Whether a transaction has one statement only."""
    return transaction.extent in (Extent.STATEMENT, Extent.ROUTINE)
