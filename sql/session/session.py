"""One client's session: runs the wire protocol's calls as statements in transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Final, Literal, TypeVar

from ivm.errors import SqlError
from ivm.words import SqlType
from planner.memo import forget_large
from planner.peek.multiplicity import NegativeCountError
from sql.admission.admission import OPEN, OWN, Admission
from sql.catalog.user_types import type_of_oid
from sql.coordination.coordinator import Coordinator
from sql.coordination.planning import SHOWN_CHARACTERS, is_long
from sql.coordination.prepared import Prepared
from sql.coordination.transaction import Extent
from sql.engine.clock import timestamp_now
from sql.parse import StatementText, no_parameter, parsed, split
from sql.pgwire.run_request import Begun, RunRequest
from sql.pgwire.values import decode_parameter
from sql.session.at_once.lane import AtOnce
from sql.session.discarding import drop_own_temporary
from sql.session.execute import Executor
from sql.session.idle_timer import IdleTimer
from sql.session.information import output_style, text_style
from sql.session.portal import NamedStatement, Portal, PortalRows
from sql.session.preparing import (
    current,
    executed,
    known_current,
    new_statement,
    output_columns,
    prepare,
    prepare_once,
    prepared_before,
    statement_named,
    takes_long,
)
from sql.session.request import Request
from sql.session.state import SessionState
from sql.session.transactions import aborted, end_implicit, ends_failed_block, fail, run_transaction_control
from sql.statements.queries import OutputColumn, Query
from sql.statements.results import CopyInResult, CopyOutResult, EmptyResult, Result, RowsResult
from sql.statements.statements import Begin, Commit, Delete, Insert, Merge, Rollback, Savepoint, Update
from sql.syntax.lexing.standard_strings import StandardText
from sql.system.state import CopyInfo, SessionInfo
from storage.types.text import ALIKE
from storage.types.text_style import DEFAULT_STYLE, TextStyle
from storage.types.type_names import type_from_oid

T = TypeVar("T")
_Once = tuple[Prepared, tuple[object, ...]]
"""As ``prepare_once`` gives it."""
UNSPECIFIED_TYPES = (0, 705)
"""Oids by which a client leaves a parameter's type open: none, and unknown."""


_WHOLE: Final = (Query, Insert, Update, Delete, Merge, Begin, Commit, Rollback, Savepoint)
"""The statements that the wire may run without looking at its messages one by one."""


