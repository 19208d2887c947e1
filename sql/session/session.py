"""One client's session: protocol calls → statements in transactions → results."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from ivm.errors import SqlError
from ivm.words import SqlType
from sql.catalog.catalog import Catalog
from sql.catalog.column_types import type_from_oid
from sql.catalog.enumeration import type_of_oid
from sql.catalog.search_path import SearchPath, path_of
from sql.coordination.notifications import Notifications
from sql.coordination.prepared import Prepared, output_columns
from sql.coordination.transaction import Transaction
from sql.ddl.create import drop_temporary
from sql.engine.clock import POSTGRES_EPOCH, wall_clock
from sql.parse import StatementText, no_parameter, split
from sql.pgwire.values import decode_parameter
from sql.session.control import show_columns
from sql.session.cursors import Cursor, Cursors
from sql.session.execute import Executor
from sql.session.portal import NamedStatement, Portal, Rows
from sql.session.reads import Request
from sql.session.state import SessionState
from sql.settings.settings import Settings
from sql.statements.queries import OutputColumn
from sql.statements.results import CommandResult, EmptyResult, Notice, Result, RowsResult
from sql.statements.statements import Begin, Commit, Modes, Rollback, Savepoint, Show, Statement
from sql.system.state import CopyInfo, SessionInfo
from storage.types.text_style import DEFAULT_STYLE, TextStyle

if TYPE_CHECKING:
    from sql.coordination.coordinator import Coordinator

_BACKENDS = itertools.count(1)
_ABORTED = SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")


class Session:
    """The wire drives it, one call at a time, but for ``cancel``.

    Every call raises SqlError for what the client did wrong; the wire then calls ``fail``. ``parameter_changes``:
    reported settings with new values, drained by the wire like ``notices``.
    """

    def __init__(self, coordinator: Coordinator, user: str, database: str, parameters: dict[str, str]) -> None:
        self.coordinator = coordinator
        self.user = user
        self.database = database
        self.settings = Settings()
        self.notices: list[Notice] = []
        self.parameter_changes: list[tuple[str, str]] = []
        self.transaction: Transaction | None = None
        self.statements: dict[str, NamedStatement] = {}
        self.portals: dict[str, Portal] = {}
        self.cursors = Cursors()
        self.copying: Callable[[], CopyInfo] | None = None
        """Tells how far the COPY that runs has come."""
        self.signalled: Callable[[bool], None] | None = None
        self._executor = Executor(self)
        self._loop = asyncio.get_running_loop()
        self._failed = False
        self._task: asyncio.Task[object] | None = None
        self._interrupted: SqlError | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._idle_error: SqlError | None = None
        self._closed = False
        self._path: tuple[str, int, SearchPath] | None = None
        self.numbers: dict[int, int] = {}
        """What each sequence gave last, by its id: currval."""
        self.last_sequence = 0
        self.backend_id = next(_BACKENDS)
        self.notifications = Notifications(coordinator.channels, self.backend_id)
        self._query = ""
        self._started = wall_clock() - POSTGRES_EPOCH
        self._set_defaults(parameters)
        self.parameter_changes = self.settings.report()
        coordinator.sessions.add(self)

    @property
    def transaction_status(self) -> Literal["I", "T", "E"]:
        if self._failed:
            return "E"
        return "T" if self.transaction is not None and self.transaction.explicit else "I"

    @property
    def text_style(self) -> TextStyle:
        """What values' text forms depend on."""
        transaction = self.transaction
        catalog = self.coordinator.engine.published.catalog if transaction is None else transaction.catalog
        now = wall_clock() - POSTGRES_EPOCH if transaction is None else transaction.started
        return TextStyle(self.settings.get("timezone"), now, SessionState(self, catalog), self.settings.formats)

    # The simple protocol.

    async def simple(self, text: str) -> AsyncIterator[Result]:
        """The results of a query string, one statement after the other, in one implicit transaction if several."""
        statements = split(text)
        if not statements:
            yield EmptyResult()
            return
        self._arrive()
        for place, statement in enumerate(statements):
            single = len(statements) == 1 and self.transaction is None
            prepared = self.prepare(statement, ())
            if prepared.bound.parameters:
                raise no_parameter(statement)
            yield await self._run(prepared, Request(single=single))
            if place == len(statements) - 1:
                await self._end_implicit()
        self._leave()

    # The extended protocol.

    async def parse(self, name: str, text: str, parameter_oids: Sequence[int]) -> None:
        """A prepared statement. 42P05: the name is taken."""
        self._arrive()
        if name and name in self.statements:
            raise SqlError("42P05", f'prepared statement "{name}" already exists')
        types = tuple(None if oid in (0, 705) else self._type(oid) for oid in parameter_oids)
        statements = split(text)
        if len(statements) > 1:
            raise SqlError("42601", "cannot insert multiple commands into a prepared statement")
        prepared = self.prepare(statements[0], types) if statements else None
        self.statements[name] = NamedStatement(
            statements[0].text if statements else "", types, prepared, wall_clock() - POSTGRES_EPOCH
        )

    def _type(self, oid: int) -> SqlType | None:
        own = self._catalog().types.values()
        return type_from_oid(oid) or type_of_oid((t.own_type.enum for t in own), oid)

    def describe_statement(self, name: str) -> tuple[tuple[SqlType, ...], tuple[OutputColumn, ...] | None]:
        """Parameters and columns (None: no rows)."""
        named = self._statement(name)
        if named.prepared is None:
            return (), None
        return named.prepared.bound.parameters, output_columns(named.prepared.bound.statement, self)

    async def bind(
        self,
        portal: str,
        statement: str,
        parameters: Sequence[bytes | None],
        formats: Sequence[int],
        result_formats: Sequence[int],
    ) -> None:
        """A portal. 42P03: the name is taken; 08P01: the wrong number of parameters."""
        self._arrive()
        named = self._current(self._statement(statement))
        if portal and portal in self.portals:
            raise SqlError("42P03", f'cursor "{portal}" already exists')
        types = () if named.prepared is None else named.prepared.bound.parameters
        if len(parameters) != len(types):
            raise SqlError(
                "08P01",
                f'bind message supplies {len(parameters)} parameters, but prepared statement "{statement}" '
                f"requires {len(types)}",
            )
        datums = []
        style = self.text_style if types else DEFAULT_STYLE
        for i, (type_, data) in enumerate(zip(types, parameters, strict=True)):
            form = formats[0] if len(formats) == 1 else formats[i] if formats else 0
            datums.append(None if data is None else decode_parameter(type_, form, data, style))
        self.portals[portal] = Portal(named, tuple(datums), tuple(result_formats))

    def describe_portal(self, name: str) -> tuple[OutputColumn, ...] | None:
        if name not in self.portals and (cursor := self.cursors.find(name)) is not None:
            return cursor.columns
        prepared = self._portal(name).statement.prepared
        return None if prepared is None else output_columns(prepared.bound.statement, self)

    async def execute(self, portal: str, max_rows: int, final: bool = False) -> Result:
        """Run a portal, or go on with it. ``final``: Sync follows, so that this statement may commit by itself."""
        if portal not in self.portals and (cursor := self.cursors.find(portal)) is not None:
            if self._failed:
                raise replace_error(_ABORTED)
            return await cursor.execute(max_rows)
        found = self._portal(portal)
        if found.rows is not None:
            return found.result(max_rows)
        prepared = found.statement.prepared
        if prepared is None:
            return EmptyResult()
        request = Request(found.parameters, final and self.transaction is None)
        result = await self._run(prepared, request)
        if isinstance(result, RowsResult):
            found.rows = Rows(result.columns, result.rows, result.dictionary, result.tag)
            return found.result(max_rows)
        return result

    def close_statement(self, name: str) -> None:
        self.statements.pop(name, None)

    def close_portal(self, name: str) -> None:
        """A cursor is a portal too. There may be none of that name."""
        if self.portals.pop(name, None) is None and self.cursors.find(name) is not None:
            self.cursors.close(name)

    def close_cursor(self, name: str) -> None:
        """CLOSE. 34000: there is neither a cursor nor a portal of that name."""
        if self.portals.pop(name, None) is None:
            self.cursors.close(name)

    async def sync(self) -> None:
        """Ends the implicit transaction of the extended protocol."""
        await self._end_implicit()
        self._leave()

    # Both.

    async def fail(self) -> None:
        """After an error: an explicit transaction is failed until its end, an implicit one is rolled back."""
        self._stop_timer()
        self.copying = None
        transaction = self.transaction
        if transaction is None:
            return
        if transaction.explicit:
            self._failed = True
            if not transaction.savepoints:
                await self._finish(transaction.rollback)
        else:
            self.transaction = None
            await self._finish(transaction.rollback)
            self._after_transaction(committed=False)

    def signal(self, terminate: bool) -> None:
        """pg_cancel_backend or pg_terminate_backend, from any thread: the wire does it, if a client is there."""
        self._loop.call_soon_threadsafe(self._on_signal, terminate)

    def _on_signal(self, terminate: bool) -> None:
        if self.signalled is not None:
            self.signalled(terminate)
        elif self._task is not None:
            self._interrupt(SqlError("57014", "canceling statement due to user request"))

    async def cancel(self) -> None:
        """Interrupt what is running, if anything is."""
        self._interrupt(SqlError("57014", "canceling statement due to user request"))

    async def close(self) -> None:
        """The client has gone: roll back."""
        if self._closed:
            return
        self._closed = True
        self._stop_timer()
        self.coordinator.sessions.discard(self)
        self.cursors.close_all()
        self.notifications.close()
        transaction, self.transaction = self.transaction, None
        if transaction is not None:
            await transaction.rollback()
        for held in (True, False):
            self.coordinator.advisory.release(self.backend_id, transaction=held)
        await self._drop_temporary()

    async def discard(self, what: str) -> None:
        """DISCARD ALL, TEMP or PLANS. 25001: ALL in a transaction block."""
        if what == "all":
            if self.transaction is not None and self.transaction.explicit:
                raise SqlError("25001", "DISCARD ALL cannot run inside a transaction block")
            self.statements.clear()
            self.cursors.close_all()
            self.notifications.unlisten(None)
            self.coordinator.advisory.release(self.backend_id, transaction=False)
            self.settings.set("all", None)
        if what in ("all", "temp", "temporary"):
            names = {self.temporary_schema}
            transaction = self.begin_implicit(single=False)
            if self.temporary_schema in transaction.catalog.schemas:
                await transaction.write(lambda writer: drop_temporary(writer, names))

    async def _drop_temporary(self) -> None:
        """Temporary relations go with their session, and their schema."""
        if self.temporary_schema in self.coordinator.engine.published.catalog.schemas:
            transaction = Transaction(self.coordinator, wall_clock() - POSTGRES_EPOCH, explicit=False, single=True)
            await transaction.write(lambda writer: drop_temporary(writer, {self.temporary_schema}))

    def notice(self, message: str, severity: str = "NOTICE", sqlstate: str = "00000", hint: str | None = None) -> None:
        self.notices.append(Notice(severity, sqlstate, message, None, hint))

    @property
    def temporary_schema(self) -> str:
        """The schema of this session's temporary relations; there is none before the first of them."""
        return f"pg_temp_{self.backend_id}"

    def path(self, catalog: Catalog) -> SearchPath:
        """Where names without a schema are looked up now."""
        setting = self.settings.get("search_path")
        if self._path is None or self._path[:2] != (setting, catalog.version):
            self._path = setting, catalog.version, path_of(setting, self.user, self.temporary_schema, catalog)
        return self._path[2]

    def _catalog(self) -> Catalog:
        return self.coordinator.engine.published.catalog if self.transaction is None else self.transaction.catalog

    def prepare(self, statement: StatementText, types: tuple[SqlType | None, ...]) -> Prepared:
        """Parse and bind, or find what was bound before; positions of errors count from the query string's start."""
        catalog = self._catalog()
        try:
            return self.coordinator.statements.prepare(statement, catalog, self.path(catalog), types, self.settings)
        except SqlError as error:
            if error.position is None or not statement.offset:
                raise
            shifted = error.position + statement.offset
            raise SqlError(error.sqlstate, error.message, error.detail, error.hint, shifted) from None

    def begin_implicit(self, single: bool) -> Transaction:
        """The transaction that a statement runs in."""
        if self.transaction is None:
            self.transaction = self._new_transaction(explicit=False, single=single)
        return self.transaction

    def named(self, name: str) -> NamedStatement:
        """A prepared statement, bound to the present catalog."""
        return self._current(self._statement(name))

    def show_columns(self, statement: Show) -> tuple[OutputColumn, ...]:
        """The columns of a SHOW."""
        return show_columns(self, statement)

    def cursor_columns(self, name: str) -> tuple[OutputColumn, ...]:
        """The columns of an open cursor."""
        return self.cursor(name).columns

    def cursor(self, name: str) -> Cursor:
        """A cursor, or a portal that has begun to give its rows. 34000: there is none."""
        portal = self.portals.get(name) if name else None
        if portal is not None and portal.rows is not None:
            return Cursor(name, portal.statement.text, portal.rows)
        return self.cursors.named(name)

    def info(self) -> SessionInfo:
        """For pg_stat_activity."""
        state = {"I": "idle", "T": "idle in transaction", "E": "idle in transaction (aborted)"}[self.transaction_status]
        active = "active" if self._task is not None else state
        application = self.settings.get("application_name")
        return SessionInfo(self.backend_id, self.user, self.database, application, active, self._query, self._started)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Inside, ``cancel`` interrupts what is awaited, with its SqlError."""
        if self._interrupted is not None:
            error, self._interrupted = self._interrupted, None
            raise error
        self._task = asyncio.current_task()
        try:
            yield
        except asyncio.CancelledError:
            raise self._interruption() from None
        finally:
            self._task = None

    async def _run(self, prepared: Prepared, request: Request) -> Result:
        """One statement, with its timeout, in its transaction."""
        self.coordinator.note(self)
        self.copying = None
        statement = prepared.bound.statement
        if self._failed and not _allowed_when_failed(statement):
            raise replace_error(_ABORTED)
        control = await self._control(statement)
        if control is not None:
            return control
        self._interrupted = None
        timeout = self.settings.milliseconds("statement_timeout")
        timer = None
        if timeout:
            error = SqlError("57014", "canceling statement due to statement timeout")
            timer = asyncio.get_running_loop().call_later(timeout / 1000, self._interrupt, error)
        self.begin_implicit(request.single)
        try:
            with self.interruptible():
                result = await self._executor.run(prepared, request)
            self._report_settings()
        finally:
            if timer is not None:
                timer.cancel()
        return result

    async def _control(self, statement: Statement) -> CommandResult | None:
        """BEGIN, COMMIT, ROLLBACK and savepoints."""
        match statement:
            case Begin():
                return self._begin(statement)
            case Commit() | Rollback():
                return await self._end_explicit(isinstance(statement, Commit))
            case Savepoint():
                return await self._savepoint(statement)
            case _:
                return None

    def _begin(self, statement: Begin) -> CommandResult:
        if self.transaction is not None and self.transaction.explicit:
            self.notice("there is already a transaction in progress", "WARNING", "25001")
        elif self.transaction is not None:
            self.transaction.explicit, self.transaction.single = True, False
        else:
            self.transaction = self._new_transaction(explicit=True)
        self.set_modes(statement.modes)
        return CommandResult("BEGIN")

    async def _end_explicit(self, commit: bool) -> CommandResult:
        transaction, failed = self.transaction, self._failed
        if transaction is None or not transaction.explicit:
            self.notice("there is no transaction in progress", "WARNING", "25P01")
            if transaction is None:
                return CommandResult("COMMIT" if commit else "ROLLBACK")
        assert transaction is not None
        self.transaction, self._failed = None, False
        commit = commit and not failed
        try:
            await self._finish(transaction.commit if commit else transaction.rollback)
        finally:
            self._after_transaction(commit)
        return CommandResult("COMMIT" if commit else "ROLLBACK")

    async def _savepoint(self, statement: Savepoint) -> CommandResult:
        transaction = self.transaction
        if transaction is None or not transaction.explicit:
            what = {"savepoint": "SAVEPOINT", "release": "RELEASE SAVEPOINT"}.get(
                statement.action, "ROLLBACK TO SAVEPOINT"
            )
            raise SqlError("25P01", f"{what} can only be used in transaction blocks")
        if statement.action == "savepoint":
            await transaction.savepoint(statement.name)
            return CommandResult("SAVEPOINT")
        if statement.action == "release":
            transaction.release_savepoint(statement.name)
            self.cursors.release(len(transaction.savepoints) + 1)
            return CommandResult("RELEASE")
        await transaction.rollback_to(statement.name)
        self.cursors.roll_back(len(transaction.savepoints))
        self._failed = False
        return CommandResult("ROLLBACK")

    async def _end_implicit(self) -> None:
        transaction = self.transaction
        if transaction is None or transaction.explicit:
            return
        self.transaction = None
        try:
            await self._finish(transaction.commit)
        except SqlError:
            self._after_transaction(committed=False)
            raise
        self._after_transaction(committed=True)

    async def _finish(self, ending: Callable[[], object]) -> None:
        done = ending()
        assert asyncio.iscoroutine(done)
        await done

    def _after_transaction(self, committed: bool) -> None:
        self.settings.end(committed)
        self._report_settings()
        self.cursors.end_transaction(committed)
        self.notifications.end_transaction(committed)
        self.portals.clear()
        self.coordinator.advisory.release(self.backend_id, transaction=True)

    def set_modes(self, modes: Modes) -> None:
        """What BEGIN or SET TRANSACTION asks of the transaction that is open."""
        assert self.transaction is not None
        for name, value in modes.settings().items():
            self.settings.set(f"transaction_{name}", value, local=True)
        self.transaction.read_only = self.settings.boolean("transaction_read_only")

    def _new_transaction(self, explicit: bool, single: bool = False) -> Transaction:
        self.settings.begin()
        read_only = self.settings.boolean("default_transaction_read_only")
        return Transaction(self.coordinator, wall_clock() - POSTGRES_EPOCH, explicit, single, read_only)

    def _statement(self, name: str) -> NamedStatement:
        found = self.statements.get(name)
        if found is None:
            shown = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise SqlError("26000", f"{shown} does not exist")
        return found

    def _portal(self, name: str) -> Portal:
        found = self.portals.get(name)
        if found is None:
            raise SqlError("34000", f'portal "{name}" does not exist')
        return found

    def _current(self, named: NamedStatement) -> NamedStatement:
        """The statement bound to the present catalog. 0A000: its columns have changed."""
        if named.prepared is None:
            return named
        prepared = self.prepare(StatementText(named.text), named.types)
        if prepared is named.prepared:
            return named
        before = output_columns(named.prepared.bound.statement, self)
        after = output_columns(prepared.bound.statement, self)
        if (before is None) != (after is None) or [c.type for c in before or ()] != [c.type for c in after or ()]:
            raise SqlError("0A000", "cached plan must not change result type")
        return replace(named, prepared=prepared)

    def _set_defaults(self, parameters: dict[str, str]) -> None:
        for name, value in parameters.items():
            if name.lower() not in ("user", "database", "options", "replication") and not name.startswith("_pq_."):
                try:
                    self.settings.set(name, value)
                except SqlError as error:
                    if error.sqlstate != "42704":
                        raise
        self.settings.defaults = dict(self.settings.values)
        self.settings.defaults["session_authorization"] = self.user
        self.settings.values.clear()
        self.settings.reported.clear()

    def _report_settings(self) -> None:
        if self.settings.reported:
            self.parameter_changes += [(name, self.settings.get(name)) for name in self.settings.reported]
            self.settings.reported.clear()

    # Interrupts and the idle timer.

    def _interrupt(self, error: SqlError) -> None:
        if self._interrupted is None:
            self._interrupted = error
            if self._task is not None:
                self._task.cancel()

    def _interruption(self) -> BaseException:
        """What a CancelledError means: our own interrupt, or the end of the connection's task."""
        error, self._interrupted = self._interrupted, None
        if error is None:
            return asyncio.CancelledError()
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        return error

    def _arrive(self) -> None:
        """A message came: the transaction is not idle any more. 25P03: it was for too long."""
        self._stop_timer()
        if self._idle_error is not None:
            raise self._idle_error

    def _leave(self) -> None:
        """The session waits for its client; in an open transaction only so long."""
        self.copying = None
        if self.transaction is None or not self.transaction.explicit:
            return
        milliseconds = self.settings.milliseconds("idle_in_transaction_session_timeout")
        if milliseconds:
            self._stop_timer()
            loop = asyncio.get_running_loop()
            self._idle_timer = loop.call_later(milliseconds / 1000, self._idle_for_too_long)

    def _stop_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _idle_for_too_long(self) -> None:
        self._idle_error = SqlError("25P03", "terminating connection due to idle-in-transaction timeout")
        transaction, self.transaction = self.transaction, None
        if transaction is not None:
            self._ending = asyncio.ensure_future(transaction.rollback())


def _allowed_when_failed(statement: Statement) -> bool:
    if isinstance(statement, Savepoint):
        return statement.action == "rollback"
    return isinstance(statement, Commit | Rollback)


def replace_error(error: SqlError) -> SqlError:
    """A new object for the same error."""
    return SqlError(error.sqlstate, error.message, error.detail, error.hint, error.position)
