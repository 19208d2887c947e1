"""The write token: which transaction may change rows now."""

from __future__ import annotations

import asyncio
from collections import deque


class WriteToken:
    """A first-come, first-served lock with one exclusive holder or any number of passing statements.

    A statement that commits by itself is one job of the engine thread. It only waits for its turn in the queue, so
    several such statements may pass at once.

    Invariant: between ``enter`` and ``leave`` a passing statement's job is queued, and nobody holds the token.
    """

    def __init__(self) -> None:
        self._held = False
        self._passing = 0
        self._waiting: deque[tuple[asyncio.Future[None], bool]] = deque()

    @property
    def held(self) -> bool:
        """Whether a transaction holds it."""
        return self._held

    async def acquire(self) -> None:
        """Wait for the token, then hold it until ``release``."""
        await self._wait(hold=True)

    def release(self) -> None:
        assert self._held, "only its holder releases it"
        self._held = False
        self._wake()

    async def enter(self) -> None:
        """Wait for this statement's turn to pass; call ``leave`` once its job is queued."""
        await self._wait(hold=False)

    def leave(self) -> None:
        self._passing -= 1
        self._wake()

    async def _wait(self, hold: bool) -> None:
        if not self._held and not self._waiting and not (hold and self._passing):
            self._grant(hold)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((future, hold))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                if hold:
                    self.release()
                else:
                    self.leave()
            raise

    def _grant(self, hold: bool) -> None:
        if hold:
            self._held = True
        else:
            self._passing += 1

    def _wake(self) -> None:
        while self._waiting and not self._held:
            future, hold = self._waiting[0]
            if future.done():
                self._waiting.popleft()
                continue
            if hold and self._passing:
                return
            self._waiting.popleft()
            self._grant(hold)
            future.set_result(None)
