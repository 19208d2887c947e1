"""Fast restarts: commits move into the store in the background, and the log is truncated.

The ``Applier`` takes batches of stepped commits (table and view deltas together) and applies them in bulk on its own
thread. It also drops history past its retention, checkpoints the store and cuts the log up to the checkpoint.
``recover`` reads it all back: the store, then the log after it.

Invariant: the log is cut only at a sequence number that a verified checkpoint contains.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ivm.errors import SqlError
from ivm.rows import Words
from storage.duck import Store
from storage.files import FatalStorageError
from storage.log import CommitLog
from storage.record import CommitRecord, Entries, SequenceMark, decode_record
from storage.row_file import remove_others
from storage.stored import WriteBatch, merge_batches

Retention = Callable[[int, int], int]
"""(relation, high water) → the epoch before which history is no longer needed. Called on the applier's thread."""


LAZY_SECONDS: Final = 0.1
"""At intervals of at least this length the applier polls instead of being notified of each batch. A notification would
hand it the GIL in the middle of a commit."""
VALUE_BYTES: Final = 64
"""So many bytes of values count as one update when it is asked whether to checkpoint: until then DuckDB holds them."""


@dataclass(frozen=True, slots=True)
class Pace:
    """When the applier works: it applies a batch after at most ``seconds``, or once ``rows`` updates wait.

    ``room``: the number of waiting updates (``WriteBatch.pressing``) above which ``wait_for_room`` blocks.
    ``transaction``: the maximum number of updates in one transaction (a single batch may exceed it).
    ``checkpoint_rows``, ``checkpoint_seconds``: the same thresholds for checkpoints. ``retry_seconds``: the pause after
    a transient error (out of memory, disk full). ``fold_seconds``: expired history is dropped in spans of at least this
    length.
    """

    rows: int = 100_000
    seconds: float = 1.0
    room: int = 4_000_000
    transaction: int = 2_000_000
    checkpoint_rows: int = 2_000_000
    checkpoint_seconds: float = 30.0
    retry_seconds: float = 1.0
    fold_seconds: float = 60.0


