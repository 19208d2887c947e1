"""How many rows executors have read of a load: each task says so in a file of the load's folder; the server adds up.

This is the same with every Spark (a Connect session has no accumulators), and a task that is tried again begins its
file anew, so that no row counts twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from storage.spark.session import task_name

LOOK_SECONDS: Final = 0.5
_END: Final = ".read"
_BYTES: Final = 8


def tell_read(folder: str, rows: int) -> None:
    """On an executor: this task has read so many rows by now."""
    Path(folder, task_name() + _END).write_bytes(rows.to_bytes(_BYTES))


def rows_read(folder: Path) -> int:
    """What all tasks have read."""
    told = [path.read_bytes() for path in folder.glob("*" + _END)]
    return sum(int.from_bytes(rows) for rows in told if len(rows) == _BYTES)  # else it is being written


@contextmanager
def watched(folder: Path, tell: Callable[[int], object]) -> Iterator[None]:
    """While inside, and at the end of it, ``tell`` gets what has been read, on another thread."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_SECONDS):
            tell(rows_read(folder))

    looking = threading.Thread(target=look, name="progress", daemon=True)
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join()
        tell(rows_read(folder))
