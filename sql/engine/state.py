"""The engine's dataflow, the catalog that it maintains, and the state that readers see.

Nothing here knows of commits. Everything runs on the thread that owns the engine at the moment.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from time import thread_time_ns
from typing import Protocol

from ivm.dataflow import Dataflow
from ivm.errors import SqlError
from ivm.graph import NodeId
from ivm.rows import Words
from ivm.runtime.root import Root
from ivm.stops import Stop
from ivm.trace.batch import Batch as ArrangedBatch
from ivm.trace.trace import Version
from planner.expr.context import Context
from planner.physical.key_checks import KeyCheck
from planner.physical.nodes import Plan
from planner.render.dataflow import Renderer, Stored
from planner.render.succession import give_back, succeed
from planner.render.switching import Definition, Difference, switch
from sql.catalog.catalog import Catalog, Relation
from sql.engine.clock import EpochClock
from sql.engine.counts import Counts
from sql.engine.definition import definition_rel
from sql.engine.guard import Watch
from sql.engine.index_arrangements import IndexArrangements
from sql.engine.indexing import Wish
from sql.engine.key_notes import KeyNotes
from sql.engine.locks import Locks
from sql.engine.persist import Persistence
from sql.engine.row_locks import LockOwner, RowLocks, Target
from sql.engine.snapshot import Published, plan_maintained
from sql.engine.step_costs import StepCosts
from sql.engine.step_times import StepTimes
from sql.engine.timeline import Timeline
from storage.dictionary import Dictionary
from storage.stored import History, errors_of


class Tentative(Protocol):
    """An open transaction whose changes may be in the dataflow (``sql.engine.writer.Writer``)."""

    @property
    def owner_of_locks(self) -> LockOwner: ...

    @property
    def is_fixed(self) -> bool: ...

    def park(self) -> None:
        """Take the changes out of the dataflow, until the transaction's next statement. Raises BlockedError if they
        must stay."""


class TooLongHereError(Exception):
    """Raised on the event loop's thread: the work needs a step or a scan, so the engine thread must do it."""


class Resting:
    """See ``EngineState.resting``."""

    __slots__ = ("_engine",)

    def __init__(self, engine: EngineState) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        self._engine.rests = True

    def __exit__(self, *failure: object) -> None:
        self._engine.rests = False


