"""Merging while the engine rests.

Steps give merges as much fuel as bounds what they read at once; the rest of a merge waits for later updates. When no
job has come for a moment the event loop, which has an idle engine to itself, goes on with what is being merged, a slice
at a time, so that the next steps find fewer layers to search and less to merge. Between slices the loop sees to its
clients: a job that comes waits for one or two slices at most, and ends the merging until the engine rests again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ivm.trace.spine import Spine, lend

if TYPE_CHECKING:
    from sql.coordination.coordinator import Coordinator

REST_SECONDS: Final = 0.005
"""How long no job has come before merging begins: a client that sends one commit after the other does not meet it."""
SLICE: Final = 4096
"""Updates that merges read in a slice: some 0.1 ms."""


class IdleMerging:
    """Told of every answer (``rest``); all of it on the event loop."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._loop = asyncio.get_running_loop()
        self._since = 0.0
        self._timer: asyncio.Handle | None = None
        self._open: list[Spine] = []
        self.slices = 0
        """How many there have been."""

    def rest(self) -> None:
        """A group of jobs has been answered."""
        self._since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(REST_SECONDS, self._look)

    def stop(self) -> None:
        """No slice comes after this."""
        self._open = []
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        """Begins, if the engine has rested for so long."""
        self._timer = None
        if not self._coordinator.idle:
            return
        left = self._since + REST_SECONDS - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
            return
        self._open = self._coordinator.engine.dataflow.merging()
        self._slice(self._since)

    def _slice(self, since: float) -> None:
        self._timer = None
        if not self._open or since != self._since or not self._coordinator.idle:
            self._open = []
            if since != self._since:
                self.rest()
            return
        self._coordinator.between(lambda: lend(self._open, SLICE))
        self.slices += 1
        self._timer = self._loop.call_soon(self._slice, since)
