"""INSERT, UPDATE and DELETE of one row: in a transaction block that BEGIN has opened, or where no other session is at
work, so that the commit can be made at once too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from ivm.words import SqlType
from sql.coordination.prepared import Prepared
from sql.coordination.thread import Job
from sql.coordination.transaction import Extent, Transaction
from sql.engine.row_locks import BlockedError
from sql.engine.state import TooLongHereError
from sql.engine.writer import Writer
from sql.pgwire.messages_backend import BIND_COMPLETE, NO_DATA, READY, CommandComplete
from sql.pgwire.run_request import Begun, RunRequest
from sql.pgwire.values import DIGITS, decode_parameter
from sql.session.information import text_style
from sql.session.request import Request
from sql.session.state import SessionState
from sql.session.transactions import ended
from sql.session.writes import Writes
from sql.statements.results import CommandResult, Result
from sql.statements.statements import DataChange, Delete, Insert, Update
from storage.types.text_style import TextStyle

General = Callable[[Prepared, Request], Awaitable[Result]]


@dataclass(frozen=True, slots=True)
class RowChange:
    """``general``: runs it as any other; ``types``: of the parameters, each with the length of texts that are in its
    range if they are digits; ``style``: of the parameters' texts; ``tags`` and ``done``: the command's tag
    and CommandComplete, by the number of rows that have been changed."""

    state: SessionState
    writes: Writes
    general: General
    prepared: Prepared
    statement: DataChange
    types: tuple[tuple[SqlType, int], ...]
    style: TextStyle
    tags: tuple[str, str]
    done: tuple[bytes, bytes]

    def answer(self, request: RunRequest) -> bytes | Begun | None:
        state = self.state
        if len(self.types) != len(request.values):
            return None
        datums = self._datums(request)
        head = BIND_COMPLETE + NO_DATA if request.described else BIND_COMPLETE
        if state.transaction is None:
            return self._alone(head, datums)
        transaction = state.transaction
        if transaction.read_only:
            return None
        transaction.begin_statement()
        transaction.queried = True
        work = partial(self._run, datums)
        try:
            changed = transaction.here(work)
        except BlockedError as blocked:
            state.portals.pop("", None)
            return Begun(head, partial(self._after, blocked.with_traceback(None), transaction, work, datums))
        if changed is None:
            return None
        state.portals.pop("", None)
        return head + self.done[changed] + READY["T"]

    def _datums(self, request: RunRequest) -> tuple[object, ...]:
        if request.datums is not None:
            return request.datums
        datums: list[object] = []
        texts = not any(request.forms)
        for i, (type_, digits) in enumerate(self.types):
            value = request.values[i]
            if value is None:
                datums.append(None)
            elif texts and len(value) <= digits and value.removeprefix(b"-").isdigit():
                datums.append(int(value))
            else:
                datums.append(decode_parameter(type_, request.form(i), value, self.style))
        return tuple(datums)

    async def _after(
        self, blocked: BlockedError, transaction: Transaction, work: Callable[[Writer], int | None],
        datums: tuple[object, ...],
    ) -> CommandResult:  # fmt: skip
        """The result after a lock has been waited for."""
        interrupts = self.state.interrupts
        interrupts.forget()
        with interrupts.limited(self.state.settings.milliseconds("statement_timeout")), interrupts.interruptible():
            changed = await transaction.after(blocked, work)
            if changed is not None:
                return CommandResult(self.tags[changed])
            result = await self.general(self.prepared, Request(datums))
        self.state.report_settings()
        assert isinstance(result, CommandResult), "there is no RETURNING"
        return result

    def _alone(self, head: bytes, datums: tuple[object, ...]) -> bytes | Begun | None:
        """The same where the statement commits by itself."""
        state, jobs = self.state, self.state.coordinator.jobs
        if not jobs.alone or state.several or jobs.engine.costs.may_be_long({self.statement.table.id: 1}):
            return None
        transaction = state.begin_implicit(Extent.STATEMENT)
        job: Job[int] | None = None
        try:
            if not transaction.read_only:
                job = transaction.begin_here(partial(self._run_or_leave, datums))
        except BlockedError:
            pass
        finally:
            if job is None:
                ended(state, committed=False)
        if job is None:
            return None
        if not job.future.done():
            return Begun(head, partial(self._durable, job))
        ended(state, committed=True)
        return head + self.done[job.future.result()] + READY["I"]

    async def _durable(self, job: Job[int]) -> CommandResult:
        self.state.interrupts.forget()
        with self.state.interrupts.interruptible():
            changed = await self.state.coordinator.jobs.wait(job)
        return CommandResult(self.tags[changed])

    def _run(self, datums: tuple[object, ...], writer: Writer) -> int | None:
        return self.writes.row_now(writer, self.statement, self.prepared, datums)

    def _run_or_leave(self, datums: tuple[object, ...], writer: Writer) -> int:
        changed = self._run(datums, writer)
        if changed is None:
            raise TooLongHereError
        return changed


def row_change(state: SessionState, writes: Writes, general: General, prepared: Prepared) -> RowChange | None:
    """A statement as the change of one row, if it may be one."""
    statement = prepared.bound.statement
    if not isinstance(statement, Insert | Update | Delete) or prepared.bound.interpreted:
        return None
    if statement.returning is not None:
        return None
    name = type(statement).__name__.upper()
    tag = f"{name} 0" if name == "INSERT" else name
    tags = f"{tag} 0", f"{tag} 1"
    none, one = (CommandComplete(tag).encode() for tag in tags)
    types = tuple((type_, DIGITS.get(type_.kind, 0)) for type_ in prepared.bound.parameters)
    return RowChange(state, writes, general, prepared, statement, types, text_style(state), tags, (none, one))
