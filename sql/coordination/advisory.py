"""Advisory locks: locks on numbers whose meaning is up to the clients, exclusive or shared.

A statement that meets one gives back those that it has taken itself, waits, and runs again, as after a row's lock
(``sql.coordination.waits``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from sql.engine.row_locks import ADVISORY, BlockedError, Strength, Target

Key = tuple[int, ...]
"""One bigint, or two integers: their locks are distinct."""


def target_of(key: Key) -> Target:
    """What those wait for who wait for a lock."""
    return ADVISORY, None, b"".join(part.to_bytes(8, "big", signed=True) for part in key)


def key_of(target: Target) -> Key:
    """The inverse."""
    data = bytes(target[2])
    return tuple(int.from_bytes(data[i : i + 8], "big", signed=True) for i in range(0, len(data), 8))


@dataclass(frozen=True, slots=True)
class _Hold:
    """One time that a session took a lock. ``transaction``: until its transaction ends."""

    backend: int
    transaction: bool
    shared: bool


class AdvisoryLocks:
    """All sessions' locks, by backend id. Thread-safe."""

    def __init__(self, released: Callable[[Target], None]) -> None:
        """``released``: called, on any thread, when others may take a lock that a session held."""
        self._guard = threading.Lock()
        self._released = released
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
        """Take a lock. Raises BlockedError while another session's hold excludes it."""
        if not self.take(backend, key, transaction, shared):
            strength = Strength.SHARE if shared else Strength.UPDATE
            raise BlockedError(target_of(key), (), "could not obtain advisory lock", strength,
                               lambda: self._excluding(backend, key, shared))  # fmt: skip

    def _excluding(self, backend: int, key: Key, shared: bool) -> set[int]:
        with self._guard:
            holds = self._held.get(key, [])
            return {h.backend for h in holds if h.backend != backend and not (h.shared and shared)}

    def give_back(self, backend: int, key: Key, shared: bool = False, transaction: bool = False) -> bool:
        """Release a lock once. False if the session does not hold it so."""
        hold = _Hold(backend, transaction, shared)
        with self._guard:
            holds = self._held.get(key, [])
            if hold not in holds:
                return False
            holds.remove(hold)
            if not holds:
                del self._held[key]
        self._released(target_of(key))
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
        released = []
        with self._guard:
            for key, holds in list(self._held.items()):
                kept = [h for h in holds if h.backend != backend or h.transaction is not transaction]
                if len(kept) < len(holds):
                    released.append(key)
                    holds[:] = kept
                if not kept:
                    del self._held[key]
        for key in released:
            self._released(target_of(key))
