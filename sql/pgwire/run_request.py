"""The commonest pipeline, recognized as a whole: a prepared statement, run once.

Bind, perhaps Describe, Execute, Sync: in one piece, as drivers send them.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from sql.pgwire.messages import INT32, UINT16
from sql.pgwire.messages_frontend import Describe, Execute, Sync
from sql.statements.results import CommandResult

_SYNC: Final = Sync().encode()
_EXECUTE: Final = Execute("", 0).encode()[:-4]
"""Without the number of rows that are wanted, its end."""
_RUN: Final = len(_EXECUTE) + 4 + len(_SYNC)
_DESCRIBE: Final = Describe("P", "").encode()
_USUAL: Final = {b"\0\0": (), b"\0\1\0\0": (0,), b"\0\1\0\1": (1,)}
"""Formats of results that drivers send most, and what they mean."""
MOST_PARAMETERS: Final = 64
"""More are left to the protocol: the statement takes longer than its messages then."""
SHORTEST: Final = 6
LONGEST_TEXT: Final = 1_000
"""Bytes of a Query message that is looked at as a whole."""


class RunRequest(NamedTuple):  # made in a third of a frozen dataclass's time
    """``statement``: its name; ``forms`` and ``values``: of its parameters, as in Bind; ``formats``: the end of Bind,
    with the formats of the result; ``described``: with Describe of the portal; ``max_rows``: of Execute. ``datums``:
    of the parameters, if they did not come as values."""

    statement: str
    forms: tuple[int, ...]
    values: tuple[bytes | None, ...]
    formats: bytes
    described: bool
    max_rows: int
    datums: tuple[object, ...] | None = None

    @property
    def result_formats(self) -> tuple[int, ...] | None:
        """The result's formats; None: the bytes are wrong."""
        if self.formats in _USUAL:
            return _USUAL[self.formats]
        count = UINT16.unpack_from(self.formats)[0]
        if len(self.formats) != 2 + 2 * count:
            return None
        return struct.unpack_from(f"!{count}h", self.formats, 2)

    def form(self, place: int) -> int:
        """The format of a parameter."""
        forms = self.forms
        return forms[place] if len(forms) > 1 else forms[0] if forms else 0


@dataclass(frozen=True, slots=True)
class Begun:
    """What answers a request whose statement has run but is not durable yet: ``head``, then the result."""

    head: bytes
    result: Callable[[], Awaitable[CommandResult]]


def query_text(data: bytes) -> str | None:
    """The text of the Query message that bytes are, if they are one, and a short one."""
    if data[:1] != b"Q" or len(data) > LONGEST_TEXT or len(data) < SHORTEST or data[-1]:
        return None
    if INT32.unpack_from(data, 1)[0] != len(data) - 1:
        return None
    try:
        text = data[5:-1].decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def run_request(data: bytes) -> RunRequest | None:
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
        count = UINT16.unpack_from(data, at + 1)[0]
        forms = struct.unpack_from(f"!{count}h", data, at + 3) if count else ()
        place = at + 3 + 2 * count
        (number,) = UINT16.unpack_from(data, place)
        if at < 0 or count > MOST_PARAMETERS or number > MOST_PARAMETERS or (count > 1 and count != number):
            return None
        place += 2
        values: list[bytes | None] = []
        length_at = INT32.unpack_from
        for _ in range(number):
            length = length_at(data, place)[0]
            start = place + 4
            if length < 0:
                if length < -1:
                    return None
                values.append(None)
                place = start
            else:
                place = start + length
                values.append(data[start:place])
        statement = data[6:at].decode()
    except (struct.error, UnicodeDecodeError):
        return None
    if place + 2 > end:
        return None
    return RunRequest(statement, forms, tuple(values), data[place:end], described, max_rows)
