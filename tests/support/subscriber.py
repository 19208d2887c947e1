"""A client that follows a COPY of a subscription, as the wire does."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from tests.support.sessions import Client


class Subscriber:
    """A COPY of a subscription, read as the wire does. ``room``: how many messages it takes between two chunks."""

    def __init__(self, client: Client, text: str, room: float = float("inf")) -> None:
        self.client, self.room = client, room
        self.lines: list[str] = []
        self.pushed = 0
        self.ended = client.server.start(self._read(text))

    async def _read(self, text: str) -> None:
        async for result in self.client.session.simple(text):
            result = cast("Any", result)
            result.outlet.send = self._send
            async for chunk in result.data:
                self.lines += bytes(chunk).decode().splitlines()
                await asyncio.sleep(0)

    def _send(self, data: bytes) -> bool:
        if self.room <= 0:
            self.room += 2
            return False
        self.room -= 1
        self.pushed += 1
        at = 0
        while at < len(data):
            length = int.from_bytes(data[at + 1 : at + 5], "big")
            assert data[at : at + 1] == b"d"
            self.lines.append(data[at + 5 : at + 1 + length].decode().rstrip("\n"))
            at += 1 + length
        return True

    def stop(self) -> None:
        self.ended.cancel()
        self.client.close()
