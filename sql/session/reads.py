"""A session's queries: each has one read point, with its own context."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.rows import RowSet, Words
from ivm.stops import movable
from planner.expr.context import Context
from planner.expr.scalar import Literal, Parameter
from planner.peek.affected import Asked
from planner.peek.answer import reads_few
from planner.peek.direct import is_short
from planner.physical.nodes import Plan
from sql.coordination.prepared import Prepared, StaleError
from sql.coordination.transaction import Transaction
from sql.engine.clock import timestamp_now
from sql.engine.overlay import OverlaidSnapshot, Pending
from sql.engine.read_set import Reading as ReadingNote
from sql.engine.served import Served
from sql.engine.snapshot import Published
from sql.engine.state import TooLongHereError
from sql.engine.writer import Writer
from sql.session.information import SystemInformation
from sql.session.query import Reading
from sql.session.read_points import ReadPoint, epoch_of, present, read_point_of
from sql.session.request import Request
from sql.session.state import SessionState
from sql.session.view_errors import BrokenView, in_view, may_know
from sql.statements.queries import Query
from sql.statements.results import Notice, RowsResult
from storage.dictionary import Dictionary

LIGHT_ROWS: Final = 200
"""The most rows for which a transaction's statement runs on the event loop's thread, where changing threads would cost
more."""
HERE_SECONDS: Final = 0.01
"""How long a short query may run there before it is run anew on a reader's thread."""


