"""CREATE, ALTER and DROP: runs statements as jobs on the engine thread."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

from ivm.errors import SqlError
from planner.distributed.hydration_choice import Hydrate
from planner.expr.context import Context
from planner.logical.locked_joins import locks_in
from planner.logical.nodes import Finishing
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.search_path import SearchPathReader
from sql.coordination.abandoning import abandoning, going
from sql.coordination.index_filling import IndexFilling
from sql.coordination.prepared import Prepared
from sql.coordination.replacing import Replacement
from sql.ddl.acting import Actor
from sql.ddl.alter import Alterer
from sql.ddl.attaching import attach, detach
from sql.ddl.comments import comment_on
from sql.ddl.connections import create_source, set_paused
from sql.ddl.create import Definer
from sql.ddl.indexes import create_index, drop_indexes
from sql.ddl.operators import alter_operator, create_operator
from sql.ddl.policies import PolicyDefiner
from sql.ddl.rename import Renamer
from sql.ddl.rights import Rights
from sql.ddl.role_statements import run_role_statement
from sql.ddl.routines import alter_function, create_function
from sql.ddl.schemas import alter_schema
from sql.ddl.seen_rows import check_seen
from sql.ddl.sinks import SinkDefiner
from sql.ddl.triggers import TriggerDefiner
from sql.ddl.types import TypeDefiner
from sql.ddl.view_options import alter_view
from sql.dml.changes import Changer
from sql.engine.clock import timestamp_now
from sql.engine.definition import view_rel
from sql.engine.engine import Engine
from sql.engine.writer import Writer
from sql.parse import StatementText
from sql.session.ahead import TRIES, Ahead, OvertakenError, found_ahead
from sql.session.databases import define_shared, is_shared, prepare_shared, run_whole
from sql.session.preparing import prepare_over
from sql.session.reads import Reads
from sql.session.request import Request
from sql.session.settling import settle
from sql.session.state import SessionState
from sql.session.writes import Writes
from sql.statements import definitions
from sql.statements.comments import Comment
from sql.statements.connections import CreateSource, SetPaused
from sql.statements.databases import DatabaseStatement, WholeDatabase
from sql.statements.partitions import Attach, Detach
from sql.statements.policies import PolicyStatement
from sql.statements.rename import Renaming
from sql.statements.results import CommandResult, Notice, Notify, Result
from sql.statements.roles import RoleStatement
from sql.statements.routines import (
    AlterFunction,
    AlterOperator,
    CreateFunction,
    CreateOperator,
    DropFunction,
    RoutineStatement,
)
from sql.statements.sinks import SinkStatement
from sql.statements.statements import Insert
from sql.statements.triggers import TriggerStatement
from sql.statements.types import TypeStatement


class Definitions:
    """Runs definitions for one session, whose transaction is open."""

    def __init__(self, session: SessionState, reads: Reads, writes: Writes) -> None:
        self._session = session
        self._reads = reads
        self._writes = writes

    async def run(self, statement: definitions.Definition, prepared: Prepared, request: Request) -> Result:
        """Run one definition. Its notices are sent even if it fails."""
        notices: list[Notice] = []
        try:
            return await self._run(statement, prepared, request, notices.append)
        finally:
            self._session.notices += notices

    async def _run(
        self, statement: definitions.Definition, prepared: Prepared, request: Request, notify: Notify
    ) -> Result:
        if isinstance(statement, WholeDatabase):
            return CommandResult(await run_whole(self._session, statement, notify))
        if is_shared(statement):
            await prepare_shared(self._session, statement)
        transaction = self._session.running
        if isinstance(statement, definitions.CreateView) and statement.materialized:
            replaces = _replaces(statement, transaction.catalog)
            if not transaction.alone:
                if not replaces:
                    _check_in_block(statement)
            elif statement.parts and not replaces:
                return await self._scatter(statement, prepared, notify)
            elif await self._hydrated_beside(statement, prepared, notify):
                return CommandResult("CREATE MATERIALIZED VIEW")
        if isinstance(statement, definitions.CreateIndex) and await self._indexed_beside(statement, prepared, notify):
            return CommandResult("CREATE INDEX")
        if isinstance(statement, definitions.CreateTable) and statement.source is not None:
            return CommandResult(await self._table_made(statement, prepared, request, notify))
        ends = self._going(statement, transaction.catalog) if isinstance(statement, definitions.Drop) else None
        job = transaction.write(lambda writer: self.define_now(writer, statement, prepared, request, notify))
        tag = await (job if ends is None else abandoning(self._session.coordinator.engine, ends, job))
        if is_shared(statement):
            await settle(self._session)
        return CommandResult(tag)

    def _going(self, statement: definitions.Drop, catalog: Catalog) -> frozenset[int]:
        """The relations whose loops a DROP may end before it has the engine. Raises 42501: it may not drop them."""
        names, actor = SearchPathReader(catalog, self._session.path(catalog)), self._session.actor(catalog)
        if not actor.is_superuser:
            Rights(names, actor).check(statement)
        return going(statement, names)

    async def _hydrated_beside(self, statement: definitions.CreateView, prepared: Prepared, notify: Notify) -> bool:
        """Create a materialized view while commits go on. False: only the engine thread can; nothing has changed."""
        session, coordinator = self._session, self._session.coordinator
        creation = Replacement(
            coordinator.engine, statement, prepared, lambda writer: self._allowed(writer, statement, prepared, notify),
            session.backend_id, timestamp_now(), coordinator.spark.session(), coordinator.budget.limit,
            lambda text: notify(Notice("NOTICE", "00000", text)),
        )  # fmt: skip
        waiting = session.running
        return await coordinator.hydrators.create(creation, waiting.owner, waiting.patience())

    async def _indexed_beside(self, statement: definitions.CreateIndex, prepared: Prepared, notify: Notify) -> bool:
        """Create an index while commits go on. False: only the engine thread can; nothing has changed."""
        coordinator, waiting = self._session.coordinator, self._session.running
        if not waiting.alone:
            return False
        filling = IndexFilling(
            coordinator.engine, statement=statement, prepared=prepared, notify=notify,
            allowed=lambda writer: self._allowed(writer, statement, prepared, notify),
        )  # fmt: skip
        return await coordinator.hydrators.index(filling, waiting.owner, waiting.patience())

    async def _scatter(self, statement: definitions.CreateView, prepared: Prepared, notify: Notify) -> CommandResult:
        """Create a view that Spark maintains, and wait for its first job. If that fails the view is dropped again."""
        transaction, coordinator = self._session.running, self._session.coordinator

        def define(writer: Writer) -> Relation | None:
            prepared.check_current(writer.catalog)
            return self._allowed(writer, statement, prepared, notify).create_view(statement)

        view = await transaction.write(define)
        if view is not None:
            try:
                await coordinator.scattered.ready(view.id)
            except BaseException:
                await asyncio.shield(coordinator.jobs.autocommit(partial(_drop_again, coordinator.engine, view)))
                raise
        return CommandResult("CREATE MATERIALIZED VIEW")

    async def _table_made(
        self, statement: definitions.CreateTable, prepared: Prepared, request: Request, notify: Notify
    ) -> str:
        """Run CREATE TABLE AS, whose rows are found ahead if they may be; its tag."""
        assert statement.source is not None
        session, write = self._session, self._session.running.write
        define = partial(
            self.define_now, statement=statement, prepared=prepared, request=request, notify=notify
        )  # fmt: skip
        for _ in range(TRIES):
            ahead = await found_ahead(
                session, self._reads, view_rel(statement.source), Finishing(), prepared, request
            )  # fmt: skip
            if ahead is None:
                break
            with suppress(OvertakenError):
                return await write(partial(define, ahead=ahead))
        return await write(define)

    def define_now(
        self, writer: Writer, statement: definitions.Definition, prepared: Prepared, request: Request,
        notify: Notify, ahead: Ahead | None = None,
    ) -> str:  # fmt: skip
        """Run one definition on the engine thread; its tag. Raises OvertakenError if rows that were found ``ahead``
        are others now."""
        prepared.check_current(writer.catalog)
        if ahead is not None:
            ahead.check(writer)
        before = writer.catalog
        tag = self._defined(writer, statement, prepared, request, notify, ahead)
        check_seen(writer, before)
        return tag

    def _defined(
        self, writer: Writer, statement: definitions.Definition, prepared: Prepared, request: Request,
        notify: Notify, ahead: Ahead | None,
    ) -> str:  # fmt: skip
        definer, actor = self._allowed(writer, statement, prepared, notify), self._session.actor(writer.catalog)
        if isinstance(statement, RoleStatement):
            return run_role_statement(writer, definer.names, notify, actor, statement, self._session.elsewhere)
        if isinstance(statement, DatabaseStatement):
            return define_shared(writer, actor, statement)
        if isinstance(statement, TypeStatement):
            alter = partial(self._alter, definer, request=request)
            alone, contexts = not self._session.in_block, partial(self._context, writer, request)
            return TypeDefiner(writer, notify, definer.names, alone, alter, contexts).run(statement)
        if isinstance(statement, RoutineStatement):
            return self._define_routine(definer, statement, actor)
        if isinstance(statement, PolicyStatement):
            return PolicyDefiner(writer, notify, definer.names, actor).run(statement)
        if isinstance(statement, TriggerStatement):
            return TriggerDefiner(writer, notify, definer.names).run(statement)
        if isinstance(statement, SinkStatement):
            return SinkDefiner(writer, notify, definer.names).run(statement)
        if isinstance(statement, Renaming):
            Renamer(writer, definer.names, notify, actor).run(statement)
            return f"ALTER {statement.target.kind.upper()}"
        return self._define(definer, statement, prepared, request, actor, ahead)

    def _define(
        self,
        definer: Definer,
        statement: definitions.RelationStatement,
        prepared: Prepared,
        request: Request,
        actor: Actor,
        ahead: Ahead | None,
    ) -> str:
        """Any other definition."""
        writer, notify = definer.writer, definer.notify
        match statement:
            case definitions.CreateTable(source=None):
                definer.create_table(statement, self.changer(writer, request))
                return "CREATE TABLE"
            case definitions.CreateTable():
                return self._create_table_as(definer, statement, prepared, request, ahead)
            case definitions.CreateView():
                definer.create_view(statement)
                return "CREATE MATERIALIZED VIEW" if statement.materialized else "CREATE VIEW"
            case definitions.CreateSequence():
                definer.create_sequence(statement)
                return "CREATE SEQUENCE"
            case definitions.AlterSequence():
                definer.alter_sequence(statement)
                return "ALTER SEQUENCE"
            case definitions.CreateIndex():
                create_index(writer, statement, notify)
                return "CREATE INDEX"
            case definitions.DropIndex():
                drop_indexes(writer, statement, notify, definer.names)
                return "DROP INDEX"
            case definitions.Drop():
                definer.drop(statement)
                return f"DROP {statement.kind.name.replace('_', ' ')}"
            case definitions.AlterTable():
                return self._alter(definer, statement, request)
            case definitions.AlterView():
                alter_view(writer, statement)
                return "ALTER VIEW"
            case Attach():
                attach(self.changer(writer, request), definer.names, statement)
                return "ALTER TABLE"
            case Detach():
                detach(self.changer(writer, request), definer.names, statement)
                return "ALTER TABLE"
            case CreateSource():
                create_source(definer, statement)
                return "CREATE SOURCE"
            case SetPaused():
                set_paused(definer, statement)
                return f"ALTER {statement.kind.name}"
            case Comment(kind="database"):
                return define_shared(writer, actor, statement)
            case Comment():
                comment_on(writer, definer.names, statement)
                return "COMMENT"
            case definitions.CreateSchema():
                owner = definer.create_schema(statement, actor)
                self._create_elements(writer, statement, request, notify, owner)
                return "CREATE SCHEMA"
            case definitions.AlterSchema():
                alter_schema(writer, statement, actor)
                return "ALTER SCHEMA"
            case definitions.DropSchema():
                definer.drop_schema(statement)
                return "DROP SCHEMA"

    def _create_elements(
        self, writer: Writer, statement: definitions.CreateSchema, request: Request, notify: Notify, owner: int
    ) -> None:
        """Create the objects that CREATE SCHEMA names as its owner, each over the catalog that those before it have
        left. Raises 42P15 and what their statements raise."""
        session = self._session
        name = statement.name or session.roles(writer.catalog).name(owner)
        before, session.creating = session.creating, name
        session.acting.append(owner)
        try:
            for element in statement.elements:
                if element.schema_name not in (None, name):
                    shown = f"({element.schema_name}) different from the one being created ({name})"
                    raise SqlError("42P15", f"CREATE specifies a schema {shown}")
                prepared = prepare_over(session, StatementText(element.text, element.at), writer.catalog)
                made = prepared.bound.statement
                assert isinstance(made, definitions.Definition), "the grammar takes only these"
                self.define_now(writer, made, prepared, request, notify)
        finally:
            session.creating = before
            session.acting.pop()

    def _define_routine(self, definer: Definer, statement: RoutineStatement, actor: Actor) -> str:
        """Run one definition of a function or an operator; its tag."""
        match statement:
            case CreateFunction():
                create_function(definer, statement)
                return statement.tag
            case AlterFunction():
                alter_function(definer, statement, actor)
                return statement.tag
            case CreateOperator():
                create_operator(definer, statement)
                return "CREATE OPERATOR"
            case AlterOperator():
                alter_operator(definer, statement, actor)
                return "ALTER OPERATOR"
            case DropFunction():
                definer.drop_function(statement)
                return statement.tag

    def changer(self, writer: Writer, request: Request) -> Changer:
        return Changer(writer, self._session.coordinator.keys, self._reads.writing(writer, request)[0])

    def _context(self, writer: Writer, request: Request) -> Context:
        return self._reads.writing(writer, request)[0]

    def _alter(self, definer: Definer, statement: definitions.AlterTable, request: Request) -> str:
        writer, keys = definer.writer, self._session.coordinator.keys
        writer.engine.check_room()
        Alterer(writer, keys, lambda: self._reads.writing(writer, request)[0], definer.notify, definer.names).alter(
            statement
        )
        return "ALTER TABLE"

    def _allowed(
        self, writer: Writer, statement: definitions.Definition, prepared: Prepared, notify: Notify
    ) -> Definer:
        """The definer for a statement that the session's role may run. 42501: it may not."""
        prepared.check_allowed()
        definer, actor = self.definer(writer, prepared, notify), self._session.actor(writer.catalog)
        if not actor.is_superuser:
            Rights(definer.names, actor).check(statement)
        return definer

    def definer(self, writer: Writer, prepared: Prepared, notify: Notify) -> Definer:
        names = SearchPathReader(writer.catalog, self._session.path(writer.catalog))
        writer.planning = prepared.planning
        writer.owner = names.path.role
        return Definer(writer, notify, prepared.seen, names, self._session.settings)

    def _create_table_as(
        self, definer: Definer, statement: definitions.CreateTable, prepared: Prepared, request: Request,
        ahead: Ahead | None,
    ) -> str:  # fmt: skip
        writer, query = definer.writer, statement.source
        assert query is not None
        context, information = self._reads.writing(writer, request)
        if ahead is None:
            rows = self._writes.source(writer, view_rel(query), prepared, context, information)
        else:
            rows = ahead.rows
            self._reads.note(ahead.plan, prepared.inputs, context)
        changer = Changer(writer, self._session.coordinator.keys, context)
        table = definer.create_table(statement, changer)
        if table is None:
            return "CREATE TABLE AS"
        count = changer.insert(Insert(table, query.rel), rows).count
        return f"SELECT {count}"


def _replaces(statement: definitions.CreateView, catalog: Catalog) -> bool:
    return statement.replace and catalog.find(statement.schema_name, statement.name) is not None


def _check_in_block(statement: definitions.CreateView) -> None:
    """25001: the materialized view cannot be created inside a transaction block."""
    if locks_in(statement.query.rel):
        raise SqlError("25001", "a view with PROCTIME() cannot be created inside a transaction block")
    if statement.hydrate is Hydrate.SPARK:
        raise SqlError("25001", "Spark cannot hydrate a view inside a transaction block")


def _drop_again(engine: Engine, view: Relation) -> None:
    """Drop a view whose first job has failed, unless it has been dropped, or another view reads it."""
    writer = Writer.begin(engine)
    if view.id in writer.catalog.relations and not writer.catalog.dependents([view.id]):
        writer.drop([view.id])
        writer.commit()
