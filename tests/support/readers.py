"""Whether readers' threads go on with queries that were cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Final

from ivm.stacks import stack_of

PATIENCE: Final = 20.0
"""Seconds. On a machine of one's own it is 0.1."""


def until_idle(others: Iterable[threading.Thread] = ()) -> None:
    """Wait until no reader runs a query. ``others``: threads that were there before, of other servers."""
    until = time.monotonic() + PATIENCE
    while busy := [t for t in set(threading.enumerate()).difference(others) if _is_busy(t)]:
        assert time.monotonic() < until, f"a reader goes on with a query that was cancelled: {busy}"
        time.sleep(0.01)


def _is_busy(thread: threading.Thread) -> bool:
    if not thread.name.startswith("reader"):
        return False
    frames = [frame.f_code for frame in stack_of(thread.ident)]
    return any(code.co_name == "run" and code.co_filename.endswith("sql/session/query.py") for code in frames)
