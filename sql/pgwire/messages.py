"""The parts of every message of protocol 3: framing, limits, strings, and protocol errors.

A message is a type byte (absent at startup), an int32 length that includes itself, and a body. The messages are in
``messages_opening`` and ``messages_frontend`` (sent by clients) and ``messages_backend`` (sent by us), each with its
fields, limits, ``encode`` and ``decode`` side by side. Source: PostgreSQL's documentation, "Message Formats".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from ivm.errors import SqlError
from storage.encodings.encoding import Encoding

MAX_STARTUP_LENGTH: Final = 10_000
"""The maximum size of a startup packet in bytes; Postgres's MAX_STARTUP_PACKET_LENGTH."""
MAX_SHORT_LENGTH: Final = 10_000
"""The maximum size in bytes of a message without data (Sync, Execute, Describe …); PQ_SMALL_MESSAGE_LIMIT."""
MAX_LONG_LENGTH: Final = 0x3FFF_FFFF
"""The maximum size in bytes of a message with data (Query, Parse, Bind, CopyData …); PQ_LARGE_MESSAGE_LIMIT."""

INT16: Final = struct.Struct("!h")
UINT16: Final = struct.Struct("!H")
INT32: Final = struct.Struct("!i")
HEADER: Final = struct.Struct("!ci")


class ProtocolError(SqlError):
    """08P01 and the like: bytes that violate the protocol. ``fatal``: framing is lost and the connection ends."""

    __slots__ = ("fatal",)

    def __init__(self, message: str, *, sqlstate: str = "08P01", fatal: bool = False) -> None:
        SqlError.__init__(self, sqlstate, message)
        self.fatal = fatal


def frame(kind: bytes, body: bytes) -> bytes:
    """The message of type byte ``kind`` with this body."""
    return HEADER.pack(kind, len(body) + 4) + body


def cstring(text: str, encoding: Encoding | None = None) -> bytes:
    """A string with its terminating zero. It must contain no zero. ``encoding``: the client's; None: UTF-8."""
    raw = text.encode() if encoding is None else encoding.bytes_of(text)
    assert b"\0" not in raw, "a protocol string cannot hold a zero byte"
    return raw + b"\0"


def sized(value: bytes | None) -> bytes:
    """A value preceded by its int32 length; -1 alone for NULL."""
    return b"\xff\xff\xff\xff" if value is None else INT32.pack(len(value)) + value


def invalid_bytes(raw: bytes, start: int) -> ProtocolError:
    """Postgres's 22021 for bytes that are not UTF-8; it names the sequence at ``start``."""
    first = raw[start]
    length = 1 if not 0xC0 <= first < 0xF8 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    shown = " ".join(f"0x{byte:02x}" for byte in raw[start : start + length])
    return ProtocolError(f'invalid byte sequence for encoding "UTF8": {shown}', sqlstate="22021")


def text_of(raw: bytes) -> str:
    """Decodes UTF-8 text from the wire; 22021 if it is invalid."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise invalid_bytes(raw, error.start) from None


def string_at(body: bytes, at: int) -> tuple[str, int]:
    """The zero-terminated string at ``at``, and where it ends."""
    end = body.find(b"\0", at)
    if end < 0:
        raise ProtocolError("invalid string in message")
    return text_of(body[at:end]), end + 1


def finish(body: bytes, at: int) -> None:
    """Checks that no bytes follow the last field."""
    if at != len(body):
        raise ProtocolError("invalid message format")


def values_at(body: bytes, at: int) -> tuple[tuple[bytes | None, ...], int]:
    """The values at ``at``, a count and then for each a length (-1 for NULL) and its bytes; and where they end."""
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


class Message:
    """A message with a type byte, ``code``; ``limit``: its maximum size."""

    __slots__ = ()
    code: ClassVar[bytes]
    limit: ClassVar[int] = MAX_SHORT_LENGTH


@dataclass(frozen=True, slots=True)
class Empty(Message):
    """A message without a body."""

    def encode(self) -> bytes:
        return frame(self.code, b"")

    @classmethod
    def decode(cls, body: bytes) -> Self:
        finish(body, 0)
        return cls()


@dataclass(frozen=True, slots=True)
class Text(Message):
    """A message of one string."""

    text: str

    def encode(self) -> bytes:
        return frame(self.code, cstring(self.text))

    @classmethod
    def decode(cls, body: bytes) -> Self:
        text, at = string_at(body, 0)
        finish(body, at)
        return cls(text)


@dataclass(frozen=True, slots=True)
class Raw(Message):
    """A message whose body has no form that we know."""

    data: bytes

    def encode(self) -> bytes:
        return frame(self.code, self.data)

    @classmethod
    def decode(cls, body: bytes) -> Self:
        return cls(body)
