"""Waits until nobody uses a database, as PostgreSQL does before it drops, renames or copies one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError
from sql.catalog.roles import SIGNAL_BACKEND
from sql.coordination.sessions import OpenSession
from sql.ddl.acting import Actor

PATIENCE_SECONDS: Final = 5.0
"""A client that has just left may still be ending its session."""
LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Leaving:
    """``users``: asks who uses the database; ``message``: of the error if they stay; ``own``: how many of them may."""

    users: Callable[[], list[OpenSession]]
    message: str
    own: int = 0

    async def wait(self) -> None:
        """Return when nobody is left. Raises 55006 after ``PATIENCE_SECONDS``."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_SECONDS
        while (left := len(self.users()) - self.own) > 0:
            if loop.time() >= until:
                others = "is 1 other session" if left == 1 else f"are {left} other sessions"
                raise SqlError("55006", self.message, f"There {others} using the database.")
            await asyncio.sleep(LOOK_SECONDS)


def check_signals(actor: Actor, sessions: Iterable[OpenSession]) -> None:
    """Raises 42501 where the role may not end one of these sessions."""
    access, role = actor.access, actor.role
    if access.is_superuser(role):
        return
    for session in sessions:
        other = session.info().role
        if access.is_superuser(other):
            raise SqlError("42501", "must be a superuser to terminate superuser process")
        if not access.may_act_as(role, other) and not access.may_act_as(role, SIGNAL_BACKEND):
            message = "must be a member of the role whose process is being terminated or member of pg_signal_backend"
            raise SqlError("42501", message)
