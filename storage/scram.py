"""SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677), in PostgreSQL's form: all that is kept of a password."""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Final

ITERATIONS: Final = 4096
KEY_LENGTH: Final = 32
SALT_LENGTH: Final = 16
_VERIFIER: Final = re.compile(
    r"SCRAM-SHA-256\$([1-9]\d{0,8}):([A-Za-z0-9+/]+={0,2})\$([A-Za-z0-9+/]{43}=):([A-Za-z0-9+/]{43}=)"
)
_PROHIBITED: Final = (
    stringprep.in_table_a1, stringprep.in_table_c21_c22, stringprep.in_table_c3, stringprep.in_table_c4,
    stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7, stringprep.in_table_c8,
    stringprep.in_table_c9,
)  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Verifier:
    """The fields of a verifier. Not shown: with ``server_key`` a server can be impersonated."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes


def parse_verifier(text: str) -> Verifier | None:
    """The fields of a verifier; None for a text that is none."""
    found = _VERIFIER.fullmatch(text)
    if found is None:
        return None
    try:
        salt, stored, server = (b64decode(part, validate=True) for part in found.groups()[1:])
    except binascii.Error:
        return None
    return Verifier(int(found[1]), salt, stored, server)


def is_verifier(text: str) -> bool:
    """Whether a text is a verifier already, and no password."""
    return parse_verifier(text) is not None


def verifier(password: str, salt: bytes | None = None, iterations: int = ITERATIONS) -> str:
    """The verifier of a password; what is one already stays. ``salt``: 16 random bytes unless given."""
    if is_verifier(password):
        return password
    salt = secrets.token_bytes(SALT_LENGTH) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password).encode(), salt, iterations)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    shown = ":".join(b64encode(key).decode() for key in (stored, server))
    return f"SCRAM-SHA-256${iterations}:{b64encode(salt).decode()}${shown}"


def mock_verifier(name: str, secret: bytes) -> Verifier:
    """What is shown of a role that has no password or does not exist: always the same salt for a name, which nobody can
    tell from a real one without the server's ``secret``. No proof fits its keys."""
    salt = hmac.digest(secret, b"mock salt " + name.encode(errors="surrogateescape"), "sha256")[:SALT_LENGTH]
    return Verifier(ITERATIONS, salt, secrets.token_bytes(KEY_LENGTH), secrets.token_bytes(KEY_LENGTH))


def prepared(password: str) -> str:
    """The form of a password that is hashed (SASLprep, RFC 4013), as in PostgreSQL: a password that the profile
    prohibits is taken as it is."""
    if password.isascii():
        return password
    spaced = [" " if stringprep.in_table_c12(c) else c for c in password]
    mapped = [c for c in spaced if not stringprep.in_table_b1(c)]
    if not mapped or any(prohibited(c) for c in mapped for prohibited in _PROHIBITED):
        return password
    right_to_left = [stringprep.in_table_d1(c) for c in mapped]
    if any(right_to_left):
        mixed = any(stringprep.in_table_d2(c) for c in mapped)
        if mixed or not (right_to_left[0] and right_to_left[-1]):
            return password
    return unicodedata.normalize("NFKC", "".join(mapped))
