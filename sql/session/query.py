"""One query, ready to run over the snapshot of its read point."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ivm.budget import Budget
from ivm.errors import SqlError
from ivm.rows import RowSet, Words
from planner.expr.context import Bounds, Context
from planner.logical.nodes import Finishing
from planner.peek.direct import is_short
from planner.peek.order_limit import finish, rows_wanted
from planner.peek.run import run
from planner.physical.nodes import Map, Node, Plan
from planner.physical.row_programs import MapFilter
from sql.engine.counts import count_row
from sql.engine.overlay import OverlaidSnapshot, Pending
from sql.engine.persist import Persistence
from sql.engine.served import Served, ServedHistory, ServedSnapshot
from sql.engine.snapshot import HistorySnapshot, MemorySnapshot, SystemRows, first_of
from sql.session.information import SystemInformation, system_words
from sql.session.read_points import ReadPoint
from sql.session.view_errors import standing_error

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

    @property
    def small(self) -> bool:
        """Whether running it on the event loop is cheaper than changing threads."""
        if self.count is not None:
            return True
        if self.pending is not None:
            return True
        nodes = self.plan.nodes
        if len(nodes) > 8 or self.read_point.history or not all(map(_quick, nodes)):
            return False
        return self._size() <= SMALL or is_short(self.plan, self._snapshot(), SMALL)

    def run(self, cancel: threading.Event | None = None) -> RowSet:
        """The rows. SqlError: an expression's, or a view's own error."""
        if self.count is not None:
            return finish(count_row(self.plan.schema, self.count), self.finishing, self.context)
        snapshot = self._snapshot()
        wanted = rows_wanted(self.finishing, self.context) if self.plan.grows else None
        rows = run(self.plan, snapshot, self.context, Bounds(cancel, self.budget), wanted)
        return finish(rows, self.finishing, self.context)

    def broken(self) -> list[tuple[int, SqlError]]:
        """The inputs that are views with errors at this read point, each with the error that reading it raises."""
        published = self.read_point.published
        found = []
        for relation in sorted(self.inputs):
            failure = published.failures.get(relation)
            served = self.served.get(relation)
            if served is not None:
                failure = first_of(served.errors, self.read_point.ordinal, self.context.dictionary)
            elif failure is None and not self.read_point.history:
                failure = standing_error(published, relation, self.read_point.ordinal, self.context.dictionary)
            if failure is not None:
                found.append((relation, failure))
        return found

    def _size(self) -> int:
        versions = [self.read_point.published.version(i) for i in self.inputs]
        versions += [served.rows for served in self.served.values()]
        return sum(0 if v is None else v.count for v in versions)

    def _snapshot(self) -> MemorySnapshot | HistorySnapshot:
        published = self.read_point.published

        def rows(relation: int) -> Words:
            return system_words(relation, self.information, published, self.context.dictionary)

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
        assert persistence is not None, "history is kept in the store"
        if read_point.epoch > persistence.applied_epoch:
            persistence.flush()
        if served:
            store, catalog = persistence.store, published.catalog
            return ServedHistory(store, read_point.epoch, catalog, system, served=served, by=read_point.ordinal)
        return HistorySnapshot(persistence.store, read_point.epoch, published.catalog, system)
    if served:
        return ServedSnapshot(published, read_point.ordinal, system, ignore_errors, served)
    return MemorySnapshot(published, read_point.ordinal, system, ignore_errors)


def _quick(node: Node) -> bool:
    """Whether a node's work is proportional to its input (that of a set-returning function is not)."""
    return not isinstance(node, Map) or isinstance(node.program, MapFilter)
