"""How much memory intermediate results may take: all queries and hydrations together."""

from __future__ import annotations

import ctypes
import threading
from typing import Final

from ivm.errors import SqlError


class Budget:
    """``limit`` in bytes; 0: any number."""

    __slots__ = ("_lock", "_taken", "limit")

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self._taken = 0
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """Bytes that all shares have."""
        return self._taken

    def move(self, before: int, after: int) -> int:
        """A share has other bytes than before; how many all have then."""
        with self._lock:
            self._taken += after - before
            return self._taken


class Share:
    """What one dataflow, or one result, takes of a budget."""

    __slots__ = ("budget", "size")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.size = 0

    def hold(self, size: int) -> SqlError | None:
        """Takes ``size`` bytes in all, or says why it may not and stays as it was."""
        budget = self.budget
        if not budget.limit:
            return None
        together = budget.move(self.size, size)
        if together > budget.limit:
            budget.move(size, self.size)
            return out_of_memory(budget.limit, size <= budget.limit)
        self.size = size
        return None

    def release(self) -> None:
        """Gives back all of it."""
        self.budget.move(self.size, 0)
        self.size = 0


NO_BUDGET: Final = Budget()
_LIBRARY: Final = ctypes.CDLL(None)
"""The C library, where it knows ``malloc_trim``: otherwise freed memory waits in its pools, one for each thread."""


def give_back() -> None:
    """Freed memory goes back to the system. Cost: some ms, in which others that allocate may wait."""
    if hasattr(_LIBRARY, "malloc_trim"):
        _LIBRARY.malloc_trim(0)


def out_of_memory(limit: int, beside_others: bool = False) -> SqlError:
    """53200. ``beside_others``: it would fit if nothing else ran."""
    beside = " beside what other statements take" if beside_others else ""
    return SqlError(
        "53200", "out of memory",
        f"Intermediate results would take more than the limit of {limit >> 20} MiB{beside}.",
        "Make the query smaller, or start the server with a larger --memory.",
    )  # fmt: skip
