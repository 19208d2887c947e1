"""What another thread is doing."""

from __future__ import annotations

import gc
import sys
import threading
from types import FrameType
from typing import Final

_TURNS: Final = threading.Lock()


def stack_of(thread: int | None) -> list[FrameType]:
    """The frames of a thread, by its ident, the innermost first; none if it has ended.

    Garbage is not collected meanwhile: CPython makes frame objects as they are asked for, a collection that begins with
    one may run code that lets the thread go on, and the frame that is then asked for is memory used otherwise.
    """
    found: list[FrameType] = []
    with _TURNS:
        collects = gc.isenabled()
        gc.disable()
        try:
            frame = sys._current_frames().get(thread or 0)
            while frame is not None:
                found.append(frame)
                frame = frame.f_back
        finally:
            if collects:
                gc.enable()
    return found
