"""How deep a statement may be nested: what walks a plan calls itself, once or more for each level."""

from __future__ import annotations

import sys
import threading
from typing import Final

FRAMES: Final = 20_000
"""The most calls within each other on one thread. A level of an expression takes about four, so that a chain of 4,000
operators is planned, as in PostgreSQL; beyond it a statement gets 54001."""
STACK: Final = 64 << 20
"""Bytes of address space for a thread's stack: three times what so many calls take at most. Memory is only taken for
what was used."""


def allow_depth() -> None:
    """Let the threads that are started from now on, and the process's first one, make ``FRAMES`` calls within each
    other."""
    threading.stack_size(STACK)
    sys.setrecursionlimit(FRAMES if _first_has_room() else 4_000)


def _first_has_room() -> bool:
    """Whether the first thread's stack, which grows up to a limit of the process, may be as large as the others'."""
    try:
        import resource
    except ImportError:  # not on Windows
        return False
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= STACK:
        return True
    if hard != unlimited and hard < STACK:
        return False
    try:
        resource.setrlimit(resource.RLIMIT_STACK, (STACK, hard))
    except (OSError, ValueError):
        return False
    return sys.platform == "linux"
