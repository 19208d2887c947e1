"""Parsing, binding and planning of long statements on threads of their own, so that the event loop answers others.

A short statement is planned on the event loop, where changing threads would cost more than the work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from ivm.budget import Budget
from ivm.stops import stoppable
from planner.memo import forget_large

T = TypeVar("T")
LONG: Final = 800
"""From so many characters on, planning a statement may take several milliseconds."""
SHOWN_CHARACTERS: Final = 100_000
"""Of a statement in pg_stat_activity, current_query() and freshet.stalls, which would keep a longer one."""
AT_ONCE: Final = 2


def is_long(text: str) -> bool:
    """Whether a statement is planned on a thread of its own."""
    return len(text) >= LONG


class Planning:
    """Used on the event loop. Each piece of work has a new thread, whose stack is given back with it."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._places = asyncio.Semaphore(AT_ONCE)

    async def run(self, work: Callable[[], T], characters: int) -> T:
        """The result of work on a statement of so many characters, done on another thread. A cancel of the caller ends
        it (``ivm.stops``)."""
        cancel = threading.Event()

        def stoppably() -> T:
            try:
                with stoppable(cancel, self._budget):
                    return work()
            finally:
                forget_large(characters)

        async with self._places:
            thread = ThreadPoolExecutor(1, "planner")
            try:
                return await asyncio.get_running_loop().run_in_executor(thread, stoppably)
            except asyncio.CancelledError:
                cancel.set()
                raise
            finally:
                thread.shutdown(wait=False)
