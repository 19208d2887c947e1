"""The engine's thread and its groups."""

from __future__ import annotations

import asyncio
import math
import threading

from sql.coordination.thread import EngineThread


def test_a_commit_that_the_event_loop_began_does_not_wait_for_the_next_group() -> None:
    """The disk is slow: the thread takes over the first commit's sync, and meanwhile another commit comes."""

    async def run() -> None:
        first, second = threading.Event(), threading.Event()
        made = ["a"]

        def flush(until: float) -> bool:
            if until < math.inf:
                return False
            (second if "b" in made else first).wait(60)
            made.clear()
            return True

        thread = EngineThread(asyncio.get_running_loop(), flush, threading.Event())
        thread.start()
        begun = thread.begin("a")
        queued = thread.queue(lambda: made.append("b"))
        first.set()
        try:
            assert await asyncio.wait_for(asyncio.shield(begun.future), 10) == "a"
            assert not queued.future.done()
        finally:
            second.set()
        await thread.wait(queued)
        assert thread.idle
        assert await asyncio.to_thread(thread.stop, 20)

    asyncio.run(run())
