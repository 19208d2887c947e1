"""Packets of the startup phase: a length and a body, no type byte. ``decode`` takes what follows the length."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from sql.pgwire.messages import INT32, ProtocolError, cstring, finish, string_at

PROTOCOL_MAJOR: Final = 3
NEWEST_MINOR: Final = 2
"""Protocol 3.2, of PostgreSQL 18: keys for cancelling may be long."""
SSL_REQUEST_CODE: Final = 80877103
GSS_REQUEST_CODE: Final = 80877104
CANCEL_REQUEST_CODE: Final = 80877102


@dataclass(frozen=True, slots=True)
class EncryptionRequest:
    """Requests TLS or GSSAPI encryption before startup, by ``code``."""

    code: int

    def encode(self) -> bytes:
        return struct.pack("!ii", 8, self.code)


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Sent on its own connection: cancels the statement of the connection with this key. ``secret``: 4 to 256 bytes."""

    backend_id: int
    secret: bytes

    def encode(self) -> bytes:
        return struct.pack("!iii", 12 + len(self.secret), CANCEL_REQUEST_CODE, self.backend_id) + self.secret

    @staticmethod
    def decode(body: bytes) -> CancelRequest:
        """``body`` is what follows the request code."""
        if not 8 <= len(body) <= 260:
            raise ProtocolError("invalid length of startup packet", fatal=True)
        return CancelRequest(INT32.unpack_from(body)[0], body[4:])


@dataclass(frozen=True, slots=True)
class Startup:
    """Version (major, minor) and the parameters: user, database, options, and any setting."""

    minor: int
    parameters: tuple[tuple[str, str], ...]
    major: int = PROTOCOL_MAJOR

    def encode(self) -> bytes:
        pairs = b"".join(cstring(name) + cstring(value) for name, value in self.parameters)
        body = struct.pack("!HH", self.major, self.minor) + pairs + b"\0"
        return INT32.pack(len(body) + 4) + body

    @staticmethod
    def decode(body: bytes) -> Startup:
        """``body`` begins with the version. 0A000 for a major version that is not 3."""
        major, minor = struct.unpack_from("!HH", body)
        if major != PROTOCOL_MAJOR:
            raise unsupported_version(major, minor)
        if body[-1:] != b"\0":
            raise ProtocolError("invalid startup packet layout: expected terminator as last byte", fatal=True)
        parameters, at = [], 4
        while at < len(body) - 1:
            name, at = string_at(body, at)
            if at >= len(body):
                raise ProtocolError("invalid startup packet layout: expected terminator as last byte", fatal=True)
            value, at = string_at(body, at)
            parameters.append((name, value))
        finish(body, at + 1)
        return Startup(minor, tuple(parameters), major)


def unsupported_version(major: int, minor: int) -> ProtocolError:
    """0A000, which ends the connection."""
    message = f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{NEWEST_MINOR}"
    return ProtocolError(message, sqlstate="0A000", fatal=True)


Opening = EncryptionRequest | CancelRequest | Startup


def decode_opening(body: bytes) -> Opening:
    """Decodes a packet of the startup phase by its request code or version; ``body`` follows the length."""
    code = INT32.unpack_from(body)[0]
    if code == CANCEL_REQUEST_CODE:
        return CancelRequest.decode(body[4:])
    if code in (SSL_REQUEST_CODE, GSS_REQUEST_CODE):
        if len(body) != 4:
            raise ProtocolError("invalid length of startup packet", fatal=True)
        return EncryptionRequest(code)
    try:
        return Startup.decode(body)
    except ProtocolError as error:
        raise ProtocolError(error.message, sqlstate=error.sqlstate, fatal=True) from None
