"""A watchdog for steps of the dataflow that do not end.

One INSERT may close a cycle under a recursive view, so that it never reaches its fixpoint; by then the commit is
durable. So a commit's step is interrupted when its loops exceed their time limit. The views that depend on the loop are
taken down with an error; all others continue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ivm.errors import SqlError

STEP_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.25


class Watch:
    """Interrupts steps through ``interrupt``; ``reason`` then tells why, for the error of the views taken down.

    A thread checks every ``POLL_SECONDS``, so that a short step costs only two assignments.
    """

    def __init__(self, interrupt: threading.Event) -> None:
        self._interrupt = interrupt
        self._current: float | None = None
        """The step's deadline, in monotonic seconds."""
        self._stopped = threading.Event()
        self.reason: SqlError | None = None
        self.seconds = STEP_SECONDS
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    @contextmanager
    def over(self, seconds: float | None = None) -> Iterator[None]:
        """Watch the code in this context."""
        self.reason = None
        self._current = time.monotonic() + (self.seconds if seconds is None else seconds)
        try:
            yield
        finally:
            self._current = None
            if self.reason is not None:
                self._interrupt.clear()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(POLL_SECONDS):
            current = self._current
            if current is not None and time.monotonic() > current:
                self._interrupt_with(SqlError("54001", "the step did not end in time"))

    def _interrupt_with(self, reason: SqlError) -> None:
        self.reason = reason
        if self._current is not None:
            self._interrupt.set()
