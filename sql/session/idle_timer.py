"""idle_in_transaction_session_timeout."""

from __future__ import annotations

import asyncio

from ivm.errors import SqlError
from sql.session.state import SessionState


class IdleTimer:
    """Rolls back the open transaction when its client has been silent for too long."""

    def __init__(self, session: SessionState) -> None:
        self._session = session
        self._timer: asyncio.TimerHandle | None = None
        self._error: SqlError | None = None

    @property
    def expired(self) -> bool:
        """Whether the client has been silent for too long, and has not been told yet."""
        return self._error is not None

    def start(self) -> None:
        """A message has been answered: the session waits for its client."""
        session = self._session
        session.copying = None
        if not session.in_block:
            return
        milliseconds = session.settings.milliseconds("idle_in_transaction_session_timeout")
        if milliseconds:
            self.cancel()
            self._timer = asyncio.get_running_loop().call_later(milliseconds / 1000, self._expire)

    def stop(self) -> None:
        """A message has arrived. 25P03: too late, the transaction has been rolled back."""
        self.cancel()
        if self._error is not None:
            raise self._error

    def cancel(self) -> None:
        """Stop waiting, without an error."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._error = SqlError("25P03", "terminating connection due to idle-in-transaction timeout")
        transaction, self._session.transaction = self._session.transaction, None
        if transaction is not None:
            self._ending = asyncio.ensure_future(transaction.rollback())
