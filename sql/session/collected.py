"""The rows of a load on their way into a transaction, and the file that has them where they are many."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ivm.errors import SqlError
from ivm.rows import Words
from sql.engine.writer import Writer
from storage.row_file import RowFile


@dataclass(slots=True)
class Collected:
    """``rows`` int64[n, width]. The file goes with the rows: whoever takes them first, the engine's job that adds them
    or the statement that gives up, decides about it."""

    rows: Words
    file: RowFile | None = None
    _taken: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def entering(self, writer: Writer) -> Iterator[Words]:
        """Inside, they may be added to a table; then the file is the writer's. 57014: the statement has given up."""
        if not self._taken.acquire(blocking=False):
            raise SqlError("57014", "canceling statement due to user request")
        try:
            yield self.rows
        except BaseException:
            self._remove()
            raise
        if self.file is not None:
            writer.keep_in(self.rows, self.file)

    def give_up(self) -> None:
        """The statement has ended: what nobody has taken goes."""
        if self._taken.acquire(blocking=False):
            self._remove()

    def _remove(self) -> None:
        if self.file is not None:
            self.file.path.unlink(missing_ok=True)
