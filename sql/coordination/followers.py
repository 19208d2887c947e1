"""Who follows the changes of relations as they are committed: subscriptions.

The thread that publishes a group of commits hands it over once, however many followers there are; the event loop passes
it on. Followers that write the same changes in the same form share the bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Final

from ivm.rows import Words
from sql.engine.engine import Engine
from sql.engine.group import Delta
from sql.engine.snapshot import Published

Follower = Callable[[Delta, Published], None]
"""Called on the event loop for each published group."""
SHARED: Final = 256
"""The most texts of changes that are kept until the next group."""


class Followers:
    """Made on the event loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._since: dict[Follower, int] = {}
        """For each follower the ordinal after which it is told."""
        self._written: dict[tuple[int, Hashable], tuple[Words, bytes]] = {}
        engine.listeners.append(self._published)

    def add(self, follower: Follower) -> None:
        """Tell a follower of all groups after the published one. On the thread that owns the engine."""
        self._since[follower] = self._engine.published.ordinal

    def remove(self, follower: Follower) -> bool:
        """Tell it nothing more; whether it was told until now. On any thread."""
        return self._since.pop(follower, None) is not None

    def _published(self, delta: Delta, published: Published) -> None:
        if self._since:
            self._loop.call_soon_threadsafe(self._tell, delta, published)

    def _tell(self, delta: Delta, published: Published) -> None:
        self._written.clear()
        for follower, since in tuple(self._since.items()):
            if published.ordinal > since:
                follower(delta, published)

    def written(self, changes: Words, form: Hashable, write: Callable[[], bytes]) -> bytes:
        """The bytes of some changes in a form, which the first of their followers writes. ``changes``: the array that
        all of them got."""
        key = id(changes), form
        found = self._written.get(key)
        if found is not None and found[0] is changes:
            return found[1]
        made = write()
        if len(self._written) < SHARED:
            self._written[key] = changes, made
        return made
