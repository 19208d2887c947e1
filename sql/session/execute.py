"""The dispatch of statements: one bound statement in its transaction → its result."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from planner.expr.evaluate.evaluator import constant
from planner.expr.scalar import Call
from sql.coordination.prepared import Prepared, StaleError
from sql.engine.row_locks import BlockedError
from sql.engine.writer import Writer
from sql.parse import StatementText
from sql.session.connections import check_reachable
from sql.session.control import run_control
from sql.session.copy_from import copy_from
from sql.session.copy_out import copy_query, copy_subscription
from sql.session.create_from import TableFrom, explained_load
from sql.session.cursor_statements import close, declare, fetch
from sql.session.datum_rows import datum_rows, text_rows
from sql.session.defining import Definitions
from sql.session.discarding import discard
from sql.session.explaining import analyzed, explained, plan_rows
from sql.session.information import SystemInformation
from sql.session.modes import check_modes
from sql.session.portal import PortalRows
from sql.session.preparing import current, prepare, statement_named
from sql.session.python import allow_python
from sql.session.reads import Reads
from sql.session.refreshing import refresh
from sql.session.request import Request
from sql.session.rights import check_rights, hidden
from sql.session.routines.calling import Calls
from sql.session.routines.nested import Outcome, Runners
from sql.session.secrets import run_secret
from sql.session.sinks import prepared_sink
from sql.session.state import SessionState
from sql.session.stepping import stepped
from sql.session.vacuum import vacuum
from sql.session.verify_dictionary import verify_dictionary
from sql.session.verify_view import verify_view
from sql.session.writes import Writes
from sql.statements import statements as bound
from sql.statements.definitions import CreateView, Definition
from sql.statements.queries import Query
from sql.statements.results import CommandResult, Result, RowsResult
from sql.statements.routines import CallProcedure
from sql.statements.secrets import DropSecret, PutSecret
from sql.statements.sinks import CreateSink
from sql.statements.vacuum import Vacuum

_READING: Final = (
    Query, bound.Insert, bound.Update, bound.Delete, bound.Merge, bound.Compound, bound.CreateTableFrom, bound.CopyTo,
    bound.Declare, bound.Verify, CreateView,
)  # fmt: skip
"""The statements that may read views."""


class Executor:
    """Runs statements for one session, whose transaction is open."""

    def __init__(self, session: SessionState) -> None:
        self._session = session
        self.reads = Reads(session)
        self.writes = Writes(session, self.reads)
        self._definitions = Definitions(session, self.reads, self.writes)
        self._calls = session.routines = Calls(session, Runners(self.reads, self.writes, self._definitions))

    async def run(self, prepared: Prepared, request: Request) -> Result:
        """The statement's result."""
        self._session.advisory_locks.clear()
        try:
            return await self._bound(prepared, request)
        except BlockedError as blocked:
            return await self._after(blocked, prepared, request)

    async def _after(self, blocked: BlockedError, prepared: Prepared, request: Request) -> Result:
        """The result of a statement that reads, and has met an advisory lock: it runs again when that is free."""
        met, running = [blocked], self._session.running

        async def again() -> Result:
            if met:
                raise met.pop()
            return await self._bound(prepared, request)

        return await self._session.coordinator.jobs.waits.attempt(again, running.owner, running.patience())

    async def _bound(self, prepared: Prepared, request: Request) -> Result:
        """It is bound again if another session has changed the catalog meanwhile."""
        while True:
            try:
                return await self._run(prepared, request)
            except StaleError:
                prepared, request = self._prepared_again(prepared, request)
            except SqlError as error:
                if error.subject is None and not error.of_row:
                    raise
                raise hidden(self._session, prepared.shown(error)) from None

    def _prepared_again(self, prepared: Prepared, request: Request) -> tuple[Prepared, Request]:
        if request.text is None:
            return prepare(self._session, StatementText(prepared.text), prepared.bound.parameters), request
        return prepare(self._session, StatementText(request.text)), replace(request, parameters=())

    async def _run(self, prepared: Prepared, request: Request) -> Result:
        session, reads, statement = self._session, self.reads, prepared.bound.statement
        prepared.check_allowed()
        check_rights(session, statement)
        check_modes(session, statement, prepared.text)
        if session.coordinator.refills.busy:
            await self._until_filled(prepared)
        if isinstance(statement, Definition):
            return await self._define(statement, prepared, request)
        match statement:
            case Query() if prepared.bound.interpreted or statement.locks:
                return await self.writes.query(statement, prepared, request)
            case Query():
                return await reads.query(statement, prepared, request)
            case bound.Insert() | bound.Update() | bound.Delete() | bound.Merge():
                return await self.writes.change(statement, prepared, request)
            case bound.Compound():
                return await self.writes.compound(statement, prepared, request)
            case CallProcedure():
                return await self._call(statement, prepared, request)
            case bound.Lock():
                return await self.writes.lock(statement)
            case bound.SetConstraints():
                return await self.writes.set_constraints(statement)
            case bound.Truncate():
                return await self.writes.truncate(statement, prepared)
            case bound.CreateTableFrom():
                return await TableFrom(session, reads, self._definitions, statement, prepared, request).run()
            case bound.Explain(statement=bound.CopyFrom(path=str()) | bound.CreateTableFrom() as load):
                return self._lines(await explained_load(session, load))
            case bound.Explain():
                return await self._explain(statement, prepared, request)
            case bound.Execute():
                return await self._execute(statement, request)
            case bound.CopyFrom():
                return await copy_from(session, reads, statement, request)
            case bound.CopyTo(source=Query() as query):
                return await copy_query(session, reads, statement, query, prepared, request)
            case bound.CopyTo(source=bound.Subscribe() as subscription):
                return await copy_subscription(session, reads, statement, subscription, prepared, request)
            case bound.CopyTo():
                raise AssertionError("COPY TO has one of two sources")
            case bound.Subscribe():
                hint = "Use COPY (SUBSCRIBE …) TO STDOUT, or DECLARE c CURSOR FOR SUBSCRIBE … and FETCH."
                raise unsupported("SUBSCRIBE as a statement of its own", hint=hint)
            case bound.Declare():
                return await declare(session, reads, self.writes.query, statement, prepared, request)
            case bound.Fetch():
                await self._open_portal(statement.name)
                return await fetch(session, statement, request)
            case bound.Close():
                return close(session, statement)
            case bound.Do():
                return await self._inline(statement)
            case bound.Verify():
                return await verify_view(session, reads, statement, request)
            case bound.VerifyDictionary():
                return await verify_dictionary(session, request)
            case bound.RefreshView():
                return await refresh(session, statement)
            case Vacuum():
                return await vacuum(session, statement)
            case PutSecret() | DropSecret():
                return await run_secret(session, statement)
            case bound.Discard():
                return await discard(session, statement)
            case bound.Begin() | bound.Commit() | bound.Rollback() | bound.PrepareTransaction() | bound.Savepoint():
                raise AssertionError(f"{type(statement).__name__} runs before its transaction is opened")
            case _:
                return run_control(session, statement)

    async def _until_filled(self, prepared: Prepared) -> None:
        """Wait for the views that a statement reads while they are filled, if its snapshot is not taken yet."""
        statement = prepared.bound.statement
        if self._session.running.has_read or not isinstance(statement, _READING):
            return
        wanted, catalog = prepared.seen | prepared.inputs, self._session.running.catalog
        if isinstance(statement, CreateView):  # it may replace a view, for whose readers the difference is computed
            place = statement.schema_name, statement.name
            named = frozenset(r.id for r in catalog.relations.values() if (r.schema_name, r.name) == place)
            wanted |= named | {r.id for r in catalog.dependents(named)}
        await self._session.coordinator.refills.ready(wanted)

    async def _inline(self, statement: bound.Do) -> Result:
        control = self._calls.control()
        await stepped(self._session, lambda writer: self._calls.inline(writer, statement.text, control))
        return CommandResult("DO")

    async def _define(self, statement: Definition, prepared: Prepared, request: Request) -> Result:
        await allow_python(self._session.coordinator, statement)
        await check_reachable(self._session.coordinator, statement)
        if not isinstance(statement, CreateSink):
            return await self._definitions.run(statement, prepared, request)
        async with prepared_sink(self._session, statement) as placed:
            return await self._definitions.run(placed, prepared, request)

    async def _call(self, statement: CallProcedure, prepared: Prepared, request: Request) -> Result:
        control = self._calls.control()

        def call(writer: Writer) -> Outcome:
            return self._calls.call_procedure(writer, statement, prepared, request, control)

        outcome = await stepped(self._session, call)
        if outcome.columns is None:
            return CommandResult(outcome.tag)
        dictionary = self._session.coordinator.engine.dictionary
        return datum_rows(dictionary, outcome.columns, outcome.rows, outcome.tag)

    def _lines(self, lines: list[str]) -> Result:
        return text_rows(self._session.coordinator.engine.dictionary, "QUERY PLAN", lines, "EXPLAIN")

    async def _open_portal(self, name: str) -> None:
        """Run the query of a portal that FETCH or MOVE names, unless Execute has."""
        portal = self._session.portals.get(name)
        prepared = None if portal is None else portal.statement.prepared
        if portal is None or portal.rows is not None or prepared is None:
            return
        if isinstance(prepared.bound.statement, Query):
            result = await self.run(prepared, Request(portal.parameters))
            assert isinstance(result, RowsResult)
            portal.rows = PortalRows(result.columns, result.rows, result.dictionary, result.tag)

    async def _explain(self, statement: bound.Explain, prepared: Prepared, request: Request) -> Result:
        async def inside(inner: bound.Statement) -> Result:
            own = replace(prepared, bound=replace(prepared.bound, statement=inner), plan=None)
            return await self._run(own, request)

        if statement.options.analyze:
            lines = await analyzed(self._session, statement, inside)
        else:
            lines = explained(self._session, statement)
        return plan_rows(self._session.coordinator.engine.dictionary, statement, lines)

    async def _execute(self, statement: bound.Execute, request: Request) -> Result:
        session = self._session
        prepared = current(session, statement_named(session, statement.name)).prepared
        if prepared is None:
            raise SqlError("26000", f'prepared statement "{statement.name}" does not exist')
        types = prepared.bound.parameters
        if len(types) != len(statement.arguments):
            raise SqlError(
                "42601", f'wrong number of parameters for prepared statement "{statement.name}"',
                f"Expected {len(types)} parameters but got {len(statement.arguments)}.",
            )  # fmt: skip
        information = SystemInformation(session, session.coordinator.engine.published.catalog)
        context = self.reads.context(session.coordinator.engine.dictionary.scratch(), request, 0, information)
        arguments = (
            a if a.type == t else Call("cast", (a,), t) for a, t in zip(statement.arguments, types, strict=True)
        )
        datums = tuple(constant(argument, context) for argument in arguments)
        return await self.run(prepared, replace(request, parameters=datums))
