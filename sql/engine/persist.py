"""The data folder: the commit log (write-ahead log), the store, and the applier that moves commits from one to the
other."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Final

from ivm.errors import SqlError
from sql.catalog.catalog import STORED, Catalog, Relation, RelationKind
from sql.catalog.sink import sink_of, source_of
from sql.engine.clock import EpochClock
from storage.checkpoint import Applier, Pace, Recovered, recover
from storage.duck import Store
from storage.files import DiskError, Files, check_folder, lock_folder
from storage.log import SEGMENT_BYTES, CommitLog
from storage.record import CommitRecord, encode_record
from storage.row_file import FOLDER
from storage.stored import StoredRelation, WriteBatch, errors_of, owner_of

DEFAULT_RETAIN: Final = 3_600_000_000
"""The default of RETAIN HISTORY, in µs."""
MAX_RECORD_BYTES: Final = 3 << 30
RESERVED_BYTES: Final = 8 << 20
"""What commits leave free on the disk, for the store and the log of the commits under way."""
AMPLE_BYTES: Final = 64 << 20
SMALL_BYTES: Final = 1 << 16
ASKED_SECONDS: Final = 0.05
"""While more than ``AMPLE_BYTES`` are free, small commits do not ask the disk again for so long."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How a data folder is written; tests inject a disk of their own and lower the thresholds."""

    disk: Files | None = None
    pace: Pace = Pace()  # noqa: RUF009 - frozen
    segment_bytes: int = SEGMENT_BYTES


