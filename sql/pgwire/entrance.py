"""A client's way from its first byte to its session, sans-I/O: what is to be done next, until it is admitted.

Bytes come through the ``ServerProtocol``. Invariant: ``Admit`` comes once, after the messages that the rules ask for in
the one order that there is; any other order raises, which is the end.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, assert_never

from ivm.errors import SqlError
from sql.admission.admission import Admission, Client
from sql.admission.gate import Gate
from sql.admission.login import Login, Stage
from sql.admission.tls import Tls
from sql.pgwire.messages import ProtocolError
from sql.pgwire.messages_backend import ENCRYPTS, REFUSED, AuthenticationSasl, NegotiateProtocolVersion, SaslStage
from sql.pgwire.messages_frontend import SaslInitial
from sql.pgwire.messages_opening import NEWEST_MINOR, SSL_REQUEST_CODE, CancelRequest, EncryptionRequest, Startup
from sql.pgwire.protocol import Phase, ServerProtocol
from sql.pgwire.startup import Opened, open_session
from sql.system.state import TlsInfo


@dataclass(frozen=True, slots=True)
class Send:
    """Send these bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Encrypt:
    """Send ``answer``, then shake hands over TLS, of which ``early`` has been read; then call ``encrypted``."""

    context: ssl.SSLContext
    answer: bytes
    early: bytes = b""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cancel:
    """The connection is for this alone."""

    request: CancelRequest


@dataclass(frozen=True, slots=True)
class Admit:
    """Open a session. ``last``: what is sent before everything that a session sends."""

    startup: Startup
    opened: Opened
    admission: Admission
    last: bytes


Step = Send | Encrypt | Pause | Cancel | Admit
ALPN_MISSING: Final = "direct SSL connection without ALPN is not allowed"


class _Way(Enum):
    """What the next step depends on."""

    OPENING = "opening"
    HANDSHAKE = "handshake"
    PROOF = "proof"
    OVER = "over"


class Entrance:
    """``opened`` and ``login`` are None until the client has said who it is."""

    def __init__(self, protocol: ServerProtocol, gate: Gate, client: Client) -> None:
        self._protocol, self._gate = protocol, gate
        self._way = _Way.OPENING
        self._tls: Tls | None = None
        self._direct = False
        self._startup: Startup | None = None
        self.client = client
        self.opened: Opened | None = None
        self.login: Login | None = None

    def advance(self) -> Step | None:
        """The next thing to do. None: more bytes are needed. Raises SqlError to refuse the client."""
        way, self._way = self._way, _Way.OVER
        try:
            match way:
                case _Way.OPENING:
                    return self._open()
                case _Way.PROOF:
                    return self._prove()
                case _Way.HANDSHAKE | _Way.OVER:
                    raise AssertionError("nothing comes next")
                case _:
                    assert_never(way)
        except SqlError:
            self._protocol.end()
            raise

    def encrypted(self, info: TlsInfo, alpn: str | None) -> None:
        """Call after the handshake. ``alpn``: the protocol that it agreed on. Raises 08P01."""
        assert self._way is _Way.HANDSHAKE
        assert self._tls is not None
        if self._direct and alpn is None:
            self._way = _Way.OVER
            self._protocol.end()
            raise ProtocolError(ALPN_MISSING, fatal=True)
        self._protocol.encrypted()
        self.client = replace(self.client, tls=info, binding=self._tls.binding)
        self._way = _Way.OPENING

    def _open(self) -> Step | None:
        self._way = _Way.OPENING
        if (tls := self._gate.tls) is not None and (early := self._protocol.take_tls_handshake()):
            self._direct = True
            return self._encrypt(tls, b"", early)
        opening = self._protocol.next_opening()
        match opening:
            case None:
                return None
            case EncryptionRequest():
                if tls is None or opening.code != SSL_REQUEST_CODE:
                    return Send(REFUSED)
                return self._encrypt(tls, ENCRYPTS)
            case CancelRequest():
                self._way = _Way.OVER
                return Cancel(opening)
            case Startup():
                self._way = _Way.OVER
                return self._begin(opening)
            case _:
                assert_never(opening)

    def _encrypt(self, tls: Tls, answer: bytes, early: bytes = b"") -> Encrypt:
        self._tls, self._way = tls, _Way.HANDSHAKE
        return Encrypt(tls.context, answer, early)

    def _begin(self, startup: Startup) -> Step:
        self._startup, self.opened = startup, open_session(startup)
        self.login = Login(self._gate, self.client, self.opened.database, self.opened.user)
        mechanisms = self.login.begin()
        told = b""
        if startup.minor > NEWEST_MINOR or self.opened.unknown:
            told = NegotiateProtocolVersion(min(startup.minor, NEWEST_MINOR), self.opened.unknown).encode()
        if self.login.admission is not None:
            return self._admit(self.login.admission, told)
        self._way = _Way.PROOF
        return Send(told + AuthenticationSasl.offer(mechanisms).encode())

    def _prove(self) -> Step | None:
        login = self.login
        assert login is not None
        if login.stage is Stage.PROOF:
            last = AuthenticationSasl(SaslStage.FINAL, login.prove()).encode()
            assert login.admission is not None
            return self._admit(login.admission, last)
        body = self._protocol.next_answer()
        if body is None:
            self._way = _Way.PROOF
            return None
        message: bytes | None = body
        if login.stage is Stage.MECHANISM:
            initial = SaslInitial.decode(body)
            login.choose(initial.mechanism)
            message = initial.data
        answer = b"" if message is None else login.respond(message)
        seconds = login.due() if answer is None else 0.0
        self._way = _Way.PROOF
        if answer is None:
            return Pause(seconds)
        return Send(AuthenticationSasl(SaslStage.CONTINUE, answer).encode())

    def _admit(self, admission: Admission, last: bytes) -> Admit:
        assert self._startup is not None
        assert self.opened is not None
        assert self._protocol.phase is Phase.AUTHENTICATION
        self._protocol.admit()
        return Admit(self._startup, self.opened, admission, last)
