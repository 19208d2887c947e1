"""How many rows executors have read: each task writes its count to a file in the load's folder; the server sums them.

This works the same with every kind of Spark (a Connect session has no accumulators). A retried task overwrites its
file, so that no row counts twice.
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
    """Called on an executor: reports how many rows this task has read so far."""
    Path(folder, task_name() + _END).write_bytes(rows.to_bytes(_BYTES))


def rows_read(folder: Path) -> int:
    """The total read by all tasks."""
    counts = [path.read_bytes() for path in folder.glob("*" + _END)]
    # any other length is still being written
    return sum(int.from_bytes(rows) for rows in counts if len(rows) == _BYTES)


@contextmanager
def watched(folder: Path, tell: Callable[[int], object]) -> Iterator[None]:
    """Within the context, and once at its end, calls ``tell`` with the number of rows read, on another thread."""
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
