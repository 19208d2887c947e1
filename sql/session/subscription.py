"""SUBSCRIBE: a snapshot, then each commit's changes as they are published.

A subscription follows a stored relation, or a temporary view that the dataflow maintains for it alone. The engine
thread hands over every published group; rows wait in a queue on the event loop until the client takes them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from ivm.errors import SqlError, unsupported
from ivm.rows import RowSet, Vector, Words, pack, unpack
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from ivm.words import BOOL, INT8, ColumnType, Schema
from planner.expr.scalar import Column
from planner.logical.nodes import Get, Project, Rel
from planner.logical.nodes import schema as schema_of
from planner.logical.traversal import gets
from sql.catalog.catalog import Catalog
from sql.coordination.coordinator import Coordinator
from sql.coordination.prepared import StaleError
from sql.coordination.scattered_view import ScatteredView
from sql.engine.group import Delta
from sql.engine.served import Served
from sql.engine.snapshot import Published, plan_maintained
from sql.session.moments import moment_of, oldest_epoch
from sql.session.view_errors import first_of, in_view, standing_error
from sql.settings.maintainable import check_maintainable
from sql.settings.settings import Settings
from sql.statements.queries import OutputColumn
from sql.statements.results import Notice
from sql.statements.statements import Subscribe
from storage.stored import History

MOST_WAITING: Final = 4_000_000
"""Rows that may wait for a slow client before its subscription ends with 53200."""
HEARTBEAT_SECONDS: Final = 1.0


def _followed(rel: Rel) -> Rel:
    """The relation itself where a query is ``SELECT * FROM`` it."""
    if isinstance(rel, Project) and isinstance(rel.input, Get):
        columns = [e.index if isinstance(e, Column) else -1 for e in rel.exprs]
        if columns == list(range(len(rel.input.schema))):
            return rel.input
    return rel


@dataclass(frozen=True, slots=True)
class _Progress:
    """Nothing before this epoch will come any more."""

    epoch: int


class Subscription:
    """The rows of one SUBSCRIBE, to be taken with ``take``; ``close`` frees what it holds in the dataflow."""

    def __init__(self, coordinator: Coordinator, statement: Subscribe, up_to: int | None, settings: Settings) -> None:
        self.statement = statement
        self.columns = subscribe_columns(statement)
        self.dictionary = coordinator.engine.dictionary
        self._coordinator = coordinator
        self._source = schema_of(statement.query.rel)
        self._up_to = up_to
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[History | _Progress] = deque()
        self._size = 0
        self._arrived = asyncio.Event()
        self._ended = False
        self._error: SqlError | None = None
        self._ignore_errors = settings.boolean("ignore_view_errors")
        self._broken: SqlError | None = None
        """The error that stands. Until it is gone nothing is handed over, since nobody knows what is so."""
        self._held: list[History] = []
        """What changed meanwhile."""
        self._relation = -1
        self._temporary = False
        self._view: ScatteredView | None = None
        """What is followed, where Spark maintains it: it comes after the commits that change it."""
        self._inputs: frozenset[int] = frozenset()
        """What is read: when one of these goes, or is altered, nothing more is known."""
        self._families: dict[int, tuple[int, ...]] = {}
        """Tables that are read together with all that inherit from them, and what these are, by id: nor when another
        comes or goes."""
        self._reached = 0
        """The epoch up to which everything has been handed over."""
        self._hold: object = self.dictionary.generation
        """Keeps the values of what waits, and of what was taken last."""

    @property
    def ended(self) -> bool:
        """Nothing will come any more, and everything was taken."""
        return self._ended and not self._waiting

    @property
    def schema(self) -> Schema:
        """The schema of the rows that ``take`` gives."""
        progress = (ColumnType(BOOL, False),) if self.statement.progress else ()
        columns = tuple(ColumnType(c.type, c.nullable or self.statement.progress) for c in self._source)
        return (ColumnType(INT8, False), *progress, ColumnType(INT8, self.statement.progress), *columns)

    async def start(self, as_of: int | None) -> None:
        """Attach to the engine and queue the snapshot. 22023: as_of cannot be read; 0A000."""
        rel = _followed(self.statement.query.rel)
        finishing = self.statement.query.finishing
        if finishing.order or finishing.limit is not None or finishing.offset is not None:
            raise unsupported("ORDER BY or LIMIT in SUBSCRIBE")
        stored = isinstance(rel, Get)
        if as_of is not None and not stored:
            raise unsupported("SUBSCRIBE … AS OF on a query that is no relation", "Create a materialized view of it.")
        if isinstance(rel, Get) and (among := self._coordinator.scattered.among([rel.relation])):
            self._view = among[0]
            await self._follow(self._view, as_of)
            return
        published = await self._coordinator.jobs.submit(lambda: self._attach(rel))
        if as_of is None and (error := self._error_in(published)) is not None:
            raise error
        if as_of is None:
            self._snapshot(*published.rows(self._relation, published.ordinal), published.epoch)
            self._reached = max(self._reached, published.epoch)
        else:
            await self._from_history(published, as_of)
        self._reach(self._reached)

    def _attach(self, rel: Rel) -> Published:
        """On the engine thread: from the published state that this gives, every change is handed over. StaleError."""
        engine = self._coordinator.engine
        engine.flush()
        self._inputs = frozenset(gets(rel))
        if engine.catalog.lacks(self._inputs):
            raise StaleError
        check_maintainable(rel, engine.catalog, self._settings)
        self._families = families(engine.catalog, self._inputs)
        if isinstance(rel, Get):
            self._relation = rel.relation
        else:
            self._temporary = True
            self._relation = self._coordinator.temporary_id()
            engine.install(plan_maintained(rel, engine.published, self._settings.planning), self._relation)
            engine.hydrate()
            engine.republish()
            engine.drain_one(self._relation)
        engine.listeners.append(self._listen)
        return engine.published

    async def _from_history(self, published: Published, as_of: int) -> None:
        """The snapshot at an older epoch, and the changes since."""
        coordinator = self._coordinator
        moment = await moment_of(coordinator.jobs, published, [self._relation], as_of)
        persistence = coordinator.engine.persistence
        if moment.epoch >= published.epoch or persistence is None:
            self._snapshot(*published.rows(self._relation, published.ordinal), as_of)
            self._reached = max(self._reached, as_of, published.epoch)
            return
        known = published.catalog.relations[self._relation]
        start = max(as_of, oldest_epoch(published.catalog, known.id, coordinator.engine.clock.now()))

        def read() -> tuple[tuple[Words, Words], History]:
            persistence.flush()
            at = max(start, persistence.store.since(self._relation))
            return (
                persistence.store.rows(self._relation, at),
                persistence.store.range_updates(self._relation, at, published.epoch),
            )

        snapshot, history = await asyncio.to_thread(read)
        changes = list(self._waiting)
        self._waiting.clear()
        self._size = 0
        self._snapshot(*snapshot, as_of)
        self._put(history)
        for change in changes:
            self._put(change)
        self._reached = max(self._reached, published.epoch)

    async def _follow(self, view: ScatteredView, as_of: int | None) -> None:
        """What Spark maintains: its rows once they cover the present, or ``as_of``; then what each job has changed."""
        coordinator, engine = self._coordinator, self._coordinator.engine
        published = engine.published
        if as_of is not None:
            published = (await moment_of(coordinator.jobs, published, [view.relation.id], as_of)).published
        await coordinator.scattered.covers(view, published.epoch)

        def attach() -> tuple[Served, int]:
            self._relation = view.relation.id
            self._inputs = frozenset({self._relation})
            if engine.catalog.lacks(self._inputs):
                raise StaleError
            engine.listeners.append(self._listen)
            return view.follow(self._told)

        served, covered = await coordinator.jobs.submit(attach)
        if as_of is None and (error := self._error_of(served)) is not None:
            raise error
        rows, diffs = served.rows.rows_at(served.upper)
        if as_of is None or as_of >= covered:
            self._snapshot(rows, diffs, covered if as_of is None else as_of)
        else:
            await self._from_changes(view, as_of, covered, rows, diffs)
        self._reached = max(self._reached, covered)
        self._reach(self._reached)

    async def _from_changes(self, view: ScatteredView, as_of: int, covered: int, rows: Words, diffs: Words) -> None:
        """The rows at an older epoch, which are those of ``covered`` less what has changed since, and that."""
        parts = await asyncio.to_thread(lambda: list(view.changes(as_of, covered)))
        held = sorted_block(Block.of(
            np.concatenate([rows, *(part.rows for part in parts)]), np.zeros(len(diffs) + _rows(parts), np.int64),
            np.concatenate([diffs, *(-part.diffs for part in parts)]).reshape(-1, 1),
        )).arrays()  # fmt: skip
        came = list(self._waiting)
        self._waiting.clear()
        self._size = 0
        self._snapshot(held[0], held[2][:, 0], as_of)
        for item in (*parts, *came):
            self._put(item)

    def _snapshot(self, rows: Words, diffs: Words, epoch: int) -> None:
        """The snapshot comes before what was handed over meanwhile."""
        if self.statement.snapshot:
            history = History(rows, np.full(len(rows), epoch, np.int64), diffs)
            self._waiting.appendleft(history)
            self._size += len(rows)

    def _listen(self, delta: Delta, published: Published) -> None:
        """On the engine thread, for each published group."""
        history = delta.changes.get(self._relation)
        failure = published.failures.get(self._relation)
        known = published.catalog.relations
        gone = not known.keys() >= self._inputs
        gone = gone or any(i not in known or known[i].children != c for i, c in self._families.items())
        if self._view is not None:
            self._view.tell(partial(self._told, gone=gone))
            return
        broken = None if gone else self._error_in(published)
        self._loop.call_soon_threadsafe(self._deliver, history, delta.epoch, failure, gone, broken, published.hold)

    def _error_in(self, published: Published) -> SqlError | None:
        error = None
        if not self._ignore_errors:
            error = standing_error(published, self._relation, published.ordinal, self.dictionary)
        return None if error is None else in_view(error, published.catalog, self._relation)

    def _told(self, history: History | None, covered: int, served: Served, gone: bool = False) -> None:
        """On any thread, by the view that Spark maintains: in the order in which it comes to know."""
        broken = None if gone else self._error_of(served)
        hold = self.dictionary.generation
        self._loop.call_soon_threadsafe(self._deliver, history, covered, None, gone, broken, hold)

    def _error_of(self, served: Served) -> SqlError | None:
        error = None if self._ignore_errors else first_of(served.errors, served.upper, self.dictionary)
        return None if error is None else in_view(error, self._coordinator.engine.catalog, self._relation)

    def _deliver(
        self, history: History | None, epoch: int, failure: SqlError | None, gone: bool, broken: SqlError | None,
        hold: object,
    ) -> None:  # fmt: skip
        if self._ended:
            return
        if history is not None:
            self._hold = self._hold or hold
            self._held.append(history)
            self._count(len(history.rows))
        if failure is not None or gone:
            self._error = failure or SqlError("42P01", "what was subscribed to has been dropped or altered")
            self._ended = True
        self._broken = broken
        if broken is None:
            for item in self._held:
                self._size -= len(item.rows)
                self._put(item)
            self._held.clear()
            self._reach(epoch)
        self._arrived.set()

    def warning(self) -> Notice | None:
        """Why nothing comes, while what is subscribed to has an error."""
        if self._broken is None:
            return self._delay()
        message = f"nothing is said of what changes until this error is gone: {self._broken.message}"
        return Notice("WARNING", "01000", message, self._broken.detail, self._broken.hint)

    def _delay(self) -> Notice | None:
        if self._view is None or (error := self._view.error) is None:
            return None
        message = f"materialized view {self._view.relation.name} is behind: {error.message}"
        return Notice("WARNING", "01000", message, error.detail, "It is tried again; see freshet.spark_jobs.")

    def _put(self, item: History | _Progress) -> None:
        if isinstance(item, History):
            if self._up_to is not None:
                kept = item.epochs < self._up_to
                item = History(item.rows[kept], item.epochs[kept], item.diffs[kept])
            if not len(item.rows):
                return
            self._count(len(item.rows))
        self._waiting.append(item)
        self._arrived.set()

    def _count(self, rows: int) -> None:
        self._size += rows
        if self._size > MOST_WAITING:
            self._error = SqlError("53200", "the subscription's client is too slow")
            self._ended = True

    def _reach(self, epoch: int) -> None:
        self._reached = max(self._reached, epoch)
        if self.statement.progress:
            self._put(_Progress(self._reached + 1))
        if self._up_to is not None and self._reached + 1 >= self._up_to:
            self._ended = True
        self._arrived.set()

    async def wait(self, timeout: float | None) -> None:
        """Until there is something to take or it has ended; at most ``timeout`` seconds."""
        deadline = None if timeout is None else self._loop.time() + timeout
        if not self._waiting:
            self._hold = None  # what was taken before has been sent
        while not self._waiting and not self._ended:
            left = HEARTBEAT_SECONDS if deadline is None else min(HEARTBEAT_SECONDS, deadline - self._loop.time())
            if left <= 0:
                return
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), left)
            except TimeoutError:
                await self._heartbeat()

    async def _heartbeat(self) -> None:
        """Time passes without commits: tell it where that is asked for."""
        if self.statement.progress or self._up_to is not None:
            now = self._coordinator.engine.clock.now()
            published = await self._coordinator.jobs.published_at_least(now)
            if self._view is not None:
                self._view.tell(self._told, published.epoch, now)
            elif not self._ended and self._broken is None:
                self._reach(now)

    def take(self, count: int | None = None) -> RowSet:
        """What is waiting, ``count`` rows at most. Raises what ended the subscription once all was taken."""
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
            rows = self._rows(item)
            parts.append(rows)
            left -= len(rows)
            self._size -= len(rows) if isinstance(item, History) else 0
        empty = pack([Vector(np.zeros(0, np.int64))] * len(self.schema), self.schema, 0)
        return RowSet(np.concatenate(parts) if parts else empty, self.schema)

    def _rows(self, item: History | _Progress) -> Words:
        schema = self.schema
        if isinstance(item, _Progress):
            null = Vector(np.zeros(1, np.int64), np.ones(1, np.bool_))
            given = [Vector(np.array([item.epoch])), Vector(np.ones(1, np.int64))]
            return pack(given + [null] * (len(schema) - 2), schema, 1)
        order = np.argsort(item.epochs, kind="stable")
        count = len(order)
        progressed = [Vector(np.zeros(count, np.int64))] if self.statement.progress else []
        columns = unpack(item.rows[order], self._source)
        return pack([Vector(item.epochs[order]), *progressed, Vector(item.diffs[order]), *columns], schema, count)

    def close(self) -> None:
        """Ends it; the temporary view goes."""
        self._ended = True
        self._waiting.clear()
        self._arrived.set()
        if self._relation >= 0:
            self._task = asyncio.ensure_future(self._coordinator.jobs.submit(self._detach))

    def _detach(self) -> None:
        engine = self._coordinator.engine
        if self._view is not None and self._told in self._view.followers:
            self._view.followers.remove(self._told)
        if self._listen in engine.listeners:
            engine.listeners.remove(self._listen)
            if self._temporary:
                engine.flush()
                engine.drop_relation(self._relation)


def subscribe_columns(statement: Subscribe) -> tuple[OutputColumn, ...]:
    """mz_timestamp, [mz_progressed,] mz_diff, and the query's columns."""
    progress = (OutputColumn("mz_progressed", BOOL),) if statement.progress else ()
    return (OutputColumn("mz_timestamp", INT8), *progress, OutputColumn("mz_diff", INT8), *statement.query.columns)


def _rows(parts: list[History]) -> int:
    return sum(len(part.diffs) for part in parts)


def families(catalog: Catalog, inputs: frozenset[int]) -> dict[int, tuple[int, ...]]:
    """The tables that are read with all that inherit from them, by id, with their children."""
    found = {}
    read = [catalog.relations[i] for i in inputs if i in catalog.relations]
    for table in {r.id: r for own in read for r in (own, *catalog.above(own))}.values():
        members = (r for r in (table, *catalog.below(table)) if r.partitioning is None)
        if {r.id for r in members} <= inputs:
            found[table.id] = table.children
    return found
