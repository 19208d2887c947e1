"""Looking at what another thread does."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ivm.stacks import stack_of

DEEP = 200


@contextmanager
def waiting() -> Iterator[threading.Thread]:
    """A thread that waits with many frames of which nobody has asked for any."""
    begun, end = threading.Event(), threading.Event()

    def descend(left: int) -> None:
        if left:
            descend(left - 1)
        else:
            begun.set()
            end.wait()

    thread = threading.Thread(target=descend, args=(DEEP,))
    thread.start()
    begun.wait()
    try:
        yield thread
    finally:
        end.set()
        thread.join()


def test_the_innermost_frame_is_first() -> None:
    with waiting() as thread:
        names = [frame.f_code.co_name for frame in stack_of(thread.ident)]
    assert names.count("descend") == DEEP + 1
    assert names[0] == "wait"
    assert names[-1] == "_bootstrap"


def test_a_thread_that_has_ended_has_none() -> None:
    with waiting() as thread:
        pass
    assert stack_of(thread.ident) == []
    assert stack_of(None) == []


def test_garbage_is_not_collected_meanwhile() -> None:
    """It would begin with any new frame object, and what it runs may let the thread go on."""
    here, within = threading.get_ident(), []

    def collects(phase: str, _: dict[str, Any]) -> None:
        if phase == "start" and threading.get_ident() == here:
            caller = sys._getframe(1)
            within.append(caller.f_code.co_name == "stack_of" and caller.f_locals.get("frame") is not None)

    before = gc.get_threshold()
    gc.callbacks.append(collects)
    try:
        with waiting() as thread:
            gc.set_threshold(1)
            assert len(stack_of(thread.ident)) > DEEP
            gc.set_threshold(*before)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collects)
    assert within
    assert not any(within)
    assert gc.isenabled()
