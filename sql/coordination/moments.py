"""Wakes the engine at the moments at which rows of views come or go by themselves (temporal filters)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from ivm.errors import SqlError
from ivm.moments import NEVER
from sql.engine.engine import Engine

LONGEST: Final = 60.0
"""Seconds after which the clock is looked at again: it may have been set."""


class MomentTimer:
    """One timer for the next moment. Runs on the event loop only. ``commit``: runs a job that is a whole
    transaction."""

    def __init__(self, engine: Engine, commit: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
        self._engine = engine
        self._commit = commit
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._set_for = NEVER
        self._running: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Set the timer for the engine's next moment. Call it when a group of jobs has been answered."""
        moment = self._engine.next_moment
        if moment == self._set_for or self._running is not None:
            return
        self.stop()
        if moment == NEVER:
            return
        self._set_for = moment
        seconds = (moment - self._engine.clock.now()) / 1e6
        self._timer = self._loop.call_later(min(max(seconds, 0), LONGEST), self._fire)

    def stop(self) -> None:
        """No timer is set after this."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._set_for = NEVER

    def _fire(self) -> None:
        self.stop()
        self._running = self._loop.create_task(self._pass_time())

    async def _pass_time(self) -> None:
        try:
            with suppress(SqlError):  # the server is shutting down, or the store refuses writes for now
                await self._commit(self._engine.pass_time)
        finally:
            self._running = None
            if self._engine.next_moment <= self._engine.clock.now():
                self._timer = self._loop.call_later(LATE, self.look)
            else:
                self.look()


LATE: Final = 0.001
"""Seconds between two looks at the clock while moments that have come are still to be committed."""
