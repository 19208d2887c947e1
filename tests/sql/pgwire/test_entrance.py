"""A client's way to its admission, without sockets: the one order of messages that lets it in, and all the others."""

from __future__ import annotations

import contextlib
import itertools
import random
import ssl
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from ivm.errors import SqlError
from sql.admission.admission import Client
from sql.admission.gate import Gate
from sql.admission.scram import PLAIN
from sql.admission.tls import Tls
from sql.catalog.access import Access
from sql.catalog.databases import Shared
from sql.catalog.roles import FIRST_ROLES, Role
from sql.pgwire import messages_backend as back
from sql.pgwire import messages_frontend as front
from sql.pgwire import messages_opening as opening
from sql.pgwire.entrance import Admit, Cancel, Encrypt, Entrance, Pause, Send
from sql.pgwire.protocol import Phase, ServerProtocol
from sql.system.state import TlsInfo
from storage.scram import verifier
from tests.support.scram_client import ScramClient

ANN = Role(100, "ann", login=True, password=verifier("secret", iterations=1))
ACCESS = Access(Shared({**FIRST_ROLES, 100: ANN}))
RULES = "hostssl all ann all scram-sha-256\nhostnossl all all 10.0.0.0/8 scram-sha-256\nhost all bob all trust\n"
SSL, GSS = (opening.EncryptionRequest(code).encode() for code in (opening.SSL_REQUEST_CODE, opening.GSS_REQUEST_CODE))
BINDING = b"hash of the certificate"


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Gate:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "pg_hba.conf").write_text(RULES)
    gate = Gate(folder, lambda: ACCESS, b"secret", lambda: 0)
    gate.load()
    return gate


def startup(user: str = "ann") -> bytes:
    return opening.Startup(0, (("user", user), ("database", "db"))).encode()


def initial(message: bytes | None, mechanism: str = PLAIN) -> bytes:
    return front.SaslInitial(mechanism, message).encode()


@dataclass
class Driven:
    """An entrance and what it said. ``challenge``: the server's first message of SCRAM."""

    gate: Gate
    tls: bool = False
    protocol: ServerProtocol = field(default_factory=ServerProtocol)
    sent: list[bytes] = field(default_factory=list)
    challenge: bytes = b""
    admitted: Admit | None = None
    cancelled: bool = False

    def __post_init__(self) -> None:
        self.entrance = Entrance(self.protocol, self.gate, Client("10.1.2.3"))

    def send(self, data: bytes) -> None:
        """Takes bytes, and every step they lead to. Raises what refuses the client."""
        self.protocol.receive(data)
        while self.admitted is None and not self.cancelled:
            match self.entrance.advance():
                case None:
                    return
                case Send(said):
                    self.sent.append(said)
                    if said[:1] == b"R" and said[5:9] == b"\0\0\0\x0b":
                        self.challenge = said[9:]
                case Pause():
                    pass
                case Encrypt() as step:
                    self.sent.append(step.answer)
                    self.entrance.encrypted(TlsInfo("TLSv1.3", "x", 256), "postgresql")
                case Cancel():
                    self.cancelled = True
                case Admit() as admit:
                    self.admitted = admit


def refused(driven: Driven, data: bytes) -> SqlError:
    with pytest.raises(SqlError) as raised:
        driven.send(data)
    assert driven.admitted is None
    assert driven.protocol.phase is Phase.ENDED
    return raised.value


def test_the_right_order(gate: Gate) -> None:
    driven, client = Driven(gate), ScramClient("secret")
    driven.send(startup())
    assert driven.sent == [back.AuthenticationSasl.offer((PLAIN,)).encode()]
    driven.send(initial(client.first()))
    driven.send(front.Password(client.final(driven.challenge)).encode())
    assert driven.admitted is not None
    assert (driven.admitted.opened.user, driven.admitted.admission.method) == ("ann", "scram-sha-256")
    assert not driven.admitted.admission.anybody
    final = back.AuthenticationSasl.decode(driven.admitted.last[5:])
    assert final.stage is back.SaslStage.FINAL
    assert client.is_server(final.data)
    assert driven.protocol.phase is Phase.QUERIES


def test_the_first_message_may_come_apart_from_the_choice_and_in_pieces(gate: Gate) -> None:
    driven, client = Driven(gate), ScramClient("secret")
    for byte in startup() + initial(None):
        driven.send(bytes([byte]))
    assert driven.sent[-1] == back.AuthenticationSasl(back.SaslStage.CONTINUE, b"").encode()
    for byte in front.Password(client.first()).encode():
        driven.send(bytes([byte]))
    for byte in front.Password(client.final(driven.challenge)).encode():
        driven.send(bytes([byte]))
    assert driven.admitted is not None


