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
import resource
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final, assert_never

from ivm.errors import SqlError
from sql.admission import audit
from sql.admission.admission import Admission, Client
from sql.admission.gate import Gate, loopback_gate
from sql.admission.tls import tls_info
from sql.pgwire.conversation import ConnectionLostError, Conversation, WireSession
from sql.pgwire.entrance import Admit, Cancel, Encrypt, Entrance, Pause, Send
from sql.pgwire.messages_backend import AUTHENTICATION_OK, READY, BackendKeyData, Diagnostic, ParameterStatus
from sql.pgwire.messages_frontend import Frontend
from sql.pgwire.messages_opening import CancelRequest
from sql.pgwire.protocol import Phase, ServerProtocol
from sql.pgwire.run_request import Begun, RunRequest
from sql.pgwire.startup import REPORTED

log = logging.getLogger("freshet.wire")

SHORT_KEY: Final = 4
LONG_KEY: Final = 32
"""Bytes of the key for cancelling, before protocol 3.2 and from there on."""
TERMINATED: Final = SqlError("57P01", "terminating connection due to administrator command")
READ_HIGH: Final = 1 << 21
"""Reading pauses above this many unprocessed bytes, unless a single message is longer."""
STRANGER_HIGH: Final = 1 << 14
"""The same for a client that has not been admitted."""
LOST_SECONDS: Final = 1.0
STARTUP_SECONDS: Final = 60.0
"""Seconds that a client may take until it is admitted; Postgres's authentication_timeout."""
TIMED_OUT: Final = SqlError("57014", "canceling authentication due to timeout")

