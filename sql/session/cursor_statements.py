"""DECLARE, FETCH, MOVE and CLOSE."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from ivm.errors import SqlError
from sql.coordination.prepared import Prepared
from sql.session.cursors import FailedRows, Source
from sql.session.portal import PortalRows
from sql.session.reads import Reads
from sql.session.request import Request
from sql.session.state import SessionState
from sql.session.subscribing import subscribe
from sql.session.subscription import Subscription
from sql.statements.queries import Query
from sql.statements.results import CommandResult, Result, RowsResult
from sql.statements.statements import Close, Declare, Fetch, Subscribe

Locked = Callable[[Query, Prepared, Request], Awaitable[RowsResult]]
OF_ROWS: Final = ("21", "22", "P0")
"""The classes of errors that a row's expressions raise; others (cancels, limits, views that are down) end DECLARE."""


async def declare(
    session: SessionState, reads: Reads, locked: Locked, statement: Declare, prepared: Prepared, request: Request
) -> Result:
    """DECLARE. ``locked``: runs a query that locks rows. 25P01: a cursor without HOLD outside of a block."""
    transaction = session.running
    if not statement.hold and not session.in_any_block:
        raise SqlError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
    session.cursors.check_free(statement.name)
    source: Source
    if isinstance(statement.statement, Subscribe):
        source = await subscribe(session, reads, statement.statement, prepared, request)
    elif statement.statement.locks:
        found = await locked(statement.statement, prepared, request)
        source = PortalRows(found.columns, found.rows, found.dictionary, found.tag)
    else:
        source = await _rows(reads, statement.statement, prepared, request)
    session.cursors.declare(statement, prepared.text, source, len(transaction.savepoints))
    return CommandResult("DECLARE CURSOR")


async def _rows(reads: Reads, query: Query, prepared: Prepared, request: Request) -> PortalRows | FailedRows:
    reading = await reads.reading(query, prepared, request)
    try:
        result = await reads.result(query, reading, request)
    except SqlError as error:
        if error.sqlstate[:2] not in OF_ROWS:
            raise
        return FailedRows(query.columns, reading.context.dictionary, prepared.shown(error).with_traceback(None))
    return PortalRows(result.columns, result.rows, result.dictionary, result.tag)


async def fetch(session: SessionState, statement: Fetch, request: Request) -> Result:
    """FETCH or MOVE. 34000: no such cursor; 55000: it does not move in that direction."""
    cursor = session.cursor(statement.name)
    rows = await cursor.fetch(statement)
    if isinstance(cursor.source, Subscription) and (warning := cursor.source.warning()) is not None:
        session.notices.append(warning)
    if statement.move:
        return CommandResult(f"MOVE {len(rows)}")
    return cursor.result(rows, f"FETCH {len(rows)}", request.formats)


def close(session: SessionState, statement: Close) -> Result:
    """CLOSE. 34000: no such cursor."""
    if statement.name is None:
        session.cursors.close_all()
        return CommandResult("CLOSE CURSOR ALL")
    session.close_cursor(statement.name)
    return CommandResult("CLOSE CURSOR")
