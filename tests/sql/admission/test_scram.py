"""SCRAM-SHA-256: the RFC's example, every way to get it wrong, and passwords that are not ASCII."""

from __future__ import annotations

import contextlib
import string
from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.errors import SqlError
from sql.admission.scram import PLAIN, PLUS, ScramExchange, offered
from storage.scram import Verifier, is_verifier, mock_verifier, parse_verifier, prepared, verifier
from tests.support.scram_client import ScramClient

BINDING = b"the certificate's hash"
BOUND = "p=tls-server-end-point,,"


def known(password: str) -> Verifier:
    found = parse_verifier(verifier(password))
    assert found is not None
    return found


def exchange(mechanism: str = PLAIN, binding: bytes | None = None, doomed: bool = False) -> ScramExchange:
    return ScramExchange(mechanism, known("secret"), doomed, binding)


def answer(server: ScramExchange, client: ScramClient) -> bytes | None:
    return server.final(client.final(server.first(client.first())))


def test_the_example_of_rfc_7677() -> None:
    known = parse_verifier(verifier("pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096))
    assert known is not None
    server = ScramExchange(PLAIN, known, False, None)
    nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    first = server.first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first.startswith(b"r=rOprNGfwEbeRWgbNEkqO")
    assert first.endswith(b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    server._nonce = "rOprNGfwEbeRWgbNEkqO" + nonce  # the example's own, which is not in base 64
    server._server_first = f"r={server._nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    last = f"c=biws,r={server._nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert server.final(last.encode()) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize(
    ("mechanism", "header", "binding"), [(PLAIN, "n,,", None), (PLAIN, "n,,", BINDING), (PLAIN, "y,,", None)]
)
def test_the_right_password_is_answered_with_the_servers_signature(
    mechanism: str, header: str, binding: bytes | None
) -> None:
    client = ScramClient("secret", header=header)
    said = answer(exchange(mechanism, binding), client)
    assert said is not None
    assert client.is_server(said)


def test_channel_binding() -> None:
    assert offered(BINDING) == (PLUS, PLAIN)
    assert offered(None) == (PLAIN,)
    client = ScramClient("secret", header=BOUND, binding=BINDING)
    said = answer(exchange(PLUS, BINDING), client)
    assert said is not None
    assert client.is_server(said)
    with pytest.raises(SqlError, match="channel binding check failed"):
        answer(exchange(PLUS, BINDING), ScramClient("secret", header=BOUND, binding=b"of somebody in between"))
    with pytest.raises(SqlError) as raised:  # somebody in between has taken PLUS out of the list
        exchange(PLAIN, BINDING).first(b"y,,n=,r=x")
    assert (raised.value.sqlstate, raised.value.message) == ("28000", "SCRAM channel binding negotiation error")
    with pytest.raises(SqlError, match="invalid SASL authentication mechanism"):
        exchange(PLUS, None)


def test_a_wrong_password_or_a_mock_gets_no_answer() -> None:
    assert answer(exchange(), ScramClient("Secret")) is None
    assert answer(exchange(doomed=True), ScramClient("secret")) is None
    mock = ScramExchange(PLAIN, mock_verifier("nobody", b"s"), False, None)
    assert answer(mock, ScramClient("secret")) is None


def test_a_mock_is_the_same_each_time_and_another_for_each_name_and_server() -> None:
    salts = {mock_verifier(name, secret).salt for name in ("ann", "bob") for secret in (b"a", b"b") for _ in range(3)}
    assert len(salts) == 4
    assert {len(salt) for salt in salts} == {len(known("x").salt)}


@pytest.mark.parametrize(
    ("message", "state", "said"),
    [
        (b"", "08P01", "The message is empty."),
        (b"n,,n=,r=x\0", "08P01", "Message length does not match input length."),
        (b"x,,n=,r=x", "08P01", "Unexpected channel-binding flag \"'x'\"."),
        (b"nx,n=,r=x", "08P01", "Comma expected, but found character \"'x'\"."),
        (b"n,a=me,n=,r=x", "0A000", None),
        (b"n,x,n=,r=x", "08P01", "Unexpected attribute \"'x'\" in client-first-message."),
        (b"n,,m=x,n=,r=x", "0A000", None),
        (b"n,,r=x", "08P01", 'Expected attribute "n" but found "\'r\'".'),
        (b"n,,n=,r", "08P01", 'Expected character "=" for attribute "r".'),
        (b"n,,n=,r=x\x01", "08P01", None),
        (b"n,,n=,r=x,1=", "08P01", "Attribute expected, but found invalid character \"'1'\"."),
        (b"p=tls-server-end-point,,n=,r=x", "08P01", None),
        (b"\xff\xfe", "08P01", None),
    ],
)
def test_a_malformed_first_message(message: bytes, state: str, said: str | None) -> None:
    with pytest.raises(SqlError) as raised:
        exchange().first(message)
    assert raised.value.sqlstate == state
    assert said is None or raised.value.detail == said


@pytest.mark.parametrize("flag", ["n,,", "y,,", "p=tls-unique,,"])
def test_plus_needs_the_right_binding(flag: str) -> None:
    with pytest.raises(SqlError) as raised:
        exchange(PLUS, BINDING).first(f"{flag}n=,r=x".encode())
    assert raised.value.sqlstate == "08P01"


def test_a_malformed_last_message() -> None:
    def last(change: tuple[bytes, bytes]) -> bytes | None:
        server, client = exchange(), ScramClient("secret")
        right = client.final(server.first(client.first()))
        assert change[0] in right
        return server.final(right.replace(*change, 1))

    proof = b",p="
    for change in (
        (b"c=biws", b"c=eSws"), (b"c=", b"d="), (b",r=client", b",r=clienT"), (proof, b",q="), (proof, b",p=x"),
        (proof, b",p"), (b"r=", b"r"),
    ):  # fmt: skip
        with pytest.raises(SqlError) as raised:
            last(change)
        assert raised.value.sqlstate == "08P01"
    for end in (b",", b",x=1", b"="):
        server, client = exchange(), ScramClient("secret")
        right = client.final(server.first(client.first()))
        with pytest.raises(SqlError):
            server.final(right + end)


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_with_an_error(data: bytes) -> None:
    for way in (lambda: exchange().first(data), lambda: _after_first().final(data)):
        with contextlib.suppress(SqlError):
            assert way() is None or data.startswith((b"n,", b"y,"))


def _after_first() -> ScramExchange:
    server = exchange()
    server.first(b"n,,n=,r=x")
    return server


def test_verifiers_are_told_from_passwords() -> None:
    made = verifier("x")
    assert is_verifier(made)
    assert verifier(made) == made
    salt = b64encode(b"salt").decode()
    key = b64encode(bytes(32)).decode()
    assert is_verifier(f"SCRAM-SHA-256$1:{salt}${key}:{key}")
    for bad in (f"SCRAM-SHA-256$0:{salt}${key}:{key}", f"SCRAM-SHA-256$1:{salt}a${key}:{key}", made[:-1], "md5"):
        assert not is_verifier(bad)


@pytest.mark.parametrize(
    ("password", "hashed"),
    [
        ("I\u00adX", "IX"), ("user", "user"), ("\u00aa", "a"), ("\u2168", "IX"), ("\u0007\u00aa", "\u0007\u00aa"),
        ("\u06271", "\u06271"), ("a\u3000b\u00e9", "a b\u00e9"), ("\u00ad", "\u00ad"), ("e\u0301", "\u00e9"),
        ("\u0221", "\u0221"),
    ],
)  # fmt: skip
def test_passwords_are_prepared_as_in_postgresql(password: str, hashed: str) -> None:
    """The examples of RFC 4013; what the profile prohibits is taken as it is."""
    assert prepared(password) == hashed


@given(st.text(string.printable, max_size=20))
def test_ascii_stays(password: str) -> None:
    assert prepared(password) == password
