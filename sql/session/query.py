"""Reading: which moment a query sees, and its run over that moment's snapshot."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from ivm.errors import SqlError
from ivm.rows import RowSet, Words
from ivm.trace.trace import Version
from ivm.words import Kind
from planner.expr.context import Bounds, Context
from planner.expr.evaluate.evaluator import constant
from planner.expr.row_errors import first_error
from planner.expr.scalar import Scalar
from planner.logical.nodes import Finishing
from planner.peek.direct import is_short
from planner.peek.order_limit import finish
from planner.peek.run import run
from planner.physical.nodes import Map, Node, Plan
from planner.physical.row_programs import MapFilter
from sql.catalog.catalog import STORED, Catalog
from sql.engine.clock import POSTGRES_EPOCH
from sql.engine.counts import count_row
from sql.engine.overlay import OverlaidSnapshot, Pending
from sql.engine.persist import DEFAULT_RETAIN
from sql.engine.served import Served, ServedHistory, ServedSnapshot
from sql.engine.snapshot import HistorySnapshot, MemorySnapshot, Published, SystemRows
from sql.session.state import SessionState, system_words

if TYPE_CHECKING:
    from sql.coordination.coordinator import Coordinator
    from storage.dictionary import Dictionary

SMALL: Final = 2000
"""Rows that are read where we stand: to change threads would cost more."""
MILLISECONDS: Final = range(10**11, 10**14)
"""Integers that are milliseconds since 1970 between 1973 and 5138."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What a query sees: a published state at one of its ordinals, or (``history``) the store at an epoch."""

    published: Published
    ordinal: int
    epoch: int
    history: bool = False


def present(published: Published) -> Moment:
    """The newest of a published state."""
    return Moment(published, published.ordinal, published.epoch)


async def moment_of(
    coordinator: Coordinator, published: Published, inputs: Iterable[int], epoch: int, at_least: bool = False
) -> Moment:
    """The moment of AS OF. 22023: in the future, or older than what is retained."""
    now = coordinator.engine.clock.now()
    if epoch > now:
        hint = f"The present is {now}: epochs are microseconds since 1970."
        raise SqlError("22023", f"cannot read as of {epoch}: it is in the future", hint=hint)
    if epoch > published.epoch:
        published = await coordinator.published_at_least(epoch)
    oldest = max((oldest_epoch(published.catalog, i, now) for i in inputs), default=0)
    if epoch < oldest and at_least:
        epoch = oldest
    if epoch < oldest:
        raise _too_old(epoch, oldest, published.epoch)
    ordinal = coordinator.engine.timeline.ordinal(epoch)
    if ordinal is not None and ordinal >= published.since:
        return Moment(published, ordinal, epoch)
    return Moment(published, 0, epoch, history=True)


def _too_old(epoch: int, oldest: int, newest: int) -> SqlError:
    hint = "CREATE … WITH (RETAIN HISTORY FOR '…') sets how much history is kept."
    if epoch in MILLISECONDS:
        hint = f"Epochs are microseconds since 1970; {epoch} looks like milliseconds: did you mean {epoch * 1000}?"
    return SqlError(
        "22023",
        f"cannot read as of {epoch}: no history is kept that far back",
        f"What is asked for can be read from {oldest} ({_text(oldest)}) to {newest} ({_text(newest)}).",
        hint,
    )


def _text(epoch: int) -> str:
    return datetime.fromtimestamp(epoch / 1e6, UTC).isoformat(sep=" ", timespec="milliseconds")


def oldest_epoch(catalog: Catalog, relation: int, now: int) -> int:
    """The oldest epoch that is promised for a relation."""
    known = catalog.relations.get(relation)
    if known is None or known.kind not in STORED:
        return 0
    return max(known.created, now - (known.retain or DEFAULT_RETAIN))


def epoch_of(expr: Scalar, context: Context, what: str = "AS OF") -> int:
    """AS OF's or UP TO's expression as an epoch: a bigint as it is, a timestamptz in µs since 1970."""
    datum = constant(expr, context)
    if datum is None:
        raise SqlError("22004", f"{what} must not be null")
    assert isinstance(datum, int), "the binder allows bigint and timestamptz"
    return datum + POSTGRES_EPOCH if expr.type.kind is Kind.TIMESTAMPTZ else datum


def standing_error(published: Published, relation: int, ordinal: int, dictionary: Dictionary) -> SqlError | None:
    """The first of a view's errors as of an ordinal."""
    return first_of(published.errors(relation), ordinal, dictionary)


