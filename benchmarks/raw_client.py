"""A client that costs as little as possible: it decodes nothing that it is not asked for."""

from __future__ import annotations

import socket
import struct
from typing import Final

from sql.pgwire import messages_frontend as front

_LENGTH: Final = struct.Struct("!i")


class RawClient:
    """One connection, as a user who may do everything. ``received``: the bytes that came after the last answer."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        body = struct.pack("!i", 3 << 16) + b"user\0postgres\0database\0postgres\0\0"
        self.socket.sendall(_LENGTH.pack(len(body) + 4) + body)
        self.answer()

    def answer(self) -> bytes:
        """All messages up to ReadyForQuery. Raises AssertionError for an error."""
        at = 0
        while True:
            while len(self.received) >= at + 5:
                kind, end = self.received[at], at + 1 + _LENGTH.unpack_from(self.received, at + 1)[0]
                if len(self.received) < end:
                    break
                assert kind != ord("E"), self.received[at:end]
                at = end
                if kind == ord("Z"):
                    found, self.received = self.received[:at], self.received[at:]
                    return found
            data = self.socket.recv(1 << 16)
            assert data, "the server has closed the connection"
            self.received += data

    def run(self, text: str) -> bytes:
        """The answer to a simple query."""
        self.socket.sendall(front.Query(text).encode())
        return self.answer()

    def prepare(self, name: str, text: str) -> None:
        """Prepare a statement."""
        self.socket.sendall(front.Parse(name, text).encode() + front.Sync().encode())
        self.answer()

    def start(self, name: str, *parameters: int) -> None:
        """Send a prepared statement's run, as drivers do."""
        values = tuple(b"%d" % value for value in parameters)
        bind = front.Bind("", name, (), values, ()).encode()
        self.socket.sendall(bind + front.Execute("", 0).encode() + front.Sync().encode())
