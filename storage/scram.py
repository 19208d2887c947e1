"""SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677), in PostgreSQL's form: all that is kept of a password."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import b64encode
from typing import Final

ITERATIONS: Final = 4096
_VERIFIER: Final = re.compile(r"SCRAM-SHA-256\$[1-9]\d*:[A-Za-z0-9+/]+={0,2}\$[A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}=")


def is_verifier(text: str) -> bool:
    """Whether a text is a verifier already, and no password."""
    return _VERIFIER.fullmatch(text) is not None


def verifier(password: str, salt: bytes | None = None, iterations: int = ITERATIONS) -> str:
    """The verifier of a password; what is one already stays. ``salt``: 16 random bytes unless given."""
    if is_verifier(password):
        return password
    salt = secrets.token_bytes(16) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    shown = ":".join(b64encode(key).decode() for key in (stored, server))
    return f"SCRAM-SHA-256${iterations}:{b64encode(salt).decode()}${shown}"