class Reads:
    """Runs queries for one session, whose transaction is open."""

    def __init__(self, session: SessionState) -> None:
        self._session = session

    def context(self, dictionary: Dictionary, request: Request, epoch: int, information: SystemInformation) -> Context:
        """The context of the statement's expressions: parameters, times, settings, system information."""
        transaction = self._session.transaction
        now = timestamp_now()
        started = now if transaction is None else transaction.started
        settings = self._session.settings
        zone = settings.get("timezone")
        hold = dictionary.generation
        return Context(dictionary, request.parameters, started, now, zone, epoch, information, settings.formats, hold)

    def times(self) -> tuple[int, str]:
        """now() and the time zone."""
        session = self._session
        return session.running.started, session.settings.get("timezone")

    def writing(self, writer: Writer, request: Request) -> tuple[Context, SystemInformation]:
        """The same for a statement that writes, as of the newest commit."""
        information = SystemInformation(self._session, writer.catalog, writer)
        timeline = writer.engine.timeline
        return self.context(writer.engine.dictionary, request, timeline.epoch(timeline.last), information), information

    async def query(self, statement: Query, prepared: Prepared, request: Request) -> RowsResult:
        """A SELECT's rows."""
        return await self.result(statement, await self.reading(statement, prepared, request), request)

    async def result(self, statement: Query, reading: Reading, request: Request) -> RowsResult:
        """The rows of a SELECT that is ready to run."""
        rows = await self.read(reading)
        if self._session.coordinator.engine.sequences.unmarked:  # a number a client has seen must never be issued again
            await self._session.coordinator.jobs.submit(lambda: None)
        return RowsResult(
            statement.columns, rows, f"SELECT {len(rows)}", reading.context.dictionary, formats=request.formats
        )

    async def reading(self, statement: Query, prepared: Prepared, request: Request) -> Reading:
        """A query with its read point, ready to run. StaleError: it must be bound again."""
        session = self._session
        transaction = session.running
        own = self._unstepped_state(transaction, statement, prepared, request)
        published, pending = (await transaction.snapshot(), None) if own is None else own
        if prepared.long and not prepared.planned(published):
            plan = await session.coordinator.planning.run(
                lambda: prepared.plan_of(statement.rel, published), len(prepared.text)
            )
        else:
            plan = prepared.plan_of(statement.rel, published)
        known = published.catalog.relations.keys() >= prepared.inputs
        if not known and published.catalog.lacks(prepared.inputs):
            raise StaleError
        if prepared.overdue() and transaction.writer is None:
            session.coordinator.jobs.arrange(prepared.wishes)
        information = SystemInformation(session, published.catalog)
        dictionary = session.coordinator.engine.dictionary
        if not (prepared.plain and known and is_plain(statement)):
            dictionary = dictionary.scratch()
        read_point = present(published)
        context = self.context(dictionary, request, read_point.epoch, information)
        if statement.as_of is not None:
            read_point = await self.read_point(statement, published, prepared.inputs, context)
            context = replace(context, epoch=read_point.epoch)
        served: Mapping[int, Served] = {}
        if session.coordinator.scattered.views:
            read_point, served = await self.served(prepared.inputs, read_point, statement.as_of is not None)
            context = replace(context, epoch=read_point.epoch)
        ignore = session.settings.boolean("ignore_view_errors")
        count = None
        if prepared.counted is not None and published.counts is not None and statement.as_of is None:
            count = published.counts.at(prepared.counted, published.ordinal)
        reading = Reading(
            plan, prepared.inputs, statement.finishing, read_point, context, information,
            session.coordinator.engine.persistence, session.coordinator.budget, ignore, count, pending, served,
            prepared.long,
        )  # fmt: skip
        if statement.as_of is None:
            self.note(plan, prepared.inputs, context)
        broken = await self._broken_then(reading) if read_point.history else reading.broken()
        if broken:
            self._check_views(reading, broken)
        return reading

    def note(self, plan: Plan, inputs: frozenset[int], context: Context) -> None:
        """Have the transaction remember that it reads what a plan reads."""
        transaction = self._session.running
        if transaction.checks_reads and inputs:
            transaction.note_reading(self.noted(plan, inputs, context))

    def noted(self, plan: Plan, inputs: frozenset[int], context: Context) -> ReadingNote:
        """What a plan reads, to be compared with what is committed later."""
        dictionary = self._session.coordinator.engine.dictionary
        again = replace(context, session=None, hold=None)
        return ReadingNote(inputs, Asked(plan, lambda: replace(again, dictionary=dictionary.scratch())))

    def note_key(self, plan: Plan, inputs: frozenset[int], request: Request) -> None:
        """The same of a plan that looks up the key that a request gives."""
        engine = self._session.coordinator.engine
        information = SystemInformation(self._session, self._session.catalog)
        self.note(plan, inputs, self.context(engine.dictionary, request, engine.published.epoch, information))

    async def served(
        self, inputs: frozenset[int], read_point: ReadPoint, fixed: bool = False
    ) -> tuple[ReadPoint, Mapping[int, Served]]:
        """The read point, and the inputs that Spark maintains, once they cover it.

        If the session may read stale rows and the read point is not ``fixed``, it is an earlier one that they cover
        already. 0A000: the transaction has written; 55000: the read point is too old.
        """
        coordinator = self._session.coordinator
        views = coordinator.scattered.among(inputs)
        if not views:
            return read_point, {}
        if self._session.running.writer is not None:
            raise unsupported(
                "reading a materialized view that Spark maintains in a transaction that has written",
                hint="Commit first: Spark sees what is committed.",
            )
        limit = 1000 * self._session.settings.milliseconds("max_staleness")
        covered = min(view.covered for view in views)
        stale = read_point.epoch > covered > coordinator.engine.clock.now() - limit
        if limit and not fixed and stale:
            read_point = await read_point_of(coordinator.jobs, read_point.published, inputs, covered)
        timeline = coordinator.engine.timeline
        ordinal = timeline.ordinal(read_point.epoch)
        epoch = read_point.epoch if ordinal is None else timeline.epoch(ordinal)
        served = {view.relation.id: await coordinator.scattered.covers(view, epoch) for view in views}
        if ordinal is None or any(ordinal < found.since for found in served.values()):
            raise SqlError("55000", "what Spark maintains can no longer be read as of then",
                           hint="Its history is kept for a minute; read it as of now.")  # fmt: skip
        return replace(read_point, ordinal=ordinal), served

    def _unstepped_state(
        self, transaction: Transaction, statement: Query, prepared: Prepared, request: Request
    ) -> tuple[Published, Pending] | None:
        """The state that a short query reads without a step, in a transaction that has changed tables; None: a step is
        needed."""
        writer = transaction.writer
        if writer is None or statement.as_of is not None or not self._session.coordinator.jobs.idle:
            return None
        if not transaction.enter(prepared.inputs):
            return None
        published = writer.as_stepped()
        if not prepared.planned(published):
            if prepared.long:
                return None
            prepared.plan_of(statement.rel, published)
        pending = writer.pending(prepared.inputs)
        if pending is None or prepared.plan is None or prepared.overdue():
            return None
        information = SystemInformation(self._session, published.catalog)
        context = self.context(self._session.coordinator.engine.dictionary.scratch(), request, 0, information)
        over = OverlaidSnapshot(published, published.ordinal, _no_system_rows, pending=pending, context=context)
        few = reads_few(prepared.plan, over, statement.finishing, context, LIGHT_ROWS)
        return (published, pending) if few or is_short(prepared.plan, over, LIGHT_ROWS, context) else None

    async def read_point(
        self, statement: Query, published: Published, inputs: frozenset[int], context: Context
    ) -> ReadPoint:
        """The read point of the query's AS OF."""
        assert statement.as_of is not None
        epoch = epoch_of(statement.as_of, context)
        return await read_point_of(self._session.coordinator.jobs, published, inputs, epoch, statement.as_of_at_least)

    async def read(self, reading: Reading) -> RowSet:
        """Run a query on a reader thread, or on this one if it is short."""
        if reading.small:
            try:
                with movable(HERE_SECONDS, TooLongHereError):
                    return reading.run()
            except TooLongHereError:
                pass
        cancel = threading.Event()
        return await self._session.coordinator.read(lambda: reading.run(cancel), cancel)

    async def _broken_then(self, reading: Reading) -> list[BrokenView]:
        return await self._session.coordinator.read(reading.broken, threading.Event())

    def _check_views(self, reading: Reading, broken: list[BrokenView]) -> None:
        """Raise the error of a view, with its SQLSTATE, or (ignore_view_errors) warn."""
        for view in broken:
            catalog = reading.read_point.published.catalog
            if not reading.ignore_errors or view.down:
                raise in_view(view.error, catalog, view.relation, self._session.role)
            known = catalog.by_id(view.relation)
            name = "" if known is None else known.name
            told = known is None or may_know(catalog, self._session.role, known)
            what = f": {view.error.message}" if told else ""
            self._session.notices.append(
                Notice("WARNING", "01000", f"materialized view {name} has errors{what}",
                       hint="Its good rows are shown; under negation or aggregates they may be wrong too.")
            )  # fmt: skip


def _no_system_rows(relation: int) -> Words:
    raise AssertionError("a transaction's changes are of tables")


def is_plain(statement: Query) -> bool:
    """Whether a query's finishing (order, limit, project) creates no new values."""
    finishing = statement.finishing
    bounds = (finishing.limit, finishing.offset)
    plain = finishing.project is None and not finishing.order
    return statement.as_of is None and plain and all(b is None or isinstance(b, Literal | Parameter) for b in bounds)
