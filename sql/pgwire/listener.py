"""Sockets: one ``ClientConnection`` and one task per client, which drive a session with the client's messages.

``protocol.py`` has the protocol's rules; this module connects them to asyncio. Answers are buffered and sent in one
write at Sync, at Flush, or when they grow large. Backpressure works both ways: reading pauses while a client sends
faster than its session works, and writing waits while a client reads too slowly. A lost connection cancels its
session's statement.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Callable, Coroutine
from typing import Final, assert_never

from ivm.errors import SqlError
from sql.pgwire.conversation import ConnectionLostError, Conversation, WireSession
from sql.pgwire.messages_backend import (
    AUTHENTICATION_OK,
    READY,
    REFUSED,
    BackendKeyData,
    Diagnostic,
    NegotiateProtocolVersion,
    ParameterStatus,
)
from sql.pgwire.messages_frontend import Frontend
from sql.pgwire.messages_opening import CancelRequest, EncryptionRequest, Startup
from sql.pgwire.protocol import Phase, ServerProtocol
from sql.pgwire.startup import REPORTED, open_session

log = logging.getLogger("freshet.wire")

TERMINATED: Final = SqlError("57P01", "terminating connection due to administrator command")
READ_HIGH: Final = 1 << 21
"""Reading pauses above this many unprocessed bytes, unless a single message is longer."""
LOST_SECONDS: Final = 1.0
STARTUP_SECONDS: Final = 60.0
"""Seconds that a client may take to send its StartupMessage; Postgres's authentication_timeout."""

SessionFactory = Callable[[str, str, dict[str, str]], WireSession]
"""(user, database, startup parameters) → session. Raises SqlError to refuse the client."""


