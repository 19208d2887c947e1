"""The memory budget of intermediate results, shared by all queries and hydrations."""

from __future__ import annotations

import threading
from typing import Final

from ivm.errors import SqlError


class Budget:
    """``limit`` in bytes; 0: unlimited."""

    __slots__ = ("_lock", "_taken", "limit")

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self._taken = 0
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """Bytes held by all shares."""
        return self._taken

    def move(self, before: int, after: int) -> int:
        """Changes a share's bytes from ``before`` to ``after``. Returns the bytes held by all shares."""
        with self._lock:
            self._taken += after - before
            return self._taken


class Share:
    """The part of a budget that one dataflow or one result uses."""

    __slots__ = ("budget", "size")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.size = 0

    def hold(self, size: int) -> SqlError | None:
        """Sets the share to ``size`` bytes. If that is refused, returns the error and leaves the share unchanged."""
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
        """Returns all of its bytes to the budget."""
        self.budget.move(self.size, 0)
        self.size = 0


NO_BUDGET: Final = Budget()


def out_of_memory(limit: int, beside_others: bool = False) -> SqlError:
    """53200. ``beside_others``: it would fit if nothing else ran."""
    beside = " beside what other statements take" if beside_others else ""
    return SqlError(
        "53200", "out of memory",
        f"Intermediate results would take more than the limit of {limit >> 20} MiB{beside}.",
        "Make the query smaller, or start the server with a larger --memory.",
    )  # fmt: skip
