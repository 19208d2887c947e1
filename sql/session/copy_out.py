"""COPY … TO: a query's rows, or a subscription's changes, as text or binary data."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Final

from ivm.rows import RowSet
from ivm.stops import movable
from ivm.words import Kind, SqlType
from sql.coordination.followers import Written
from sql.coordination.prepared import Prepared
from sql.engine.state import TooLongHereError
from sql.pgwire.copy_writer import CopyWriter
from sql.session.copy_to_files import file_to_write, write_file
from sql.session.information import copy_encoding, output_style
from sql.session.reads import Reads
from sql.session.request import Request
from sql.session.state import SessionState
from sql.session.subscribing import subscribe
from sql.statements.queries import Query
from sql.statements.results import CommandResult, CopyOutResult, Outlet, Result
from sql.statements.statements import CopyTo, Subscribe
from sql.system.state import CopyInfo
from storage.types.text_style import TextStyle

CHUNK_ROWS: Final = 8192
HERE_ROWS: Final = 200
"""The most rows whose text is written on the event loop, where changing threads would cost more."""
HERE_SECONDS: Final = 0.01
"""How long that may take."""


async def copy_query(
    session: SessionState, reads: Reads, statement: CopyTo, query: Query, prepared: Prepared, request: Request
) -> Result:
    """COPY (query) TO: the rows to the client, or to a file."""
    path = None if statement.path is None else file_to_write(statement, session.coordinator.places)
    reading = await reads.reading(query, prepared, request)
    rows = await reads.read(reading)
    names = [c.name for c in query.columns]
    readers, style = session.coordinator.readers, output_style(session)
    progress = CopyInfo(session.backend_id, 0, True, "PIPE" if path is None else "FILE")
    session.copying = lambda: progress
    if path is not None:
        with session.interrupts.interruptible():
            await write_file(path, statement, names, rows, reading.context.dictionary, style, progress)
        return CommandResult(f"COPY {len(rows)}")
    writer = CopyWriter(statement.options, names, reading.context.dictionary, copy_encoding(session, statement.options))

    async def chunks() -> AsyncIterator[bytes]:
        if header := writer.header():
            yield header
        loop = asyncio.get_running_loop()
        for start in range(0, len(rows), CHUNK_ROWS):
            part = RowSet(rows.rows[start : start + CHUNK_ROWS], rows.schema)
            if len(rows) <= HERE_ROWS:
                chunk = written_here(writer, part, style)
                if chunk is not None:
                    yield chunk
                    continue
            with session.interrupts.interruptible():
                chunk = await loop.run_in_executor(readers, writer.rows, part, style)
            progress.done, progress.rows = progress.done + len(chunk), progress.rows + len(part)
            yield chunk
        if trailer := writer.trailer():
            yield trailer

    return CopyOutResult(len(names), writer.format, chunks(), lambda: f"COPY {len(rows)}")


def written_here(writer: CopyWriter, rows: RowSet, style: TextStyle) -> bytes | None:
    """The data of a few rows, on the event loop; None: writing their long values takes long."""
    try:
        with movable(HERE_SECONDS, TooLongHereError):
            return writer.rows(rows, style)
    except TooLongHereError:
        return None


async def copy_subscription(
    session: SessionState, reads: Reads, statement: CopyTo, source: Subscribe, prepared: Prepared, request: Request
) -> Result:
    """COPY (SUBSCRIBE …) TO STDOUT: the changes as they come, until the subscription ends."""
    subscription = await subscribe(session, reads, source, prepared, request)
    names = [c.name for c in subscription.columns]
    writer = CopyWriter(statement.options, names, subscription.dictionary, copy_encoding(session, statement.options))
    shared = not writer.format and not any(_has_names(column.type) for column in subscription.columns)
    progress = CopyInfo(session.backend_id, 0, True, "PIPE")
    session.copying = lambda: progress
    outlet, style = Outlet(), output_style(session)
    form = statement.options, replace(style, reg=None, now=0)

    def push(what: Written) -> bool:
        if not outlet.send(what.data):
            return False
        progress.done, progress.rows = progress.done + what.size, progress.rows + what.rows
        return True

    async def chunks() -> AsyncIterator[bytes]:
        try:
            if header := writer.header():
                yield header
            while not subscription.ended:
                if shared:
                    subscription.listen(form, partial(writer.rows, style=style), push)
                with session.interrupts.interruptible():
                    await subscription.wait(None)
                rows = subscription.take(CHUNK_ROWS)
                if len(rows):
                    chunk = writer.rows(rows, style)
                    progress.done, progress.rows = progress.done + len(chunk), progress.rows + len(rows)
                    yield chunk
            if trailer := writer.trailer():
                yield trailer
        finally:
            subscription.close()

    return CopyOutResult(len(names), writer.format, chunks(), lambda: f"COPY {progress.rows}", outlet)


def _has_names(type_: SqlType) -> bool:
    """Whether the text of values may depend on the session's search path."""
    if type_.kind is Kind.RECORD or type_.kind.value.startswith("reg"):
        return True
    return type_.element is not None and _has_names(type_.element)
