"""The engine's state and its groups of commits. Everything here runs on the engine thread.

A *writer* (``writer.py``) feeds one transaction's changes at the next ordinal; ``commit`` gives it its epoch and
puts it into the group, ``flush`` ends the group: its records go to the log in one write and one sync, while the
dataflow steps all of its epochs together; then the root is published. Nothing is acknowledged before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from time import thread_time_ns
from typing import Final

import numpy as np

from ivm.dataflow import Dataflow
from ivm.errors import SqlError
from ivm.graph import NodeId
from ivm.rows import Words
from ivm.trace.batch import Batch as ArrangedBatch
from ivm.trace.root import Root
from ivm.trace.trace import Version
from planner.expr.context import Context
from planner.physical.key_checks import Guard
from planner.physical.nodes import Plan
from planner.render.dataflow import Renderer, Stored
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.sequences import Sequences
from sql.engine.clock import EpochClock
from sql.engine.counts import Counts
from sql.engine.definition import definition_rel
from sql.engine.entering import Entering
from sql.engine.failing import Failing
from sql.engine.group import Delta, Group, preceded
from sql.engine.guard import Watch
from sql.engine.index_arrangements import IndexArrangements
from sql.engine.indexing import Wish
from sql.engine.loads import Load, Loads, loads_text
from sql.engine.locks import Locks
from sql.engine.persist import MAX_RECORD_BYTES, Persistence, created_relations, dropped_relations, stored_relation
from sql.engine.snapshot import Published, plan_maintained
from sql.engine.step_times import StepTimes
from sql.engine.timeline import Timeline
from storage.dictionary import Dictionary
from storage.record import CommitRecord, SequenceMark, Update
from storage.stored import Batch, History, history_of

LARGE_BYTES: Final = 1 << 18
"""Rows' bytes from which a group is encoded and written on the log's own thread while the dataflow steps."""


class TooLongHereError(Exception):
    """What was tried on the event loop's thread takes a step or a scan: the engine thread is to do it."""


Listener = Callable[[Delta, Published], None]
"""Called on the thread that publishes."""


