"""Cancellation of work on another thread, and of the blocking calls that it waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ivm.errors import SqlError

AGAIN_SECONDS: Final = 0.3


class Cancel:
    """A cancellation flag. ``set`` may be called repeatedly and from any thread; the work calls ``check`` regularly."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._guard = threading.Lock()
        self._stops: list[Callable[[], object]] = []

    def set(self) -> None:
        """Requests cancellation, and interrupts the blocking call that the work is in."""
        if not self._event.is_set():
            self._event.set()
            threading.Thread(target=self._insist, name="cancel", daemon=True).start()

    def check(self) -> None:
        """Raises 57014 if cancellation was requested."""
        if self._event.is_set():
            raise SqlError("57014", "canceling statement due to user request")

    @contextmanager
    def stopping(self, stop: Callable[[], object]) -> Iterator[None]:
        """Within the context, a cancellation calls ``stop`` to interrupt what the work waits for. It is called
        repeatedly, since a first call may come before there is anything to stop. After a cancellation an error raised
        inside becomes 57014."""
        self.check()
        with self._guard:
            self._stops.append(stop)
        try:
            yield
        except Exception:
            self.check()
            raise
        finally:
            with self._guard:
                self._stops.remove(stop)

    def _insist(self) -> None:
        while True:
            with self._guard:
                if not self._stops:
                    return
                for stop in self._stops:
                    stop()
            threading.Event().wait(AGAIN_SECONDS)
