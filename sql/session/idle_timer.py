"""idle_in_transaction_session_timeout."""

from __future__ import annotations

import asyncio

from ivm.errors import SqlError
from sql.session.state import SessionState


class IdleTimer:
    """Rolls back the open transaction when its client has been silent for too long.

    One timer runs as long as the client is not silent for its time: statements only note when they began and ended.
    """

    def __init__(self, session: SessionState) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._until: float | None = None
        """When the client will have been silent for too long; None while it is waited on."""
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
            self._until = until = self._loop.time() + milliseconds / 1000
            if self._timer is None or self._timer.when() > until:
                self._set(until)

    def _set(self, until: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(until, self._look)

    def stop(self) -> None:
        """A message has arrived. 25P03: too late, the transaction has been rolled back."""
        self._until = None
        if self._error is not None:
            raise self._error

    def cancel(self) -> None:
        """Stop waiting, without an error."""
        self._until = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._until is None:
            return
        if self._loop.time() < self._until:
            self._set(self._until)
            return
        self._until = None
        self._error = SqlError("25P03", "terminating connection due to idle-in-transaction timeout")
        transaction, self._session.transaction = self._session.transaction, None
        if transaction is not None:
            self._ending = asyncio.ensure_future(transaction.rollback())