def test_wrong_passwords_unknown_users_and_trust(gate: Gate) -> None:
    messages = []
    for user, password in (("ann", "wrong"), ("nobody", "secret")):
        driven, client = Driven(gate), ScramClient(password)
        driven.send(startup(user) + initial(client.first()))
        error = refused(driven, front.Password(client.final(driven.challenge)).encode())
        assert error.sqlstate == "28P01"
        messages.append(error.message.replace(user, "*"))
    assert set(messages) == {'password authentication failed for user "*"'}
    driven = Driven(gate)
    driven.send(startup("bob"))  # the second rule comes first
    assert driven.admitted is None
    driven.entrance.client = Client("127.0.0.1")
    other = Driven(gate)
    other.entrance.client = Client("127.0.0.1")
    other.send(startup("bob"))
    assert other.admitted is not None
    assert other.admitted.admission.method == "trust"
    last = Driven(gate)
    last.entrance.client = Client("127.0.0.1")
    assert refused(last, startup()).message.startswith("no pg_hba.conf entry")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (front.Query("SELECT 1").encode(), "expected SASL response, got message type 81"),
        (front.Sync().encode(), "expected SASL response, got message type 83"),
        (front.Terminate().encode(), "expected SASL response, got message type 88"),
        (startup(), "expected SASL response, got message type 0"),
        (SSL, "expected SASL response, got message type 0"),
        (b"p\0\0\x04\x01", "invalid message length"),
        (b"p\0\0\0\3", "invalid message length"),
        (b"p\x7f\xff\xff\xff", "invalid message length"),
        (initial(b"n,,n=,r=x", "SCRAM-SHA-1"), "client selected an invalid SASL authentication mechanism"),
        (initial(b"n,,n=,r=x", "SCRAM-SHA-256-PLUS"), "client selected an invalid SASL authentication mechanism"),
        (initial(b""), "malformed SCRAM message"),
        (front.Password(b"secret\0").encode(), "insufficient data left in message"),
        (front.Password(b"SCRAM-SHA-256\0\0\0\0\x01").encode(), "insufficient data left in message"),
        (front.Password(b"SCRAM-SHA-256\0\xff\xff\xff\xffx").encode(), "invalid message format"),
    ],
)
def test_anything_but_an_answer_ends_it(gate: Gate, data: bytes, message: str) -> None:
    driven = Driven(gate)
    driven.send(startup())
    error = refused(driven, data)
    assert (error.sqlstate, error.message) == ("08P01", message)


def test_encryption_is_asked_for_once_and_nothing_comes_before_it(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = Driven(gate)
    driven.send(GSS)
    driven.send(SSL)
    assert driven.sent == [back.REFUSED, back.REFUSED]
    assert refused(driven, SSL).message.startswith("unsupported frontend protocol 1234.5679")
    injected = Driven(gate)
    assert refused(injected, SSL + startup()).message == "received unencrypted data after an encryption request"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    monkeypatch.setattr(gate, "_loaded", (gate.rules, Tls(context, BINDING)))
    again = Driven(gate)
    again.send(SSL)
    assert again.sent == [back.ENCRYPTS]
    for request in (SSL, GSS):
        tunnelled = Driven(gate)
        tunnelled.send(SSL)
        assert refused(tunnelled, request).sqlstate == "0A000"
    injected = Driven(gate)
    assert refused(injected, SSL + b"\x16").message == "received unencrypted data after an encryption request"


def test_channel_binding_over_tls(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "_loaded", (gate.rules, Tls(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), BINDING)))
    client = ScramClient("secret", header="p=tls-server-end-point,,", binding=BINDING)
    driven = Driven(gate)
    driven.send(SSL)
    driven.send(startup())
    assert driven.sent[-1] == back.AuthenticationSasl.offer(("SCRAM-SHA-256-PLUS", PLAIN)).encode()
    driven.send(initial(client.first(), "SCRAM-SHA-256-PLUS"))
    driven.send(front.Password(client.final(driven.challenge)).encode())
    assert driven.admitted is not None
    downgraded = Driven(gate)
    downgraded.send(SSL)
    downgraded.send(startup())
    assert refused(downgraded, initial(b"y,,n=,r=x")).message == "SCRAM channel binding negotiation error"


def test_direct_tls_needs_alpn(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    hello = b"\x16\x03\x01\x00\x05hello"
    assert refused(Driven(gate), hello).message == "invalid length of startup packet"
    monkeypatch.setattr(gate, "_loaded", (gate.rules, Tls(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), BINDING)))
    for alpn in ("postgresql", None):
        protocol = ServerProtocol()
        entrance = Entrance(protocol, gate, Client("10.1.2.3"))
        protocol.receive(hello)
        step = entrance.advance()
        assert isinstance(step, Encrypt)
        assert (step.answer, step.early, protocol.pending) == (b"", hello, 0)
        if alpn is None:
            with pytest.raises(SqlError, match="without ALPN"):
                entrance.encrypted(TlsInfo("TLSv1.3", "x", 256), alpn)
            assert protocol.phase is Phase.ENDED
        else:
            entrance.encrypted(TlsInfo("TLSv1.3", "x", 256), alpn)
            assert protocol.phase is Phase.STARTUP


