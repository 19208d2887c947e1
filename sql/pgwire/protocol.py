"""The protocol's state machine, sans-I/O: bytes in, messages out, one at a time.

``receive`` takes bytes from the client; ``next_message`` returns the next message that the server should act on, or
None if more bytes are needed. What is allowed next depends on what the server did with the last message, so messages
are decoded only on request:

- until the StartupMessage: packets of the startup phase, each request for encryption once and none under TLS;
- after it, until ``admit``: answers to authentication requests, and nothing else;
- after ``fail`` in an extended pipeline: everything is dropped up to Sync;
- after a COPY IN has ended (or failed): the rest of its data is dropped;
- during a COPY IN: Flush and Sync are ignored, as in Postgres, and anything but copy messages is an error.

Invariant: after a fatal ProtocolError no message is ever returned again.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, assert_never

from sql.pgwire.messages import INT32, MAX_STARTUP_LENGTH, ProtocolError
from sql.pgwire.messages_frontend import FRONTEND, Frontend, Password
from sql.pgwire.messages_opening import (
    GSS_REQUEST_CODE,
    SSL_REQUEST_CODE,
    CancelRequest,
    EncryptionRequest,
    Opening,
    Startup,
    decode_opening,
    unsupported_version,
)
from sql.pgwire.strings import in_utf8
from storage.encodings.encoding import Encoding

_QUERY: Final = ord("Q")
_FUNCTION_CALL: Final = ord("F")
_TERMINATE: Final = ord("X")
_TLS_HANDSHAKE: Final = b"\x16"
"""The first byte of a TLS ClientHello. No packet of the startup phase begins with it: it would be too long."""


class Phase(Enum):
    """A connection's state."""

    STARTUP = "startup"
    AUTHENTICATION = "authentication"
    QUERIES = "queries"
    COPY_IN = "copy in"
    ENDED = "ended"


