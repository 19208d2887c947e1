"""COPY's binary format, in and out: a header, then tuples laid out as a DataRow's body, then a count of -1."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

from ivm.errors import SqlError, unsupported
from ivm.rows import RowSet, Vector
from sql.catalog.catalog import TableColumn
from sql.pgwire.binary import decode_binary
from sql.pgwire.copy_out import CopyRows
from sql.pgwire.values import BINARY_FORMAT, decode_words, encode_rows
from storage.dictionary import Dictionary
from storage.types import codec
from storage.types.text_style import DEFAULT_STYLE, TextStyle

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
HEADER: Final = SIGNATURE + bytes(8)
"""The signature, no flags, and an empty header extension."""
TRAILER: Final = b"\xff\xff"
BLOCK: Final = 1 << 20
"""The minimum number of bytes worth a call of ``parse``."""
_HAS_OIDS: Final = 1 << 16
_COUNT: Final = struct.Struct("!h")
_LENGTH: Final = struct.Struct("!i")
_MESSAGE_HEAD: Final = 5


def format_binary(rowset: RowSet, dictionary: Dictionary, style: TextStyle = DEFAULT_STYLE) -> CopyRows:
    """The rows as tuples, without header and trailer: DataRow messages without their message headers."""
    messages = encode_rows(rowset, (BINARY_FORMAT,), dictionary, style)
    tuples, at = [], 0
    for _ in range(len(rowset)):
        end = at + 1 + _LENGTH.unpack_from(messages, at + 1)[0]
        tuples.append(messages[at + _MESSAGE_HEAD : end])
        at = end
    return CopyRows.of(tuples)


class BinaryParser:
    """Parses the data of COPY … FROM STDIN WITH (FORMAT binary) into vectors; same interface as
    ``sql.pgwire.copy.CopyParser``.

    Errors are Postgres's (22P04, 22P03, 08P01, …), with its CONTEXT as the detail. The first is final.
    """

    def __init__(
        self, table: str, columns: Sequence[TableColumn], dictionary: Dictionary, style: TextStyle = DEFAULT_STYLE
    ) -> None:
        if not columns:
            raise unsupported("COPY of no columns")
        self.table, self.columns = table, tuple(columns)
        self._dictionary, self._style = dictionary, style
        self._data = bytearray()
        self._begun = self._ended = False
        self._fields: list[list[bytes | None]] = [[] for _ in columns]
        self.count = 0

    @property
    def ready(self) -> bool:
        """Whether enough data is queued for ``parse``."""
        return len(self._data) >= BLOCK

    def feed(self, data: bytes) -> None:
        self._data += data

    def parse(self) -> None:
        """Parses all complete tuples. Raises SqlError."""
        if not self._begun and not self._begin():
            return
        data, at = bytes(self._data), 0
        while not self._ended:
            end = self._tuple(data, at)
            if end is None:
                break
            at = end
        if self._ended and at < len(data):
            raise SqlError("22P04", "received copy data after EOF marker", self._where(self.count + 1))
        del self._data[:at]

    def finish(self) -> tuple[list[Vector], int]:
        """Ends the data. Returns all columns' vectors and the number of rows. Raises SqlError."""
        self.parse()
        if not self._begun:
            raise SqlError("22P04", "COPY file signature not recognized", self._where(1))
        if self._data:
            raise SqlError("22P04", "unexpected EOF in COPY data", self._where(self.count + 1))
        return [self._vector(c, fields) for c, fields in zip(self.columns, self._fields, strict=True)], self.count

    def _begin(self) -> bool:
        """Reads the header, if it is complete."""
        data = self._data
        if not SIGNATURE.startswith(data[: len(SIGNATURE)]):
            raise SqlError("22P04", "COPY file signature not recognized", self._where(1))
        if len(data) < len(HEADER):
            return False
        flags, extension = struct.unpack_from("!Ii", data, len(SIGNATURE))
        if flags & _HAS_OIDS:
            raise SqlError("22P04", "invalid COPY file header (WITH OIDS)", self._where(1))
        if flags >> 16:
            raise SqlError("22P04", "unrecognized critical flags in COPY file header", self._where(1))
        if extension < 0:
            raise SqlError("22P04", "invalid COPY file header (wrong length)", self._where(1))
        if len(data) < len(HEADER) + extension:
            return False
        del data[: len(HEADER) + extension]
        self._begun = True
        return True

    def _tuple(self, data: bytes, at: int) -> int | None:
        """Reads the tuple at ``at``. Returns where it ends, None if it is incomplete."""
        if at + 2 > len(data):
            return None
        (count,) = _COUNT.unpack_from(data, at)
        at += 2
        if count == -1:
            self._ended = True
            return at
        if count != len(self.columns):
            message = f"row field count is {count}, expected {len(self.columns)}"
            raise SqlError("22P04", message, self._where(self.count + 1))
        fields: list[bytes | None] = []
        for column in self.columns:
            if at + 4 > len(data):
                return None
            (length,) = _LENGTH.unpack_from(data, at)
            at += 4
            if length < -1:
                where = f"{self._where(self.count + 1)}, column {column.name}"
                raise SqlError("22P04", "invalid field size", where)
            if at + max(length, 0) > len(data):
                return None
            fields.append(None if length < 0 else data[at : at + length])
            at += max(length, 0)
        for taken, value in zip(self._fields, fields, strict=True):
            taken.append(value)
        self.count += 1
        return at

    def _vector(self, column: TableColumn, fields: list[bytes | None]) -> Vector:
        words = decode_words(column.type, fields)
        if words is not None:
            absent = np.fromiter((f is None for f in fields), np.bool_, len(fields))
            return Vector(words, absent if absent.any() else None)
        datums: list[object] = []
        for row, data in enumerate(fields):
            try:
                datums.append(None if data is None else decode_binary(column.type, data, self._style))
            except SqlError as error:
                where = f"{self._where(row + 1)}, column {column.name}"
                raise SqlError(error.sqlstate, error.message, where, error.hint) from None
        return codec.encode(column.type, datums, self._dictionary)

    def _where(self, row: int) -> str:
        return f"COPY {self.table}, line {row}"
