"""One client's queries, in the simple and the extended protocol: messages → calls on its session → answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any, Final, Literal, Protocol, TypeVar, assert_never

from ivm.errors import SqlError, too_deep, unsupported
from ivm.rows import RowSet
from ivm.words import SqlType
from sql.pgwire import messages_backend as backend
from sql.pgwire import messages_frontend as frontend
from sql.pgwire.copy_out import frame_copy
from sql.pgwire.described import describe_rows
from sql.pgwire.messages import HEADER, ProtocolError
from sql.pgwire.protocol import ServerProtocol
from sql.pgwire.run_request import Begun, RunRequest, query_text, run_request
from sql.pgwire.values import as_described, encode_rows
from sql.settings.settings import encoding_of_client
from sql.statements.queries import OutputColumn
from sql.statements.results import (
    CommandResult,
    CopyInResult,
    CopyOutResult,
    EmptyResult,
    Inbox,
    Notice,
    Result,
    RowsResult,
)
from storage.encodings.encoding import Encoding
from storage.types.text_style import TextStyle
from storage.types.type_names import type_oid

T = TypeVar("T")
log = logging.getLogger("freshet.wire")

INLINE_ROWS: Final = 500
"""Results of up to this many rows are encoded on the event loop; longer ones in a thread, so that other clients'
commits are not delayed."""
CHUNK_ROWS: Final = 8192
FATAL_STATES: Final = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "28000", "53300"})
"""SQLSTATEs for which Postgres closes the connection."""

_encoders: Final = ThreadPoolExecutor(2, thread_name_prefix="encode")


class ConnectionLostError(Exception):
    """The client has disconnected: nothing can be read or written any more."""


class WireSession(Protocol):
    """What the wire layer needs of a session (``sql.session.session.Session``, or a fake in tests)."""

    backend_id: int
    """The id in a CancelRequest; unique among a server's sessions."""
    notices: list[Notice]
    parameter_changes: list[tuple[str, str]]
    """Reported settings with new values, which the wire drains; initially the session's starting values."""

    inbox: Inbox
    signalled: Callable[[bool], None] | None
    """A callback set by the wire, for another session to cancel this one's statement or (True) to terminate it."""

    @property
    def transaction_status(self) -> Literal["I", "T", "E"]: ...
    def connected(self, client: tuple[str, int], server: tuple[str, int]) -> None:
        """The host and port of a client with TCP, and the server's."""
        ...

    @property
    def text_style(self) -> TextStyle:
        """How values are formatted as text: time zone, names for reg* types."""
        ...

    def simple(self, text: str) -> AsyncIterator[Result]: ...
    async def parse(self, name: str, text: str, parameter_oids: Sequence[int]) -> None: ...
    def describe_statement(self, name: str) -> tuple[tuple[SqlType, ...], tuple[OutputColumn, ...] | None]: ...
    async def bind(
        self,
        portal: str,
        statement: str,
        parameters: Sequence[bytes | None],
        formats: Sequence[int],
        result_formats: Sequence[int],
    ) -> None: ...
    def describe_portal(self, name: str) -> tuple[OutputColumn, ...] | None: ...
    async def execute(self, portal: str, max_rows: int, final: bool = False) -> Result:
        """``final``: Sync has already arrived and is next, so that the statement may commit by itself."""
        ...

    def runs_whole(self, statement: str) -> bool:
        """Whether a prepared statement takes no messages while it runs, as COPY does."""
        ...

    def answer(self, request: RunRequest) -> bytes | Begun | None:
        """All that answers the request, up to ReadyForQuery, if nothing must be waited for; None: as any other.

        Begun: it has run, and must be waited for.
        """
        ...

    def answer_text(self, text: str) -> bytes | Begun | None:
        """The same for a Query message."""
        ...

    def close_statement(self, name: str) -> None: ...
    def close_portal(self, name: str) -> None: ...
    async def sync(self) -> None: ...
    async def fail(self) -> None: ...
    async def cancel(self) -> None: ...
    async def close(self) -> None: ...