def first_of(errors: Version | None, ordinal: int, dictionary: Dictionary) -> SqlError | None:
    """The first of some error rows as of an ordinal."""
    if errors is None or not errors.count:
        return None
    rows, _ = errors.rows_at(ordinal)
    return first_error(rows, dictionary) if len(rows) else None


def in_view(error: SqlError, catalog: Catalog, relation: int) -> SqlError:
    """An error as those who read the view are told of it."""
    known = catalog.by_id(relation)
    hint = "SET ignore_view_errors = on reads the good rows."
    if known is None:  # a subscription's own query
        return SqlError(error.sqlstate, error.message, error.detail, error.hint or hint)
    message = f"{error.message} (in materialized view {known.name})"
    return SqlError(error.sqlstate, message, error.detail, error.hint or f"See freshet.view_errors; {hint}")


@dataclass(frozen=True, slots=True)
class Reading:
    """One query, ready to run on any thread."""

    plan: Plan
    inputs: frozenset[int]
    finishing: Finishing
    moment: Moment
    context: Context
    state: SessionState
    coordinator: Coordinator
    ignore_errors: bool = False
    count: int | None = None
    """The rows counted, where the query does nothing else and the number is known."""
    pending: Pending | None = None
    """What the transaction has changed and is not stepped yet; only a short query may be read with it."""
    served: Mapping[int, Served] = field(default_factory=dict)
    """The inputs that Spark maintains."""

    @property
    def small(self) -> bool:
        """Whether it is cheaper to run where we stand than to change threads."""
        if self.count is not None:
            return True
        if self.pending is not None:
            return True
        nodes = self.plan.nodes
        if len(nodes) > 8 or self.moment.history or not all(map(_quick, nodes)):
            return False
        return self._size() <= SMALL or is_short(self.plan, self._snapshot(), SMALL)

    def run(self, cancel: threading.Event | None = None) -> RowSet:
        """The rows. SqlError: an expression's, or a view's own error."""
        if self.count is not None:
            return finish(count_row(self.plan.schema, self.count), self.finishing, self.context)
        snapshot = self._snapshot()
        rows = run(self.plan, snapshot, self.context, Bounds(cancel, self.coordinator.budget))
        return finish(rows, self.finishing, self.context)

    def broken(self) -> list[tuple[int, SqlError]]:
        """The views among the inputs that have errors at this moment, with what reading them says."""
        published = self.moment.published
        found = []
        for relation in sorted(self.inputs):
            failure = published.failures.get(relation)
            served = self.served.get(relation)
            if served is not None:
                failure = first_of(served.errors, self.moment.ordinal, self.context.dictionary)
            elif failure is None and not self.moment.history:
                failure = standing_error(published, relation, self.moment.ordinal, self.context.dictionary)
            if failure is not None:
                found.append((relation, failure))
        return found

    def _size(self) -> int:
        versions = [self.moment.published.version(i) for i in self.inputs]
        versions += [served.rows for served in self.served.values()]
        return sum(0 if v is None else v.count for v in versions)

    def _snapshot(self) -> MemorySnapshot | HistorySnapshot:
        published = self.moment.published

        def rows(relation: int) -> Words:
            return system_words(relation, self.state, published, self.context.dictionary)

        if self.pending is not None:
            return OverlaidSnapshot(published, self.moment.ordinal, rows, self.ignore_errors, self.pending)
        return snapshot_of(self.moment, self.coordinator, rows, self.ignore_errors, self.served)


def snapshot_of(
    moment: Moment, coordinator: Coordinator, system: SystemRows, ignore_errors: bool = False,
    served: Mapping[int, Served] | None = None,
) -> MemorySnapshot | HistorySnapshot:  # fmt: skip
    """What there is at a moment. ``served``: the views that Spark maintains."""
    published = moment.published
    if moment.history:
        persistence = coordinator.engine.persistence
        assert persistence is not None, "history is kept in the store"
        if moment.epoch > persistence.applied_epoch:
            persistence.flush()
        if served:
            store, catalog = persistence.store, published.catalog
            return ServedHistory(store, moment.epoch, catalog, system, served=served, by=moment.ordinal)
        return HistorySnapshot(persistence.store, moment.epoch, published.catalog, system)
    if served:
        return ServedSnapshot(published, moment.ordinal, system, ignore_errors, served)
    return MemorySnapshot(published, moment.ordinal, system, ignore_errors)


def _quick(node: Node) -> bool:
    """Whether a node's work is in proportion to what it reads (a set-returning function's is not)."""
    return not isinstance(node, Map) or isinstance(node.program, MapFilter)


def at_epoch(context: Context, epoch: int) -> Context:
    """The context with the query's own time, for mz_now()."""
    return replace(context, epoch=epoch)
