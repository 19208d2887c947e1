"""Messages that the server sends, each with ``encode`` and (for tests and clients of our own) ``decode`` of a body."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from operator import add
from typing import Final

from ivm.errors import SqlError, Subject
from sql.pgwire.messages import (
    INT16,
    INT32,
    UINT16,
    ProtocolError,
    Text,
    cstring,
    finish,
    frame,
    sized,
    string_at,
    values_at,
)
from storage.encodings.encoding import Encoding

AUTHENTICATION_OK: Final = b"R\0\0\0\x08\0\0\0\0"
PARSE_COMPLETE: Final = b"1\0\0\0\4"
BIND_COMPLETE: Final = b"2\0\0\0\4"
CLOSE_COMPLETE: Final = b"3\0\0\0\4"
NO_DATA: Final = b"n\0\0\0\4"
EMPTY_QUERY: Final = b"I\0\0\0\4"
PORTAL_SUSPENDED: Final = b"s\0\0\0\4"
COPY_DONE: Final = b"c\0\0\0\4"
READY: Final = {status: b"Z\0\0\0\5" + status.encode() for status in "ITE"}
"""ReadyForQuery by transaction status."""
REFUSED: Final = b"N"
"""The one-byte answer to SSLRequest and GSSENCRequest."""
ENCRYPTS: Final = b"S"
"""The one-byte answer to SSLRequest before the TLS handshake."""

_ATTRIBUTES: Final = struct.Struct("!IhIhih")
FORMAT_BYTES: Final = 2
"""Of a field's description, the last."""


class SaslStage(Enum):
    """The authentication requests of SASL, by number."""

    OFFER = 10
    CONTINUE = 11
    FINAL = 12


@dataclass(frozen=True, slots=True)
class AuthenticationSasl:
    """The mechanisms offered (each with a zero, and one more at the end), or a mechanism's own message."""

    stage: SaslStage
    data: bytes

    @staticmethod
    def offer(mechanisms: Sequence[str]) -> AuthenticationSasl:
        """The request that opens the exchange, best mechanism first."""
        return AuthenticationSasl(SaslStage.OFFER, b"".join(map(cstring, mechanisms)) + b"\0")

    def encode(self) -> bytes:
        return frame(b"R", INT32.pack(self.stage.value) + self.data)

    @staticmethod
    def decode(body: bytes) -> AuthenticationSasl:
        return AuthenticationSasl(SaslStage(INT32.unpack_from(body)[0]), body[4:])


@dataclass(frozen=True, slots=True)
class NegotiateProtocolVersion:
    """The newest minor version that we support, and the ``_pq_.`` options that we do not."""

    minor: int
    options: tuple[str, ...]

    def encode(self) -> bytes:
        names = b"".join(cstring(option) for option in self.options)
        return frame(b"v", struct.pack("!ii", 3 << 16 | self.minor, len(self.options)) + names)

    @staticmethod
    def decode(body: bytes) -> NegotiateProtocolVersion:
        version, count = struct.unpack_from("!ii", body)
        options, at = [], 8
        for _ in range(count):
            option, at = string_at(body, at)
            options.append(option)
        finish(body, at)
        return NegotiateProtocolVersion(version & 0xFFFF, tuple(options))


@dataclass(frozen=True, slots=True)
class NotificationResponse:
    """A notification by another session, the backend ``sender``, on a channel that the client listens to."""

    sender: int
    channel: str
    payload: str

    def encode(self, encoding: Encoding | None = None) -> bytes:
        strings = cstring(self.channel, encoding) + cstring(self.payload, encoding)
        return frame(b"A", INT32.pack(self.sender) + strings)

    @staticmethod
    def decode(body: bytes) -> NotificationResponse:
        (sender,) = INT32.unpack_from(body)
        channel, at = string_at(body, 4)
        payload, at = string_at(body, at)
        finish(body, at)
        return NotificationResponse(sender, channel, payload)


@dataclass(frozen=True, slots=True)
class ParameterStatus:
    """The value of a reported setting."""

    name: str
    value: str

    def encode(self, encoding: Encoding | None = None) -> bytes:
        return frame(b"S", cstring(self.name, encoding) + cstring(self.value, encoding))

    @staticmethod
    def decode(body: bytes) -> ParameterStatus:
        name, at = string_at(body, 0)
        value, at = string_at(body, at)
        finish(body, at)
        return ParameterStatus(name, value)


@dataclass(frozen=True, slots=True)
class BackendKeyData:
    """The key by which a CancelRequest identifies this connection."""

    backend_id: int
    secret: bytes

    def encode(self) -> bytes:
        return frame(b"K", INT32.pack(self.backend_id) + self.secret)

    @staticmethod
    def decode(body: bytes) -> BackendKeyData:
        return BackendKeyData(INT32.unpack_from(body)[0], body[4:])


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """One column of a RowDescription. ``table`` and ``attribute`` are 0 unless it is a plain column of a table."""

    name: str
    table: int
    attribute: int
    type_oid: int
    type_size: int
    type_modifier: int
    format: int

    def encode(self, encoding: Encoding | None = None) -> bytes:
        """Its bytes in the message, which end with the format."""
        return cstring(self.name, encoding) + _ATTRIBUTES.pack(
            self.table, self.attribute, self.type_oid, self.type_size, self.type_modifier, self.format
        )


