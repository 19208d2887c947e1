"""The commonest pipeline, recognized as a whole: a prepared statement with one parameter, run once.

Bind, perhaps Describe, Execute, Sync: in one piece, as drivers send them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from sql.pgwire.messages import INT32, UINT16
from sql.pgwire.messages_frontend import Describe, Execute, Sync

_SYNC: Final = Sync().encode()
_EXECUTE: Final = Execute("", 0).encode()[:-4]
"""Without the number of rows that are wanted, its end."""
_RUN: Final = len(_EXECUTE) + 4 + len(_SYNC)
_DESCRIBE: Final = Describe("P", "").encode()
_ONE: Final = struct.Struct("!Hi")
"""The number of parameters, and the length of the first."""


@dataclass(frozen=True, slots=True)
class PointRequest:
    """``statement``: its name; ``form`` and ``value``: of its parameter; ``formats``: the end of Bind, with the
    formats of the result; ``described``: with Describe of the portal; ``max_rows``: of Execute."""

    statement: str
    form: int
    value: bytes
    formats: bytes
    described: bool
    max_rows: int

    @property
    def result_formats(self) -> tuple[int, ...] | None:
        """The result's formats; None: the bytes are wrong."""
        count = UINT16.unpack_from(self.formats)[0]
        if len(self.formats) != 2 + 2 * count:
            return None
        return struct.unpack_from(f"!{count}h", self.formats, 2)


def point_request(data: bytes) -> PointRequest | None:
    """The request that bytes are, if they are one; whatever else they are is for the protocol to say."""
    if data[:1] != b"B" or data[5:6] != b"\0" or not data.endswith(_SYNC):
        return None
    end = 1 + INT32.unpack_from(data, 1)[0]
    described = len(data) - end == len(_DESCRIBE) + _RUN and data.startswith(_DESCRIBE, end)
    run = end + len(_DESCRIBE) if described else end
    if len(data) - run != _RUN or not data.startswith(_EXECUTE, run):
        return None
    max_rows = INT32.unpack_from(data, run + len(_EXECUTE))[0]
    at = data.find(b"\0", 6, end)
    try:
        forms = UINT16.unpack_from(data, at + 1)[0]
        if at < 0 or forms > 1:
            return None
        form = UINT16.unpack_from(data, at + 3)[0] if forms else 0
        start = at + 3 + 2 * forms + _ONE.size
        count, length = _ONE.unpack_from(data, start - _ONE.size)
        statement = data[6:at].decode()
    except (struct.error, UnicodeDecodeError):
        return None
    if count != 1 or length < 0 or start + length + 2 > end:
        return None
    value, formats = data[start : start + length], data[start + length : end]
    return PointRequest(statement, form, value, formats, described, max_rows)