class ServerProtocol:
    """The server's side of one connection. ``pending``: received bytes not yet consumed by a message. ``encoding``: of
    the strings in the client's next messages; None: UTF-8."""

    __slots__ = (
        "_asked", "_at", "_buffer", "_chunks", "_extended", "_needed", "_skip_to_sync", "_total", "encoding", "phase",
    )  # fmt: skip

    def __init__(self) -> None:
        self.phase = Phase.STARTUP
        self.encoding: Encoding | None = None
        self._asked: set[int] = set()
        self._buffer = b""
        self._at = 0
        self._chunks: list[bytes] = []
        self._total = 0
        self._needed = 0
        self._extended = False
        self._skip_to_sync = False

    @property
    def pending(self) -> int:
        return len(self._buffer) - self._at + self._total

    @property
    def idle(self) -> bool:
        """Whether every message has been answered, so that the next one begins a query or a pipeline."""
        if self._extended or self._skip_to_sync or self.phase is not Phase.QUERIES:
            return False
        return self._at == len(self._buffer) and not self._total

    def receive(self, data: bytes) -> None:
        """Takes bytes from the client. Cost: linear in ``data``; a long message is joined once, when it is complete."""
        if not self._total and self._at == len(self._buffer):
            self._buffer, self._at = data, 0
        else:
            self._chunks.append(data)
            self._total += len(data)

    def _joined(self) -> bytes:
        """The buffer with everything received; the next message starts at ``_at``."""
        if self._total:
            self._buffer = b"".join((self._buffer[self._at :], *self._chunks))
            self._at = self._total = 0
            self._chunks.clear()
        return self._buffer

    def next_opening(self) -> Opening | None:
        """The next packet of the startup phase."""
        assert self.phase is Phase.STARTUP
        buffer = self._joined()
        if self.pending < 4:
            return None
        length = INT32.unpack_from(buffer, self._at)[0]
        if not 8 <= length <= MAX_STARTUP_LENGTH:
            self.phase = Phase.ENDED
            raise ProtocolError("invalid length of startup packet", fatal=True)
        if self.pending < length:
            return None
        body = buffer[self._at + 4 : self._at + length]
        self._at += length
        try:
            opening = decode_opening(body)
        except ProtocolError:
            self.phase = Phase.ENDED
            raise
        match opening:
            case EncryptionRequest():
                self._note_encryption(opening.code)
            case CancelRequest():
                self.phase = Phase.ENDED
            case Startup():
                self.phase = Phase.AUTHENTICATION
            case _:
                assert_never(opening)
        return opening

    def _note_encryption(self, code: int) -> None:
        """Invariant: what arrived in the clear is never taken for what came encrypted."""
        if self.pending:
            self.phase = Phase.ENDED
            raise ProtocolError("received unencrypted data after an encryption request", fatal=True)
        if code in self._asked:
            self.phase = Phase.ENDED
            raise unsupported_version(code >> 16, code & 0xFFFF)
        self._asked.add(code)

    def encrypted(self) -> None:
        """Call when a connection has TLS: nothing may ask for encryption any more."""
        self._asked.update((SSL_REQUEST_CODE, GSS_REQUEST_CODE))

    def take_tls_handshake(self) -> bytes:
        """The first bytes of a connection if they open TLS without asking for it, taken from the buffer; else none."""
        buffer = self._joined()
        if self.phase is not Phase.STARTUP or self._asked or buffer[self._at : self._at + 1] != _TLS_HANDSHAKE:
            return b""
        taken = buffer[self._at :]
        self._buffer, self._at = b"", 0
        return taken

    def next_answer(self) -> bytes | None:
        """The body of the next answer to an authentication request. Any other message is the end."""
        assert self.phase is Phase.AUTHENTICATION
        buffer, at = self._joined(), self._at
        if at < len(buffer) and buffer[at] != Password.code[0]:
            self.phase = Phase.ENDED
            raise ProtocolError(f"expected SASL response, got message type {buffer[at]}", fatal=True)
        if len(buffer) - at < 5:
            return None
        length = INT32.unpack_from(buffer, at + 1)[0]
        if not 4 <= length <= Password.limit:
            raise self._lost(buffer[at], False)
        end = at + 1 + length
        if len(buffer) < end:
            return None
        self._at = end
        return buffer[at + 5 : end]

    def admit(self) -> None:
        """Call when the client has proved who it is."""
        assert self.phase is Phase.AUTHENTICATION
        self.phase = Phase.QUERIES

    def next_message(self) -> Frontend | None:
        """The next message to act on, None if more bytes are needed.

        Raises ProtocolError, or the error of a string that is none in the client's encoding. A fatal one ends the
        connection. After any other the message is consumed; the server reports the error and calls ``fail``, as for any
        error.
        """
        while self.phase in (Phase.QUERIES, Phase.COPY_IN):
            if self.pending < self._needed:
                return None
            buffer, at = self._joined(), self._at
            if len(buffer) - at < 5:
                return None
            kind = buffer[at]
            length = INT32.unpack_from(buffer, at + 1)[0]
            message = FRONTEND.get(kind)
            if message is None or not 4 <= length <= message.limit:
                raise self._lost(kind, message is None)
            end = at + 1 + length
            if len(buffer) < end:
                self._needed = end - at
                return None
            self._at, self._needed = end, 0
            if not self._dropped(kind):
                self._note(kind)
                body = buffer[at + 5 : end]
                return message.decode(body if self.encoding is None else in_utf8(kind, body, self.encoding))
        return None

    def _lost(self, kind: int, unknown: bool) -> ProtocolError:
        """Framing is lost: no later byte can be interpreted."""
        self.phase = Phase.ENDED
        if unknown:
            return ProtocolError(f"invalid frontend message type {kind}", fatal=True)
        return ProtocolError("invalid message length", fatal=True)

    def _dropped(self, kind: int) -> bool:
        """Whether a message of this type is skipped in the current state."""
        if self._skip_to_sync:
            if kind not in b"SX":
                return True
            self._skip_to_sync = False
            return False
        if self.phase is Phase.COPY_IN:
            return kind in b"SH"
        return kind in b"dcf"

    def _note(self, kind: int) -> None:
        """Updates the state for the message about to be returned."""
        if kind == _TERMINATE:
            self.phase = Phase.ENDED
        elif self.phase is Phase.COPY_IN:
            if kind not in b"dcf":
                raise ProtocolError(f"unexpected message type 0x{kind:02X} during COPY from stdin")
        elif kind == _QUERY:
            self._extended = False
        elif kind in b"PBDECHF":
            self._extended = kind != _FUNCTION_CALL

    def next_is_sync(self) -> bool:
        """Whether the next message has already arrived and is Sync."""
        return self._joined()[self._at : self._at + 1] == b"S"

    def start_copy(self) -> None:
        """Call when CopyInResponse has been sent."""
        assert self.phase is Phase.QUERIES
        self.phase = Phase.COPY_IN

    def end_copy(self) -> None:
        """Call when the COPY IN is over, successfully or not: later copy messages are dropped."""
        if self.phase is Phase.COPY_IN:
            self.phase = Phase.QUERIES

    def fail(self) -> bool:
        """Call when an ErrorResponse has been sent for the last message.

        True if the message belongs to an extended pipeline: everything is dropped up to Sync, whose ReadyForQuery ends
        it. False for a simple query: send ReadyForQuery now.
        """
        self.end_copy()
        if self._extended:
            self._skip_to_sync = True
        return self._extended

    def end_pipeline(self) -> None:
        """Call when ReadyForQuery has been sent: the next message begins a new query or pipeline."""
        self._extended = False
        self._skip_to_sync = False

    def end(self) -> None:
        """Ends the connection."""
        self.phase = Phase.ENDED
