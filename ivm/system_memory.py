"""What the process holds of the system's memory beyond what it uses: little, and only for a moment.

The C library's malloc keeps what is freed in pools, one for every few threads, and raises by itself the size from which
on an allocation is a mapping of its own, which goes back when it is freed. A long text between two small objects then
keeps its pool large for good. glibc's pools can be bounded; other libraries' are left alone.

Python's own pools lie in blocks of 1 MB that go back when nothing is left in them. Python keeps thousands of freed
tuples for reuse, wherever they are, until all garbage is collected: they hold a block each.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import time
from typing import Final

POOLS: Final = 2
"""The first thread's, which is the event loop's, and one of all others."""
MAPPED: Final = 4 << 20
"""Bytes from which on an allocation is a mapping of its own."""
DELAY_SECONDS: Final = 0.2
"""What is given back together. What asks for it is mostly still about to let go of what it used."""
KEPT: Final = 8 << 20
"""Bytes that a pool keeps at its end until something large has ended."""
RARELY: Final = 1_000
"""Garbage is collected again after so many times of what that took, in which nothing else ran: 10 ms mostly, but 200
with a million objects. They are not counted before: ``gc.get_objects`` also hands out tuples that other threads are
still filling, which then fail."""
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LIBRARY: Final = ctypes.CDLL(None)


def bound_pools() -> None:
    """Bounds the pools of freed memory. To be called before threads are started."""
    if hasattr(_LIBRARY, "mallopt"):
        _LIBRARY.mallopt(_M_ARENA_MAX, POOLS)
        _LIBRARY.mallopt(_M_MMAP_THRESHOLD, MAPPED)
        _LIBRARY.mallopt(_M_TRIM_THRESHOLD, KEPT)


class _Returning:
    """The thread that gives memory back: that takes a few ms and more, during which others may wait for a pool."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._started = False
        self._guard = threading.Lock()
        self._collects_from = 0.0  # in seconds of time.monotonic()

    def ask(self) -> None:
        self._asked.set()
        with self._guard:
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, name="returning", daemon=True).start()

    def _run(self) -> None:
        owed = False
        while True:
            self._asked.wait(max(0, self._collects_from - time.monotonic()) if owed else None)
            time.sleep(DELAY_SECONDS)
            self._asked.clear()
            owed = not self._collect_rarely()
            _LIBRARY.malloc_trim(0)

    def _collect_rarely(self) -> bool:
        """Collects all garbage, which frees what Python keeps for reuse, or says that it is too early to."""
        begun = time.monotonic()
        if begun < self._collects_from:
            return False
        if gc.isenabled():
            gc.collect()
        ended = time.monotonic()
        self._collects_from = ended + RARELY * (ended - begun)
        return True


class _Present:
    """Holds the process's thread. A forked child does not have its parent's."""

    returning = _Returning()


def give_back() -> None:
    """Returns freed memory to the system, soon."""
    if hasattr(_LIBRARY, "malloc_trim"):
        _Present.returning.ask()


os.register_at_fork(after_in_child=lambda: setattr(_Present, "returning", _Returning()))
