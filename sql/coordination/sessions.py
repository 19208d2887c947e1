"""The interface of an open session for the server and other sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sql.system.state import CopyInfo, SessionInfo


class OpenSession(Protocol):
    """An entry of ``Coordinator.sessions``. ``sql.session.session.Session``, a layer above, implements it."""

    @property
    def backend_id(self) -> int: ...

    @property
    def internal(self) -> bool:
        """Whether it is one of the server's own, and not a client's."""

    @property
    def copying(self) -> Callable[[], CopyInfo] | None:
        """Reports the progress of the session's running COPY; None if none runs."""

    def info(self) -> SessionInfo:
        """The session's row of pg_stat_activity."""

    def signal(self, terminate: bool) -> None:
        """Cancel what the session runs, or (``terminate``) end the session. May be called on any thread."""

    async def close(self) -> None:
        """Roll back and free what the session holds."""
