"""Messages that clients send after startup. ``decode`` takes a body without its type and length."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar, Final

from sql.pgwire.messages import (
    INT32,
    MAX_LONG_LENGTH,
    MAX_SHORT_LENGTH,
    UINT16,
    ProtocolError,
    cstring,
    finish,
    frame,
    sized,
    string_at,
)


@dataclass(frozen=True, slots=True)
class Query:
    """The simple protocol: one or more statements as text."""

    text: str
    limit: ClassVar[int] = MAX_LONG_LENGTH

    def encode(self) -> bytes:
        return frame(b"Q", cstring(self.text))

    @staticmethod
    def decode(body: bytes) -> Query:
        text, at = string_at(body, 0)
        finish(body, at)
        return Query(text)


@dataclass(frozen=True, slots=True)
class Parse:
    """Prepares a statement. ``parameter_oids``: 0 leaves a type to be inferred; there may be fewer than parameters."""

    name: str
    text: str
    parameter_oids: tuple[int, ...] = ()
    limit: ClassVar[int] = MAX_LONG_LENGTH

    def encode(self) -> bytes:
        count = len(self.parameter_oids)
        return frame(
            b"P", cstring(self.name) + cstring(self.text) + struct.pack(f"!H{count}I", count, *self.parameter_oids)
        )

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
class Bind:
    """Creates a portal. ``formats``: none (all text), one for all, or one per parameter. A None parameter is NULL."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    parameters: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]
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
        return frame(b"B", b"".join(parts))

    @staticmethod
    def decode(body: bytes) -> Bind:
        portal, at = string_at(body, 0)
        statement, at = string_at(body, at)
        formats, at = _counted(body, at, "h", 2)
        parameters, at = _values(body, at)
        result_formats, at = _counted(body, at, "h", 2)
        finish(body, at)
        _check_formats(formats, len(parameters))
        return Bind(portal, statement, formats, parameters, result_formats)


def _values(body: bytes, at: int) -> tuple[tuple[bytes | None, ...], int]:
    """Reads Bind's parameters: a count, then for each a length (-1 for NULL) and its bytes."""
    values: list[bytes | None] = []
    try:
        count = UINT16.unpack_from(body, at)[0]
        at += 2
        for _ in range(count):
            length = INT32.unpack_from(body, at)[0]
            at += 4
            if length == -1:
                values.append(None)
                continue
            end = at + length
            if length < 0 or end > len(body):
                raise ProtocolError("insufficient data left in message")
            values.append(body[at:end])
            at = end
    except struct.error:
        raise ProtocolError("insufficient data left in message") from None
    return tuple(values), at


def _check_formats(formats: tuple[int, ...], parameters: int) -> None:
    """Postgres's check of Bind: as many formats as parameters, or one, or none."""
    if len(formats) > 1 and len(formats) != parameters:
        raise ProtocolError(f"bind message has {len(formats)} parameter formats but {parameters} parameters")


@dataclass(frozen=True, slots=True)
class Describe:
    """Asks for the shape of a statement (``kind`` "S") or a portal ("P")."""

    kind: str
    name: str
    limit: ClassVar[int] = MAX_SHORT_LENGTH

    def encode(self) -> bytes:
        return frame(b"D", self.kind.encode() + cstring(self.name))

    @staticmethod
    def decode(body: bytes) -> Describe:
        return Describe(*_kind_and_name(body, "DESCRIBE"))


@dataclass(frozen=True, slots=True)
class Close:
    """Closes a prepared statement (``kind`` "S") or a portal ("P"). One that does not exist is not an error."""

    kind: str
    name: str
    limit: ClassVar[int] = MAX_SHORT_LENGTH

    def encode(self) -> bytes:
        return frame(b"C", self.kind.encode() + cstring(self.name))

    @staticmethod
    def decode(body: bytes) -> Close:
        return Close(*_kind_and_name(body, "CLOSE"))


def _kind_and_name(body: bytes, message: str) -> tuple[str, str]:
    """The body of Describe and Close."""
    if body[:1] not in (b"S", b"P"):
        shown = body[0] if body else -1
        raise ProtocolError(f"invalid {message} message subtype {shown}")
    name, at = string_at(body, 1)
    finish(body, at)
    return chr(body[0]), name


