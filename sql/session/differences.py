"""What a subscription is told after its view was replaced, or filled anew: the difference, computed beside the event
loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import numpy as np

from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from sql.engine.snapshot import Published
from storage.stored import History

Deliver = Callable[[History | None], None]


def difference(old: tuple[Published, int], new: tuple[Published, int], epoch: int) -> History:
    """From one relation's rows to another's, each in a published state. Cost: the rows of both."""
    before, after = (published.rows(relation, published.ordinal) for published, relation in (old, new))
    rows, times = np.concatenate([before[0], after[0]]), np.zeros(len(before[0]) + len(after[0]), np.int64)
    both = Block.of(rows, times, np.concatenate([-before[1], after[1]]).reshape(-1, 1))
    changed = sorted_block(both).arrays()
    return History(changed[0], np.full(len(changed[0]), epoch, np.int64), changed[2][:, 0])


class InOrder:
    """Delivers changes in their order, some of which are computed first. Used on the event loop."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[History | Callable[[], History] | None, Deliver]] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        """Whether everything has been delivered."""
        return not self._waiting

    def deliver(self, what: History | Callable[[], History] | None, to: Deliver) -> None:
        """Now, if nothing waits and nothing is to be computed; else after what waits."""
        if not self._waiting and not callable(what):
            to(what)
            return
        self._waiting.append((what, to))
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while self._waiting:
            what, to = self._waiting[0]
            found = await asyncio.to_thread(what) if callable(what) else what
            self._waiting.popleft()
            to(found)
        self._task = None
