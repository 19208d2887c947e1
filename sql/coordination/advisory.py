"""Advisory locks: exclusive locks on numbers whose meaning is up to the clients."""

from __future__ import annotations

import threading
from typing import Final

from ivm.errors import SqlError

Key = tuple[int, ...]
"""One bigint, or two integers: their locks are distinct."""
HELD: Final = "the advisory lock is held by another session"


class AdvisoryLocks:
    """All sessions' locks, by backend id. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[Key, tuple[int, list[bool]]] = {}
        """By key: the holder, and one entry for each time that it took the lock: whether for its transaction only."""

    def take(self, backend: int, key: Key, transaction: bool) -> bool:
        """Try to take a lock; False if another session holds it. A session may take a lock several times."""
        with self._guard:
            holder, times = self._held.setdefault(key, (backend, []))
            if holder == backend:
                times.append(transaction)
            return holder == backend

    def demand(self, backend: int, key: Key, transaction: bool) -> None:
        """Take a lock. 55P03: another session holds it (Postgres waits; here the client must retry)."""
        if not self.take(backend, key, transaction):
            hint = "Waiting for advisory locks is not supported: try again, or use pg_try_advisory_lock."
            raise SqlError("55P03", HELD, hint=hint)

    def give_back(self, backend: int, key: Key) -> bool:
        """Release a lock once. False if the session does not hold it beyond its transaction."""
        with self._guard:
            holder, times = self._held.get(key, (backend, []))
            if holder != backend or False not in times:
                return False
            times.remove(False)
            if not times:
                del self._held[key]
            return True

    def release(self, backend: int, transaction: bool) -> None:
        """Release all locks that the session took for itself, or (``transaction``) for its transaction."""
        if not self._held:
            return
        with self._guard:
            for key, (holder, times) in list(self._held.items()):
                if holder == backend:
                    times[:] = [kind for kind in times if kind is not transaction]
                    if not times:
                        del self._held[key]
