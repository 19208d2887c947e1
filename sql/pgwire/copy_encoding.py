"""The data of COPY … FROM STDIN from the client's encoding."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from storage.encodings.encoding import Encoding
from storage.encodings.names import LONGEST

SMALL: Final = 1 << 14
"""So many bytes are converted in a fraction of a millisecond, where changing threads would cost more."""


class CopyDecoder:
    """Data that is cut anywhere, in UTF-8. Errors name the line, as PostgreSQL's do."""

    def __init__(self, encoding: Encoding, table: str) -> None:
        self._encoding = encoding
        self._table = table
        self._rest = b""
        self._line = 1

    def feed(self, data: bytes) -> bytes:
        """The whole characters of what has come. 22021, 22P05. Cost: linear in the data."""
        raw = self._rest + data
        end = self._encoding.whole(raw)
        self._rest = raw[end:]
        out = self._in_utf8(raw[:end])
        if len(self._rest) >= LONGEST:
            raise self._at_line(self._encoding.unreadable(raw, end))
        return out

    def finish(self) -> None:
        """Raises 22021 if the last character is not whole."""
        if self._rest:
            raise self._at_line(self._encoding.unreadable(self._rest, 0))

    def _in_utf8(self, raw: bytes) -> bytes:
        if raw.isascii():
            out = raw
        else:
            try:
                out = self._encoding.text_of(raw).encode()
            except SqlError:
                for line in raw.split(b"\n"):
                    self._check(line)
                    self._line += 1
                raise
        self._line += raw.count(b"\n")
        return out

    def _check(self, line: bytes) -> None:
        try:
            self._encoding.text_of(line)
        except SqlError as error:
            raise self._at_line(error) from None

    def _at_line(self, error: SqlError) -> SqlError:
        return SqlError(error.sqlstate, error.message, f"COPY {self._table}, line {self._line}")
