"""What defines relations: statements → their jobs on the engine's thread."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from ivm.errors import SqlError
from planner.distributed.hydration_choice import Hydrate
from planner.expr.context import Context
from planner.logical.locked_joins import locks_in
from sql.catalog.catalog import Relation
from sql.catalog.search_path import Lookup
from sql.coordination.abandoning import abandoning, going
from sql.coordination.hydration import Creation
from sql.coordination.prepared import Prepared
from sql.ddl.alter import Alterer
from sql.ddl.connections import create_source, set_paused
from sql.ddl.create import Definer
from sql.ddl.indexes import create_index, drop_indexes
from sql.ddl.partitions import attach, detach
from sql.ddl.rename import Renamer
from sql.ddl.sinks import SinkDefiner
from sql.ddl.types import TypeDefiner
from sql.dml.changes import Changer
from sql.engine.clock import POSTGRES_EPOCH, wall_clock
from sql.engine.definition import view_rel
from sql.engine.engine import Engine
from sql.engine.writer import Writer
from sql.session.reads import Request
from sql.session.state import SessionState
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
from sql.statements.rename import Rename, Renaming, SetOwner, SetSchema
from sql.statements.results import CommandResult, Notice, Notify, Result
from sql.statements.routines import CreateFunction, DropFunction
from sql.statements.sinks import AlterSink, CreateSink, SinkStatement
from sql.statements.statements import Insert
from sql.statements.types import AddLabel, CreateEnum, DropType, RenameLabel, RenameType, TypeStatement

if TYPE_CHECKING:
    from sql.session.execute import Executor
    from sql.session.session import Session


Definition = (
    CreateTable | CreateView | CreateIndex | CreateSequence | AlterSequence | Drop | DropIndex | AlterTable | Renaming
    | CreateSchema | DropSchema | CreateFunction | DropFunction | TypeStatement | Attach | Detach
    | SinkStatement | ConnectionStatement
)  # fmt: skip


class Definitions:
    """Those of one session; the transaction stands already."""

    def __init__(self, session: Session, executor: Executor) -> None:
        self._session = session
        self._executor = executor

    async def run(self, statement: Definition, prepared: Prepared, request: Request) -> Result:
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
                    coordinator.budget.limit, lambda text: notices.append(Notice("NOTICE", "00000", text)),
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
        return Changer(writer, self._session.coordinator.keys, self._context(writer, request))

    def _context(self, writer: Writer, request: Request) -> Context:
        timeline = writer.engine.timeline
        state = SessionState(self._session, writer.catalog)
        return self._executor.reads.context(writer.engine.dictionary, request, timeline.epoch(timeline.last), state)

    def _alter(self, definer: Definer, statement: AlterTable, request: Request) -> str:
        writer, keys = definer.writer, self._session.coordinator.keys
        writer.engine.check_room()
        Alterer(writer, keys, self._context(writer, request), definer.notify, definer.names).alter(statement)
        return "ALTER TABLE"

    def definer(self, writer: Writer, prepared: Prepared, notify: Notify) -> Definer:
        names = Lookup(writer.catalog, self._session.path(writer.catalog))
        writer.planning = prepared.planning
        return Definer(writer, notify, prepared.seen, names, self._session.settings)

    def _create_table_as(self, definer: Definer, statement: CreateTable, prepared: Prepared, request: Request) -> str:
        writer, query = definer.writer, statement.source
        assert query is not None
        state = SessionState(self._session, writer.catalog)
        context = self._context(writer, request)
        rows = self._executor.source(writer, view_rel(query), prepared, context, state)
        changer = Changer(writer, self._session.coordinator.keys, context)
        table = definer.create_table(statement, changer)
        if table is None:
            return "CREATE TABLE AS"
        count = changer.insert(Insert(table, query.rel), rows).count
        return f"SELECT {count}"


def _drop_again(engine: Engine, view: Relation) -> None:
    """A view that has not come about, unless somebody has dropped it, or made another over it."""
    writer = Writer.begin(engine)
    if view.id in writer.catalog.relations and not writer.catalog.dependents([view.id]):
        writer.drop([view.id])
        writer.commit()
