"""A load's rows on their way into a transaction; in a file if there are many."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ivm.errors import SqlError
from sql.catalog.keys import Check
from sql.engine.writer import Writer
from storage.load.collector import Few, SortedLoad


@dataclass(slots=True)
class Collected:
    """``checks``: the table's checks, which the rows have passed. The file belongs to whoever takes the rows first: the
    engine's job that adds them, or the statement that gives up."""

    rows: Few | SortedLoad
    checks: tuple[Check, ...] = ()
    _taken: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def entering(self, writer: Writer) -> Iterator[Few | SortedLoad]:
        """In this context, the rows may be added to a table. The file is kept if the writer has taken it, else removed.
        57014: the statement has given up."""
        if not self._taken.acquire(blocking=False):
            raise SqlError("57014", "canceling statement due to user request")
        try:
            yield self.rows
        except BaseException:
            self._remove()
            raise
        if isinstance(self.rows, SortedLoad) and all(update.file is not self.rows.file for update in writer.updates):
            self._remove()

    def give_up(self) -> None:
        """The statement has ended: remove the file if nobody has taken the rows."""
        if self._taken.acquire(blocking=False):
            self._remove()

    def _remove(self) -> None:
        if isinstance(self.rows, SortedLoad):
            self.rows.file.path.unlink(missing_ok=True)
