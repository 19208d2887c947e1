"""Epochs: microseconds since 1970, strictly monotone, above every epoch that was ever read at or reported.

A commit's epoch is in the log, so a restart knows it. An epoch that was only read at (``AS OF now()``, a subscription's
progress) is not. For those the file ``lease`` holds a ceiling, raised ahead of use; after a restart epochs begin above
it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ivm.errors import SqlError
from storage.files import disk_error, replace_file

LEASE_AHEAD: Final = 2_000_000
"""µs by which the ceiling is raised. Small, because after a crash epochs begin at the ceiling, ahead of the wall
clock."""
POSTGRES_EPOCH: Final = 946_684_800_000_000
"""2000-01-01 in µs since 1970: the zero of timestamps."""


def wall_clock() -> int:
    """The wall clock in µs since 1970."""
    return time.time_ns() // 1000


def timestamp_now() -> int:
    """The wall clock in µs since 2000, as timestamps count."""
    return time.time_ns() // 1000 - POSTGRES_EPOCH


class EpochClock:
    """The one source of read and commit epochs. Used by the engine thread only (``now`` by any thread)."""

    def __init__(self, path: Path | None, source: Callable[[], int] = wall_clock) -> None:
        self._path = path
        self._source = source
        self._ceiling = _read_lease(path) if path is not None else 0
        self.last = self._ceiling

    def now(self) -> int:
        """The current epoch, never before one that was issued."""
        return max(self._source(), self.last)

    def advance(self, least: int = 0) -> int:
        """The next commit's epoch, not before ``least``."""
        self.last = max(self._source(), self.last + 1, least)
        return self.last

    def restore(self, epoch: int) -> None:
        """Record the epoch of a commit found in the log or the store."""
        self.last = max(self.last, epoch)

    def observe(self, epoch: int) -> None:
        """Record a read at this epoch: later commits get later epochs, even after a crash."""
        if epoch <= self.last:
            return
        if epoch > self._ceiling:
            self._raise(epoch + LEASE_AHEAD)
        self.last = epoch

    def close(self) -> None:
        """Orderly end: lower the ceiling to the last issued epoch."""
        if self._ceiling > self.last:
            self._raise(self.last)

    def _raise(self, ceiling: int) -> None:
        if self._path is not None:
            try:
                replace_file(self._path, str(ceiling))
            except OSError as error:
                raise disk_error(error, "the clock's lease cannot be written") from error
        self._ceiling = ceiling


def _read_lease(path: Path) -> int:
    try:
        return int(path.read_text())
    except FileNotFoundError:
        return 0
    except ValueError as error:
        raise SqlError("XX001", f"{path} is damaged: it holds no epoch",
                       hint="Without it, epochs that clients have seen could come again. Restore the data folder from "
                            "a backup, or delete the file if the clock is right.") from error  # fmt: skip
