"""Sends the same bytes to many clients beside the event loop, on a thread that needs no lock of Python's meanwhile.

A ``send`` to a socket takes some 12 µs, so that a thousand subscribers would keep the event loop from other clients for
12 ms after each commit. What is sent in one turn of the event loop is collected, and handed over at its end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from sql.pgwire.send_kernels import send_all

FEW: Final = 16
"""Fewer parts are sent on the event loop: changing threads would take longer."""
BATCH: Final = 128
"""How many parts are sent before the event loop hears of it."""
MOST_LATE: Final = 1 << 16
"""A client is behind if more bytes than this wait for its socket to come back."""


@dataclass(slots=True, eq=False)
class Line:
    """A client's socket, while others may send through it.

    Invariant: while it is lent, nothing but the sender writes to the socket, and ``file``, a descriptor of its own,
    stays open even if the connection is lost: its number cannot become another client's.
    """

    file: int
    returned: Callable[[bytes, bytes], None]
    """Takes the bytes that the socket did not take, and what was late, on the event loop."""
    lent: bool = False
    late: list[bytes] = field(default_factory=list)
    """What is to be sent once it comes back."""
    lost: bool = False

    @property
    def behind(self) -> bool:
        return self.lent and sum(map(len, self.late)) > MOST_LATE

    def lose(self) -> None:
        """The connection has ended."""
        self.lost = True
        if not self.lent:
            os.close(self.file)

    def come_back(self, rest: bytes) -> None:
        self.lent = False
        late = b"".join(self.late)
        self.late.clear()
        if self.lost:
            os.close(self.file)
        else:
            self.returned(rest, late)


def line_of(transport: asyncio.Transport, returned: Callable[[bytes, bytes], None]) -> Line | None:
    """A line to a client; None: its bytes are encrypted, or there are too many files."""
    socket = transport.get_extra_info("socket")
    if socket is None or transport.get_extra_info("ssl_object") is not None:
        return None
    try:
        return Line(os.dup(socket.fileno()), returned)
    except OSError:
        return None


class Sender:
    """Made and used on the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "send")
        self._parts: list[tuple[Line, bytes]] = []

    def send(self, line: Line, data: bytes) -> None:
        """Send soon. The line is lent until then."""
        assert not line.lent
        line.lent = True
        if not self._parts:
            self._loop.call_soon(self._hand_over)
        self._parts.append((line, data))

    def _hand_over(self) -> None:
        parts, self._parts = self._parts, []
        if len(parts) < FEW:
            for line, data in parts:
                line.come_back(data)
            return
        for start in range(0, len(parts), BATCH):
            batch = parts[start : start + BATCH]
            self._thread.submit(send, batch).add_done_callback(partial(self._sent, batch))

    def _sent(self, batch: list[tuple[Line, bytes]], sent: Future[list[int]]) -> None:
        self._loop.call_soon_threadsafe(_come_back, batch, sent)

    async def close(self) -> None:
        """Wait until all that was handed over is sent."""
        self._hand_over()
        await self._loop.run_in_executor(None, self._thread.shutdown)


def send(batch: list[tuple[Line, bytes]]) -> list[int]:
    """How many bytes each socket has taken. On any thread."""
    arrays = {id(data): np.frombuffer(data, np.uint8) for _, data in batch}
    addresses = {number: array.ctypes.data for number, array in arrays.items()}
    parts = np.array([(line.file, addresses[id(data)], len(data)) for line, data in batch], np.int64).reshape(-1, 3)
    sent = np.full(len(batch), -1, np.int64)
    send_all(parts, sent)
    return sent.tolist()


def _come_back(batch: list[tuple[Line, bytes]], sent: Future[list[int]]) -> None:
    for (line, data), size in zip(batch, sent.result(), strict=True):
        line.come_back(data[max(size, 0) :])
