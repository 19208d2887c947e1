"""Collects a load's rows, from the batches that a reader yields to what a commit takes; runs beside the server's
engine.

Few rows are kept as they came. Many are sorted into runs in the order of the table's own arrangement, and the runs are
merged into a file. The file makes the rows durable (``storage.row_file``), and the engine reads from it afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from ivm.rows import Words
from ivm.trace.batch import Batch
from storage.row_file import FROM_ROWS, RowFile, RowWriter, scratch_rows
from storage.sorted_rows import Run, is_ascending, merged, sorted_run

_RUN: Final = 1 << 20
"""The number of rows that are sorted, or merged, at a time."""


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The sort order of a table's own arrangement: columns in the order ``words``, of which the first ``width`` are the
    key."""

    words: tuple[int, ...]
    width: int

    @property
    def is_plain(self) -> bool:
        """Whether the arrangement keeps the table's column order."""
        return self.words == tuple(range(len(self.words)))

    def arranged(self, rows: Words) -> Words:
        """The table's rows in the arrangement's column order."""
        return rows if self.is_plain else np.take(rows, self.words, axis=1)

    def restored(self, rows: Words) -> Words:
        """The inverse of ``arranged``."""
        return rows if self.is_plain else np.take(rows, np.argsort(self.words), axis=1)


@dataclass(frozen=True, slots=True)
class Few:
    """A small load: ``rows`` int64[n, width], as they came."""

    rows: Words

    @property
    def count(self) -> int:
        return len(self.rows)

    def whole(self) -> Words:
        """All rows, duplicates included."""
        return self.rows


@dataclass(frozen=True, slots=True)
class SortedLoad:
    """A large load: ``rows`` int64[n, width], distinct, in the arrangement's order, stored in ``file``. ``batch``: the
    same rows, arranged.

    ``more``: duplicate rows, with how often they occur beyond the first. ``twice``: a row whose key another row has
    too, or None.
    """

    order: KeyOrder
    rows: Words
    file: RowFile
    batch: Batch
    more: Run
    twice: Words | None
    count: int

    def whole(self) -> Words:
        """All rows, duplicates included, in memory."""
        return np.concatenate([self.rows, np.repeat(self.more.rows, self.more.times, axis=0)])


class RowCollector:
    """Takes rows batch by batch. ``folder``: for files; None if there is no data folder, and all rows stay in
    memory."""

    def __init__(self, folder: Path | None, order: KeyOrder, limit: int = FROM_ROWS, run: int = _RUN) -> None:
        """``limit``: up to this many rows count as few. ``run``: rows per sorted run."""
        self._folder, self._order, self._limit, self._run = folder, order, limit, run
        self._parts: list[Run] = []
        self._held = 0
        self._runs: list[Run] = []
        self.count = 0

    def add(self, rows: Words, counts: Words | None = None) -> None:
        """Adds rows int64[n, width]; ``counts``: how often each occurs."""
        self.count += len(rows) if counts is None else int(counts.sum())
        if self._folder is None:
            self._parts.append(Run(rows, counts))
        elif 4 * len(rows) >= self._run and self._order.is_plain and is_ascending(rows):
            self._runs.append(Run(rows, counts))  # sorted by executors, in files
        else:
            self._parts.append(Run(rows, counts))
            self._held += len(rows)
            if self._held >= self._run and self.count > self._limit:
                self._end_run(self._folder)

    def _end_run(self, folder: Path) -> None:
        if not self._parts:
            return
        rows = self._order.arranged(np.concatenate([part.rows for part in self._parts]))
        counted = any(part.counts is not None for part in self._parts)
        run = sorted_run(rows, np.concatenate([part.times for part in self._parts]) if counted else None)
        self._parts.clear()
        self._held = 0
        self._runs.append(Run(scratch_rows(folder, run.rows), run.counts))

    def finish(self, check: Callable[[], None] = lambda: None) -> Few | SortedLoad:
        """All rows, durable if written to a file. ``check`` is called regularly and may raise. Raises 53100."""
        if self._folder is None or self.count <= self._limit:
            return Few(self._whole())
        self._end_run(self._folder)
        out = RowWriter(self._folder, len(self._order.words))
        try:
            more, twice = self._merge(out, check)
            file = out.finish()
        except BaseException:
            out.discard()
            raise
        rows = file.rows()
        arranged = rows if self._order.is_plain else scratch_rows(self._folder, self._order.arranged(rows))
        batch = Batch.of_rows(arranged, fenced=rows.shape[1] > 0)
        return SortedLoad(self._order, rows, file, batch, more, twice, self.count)

    def _whole(self) -> Words:
        width = len(self._order.words)
        parts = [(run.rows, run.counts) for run in self._parts] + [
            (self._order.restored(run.rows), run.counts) for run in self._runs
        ]
        if len(parts) == 1 and parts[0][1] is None:
            return parts[0][0]
        each = [rows if counts is None else np.repeat(rows, counts, axis=0) for rows, counts in parts]
        return np.concatenate([np.zeros((0, width), np.int64), *each])

    def _merge(self, out: RowWriter, check: Callable[[], None]) -> tuple[Run, Words | None]:
        """Writes the distinct rows. Returns the duplicates, and a row whose key occurs twice."""
        width = self._order.width
        more: list[Run] = []
        keys = _Keys(width, len(self._order.words))
        for rows, counts in merged(self._runs, self._run):
            check()
            keys.look(rows)
            restored = self._order.restored(rows)
            out.write(restored)
            if counts is not None and (counts > 1).any():
                again = counts > 1
                more.append(Run(restored[again], counts[again] - 1))
        self._runs.clear()
        none = Run(np.zeros((0, len(self._order.words)), np.int64), np.zeros(0, np.int64))
        if more:
            none = Run(np.concatenate([run.rows for run in more]), np.concatenate([run.times for run in more]))
        twice = keys.twice if keys.twice is None else self._order.restored(keys.twice.reshape(1, -1))[0]
        return none, twice


@dataclass(slots=True)
class _Keys:
    """Finds a duplicate key (the first ``key_width`` words) among ascending rows of ``width`` words."""

    key_width: int
    width: int
    twice: Words | None = None
    _last: Words | None = field(default=None)

    def look(self, rows: Words) -> None:
        if self.twice is not None or self.key_width == self.width or not len(rows):
            return
        if self._last is not None and (self._last[: self.key_width] == rows[0, : self.key_width]).all():
            self.twice = rows[0].copy()
            return
        alike = np.ones(len(rows) - 1, np.bool_)
        for i in range(self.key_width):
            alike &= rows[1:, i] == rows[:-1, i]
        if alike.any():
            self.twice = rows[1 + int(np.argmax(alike))].copy()
        self._last = rows[-1].copy()
