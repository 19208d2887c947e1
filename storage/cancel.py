"""A request to stop that reaches work on another thread, and what that work waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ivm.errors import SqlError

AGAIN_SECONDS: Final = 0.3


class Cancel:
    """``set`` may be called from any thread, and more than once; the work calls ``check`` now and then."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._guard = threading.Lock()
        self._stops: list[Callable[[], object]] = []

    def set(self) -> None:
        """Ask for the end; what the work waits for is stopped until the work no longer waits for it."""
        if not self._event.is_set():
            self._event.set()
            threading.Thread(target=self._insist, name="cancel", daemon=True).start()

    def check(self) -> None:
        """Raises 57014 when the end was asked for."""
        if self._event.is_set():
            raise SqlError("57014", "canceling statement due to user request")

    @contextmanager
    def stopping(self, stop: Callable[[], object]) -> Iterator[None]:
        """While inside, ``stop`` makes what the work waits for end; it is called again and again, since a first call
        may come before there is anything to stop. An error inside is 57014 once the end was asked for."""
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