class Applier:
    """Applies batches to the store in the background, in order.

    ``on_error`` is called on the applier's thread: with a SqlError if the store refused (53200, 53100) and the batch
    will be retried, with any other exception if the applier has stopped for good. ``flush`` and ``close`` raise that
    exception.
    """

    def __init__(
        self,
        store: Store,
        log: CommitLog,
        on_error: Callable[[Exception], None],
        retention: Retention | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._store = store
        self._log = log
        self._on_error = on_error
        self._retention = retention
        self._pace = pace or Pace()
        self._changed = threading.Condition()
        self._waiting: deque[WriteBatch] = deque()
        self._waiting_size = 0
        self._pressing = 0
        """How many of the waiting updates count towards backpressure."""
        self._oldest = 0.0
        self._submitted = store.high_water()
        self._flushing = 0
        self._closing = False
        self._busy = False
        self._failure: Exception | None = None
        self._last_error: Exception | None = None
        self._unchecked = 0
        self._checkpointed = time.monotonic()
        self._checkpoint_wanted = False
        self._fold_after = 0.0
        self._touched: set[int] = set(store.relations())
        self._thread = threading.Thread(target=self._run, name="applier", daemon=True)
        self._thread.start()

    @property
    def high_water(self) -> int:
        """The epoch up to which the store is complete."""
        return self._store.high_water()

    @property
    def waiting(self) -> int:
        """The number of updates waiting."""
        return self._waiting_size

    @property
    def has_room(self) -> bool:
        """Whether ``wait_for_room`` would return at once."""
        return self._pressing < self._pace.room and self._failure is None

    def submit(self, batch: WriteBatch) -> None:
        """Queues the next batch. The caller must not change its arrays afterwards. Never blocks."""
        with self._changed:
            self._raise_failure()
            assert batch.high_water > self._submitted, "batches come in order of their epochs"
            self._submitted = batch.high_water
            if not self._waiting:
                self._oldest = time.monotonic()
            self._waiting.append(batch)
            self._waiting_size += batch.size
            self._pressing += batch.pressing
            if self._flushing or self._waiting_size >= self._pace.rows or self._pace.seconds < LAZY_SECONDS:
                self._changed.notify_all()

    def wait_for_room(self, timeout: float | None = None) -> bool:
        """Backpressure: blocks while too many updates wait in memory. False if the timeout expired first."""
        if self.has_room:
            return True
        with self._changed:
            room = self._changed.wait_for(lambda: self._pressing < self._pace.room or self._failure, timeout)
            self._raise_failure()
            return bool(room)

    def flush(self, checkpoint: bool = False) -> None:
        """Returns when everything submitted is in the store; with ``checkpoint`` also checkpointed and cut from the
        log.

        Raises the error that prevents it.
        """
        with self._changed:
            self._last_error = None
            self._flushing += 1
            self._checkpoint_wanted |= checkpoint
            self._changed.notify_all()
            try:
                self._changed.wait_for(lambda: self._failure or self._last_error or self._settled())
                self._raise_failure()
                if self._last_error is not None:
                    raise self._last_error
            finally:
                self._flushing -= 1

    def close(self, flush: bool = True) -> None:
        """Stops the thread; with ``flush`` after applying and checkpointing everything. The log keeps the rest."""
        try:
            if flush and self._failure is None:
                self.flush(checkpoint=True)
        finally:
            with self._changed:
                self._closing = True
                self._changed.notify_all()
            self._thread.join()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise FatalStorageError(f"commits cannot be moved into the store: {self._failure}") from self._failure

    def _settled(self) -> bool:
        return not (self._waiting or self._busy or self._checkpoint_wanted)

    def _pause(self) -> float | None:
        """Seconds until there is work: 0 for now, None to wait for a notification."""
        now = time.monotonic()
        if self._checkpoint_wanted:
            return 0.0
        if self._waiting:
            if self._flushing or self._waiting_size >= self._pace.rows:
                return 0.0
            return max(0.0, self._oldest + self._pace.seconds - now)
        if self._unchecked:
            return max(0.0, self._checkpointed + self._pace.checkpoint_seconds - now)
        return None

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._closing and (pause := self._pause()) != 0.0:
                    longest = max(self._pace.seconds, LAZY_SECONDS)
                    self._changed.wait(longest if pause is None else min(pause, longest))
                if self._closing:
                    return
                self._busy = True
            try:
                self._advance()
                self._rest()
            except SqlError as error:
                self._report(error)
                with self._changed:
                    self._changed.wait_for(lambda: self._closing, self._pace.retry_seconds)
            except Exception as error:  # the thread's last resort: nobody else would see the error
                with self._changed:
                    self._failure = error
                    self._changed.notify_all()
                self._on_error(error)
                return

    def _rest(self) -> None:
        with self._changed:
            self._busy = False
            self._changed.notify_all()

    def _report(self, error: SqlError) -> None:
        with self._changed:
            self._last_error = error
            self._busy = False
            self._changed.notify_all()
        self._on_error(error)

    def _next_batches(self) -> list[WriteBatch]:
        """The oldest batches that fit in one transaction. They stay queued until they are applied."""
        batches: list[WriteBatch] = []
        size = 0
        for batch in self._waiting:
            if batches and size + batch.size > self._pace.transaction:
                break
            batches.append(batch)
            size += batch.size
        return batches

    def _advance(self) -> None:
        """Holds no batch once it has returned."""
        with self._changed:
            batches = self._next_batches()
        if batches:
            merged = merge_batches(batches)
            self._store.apply(merged)
            for file in merged.files:
                file.unlink(missing_ok=True)
            self._touched |= merged.relations.keys()
            self._unchecked += 1 + merged.size + merged.entries.data.nbytes // VALUE_BYTES
            with self._changed:
                for _ in batches:
                    applied = self._waiting.popleft()
                    self._waiting_size -= applied.size
                    self._pressing -= applied.pressing
                self._oldest = time.monotonic()
                self._changed.notify_all()
            self._fold()
        due = time.monotonic() >= self._checkpointed + self._pace.checkpoint_seconds
        wanted = self._checkpoint_wanted and not self._waiting
        if wanted or (self._unchecked and (due or self._unchecked >= self._pace.checkpoint_rows)):
            self._checkpoint(wanted)

    def _fold(self) -> None:
        if self._retention is None or time.monotonic() < self._fold_after:
            return
        try:
            self._fold_touched(self._retention)
        except SqlError as error:  # keeping history longer is harmless: commits go on, and the log is cut
            self._fold_after = time.monotonic() + self._pace.fold_seconds
            self._on_error(error)

    def _fold_touched(self, retention: Retention) -> None:
        kept = self._store.relations()
        high_water = self._store.high_water()
        for relation in sorted(self._touched):
            if relation not in kept:
                self._touched.discard(relation)
                continue
            before = min(retention(relation, high_water), high_water)
            if before - self._store.since(relation) >= self._pace.fold_seconds * 1e6:
                self._store.forget(relation, before)
                if before == high_water:
                    self._touched.discard(relation)

    def _checkpoint(self, wanted: bool) -> None:
        sequence = self._store.checkpoint()
        self._unchecked = 0
        self._checkpointed = time.monotonic()
        if sequence:
            try:
                self._log.cut(sequence)
            except OSError as error:
                raise SqlError("58030", "old segments of the commit log cannot be removed", str(error)) from error
        with self._changed:
            if wanted:
                self._checkpoint_wanted = False
            self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class Recovered:
    """What recovery found: the store as of ``high_water``, and the log's commits after it, oldest first.

    ``relations``: the ids kept, with their widths in words. ``loads``: what is known of each commit's loads, by epoch,
    including the tail's. ``sequences``: the positions of sequences at the high water.
    """

    store: Store
    high_water: int
    catalog: bytes | None
    entries: Entries
    relations: dict[int, int]
    loads: dict[int, str]
    tail: tuple[tuple[int, CommitRecord], ...]
    sequences: tuple[SequenceMark, ...] = ()

    @property
    def last_epoch(self) -> int:
        """The newest commit's epoch, 0 if there is none."""
        return self.tail[-1][1].epoch if self.tail else self.high_water

    def rows(self, relation: int) -> tuple[Words, Words]:
        """A relation's rows at the high water, int64[n, width], and their diffs. Reads the store on each call."""
        return self.store.rows(relation, self.high_water)


def recover(store: Store, log: CommitLog, rows: Path = Path()) -> Recovered:
    """Recovers the committed state: the store, and every later log record with its sequence number.

    ``rows``: the folder of row files; those that no record names are deleted.

    Raises XX001 if the log does not continue where the store ends, or is damaged.
    """
    applied = store.log_sequence()
    if log.last < applied or log.first > applied + 1:
        raise SqlError(
            "XX001",
            f"the commit log holds the records {log.first} to {log.last}, but the store ends at record {applied}",
            detail="Commits between them are missing; the log and the store are not of one time.",
            hint="Restore the whole data folder from one backup.",
        )
    tail: list[tuple[int, CommitRecord]] = []
    epoch = store.high_water()
    loads = store.loads()
    for sequence, data in log.replay(applied):
        record = decode_record(data, rows)
        if record.epoch <= epoch:
            raise SqlError("XX001", f"log record {sequence} has epoch {record.epoch}, not after {epoch}")
        epoch = record.epoch
        if record.load is not None:
            loads[epoch] = record.load
        tail.append((sequence, record))
    remove_others(rows, (u.file.path for _, record in tail for u in record.updates if u.file is not None))
    return Recovered(
        store,
        store.high_water(),
        store.catalog(),
        store.dictionary(),
        store.relations(),
        loads,
        tuple(tail),
        store.sequences(),
    )
