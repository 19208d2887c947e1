"""Interrupts of a session's running statement: a cancel, a signal, or a timeout."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ivm.errors import SqlError


class Interrupts:
    """One session's interrupts. Used on the event loop only."""

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        """The task inside ``interruptible``."""
        self._error: SqlError | None = None
        self._timer: asyncio.TimerHandle | None = None
        """The time limit of a statement that goes on after its first answer."""

    @property
    def running(self) -> bool:
        """Whether something interruptible is running."""
        return self._task is not None

    def interrupt(self, error: SqlError) -> None:
        """End the running statement with an error. If nothing runs, the next ``interruptible`` raises it."""
        if self._error is None:
            self._error = error
            if self._task is not None:
                self._task.cancel()

    def forget(self) -> None:
        """Discard an interrupt meant for an earlier statement, and its time limit: a new one begins."""
        self._error = None
        self.unlimit()

    def forgiven(self) -> bool:
        """Whether the CancelledError that has just been caught was an interrupt, which has then had its effect."""
        error, self._error = self._error, None
        task = asyncio.current_task()
        if error is not None and task is not None:
            task.uncancel()
        return error is not None

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """In this context, ``interrupt`` ends the current ``await`` with its SqlError."""
        if self._error is not None:
            raise self._taken()
        self._task = asyncio.current_task()
        try:
            yield
        except asyncio.CancelledError:
            raise self._interruption() from None
        finally:
            self._task = None

    def _taken(self) -> SqlError:
        """The interrupt, once. No variable of a frame that it passes holds it: it would refer to itself, and keep all
        that the statement held."""
        error, self._error = self._error, None
        assert error is not None, "an interrupt"
        return error

    def _interruption(self) -> BaseException:
        """The error that a CancelledError stands for: an interrupt, or the end of the connection's task."""
        error, self._error = self._error, None
        if error is None:
            return asyncio.CancelledError()
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        return error

    @contextmanager
    def limited(self, milliseconds: int) -> Iterator[None]:
        """57014 if the code in this context takes longer; 0: no limit."""
        if not milliseconds:
            yield
            return
        timer = self._timer_of(milliseconds)
        try:
            yield
        finally:
            timer.cancel()

    def limit(self, milliseconds: int) -> None:
        """57014 if the statement takes longer after its first answer, until ``unlimit``; 0: no limit."""
        self.unlimit()
        self._timer = self._timer_of(milliseconds) if milliseconds else None

    def unlimit(self) -> None:
        """What ``limit`` was for has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _timer_of(self, milliseconds: int) -> asyncio.TimerHandle:
        # no variable holds the error, as in _taken
        return asyncio.get_running_loop().call_later(
            milliseconds / 1000, self.interrupt, SqlError("57014", "canceling statement due to statement timeout")
        )
