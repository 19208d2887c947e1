"""Advisory locks: locks on numbers whose meaning is up to the clients, exclusive or shared."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError

Key = tuple[int, ...]
"""One bigint, or two integers: their locks are distinct."""
HELD: Final = "the advisory lock is held by another session"


@dataclass(frozen=True, slots=True)
class _Hold:
    """One time that a session took a lock. ``transaction``: until its transaction ends."""

    backend: int
    transaction: bool
    shared: bool


class AdvisoryLocks:
    """All sessions' locks, by backend id. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[Key, list[_Hold]] = {}

    def take(self, backend: int, key: Key, transaction: bool, shared: bool = False) -> bool:
        """Try to take a lock; False if another session's hold excludes it. A session may take a lock several times."""
        with self._guard:
            holds = self._held.get(key, [])
            if any(h.backend != backend and not (h.shared and shared) for h in holds):
                return False
            self._held.setdefault(key, []).append(_Hold(backend, transaction, shared))
            return True

    def demand(self, backend: int, key: Key, transaction: bool, shared: bool = False) -> None:
        """Take a lock. 55P03: another session's hold excludes it (Postgres waits; here the client must retry)."""
        if not self.take(backend, key, transaction, shared):
            hint = "Waiting for advisory locks is not supported: try again, or use pg_try_advisory_lock."
            raise SqlError("55P03", HELD, hint=hint)

    def give_back(self, backend: int, key: Key, shared: bool = False) -> bool:
        """Release a lock once. False if the session does not hold it so beyond its transaction."""
        hold = _Hold(backend, False, shared)
        with self._guard:
            holds = self._held.get(key, [])
            if hold not in holds:
                return False
            holds.remove(hold)
            if not holds:
                del self._held[key]
            return True

    def all(self) -> list[tuple[int, Key, bool]]:
        """Who holds what: backend ids, keys, and whether shared. A lock that is held several times comes once."""
        with self._guard:
            found = ((h.backend, key, h.shared) for key, holds in self._held.items() for h in holds)
            return list(dict.fromkeys(found))

    def release(self, backend: int, transaction: bool) -> None:
        """Release all locks that the session took for itself, or (``transaction``) for its transaction."""
        if not self._held:
            return
        with self._guard:
            for key, holds in list(self._held.items()):
                holds[:] = [h for h in holds if h.backend != backend or h.transaction is not transaction]
                if not holds:
                    del self._held[key]
