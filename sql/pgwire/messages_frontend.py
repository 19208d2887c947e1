"""Messages that clients send after startup. ``decode`` takes a body without its type and length."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar, Final, Self, get_args

from sql.pgwire.messages import (
    INT32,
    MAX_LONG_LENGTH,
    UINT16,
    Empty,
    Message,
    ProtocolError,
    Raw,
    Text,
    cstring,
    finish,
    frame,
    sized,
    string_at,
    values_at,
)


class Query(Text):
    """The simple protocol: one or more statements as text."""

    code = b"Q"
    limit = MAX_LONG_LENGTH


@dataclass(frozen=True, slots=True)
class Parse(Message):
    """Prepares a statement. ``parameter_oids``: 0 leaves a type to be inferred; there may be fewer than parameters."""

    name: str
    text: str
    parameter_oids: tuple[int, ...] = ()
    code: ClassVar[bytes] = b"P"
    limit: ClassVar[int] = MAX_LONG_LENGTH

    def encode(self) -> bytes:
        count = len(self.parameter_oids)
        oids = struct.pack(f"!H{count}I", count, *self.parameter_oids)
        return frame(self.code, cstring(self.name) + cstring(self.text) + oids)

    @staticmethod
    def decode(body: bytes) -> Parse:
        name, at = string_at(body, 0)
        text, at = string_at(body, at)
        oids, at = _counted(body, at, "I", 4)
        finish(body, at)
        return Parse(name, text, oids)


def _counted(body: bytes, at: int, code: str, size: int) -> tuple[tuple[int, ...], int]:
    """Reads an int16 count and as many integers of ``size`` bytes. Returns them and where they end."""
    try:
        count: int = UINT16.unpack_from(body, at)[0]
        if not count:
            return (), at + 2
        return struct.unpack_from(f"!{count}{code}", body, at + 2), at + 2 + size * count
    except struct.error:
        raise ProtocolError("insufficient data left in message") from None


@dataclass(frozen=True, slots=True)
class Bind(Message):
    """Creates a portal. ``formats``: none (all text), one for all, or one per parameter. A None parameter is NULL."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    parameters: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]
    code: ClassVar[bytes] = b"B"
    limit: ClassVar[int] = MAX_LONG_LENGTH

    def encode(self) -> bytes:
        parts = [
            cstring(self.portal),
            cstring(self.statement),
            struct.pack(f"!H{len(self.formats)}h", len(self.formats), *self.formats),
            UINT16.pack(len(self.parameters)),
            *map(sized, self.parameters),
            struct.pack(f"!H{len(self.result_formats)}h", len(self.result_formats), *self.result_formats),
        ]
        return frame(self.code, b"".join(parts))

    @staticmethod
    def decode(body: bytes) -> Bind:
        portal, at = string_at(body, 0)
        statement, at = string_at(body, at)
        formats, at = _counted(body, at, "h", 2)
        parameters, at = values_at(body, at)
        result_formats, at = _counted(body, at, "h", 2)
        finish(body, at)
        if len(formats) > 1 and len(formats) != len(parameters):
            message = f"bind message has {len(formats)} parameter formats but {len(parameters)} parameters"
            raise ProtocolError(message)
        return Bind(portal, statement, formats, parameters, result_formats)


@dataclass(frozen=True, slots=True)
class _Target(Message):
    """A prepared statement (``kind`` "S") or a portal ("P")."""

    kind: str
    name: str

    def encode(self) -> bytes:
        return frame(self.code, self.kind.encode() + cstring(self.name))

    @classmethod
    def decode(cls, body: bytes) -> Self:
        if body[:1] not in (b"S", b"P"):
            shown = body[0] if body else -1
            raise ProtocolError(f"invalid {cls.__name__.upper()} message subtype {shown}")
        name, at = string_at(body, 1)
        finish(body, at)
        return cls(chr(body[0]), name)


class Describe(_Target):
    """Asks for the shape of a statement or a portal."""

    code = b"D"


class Close(_Target):
    """Closes a prepared statement or a portal. One that does not exist is not an error."""

    code = b"C"


@dataclass(frozen=True, slots=True)
class Execute(Message):
    """Runs a portal. ``max_rows`` <= 0: all rows."""

    portal: str
    max_rows: int
    code: ClassVar[bytes] = b"E"

    def encode(self) -> bytes:
        return frame(self.code, cstring(self.portal) + INT32.pack(self.max_rows))

    @staticmethod
    def decode(body: bytes) -> Execute:
        portal, at = string_at(body, 0)
        if len(body) < at + 4:
            raise ProtocolError("insufficient data left in message")
        finish(body, at + 4)
        return Execute(portal, INT32.unpack_from(body, at)[0])


class Sync(Empty):
    """Ends a pipeline: commits its implicit transaction, and ends the skipping after an error."""

    code = b"S"


class Flush(Empty):
    """Requests the answers so far."""

    code = b"H"


class Terminate(Empty):
    """Ends the connection."""

    code = b"X"

    @classmethod
    def decode(cls, body: bytes) -> Self:
        return cls()


class CopyData(Raw):
    """A chunk of a COPY's data, cut anywhere. The same in both directions."""

    code = b"d"
    limit = MAX_LONG_LENGTH


class CopyDone(Empty):
    """The end of a COPY's data."""

    code = b"c"


class CopyFail(Text):
    """The client aborts a COPY, with a reason."""

    code = b"f"


class Password(Raw):
    """An answer to an authentication request; its form depends on the request."""

    code = b"p"
    limit = 1024
    """Postgres's PG_MAX_SASL_MESSAGE_LENGTH: SASL is all that is asked for."""


@dataclass(frozen=True, slots=True)
class SaslInitial:
    """The body of the first answer to SASL: the mechanism that the client chose, and its message if it has one yet."""

    mechanism: str
    data: bytes | None

    def encode(self) -> bytes:
        return frame(Password.code, cstring(self.mechanism) + sized(self.data))

    @staticmethod
    def decode(body: bytes) -> SaslInitial:
        mechanism, at = string_at(body, 0)
        if len(body) < at + 4:
            raise ProtocolError("insufficient data left in message")
        length = INT32.unpack_from(body, at)[0]
        end = at + 4 + max(length, 0)
        if length < -1 or end > len(body):
            raise ProtocolError("insufficient data left in message")
        finish(body, end)
        return SaslInitial(mechanism, None if length == -1 else body[at + 4 : end])


class FunctionCall(Raw):
    """The fast-path function call: parsed, but answered with 0A000."""

    code = b"F"
    limit = MAX_LONG_LENGTH


Frontend = (
    Query | Parse | Bind | Describe | Close | Execute | Sync | Flush | Terminate
    | CopyData | CopyDone | CopyFail | Password | FunctionCall
)  # fmt: skip

FRONTEND: Final[dict[int, type[Frontend]]] = {message.code[0]: message for message in get_args(Frontend)}
"""The message types after startup, by type byte."""
