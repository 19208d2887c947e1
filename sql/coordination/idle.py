"""Background merging while the engine thread is idle. Garbage is collected first.

Each step gives the merges of spines a bounded amount of fuel; the rest of a merge waits for later updates. When no job
has come for ``REST_SECONDS``, the event loop continues these merges a slice at a time, so that later steps search fewer
batches and merge less. Clients are served between the slices: a new job waits for one or two slices at most, and stops
the merging until the engine is idle again.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ivm.dataflow import Dataflow
from ivm.trace.spine import Spine, lend
from sql.coordination.collecting import collect_young
from sql.coordination.thread import EngineThread

REST_SECONDS: Final = 0.005
"""How long the engine must have been idle. Long enough that a client which sends commits back to back meets no
merge."""
SLICE: Final = 4096
"""Updates that merges read in a slice: about 0.1 ms."""
LOOKING: Final = 0.02
"""The most of the time that looking for merges may take, whose cost grows with the number of operators."""


class IdleMerging:
    """Merges the spines of a dataflow. Runs on the event loop only."""

    def __init__(self, thread: EngineThread, dataflow: Dataflow) -> None:
        self._thread = thread
        self._dataflow = dataflow
        self._loop = asyncio.get_running_loop()
        self._since = 0.0
        self._next = 0.0
        """When to look again at the earliest."""
        self._timer: asyncio.Handle | None = None
        self._open: list[Spine] = []
        self.slices = 0
        """The number of slices run."""

    def rest(self) -> None:
        """Call this when a group of jobs has been answered."""
        self._since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(REST_SECONDS, self._look)

    def stop(self) -> None:
        """Stop: no slice runs after this."""
        self._open = []
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        """Start merging, if the engine has been idle for long enough."""
        self._timer = None
        if not self._thread.idle:
            return
        begun = self._loop.time()
        left = max(self._since + REST_SECONDS, self._next) - begun
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
            return
        collect_young()
        self._open = self._dataflow.merging()
        ended = self._loop.time()
        self._next = ended + (ended - begun) / LOOKING
        self._slice(self._since)

    def _slice(self, since: float) -> None:
        self._timer = None
        if not self._open or since != self._since or not self._thread.idle:
            self._open = []
            if since != self._since:
                self.rest()
            return
        self._thread.between(lambda: lend(self._open, SLICE))
        self.slices += 1
        self._timer = self._loop.call_soon(self._slice, since)