class ClientConnection(asyncio.Protocol):
    """One client's socket. Only its task acts on the session, except for cancel."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._protocol = ServerProtocol()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._arrived: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._paused = self._full = self._lost = False
        self.stopping = False
        self.backend_id = 0
        self.secret = b""
        self.session: WireSession | None = None

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(self)
        self._task = asyncio.get_running_loop().create_task(self._run())

    def data_received(self, data: bytes) -> None:
        self._protocol.receive(data)
        if self._arrived is not None:
            if not self._arrived.done():
                self._arrived.set_result(None)
            self._arrived = None
        elif self._protocol.pending > READ_HIGH and not self._paused:
            assert self._transport is not None
            self._transport.pause_reading()
            self._paused = True

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        if self._writable is not None:
            if not self._writable.done():
                self._writable.set_result(None)
            self._writable = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        for waiter in (self._arrived, self._writable):
            if waiter is not None and not waiter.done():
                waiter.set_exception(ConnectionLostError())
                waiter.exception()
        self._arrived = self._writable = None
        self._server.connections.discard(self)
        self._server.keys.pop(self.backend_id, None)
        if self.session is not None and self._task is not None and not self._task.done():
            asyncio.get_running_loop().call_later(LOST_SECONDS, self._cancel_lost)

    def _cancel_lost(self) -> None:
        """Cancels what a lost client left running, after a grace period (it may have sent COMMIT and disconnected)."""
        if self._task is not None and not self._task.done():
            self._server.cancel(self)

    def cancel(self) -> None:
        """Handles a CancelRequest: cancels the running statement; an idle session is not affected."""
        if self._arrived is None:
            self._server.cancel(self)
        elif self._protocol.phase is Phase.COPY_IN:
            self._arrived.set_exception(SqlError("57014", "canceling statement due to user request"))
            self._arrived = None

    # Called by the conversation.

    async def next_message(self) -> Frontend:
        """The next message to act on. Raises ProtocolError for invalid bytes, ConnectionLostError at the end."""
        while True:
            message = self._protocol.next_message()
            if message is not None:
                return message
            if self._protocol.phase is Phase.ENDED:
                raise ConnectionLostError
            await self._wait_for_data()

    async def _wait_for_data(self) -> None:
        if self._lost:
            raise ConnectionLostError
        if self._paused:
            assert self._transport is not None
            self._transport.resume_reading()
            self._paused = False
        self._arrived = asyncio.get_running_loop().create_future()
        await self._arrived

    def write(self, data: bytes) -> None:
        """Passes bytes to the transport immediately."""
        if not self._lost and self._transport is not None:
            self._transport.write(data)

    async def drain(self) -> None:
        """Waits until the client has caught up with reading."""
        if self._lost:
            raise ConnectionLostError
        if self._full:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable

    # The task.

    async def _run(self) -> None:
        try:
            startup = await asyncio.wait_for(self._opening(), STARTUP_SECONDS)
            if startup is not None:
                await self._converse(startup)
        except (ConnectionLostError, TimeoutError):
            pass
        except SqlError as error:
            self.end(error)
        except Exception as error:
            log.exception("a connection failed")
            self.end(SqlError("XX000", f"internal error: {error}"))
        finally:
            self._close()
            await self._close_session()

    async def _close_session(self) -> None:
        if self.session is None:
            return
        try:
            await self.session.close()
        except Exception:
            log.exception("a session did not close")

    async def _opening(self) -> Startup | None:
        """Runs the startup phase up to the StartupMessage; None if a CancelRequest came instead."""
        while True:
            opening = self._protocol.next_opening()
            match opening:
                case None:
                    await self._wait_for_data()
                case EncryptionRequest():
                    self.write(REFUSED)
                case CancelRequest():
                    self._server.cancel_by_key(opening)
                    return None
                case Startup():
                    return opening
                case _:
                    assert_never(opening)

    def _tell_addresses(self, session: WireSession) -> None:
        assert self._transport is not None
        ends = [self._transport.get_extra_info(which) for which in ("peername", "sockname")]
        if all(isinstance(end, tuple) for end in ends):
            (client, server) = ((end[0].partition("%")[0], end[1]) for end in ends)
            session.connected(client, server)

    async def _converse(self, startup: Startup) -> None:
        opened = open_session(startup)
        session = self._server.session_factory(opened.user, opened.database, opened.parameters)
        self.session = session
        session.signalled = self._signalled
        self._tell_addresses(session)
        self._server.register(self, session.backend_id)
        out = [AUTHENTICATION_OK]
        if startup.minor > 0 or opened.unknown:
            out.insert(0, NegotiateProtocolVersion(0, opened.unknown).encode())
        reported = {**REPORTED, "session_authorization": opened.user}
        reported.update(session.parameter_changes)
        session.parameter_changes.clear()
        out += [ParameterStatus(name, value).encode() for name, value in reported.items()]
        out += [BackendKeyData(self.backend_id, self.secret).encode(), READY[session.transaction_status]]
        self.write(b"".join(out))
        conversation = Conversation(self, self._protocol, session)

        def arrives() -> None:
            if self._arrived is not None and self._protocol.phase is Phase.QUERIES:
                conversation.notify()

        session.inbox.arrives = arrives
        await conversation.run()

    def _signalled(self, terminate: bool) -> None:
        if terminate:
            self.end(TERMINATED)
            self._server.stop(self)
        else:
            self.cancel()

    def end(self, error: SqlError) -> None:
        """Reports the reason to the client, and closes."""
        self.write(Diagnostic.of("FATAL", error).encode())
        self._close()

    def _close(self) -> None:
        self._protocol.end()
        if self._transport is not None and not self._lost:
            self._transport.close()

    async def stop(self) -> None:
        """Ends the task, waiting for its session to close."""
        self.stopping = True
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class Server:
    """A listening socket and its connections. ``port``: the actual one if 0 was requested."""

    def __init__(self, session_factory: SessionFactory) -> None:
        self.session_factory = session_factory
        self.connections: set[ClientConnection] = set()
        self.keys: dict[int, ClientConnection] = {}
        self._endings: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(lambda: ClientConnection(self), host, port, backlog=512)

    @property
    def port(self) -> int:
        assert self._listening is not None
        number: int = self._listening.sockets[0].getsockname()[1]
        return number

    def register(self, connection: ClientConnection, backend_id: int) -> None:
        """Assigns a connection the key that a CancelRequest must present."""
        connection.backend_id = backend_id
        connection.secret = secrets.token_bytes(4)
        self.keys[connection.backend_id] = connection

    def cancel_by_key(self, request: CancelRequest) -> None:
        """Cancels the statement of the connection with that key. A wrong key does nothing and reveals nothing."""
        connection = self.keys.get(request.backend_id)
        if connection is not None and hmac.compare_digest(connection.secret, request.secret):
            connection.cancel()

    def cancel(self, connection: ClientConnection) -> None:
        """Cancels the statement that a connection's session is running."""
        assert connection.session is not None
        self._begin(_cancel(connection.session))

    def stop(self, connection: ClientConnection) -> None:
        """Ends a connection's task."""
        self._begin(connection.stop())

    def _begin(self, ending: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(ending)
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def close(self) -> None:
        """Stops listening, notifies every client (57P01) and closes its session."""
        if self._listening is not None:
            self._listening.close()
        connections = list(self.connections)
        for connection in connections:
            connection.end(TERMINATED)
        await asyncio.gather(*(connection.stop() for connection in connections))


async def _cancel(session: WireSession) -> None:
    try:
        await session.cancel()
    except SqlError as error:
        log.warning("cancel failed: %s", error)


async def serve(session_factory: SessionFactory, host: str, port: int) -> Server:
    """Listens on ``host:port`` (port 0: any free one) and serves each client with its own session."""
    server = Server(session_factory)
    await server.listen(host, port)
    return server
