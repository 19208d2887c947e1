"""Statements whose rows come or go in pieces: COPY, SUBSCRIBE, cursors; and VERIFY."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from ivm.errors import SqlError, unsupported
from ivm.rows import RowSet, Words
from planner.expr.context import Bounds, Context
from sql.coordination.prepared import Prepared, StaleError, output_columns
from sql.pgwire.copy_writer import CopyWriter
from sql.session.copy_files import load_file
from sql.session.copy_in import CopyIn
from sql.session.copy_to_files import file_to_write, write_file
from sql.session.portal import Rows
from sql.session.query import epoch_of, present, snapshot_of
from sql.session.state import SessionState, system_words
from sql.session.subscription import Subscription
from sql.session.verify import AnySnapshot, Counted, verify
from sql.session.verify_by_spark import BY_SPARK, verify_by_spark
from sql.session.verify_dictionary import verify_dictionary
from sql.statements.queries import Query
from sql.statements.results import CommandResult, CopyInResult, CopyOutResult, Result, RowsResult
from sql.statements.statements import (
    Close,
    CopyFormat,
    CopyFrom,
    CopyTo,
    Declare,
    Fetch,
    Statement,
    Subscribe,
    Verify,
    VerifyDictionary,
)
from sql.system.state import CopyInfo

if TYPE_CHECKING:
    from sql.session.execute import Executor
    from sql.session.reads import Request
    from sql.session.session import Session

CHUNK_ROWS: Final = 8192


class Streams:
    """Runs them for one session."""

    def __init__(self, session: Session, executor: Executor) -> None:
        self._session = session
        self._executor = executor

    async def run(self, statement: Statement, prepared: Prepared, request: Request) -> Result:
        match statement:
            case CopyFrom():
                return await self._copy_from(statement, request)
            case CopyTo(source=Query() as query):
                return await self._copy_query(statement, query, prepared, request)
            case CopyTo(source=Subscribe() as subscribe):
                return await self._copy_subscription(statement, subscribe, request)
            case Subscribe():
                hint = "Use COPY (SUBSCRIBE …) TO STDOUT, or DECLARE c CURSOR FOR SUBSCRIBE … and FETCH."
                raise unsupported("SUBSCRIBE as a statement of its own", hint=hint)
            case Declare():
                return await self._declare(statement, prepared, request)
            case Fetch():
                return await self._fetch(statement, request)
            case Close():
                return self._close(statement)
            case Verify():
                return await self._verify(statement, request)
            case VerifyDictionary():
                return await verify_dictionary(self._session, request)
            case _:
                raise AssertionError(f"{type(statement).__name__} is run elsewhere")

    # COPY.

    async def _copy_from(self, statement: CopyFrom, request: Request) -> Result:
        session = self._session
        transaction = session.transaction
        assert transaction is not None
        if transaction.read_only:
            raise SqlError("25006", "cannot execute COPY FROM in a read-only transaction")
        dictionary = session.coordinator.engine.dictionary
        context = self._executor.reads.context(dictionary, request, 0, SessionState(session, transaction.catalog))
        if statement.path is not None:
            count = await load_file(session, transaction, statement, context)
            return CommandResult(f"COPY {count}")
        receiver = CopyIn(session, transaction, statement, context)
        binary = 1 if statement.options.format is CopyFormat.BINARY else 0
        return CopyInResult(len(statement.columns), binary, receiver)

    async def _copy_query(self, statement: CopyTo, query: Query, prepared: Prepared, request: Request) -> Result:
        path = None if statement.path is None else file_to_write(statement, self._session.coordinator.places)
        reading = await self._executor.reads.reading(query, prepared, request)
        rows = await self._executor.reads.read(reading)
        names = [c.name for c in query.columns]
        session = self._session
        readers, style = session.coordinator.readers, session.text_style
        progress = CopyInfo(session.backend_id, 0, True, "PIPE" if path is None else "FILE")
        session.copying = lambda: progress
        if path is not None:
            with session.interruptible():
                await write_file(path, statement, names, rows, reading.context.dictionary, style, progress)
            return CommandResult(f"COPY {len(rows)}")
        writer = CopyWriter(statement.options, names, reading.context.dictionary)

        async def chunks() -> AsyncIterator[bytes]:
            if header := writer.header():
                yield header
            loop = asyncio.get_running_loop()
            for start in range(0, len(rows), CHUNK_ROWS):
                part = RowSet(rows.rows[start : start + CHUNK_ROWS], rows.schema)
                if len(rows) <= 200:
                    yield writer.rows(part, style)
                    continue
                with session.interruptible():
                    chunk = await loop.run_in_executor(readers, writer.rows, part, style)
                progress.done, progress.rows = progress.done + len(chunk), progress.rows + len(part)
                yield chunk
            if trailer := writer.trailer():
                yield trailer

        return CopyOutResult(len(names), writer.format, chunks(), lambda: f"COPY {len(rows)}")

    async def _copy_subscription(self, statement: CopyTo, subscribe: Subscribe, request: Request) -> Result:
        subscription = await self._subscribe(subscribe, request)
        session = self._session
        names = [c.name for c in subscription.columns]
        writer = CopyWriter(statement.options, names, subscription.dictionary)
        progress = CopyInfo(session.backend_id, 0, True, "PIPE")
        session.copying = lambda: progress

        async def chunks() -> AsyncIterator[bytes]:
            try:
                if header := writer.header():
                    yield header
                while not subscription.ended:
                    with session.interruptible():
                        await subscription.wait(None)
                    rows = subscription.take(CHUNK_ROWS)
                    if len(rows):
                        chunk = writer.rows(rows, session.text_style)
                        progress.done, progress.rows = progress.done + len(chunk), progress.rows + len(rows)
                        yield chunk
                if trailer := writer.trailer():
                    yield trailer
            finally:
                subscription.close()

        return CopyOutResult(len(names), writer.format, chunks(), lambda: f"COPY {progress.rows}")

    async def _subscribe(self, statement: Subscribe, request: Request) -> Subscription:
        session = self._session
        transaction = session.transaction
        assert transaction is not None
        if transaction.writer is not None:
            raise unsupported("SUBSCRIBE in a transaction that has written")
        coordinator = session.coordinator
        published = coordinator.engine.published
        state = SessionState(session, published.catalog)
        context = self._executor.reads.context(coordinator.engine.dictionary.scratch(), request, published.epoch, state)
        as_of = statement.as_of if statement.as_of is not None else statement.query.as_of
        start = None if as_of is None else epoch_of(as_of, context)
        up_to = None if statement.up_to is None else epoch_of(statement.up_to, context, "UP TO")
        subscription = Subscription(coordinator, statement, up_to, session.settings)
        try:
            await subscription.start(start)
        except BaseException:
            subscription.close()
            raise
        return subscription

    # Cursors.

    async def _declare(self, statement: Declare, prepared: Prepared, request: Request) -> Result:
        session = self._session
        transaction = session.transaction
        assert transaction is not None, "a statement runs in a transaction"
        if not statement.hold and not transaction.explicit:
            raise SqlError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
        session.cursors.check_free(statement.name)
        source: Rows | Subscription
        if isinstance(statement.statement, Subscribe):
            source = await self._subscribe(statement.statement, request)
        else:
            result = await self._executor.reads.query(statement.statement, prepared, request)
            source = Rows(result.columns, result.rows, result.dictionary, result.tag)
        session.cursors.declare(statement, prepared.text, source, len(transaction.savepoints))
        return CommandResult("DECLARE CURSOR")

    async def _fetch(self, statement: Fetch, request: Request) -> Result:
        cursor = self._session.cursor(statement.name)
        rows = await cursor.fetch(statement)
        if isinstance(cursor.source, Subscription) and (warning := cursor.source.warning()) is not None:
            self._session.notices.append(warning)
        if statement.move:
            return CommandResult(f"MOVE {len(rows)}")
        return cursor.result(rows, f"FETCH {len(rows)}", request.formats)

    def _close(self, statement: Close) -> Result:
        session = self._session
        if statement.name is None:
            session.cursors.close_all()
            return CommandResult("CLOSE CURSOR ALL")
        session.close_cursor(statement.name)
        return CommandResult("CLOSE CURSOR")

    # VERIFY.

    async def _verify(self, statement: Verify, request: Request) -> Result:
        session = self._session
        transaction = session.transaction
        assert transaction is not None
        published = await transaction.snapshot()
        if published.catalog.lacks([statement.view.id]):
            raise StaleError
        coordinator, view = session.coordinator, statement.view
        dictionary = coordinator.engine.dictionary.scratch()
        state = SessionState(session, published.catalog)
        context = Context(dictionary)
        if view.id in published.failures:
            raise published.failures[view.id]
        moment, served = await self._executor.reads.served(frozenset({view.id}), present(published))
        cancel = threading.Event()
        bounds = Bounds(cancel, coordinator.budget)

        def system(relation: int) -> Words:
            return system_words(relation, state, published, dictionary)

        def read() -> tuple[Counted, AnySnapshot]:
            snapshot = snapshot_of(moment, coordinator, system)
            if view.id in served:
                return served[view.id].rows.rows_at(moment.ordinal), snapshot
            return published.rows(view.id, published.ordinal), snapshot

        def work() -> RowSet:
            return verify(view, *read(), published, context, bounds)

        try:
            rows = await coordinator.read(work, cancel)
        except SqlError as error:
            if error.sqlstate != "53200" or view.id not in served:
                raise
            session.notices.append(BY_SPARK)
            rows = await verify_by_spark(session, view, read, context)
        columns = output_columns(statement, session)
        assert columns is not None
        return RowsResult(columns, rows, f"VERIFY {len(rows)}", dictionary, formats=request.formats)