SessionFactory = Callable[[str, str, dict[str, str], Admission], Awaitable[WireSession]]
"""(user, database, startup parameters, what admitted it) → session. Raises SqlError to refuse the client."""


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
        self._conversation: Conversation | None = None
        self._next: RunRequest | Begun | None = None
        """The next message, if it has not come through the protocol: a request that has arrived as a whole."""
        self._entrance = Entrance(self._protocol, server.gate, Client(""))

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._entrance.client = Client(peer[0].partition("%")[0])
        self._server.connections.add(self)
        self._task = asyncio.get_running_loop().create_task(self._run())

    def data_received(self, data: bytes) -> None:
        if self._arrived is not None and self._conversation is not None and not self._full:
            found = self._conversation.arrived(data)
            if isinstance(found, bytes):
                self.write(found)
                return
            self._next = found
        if self._next is None:
            self._protocol.receive(data)
        if self._arrived is not None:
            if not self._arrived.done():
                self._arrived.set_result(None)
            self._arrived = None
        elif self._protocol.pending > self._high and not self._paused:
            assert self._transport is not None
            self._transport.pause_reading()
            self._paused = True

    @property
    def _high(self) -> int:
        return STRANGER_HIGH if self.session is None else READ_HIGH

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

    async def next_message(self) -> Frontend | RunRequest | Begun:
        """The next message to act on. Raises ProtocolError for invalid bytes, ConnectionLostError at the end."""
        while True:
            if self._next is not None:
                found, self._next = self._next, None
                return found
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

    def offer(self, data: bytes) -> bool:
        if self._full or self._lost or self._transport is None:
            return False
        self._transport.write(data)
        return True

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
            admitted = await asyncio.wait_for(self._enter(), STARTUP_SECONDS)
            if admitted is not None:
                await self._converse(admitted)
        except ConnectionLostError:
            pass
        except TimeoutError:
            self._refuse(TIMED_OUT)
        except SqlError as error:
            self._refuse(error)
        except Exception as error:
            log.exception("a connection failed")
            self.end(SqlError("XX000", f"internal error: {error}"))
        finally:
            self._close()
            self._server.connections.discard(self)
            await self._close_session()

    def _refuse(self, error: SqlError) -> None:
        """Ends the connection, and notes it if there has been no session."""
        entrance = self._entrance
        if self.session is None and entrance.opened is not None and entrance.login is not None:
            opened, login = entrance.opened, entrance.login
            audit.refused(
                entrance.client, opened.user, opened.database, opened.application, login.method, error, login.why
            )
        self.end(error)

    async def _close_session(self) -> None:
        if self.session is None:
            return
        assert self._entrance.opened is not None
        audit.ended(self._entrance.client, self.backend_id, self._entrance.opened.user)
        try:
            await self.session.close()
        except Exception:
            log.exception("a session did not close")

    async def _enter(self) -> Admit | None:
        """Takes the client to its admission; None if it sent a CancelRequest instead."""
        while True:
            step = self._entrance.advance()
            match step:
                case None:
                    await self._wait_for_data()
                case Send():
                    self.write(step.data)
                case Pause():
                    await asyncio.sleep(step.seconds)
                case Encrypt():
                    await self._encrypt(step)
                case Cancel():
                    self._server.cancel_by_key(step.request)
                    return None
                case Admit():
                    return step
                case _:
                    assert_never(step)

    async def _encrypt(self, step: Encrypt) -> None:
        """Shakes hands. The answer and the handshake's reading begin in one go: no byte is read in between."""
        if self._lost or self._transport is None:
            raise ConnectionLostError
        loop, transport = asyncio.get_running_loop(), self._transport
        transport.write(step.answer)
        shaking = loop.start_tls(
            transport, self, step.context, server_side=True, ssl_handshake_timeout=STARTUP_SECONDS
        )  # fmt: skip
        try:
            if step.early:
                transport.pause_reading()
                task = loop.create_task(shaking)
                await asyncio.sleep(0)
                loop.call_soon(_feed, transport, step.early)
                encrypted = await task
            else:
                encrypted = await shaking
        except OSError as error:
            log.info("no TLS with %s: %s", self._entrance.client.host, error)
            raise ConnectionLostError from None
        if encrypted is None:
            raise ConnectionLostError
        self._transport = encrypted
        connection = encrypted.get_extra_info("ssl_object")
        self._entrance.encrypted(tls_info(connection), connection.selected_alpn_protocol())

    def _tell_addresses(self, session: WireSession) -> None:
        assert self._transport is not None
        ends = [self._transport.get_extra_info(which) for which in ("peername", "sockname")]
        if all(isinstance(end, tuple) for end in ends):
            (client, server) = ((end[0].partition("%")[0], end[1]) for end in ends)
            session.connected(client, server)

    async def _converse(self, admitted: Admit) -> None:
        opened, admission = admitted.opened, admitted.admission
        self.write(admitted.last)
        session = await self._server.session_factory(opened.user, opened.database, opened.parameters, admission)
        self.session = session
        session.signalled = self._signalled
        self._tell_addresses(session)
        self._server.register(self, session.backend_id, LONG_KEY if admitted.startup.minor >= 2 else SHORT_KEY)
        who = (session.backend_id, opened.user, opened.database, opened.application)
        audit.authorized(self._entrance.client, *who, admission)
        out = [AUTHENTICATION_OK]
        reported = {**REPORTED, "session_authorization": opened.user}
        reported.update(session.parameter_changes)
        session.parameter_changes.clear()
        out += [ParameterStatus(name, value).encode(session.text_style.encoding) for name, value in reported.items()]
        out += [BackendKeyData(self.backend_id, self.secret).encode(), READY[session.transaction_status]]
        self.write(b"".join(out))
        conversation = self._conversation = Conversation(self, self._protocol, session)

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
        encoding = None if self.session is None else self.session.text_style.encoding
        self.write(Diagnostic.of("FATAL", error).encode(encoding))
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

    def __init__(self, session_factory: SessionFactory, gate: Gate) -> None:
        self.session_factory = session_factory
        self.gate = gate
        self.connections: set[ClientConnection] = set()
        self.keys: dict[int, ClientConnection] = {}
        self._endings: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a client has a file each
        self._listening = await loop.create_server(lambda: ClientConnection(self), host, port, backlog=512)

    @property
    def port(self) -> int:
        assert self._listening is not None
        number: int = self._listening.sockets[0].getsockname()[1]
        return number

    def register(self, connection: ClientConnection, backend_id: int, length: int) -> None:
        """Assigns a connection the key, of that many bytes, that a CancelRequest must present."""
        connection.backend_id = backend_id
        connection.secret = secrets.token_bytes(length)
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


def _feed(transport: asyncio.Transport, data: bytes) -> None:
    """Passes bytes that were read before TLS began to its protocol, as if they came now."""
    protocol = transport.get_protocol()
    assert isinstance(protocol, asyncio.BufferedProtocol)
    while data:
        room = memoryview(protocol.get_buffer(len(data)))
        part, data = data[: len(room)], data[len(room) :]
        room[: len(part)] = part
        protocol.buffer_updated(len(part))


async def serve(session_factory: SessionFactory, host: str, port: int, gate: Gate | None = None) -> Server:
    """Listens on ``host:port`` (port 0: any free one) and serves each client that the gate lets in with its own
    session. Without a gate: everybody on this machine."""
    server = Server(session_factory, gate or loopback_gate())
    await server.listen(host, port)
    return server
