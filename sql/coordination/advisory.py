"""Advisory locks: numbers that sessions agree on; who takes one keeps others out of it."""

from __future__ import annotations

import threading
from typing import Final

from ivm.errors import SqlError

Key = tuple[int, ...]
"""One bigint, or two integers: two spaces of their own."""
HELD: Final = "the advisory lock is held by another session"


class AdvisoryLocks:
    """All sessions' locks, by the number of the session's backend. Callable from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[Key, tuple[int, list[bool]]] = {}
        """The holder, and how often it took the lock: whether for its transaction only."""

    def take(self, backend: int, key: Key, transaction: bool) -> bool:
        """Whether the lock is the session's now; one may take it several times."""
        with self._guard:
            holder, times = self._held.setdefault(key, (backend, []))
            if holder == backend:
                times.append(transaction)
            return holder == backend

    def demand(self, backend: int, key: Key, transaction: bool) -> None:
        """55P03: another session has it. Postgres waits; here the client is to try again."""
        if not self.take(backend, key, transaction):
            hint = "Waiting for advisory locks is not supported: try again, or use pg_try_advisory_lock."
            raise SqlError("55P03", HELD, hint=hint)

    def give_back(self, backend: int, key: Key) -> bool:
        """Once less; False where the session has not taken it for itself."""
        with self._guard:
            holder, times = self._held.get(key, (backend, []))
            if holder != backend or False not in times:
                return False
            times.remove(False)
            if not times:
                del self._held[key]
            return True

    def release(self, backend: int, transaction: bool) -> None:
        """All that the session holds goes, or (True) what its transaction took."""
        if not self._held:
            return
        with self._guard:
            for key, (holder, times) in list(self._held.items()):
                if holder == backend:
                    times[:] = [kind for kind in times if kind is not transaction]
                    if not times:
                        del self._held[key]
