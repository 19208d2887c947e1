"""The changes waiting for a subscription's client."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import RowSet, Vector, Words, pack, unpack
from ivm.words import BOOL, INT8, ColumnType, Schema
from planner.logical.nodes import schema as schema_of
from sql.statements.statements import Subscribe
from storage.stored import History

MOST_WAITING: Final = 4_000_000
"""The most rows that may wait for a slow client; then its subscription ends with 53200."""


@dataclass(frozen=True, slots=True)
class Progress:
    """All later changes have this epoch or a greater one."""

    epoch: int


class ChangeQueue:
    """Changes in order of arrival, and the subscription's progress. Used on the event loop only.

    ``up_to``: changes from this epoch on are left out; None: no limit.
    """

    def __init__(self, statement: Subscribe, up_to: int | None) -> None:
        self.up_to = up_to
        self.reached = 0
        """The epoch up to which all changes have been put in the queue."""
        self._statement = statement
        self._source = schema_of(statement.query.rel)
        self._waiting: deque[History | Progress] = deque()
        self._held: list[History] = []
        """Changes held back while the view's rows are unknown."""
        self._size = 0
        """The number of rows that are queued or held back."""
        self._arrived = asyncio.Event()
        self._error: SqlError | None = None
        self.closed = False
        """Set when nothing more will come."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self._waiting

    @property
    def quiet(self) -> bool:
        """Whether nothing waits or is held back, and more may come."""
        return not self._waiting and not self._held and not self.closed

    @property
    def schema(self) -> Schema:
        """The schema of the rows that ``take`` returns."""
        progress = (ColumnType(BOOL, False),) if self._statement.progress else ()
        columns = tuple(ColumnType(c.type, c.nullable or self._statement.progress) for c in self._source)
        return (ColumnType(INT8, False), *progress, ColumnType(INT8, self._statement.progress), *columns)

    def start(self, rows: Words, diffs: Words, epoch: int, *changes: History) -> None:
        """Put the snapshot, unless the statement wants none, and ``changes`` before what has arrived meanwhile."""
        came = list(self._waiting)
        self._waiting.clear()
        self._size = sum(len(held.rows) for held in self._held)
        if self._statement.snapshot:
            self._waiting.append(History(rows, np.full(len(rows), epoch, np.int64), diffs))
            self._size += len(rows)
        for change in (*changes, *came):
            self._put(change)

    def hold_back(self, history: History) -> None:
        """Take changes that the client gets only after the next ``release``."""
        self._held.append(history)
        self._count(len(history.rows))

    def release(self, epoch: int) -> None:
        """Queue the changes held back; all changes up to this epoch have arrived."""
        for item in self._held:
            self._size -= len(item.rows)
            self._put(item)
        self._held.clear()
        self.reach(epoch)

    def reach(self, epoch: int) -> None:
        """Record that all changes up to this epoch have arrived."""
        self.reached = max(self.reached, epoch)
        if self._statement.progress:
            self._put(Progress(self.reached + 1))
        if self.up_to is not None and self.reached + 1 >= self.up_to:
            self.closed = True
        self._arrived.set()

    def fail(self, error: SqlError) -> None:
        """End with an error, which ``take`` raises after the last row."""
        self._error = error
        self.closed = True

    def close(self) -> None:
        """End the queue and discard its rows."""
        self.closed = True
        self._waiting.clear()
        self._arrived.set()

    def wake(self) -> None:
        """Wake ``arrival``."""
        self._arrived.set()

    def _put(self, item: History | Progress) -> None:
        if isinstance(item, History):
            if self.up_to is not None:
                kept = item.epochs < self.up_to
                item = History(item.rows[kept], item.epochs[kept], item.diffs[kept])
            if not len(item.rows):
                return
            self._count(len(item.rows))
        self._waiting.append(item)
        self._arrived.set()

    def _count(self, rows: int) -> None:
        self._size += rows
        if self._size > MOST_WAITING:
            self.fail(SqlError("53200", "the subscription's client is too slow"))

    async def arrival(self, timeout: float | None) -> bool:
        """Wait for the next event; False if none has come within this many seconds, None: any number."""
        self._arrived.clear()
        if timeout is None:
            return await self._arrived.wait()
        try:
            await asyncio.wait_for(self._arrived.wait(), timeout)
        except TimeoutError:
            return False
        return True

    def take(self, count: int | None = None) -> RowSet:
        """The waiting rows, at most ``count``. Raises the subscription's error once all rows were taken."""
        if not self._waiting and self._error is not None:
            raise self._error
        parts: list[Words] = []
        left = 2**62 if count is None else count
        while self._waiting and left > 0:
            item = self._waiting.popleft()
            if isinstance(item, History) and len(item.rows) > left:
                rest = History(item.rows[left:], item.epochs[left:], item.diffs[left:])
                self._waiting.appendleft(rest)
                item = History(item.rows[:left], item.epochs[:left], item.diffs[:left])
            rows = self._progress(item) if isinstance(item, Progress) else self.rows(item)
            parts.append(rows)
            left -= len(rows)
            self._size -= len(rows) if isinstance(item, History) else 0
        empty = pack([Vector(np.zeros(0, np.int64))] * len(self.schema), self.schema, 0)
        return RowSet(np.concatenate(parts) if parts else empty, self.schema)

    def _progress(self, item: Progress) -> Words:
        schema = self.schema
        null = Vector(np.zeros(1, np.int64), np.ones(1, np.bool_))
        given = [Vector(np.array([item.epoch])), Vector(np.ones(1, np.int64))]
        return pack(given + [null] * (len(schema) - 2), schema, 1)

    def rows(self, changes: History) -> Words:
        """Changes as rows of ``schema``, in the order of their epochs."""
        order = np.argsort(changes.epochs, kind="stable")
        count = len(order)
        progressed = [Vector(np.zeros(count, np.int64))] if self._statement.progress else []
        columns = unpack(changes.rows[order], self._source)
        given = [Vector(changes.epochs[order]), *progressed, Vector(changes.diffs[order]), *columns]
        return pack(given, self.schema, count)
