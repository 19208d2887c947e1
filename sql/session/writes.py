"""INSERT, UPDATE, DELETE, MERGE, TRUNCATE: statements that change rows, and queries over a writer's own state."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from ivm.errors import SqlError, unsupported
from ivm.rows import RowSet, Words
from planner.expr.context import Bounds, Context
from planner.logical.nodes import Finishing, Project, Rel, Values
from planner.logical.traversal import children
from planner.peek.direct import is_short
from planner.peek.order_limit import finish
from planner.peek.run import run
from sql.catalog.search_path import SearchPathReader
from sql.coordination.prepared import Prepared
from sql.coordination.transaction import Extent
from sql.ddl.sequences import restart_sequences
from sql.dml.changes import Changed, Changer
from sql.dml.compound import CompoundRun
from sql.dml.deferring import set_constraints
from sql.dml.fast_insert import constant_source
from sql.dml.merging import merge
from sql.dml.one_row import Given, one_row
from sql.dml.row_changes import RowChanger
from sql.dml.triggers import check_unchanged
from sql.engine.overlay import OverlaidSnapshot
from sql.engine.read_set import Reading as ReadingNote
from sql.engine.snapshot import MemorySnapshot, Published
from sql.engine.state import TooLongHereError
from sql.engine.writer import Writer
from sql.session.ahead import TRIES, Ahead, OvertakenError, found_ahead
from sql.session.information import SystemInformation, system_words
from sql.session.reads import LIGHT_ROWS, Reads
from sql.session.request import Request
from sql.session.row_locking import lock_tables, locked
from sql.session.state import SessionState
from sql.session.stepping import stepped
from sql.statements.queries import Query
from sql.statements.results import CommandResult, Result, RowsResult
from sql.statements.statements import (
    Compound,
    DataChange,
    Delete,
    Insert,
    Lock,
    Merge,
    SetConstraints,
    Truncate,
    Update,
)


class Writes:
    """Runs statements that change rows for one session, whose transaction is open."""

    def __init__(self, session: SessionState, reads: Reads) -> None:
        self._session = session
        self._reads = reads

    async def change(self, statement: DataChange, prepared: Prepared, request: Request) -> Result:
        """Run INSERT, UPDATE, DELETE or MERGE."""
        if prepared.long and not (isinstance(statement, Insert) and _is_values(statement.source)):
            await self._plan_ahead(statement.source, prepared)
        changed = await self._changed(statement, prepared, request)
        return self.changed(statement, changed, request)

    async def _changed(self, statement: DataChange, prepared: Prepared, request: Request) -> Changed:
        plain = not prepared.bound.interpreted
        light = plain and self._is_light(statement, request)
        for _ in range(TRIES):
            ahead = await self._found_ahead(statement, prepared, request)
            if ahead is None:
                break
            with suppress(OvertakenError):
                return await self._session.running.write(
                    partial(self.apply, statement=statement, prepared=prepared, request=request, ahead=ahead)
                )
        return await self._session.running.write(
            lambda writer: self.apply(writer, statement, prepared, request),
            light=light,
            quick=partial(self._row_changed, statement, prepared, request) if plain and request.parameters else None,
        )

    async def _found_ahead(self, statement: DataChange, prepared: Prepared, request: Request) -> Ahead | None:
        changes_one = prepared.form is not None and prepared.form[1] is not None
        if changes_one or (isinstance(statement, Insert) and _is_values(statement.source)):
            return None
        finishing = statement.finishing if isinstance(statement, Insert | Merge) else None
        source, finishing = statement.source, finishing or Finishing()
        return await found_ahead(self._session, self._reads, source, finishing, prepared, request)

    async def _plan_ahead(self, rel: Rel, prepared: Prepared) -> None:
        """Plan a long statement, so that the engine thread finds its plan made."""
        coordinator = self._session.coordinator
        published = coordinator.engine.published
        if not prepared.planned(published):
            await coordinator.planning.run(lambda: prepared.plan_of(rel, published), len(prepared.text))

    def _is_light(self, statement: DataChange, request: Request) -> bool:
        """Whether to try on the event loop's thread; not with partitions or foreign keys, which may need a step,
        nor to commit where the step took long before."""
        transaction = self._session.running
        links = self._session.coordinator.keys.links(transaction.catalog)
        if statement.table.partitioning is not None or isinstance(statement, Merge):
            return False
        tables = statement.branches if not isinstance(statement, Insert) else ()
        changed = (statement.table.id, *(b.table.id for b in tables))
        costs = self._session.coordinator.engine.costs
        if transaction.extent is Extent.STATEMENT and costs.may_be_long(dict.fromkeys(changed, 1)):
            return False
        touched = any(links.touch(id_) or id_ in links.triggers for id_ in changed)
        return _may_be_short(statement, request) and not touched

    def changed(self, statement: Query | DataChange, changed: Changed, request: Request) -> Result:
        """The result of a statement that has changed rows."""
        name = "SELECT" if isinstance(statement, Query) else type(statement).__name__.upper()
        tag = f"INSERT 0 {changed.count}" if name == "INSERT" else f"{name} {changed.count}"
        if changed.returning is None:
            return CommandResult(tag)
        dictionary = self._session.coordinator.engine.dictionary
        return RowsResult(statement.columns, changed.returning, tag, dictionary, formats=request.formats)

    async def compound(self, statement: Compound, prepared: Prepared, request: Request) -> Result:
        """Run a statement with data-modifying statements in its WITH."""
        work = partial(self.compound_now, statement=statement, prepared=prepared, request=request)
        return self.changed(statement.main, await self._session.running.write(work), request)

    def compound_now(self, writer: Writer, statement: Compound, prepared: Prepared, request: Request) -> Changed:
        """The same on the engine thread."""
        prepared.check_current(writer.catalog)
        writer.engine.check_room()
        context, information = self._reads.writing(writer, request)
        changer = Changer(writer, self._session.coordinator.keys, context, caller=self._session.routines)
        bounds = Bounds(writer.engine.dataflow.cancel, self._session.coordinator.budget)
        snapshot = self.snapshot(writer.snapshot(), context, information)
        transaction = self._session.running
        return CompoundRun(
            changer, snapshot, context, bounds, lambda inputs: transaction.note_reading(ReadingNote(inputs))
        ).run(statement)

    async def query(self, statement: Query, prepared: Prepared, request: Request) -> RowsResult:
        """Run a query that calls interpreted routines, which may change rows, or that locks rows."""
        if statement.as_of is not None and statement.locks:
            raise unsupported("AS OF with FOR UPDATE or SHARE")
        if statement.as_of is not None:
            raise unsupported(f"AS OF in a query that calls function {prepared.bound.interpreted[0]}")
        coordinator = self._session.coordinator
        work = partial(self.rows, statement=statement, prepared=prepared, request=request)
        if prepared.calls_only:
            rows = await stepped(self._session, work)
        else:
            rows = await self._session.running.write(work)
        if coordinator.engine.sequences.unmarked:  # a number a client has seen must never be issued again
            await coordinator.jobs.submit(lambda: None)
        dictionary = coordinator.engine.dictionary
        return RowsResult(statement.columns, rows, f"SELECT {len(rows)}", dictionary, formats=request.formats)

    def rows(self, writer: Writer, statement: Query, prepared: Prepared, request: Request) -> RowSet:
        """On the engine thread: the rows of a query over the writer's own state, in their order."""
        prepared.check_current(writer.catalog)
        context, information = self._reads.writing(writer, request)
        rows = self.source(writer, statement.rel, prepared, context, information)
        if statement.locks:
            return locked(writer, self._session.coordinator.keys, statement, rows, context)
        return finish(rows, statement.finishing, context)

    def apply(
        self, writer: Writer, statement: DataChange, prepared: Prepared, request: Request, ahead: Ahead | None = None
    ) -> Changed:
        """On the engine thread: run the source, check its rows and add them to the writer. Raises OvertakenError if its
        rows were found ``ahead`` and are others now."""
        prepared.check_current(writer.catalog)
        engine = writer.engine
        context, information = self._reads.writing(writer, request)
        changer = Changer(writer, self._session.coordinator.keys, context, caller=self._session.routines)
        if not isinstance(statement, Delete):
            engine.check_room()
        given = Given(writer, request.parameters, self._reads.times, lambda: changer)
        done = None if ahead is not None else self._one_row(given, statement, prepared)
        if done is not None:
            return Changed(done)
        source = None
        if ahead is not None:
            ahead.check(writer)
            source = ahead.rows
            self._reads.note(ahead.plan, prepared.inputs, context)
        elif isinstance(statement, Insert):
            source = constant_source(statement.source, context)
        if source is None:
            source = self.source(writer, statement.source, prepared, context, information)
            if prepared.bound.interpreted:
                check_unchanged(writer, statement.table)
        if ahead is None and isinstance(statement, Insert | Merge) and statement.finishing is not None:
            source = finish(source, statement.finishing, context)
        match statement:
            case Insert():
                return changer.insert(statement, source)
            case Update():
                return changer.update(statement, source)
            case Delete():
                return changer.delete(statement, source)
            case Merge():
                return merge(changer, statement, source)

    def _row_changed(
        self, statement: DataChange, prepared: Prepared, request: Request, writer: Writer
    ) -> Changed | None:
        done = self.row_now(writer, statement, prepared, request.parameters)
        return None if done is None else Changed(done)

    def row_now(
        self, writer: Writer, statement: DataChange, prepared: Prepared, parameters: tuple[object, ...]
    ) -> int | None:
        """``apply``, if it changes one row at most: how many it has changed; None: it is not for this, and nothing has
        been done."""

        def general() -> RowChanger:
            context, _ = self._reads.writing(writer, Request(parameters))
            return Changer(writer, self._session.coordinator.keys, context, caller=self._session.routines)

        if prepared.form is None or prepared.form[0] != writer.catalog.version:
            prepared.check_current(writer.catalog)  # as it was when the form was made, otherwise
        if not isinstance(statement, Delete):
            writer.engine.check_room()
        return self._one_row(Given(writer, parameters, self._reads.times, general), statement, prepared)

    def _one_row(self, given: Given, statement: DataChange, prepared: Prepared) -> int | None:
        """The number of rows that a statement has changed by its form of one row; None: it has none, or this is not for
        it."""
        catalog = given.writer.catalog
        if not prepared.bound.parameters or (prepared.plan is None and not isinstance(statement, Insert)):
            return None
        if prepared.form is None or prepared.form[0] != catalog.version:
            made = one_row(statement, prepared.plan, catalog, given.changer.keys, given.context)
            prepared.form = catalog.version, made
        form = prepared.form[1]
        done = None if form is None else form.run(given)
        transaction = self._session.transaction or self._session.ending
        if form is None or done is None or prepared.plan is None or transaction is None:
            return done  # without a transaction: its session has given the statement up meanwhile
        if transaction.checks_reads:
            reading = form.reading(given)
            if reading is None:
                self._reads.note(prepared.plan, prepared.inputs, given.context)
            else:
                transaction.note_reading(reading)
        return done

    def source(
        self, writer: Writer, rel: Rel, prepared: Prepared, context: Context, information: SystemInformation
    ) -> RowSet:
        """On the engine thread: the rows of a query over the writer's own state."""
        bounds = Bounds(writer.engine.dataflow.cancel, self._session.coordinator.budget)
        over = self._unstepped(writer, rel, prepared, context, information)
        if over is not None:
            assert prepared.plan is not None
            self._reads.note(prepared.plan, prepared.inputs, context)
            return run(prepared.plan, over, context, bounds)
        published = writer.snapshot(prepared.inputs if prepared.plan is not None else None)
        if writer.engine.rests and not (prepared.planned(published) and not prepared.overdue()):
            raise TooLongHereError
        plan = prepared.plan_of(rel, published)
        if prepared.overdue():
            writer.engine.arrange(prepared.wishes)
            published = writer.snapshot()
            plan = prepared.plan_of(rel, published)
        self._reads.note(plan, prepared.inputs, context)
        for relation in prepared.inputs:
            if relation in published.failures:
                raise published.failures[relation]
        snapshot = self.snapshot(published, context, information)
        if writer.engine.rests and not is_short(plan, snapshot, LIGHT_ROWS, context):
            raise TooLongHereError
        return run(plan, snapshot, context, bounds)

    def _unstepped(
        self, writer: Writer, rel: Rel, prepared: Prepared, context: Context, information: SystemInformation
    ) -> OverlaidSnapshot | None:
        """The snapshot that a short plan reads without a step after changes of the transaction; None: a step is
        needed."""
        writer.catch_up(prepared.inputs)
        published = writer.as_stepped()
        if not prepared.planned(published):
            prepared.plan_of(rel, published)
        if prepared.plan is None or prepared.overdue():
            return None
        pending = writer.pending(prepared.inputs)
        if not pending:
            return None
        system = self.snapshot(published, context, information).system
        over = OverlaidSnapshot(published, published.ordinal, system, pending=pending, context=context)
        return over if is_short(prepared.plan, over, LIGHT_ROWS, context) else None

    def snapshot(self, published: Published, context: Context, information: SystemInformation) -> MemorySnapshot:
        """The newest moment of a published state, for a plan."""

        def system(relation: int) -> Words:
            return system_words(relation, information, published, context.dictionary)

        return MemorySnapshot(published, published.ordinal, system)

    async def set_constraints(self, statement: SetConstraints) -> Result:
        """Run SET CONSTRAINTS, which lasts as long as the transaction."""
        session = self._session
        if not session.in_block:
            session.notice("SET CONSTRAINTS can only be used in transaction blocks", "WARNING", "25P01")
        names = SearchPathReader(session.running.catalog, session.path(session.running.catalog))
        await session.running.write(lambda writer: set_constraints(writer, statement, names))
        return CommandResult("SET CONSTRAINTS")

    async def lock(self, statement: Lock) -> Result:
        """Run LOCK TABLE. Readers never wait for it: they read what is committed. 25P01: outside of a block."""
        session = self._session
        if not session.in_any_block:
            raise SqlError("25P01", "LOCK TABLE can only be used in transaction blocks")
        if statement.mode != "access share":
            await session.running.write(lambda writer: lock_tables(writer, statement))
        return CommandResult("LOCK TABLE")

    async def truncate(self, statement: Truncate, prepared: Prepared) -> Result:
        """Run TRUNCATE."""
        return await self._session.running.write(lambda writer: self.truncate_now(writer, statement, prepared))

    def truncate_now(self, writer: Writer, statement: Truncate, prepared: Prepared) -> CommandResult:
        """The same on the engine thread."""
        prepared.check_current(writer.catalog)
        context, _ = self._reads.writing(writer, Request())
        keys, caller = self._session.coordinator.keys, self._session.routines
        tables = Changer(writer, keys, context, caller=caller).truncate(statement)
        if statement.restart:
            restart_sequences(writer, tables)
        return CommandResult("TRUNCATE TABLE")


def _may_be_short(statement: DataChange, request: Request) -> bool:
    """Whether a statement that changes rows may be short, judged by its parameters and its VALUES."""
    given = sum(len(p) for p in request.parameters if isinstance(p, list | tuple))
    return given <= LIGHT_ROWS and (not isinstance(statement, Insert) or _few(statement.source))


def _is_values(rel: Rel) -> bool:
    return isinstance(rel, Values) or (isinstance(rel, Project) and _is_values(rel.input))


def _few(rel: Rel) -> bool:
    return len(rel.rows) <= LIGHT_ROWS if isinstance(rel, Values) else all(map(_few, children(rel)))
