"""One bound statement in its transaction → its result."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ivm.errors import SqlError, unsupported
from ivm.rows import RowSet, pack
from ivm.words import TEXT, ColumnType
from planner.context import Bounds, Context
from planner.evaluate import constant
from planner.finishing import finish
from planner.hydrate_by import Choice, Hydrate, choose, stored_in
from planner.locks import locks_in, numbered
from planner.logical import Rel, Values
from planner.run import run
from planner.run_direct import is_short
from planner.scalar import Call
from planner.traverse import children
from sql.catalog.catalog import Relation
from sql.catalog.search_path import Lookup
from sql.coordination.abandoning import abandoning, going
from sql.coordination.hydration import Creation
from sql.coordination.prepared import Prepared, StaleError
from sql.ddl.alter import Alterer
from sql.ddl.connections import create_source, set_paused
from sql.ddl.create import Definer
from sql.ddl.indexes import create_index, drop_indexes
from sql.ddl.partitions import attach, detach
from sql.ddl.rename import Renamer
from sql.ddl.sequences import restart_sequences
from sql.ddl.sinks import SinkDefiner
from sql.ddl.types import TypeDefiner
from sql.dml.changes import Changed, Changer
from sql.dml.compound import CompoundRun
from sql.dml.fast_insert import constant_source
from sql.engine.clock import POSTGRES_EPOCH, wall_clock
from sql.engine.definition import view_rel
from sql.engine.engine import Engine, TooLongHereError
from sql.engine.overlay import OverlaidSnapshot
from sql.engine.snapshot import MemorySnapshot, Published, StoredIndexes, plan_maintained
from sql.engine.spread import spread_of
from sql.engine.writer import Writer
from sql.parse import StatementText
from sql.session.connections import check_reachable
from sql.session.control import run_control
from sql.session.create_from import TableFrom, explained_load
from sql.session.python import allow_python
from sql.session.reads import LIGHT_ROWS, Reads, Request
from sql.session.sinks import prepared_sink
from sql.session.state import SessionState, system_words
from sql.session.streams import Streams
from sql.session.vacuum import vacuum
from sql.statements.connections import ConnectionStatement, CreateSource, SetPaused
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
from sql.statements.rename import Rename, Renaming, SetOwner, SetSchema
from sql.statements.results import CommandResult, Notice, Notify, Result, RowsResult
from sql.statements.routines import CreateFunction, DropFunction
from sql.statements.sinks import AlterSink, CreateSink, SinkStatement
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
    Statement,
    Subscribe,
    Truncate,
    Update,
    Verify,
    VerifyDictionary,
)
from sql.statements.types import AddLabel, CreateEnum, DropType, RenameLabel, RenameType, TypeStatement
from sql.statements.vacuum import Vacuum
from storage.codec import encode

if TYPE_CHECKING:
    from sql.session.session import Session


def _drop_again(engine: Engine, view: Relation) -> None:
    """A view that has not come about, unless somebody has dropped it, or made another over it."""
    writer = Writer.begin(engine)
    if view.id in writer.catalog.relations and not writer.catalog.dependents([view.id]):
        writer.drop([view.id])
        writer.commit()


Definition = (
    CreateTable | CreateView | CreateIndex | CreateSequence | AlterSequence | Drop | DropIndex | AlterTable | Renaming
    | CreateSchema | DropSchema | CreateFunction | DropFunction | TypeStatement | Attach | Detach
    | SinkStatement | ConnectionStatement
)  # fmt: skip


class Executor:
    """Runs statements for one session; the transaction stands already."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._streams = Streams(session, self)
        self.reads = Reads(session)

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
                return await self._define(statement, prepared, request)
            case Drop() | DropIndex() | DropSchema():
                return await self._define(statement, prepared, request)
            case CreateSequence() | AlterSequence() | Rename() | SetSchema() | SetOwner():
                return await self._define(statement, prepared, request)
            case CreateFunction() | DropFunction() | Attach() | Detach():
                await allow_python(self._session.coordinator, statement)
                return await self._define(statement, prepared, request)
            case CreateEnum() | AddLabel() | RenameLabel() | RenameType() | DropType():
                return await self._define(statement, prepared, request)
            case CreateSink() | AlterSink():
                async with prepared_sink(self._session, statement) as placed:
                    return await self._define(placed, prepared, request)
            case CreateSource() | SetPaused():
                await check_reachable(self._session.coordinator, statement)
                return await self._define(statement, prepared, request)
            case Explain(statement=CopyFrom(path=str()) as load):
                return self.text_rows("QUERY PLAN", await explained_load(self._session, load), "EXPLAIN")
            case Explain():
                return self._explain(statement)
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

    # Definitions.

    async def _define(self, statement: Definition, prepared: Prepared, request: Request) -> Result:
        transaction = self._session.transaction
        assert transaction is not None
        notices: list[Notice] = []
        try:
            made = isinstance(statement, CreateView) and statement.materialized and not transaction.alone
            if made and isinstance(statement, CreateView) and locks_in(statement.query.rel):
                raise SqlError("25001", "a view with PROCTIME() cannot be created inside a transaction block")
            if made and isinstance(statement, CreateView) and statement.hydrate is Hydrate.SPARK:
                raise SqlError("25001", "Spark cannot hydrate a view inside a transaction block")
            if isinstance(statement, CreateView) and statement.parts and transaction.alone:
                return await self._scatter(statement, prepared, request, notices.append)
            if isinstance(statement, CreateView) and statement.materialized and transaction.alone:
                coordinator = self._session.coordinator
                creation = Creation(
                    coordinator.engine, statement, prepared,
                    lambda writer: self.definer(writer, prepared, notices.append),
                    self._session.backend_id, wall_clock() - POSTGRES_EPOCH, coordinator.spark(),
                    lambda text: notices.append(Notice("NOTICE", "00000", text)),
                )  # fmt: skip
                if await coordinator.hydrators.create(coordinator, creation):
                    return CommandResult("CREATE MATERIALIZED VIEW")
            job = transaction.write(
                lambda writer: self._define_now(writer, statement, prepared, request, notices.append)
            )
            if isinstance(statement, Drop):
                names = Lookup(transaction.catalog, self._session.path(transaction.catalog))
                job = abandoning(self._session.coordinator.engine, going(statement, names), job)
            tag = await job
        finally:
            self._session.notices += notices
        return CommandResult(tag)

    async def _scatter(
        self, statement: CreateView, prepared: Prepared, request: Request, notify: Notify
    ) -> CommandResult:  # fmt: skip
        """A view that Spark maintains is there when its first job has ended well; otherwise it goes again."""
        transaction, coordinator = self._session.transaction, self._session.coordinator
        assert transaction is not None

        def define(writer: Writer) -> Relation | None:
            prepared.check_current(writer.catalog)
            return self.definer(writer, prepared, notify).create_view(statement)

        view = await transaction.write(define)
        if view is not None:
            try:
                await coordinator.scattered.ready(view.id)
            except BaseException:
                await asyncio.shield(coordinator.autocommit(partial(_drop_again, coordinator.engine, view)))
                raise
        return CommandResult("CREATE MATERIALIZED VIEW")

    def _define_now(
        self, writer: Writer, statement: Definition, prepared: Prepared, request: Request,
        notify: Notify,
    ) -> str:  # fmt: skip
        prepared.check_current(writer.catalog)
        definer = self.definer(writer, prepared, notify)
        match statement:
            case CreateTable(source=None):
                definer.create_table(statement, self.changer(writer, request))
                return "CREATE TABLE"
            case CreateTable():
                return self._create_table_as(definer, statement, prepared, request)
            case CreateView():
                definer.create_view(statement)
                return "CREATE MATERIALIZED VIEW" if statement.materialized else "CREATE VIEW"
            case CreateSequence():
                definer.create_sequence(statement)
                return "CREATE SEQUENCE"
            case CreateFunction():
                definer.create_function(statement)
                return statement.tag
            case DropFunction():
                definer.drop_function(statement)
                return statement.tag
            case CreateEnum() | AddLabel() | RenameLabel() | RenameType() | DropType():
                alter = partial(self._alter, definer, request=request)
                transaction = self._session.transaction
                alone = transaction is not None and not transaction.explicit
                return TypeDefiner(writer, notify, definer.names, alone, alter).run(statement)
            case CreateSink() | AlterSink():
                return SinkDefiner(writer, notify, definer.names).run(statement)
            case AlterSequence():
                definer.alter_sequence(statement)
                return "ALTER SEQUENCE"
            case CreateIndex():
                create_index(writer, statement, notify)
                return "CREATE INDEX"
            case DropIndex():
                drop_indexes(writer, statement, notify, definer.names)
                return "DROP INDEX"
            case Drop():
                definer.drop(statement)
                return f"DROP {statement.kind.name.replace('_', ' ')}"
            case AlterTable():
                return self._alter(definer, statement, request)
            case Attach():
                attach(definer, self.changer(writer, request), statement)
                return "ALTER TABLE"
            case Detach():
                detach(definer, statement)
                return "ALTER TABLE"
            case Rename() | SetSchema() | SetOwner():
                Renamer(writer, definer.names, notify, self._session.user).run(statement)
                return f"ALTER {statement.target.kind.upper()}"
            case CreateSource():
                create_source(definer, statement)
                return "CREATE SOURCE"
            case SetPaused():
                set_paused(definer, statement)
                return f"ALTER {statement.kind.name}"
            case CreateSchema():
                definer.create_schema(statement, self._session.user)
                return "CREATE SCHEMA"
            case DropSchema():
                definer.drop_schema(statement)
                return "DROP SCHEMA"

    def changer(self, writer: Writer, request: Request) -> Changer:
        engine = writer.engine
        state = SessionState(self._session, writer.catalog)
        context = self.reads.context(engine.dictionary, request, engine.timeline.epoch(engine.timeline.last), state)
        return Changer(writer, self._session.coordinator.keys, context)

    def _alter(self, definer: Definer, statement: AlterTable, request: Request) -> str:
        writer = definer.writer
        engine = writer.engine
        engine.check_room()
        state = SessionState(self._session, writer.catalog)
        context = self.reads.context(engine.dictionary, request, engine.timeline.epoch(engine.timeline.last), state)
        keys = self._session.coordinator.keys
        Alterer(writer, keys, context, definer.notify, definer.names).alter(statement)
        return "ALTER TABLE"

    def definer(self, writer: Writer, prepared: Prepared, notify: Notify) -> Definer:
        names = Lookup(writer.catalog, self._session.path(writer.catalog))
        writer.planning = prepared.planning
        return Definer(writer, notify, prepared.seen, names, self._session.settings)

    def _create_table_as(self, definer: Definer, statement: CreateTable, prepared: Prepared, request: Request) -> str:
        writer, query = definer.writer, statement.source
        assert query is not None
        state = SessionState(self._session, writer.catalog)
        epoch = writer.engine.timeline.epoch(writer.engine.timeline.last)
        context = self.reads.context(writer.engine.dictionary, request, epoch, state)
        rows = self.source(writer, view_rel(query), prepared, context, state)
        changer = Changer(writer, self._session.coordinator.keys, context)
        table = definer.create_table(statement, changer)
        if table is None:
            return "CREATE TABLE AS"
        count = changer.insert(Insert(table, query.rel), rows).count
        return f"SELECT {count}"

    def _explain(self, statement: Explain) -> Result:
        published = self._session.coordinator.engine.published
        inner = statement.statement
        maintained = isinstance(inner, CreateView) and inner.materialized
        rel = _explained(inner)
        from planner.explain import explain

        def name(relation: int) -> str:
            known = published.catalog.by_id(relation)
            return f"relation {relation}" if known is None else known.name

        planning, renderer = self._session.settings.planning, self._session.coordinator.engine.renderer
        indexes = StoredIndexes(published, not maintained, planning)
        lines = explain(rel, statement.stage, indexes, name, renderer, planning.demanding).splitlines()
        if isinstance(inner, CreateView) and inner.parts:
            spread = spread_of(rel, published.catalog, inner.parts)
            exchanges = f"{spread.cut.levels - 1} exchanges a job"
            if spread.plan.scopes:
                exchanges = "an exchange for each of them and round"
            places = len(spread.cut.fragments) - 1
            lines.append(f"maintained by spark: {places} fragments of {inner.parts} parts each, {exchanges}")
        elif isinstance(inner, CreateView) and inner.materialized:
            choice = self._hydrated_by(inner, published)
            if inner.hydrate is not None or choice.by is Hydrate.SPARK:
                lines.append(f"hydrated by {choice}")
        lines += [f"planned with {setting}, which is kept with the view" for setting in planning.set if maintained]
        return self.text_rows("QUERY PLAN", lines, "EXPLAIN")

    def _hydrated_by(self, statement: CreateView, published: Published) -> Choice:
        rel = _explained(statement)
        plan = plan_maintained(rel, published, self._session.settings.planning)
        versions = (published.version(relation) for relation in stored_in(plan))
        rows = sum(version.count for version in versions if version is not None)
        return choose(statement.hydrate, plan, rows, self._session.coordinator.spark().settings.master)

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


def _explained(statement: Statement) -> Rel:
    match statement:
        case Query():
            return statement.rel
        case Insert() | Update() | Delete():
            return statement.source
        case CreateView():
            rel = view_rel(statement.query)
            return numbered(rel) if statement.materialized else rel
        case CreateTable(source=Query() as query):
            return query.rel
        case Subscribe():
            return statement.query.rel
        case _:
            raise unsupported("EXPLAIN of what is no query, change, subscription, or table or view from a query")
