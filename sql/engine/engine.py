"""The engine: groups of commits (group commit). Everything here runs on the thread that owns the engine at the moment.

A *writer* (``writer.py``) feeds one transaction's changes at the next ordinal. ``commit`` gives it an epoch and adds it
to the group. ``flush`` ends the group: its records go to the log in one write and one sync while the dataflow steps all
of its epochs together; then the root is published. No commit is acknowledged before that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from ivm.distinct import distinct
from ivm.errors import SqlError
from ivm.graph import NodeId
from ivm.moments import NEVER
from ivm.rows import Words
from sql.catalog.access import Access
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.sequences import Sequences
from sql.catalog.stored_form import catalog_to_json
from sql.engine.clock import EpochClock
from sql.engine.entering import Entering
from sql.engine.failing import Failing
from sql.engine.group import CommitGroup, Delta, preceded
from sql.engine.guard import Bound
from sql.engine.loads import Load, Loads, loads_text
from sql.engine.persist import MAX_RECORD_BYTES, Persistence, created_relations, dropped_relations, stored_relation
from sql.engine.read_set import RecentCommits
from sql.engine.row_locks import whole
from sql.engine.snapshot import Published
from sql.engine.state import EngineState
from storage.dictionary import Dictionary
from storage.files import DiskError
from storage.record import CommitRecord, RelationUpdate, SequenceMark
from storage.stored import History, StoredRelation, WriteBatch, history_of, owner_of

MOMENTS_AT_ONCE: Final = 256
"""The most moments that are commits of their own each time the clock is looked at. If more have come, after a
standstill of the server or while a transaction wrote, some take effect at the next one instead."""
LARGE_BYTES: Final = 1 << 18
"""A group with more bytes of rows than this is encoded and written on a thread of its own while the dataflow steps."""


Listener = Callable[[Delta, Published], None]
"""Called on the thread that publishes."""


class Engine(EngineState):
    """The engine's state, and the group of commits that is being built."""

    def __init__(
        self, dictionary: Dictionary, clock: EpochClock, catalog: Catalog, persistence: Persistence | None
    ) -> None:
        super().__init__(dictionary, clock, catalog, persistence)
        self.sequences = Sequences()
        self.loads = Loads()
        self.listeners: list[Listener] = []
        self.kept_beside: list[Callable[[], list[Words] | None]] = []
        """Called when a sweep begins: they return the dictionary ids held outside the engine, or None to postpone the
        sweep."""
        self.recent = RecentCommits()
        self.failing = Failing(self)
        self.entries = Entering(dictionary)
        self.next_moment = NEVER
        """The next moment at which rows of views come or go by themselves, as of the last group."""
        self.changed_at = 0
        """The ordinal of the newest commit that changed a table or the catalog."""
        self._group = CommitGroup()
        self._marks: dict[int, SequenceMark] = {}
        """The positions of sequences that the store does not have yet."""
        self._unlogged: tuple[SequenceMark, ...] = ()
        """Those that could not be written to the log."""
        self._log_thread = ThreadPoolExecutor(1, "log")
        self.meanwhile: Callable[[], AbstractContextManager[None]] = nullcontext
        """Entered while a group that has been stepped becomes durable. Light statements may use the engine then."""

    def drop_relation(self, *relations: int) -> None:
        """Free what relations have in the dataflow, and forget why they were down."""
        for relation in relations:
            self.failing.forget(relation)
        self.free(*relations)

    @property
    def newest(self) -> Published:
        """The state up to which ``recent`` has all commits: what is published, or the group that becomes durable."""
        return self.published if self._group.delta is None else self.root()

    def check_room(self, nbytes: int = 0) -> None:
        """Raises 53200, 53100 or 58030 while the store accepts nothing more, or the disk not so many bytes."""
        if self.persistence is not None:
            self.persistence.check_room(nbytes)

    def commit(
        self, updates: list[RelationUpdate], catalog: Catalog, dropped: list[int], loads: Sequence[Load] = ()
    ) -> int:
        """Make a writer's fed changes the group's next commit; its epoch. It is durable only after ``flush``.

        ``dropped``: relations whose dataflow is freed when the group is published. ``loads``: part of the commit.
        """
        known = catalog.relations
        kept = []
        size = 0
        for update in updates:
            if update.relation in known:
                kept.append(update)
                size += update.rows.nbytes if update.file is None else 0
        if size > MAX_RECORD_BYTES:
            raise SqlError("54000", "the transaction is too large", hint="Split it into several transactions.")
        if self.persistence is not None:
            self.persistence.check_disk(size)
        epoch = self.clock.advance(self.dataflow.moment)
        change = catalog_to_json(catalog) if catalog is not self.catalog else None
        load = loads_text(loads) if loads else None
        self.admit(CommitRecord(epoch, tuple(kept), self.entries.to_log(), change, load), catalog, dropped)
        if loads:
            self.loads.commit(loads, epoch)
        if change is not None:
            self.loads.keep({relation.oid for relation in catalog.relations.values()})
        return epoch

    def adopt_access(self, access: Access) -> None:
        """Take over who may do what, which differs only in what another database keeps. That is taken over again at
        each start, so nothing of it is written. Raises BlockedError."""
        self.make_room()
        catalog = replace(self.catalog, access=access, version=self.next_version())
        self.admit(CommitRecord(self.clock.advance(self.dataflow.moment)), catalog, [])

    def pass_time(self, upto: int | None = None) -> None:
        """Commit the moments that have come, up to epoch ``upto`` (None: the present): at each of them, rows of views
        come or go by themselves (``ivm.operators.wait``). No writer is open."""
        self.make_room()
        now = max(self.clock.now() if upto is None else upto, self.timeline.epoch(self.timeline.last) + 1)
        self.next_moment = self.dataflow.next_moment
        if self.next_moment > now:
            return
        due = self.dataflow.due_moments(now)
        for i in distinct(np.linspace(len(due) - 1, 0, min(len(due), MOMENTS_AT_ONCE)).astype(np.int64)).tolist():
            epoch = max(int(due[i]), self.clock.last + 1)
            self.clock.restore(epoch)
            self.admit(CommitRecord(epoch), self.catalog, [])
        self.next_moment = self.dataflow.next_moment

    def admit(self, record: CommitRecord, catalog: Catalog, dropped: list[int]) -> None:
        """Add a record, new or from the log, to the group. Its updates have been fed at the next ordinal."""
        self.unstepped |= self.dataflow.set_moment(self.timeline.append(record.epoch), record.epoch)
        if record.updates or record.catalog is not None:
            self.changed_at = self.timeline.last
        group = self._group
        assert group.written is None, "a group that is being written takes no more commits"
        if record.catalog is not None and group.before is None:
            group.before = self.catalog
        self.catalog = catalog
        group.records.append(record)
        for update in record.updates:
            group.nbytes += update.rows.nbytes
        group.dropped += dropped

    def flush(self, until: float = math.inf) -> bool:
        """Make the group durable, step it and publish it. DiskError: it could not be written. The group stays as it is;
        nothing else may be done before a later ``flush`` has written it.

        False: ``until`` came first. The next ``flush``, on any thread, goes on where this one stopped.
        """
        group = self._group
        try:
            return self._flush(group, until)
        except DiskError:
            group.written = None
            raise

    def _flush(self, group: CommitGroup, until: float) -> bool:
        self._mark_sequences(group)
        if not group.records:
            return True
        if group.written is None:
            if until < math.inf and not self._is_small(group):
                return False
            group.written = self._begin_write(group)
        if group.delta is None:
            if not self.settle_watched(until):
                return False
            group.delta = self._stepped(group)
        if until < math.inf:
            if self.persistence is not None and not self.persistence.is_written(until):
                return False
            sequence = group.written()  # at once
        else:
            with self.meanwhile():
                sequence = group.written()
        self._publish(group, group.delta, sequence)
        return True

    def _mark_sequences(self, group: CommitGroup) -> None:
        """Make the sequences' new positions durable with the group, or in a record of their own when it is empty."""
        marks = (*self._unlogged, *self.sequences.drain())
        if not marks:
            return
        self._note_marks(marks)
        if group.records:
            group.records[-1] = replace(group.records[-1], sequences=(*group.records[-1].sequences, *marks))
        elif self.persistence is not None:
            self._unlogged = marks
            self.persistence.write([CommitRecord(self.clock.advance(), sequences=marks)])
        self._unlogged = ()

    def _note_marks(self, marks: tuple[SequenceMark, ...]) -> None:
        self._marks.update((mark.storage, mark) for mark in marks)

    def load_marks(self, marks: tuple[SequenceMark, ...]) -> None:
        """Take over the positions of sequences from a replayed log record, which the store may not know yet."""
        self.sequences.load(marks)
        self._note_marks(marks)

    def rest_sequences(self) -> None:
        """On an orderly end: return the numbers that sequences have reserved. They are no longer used."""
        self.sequences.rest()
        self._mark_sequences(self._group)

    def flush_replayed(self, sequence: int) -> None:
        """End a group of records that the log already has."""
        if self._group.records:
            self.settle_watched()
            self._publish(self._group, self._stepped(self._group), sequence)

    def _is_small(self, group: CommitGroup) -> bool:
        """Whether only the group's step and sync may take long."""
        room = self.persistence is None or self.persistence.has_room
        return room and not self.failures and not group.dropped and group.nbytes <= LARGE_BYTES

    def _begin_write(self, group: CommitGroup) -> Callable[[], int]:
        if self.persistence is None:
            return lambda: 0
        if group.nbytes > LARGE_BYTES:
            return self._log_thread.submit(self.persistence.write, group.records).result
        self.persistence.begin_write(group.records)
        return self.persistence.end_write

    def settle_watched(self, until: float = math.inf) -> bool:
        """``settle`` for durable commits: the views of an interrupted loop are taken down, everything else goes on."""
        try:
            with self.watch.over(bound=Bound.COMMIT), self.dataflow.ended_by(self.watch.overdue):
                if not self.settle(until):
                    return False
        except SqlError as error:
            if error.sqlstate != "57014":
                raise
        self.failing.take_down_failed()
        return True

    def close(self) -> None:
        self.watch.stop()
        self._log_thread.shutdown()

    def _stepped(self, group: CommitGroup) -> Delta:
        """After a group's step: the changes of all relations."""
        self.drop_relation(*group.dropped)
        if group.before is not None and self._indexes.drop_unused(self.catalog, self._held):
            self._stored = None
            self.unstepped = True
            self.arranged += 1
        if group.dropped:
            self.settle()
        delta = Delta(group.records[-1].epoch, self._changes(group))
        self.recent.add(self.timeline.last, delta.changes)
        return delta

    def _held(self, relation: int) -> bool:
        return bool(self.row_locks.holding(whole(relation)))

    def _publish(self, group: CommitGroup, delta: Delta, sequence: int) -> None:
        self._group = CommitGroup()
        self.counts.add(delta.changes, self.timeline.last)
        failing = self.failing
        if self.failures or failing.history.down:
            noted = failing.note(group.records[0].epoch, delta.epoch, delta.changes)
            self._hand_over(group, delta, sequence)
            self._publish_noted(noted)
        else:
            self.published = self.root()
            self._hand_over(group, delta, sequence)
        self.next_moment = self.dataflow.next_moment
        for listener in list(self.listeners):
            listener(delta, self.published)
        if failing.filling:
            failing.fill()

    def _publish_noted(self, noted: bool) -> None:
        """Publish a group with views that are down. ``noted``: it took one down or brought one back. The store knows
        that before anybody sees it: a replay of the log, which steps many commits at once, would find other epochs."""
        if noted and self.persistence is not None:
            with suppress(SqlError):  # it is tried again
                self.persistence.flush()
        self.published = self.root()

    def _hand_over(self, group: CommitGroup, delta: Delta, sequence: int) -> None:
        entries, leaving = self.entries.to_store()
        if self.persistence is None:
            self.failing.history.take()
            self.compact_to(delta.epoch)
            return
        before, known = group.before, self.catalog.relations
        changes, locks = delta.changes, self.locks
        stored = {i: h for i, h in changes.items() if i in known or owner_of(i) in known or i in locks}
        created: tuple[StoredRelation, ...] = ()
        dropped: tuple[int, ...] = ()
        if before is not None:  # the work of any other commit does not grow with the catalog
            created = created_relations(before.relations, known) + self.locks.created(before.relations, known)
            dropped = dropped_relations(before.relations, known)
        if self.failing.anew:
            back = {i: known[i] for i in self.failing.anew if i in known}
            created += tuple(map(stored_relation, back.values())) + self.locks.created({}, back)
            self.failing.anew.clear()
        changed = before is not None or bool(created)
        noted, emptied, again = self.failing.history.take()
        lagging, caught_up = self.failing.lagging.take()
        stored |= noted
        loads = self.loads.changed()
        files: list[Path] = []
        filed = 0
        for record in group.records:
            if record.load is not None:
                loads.setdefault(record.epoch, record.load)
            for update in record.updates:
                if update.file is not None:
                    files.append(update.file.path)
                    filed += update.file.size
        batch = WriteBatch(
            delta.epoch, sequence, stored, entries, catalog_to_json(self.catalog) if changed else None,
            created + again, dropped, loads, tuple(self._marks.values()), leaving, tuple(files), filed, emptied,
            lagging, caught_up,
        )  # fmt: skip
        self._marks.clear()
        self.persistence.apply(batch, self.catalog)
        self.compact_to(self.persistence.applied_epoch)

    def _changes(self, group: CommitGroup) -> dict[int, History]:
        """The group's updates of every stored relation. Drains the outputs."""
        tables: dict[int, list[tuple[int, RelationUpdate]]] = {}
        for record in group.records:
            for update in record.updates:
                if update.relation in self.catalog.relations:
                    tables.setdefault(update.relation, []).append((record.epoch, update))
        changes = {relation: history_of(parts) for relation, parts in tables.items()}
        down = self.failing.history.down
        for output in sorted(self._undrained):  # not all: what a commit costs does not grow with the number of views
            self._drain(changes, output)
        for name, view, found in self.locks.changes(down):
            changes[name] = History(found.rows, self._epochs(view, found.times), found.diffs)
        adopted, self._adopted = self._adopted, {}
        return preceded(changes, adopted)

    def _drain(self, changes: dict[int, History], output: NodeId) -> None:
        """Add what has changed in an Output of a view, unless that is or was down (``DownHistory``)."""
        relation, view = self._drains[output]
        if view in self.failures or view in self.failing.history.down:
            return
        self._undrained.remove(output)
        drained = self.dataflow.changes(output)
        if len(drained.rows):
            changes[relation] = History(drained.rows, self._epochs(view, drained.times), drained.diffs)

    def _epochs(self, relation: int, times: Words) -> Words:
        """The epochs of a view's changes. Its initial rows get the epoch at which it was created."""
        known: Relation | None = self.catalog.by_id(relation)
        epochs = self.timeline.epochs(times)
        return epochs if known is None else np.maximum(epochs, known.created)
