"""The server's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS, sans-I/O (RFC 5802, RFC 7677, RFC 5929).

Own code, since the libraries refuse what libpq sends (an empty user name: PostgreSQL takes that of the start-up
message) and cannot go through an exchange that is bound to fail.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from typing import Final

from ivm.errors import SqlError
from storage.scram import KEY_LENGTH, Verifier

PLAIN: Final = "SCRAM-SHA-256"
PLUS: Final = "SCRAM-SHA-256-PLUS"
_BINDING: Final = "tls-server-end-point"
_NONCE: Final = re.compile(r"[\x21-\x2b\x2d-\x7e]*")
_MISSING: Final = "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel binding data."
_SURPLUS: Final = (
    "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel binding data."
)
_DOWNGRADED: Final = (
    "The client supports SCRAM channel binding but thinks the server does not.  "
    "However, this server does support channel binding."
)


def malformed(detail: str, message: str = "malformed SCRAM message") -> SqlError:
    """08P01, with PostgreSQL's words."""
    return SqlError("08P01", message, detail)


class ScramExchange:
    """One exchange: ``first`` answers the client's first message, ``final`` its last.

    ``doomed``: the verifier is a mock, and the exchange fails whatever is sent, after the same work. ``binding``: the
    hash of the server's certificate if the connection has TLS. Each method may be called once, in this order.
    """

    __slots__ = ("_binding", "_client_first", "_doomed", "_header", "_nonce", "_plus", "_server_first", "_verifier")

    def __init__(self, mechanism: str, verifier: Verifier, doomed: bool, binding: bytes | None) -> None:
        """Raises 08P01 for a mechanism that was not offered."""
        if mechanism not in offered(binding):
            raise SqlError("08P01", "client selected an invalid SASL authentication mechanism")
        self._plus = mechanism == PLUS
        self._verifier, self._doomed, self._binding = verifier, doomed, binding
        self._header = self._client_first = self._server_first = self._nonce = ""

    def first(self, message: bytes, nonce: bytes | None = None) -> bytes:
        """The server's first message. ``nonce``: 18 random bytes unless given. Raises 08P01, 0A000, 28000."""
        text = _text(message)
        flag, rest = self._flag(text)
        if rest.startswith("a"):
            raise SqlError("0A000", "client uses authorization identity, but it is not supported")
        if not rest.startswith(","):
            detail = f'Unexpected attribute "{_shown(rest)}" in client-first-message.'
            raise malformed(detail)
        bare = rest[1:]
        if bare.startswith("m"):
            raise SqlError("0A000", "client requires an unsupported SCRAM extension")
        _, rest = _value(bare, "n")
        client_nonce, rest = _value(rest, "r")
        if _NONCE.fullmatch(client_nonce) is None:
            raise SqlError("08P01", "non-printable characters in SCRAM nonce")
        _extensions(rest)
        own = b64encode(secrets.token_bytes(18) if nonce is None else nonce).decode()
        salt = b64encode(self._verifier.salt).decode()
        self._header, self._client_first, self._nonce = f"{flag},,", bare, client_nonce + own
        self._server_first = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        return self._server_first.encode()

    def _flag(self, text: str) -> tuple[str, str]:
        """The channel binding flag of the first message, and what follows its comma."""
        match text[:1]:
            case "n" | "y" if self._plus:
                raise malformed(_MISSING)
            case "y" if self._binding is not None:
                raise SqlError("28000", "SCRAM channel binding negotiation error", _DOWNGRADED)
            case "n" | "y":
                if text[1:2] != ",":
                    raise malformed(f'Comma expected, but found character "{_shown(text[1:])}".')
                return text[0], text[2:]
            case "p" if not self._plus:
                raise malformed(_SURPLUS)
            case "p":
                kind, rest = _value(text, "p")
                if kind != _BINDING:
                    shown = "".join(c if "!" <= c <= "~" else "?" for c in kind[:30])
                    raise SqlError("08P01", f'unsupported SCRAM channel-binding type "{shown}"')
                return f"p={_BINDING}", rest
        raise malformed(f'Unexpected channel-binding flag "{_shown(text)}".')

    def final(self, message: bytes) -> bytes | None:
        """The server's last message; None if the proof is wrong. Raises 08P01."""
        assert self._nonce, "the first message comes first"
        text = _text(message)
        binding, rest = _value(text, "c")
        expected = self._header.encode() + (self._binding or b"" if self._plus else b"")
        if not hmac.compare_digest(binding.encode(), b64encode(expected)):
            if self._plus:
                raise SqlError("28000", "SCRAM channel binding check failed")
            raise SqlError("08P01", "unexpected SCRAM channel-binding attribute in client-final-message")
        nonce, rest = _value(rest, "r")
        proof = _proof(rest)
        unproven = text[: text.rindex(",p=")]
        if not hmac.compare_digest(nonce.encode(), self._nonce.encode()):
            raise malformed("Nonce does not match.", "invalid SCRAM response")
        said = ",".join((self._client_first, self._server_first, unproven)).encode()
        self._nonce = ""
        signature = hmac.digest(self._verifier.stored_key, said, "sha256")
        key = bytes(a ^ b for a, b in zip(signature, proof, strict=True))
        right = hmac.compare_digest(hashlib.sha256(key).digest(), self._verifier.stored_key)
        answer = b"v=" + b64encode(hmac.digest(self._verifier.server_key, said, "sha256"))
        return answer if right and not self._doomed else None


def offered(binding: bytes | None) -> tuple[str, ...]:
    """The mechanisms that are offered, best first."""
    return (PLAIN,) if binding is None else (PLUS, PLAIN)


def _text(message: bytes) -> str:
    """A message as text: any bytes but zero, each a character, so that what is signed is what was sent."""
    if not message:
        raise malformed("The message is empty.")
    if b"\0" in message:
        raise malformed("Message length does not match input length.")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SqlError("08P01", "malformed SCRAM message") from None


def _value(text: str, attribute: str) -> tuple[str, str]:
    """The value of the attribute that must come next, and what follows its comma."""
    if text[:1] != attribute:
        raise malformed(f'Expected attribute "{attribute}" but found "{_shown(text)}".')
    return _assigned(text)


def _assigned(text: str) -> tuple[str, str]:
    if text[1:2] != "=":
        raise malformed(f'Expected character "=" for attribute "{text[0]}".')
    value, _, rest = text[2:].partition(",")
    return value, rest


def _extensions(text: str) -> str:
    """Skip optional attributes up to a proof; what is left."""
    while text and not text.startswith("p"):
        if not (text[0].isascii() and text[0].isalpha()):
            raise malformed(f'Attribute expected, but found invalid character "{_shown(text)}".')
        _, text = _assigned(text)
    return text


def _proof(text: str) -> bytes:
    text = _extensions(text)
    if not text:
        raise malformed("Attribute expected, but found end of string.")
    value, rest = _value(text, "p")
    try:
        proof = b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        proof = b""
    if len(proof) != KEY_LENGTH:
        raise malformed("Malformed proof in client-final-message.")
    if rest or text.endswith(","):
        raise malformed("Garbage found at the end of client-final-message.")
    return proof


def _shown(text: str) -> str:
    """The first character, for an error message."""
    if text and "!" <= text[0] <= "~":
        return f"'{text[0]}'"
    return f"0x{text[:1].encode()[0] if text else 0:02x}"
