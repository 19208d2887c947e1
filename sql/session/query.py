"""One query, ready to run over the snapshot of its read point."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ivm.budget import Budget
from ivm.errors import SqlError
from ivm.rows import RowSet, Words
from ivm.stops import stoppable
from planner.expr.context import Bounds, Context
from planner.logical.nodes import Finishing
from planner.peek.answer import answer, reads_few
from planner.peek.direct import is_short
from planner.peek.order_limit import finish
from planner.physical.nodes import Map, Node, Plan
from planner.physical.row_programs import MapFilter
from sql.catalog.catalog import RelationKind
from sql.engine.counts import count_row
from sql.engine.guard import LaggingError
from sql.engine.overlay import OverlaidSnapshot, Pending
from sql.engine.persist import Persistence
from sql.engine.served import Served, ServedHistory, ServedSnapshot
from sql.engine.snapshot import HistorySnapshot, MemorySnapshot, SystemRows, first_of
from sql.session.information import SystemInformation, system_words
from sql.session.read_points import ReadPoint
from sql.session.view_errors import BrokenView, broken_then, broken_view, store_at

SMALL: Final = 2000
"""The most rows for which a query runs on the event loop, where changing threads would cost more."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One query, ready to run on any thread."""

    plan: Plan
    inputs: frozenset[int]
    finishing: Finishing
    read_point: ReadPoint
    context: Context
    information: SystemInformation
    persistence: Persistence | None
    budget: Budget
    ignore_errors: bool = False
    count: int | None = None
    """The number of rows, if the query only counts them and the number is known."""
    pending: Pending | None = None
    """The transaction's pending changes; only short queries read them."""
    served: Mapping[int, Served] = field(default_factory=dict)
    """The inputs that Spark maintains."""
    long: bool = False
    """Whether only compiling its expressions may take long."""

    @property
    def small(self) -> bool:
        """Whether running it on the event loop is cheaper than changing threads."""
        if self.count is not None:
            return True
        if self.pending is not None:
            return True
        if self.long:
            return False
        nodes = self.plan.nodes
        if len(nodes) > 8 or self.read_point.history or not all(map(_quick, nodes)):
            return False
        return self._size() <= SMALL or self.short

    @property
    def short(self) -> bool:
        """Whether it looks keys up, or reads few rows one by one, whatever is computed of each."""
        snapshot = self._snapshot()
        few = reads_few(self.plan, snapshot, self.finishing, self.context, SMALL)
        return few or is_short(self.plan, snapshot, SMALL, self.context)

    def run(self, cancel: threading.Event | None = None) -> RowSet:
        """The rows. SqlError: an expression's, or a view's own error."""
        if self.count is not None:
            return finish(count_row(self.plan.schema, self.count), self.finishing, self.context)
        with stoppable(cancel, self.budget):
            return self._run(cancel)

    def _run(self, cancel: threading.Event | None) -> RowSet:
        snapshot = self._snapshot()
        return answer(self.plan, snapshot, self.context, Bounds(cancel, self.budget), self.finishing)

    def broken(self) -> list[BrokenView]:
        """The inputs that are views with errors at this read point, each with the error that reading it raises. 22023:
        it is not known that far back. Reads the store, if the read point is there."""
        found, published = [], self.read_point.published
        for relation in sorted(self.inputs):
            served = self.served.get(relation)
            if served is not None:
                error = first_of(served.errors, self.read_point.ordinal, self.context.dictionary)
                broken = None if error is None else BrokenView(relation, error)
            elif self.read_point.history:
                broken = self._broken_then(relation)
            else:
                broken = broken_view(published, self.read_point.ordinal, relation, self.context.dictionary)
            if broken is not None:
                found.append(broken)
        return found

    def _broken_then(self, relation: int) -> BrokenView | None:
        store = store_at(self.read_point.epoch, self.persistence)
        lagging = self.read_point.published.failures.get(relation)
        if isinstance(lagging, LaggingError) and self.read_point.epoch > lagging.upto:
            return BrokenView(relation, lagging, down=True)
        known = self.read_point.published.catalog.by_id(relation)
        if known is None or known.kind is not RelationKind.MATERIALIZED_VIEW:
            return None
        try:
            return broken_then(store, self.read_point.epoch, known, self.context.dictionary)
        except SqlError as error:
            if error.sqlstate != "22023" or not self.ignore_errors:
                raise
            return None

    def _size(self) -> int:
        versions = [self.read_point.published.version(i) for i in self.inputs]
        versions += [served.rows for served in self.served.values()]
        return sum(0 if v is None else v.count for v in versions)

    def _snapshot(self) -> MemorySnapshot | HistorySnapshot:
        published = self.read_point.published

        def rows(relation: int) -> Words:
            return system_words(relation, self.information, published, self.context.dictionary, self.read_point)

        if self.pending is not None:
            at, pending = self.read_point.ordinal, self.pending
            return OverlaidSnapshot(published, at, rows, self.ignore_errors, pending, self.context)
        return snapshot_of(self.read_point, self.persistence, rows, self.ignore_errors, self.served)


def snapshot_of(
    read_point: ReadPoint, persistence: Persistence | None, system: SystemRows, ignore_errors: bool = False,
    served: Mapping[int, Served] | None = None,
) -> MemorySnapshot | HistorySnapshot:  # fmt: skip
    """The snapshot of a read point. ``served``: the views that Spark maintains."""
    published = read_point.published
    if read_point.history:
        store, epoch, catalog = store_at(read_point.epoch, persistence), read_point.epoch, published.catalog
        if served:
            by = read_point.ordinal
            return ServedHistory(store, epoch, catalog, system, ignore_errors=ignore_errors, served=served, by=by)
        return HistorySnapshot(store, epoch, catalog, system, ignore_errors=ignore_errors)
    if served:
        return ServedSnapshot(published, read_point.ordinal, system, ignore_errors, served)
    return MemorySnapshot(published, read_point.ordinal, system, ignore_errors)


def _quick(node: Node) -> bool:
    """Whether a node's work is proportional to its input (that of a set-returning function is not)."""
    return not isinstance(node, Map) or isinstance(node.program, MapFilter)