@dataclass(slots=True)
class Persistence:
    """Makes commits durable (``write``) and moves stepped ones into the store (``apply``).

    ``refusal``: why the store currently accepts nothing more (53200, 53100); writes are refused while it is set.
    """

    folder: Path
    lock: int
    log: CommitLog
    store: Store
    recovered: Recovered
    tuning: Tuning
    catalog: Catalog = field(default_factory=Catalog)
    clock: EpochClock | None = None
    refusal: SqlError | None = None
    holds: dict[int, int] = field(default_factory=dict)
    """By sink: the epoch up to which it has written everything. A sink that is missing here has written nothing."""
    _sinks: tuple[Catalog | None, dict[int, list[tuple[int, int]]]] = field(default_factory=lambda: (None, {}))
    needed: Mapping[int, int] = field(default_factory=dict)
    """By relation id: the epoch from which on its updates are still needed."""
    returned: int = 0
    """The epoch of the newest batch with views that lagged. Until it is applied, the store is not complete at earlier
    epochs either."""
    _applier: Applier | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _free: tuple[float, int] = (0.0, 0)
    """What was free on the disk, and when."""

    @classmethod
    def open(cls, folder: Path, memory_bytes: int, tuning: Tuning | None = None) -> Persistence:
        """Lock and read a data folder. 55006: another server uses it; 55000: it is none; XX001: it is damaged."""
        check_folder(folder)
        tuning = tuning or Tuning()
        with ExitStack() as opened:  # closed again if the rest fails
            lock = lock_folder(folder)
            opened.callback(os.close, lock)
            log = opened.enter_context(closing(CommitLog.open(folder / "log", tuning.disk, tuning.segment_bytes)))
            store = opened.enter_context(closing(Store.open(folder, memory_bytes)))
            found = cls(folder, lock, log, store, recover(store, log, folder / FOLDER), tuning)
            opened.pop_all()
        return found

    def start(self) -> None:
        """Start the applier. Call it when recovery has been prepared."""
        self._applier = Applier(self.store, self.log, self._failed, self._retention, self.tuning.pace)

    @property
    def row_files(self) -> Path:
        """The folder for rows of large loads that the store does not have yet."""
        return self.folder / FOLDER

    @property
    def applied_epoch(self) -> int:
        """The epoch up to which the store has everything."""
        return self.store.high_water()

    def begin_write(self, records: Sequence[CommitRecord]) -> None:
        """Write the records and start to sync them in the background."""
        for record in records:
            self.log.append(encode_record(record))
        self.log.start()

    def is_written(self, until: float) -> bool:
        """Whether the write begun is durable by ``until`` (``perf_counter``), as far as can be known without a
        thread."""
        return until == math.inf or self.log.is_synced(until)

    def end_write(self) -> int:
        """Wait until the records are durable; the sequence number of the last one."""
        return self.log.sync()

    def write(self, records: Sequence[CommitRecord]) -> int:
        """``begin_write`` and ``end_write``, on a thread of its own, for records that take long to write."""
        self.begin_write(records)
        return self.end_write()

    def apply(self, batch: WriteBatch, catalog: Catalog) -> None:
        """Hand a published group to the applier; blocks while its backlog is too large."""
        assert self._applier is not None, "started"
        self.catalog = catalog
        if batch.caught_up:
            self.returned = batch.high_water
        self._applier.submit(batch)
        if self.refusal is None:
            self._applier.wait_for_room(60.0)

    @property
    def has_room(self) -> bool:
        """Whether ``apply`` would not block."""
        return self.refusal is None and self._applier is not None and self._applier.has_room

    def check_disk(self, nbytes: int) -> None:
        """53100: after so many bytes there would be less than ``RESERVED_BYTES`` left on the disk. So a write hardly
        ever fails, and reads, small and large, can still be served."""
        asked, free = self._free
        now = monotonic()
        if now - asked > ASKED_SECONDS or free < AMPLE_BYTES or nbytes > SMALL_BYTES:
            free = self.log.free
            self._free = now, free
        if free < nbytes + RESERVED_BYTES:
            detail = f"{free >> 20} MiB are free in {self.folder}, of which {RESERVED_BYTES >> 20} MiB are kept."
            raise DiskError("53100", "the disk is full", detail, "Free space: the server writes again by itself.")

    def check_room(self, nbytes: int = 0) -> None:
        """Raise ``refusal``, if it is set. 53100, as ``check_disk``."""
        self.check_disk(nbytes)
        if self.refusal is None:
            return
        with self._guard:
            if self.refusal is not None and self._applier is not None and self._applier.waiting:
                raise self.refusal
            self.refusal = None

    def flush(self, checkpoint: bool = False) -> None:
        """Wait until everything submitted is in the store; with ``checkpoint``, in its file."""
        assert self._applier is not None, "started"
        self._applier.flush(checkpoint)

    def retention(self, relation: int) -> int:
        """The epoch up to which nobody needs a relation's history."""
        return self._retention(relation, self.store.high_water())

    def forget(self) -> None:
        """Drop history that nobody retains, and the rows that existed only in it."""
        water = self.store.high_water()
        for relation in self.store.relations():
            self.store.forget(relation, self._retention(relation, water), whole=True)

    def close(self) -> None:
        """An orderly end: everything is applied, checkpointed and closed."""
        try:
            if self._applier is not None:
                self._applier.close()
        finally:
            self.log.close()
            self.store.close()
            os.close(self.lock)

    def _retention(self, relation: int, high_water: int) -> int:
        relation = owner_of(relation)
        known = self.catalog.by_id(relation)
        retain = DEFAULT_RETAIN if known is None or known.retain == 0 else known.retain
        now = high_water if self.clock is None else self.clock.now()
        held = (max(self.holds.get(sink, 0), now - longest) for sink, longest in self._readers(relation))
        return min(high_water, now - retain, *held, self.needed.get(relation, high_water))

    def _readers(self, relation: int) -> list[tuple[int, int]]:
        """The sinks that read a relation, each with the µs of history that it may hold."""
        catalog, readers = self._sinks
        if catalog is not self.catalog:
            catalog, readers = self.catalog, {}
            for sink in (r for r in catalog.relations.values() if r.kind is RelationKind.SINK):
                readers.setdefault(source_of(sink), []).append((sink.id, sink_of(sink).retain))
            self._sinks = catalog, readers
        return readers.get(relation, [])

    def _failed(self, error: Exception) -> None:
        if isinstance(error, SqlError):
            with self._guard:
                self.refusal = error
            print(f"freshet: the store refuses: {error}", file=sys.stderr, flush=True)
            return
        print(f"freshet: the store failed: {error}", file=sys.stderr, flush=True)
        os._exit(70)


def created_relations(before: Mapping[int, Relation], after: Mapping[int, Relation]) -> tuple[StoredRelation, ...]:
    """The relations that a change of the catalog adds to the store."""
    return tuple(stored_relation(r) for i, r in after.items() if i not in before and _is_stored(r))


def dropped_relations(before: Mapping[int, Relation], after: Mapping[int, Relation]) -> tuple[int, ...]:
    """The relations that a change of the catalog removes from the store."""
    gone = [r for i, r in before.items() if i not in after and _is_stored(r)]
    return tuple(i for r in gone for i in (r.id, errors_of(r.id), *r.locks))


def stored_relation(relation: Relation) -> StoredRelation:
    return StoredRelation(
        relation.id, relation.schema, f"{relation.schema_name}.{relation.name}", tuple(c.name for c in relation.columns)
    )


def _is_stored(relation: Relation) -> bool:
    return relation.kind in STORED and not relation.parts