@dataclass(frozen=True, slots=True)
class Execute:
    """Runs a portal. ``max_rows`` <= 0: all rows."""

    portal: str
    max_rows: int
    limit: ClassVar[int] = MAX_SHORT_LENGTH

    def encode(self) -> bytes:
        return frame(b"E", cstring(self.portal) + INT32.pack(self.max_rows))

    @staticmethod
    def decode(body: bytes) -> Execute:
        portal, at = string_at(body, 0)
        if len(body) < at + 4:
            raise ProtocolError("insufficient data left in message")
        finish(body, at + 4)
        return Execute(portal, INT32.unpack_from(body, at)[0])


@dataclass(frozen=True, slots=True)
class Sync:
    """Ends a pipeline: commits its implicit transaction, and ends the skipping after an error."""

    limit: ClassVar[int] = MAX_SHORT_LENGTH

    def encode(self) -> bytes:
        return b"S\0\0\0\4"

    @staticmethod
    def decode(body: bytes) -> Sync:
        finish(body, 0)
        return Sync()


@dataclass(frozen=True, slots=True)
class Flush:
    """Requests the answers so far."""

    limit: ClassVar[int] = MAX_SHORT_LENGTH

    def encode(self) -> bytes:
        return b"H\0\0\0\4"

    @staticmethod
    def decode(body: bytes) -> Flush:
        finish(body, 0)
        return Flush()


@dataclass(frozen=True, slots=True)
class Terminate:
    """Ends the connection."""

    limit: ClassVar[int] = MAX_SHORT_LENGTH

    def encode(self) -> bytes:
        return b"X\0\0\0\4"

    @staticmethod
    def decode(body: bytes) -> Terminate:
        return Terminate()


@dataclass(frozen=True, slots=True)
class CopyData:
    """A chunk of a COPY's data, cut anywhere. The same in both directions."""

    data: bytes
    limit: ClassVar[int] = MAX_LONG_LENGTH

    def encode(self) -> bytes:
        return frame(b"d", self.data)

    @staticmethod
    def decode(body: bytes) -> CopyData:
        return CopyData(body)


@dataclass(frozen=True, slots=True)
class CopyDone:
    """The end of a COPY's data."""

    limit: ClassVar[int] = MAX_SHORT_LENGTH

    def encode(self) -> bytes:
        return b"c\0\0\0\4"

    @staticmethod
    def decode(body: bytes) -> CopyDone:
        finish(body, 0)
        return CopyDone()


@dataclass(frozen=True, slots=True)
class CopyFail:
    """The client aborts a COPY, with a reason."""

    message: str
    limit: ClassVar[int] = MAX_SHORT_LENGTH

    def encode(self) -> bytes:
        return frame(b"f", cstring(self.message))

    @staticmethod
    def decode(body: bytes) -> CopyFail:
        message, at = string_at(body, 0)
        finish(body, at)
        return CopyFail(message)


@dataclass(frozen=True, slots=True)
class Password:
    """An answer to an authentication request; its form depends on the request."""

    data: bytes
    limit: ClassVar[int] = 65_535

    def encode(self) -> bytes:
        return frame(b"p", self.data)

    @staticmethod
    def decode(body: bytes) -> Password:
        return Password(body)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The fast-path function call: parsed, but answered with 0A000."""

    body: bytes
    limit: ClassVar[int] = MAX_LONG_LENGTH

    def encode(self) -> bytes:
        return frame(b"F", self.body)

    @staticmethod
    def decode(body: bytes) -> FunctionCall:
        return FunctionCall(body)


Frontend = (
    Query | Parse | Bind | Describe | Close | Execute | Sync | Flush | Terminate
    | CopyData | CopyDone | CopyFail | Password | FunctionCall
)  # fmt: skip

FRONTEND: Final[dict[int, type[Frontend]]] = {
    ord("Q"): Query,
    ord("P"): Parse,
    ord("B"): Bind,
    ord("D"): Describe,
    ord("C"): Close,
    ord("E"): Execute,
    ord("S"): Sync,
    ord("H"): Flush,
    ord("X"): Terminate,
    ord("d"): CopyData,
    ord("c"): CopyDone,
    ord("f"): CopyFail,
    ord("p"): Password,
    ord("F"): FunctionCall,
}
"""The message types after startup, by type byte."""
