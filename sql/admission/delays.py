"""Slows down who guesses passwords: each failure makes the next attempt at a role from an address wait longer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_network
from typing import Final

from sql.admission.rules import Address

FIRST_SECONDS: Final = 0.1
LONGEST_SECONDS: Final = 8.0
QUEUE_SECONDS: Final = 30.0
"""Who would wait longer behind others is refused at once."""
FORGET_SECONDS: Final = 300.0
MAX_KNOWN: Final = 10_000

Key = tuple[str, str]


def key_of(user: str, address: Address | None) -> Key:
    """What failures are counted by: a role's name and the address, of IPv6 its first 64 bits."""
    if isinstance(address, IPv6Address):
        return user, str(ip_network((int(address) >> 64 << 64, 64)))
    return user, str(address)


@dataclass(slots=True)
class _Failures:
    count: int
    last: float
    free: float
    """When the next attempt may be checked."""


class Delays:
    """Attempts at one key are checked one after another, each after the delay that the failures before it make.

    Cost: at most ``MAX_KNOWN`` entries; what failed longest ago is forgotten first.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Key, _Failures] = {}

    def reserve(self, key: Key) -> float | None:
        """The seconds that an attempt has to wait before it is checked. None: too many wait already."""
        found, now = self._known.get(key), self._clock()
        if found is None or now - found.last > FORGET_SECONDS:
            return 0.0
        wait = max(found.free - now, 0.0)
        if wait > QUEUE_SECONDS:
            return None
        found.free = now + wait + delay(found.count)
        return wait

    def failed(self, key: Key) -> None:
        """An attempt was checked, and was wrong."""
        found, now = self._known.pop(key, None), self._clock()
        if found is None or now - found.last > FORGET_SECONDS:
            found = _Failures(0, now, now)
        found.count, found.last = found.count + 1, now
        found.free = max(found.free, now + delay(found.count))
        self._known[key] = found
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]

    def passed(self, key: Key) -> None:
        """An attempt was right."""
        self._known.pop(key, None)


def delay(failures: int) -> float:
    """The seconds between two attempts after so many failures."""
    return min(FIRST_SECONDS * 2.0 ** min(failures - 1, 30), LONGEST_SECONDS) if failures else 0.0