@dataclass(frozen=True, slots=True)
class RowDescription:
    """The columns of the rows that follow."""

    fields: tuple[FieldDescription, ...]

    def encode(self, encoding: Encoding | None = None) -> bytes:
        parts = [field.encode(encoding) for field in self.fields]
        return frame(b"T", b"".join((UINT16.pack(len(parts)), *parts)))

    @staticmethod
    def decode(body: bytes) -> RowDescription:
        fields, at = [], 2
        for _ in range(UINT16.unpack_from(body)[0]):
            name, at = string_at(body, at)
            fields.append(FieldDescription(name, *_ATTRIBUTES.unpack_from(body, at)))
            at += _ATTRIBUTES.size
        finish(body, at)
        return RowDescription(tuple(fields))


def row_description(fields: Sequence[bytes], formats: Sequence[int]) -> bytes:
    """A RowDescription of fields that are encoded but for their formats."""
    ends = [UINT16.pack(form) for form in formats]
    return frame(b"T", UINT16.pack(len(fields)) + b"".join(map(add, fields, ends)))


@dataclass(frozen=True, slots=True)
class DataRow:
    """One row. The listener sends rows encoded in bulk by ``values.encode_rows``; this defines their format."""

    values: tuple[bytes | None, ...]

    def encode(self) -> bytes:
        return frame(b"D", UINT16.pack(len(self.values)) + b"".join(map(sized, self.values)))

    @staticmethod
    def decode(body: bytes) -> DataRow:
        values, at = values_at(body, 0)
        finish(body, at)
        return DataRow(values)


@dataclass(frozen=True, slots=True)
class ParameterDescription:
    """The types of a prepared statement's parameters."""

    oids: tuple[int, ...]

    def encode(self) -> bytes:
        return frame(b"t", struct.pack(f"!H{len(self.oids)}I", len(self.oids), *self.oids))

    @staticmethod
    def decode(body: bytes) -> ParameterDescription:
        count = UINT16.unpack_from(body)[0]
        finish(body, 2 + 4 * count)
        return ParameterDescription(struct.unpack_from(f"!{count}I", body, 2))


class CommandComplete(Text):
    """The end of a statement, with its tag ("SELECT 3")."""

    code = b"C"


@dataclass(frozen=True, slots=True)
class CopyResponse:
    """The start of a COPY: ``direction`` "G" (in), "H" (out); ``format`` 0 text, 1 binary, for all ``columns``."""

    direction: str
    format: int
    columns: int

    def encode(self) -> bytes:
        body = struct.pack("!bh", self.format, self.columns) + INT16.pack(self.format) * self.columns
        return frame(self.direction.encode(), body)

    @staticmethod
    def decode(direction: str, body: bytes) -> CopyResponse:
        form, columns = struct.unpack_from("!bh", body)
        finish(body, 3 + 2 * columns)
        return CopyResponse(direction, form, columns)


_ROUTINES: Final = {
    re.compile("cached plan must not change result type"): "RevalidateCachedQuery",
    re.compile('column ".*" is of type .* but expression is of type '): "transformAssignedExpr",
}
"""Where PostgreSQL raises what clients know by that: pgjdbc, asyncpg and postgres.js then prepare anew."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """ErrorResponse (``kind`` "E") or NoticeResponse ("N"); ``position``: characters from 1 into the statement, or into
    ``query``, a statement inside of it."""

    kind: str
    severity: str
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: int | None = None
    subject: Subject | None = None
    context: str | None = None
    query: str | None = None

    @staticmethod
    def of(severity: str, error: SqlError) -> Diagnostic:
        """The ErrorResponse for an error."""
        return Diagnostic(
            "E", severity, error.sqlstate, error.message, error.detail, error.hint, error.position, error.subject,
            error.context, error.query,
        )  # fmt: skip

    def encode(self, encoding: Encoding | None = None) -> bytes:
        """In a client's encoding. What that lacks is reported instead of an error (22P05); a notice raises it."""
        position = None if self.position is None else str(self.position)
        routine = next((name for text, name in _ROUTINES.items() if text.match(self.message)), None)
        fields = [
            ("S", self.severity), ("V", self.severity), ("C", self.sqlstate), ("M", self.message),
            ("D", self.detail), ("H", self.hint), ("P" if self.query is None else "p", position), ("q", self.query),
            ("W", self.context), ("R", routine),
        ]  # fmt: skip
        if (on := self.subject) is not None:
            fields += [("s", on.schema), ("t", on.table), ("c", on.column), ("n", on.constraint)]
        told = [(code.encode(), value.replace("\0", "")) for code, value in fields if value is not None]
        try:
            body = b"".join([code + cstring(value, encoding) for code, value in told])
        except SqlError as error:
            if self.kind == "N":
                raise
            return Diagnostic.of(self.severity, error).encode()
        return frame(self.kind.encode(), body + b"\0")

    @staticmethod
    def decode(kind: str, body: bytes) -> Diagnostic:
        fields, at = {}, 0
        while body[at : at + 1] != b"\0":
            if at >= len(body):
                raise ProtocolError("insufficient data left in message")
            code = chr(body[at])
            fields[code], at = string_at(body, at + 1)
        position = fields.get("P", fields.get("p"))
        subject = Subject(fields["s"], fields["t"], fields.get("c"), fields.get("n")) if "t" in fields else None
        return Diagnostic(
            kind, fields["V"], fields["C"], fields["M"], fields.get("D"), fields.get("H"),
            None if position is None else int(position), subject, fields.get("W"), fields.get("q"),
        )  # fmt: skip