class Channel(Protocol):
    """The connection as seen by the conversation. ``stopping``: the server is ending this connection's task."""

    stopping: bool

    async def next_message(self) -> frontend.Frontend | RunRequest | Begun: ...
    def write(self, data: bytes) -> None: ...
    def offer(self, data: bytes) -> bool:
        """``write``, unless the client reads too slowly, or not at all any more; whether it was done."""
        ...

    async def drain(self) -> None: ...


class Conversation:
    """Drives one session. Invariant: between messages ``_out`` holds only answers of the current pipeline."""

    def __init__(self, channel: Channel, protocol: ServerProtocol, session: WireSession) -> None:
        self._channel = channel
        self._protocol = protocol
        self._session = session
        self._out: list[bytes] = []
        self._formats: dict[str, tuple[int, ...]] = {}
        self._encoding: Encoding | None = None
        self._take_encoding(session.text_style.encoding)

    def _take_encoding(self, encoding: Encoding | None) -> None:
        """What the client sends and is sent from now on is in this encoding; None: UTF-8."""
        self._encoding = self._protocol.encoding = encoding

    async def run(self) -> None:
        """Answers messages until the client leaves. Raises SqlError for errors that end the connection."""
        while True:
            answering = False
            try:
                message = await self._channel.next_message()
                if isinstance(message, frontend.Terminate):
                    return
                answering = True
                await self._answer(message)
            except asyncio.CancelledError:
                if self._channel.stopping:
                    raise
                await self._cancelled(answering)
            except SqlError as error:
                if error.sqlstate in FATAL_STATES or (isinstance(error, ProtocolError) and error.fatal):
                    self._flush()
                    raise
                await self._fail(error)
            except ConnectionLostError:
                raise
            except RecursionError:
                await self._fail(too_deep())
            except Exception as error:
                log.exception("internal error")
                state = "53200" if isinstance(error, MemoryError) else "XX000"
                await self._fail(SqlError(state, f"internal error: {type(error).__name__}: {error}"))

    def arrived(self, data: bytes) -> bytes | Begun | RunRequest | None:
        """The answer to what has arrived, if all of it is a request that can be answered now. Begun, or the request:
        that is the next message; None: it goes to the protocol."""
        request = self.request_in(data)
        if request is not None:
            answer = self.answered_at_once(request)
            return request if answer is None else answer
        if self._out or self._encoding is not None or not self._protocol.idle:
            return None
        text = query_text(data)
        return None if text is None else self._tried(self._session.answer_text, text)

    def request_in(self, data: bytes) -> RunRequest | None:
        """The request that all of this is, from a client that was waited for; None: it goes to the protocol."""
        if self._out or self._encoding is not None or not self._protocol.idle:
            return None
        request = run_request(data)
        if request is None or request.result_formats is None or not self._session.runs_whole(request.statement):
            return None
        return request

    def answered_at_once(self, request: RunRequest) -> bytes | Begun | None:
        """The answer to a request, if it can be given now. None: the request is the next message; Begun: that is."""
        return self._tried(self._session.answer, request)

    def _tried(self, work: Callable[[T], bytes | Begun | None], asked: T) -> bytes | Begun | None:
        try:
            answer = work(asked)
            if isinstance(answer, bytes) and (self._session.notices or self._session.parameter_changes):
                self._drain_session()
                answer = b"".join(self._out) + answer
                self._out.clear()
            return answer
        except SqlError:  # raised again where it can be reported
            return None
        except Exception:
            log.exception("a statement that was to be answered at once failed; it is run again as any other")
            return None

    async def _cancelled(self, answering: bool) -> None:
        """Handles a cancel that reached the task outside of the session: fails the statement being answered, if any."""
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        if answering:
            await self._fail(SqlError("57014", "canceling statement due to user request"))

    async def _fail(self, error: SqlError) -> None:
        """Reports an error. The session's transaction fails, and the rest of the pipeline is skipped up to Sync."""
        await self._session.fail()
        try:
            self._drain_session()
        except SqlError as worse:  # a notice that the client's encoding lacks
            error = worse
        self._out.append(backend.Diagnostic.of("ERROR", error).encode(self._encoding))
        if self._protocol.fail():
            self._flush()
        else:
            self._ready()

    async def _answer(self, message: frontend.Frontend | RunRequest | Begun) -> None:
        """Answers one message. The most frequent ones come first, since a match tries its cases in order."""
        session, out = self._session, self._out
        match message:
            case RunRequest():
                await self._run_whole(message)
            case Begun():
                self._out.append(message.head)
                await self._send(await message.result(), described=True)
                await self._sync()
            case frontend.Bind():
                await session.bind(
                    message.portal, message.statement, message.parameters, message.formats, message.result_formats
                )
                self._formats[message.portal] = message.result_formats
                self._drain_session()
                out.append(backend.BIND_COMPLETE)
            case frontend.Execute():
                final = self._protocol.next_is_sync()
                await self._send(await session.execute(message.portal, message.max_rows, final), described=True)
            case frontend.Sync():
                await self._sync()
            case frontend.Parse():
                await session.parse(message.name, message.text, message.parameter_oids)
                self._drain_session()
                out.append(backend.PARSE_COMPLETE)
            case frontend.Describe():
                self._describe(message)
            case frontend.Query():
                await self._simple(message.text)
            case frontend.Close(kind="S"):
                session.close_statement(message.name)
                out.append(backend.CLOSE_COMPLETE)
            case frontend.Close():
                session.close_portal(message.name)
                self._formats.pop(message.name, None)
                out.append(backend.CLOSE_COMPLETE)
            case frontend.Flush():
                self._flush()
            case frontend.FunctionCall():
                raise unsupported("the fast-path function call")
            case frontend.Password():
                raise ProtocolError("unexpected password message")
            case frontend.CopyData() | frontend.CopyDone() | frontend.CopyFail() | frontend.Terminate():
                raise AssertionError("the protocol gives these out elsewhere")
            case _:
                assert_never(message)

    async def _run_whole(self, request: RunRequest) -> None:
        """Bind, Describe, Execute and Sync. After an error the caller sends ReadyForQuery, as for a simple query."""
        formats = request.result_formats
        assert formats is not None, "checked where it arrived"
        await self._session.bind("", request.statement, request.values, request.forms, formats)
        self._formats[""] = formats
        self._drain_session()
        self._out.append(backend.BIND_COMPLETE)
        if request.described:
            columns = self._session.describe_portal("")
            self._out.append(backend.NO_DATA if columns is None else describe_rows(columns, formats, self._encoding))
        await self._send(await self._session.execute("", request.max_rows, True), described=True)
        await self._sync()

    async def _sync(self) -> None:
        """Sync: ends the implicit transaction. An error of its commit is reported here, and no message is skipped."""
        try:
            await self._session.sync()
        except SqlError as error:
            if error.sqlstate in FATAL_STATES:
                raise
            self._protocol.end_pipeline()
            await self._fail(error)
            return
        self._ready()

    async def _simple(self, text: str) -> None:
        results: Any = self._session.simple(text)
        async with aclosing(results):
            async for result in results:
                await self._send(result, described=False)
        self._ready()

    def _describe(self, message: frontend.Describe) -> None:
        formats: tuple[int, ...] = ()
        if message.kind == "S":
            parameters, columns = self._session.describe_statement(message.name)
            self._out.append(backend.ParameterDescription(tuple(map(type_oid, parameters))).encode())
        else:
            columns = self._session.describe_portal(message.name)
            formats = self._formats.get(message.name, ())
        self._out.append(backend.NO_DATA if columns is None else describe_rows(columns, formats, self._encoding))

    async def _send(self, result: Result, *, described: bool) -> None:
        """Sends a statement's result. ``described``: omit the RowDescription, which is up to the client to request."""
        self._drain_session()
        out = self._out
        match result:
            case CommandResult():
                out.append(backend.CommandComplete(result.tag).encode())
            case RowsResult():
                if result.describe and not described:
                    out.append(describe_rows(result.columns, result.formats, self._encoding))
                if len(result.rows):
                    await self._send_rows(result)
                self._drain_session()
                out.append(
                    backend.PORTAL_SUSPENDED if result.suspended else backend.CommandComplete(result.tag).encode()
                )
            case EmptyResult():
                out.append(backend.EMPTY_QUERY)
            case CopyInResult():
                await self._copy_in(result)
            case CopyOutResult():
                await self._copy_out(result)
            case _:
                assert_never(result)

    async def _send_rows(self, result: RowsResult) -> None:
        rows, schema, style = result.rows.rows, as_described(result), self._session.text_style
        if len(rows) <= INLINE_ROWS:
            self._out.append(encode_rows(RowSet(rows, schema), result.formats, result.dictionary, style))
            return
        loop = asyncio.get_running_loop()
        for start in range(0, len(rows), CHUNK_ROWS):
            chunk = RowSet(rows[start : start + CHUNK_ROWS], schema)
            self._out.append(
                await loop.run_in_executor(_encoders, encode_rows, chunk, result.formats, result.dictionary, style)
            )
            await self._flush_and_wait()

    async def _copy_in(self, result: CopyInResult) -> None:
        """Feeds the client's data to the receiver up to CopyDone."""
        self._out.append(backend.CopyResponse("G", result.format, result.columns).encode())
        self._flush()
        self._protocol.start_copy()
        while True:
            message = await self._channel.next_message()
            match message:
                case frontend.CopyData():
                    await result.receiver.feed(message.data)
                case frontend.CopyDone():
                    self._protocol.end_copy()
                    done = await result.receiver.finish()
                    self._drain_session()
                    self._out.append(backend.CommandComplete(done.tag).encode())
                    return
                case frontend.CopyFail():
                    self._protocol.end_copy()
                    raise SqlError("57014", f"COPY from stdin failed: {message.text}")
                case _:
                    raise ProtocolError("unexpected message during COPY from stdin", fatal=True)  # Terminate

    async def _copy_out(self, result: CopyOutResult) -> None:
        self._out.append(backend.CopyResponse("H", result.format, result.columns).encode())
        self._flush()
        if result.outlet is not None:
            result.outlet.send = self._send_between
        data: Any = result.data
        async with aclosing(data):
            async for chunk in data:
                self._drain_session()
                framed = frame_copy(chunk)
                self._out += (HEADER.pack(b"d", len(chunk) + 4), chunk) if framed is None else (framed,)
                await self._flush_and_wait()
        self._drain_session()
        self._out += (backend.COPY_DONE, backend.CommandComplete(result.tag()).encode())

    def _send_between(self, data: bytes) -> bool:
        """Send messages at once; False if others come first, or the client is behind."""
        session = self._session
        if self._out or session.notices or session.parameter_changes:
            return False
        return self._channel.offer(data)

    def _drain_session(self) -> None:
        """Queues notices and changed settings, which precede the answer to the call that caused them."""
        session = self._session
        if session.notices:
            notices = session.notices[:]
            session.notices.clear()
            for notice in notices:
                report = backend.Diagnostic(
                    "N", notice.severity, notice.sqlstate, notice.message, notice.detail, notice.hint, notice.position,
                    context=notice.context,
                )  # fmt: skip
                self._out.append(report.encode(self._encoding))
        if session.parameter_changes:
            changes = session.parameter_changes[:]
            session.parameter_changes.clear()
            for name, value in changes:
                if name == "client_encoding":
                    self._take_encoding(encoding_of_client(value))
            self._out += [backend.ParameterStatus(name, value).encode(self._encoding) for name, value in changes]

    def notify(self) -> None:
        """Sends other sessions' notifications, unless the client is in a transaction or an answer is in progress."""
        if not self._out and self._session.transaction_status == "I":
            self._take_notifications()
            self._flush()

    def _take_notifications(self) -> None:
        arrived = self._session.inbox.arrived[:]
        self._session.inbox.arrived.clear()
        for n in arrived:
            try:
                report = backend.NotificationResponse(n.sender, n.channel, n.payload).encode(self._encoding)
            except SqlError as error:
                report = backend.Diagnostic("N", "WARNING", error.sqlstate, error.message).encode()
            self._out.append(report)

    def _ready(self) -> None:
        """Queues ReadyForQuery, and sends everything in one write."""
        self._drain_session()
        status = self._session.transaction_status
        if status == "I":
            self._formats.clear()
            self._take_notifications()
        self._out.append(backend.READY[status])
        self._flush()
        self._protocol.end_pipeline()

    def _flush(self) -> None:
        if self._out:
            self._channel.write(b"".join(self._out))
            self._out.clear()

    async def _flush_and_wait(self) -> None:
        self._flush()
        await self._channel.drain()
