"""The client's side of SCRAM-SHA-256, written from RFC 5802 alone, for tests of the server's."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode


class ScramClient:
    """``header``: the GS2 header; ``binding``: what channel binding binds to; ``name``: left out as libpq does."""

    def __init__(
        self, password: str, nonce: str = "client", header: str = "n,,", binding: bytes = b"", name: str = ""
    ) -> None:
        self.password, self.nonce, self.header, self.binding = password, nonce, header, binding
        self.bare = f"n={name},r={nonce}"
        self.server_signature = b""

    def first(self) -> bytes:
        return (self.header + self.bare).encode()

    def final(self, server_first: bytes) -> bytes:
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        assert fields["r"].startswith(self.nonce)
        salted = hashlib.pbkdf2_hmac("sha256", self.password.encode(), b64decode(fields["s"]), int(fields["i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        bound = b64encode(self.header.encode() + self.binding).decode()
        unproven = f"c={bound},r={fields['r']}"
        said = ",".join((self.bare, server_first.decode(), unproven)).encode()
        signature = hmac.digest(hashlib.sha256(key).digest(), said, "sha256")
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        self.server_signature = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), said, "sha256")
        return f"{unproven},p={b64encode(proof).decode()}".encode()

    def is_server(self, server_final: bytes) -> bool:
        return server_final == b"v=" + b64encode(self.server_signature)
