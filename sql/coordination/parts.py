"""Work that the engine's thread does in parts, between which it does other jobs.

The work has a thread of its own, which runs only while a job of the engine's thread waits for it. So one thread at a
time uses the engine, and the work may stop at any place, with all that it was about to do on its stack.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

from ivm.budget import Budget
from ivm.errors import SqlError
from ivm.stops import Stop, Stopped, stoppable

T = TypeVar("T")
_GO_ON: Final = None


class Parts(Generic[T]):
    """``cancel``: ends the work, as it does a job; ``budget``: what it takes memory from.

    ``result``: what the work has returned, once it has ``ended``.
    """

    def __init__(self, work: Callable[[], T], cancel: Stop, budget: Budget) -> None:
        self.ended = False
        self.result: T | None = None
        self._error: BaseException | None = None
        self._given: SimpleQueue[Exception | None] = SimpleQueue()
        self._told: SimpleQueue[object] = SimpleQueue()
        self._work = work
        self._limits = stoppable(cancel, budget)
        self._thread = threading.Thread(target=copy_context().run, args=(self._run,), name="routine", daemon=True)

    @property
    def ident(self) -> int | None:
        """The thread's identifier, once the work has begun."""
        return self._thread.ident

    def go_on(self, error: SqlError | None = None) -> object:
        """Begin, or go on where ``rest`` was called, which raises this error: what it was given, None at the end. On
        the thread that lends the engine. Raises the work's error."""
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._given.put(error)
        return self._answer()

    def stop(self, error: SqlError) -> None:
        """End the work where it is, with an error that none of its handlers catches."""
        if self._thread.ident is not None and not self.ended:
            self._given.put(Stopped(error))
            with suppress(SqlError):
                self._answer()
            assert self.ended, "nothing catches it"

    def rest(self, reason: object) -> None:
        """End a part, on the work's own thread. Raises what ``go_on`` and ``stop`` were given."""
        self._told.put(reason)
        given = self._given.get()
        if given is not _GO_ON:
            raise given

    def _answer(self) -> object:
        told = self._told.get()
        if not self.ended:
            return told
        self._thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error
        return None

    def _run(self) -> None:
        try:
            with self._limits:
                self.result = self._work()
        except BaseException as error:
            self._error = error.with_traceback(None)
        del self._work  # it refers to what refers to this
        self.ended = True
        self._told.put(None)