class Session:
    """The wire makes one call at a time, except for ``cancel``.

    Every call raises SqlError for a client's mistake. The wire then calls ``fail``.
    """

    def __init__(
        self, coordinator: Coordinator, user: str, database: str, parameters: dict[str, str],
        admission: Admission = OPEN,
    ) -> None:  # fmt: skip
        self.state = state = SessionState(coordinator, user, database, parameters, admission)
        self.backend_id = state.backend_id
        self.notices = state.notices
        self.parameter_changes = state.parameter_changes
        self.inbox = state.notifications.inbox
        self.signalled: Callable[[bool], None] | None = None
        """Set by the wire: called when another session asks to cancel this one's statement, or (True) to end the
        session."""
        self._executor = Executor(state)
        self._loop = asyncio.get_running_loop()
        self._lane = AtOnce(state, self._executor.reads, self._executor.writes, self._executor.run)
        self._idle = IdleTimer(state)
        self._closed = False
        coordinator.sessions.add(self)

    @property
    def transaction_status(self) -> Literal["I", "T", "E"]:
        """The status for ReadyForQuery."""
        return self.state.transaction_status

    @property
    def text_style(self) -> TextStyle:
        """The settings of the text forms of values."""
        return output_style(self.state)

    def connected(self, client: tuple[str, int], server: tuple[str, int]) -> None:
        """Told by the wire of a client with TCP: its host and port, and the server's."""
        self.state.addresses = client, server

    @property
    def internal(self) -> bool:
        """Whether it is one of the server's own."""
        return self.state.admission is OWN

    @property
    def copying(self) -> Callable[[], CopyInfo] | None:
        """Reports the progress of the running COPY; None if none runs."""
        return self.state.copying

    def info(self) -> SessionInfo:
        """The row of pg_stat_activity."""
        return self.state.info()

    # The simple protocol.

    def simple(self, text: str) -> AsyncGenerator[Result]:
        """The results of a query string's statements, which run in one implicit transaction if there are several."""
        return self._simple(text) if self.state.settings.quoting is None else self._simple_as_standard(text)

    async def _simple_as_standard(self, text: str) -> AsyncGenerator[Result]:
        """The same where strings are not read as the standard says."""
        read = await self._as_standard(text)
        try:
            async with aclosing(self._simple(read.text)) as results:
                async for result in results:
                    yield result
        except SqlError as error:
            raise read.led_back(error) from None

    async def _as_standard(self, text: str) -> StandardText:
        work = partial(self.state.standard, text)
        return await self._long(work, text) if is_long(text) else work()

    async def _simple(self, text: str) -> AsyncGenerator[Result]:
        self._idle.stop()
        self.state.several = False
        found = await self._long(partial(self._only, text), text) if is_long(text) else parsed(text)
        statements = found if isinstance(found, list) else [found[0]]
        if not statements:
            self._idle.start()
            yield EmptyResult()
            return
        self.state.several = len(statements) > 1
        for place, statement in enumerate(statements):
            single = len(statements) == 1 and self.state.transaction is None
            prepared, constants = await self._prepared_once(statement) if isinstance(found, list) else found[1]
            if prepared.bound.parameters and not constants:
                raise no_parameter(statement)
            result = await self._run(prepared, Request(constants, single, text=statement.text if constants else None))
            last = place == len(statements) - 1
            if last and not isinstance(result, CopyInResult | CopyOutResult):  # an error of the commit comes before it
                await end_implicit(self.state)
            yield result
            if last:
                await end_implicit(self.state)
        self._idle.start()

    def _only(self, text: str) -> list[StatementText] | tuple[StatementText, _Once]:
        """A query string's statements; an only one is prepared, too."""
        found = parsed(text)
        return (found[0], prepare_once(self.state, found[0])) if len(found) == 1 else found

    # The extended protocol.

    async def parse(self, name: str, text: str, parameter_oids: Sequence[int]) -> None:
        """Prepare a statement. 42P05: the name is taken."""
        if self.state.settings.quoting is None:
            return await self._parse(name, text, parameter_oids)
        read = await self._as_standard(text)
        try:
            await self._parse(name, read.text, parameter_oids)
        except SqlError as error:
            raise read.led_back(error) from None

    async def _parse(self, name: str, text: str, parameter_oids: Sequence[int]) -> None:
        self._idle.stop()
        self.state.several = False
        if name and name in self.state.statements:
            raise SqlError("42P05", f'prepared statement "{name}" already exists')
        types = tuple(None if oid in UNSPECIFIED_TYPES else self._type(oid) for oid in parameter_oids)
        statements = await self._long(partial(split, text), text) if is_long(text) else split(text)
        if len(statements) > 1:
            raise SqlError("42601", "cannot insert multiple commands into a prepared statement")
        prepared: Prepared | None = None
        constants: tuple[object, ...] = ()
        if statements and (name or types):
            prepared = await self._prepared(statements[0], types)
        elif statements:
            prepared, constants = await self._prepared_once(statements[0])
        text = statements[0].text if statements else ""
        named = NamedStatement(text, types, prepared, timestamp_now(), constants=constants)
        self.state.statements[name] = new_statement(self.state, named)

    def _type(self, oid: int) -> SqlType | None:
        known = type_from_oid(oid)
        own = None if known is not None else type_of_oid(self.state.catalog.relations.values(), oid)
        return known if own is None else own[1]

    def describe_statement(self, name: str) -> tuple[tuple[SqlType, ...], tuple[OutputColumn, ...] | None]:
        """The types of the parameters, and the columns (None: no rows)."""
        named = statement_named(self.state, name)
        if named.prepared is None:
            return (), None
        return named.parameters, output_columns(self.state, named.prepared.bound.statement)

    async def bind(
        self,
        portal: str,
        statement: str,
        parameters: Sequence[bytes | None],
        formats: Sequence[int],
        result_formats: Sequence[int],
    ) -> None:
        """Create a portal. 42P03: the name is taken; 08P01: the wrong number of parameters."""
        self._idle.stop()
        named = statement_named(self.state, statement)
        known = known_current(self.state, named)
        if known is None:
            work = partial(current, self.state, named)
            known = await self._long(work, named.text) if is_long(named.text) else work()
        named = known
        if portal and portal in self.state.portals:
            raise SqlError("42P03", f'cursor "{portal}" already exists')
        types = named.parameters
        if len(parameters) != len(types):
            raise SqlError(
                "08P01",
                f'bind message supplies {len(parameters)} parameters, but prepared statement "{statement}" '
                f"requires {len(types)}",
            )
        datums = []
        style = DEFAULT_STYLE if all(t.kind in ALIKE for t in types) else text_style(self.state)
        if (encoding := self.state.settings.encoding) is not None:
            style = replace(style, encoding=encoding)
        for i, (type_, data) in enumerate(zip(types, parameters, strict=True)):
            form = formats[0] if len(formats) == 1 else formats[i] if formats else 0
            datums.append(None if data is None else decode_parameter(type_, form, data, style))
        self.state.portals[portal] = Portal(named, named.constants or tuple(datums), tuple(result_formats))

    def describe_portal(self, name: str) -> tuple[OutputColumn, ...] | None:
        state = self.state
        if name not in state.portals and (cursor := state.cursors.find(name)) is not None:
            return cursor.columns
        prepared = self._portal(name).statement.prepared
        return None if prepared is None else output_columns(state, prepared.bound.statement)

    async def execute(self, portal: str, max_rows: int, final: bool = False) -> Result:
        """Run a portal, or continue it. ``final``: Sync follows, so that this statement may commit by itself."""
        state = self.state
        if portal not in state.portals and (cursor := state.cursors.find(portal)) is not None:
            if state.failed:
                raise aborted()
            return await cursor.execute(max_rows)
        found = self._portal(portal)
        if found.rows is not None:
            return found.result(max_rows)
        prepared = found.statement.prepared
        if prepared is None:
            return EmptyResult()
        text = found.statement.text if found.statement.constants else None
        request = Request(found.parameters, final and state.transaction is None, text=text)
        result = await self._run(prepared, request)
        if isinstance(result, RowsResult):
            found.rows = PortalRows(result.columns, result.rows, result.dictionary, result.tag)
            return found.result(max_rows)
        return result

    def runs_whole(self, statement: str) -> bool:
        """Whether it takes no messages while it runs, as COPY does."""
        named = self.state.statements.get(statement)
        return named is not None and named.prepared is not None and isinstance(named.prepared.bound.statement, _WHOLE)

    def answer(self, request: RunRequest) -> bytes | Begun | None:
        """Run a statement at once, if it is short and nothing else is to be said; None: call the others."""
        return None if self._idle.expired else self._answered(self._lane.answer(request))

    def answer_text(self, text: str) -> bytes | Begun | None:
        """The same for a query string."""
        if self._idle.expired or self.state.settings.quoting is not None:
            return None
        self.state.several = False
        return self._answered(self._lane.answer_text(text))

    def _answered(self, answer: bytes | Begun | None) -> bytes | Begun | None:
        if isinstance(answer, Begun):
            self._idle.stop()
        elif answer is not None and self.state.transaction is not None:
            self._idle.start()
        return answer

    def close_statement(self, name: str) -> None:
        self.state.statements.pop(name, None)

    def close_portal(self, name: str) -> None:
        """Close a portal or a cursor. No effect if there is none of that name."""
        state = self.state
        if state.portals.pop(name, None) is None and state.cursors.find(name) is not None:
            state.cursors.close(name)

    def _portal(self, name: str) -> Portal:
        found = self.state.portals.get(name)
        if found is None:
            raise SqlError("34000", f'portal "{name}" does not exist')
        return found

    async def sync(self) -> None:
        """End the implicit transaction of the extended protocol."""
        await end_implicit(self.state)
        self._idle.start()

    # Both protocols.

    async def _prepared(self, statement: StatementText, types: tuple[SqlType | None, ...] = ()) -> Prepared:
        work = partial(prepare, self.state, statement, types)
        return await self._long(work, statement.text) if is_long(statement.text) else work()

    async def _prepared_once(self, statement: StatementText) -> _Once:
        found = prepared_before(self.state, statement)
        if found is not None:
            return found
        work = partial(prepare_once, self.state, statement)
        return await self._long(work, statement.text) if takes_long(self.state, statement) else work()

    async def _long(self, work: Callable[[], T], text: str) -> T:
        """Work on the text of a long statement, which its timeout or a cancel may end."""
        state = self.state
        limit = state.settings.milliseconds("statement_timeout")
        state.interrupts.forget()
        with state.interrupts.limited(limit), state.interrupts.interruptible():
            return await state.coordinator.planning.run(work, len(text))

    async def _run(self, prepared: Prepared, request: Request) -> Result:
        """One statement, with its timeout, in its transaction."""
        state = self.state
        text = prepared.text if request.text is None else request.text
        state.coordinator.jobs.record_statement(state.backend_id, text)
        state.copying = None
        statement = prepared.bound.statement
        if state.failed and not ends_failed_block(statement):
            raise aborted()
        state.statement, state.statement_started = text[:SHOWN_CHARACTERS], timestamp_now()
        control = await run_transaction_control(state, executed(state, statement))
        if control is not None:
            return control
        state.interrupts.forget()
        state.pause = 0.0
        with state.interrupts.limited(state.settings.milliseconds("statement_timeout")):
            state.begin_implicit(Extent.STATEMENT if request.single else Extent.MESSAGE).begin_statement()
            with state.interrupts.interruptible():
                try:
                    result = await self._executor.run(prepared, request)
                    if state.pause:
                        await state.rest(isinstance(statement, Query))
                except NegativeCountError:
                    state.coordinator.refills.look()
                    raise
                finally:
                    if prepared.long:
                        forget_large(len(text))
            state.report_settings()
        return result

    async def fail(self) -> None:
        """After an error: mark a transaction block as failed; roll back any other transaction."""
        self._idle.cancel()
        self.state.several = False
        self.state.copying = None
        await fail(self.state)

    def signal(self, terminate: bool) -> None:
        """pg_cancel_backend or pg_terminate_backend, from any thread. The wire carries it out if a client is
        connected."""
        self._loop.call_soon_threadsafe(self._on_signal, terminate)

    def _on_signal(self, terminate: bool) -> None:
        if self.signalled is not None:
            self.signalled(terminate)
        elif self.state.interrupts.running:
            self._cancel()

    async def cancel(self) -> None:
        """Interrupt what is running, if anything is."""
        self._cancel()

    def _cancel(self) -> None:
        self.state.interrupts.interrupt(SqlError("57014", "canceling statement due to user request"))

    async def close(self) -> None:
        """The client has disconnected: roll back, and free everything."""
        if self._closed:
            return
        self._closed = True
        self._idle.cancel()
        state = self.state
        state.coordinator.sessions.discard(self)
        state.cursors.close_all()
        state.notifications.close()
        transaction, state.transaction = state.transaction, None
        if transaction is not None:
            await transaction.rollback()
        for held in (True, False):
            state.coordinator.advisory.release(state.backend_id, transaction=held)
        await drop_own_temporary(state)