class Engine:
    """Owns the dataflow, the renderer, the committed catalog and the group being built."""

    def __init__(
        self, dictionary: Dictionary, clock: EpochClock, catalog: Catalog, persistence: Persistence | None
    ) -> None:
        self.dictionary = dictionary
        self.clock = clock
        self.persistence = persistence
        self.catalog = catalog
        self.timeline = Timeline(0)
        self.dataflow = Dataflow(dictionary.arena)
        self.context = Context(dictionary)
        self.renderer = Renderer(self.dataflow, self.context)
        self.sequences = Sequences()
        self.loads = Loads()
        self.listeners: list[Listener] = []
        self.kept_beside: list[Callable[[], list[Words] | None]] = []
        """Tell what else has ids of the dictionary, when a sweep begins; None: it is not to begin now."""
        self.unstepped = False
        self.rests = False
        """While a light statement runs on the event loop's thread: nothing may be stepped."""
        self.touched: set[int] = set()
        """The tables that were fed since the last step."""
        self.whole: set[int] = set()
        """Those of them that nothing else may be fed to before they are stepped."""
        self.steps = 0
        """How often the dataflow was stepped: what was fed before the last step is in ``head``."""
        self.times = StepTimes()
        self.arranged = 0
        self.since = 0
        """Ordinals below it cannot be told apart in memory."""
        self.outputs: dict[int, NodeId] = {}
        self.locks = Locks(self.dataflow, self.renderer)
        self._adopted: dict[int, History] = {}
        """The first contents of views that were hydrated beside the engine, which the next group tells the store."""
        self._drained: dict[int, Version | None] = {}
        """What each view's Output was when its changes were drained last."""
        self._stored: dict[int, Stored] | None = None
        """What readers get of ``renderer.stored``, until it changes."""
        self.counts = Counts()
        self._indexes = IndexArrangements(self.renderer)
        self.failing = Failing(self)
        self._versions = catalog.version
        self._next_id = catalog.next_id
        self._group = Group()
        self.entries = Entering(dictionary)
        self._marks: dict[int, SequenceMark] = {}
        """Where sequences stand that the store does not know yet."""
        self.watch = Watch(self.dataflow.cancel)
        self._log_thread = ThreadPoolExecutor(1, "log")
        self.head: Root = self.dataflow.publish()
        self.published = self._root()

    def next_version(self) -> int:
        """A catalog version never used before, also by a transaction that was rolled back."""
        self._versions += 1
        return self._versions

    def next_id(self, catalog: Catalog) -> int:
        """A relation's id never used before, also by a transaction that was rolled back."""
        self._next_id = max(self._next_id, catalog.next_id)
        self._next_id += 1
        return self._next_id - 1

    def settle(self, until: float = math.inf) -> bool:
        """Step what was fed, so that ``head`` has it (unpublished); False: ``until`` came first, go on with the same.

        Times are ``perf_counter``'s.
        """
        if self.unstepped:
            if self.rests:
                raise TooLongHereError
            self.unstepped = False
            self.touched.clear()
            self.whole.clear()
            self.steps += 1
            begun = thread_time_ns()
            try:
                self.unstepped = not self.dataflow.step(until)
            finally:
                self.times.went_on(thread_time_ns() - begun, not self.unstepped)
                if not self.unstepped:
                    self.head = self.dataflow.publish()
        return not self.unstepped

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Inside, on the event loop's thread, what would take long raises TooLongHereError."""
        self.rests = True
        try:
            yield
        finally:
            self.rests = False

    def feed(self, relation: int, rows: Words, diffs: Words, ordinal: int) -> None:
        """Updates of a table at an ordinal; seen after the next step."""
        if self.dictionary.guarded:
            self.dictionary.see(rows)
        self.dataflow.feed(self.renderer.input(relation), rows, ordinal, diffs)
        self.unstepped = True
        self.touched.add(relation)

    def feed_arranged(self, relation: int, batch: ArrangedBatch, ordinal: int) -> None:
        """As ``feed``, of what a table's own arrangement keeps as it is: all that the table is fed in one step."""
        if self.dictionary.guarded:
            self.dictionary.see(batch.rows)
        node = self.renderer.arrangement(relation, ())
        assert node is not None, "a table has its arrangement"
        self.dataflow.feed_arranged(self.renderer.input(relation), node, batch, ordinal)
        self.unstepped = True
        self.touched.add(relation)
        self.whole.add(relation)

    def add_table(self, table: Relation) -> None:
        """A table's input and arrangement, empty."""
        self.renderer.add_table(table.id, table.schema, table.primary_key)
        self.add_indexes(table)
        self.counts.start(table.id)
        self._stored = None
        self.unstepped = True

    def add_indexes(self, relation: Relation) -> None:
        """The arrangements of a relation's indexes; they have rows after ``hydrate``."""
        self._indexes.add(relation)
        self._stored = None
        self.unstepped = True

    def install(self, plan: Plan, relation: int, waiting: bool = False) -> None:
        """A maintained view's dataflow; it has rows after ``hydrate`` and a step. ``waiting``: as in ``Renderer``."""
        self.renderer.install(plan, relation, waiting)
        self.outputs[relation] = self.renderer.output(relation)
        self.locks.add(relation)
        self._drained.pop(relation, None)
        self.counts.start(relation)
        self._stored = None
        self.unstepped = True

    def adopt(self, renderer: Renderer, relation: int, contents: Mapping[int, History]) -> None:
        """A view that was hydrated beside the engine, with what the store is to get of it and of its locked joins."""
        self.renderer.adopt(renderer, relation)
        self.outputs[relation] = self.renderer.output(relation)
        self._drained.pop(relation, None)
        self.counts.start(relation)
        self._stored = None
        self.unstepped = True
        self.locks.add(relation)
        self._adopted.update(contents)

    def plan_view(self, view: Relation, catalog: Catalog | None = None) -> Plan:
        """A view's plan over what is arranged now, from its definition in a catalog (the engine's)."""
        return plan_maintained(definition_rel(view, catalog or self.catalog), self._root(), view.planning)

    def arrange(self, wishes: tuple[Wish, ...]) -> None:
        """One more arrangement of each relation by these columns, where it exists and does not have it."""
        for relation, columns in wishes:
            stored = self.renderer.stored.get(relation)
            if stored is not None and columns not in stored.arrangements:
                self.renderer.add_arrangement(relation, columns)
                self._stored = None
                self.hydrate()
                self.arranged += 1
        self.settle()

    def hydrate(self) -> None:
        """Bring everything that was added to the present."""
        self.dataflow.hydrate()
        self.unstepped = True

    def drop_relation(self, relation: int, keep_failure: bool = False) -> None:
        """Free what a table or view has in the dataflow; a plain view has nothing there."""
        if not keep_failure:
            self.failing.forget(relation)
        if relation not in self.renderer.stored:
            return
        self.locks.forget(relation)
        self.outputs.pop(relation, None)
        self._drained.pop(relation, None)
        for stored in (relation, *self.renderer.stored[relation].locks):
            self._adopted.pop(stored, None)
        self.counts.forget(relation)
        self._stored = None
        self._indexes.forget(relation)
        self.renderer.drop_relation(relation)
        self.unstepped = True

    def arrangement(self, relation: int) -> Version:
        """A table's own arrangement as it was stepped last: by primary key, or by the whole row."""
        node = self.renderer.arrangement(relation, ())
        assert node is not None, "a table has its arrangement"
        return self.head[node]

    def guarded(self, relation: int, guard: Guard) -> Version:
        """The arrangement in which a table's keys are found, as it was stepped last."""
        return self.head[self.renderer.guard_node(relation, guard)]

    def check_room(self) -> None:
        """Raises 53200 or 53100 while the store takes no more."""
        if self.persistence is not None:
            self.persistence.check_room()

    def commit(self, updates: list[Update], catalog: Catalog, dropped: list[int], loads: Sequence[Load] = ()) -> int:
        """A writer's fed changes become the group's next commit; gives its epoch. Durable only after ``flush``.

        ``dropped``: relations whose dataflow goes when the group is published; ``loads``: those that are part of it.
        """
        kept = tuple(u for u in updates if u.relation in catalog.relations)
        if sum(u.rows.nbytes for u in kept if u.file is None) > MAX_RECORD_BYTES:
            raise SqlError("54000", "the transaction is too large", hint="Split it into several transactions.")
        epoch = self.clock.advance()
        change = catalog.to_json() if catalog is not self.catalog else None
        self.admit(CommitRecord(epoch, kept, self.entries.to_log(), change, loads_text(loads)), catalog, dropped)
        self.loads.commit(loads, epoch)
        if change is not None:
            self.loads.keep({relation.oid for relation in catalog.relations.values()})
        return epoch

    def admit(self, record: CommitRecord, catalog: Catalog, dropped: list[int]) -> None:
        """A record, new or from the log, joins the group; its updates have been fed at the next ordinal."""
        self.timeline.append(record.epoch)
        group = self._group
        assert group.written is None, "a group that is being written takes no more commits"
        if record.catalog is not None and group.before is None:
            group.before = self.catalog
        self.catalog = catalog
        group.records.append(record)
        group.dropped += dropped

    def flush(self, until: float = math.inf) -> bool:
        """Make the group durable, step it and publish it. A failed write ends the server (FatalStorageError).

        False: it takes longer than until then, and the next ``flush``, on any thread, goes on where this one stopped.
        """
        group = self._group
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
        if self.persistence is not None and not self.persistence.is_written(until):
            return False
        self._publish(group, group.delta, group.written())
        return True

    def _mark_sequences(self, group: Group) -> None:
        """What sequences have given out becomes durable with the group, in a record of its own where there is none."""
        marks = self.sequences.drain()
        if not marks:
            return
        self._note_marks(marks)
        if group.records:
            group.records[-1] = replace(group.records[-1], sequences=marks)
        elif self.persistence is not None:
            self.persistence.write([CommitRecord(self.clock.advance(), sequences=marks)])

    def _note_marks(self, marks: tuple[SequenceMark, ...]) -> None:
        self._marks.update((mark.storage, mark) for mark in marks)

    def load_marks(self, marks: tuple[SequenceMark, ...]) -> None:
        """Where sequences stand by a log record that is replayed: the store may not know it yet."""
        self.sequences.load(marks)
        self._note_marks(marks)

    def rest_sequences(self) -> None:
        """A clean end: sequences go on where they really stand. Nobody asks them any more."""
        self.sequences.rest()
        self._mark_sequences(self._group)

    def flush_replayed(self, sequence: int) -> None:
        """End a group of records that the log already has."""
        if self._group.records:
            self.settle_watched()
            self._publish(self._group, self._stepped(self._group), sequence)

    def _is_small(self, group: Group) -> bool:
        """Whether nothing but its step and its sync may take long about a group."""
        room = self.persistence is None or self.persistence.has_room
        return room and not self.failing.reasons and not group.dropped and group.nbytes <= LARGE_BYTES

    def _begin_write(self, group: Group) -> Callable[[], int]:
        if self.persistence is None:
            return lambda: 0
        if group.nbytes > LARGE_BYTES:
            return self._log_thread.submit(self.persistence.write, group.records).result
        self.persistence.begin_write(group.records)
        return self.persistence.end_write

    def settle_watched(self, until: float = math.inf) -> bool:
        """``settle`` for durable commits: a loop that is interrupted takes its views down, the rest goes on."""
        try:
            with self.watch.over():
                if not self.settle(until):
                    return False
        except SqlError as error:
            if error.sqlstate != "57014":
                raise
        self.failing.note()
        return True

    def forget_history(self) -> None:
        """Nothing in memory need be told apart from what is there now."""
        self._forget(self.timeline.last)

    def publish_again(self) -> None:
        """The present state, without a commit."""
        self.published = self._root()

    def republish(self) -> None:
        """Publish what was stepped without a commit: after a start, or when a temporary view came or went."""
        self.unstepped = True
        self.settle()
        self.published = self._root()

    def drain(self) -> None:
        """Forget the views' changes so far: the store has them."""
        for relation, output in self.outputs.items():
            self.count(relation, self.dataflow.changes(output).diffs)
        self.locks.changes()

    def count(self, relation: int, diffs: Words) -> None:
        """Rows that a relation has from the start, without a commit."""
        self.counts.add_one(relation, int(diffs.sum()), self.timeline.last)

    def drain_one(self, relation: int) -> None:
        """Forget one view's changes so far."""
        self.dataflow.changes(self.outputs[relation])

    def close(self) -> None:
        self.watch.stop()
        self._log_thread.shutdown()

    def _stepped(self, group: Group) -> Delta:
        """Ends a group's stepping: what it changed."""
        for relation in group.dropped:
            self.drop_relation(relation)
        if group.before is not None and self._indexes.drop_unused(self.catalog):
            self._stored = None
            self.unstepped = True
            self.arranged += 1
        if group.dropped:
            self.settle()
        return Delta(group.records[-1].epoch, self._changes(group))

    def _publish(self, group: Group, delta: Delta, sequence: int) -> None:
        self._group = Group()
        self.counts.add(delta.changes, self.timeline.last)
        self.published = self._root()
        self._hand_over(group, delta, sequence)
        if self.failing.reasons:
            self.failing.heal(delta.changes)
        for listener in list(self.listeners):
            listener(delta, self.published)

    def _hand_over(self, group: Group, delta: Delta, sequence: int) -> None:
        entries, leaving = self.entries.to_store()
        if self.persistence is None:
            self.compact_to(delta.epoch)
            return
        stored = {i: h for i, h in delta.changes.items() if i in self.catalog.relations or i in self.locks}
        before = (group.before or self.catalog).relations
        changed = group.before is not None
        known = self.catalog.relations
        back = {i: known[i] for i in self.failing.revived if i in known}
        revived = tuple(map(stored_relation, back.values())) + self.locks.created({}, back)
        changed |= bool(revived)
        self.failing.revived.clear()
        files = [u.file for r in group.records for u in r.updates if u.file is not None]
        batch = Batch(
            delta.epoch, sequence, stored, entries, self.catalog.to_json() if changed else None,
            created_relations(before, known) + self.locks.created(before, known) + revived,
            dropped_relations(before, self.catalog.relations), sequences=tuple(self._marks.values()),
            loads={r.epoch: r.load for r in group.records if r.load is not None} | self.loads.changed(),
            leaving=leaving, files=tuple(file.path for file in files), filed=sum(file.size for file in files),
        )  # fmt: skip
        self._marks.clear()
        self.persistence.apply(batch, self.catalog)
        self.compact_to(self.persistence.applied_epoch)

    def compact_to(self, epoch: int) -> None:
        """Memory keeps history only from what the store has applied."""
        self._forget(min(self.timeline.ordinal(epoch) or 0, self.published.ordinal))

    def _forget(self, ordinal: int) -> None:
        """Ordinals below this one need not be told apart in memory any more."""
        if ordinal > self.since:
            self.since = ordinal
            self.dataflow.allow_compaction(ordinal)
            self.timeline.forget(ordinal)

    def _changes(self, group: Group) -> dict[int, History]:
        """The group's updates of every stored relation; drains the outputs."""
        tables: dict[int, list[tuple[int, Update]]] = {}
        for record in group.records:
            for update in record.updates:
                if update.relation in self.catalog.relations:
                    tables.setdefault(update.relation, []).append((record.epoch, update))
        changes = {relation: history_of(parts) for relation, parts in tables.items()}
        for relation, output in self.outputs.items():
            version = self.head.get(output)
            if relation in self.failing.reasons or (version is not None and version is self._drained.get(relation)):
                continue
            self._drained[relation] = version
            drained = self.dataflow.changes(output)
            if len(drained.rows):
                changes[relation] = History(drained.rows, self._epochs(relation, drained.times), drained.diffs)
        for name, view, found in self.locks.changes():
            changes[name] = History(found.rows, self._epochs(view, found.times), found.diffs)
        adopted, self._adopted = self._adopted, {}
        return preceded(changes, adopted)

    def _epochs(self, relation: int, times: Words) -> Words:
        """Epochs of a view's changes; what it held when it was created counts from its creation."""
        known: Relation | None = self.catalog.by_id(relation)
        epochs = self.timeline.epochs(times)
        return epochs if known is None else np.maximum(epochs, known.created)

    def stored(self) -> dict[int, Stored]:
        """Where each relation stands in the dataflow, as a copy that stays."""
        if self._stored is None:
            self._stored = dict(self.renderer.stored)
        return self._stored

    def _root(self) -> Published:
        ordinal = self.timeline.last
        return Published(
            ordinal, self.timeline.epoch(ordinal), self.since, self.head, self.catalog, self.stored(),
            dict(self.failing.reasons), self.arranged, self.counts, self.dictionary.generation,
        )  # fmt: skip