class EngineState:
    """Owns the dataflow, the renderer and the committed catalog."""

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
        self.failures: dict[int, SqlError] = {}
        """The error of reading each view that is down."""
        self.unstepped = False
        self.rests = False
        """Set while a light statement runs on the event loop's thread, where stepping is not allowed."""
        self.touched: set[int] = set()
        """The tables fed since the last step."""
        self.whole: set[int] = set()
        """Those tables of ``fed`` that must not be fed again before the next step."""
        self.steps = 0
        """The number of steps. What was fed before the last step is in ``head``."""
        self.times = StepTimes()
        self.costs = StepCosts()
        self.arranged = 0
        self.since = 0
        """Ordinals below it cannot be distinguished in memory."""
        self.outputs: dict[int, NodeId] = {}
        self.error_outputs: dict[int, NodeId] = {}
        """The Outputs of the error rows of views that may fail."""
        self.locks = Locks(self.dataflow, self.renderer)
        self.row_locks = RowLocks()
        self.released: deque[Target] = deque()
        """What has been unlocked, until the event loop tells those who wait."""
        self.tentative: Tentative | None = None
        """The open transaction that has the dataflow to itself at the moment."""
        self._notes = KeyNotes()
        """Of the commits since the last step."""
        self._noted = 0
        """The number of steps when a note was made last."""
        self._adopted: dict[int, History] = {}
        """The initial contents of views that were hydrated beside the engine. The next group hands them to the
        store."""
        self._drains: dict[NodeId, tuple[int, int]] = {}
        """Of each Output: its relation in the store, and the view."""
        self._undrained: set[NodeId] = set()
        """The Outputs that may have changes."""
        self._stored: dict[int, Stored] | None = None
        """A copy of ``renderer.stored`` for readers; None if it has changed since."""
        self.counts = Counts()
        self._indexes = IndexArrangements(self.renderer)
        self._versions = catalog.version
        self._numbering = threading.Lock()
        self._next_id = catalog.next_id
        self.watch = Watch(self.dataflow.cancel)
        self.dataflow.limit_loops(self.watch.too_slow)
        self.watch.calls = lambda: self.dataflow.calls
        self.head: Root = self.dataflow.publish()
        self.published = self.root()

    @property
    def is_held(self) -> bool:
        """Whether a transaction has changed the catalog, and so has the dataflow to itself until it ends."""
        return self.tentative is not None and self.tentative.is_fixed

    def make_room(self) -> None:
        """See to it that the dataflow holds commits only. Raises BlockedError."""
        if self.tentative is not None:
            self.tentative.park()
            self.tentative = None

    def release(self, owner: LockOwner, kept: int = 0) -> None:
        """Give back a transaction's locks but the first ``kept``; ``released`` tells those who wait."""
        if len(owner.taken) > kept:
            self.released.extend(self.row_locks.release(owner, kept))

    def key_notes(self) -> KeyNotes:
        """The changes of keys' counts by commits since the last step."""
        if self._noted != self.steps:
            self._noted = self.steps
            self._notes.clear()
        return self._notes

    def next_version(self) -> int:
        """A catalog version never used before, not even by a transaction that was rolled back. On any thread."""
        with self._numbering:
            self._versions = max(self._versions, self.catalog.version) + 1  # the log may have newer ones than the store
            return self._versions

    def next_id(self, catalog: Catalog) -> int:
        """A relation id never used before, not even by a transaction that was rolled back."""
        self._next_id = max(self._next_id, catalog.next_id)
        self._next_id += 1
        return self._next_id - 1

    def settle(self, until: float = math.inf, cut: Stop | None = None) -> bool:
        """Step everything that was fed, so that ``head`` includes it (unpublished).

        False: ``until``, a time of ``perf_counter``, came first, and the next call continues the same step; or ``cut``
        has ended it, and everything that was fed must be undone at once (``Dataflow.step_or_cut``).
        """
        whole = True
        if self.unstepped:
            if self.rests:
                raise TooLongHereError
            self.unstepped = False
            self.touched.clear()
            self.whole.clear()
            self.steps += 1
            begun, done = thread_time_ns(), False
            try:
                if cut is None:
                    self.unstepped = not self.dataflow.step(until)
                else:
                    whole = self.dataflow.step_or_cut(cut)
                done = whole
            finally:
                self.times.went_on(thread_time_ns() - begun, not self.unstepped)
                if not self.unstepped:
                    if not done:
                        self.costs.skip()
                    self.costs.ended(self.times.last)
                    self.head = self.dataflow.publish()
                    self._undrained |= self.dataflow.moved() & self._drains.keys()
        return whole and not self.unstepped

    def resting(self) -> Resting:
        """In this context, on the event loop's thread, work that would take long raises TooLongHereError."""
        return Resting(self)

    def feed(self, relation: int, rows: Words, diffs: Words, ordinal: int) -> None:
        """Feed updates of a table at an ordinal. They are visible after the next step."""
        if self.dictionary.guarded:
            self.dictionary.see(rows)
        self.dataflow.feed(self.renderer.input(relation), rows, ordinal, diffs)
        self.costs.fed(relation, len(diffs))
        self.unstepped = True
        self.touched.add(relation)

    def feed_arranged(self, relation: int, batch: ArrangedBatch, ordinal: int) -> None:
        """As ``feed``, for a batch in the format of the table's own arrangement. Nothing else of the table may be fed
        in the same step."""
        if self.dictionary.guarded:
            self.dictionary.see(batch.rows)
        node = self.renderer.arrangement(relation, ())
        assert node is not None, "a table has its arrangement"
        self.dataflow.feed_arranged(self.renderer.input(relation), node, batch, ordinal)
        self.costs.fed(relation, len(batch.rows))
        self.unstepped = True
        self.touched.add(relation)
        self.whole.add(relation)

    def add_table(self, table: Relation) -> None:
        """Add a table's input and its arrangement, both empty."""
        self.renderer.add_table(table.id, table.schema, table.primary_key)
        self.add_indexes(table)
        self.counts.start(table.id)

    def add_indexes(self, relation: Relation) -> None:
        """Add the arrangements of a relation's indexes. They have rows after ``hydrate``."""
        self._indexes.add(relation)
        self._stored = None
        self.unstepped = True

    def adopt_index(self, renderer: Renderer, relation: int, wanted: KeyCheck, nodes: tuple[NodeId, ...]) -> None:
        """Take over an index's arrangement that was filled beside the engine."""
        self._indexes.adopt(renderer, relation, wanted, nodes)
        self._reads_otherwise()

    def install(self, plan: Plan, relation: int, waiting: bool = False) -> None:
        """Add a view's dataflow. It has rows after ``hydrate`` and a step. ``waiting``: as in ``Renderer``."""
        self.renderer.install(plan, relation, waiting)
        self._added(relation)

    def adopt(self, renderer: Renderer, relation: int, contents: Mapping[int, History]) -> None:
        """Take over a view that was hydrated beside the engine. ``contents``: its initial contents, for the store."""
        self.renderer.adopt(renderer, relation)
        self._added(relation)
        self._adopted.update(contents)

    def switch(self, renderer: Renderer, view: int, made: Definition, difference: Difference, ordinal: int) -> None:
        """Exchange a view's definition, at an ordinal, for one that was hydrated beside the engine."""
        switch(self.renderer, renderer, view, made, difference, ordinal)
        errors = self.renderer.errors(view)
        if errors is not None:
            self._drain_from(errors, errors_of(view), view)
            self.error_outputs[view] = errors
        self._reads_otherwise()

    def succeed(self, old: int, new: int, columns: Sequence[int]) -> NodeId:
        """What reads a table reads another one's columns from here on, as ``planner.render.succession``."""
        rows = succeed(self.renderer, old, new, columns)
        self._reads_otherwise()
        return rows

    def give_back(self, old: int, new: int, rows: NodeId) -> None:
        """Undo ``succeed``."""
        give_back(self.renderer, old, new, rows)
        self._reads_otherwise()

    def _reads_otherwise(self) -> None:
        self.costs.forget()
        self._stored = None
        self.unstepped = True
        self.arranged += 1

    def _added(self, relation: int) -> None:
        """The renderer has a view's dataflow now."""
        self._forget_outputs(relation)
        output = self.outputs[relation] = self.renderer.output(relation)
        self._drain_from(output, relation, relation)
        errors = self.renderer.errors(relation)
        if errors is not None:
            self.error_outputs[relation] = errors
            self._drain_from(errors, errors_of(relation), relation)
        self.locks.add(relation)
        self.counts.start(relation)
        self.costs.forget()
        self._stored = None
        self.unstepped = True

    def _drain_from(self, output: NodeId, relation: int, view: int) -> None:
        self._drains[output] = relation, view
        self._undrained.add(output)

    def _forget_outputs(self, view: int) -> None:
        for output in (self.outputs.pop(view, None), self.error_outputs.pop(view, None)):
            if output is not None:
                self._drains.pop(output, None)
                self._undrained.discard(output)

    def plan_view(self, view: Relation, catalog: Catalog | None = None) -> Plan:
        """A view's plan over the present arrangements, from its definition in a catalog (default: the engine's)."""
        rel = definition_rel(view, catalog or self.catalog)
        return plan_maintained(rel, self.root(), view.planning, view.schema)

    def arrange(self, wishes: tuple[Wish, ...]) -> None:
        """Add arrangements of relations by columns, except those that exist already."""
        for relation, columns in wishes:
            stored = self.renderer.stored.get(relation)
            if stored is not None and columns not in stored.arrangements:
                self.renderer.add_arrangement(relation, columns)
                self._stored = None
                self.hydrate()
                self.arranged += 1
        self.settle()

    def hydrate(self) -> None:
        """Bring everything that was added up to date."""
        self.dataflow.hydrate()
        self.unstepped = True

    def free(self, *relations: int) -> None:
        """Free the nodes of tables and views in the dataflow; a plain view has none. Cost: the dataflow's nodes."""
        found = [relation for relation in relations if relation in self.renderer.stored]
        for relation in found:
            self.locks.forget(relation)
            self._forget_outputs(relation)
            for stored in (relation, errors_of(relation), *self.renderer.stored[relation].locks):
                self._adopted.pop(stored, None)
            self.counts.forget(relation)
            self._indexes.forget(relation)
        if found:
            self._stored = None
            self.renderer.drop_relation(*found)
            self.unstepped = True

    def arrangement(self, relation: int) -> Version:
        """A table's own arrangement (by primary key, or by the whole row) as of the last step."""
        node = self.renderer.arrangement(relation, ())
        assert node is not None, "a table has its arrangement"
        return self.head[node]

    def key_arrangement(self, relation: int, key_check: KeyCheck) -> Version:
        """The arrangement that holds a table's keys, as of the last step."""
        return self.head[self.renderer.key_check_node(relation, key_check)]

    def republish(self) -> None:
        """Step, and publish without a commit: after a start, or when a temporary view came or went."""
        self.unstepped = True
        self.settle()
        self.published = self.root()

    def drain(self) -> None:
        """Forget the views' changes so far, because the store has them."""
        for relation, output in self.outputs.items():
            self.count(relation, self.dataflow.changes(output).diffs)
        for output in self.error_outputs.values():
            self.dataflow.changes(output)
        self.locks.changes()

    def count(self, relation: int, diffs: Words) -> None:
        """Count the rows that a relation has from the start, without a commit."""
        self.counts.add_one(relation, int(diffs.sum()), self.timeline.last)

    def compact_to(self, epoch: int) -> None:
        """Keep history in memory only since the epoch up to which the store has applied everything."""
        self.forget_before(min(self.timeline.ordinal(epoch) or 0, self.published.ordinal))

    def forget_before(self, ordinal: int) -> None:
        """Ordinals below this one need no longer be distinguished in memory."""
        if ordinal > self.since:
            self.since = ordinal
            self.dataflow.allow_compaction(ordinal)
            if not self.dataflow.held:
                self.timeline.forget(ordinal)

    def stored(self) -> dict[int, Stored]:
        """Each relation's nodes in the dataflow, as a copy that does not change."""
        if self._stored is None:
            self._stored = dict(self.renderer.stored)
        return self._stored

    def root(self) -> Published:
        """The present state, for readers."""
        ordinal = self.timeline.last
        return Published(
            ordinal, self.timeline.epoch(ordinal), self.since, self.head, self.catalog, self.stored(),
            dict(self.failures), self.arranged, self.counts, self.dictionary.generation,
        )  # fmt: skip
