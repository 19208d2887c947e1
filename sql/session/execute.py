"""One bound statement in its transaction → its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ivm.errors import SqlError
from ivm.rows import RowSet, pack
from ivm.words import TEXT, ColumnType
from planner.expr.context import Bounds, Context
from planner.expr.evaluate.evaluator import constant
from planner.expr.scalar import Call
from planner.logical.nodes import Rel, Values
from planner.logical.traversal import children
from planner.peek.direct import is_short
from planner.peek.order_limit import finish
from planner.peek.run import run
from sql.coordination.prepared import Prepared, StaleError
from sql.ddl.sequences import restart_sequences
from sql.dml.changes import Changed, Changer
from sql.dml.compound import CompoundRun
from sql.dml.fast_insert import constant_source
from sql.engine.engine import TooLongHereError
from sql.engine.overlay import OverlaidSnapshot
from sql.engine.snapshot import MemorySnapshot, Published
from sql.engine.writer import Writer
from sql.parse import StatementText
from sql.session.connections import check_reachable
from sql.session.control import run_control
from sql.session.create_from import TableFrom, explained_load
from sql.session.defining import Definitions
from sql.session.explaining import explained
from sql.session.python import allow_python
from sql.session.reads import LIGHT_ROWS, Reads, Request
from sql.session.sinks import prepared_sink
from sql.session.state import SessionState, system_words
from sql.session.streams import Streams
from sql.session.vacuum import vacuum
from sql.statements.connections import CreateSource, SetPaused
from sql.statements.definitions import (
    AlterSequence,
    AlterTable,
    CreateIndex,
    CreateSchema,
    CreateSequence,
    CreateTable,
    CreateView,
    Drop,
    DropIndex,
    DropSchema,
)
from sql.statements.partitions import Attach, Detach
from sql.statements.queries import OutputColumn, Query
from sql.statements.rename import Rename, SetOwner, SetSchema
from sql.statements.results import CommandResult, Result, RowsResult
from sql.statements.routines import CreateFunction, DropFunction
from sql.statements.sinks import AlterSink, CreateSink
from sql.statements.statements import (
    Close,
    Compound,
    CopyFrom,
    CopyTo,
    CreateTableFrom,
    Declare,
    Delete,
    Discard,
    Execute,
    Explain,
    Fetch,
    Insert,
    Subscribe,
    Truncate,
    Update,
    Verify,
    VerifyDictionary,
)
from sql.statements.types import AddLabel, CreateEnum, DropType, RenameLabel, RenameType
from sql.statements.vacuum import Vacuum
from storage.types.codec import encode

if TYPE_CHECKING:
    from sql.session.session import Session


class Executor:
    """Runs statements for one session; the transaction stands already."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._streams = Streams(session, self)
        self.reads = Reads(session)
        self.definitions = Definitions(session, self)

    async def run(self, prepared: Prepared, request: Request) -> Result:
        """The statement's result; bound again when another session's DDL came between."""
        while True:
            try:
                return await self._run(prepared, request)
            except StaleError:
                prepared = self._session.prepare(StatementText(prepared.text), prepared.bound.parameters)

    async def _run(self, prepared: Prepared, request: Request) -> Result:
        statement = prepared.bound.statement
        match statement:
            case Query():
                return await self.reads.query(statement, prepared, request)
            case Insert() | Update() | Delete():
                return await self._change(statement, prepared, request)
            case Compound():
                return await self._compound(statement, prepared, request)
            case Truncate():
                return await self._truncate(statement, prepared)
            case CreateTable() | CreateView() | CreateIndex() | CreateSchema() | AlterTable():
                return await self.definitions.run(statement, prepared, request)
            case Drop() | DropIndex() | DropSchema():
                return await self.definitions.run(statement, prepared, request)
            case CreateSequence() | AlterSequence() | Rename() | SetSchema() | SetOwner():
                return await self.definitions.run(statement, prepared, request)
            case CreateFunction() | DropFunction() | Attach() | Detach():
                await allow_python(self._session.coordinator, statement)
                return await self.definitions.run(statement, prepared, request)
            case CreateEnum() | AddLabel() | RenameLabel() | RenameType() | DropType():
                return await self.definitions.run(statement, prepared, request)
            case CreateSink() | AlterSink():
                async with prepared_sink(self._session, statement) as placed:
                    return await self.definitions.run(placed, prepared, request)
            case CreateSource() | SetPaused():
                await check_reachable(self._session.coordinator, statement)
                return await self.definitions.run(statement, prepared, request)
            case Explain(statement=CopyFrom(path=str()) | CreateTableFrom() as load):
                return self.text_rows("QUERY PLAN", await explained_load(self._session, load), "EXPLAIN")
            case Explain():
                return self.text_rows("QUERY PLAN", explained(self._session, statement), "EXPLAIN")
            case CreateTableFrom():
                return await TableFrom(self._session, self, statement, prepared, request).run()
            case Execute():
                return await self._execute(statement, request)
            case CopyFrom() | CopyTo() | Subscribe() | Declare() | Fetch() | Close() | Verify() | VerifyDictionary():
                return await self._streams.run(statement, prepared, request)
            case Vacuum():
                return await vacuum(self._session, statement)
            case Discard():
                await self._session.discard(statement.what)
                return CommandResult(f"DISCARD {statement.what.upper()}")
            case _:
                return run_control(self._session, self, statement)

    # Writes.

    async def _change(self, statement: Insert | Update | Delete, prepared: Prepared, request: Request) -> Result:
        session = self._session
        transaction = session.transaction
        assert transaction is not None
        changed = await transaction.write(
            lambda writer: self._apply(writer, statement, prepared, request), light=self._light(statement, request)
        )
        return self._changed(statement, changed, request)

    def _light(self, statement: Insert | Update | Delete, request: Request) -> bool:
        """As the function below; what foreign keys have to say may take a step."""
        transaction = self._session.transaction
        assert transaction is not None
        links = self._session.coordinator.keys.links(transaction.catalog)
        if statement.table.partitioning is not None:
            return False
        tables = statement.branches if not isinstance(statement, Insert) else ()
        touched = any(map(links.touch, (statement.table.id, *(b.table.id for b in tables))))
        return _light(statement, request) and not touched

    def _changed(self, statement: Query | Insert | Update | Delete, changed: Changed, request: Request) -> Result:
        name = "SELECT" if isinstance(statement, Query) else type(statement).__name__.upper()
        tag = f"INSERT 0 {changed.count}" if name == "INSERT" else f"{name} {changed.count}"
        if changed.returning is None:
            return CommandResult(tag)
        dictionary = self._session.coordinator.engine.dictionary
        return RowsResult(statement.columns, changed.returning, tag, dictionary, formats=request.formats)

    async def _compound(self, statement: Compound, prepared: Prepared, request: Request) -> Result:
        transaction = self._session.transaction
        assert transaction is not None

        def work(writer: Writer) -> Changed:
            prepared.check_current(writer.catalog)
            writer.engine.check_room()
            state = SessionState(self._session, writer.catalog)
            epoch = writer.engine.timeline.epoch(writer.engine.timeline.last)
            context = self.reads.context(writer.engine.dictionary, request, epoch, state)
            changer = Changer(writer, self._session.coordinator.keys, context)
            bounds = Bounds(writer.engine.dataflow.cancel, self._session.coordinator.budget)
            return CompoundRun(changer, self.snapshot(writer.snapshot(), context, state), context, bounds).run(
                statement
            )

        return self._changed(statement.main, await transaction.write(work), request)

    def _apply(
        self, writer: Writer, statement: Insert | Update | Delete, prepared: Prepared, request: Request
    ) -> Changed:
        """On the engine thread: the source's rows, checked and added to the writer."""
        prepared.check_current(writer.catalog)
        engine = writer.engine
        state = SessionState(self._session, writer.catalog)
        context = self.reads.context(engine.dictionary, request, engine.timeline.epoch(engine.timeline.last), state)
        changer = Changer(writer, self._session.coordinator.keys, context)
        if not isinstance(statement, Delete):
            engine.check_room()
        source = constant_source(statement.source, context) if isinstance(statement, Insert) else None
        if source is None:
            source = self.source(writer, statement.source, prepared, context, state)
        if isinstance(statement, Insert) and statement.finishing is not None:
            source = finish(source, statement.finishing, context)
        match statement:
            case Insert():
                return changer.insert(statement, source)
            case Update():
                return changer.update(statement, source)
            case Delete():
                return changer.delete(statement, source)

    def source(self, writer: Writer, rel: Rel, prepared: Prepared, context: Context, state: SessionState) -> RowSet:
        """The rows of a query over the writer's own state, on the engine thread."""
        bounds = Bounds(writer.engine.dataflow.cancel, self._session.coordinator.budget)
        over = self._unstepped(writer, rel, prepared, context, state)
        if over is not None:
            assert prepared.plan is not None
            return run(prepared.plan, over, context, bounds)
        published = writer.snapshot(prepared.inputs if prepared.plan is not None else None)
        if writer.engine.rests and not (prepared.planned(published) and not prepared.overdue()):
            raise TooLongHereError
        plan = prepared.plan_of(rel, published)
        if prepared.overdue():
            writer.engine.arrange(prepared.wishes)
            published = writer.snapshot()
            plan = prepared.plan_of(rel, published)
        for relation in prepared.inputs:
            if relation in published.failures:
                raise published.failures[relation]
        snapshot = self.snapshot(published, context, state)
        if writer.engine.rests and not is_short(plan, snapshot, LIGHT_ROWS):
            raise TooLongHereError
        return run(plan, snapshot, context, bounds)

    def _unstepped(
        self, writer: Writer, rel: Rel, prepared: Prepared, context: Context, state: SessionState
    ) -> OverlaidSnapshot | None:
        """What a short plan can read without a step, though the transaction has changed it before; None: step."""
        published = writer.as_stepped()
        if not prepared.planned(published):
            prepared.plan_of(rel, published)
        if prepared.plan is None or prepared.overdue():
            return None
        pending = writer.pending(prepared.inputs)
        if not pending:
            return None
        system = self.snapshot(published, context, state).system
        over = OverlaidSnapshot(published, published.ordinal, system, pending=pending)
        return over if is_short(prepared.plan, over, LIGHT_ROWS) else None

    def snapshot(self, published: Published, context: Context, state: SessionState) -> MemorySnapshot:
        """The newest of a published state, for a plan."""
        return MemorySnapshot(
            published, published.ordinal, lambda relation: system_words(relation, state, published, context.dictionary)
        )

    async def _truncate(self, statement: Truncate, prepared: Prepared) -> Result:
        transaction = self._session.transaction
        assert transaction is not None

        def work(writer: Writer) -> None:
            prepared.check_current(writer.catalog)
            context = Context(writer.engine.dictionary)
            tables = Changer(writer, self._session.coordinator.keys, context).truncate(statement)
            if statement.restart:
                restart_sequences(writer, tables)

        await transaction.write(work)
        return CommandResult("TRUNCATE TABLE")

    async def _execute(self, statement: Execute, request: Request) -> Result:
        session = self._session
        prepared = session.named(statement.name).prepared
        if prepared is None:
            raise SqlError("26000", f'prepared statement "{statement.name}" does not exist')
        types = prepared.bound.parameters
        if len(types) != len(statement.arguments):
            raise SqlError(
                "42601", f'wrong number of parameters for prepared statement "{statement.name}"',
                f"Expected {len(types)} parameters but got {len(statement.arguments)}.",
            )  # fmt: skip
        state = SessionState(session, session.coordinator.engine.published.catalog)
        context = self.reads.context(session.coordinator.engine.dictionary.scratch(), request, 0, state)
        arguments = (
            a if a.type == t else Call("cast", (a,), t) for a, t in zip(statement.arguments, types, strict=True)
        )
        datums = tuple(constant(argument, context) for argument in arguments)
        return await self.run(prepared, replace(request, parameters=datums))

    def text_rows(self, name: str, lines: Sequence[str], tag: str) -> RowsResult:
        """A result of one text column."""
        return self.datum_rows((OutputColumn(name, TEXT),), [(line,) for line in lines], tag)

    def datum_rows(self, columns: tuple[OutputColumn, ...], rows: Sequence[tuple[object, ...]], tag: str) -> RowsResult:
        """A result from Python values."""
        dictionary = self._session.coordinator.engine.dictionary.scratch()
        schema = tuple(ColumnType(c.type) for c in columns)
        vectors = [encode(c.type, [row[i] for row in rows], dictionary) for i, c in enumerate(columns)]
        return RowsResult(columns, RowSet(pack(vectors, schema, len(rows)), schema), tag, dictionary)


def _light(statement: Insert | Update | Delete, request: Request) -> bool:
    """Whether a statement that changes rows may be short, by what is known before it runs."""
    given = sum(len(p) for p in request.parameters if isinstance(p, list | tuple))
    return given <= LIGHT_ROWS and (not isinstance(statement, Insert) or _few(statement.source))


def _few(rel: Rel) -> bool:
    return len(rel.rows) <= LIGHT_ROWS if isinstance(rel, Values) else all(map(_few, children(rel)))
