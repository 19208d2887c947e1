"""One client's proof of who it is, sans-I/O: what the rule asks for, and whether the answers are that.

``begin``, then ``choose`` with the mechanism that the client selected, then ``respond`` with each message of it, until
``admission`` is set. Each raises SqlError to refuse the client, after which nothing may be called again. Before
``prove`` the caller waits ``due`` seconds.
"""

from __future__ import annotations

from enum import Enum

from ivm.errors import SqlError
from sql.admission.admission import Admission, Client
from sql.admission.delays import key_of
from sql.admission.gate import Gate
from sql.admission.rules import ANYBODY_HERE, Rule, plain_address
from sql.admission.scram import ScramExchange, offered


class Stage(Enum):
    """What must come next."""

    BEGIN = "begin"
    MECHANISM = "the mechanism"
    FIRST = "the client's first message"
    FINAL = "the client's last message"
    PROOF = "the proof is to be checked"
    OVER = "over"


class Login:
    """``method``: of the rule, once it is known; ``why``: the reason of a refusal, for the log alone."""

    def __init__(self, gate: Gate, client: Client, database: str, user: str) -> None:
        self._gate, self._client, self._database, self._user = gate, client, database, user
        self._key = key_of(user, plain_address(client.host))
        self._exchange: ScramExchange | None = None
        self._final = b""
        self._anybody = False
        self.stage = Stage.BEGIN
        self.method = ""
        self.why = ""
        self.admission: Admission | None = None

    def begin(self) -> tuple[str, ...]:
        """The mechanisms to offer; none if the rule asks for nothing more. Raises 28000."""
        assert self.stage is Stage.BEGIN
        self.stage = Stage.OVER
        rule = self._gate.rule(self._client, self._database, self._user)
        self.method, self._anybody = rule.method, rule in ANYBODY_HERE
        self._check_certificate(rule)
        if rule.method != "scram-sha-256":
            self._admit()
            return ()
        self.stage = Stage.MECHANISM
        return offered(self._client.binding)

    def _check_certificate(self, rule: Rule) -> None:
        if not rule.certificate:
            return
        tls = self._client.tls
        if tls is None or tls.client_serial is None:
            raise SqlError("28000", "connection requires a valid client certificate")
        if rule.certificate == "verify-full" and tls.client_name != self._user:
            self.why = f'The certificate is of "{tls.client_name}".'
            method = "certificate" if rule.method == "cert" else rule.method
            raise self._refused(method)

    def _refused(self, method: str) -> SqlError:
        words = "password" if method == "scram-sha-256" else method
        state = "28P01" if words == "password" else "28000"
        return SqlError(state, f'{words} authentication failed for user "{self._user}"')

    def choose(self, mechanism: str) -> None:
        """The client's choice. Raises 08P01."""
        assert self.stage is Stage.MECHANISM
        self.stage = Stage.OVER
        secret = self._gate.secret(self._user)
        self.why = secret.why
        self._exchange = ScramExchange(mechanism, secret.verifier, secret.doomed, self._client.binding)
        self.stage = Stage.FIRST

    def respond(self, message: bytes) -> bytes | None:
        """The answer to the client's first message. None after its last: ``prove`` comes next. Raises 08P01, 28000."""
        assert self._exchange is not None
        if self.stage is Stage.FIRST:
            self.stage = Stage.OVER
            answer = self._exchange.first(message)
            self.stage = Stage.FINAL
            return answer
        assert self.stage is Stage.FINAL
        self._final, self.stage = message, Stage.PROOF
        return None

    def due(self) -> float:
        """The seconds to wait before the proof is checked. Raises 28P01 if too many wait."""
        wait = self._gate.delays.reserve(self._key)
        if wait is None:
            self.stage, self.why = Stage.OVER, "Too many attempts are waiting."
            raise self._refused(self.method)
        return wait

    def prove(self) -> bytes:
        """The server's last message to a client that is admitted. Raises 28P01, 08P01."""
        assert self.stage is Stage.PROOF
        assert self._exchange is not None
        self.stage = Stage.OVER
        answer = self._exchange.final(self._final)
        if answer is None:
            self._gate.delays.failed(self._key)
            self.why = self.why or "The password is wrong."
            raise self._refused(self.method)
        self._gate.delays.passed(self._key)
        self._admit()
        return answer

    def _admit(self) -> None:
        tls, identity = self._client.tls, ""
        if self.method == "cert" and tls is not None:
            identity = tls.client_dn
        elif self.method == "scram-sha-256":
            identity = self._user
        self.admission = Admission(self.method, tls, self._anybody, identity)