class Guesser:
    """Sends messages in any order, the right ones among them. ``knows``: it has the password."""

    def __init__(self, gate: Gate, choice: random.Random, knows: bool, replayed: bytes) -> None:
        self.driven, self.choice, self.replayed = Driven(gate), choice, replayed
        self.client = ScramClient("secret" if knows else "guess", nonce=str(choice.random()))
        self.order: list[str] = []

    def message(self, kind: str) -> bytes:
        match kind:
            case "startup":
                return startup()
            case "other":
                return startup("nobody")
            case "ssl":
                return SSL
            case "gss":
                return GSS
            case "initial":
                return initial(self.client.first())
            case "empty":
                return initial(None)
            case "plus":
                return initial(self.client.first(), "SCRAM-SHA-256-PLUS")
            case "first":
                return front.Password(self.client.first()).encode()
            case "final":
                challenge = self.driven.challenge
                return front.Password(self.client.final(challenge) if challenge else b"c=biws,r=x,p=").encode()
            case "replayed":
                return front.Password(self.replayed).encode()
            case "query":
                return front.Query("SELECT 1").encode()
            case "parse":
                return front.Parse("", "SELECT 1").encode()
            case "bind":
                return front.Bind("", "", (), (), ()).encode() + front.Execute("", 0).encode()
            case "sync":
                return front.Sync().encode()
            case "terminate":
                return front.Terminate().encode()
            case "cancel":
                return opening.CancelRequest(1, b"abcd").encode()
            case _:
                return self.choice.randbytes(self.choice.randrange(1, 12))

    def run(self, kinds: list[str], likely: tuple[str, ...]) -> bool:
        """Whether it got in."""
        while len(self.order) < 9 and self.driven.admitted is None and not self.driven.cancelled:
            right = self.choice.random() < 0.7 and len(self.order) < len(likely)
            self.order.append(likely[len(self.order)] if right else self.choice.choice(kinds))
            try:
                self.driven.send(self.message(self.order[-1]))
            except SqlError:
                assert self.driven.protocol.phase is Phase.ENDED
                return False
        return self.driven.admitted is not None


KINDS = ["startup", "other", "ssl", "gss", "initial", "empty", "plus", "first", "final", "replayed", "query", "parse",
         "bind", "sync", "terminate", "cancel", "bytes"]  # fmt: skip


@pytest.mark.parametrize("knows", [False, True])
def test_ten_thousand_orders_of_messages(gate: Gate, knows: bool) -> None:
    """Nobody gets in without the password; with it, only by the one order that there is."""
    ways = (("startup", "initial", "final"), ("startup", "empty", "first", "final"))
    seen, before = Driven(gate), ScramClient("secret")
    seen.send(startup() + initial(before.first()))
    replayed = before.final(seen.challenge)
    admitted, ends = 0, set()
    choice = random.Random(7)
    for i in range(10_000):
        guesser = Guesser(gate, choice, knows, replayed)
        way = ways[i % 2]
        if guesser.run(KINDS, way):
            admitted += 1
            proper = tuple(kind for kind in guesser.order if kind not in ("ssl", "gss"))
            assert knows
            assert proper in ways, guesser.order
        else:
            ends.add(guesser.order[-1])
        gate.delays.passed(("ann", "10.1.2.3"))
        gate.delays.passed(("nobody", "10.1.2.3"))
    assert (admitted > 1000) is knows
    assert ends == set(KINDS)


def test_every_short_order_of_messages(gate: Gate) -> None:
    """All orders of up to three messages, and of four that begin as a login does: only the right ones let in."""
    choice, tried = random.Random(3), 0
    orders = [o for n in (1, 2, 3) for o in itertools.product(KINDS, repeat=n)]
    likely = ("initial", "empty", "first", "final", "ssl", "query")
    orders += [("startup", *o) for o in itertools.product(likely, repeat=3)]
    for order in orders:
        guesser = Guesser(gate, choice, True, b"c=biws,r=x,p=")
        for kind in order:
            if guesser.driven.protocol.phase is Phase.ENDED or guesser.driven.cancelled:
                break
            guesser.order.append(kind)
            with contextlib.suppress(SqlError):
                guesser.driven.send(guesser.message(kind))
        proper = tuple(kind for kind in guesser.order if kind not in ("ssl", "gss"))
        right = proper[:3] == ("startup", "initial", "final") or proper == ("startup", "empty", "first", "final")
        assert (guesser.driven.admitted is not None) is right, order
        assert guesser.driven.protocol.pending < 500
        gate.delays.passed(("ann", "10.1.2.3"))
        gate.delays.passed(("nobody", "10.1.2.3"))
        tried += 1
    assert tried > 5000


def test_too_many_guesses_are_refused_at_once(gate: Gate) -> None:
    pauses: list[float] = []
    for _ in range(4):
        driven, client = Driven(gate), ScramClient("guess")
        driven.protocol.receive(startup() + initial(client.first()))
        while (step := driven.entrance.advance()) is not None:
            if isinstance(step, Send):
                driven.challenge = step.data[9:]
        driven.protocol.receive(front.Password(client.final(driven.challenge)).encode())
        step = driven.entrance.advance()
        assert isinstance(step, Pause)
        pauses.append(step.seconds)
        with pytest.raises(SqlError, match="password authentication failed"):
            driven.entrance.advance()
    assert pauses[0] == 0
    assert all(a < b for a, b in pairwise(pauses))
    gate.delays.passed(("ann", "10.1.2.3"))
