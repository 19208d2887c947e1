"""SUBSCRIBE: a snapshot, then each commit's changes as they are published.

A subscription follows a stored relation, or a temporary view that the dataflow maintains for it alone. The changes wait
in a queue on the event loop until the client takes them (``sql.coordination.followers``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final

import numpy as np

from ivm.errors import SqlError, unsupported
from ivm.rows import RowSet, Words
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from ivm.words import BOOL, INT8
from planner.expr.scalar import Column
from planner.logical.nodes import Get, Project, Rel
from planner.logical.traversal import gets
from sql.catalog.catalog import Catalog, Relation, RelationKind
from sql.coordination.coordinator import Coordinator
from sql.coordination.followers import Listening, Written
from sql.coordination.prepared import StaleError
from sql.coordination.scattered_view import ScatteredView
from sql.engine.group import Delta
from sql.engine.guard import ParkedError
from sql.engine.served import Served
from sql.engine.snapshot import Published, first_of, plan_maintained
from sql.pgwire.copy_out import frame_copy
from sql.session.change_queue import ChangeQueue
from sql.session.differences import InOrder, difference
from sql.session.permits import Permit
from sql.session.read_points import oldest_epoch, read_point_of
from sql.session.view_errors import broken_then, in_view, standing_error
from sql.settings.maintainable import check_maintainable
from sql.settings.settings import Settings
from sql.statements.queries import OutputColumn
from sql.statements.results import Notice
from sql.statements.statements import Subscribe
from storage.duck import Store
from storage.stored import History

HEARTBEAT_SECONDS: Final = 1.0
MOST_WRITTEN: Final = 1000
"""The most changes that are written while other clients wait."""


def _followed(rel: Rel) -> Rel:
    """The relation itself if a query is ``SELECT * FROM`` it."""
    if isinstance(rel, Project) and isinstance(rel.input, Get):
        columns = [e.index if isinstance(e, Column) else -1 for e in rel.exprs]
        if columns == list(range(len(rel.input.schema))):
            return rel.input
    return rel


class Subscription:
    """One SUBSCRIBE. ``take`` returns its rows; ``close`` frees what it has in the dataflow."""

    def __init__(
        self, coordinator: Coordinator, statement: Subscribe, up_to: int | None, settings: Settings, permit: Permit
    ) -> None:  # fmt: skip
        self._permit = permit
        self.statement = statement
        self.columns = subscribe_columns(statement)
        self.dictionary = coordinator.engine.dictionary
        self._coordinator = coordinator
        self._queue = ChangeQueue(statement, up_to)
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._ignore_errors = settings.boolean("ignore_view_errors")
        self._broken: SqlError | None = None
        """The view's present error. Changes are held back until it is gone, because the rows are unknown."""
        self._relation = -1
        self._temporary = False
        self._view: ScatteredView | None = None
        """The followed view, if Spark maintains it. Its changes come later than the commits that cause them."""
        self._inputs: frozenset[int] = frozenset()
        """The relations read. The subscription ends when one of them is dropped or altered."""
        self._families: dict[int, tuple[int, ...]] = {}
        """For each table read together with its children: the children, by the table's id. It also ends when these
        change."""
        self._left: Published | None = None
        """The last state before the view was parked. What changes meanwhile is told once it is back."""
        self._in_order = InOrder()
        self._outlet: tuple[Hashable, Callable[[RowSet], bytes], Callable[[Written], bool]] | None = None
        """What ``listen`` has been given."""
        self._hold: object = self.dictionary.generation
        """Keeps, in the dictionary, the values of the waiting changes and of those taken last."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come and everything was taken."""
        return self._queue.closed and self._queue.empty

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
        published = await self._coordinator.jobs.autocommit(lambda: self._attach(rel))
        if as_of is None and (error := self._error_in(published)) is not None:
            raise error
        if as_of is None:
            self._queue.start(*published.rows(self._relation, published.ordinal), published.epoch)
            self._queue.reach(published.epoch)
        else:
            self._queue.reach(await self._from_history(published, as_of))

    def _attach(self, rel: Rel) -> Published:
        """On the engine thread: the published state after which all changes are passed on. Raises StaleError."""
        engine = self._coordinator.engine
        engine.flush()
        self._inputs = frozenset(gets(rel))
        if engine.catalog.lacks(self._inputs):
            raise StaleError
        check_maintainable(rel, engine.catalog, self._settings)
        self._families = families(engine.catalog, self._inputs)
        if isinstance(rel, Get):
            self._relation = rel.relation
            if self._relation in engine.failures:
                raise self._in_view(engine.failures[self._relation], engine.catalog)
        else:
            self._temporary = True
            self._relation = self._coordinator.temporary_id()
            engine.install(plan_maintained(rel, engine.published, self._settings.planning), self._relation)
            engine.hydrate()
            engine.republish()
            engine.dataflow.changes(engine.outputs[self._relation])  # the snapshot has them
        self._coordinator.followers.add(self._listen)
        return engine.published

    async def _from_history(self, published: Published, as_of: int) -> int:
        """Put the snapshot at an older epoch, and the changes since; the epoch up to which they are complete."""
        coordinator = self._coordinator
        read_point = await read_point_of(coordinator.jobs, published, [self._relation], as_of)
        persistence = coordinator.engine.persistence
        if read_point.epoch >= published.epoch or persistence is None:
            self._queue.start(*published.rows(self._relation, published.ordinal), as_of)
            return max(as_of, published.epoch)
        known = published.catalog.relations[self._relation]
        start = max(as_of, oldest_epoch(published.catalog, known.id, coordinator.engine.clock.now()))

        def read() -> tuple[tuple[Words, Words], History]:
            persistence.flush()
            at = max(start, persistence.store.since(self._relation))
            self._check_then(persistence.store, at, known)
            return (
                persistence.store.rows(self._relation, at),
                persistence.store.range_updates(self._relation, at, published.epoch),
            )

        snapshot, history = await asyncio.to_thread(read)
        self._queue.start(*snapshot, as_of, history)
        return published.epoch

    def _check_then(self, store: Store, epoch: int, known: Relation) -> None:
        """Raise the error that a view had at an epoch that the store remembers."""
        if known.kind is not RelationKind.MATERIALIZED_VIEW:
            return
        broken = broken_then(store, epoch, known, self.dictionary)
        if broken is not None and (broken.down or not self._ignore_errors):
            raise self._in_view(broken.error, self._coordinator.engine.catalog)

    async def _follow(self, view: ScatteredView, as_of: int | None) -> None:
        """Follow a view that Spark maintains: its rows now, or at ``as_of``; then each job's changes."""
        coordinator, engine = self._coordinator, self._coordinator.engine
        published = engine.published
        if as_of is not None:
            published = (await read_point_of(coordinator.jobs, published, [view.relation.id], as_of)).published
        await coordinator.scattered.covers(view, published.epoch)

        def attach() -> tuple[Served, int]:
            self._relation = view.relation.id
            self._inputs = frozenset({self._relation})
            if engine.catalog.lacks(self._inputs):
                raise StaleError
            coordinator.followers.add(self._listen)
            return view.follow(self._take)

        served, covered = await coordinator.jobs.submit(attach)
        if as_of is None and (error := self._error_of(served)) is not None:
            raise error
        rows, diffs = served.rows.rows_at(served.upper)
        if as_of is None or as_of >= covered:
            self._queue.start(rows, diffs, covered if as_of is None else as_of)
        else:
            await self._from_changes(view, as_of, covered, rows, diffs)
        self._queue.reach(covered)

    async def _from_changes(self, view: ScatteredView, as_of: int, covered: int, rows: Words, diffs: Words) -> None:
        """Put the rows at an older epoch, computed as those at ``covered`` minus the changes since, and these
        changes."""
        parts = await asyncio.to_thread(lambda: list(view.changes(as_of, covered)))
        held = sorted_block(Block.of(
            np.concatenate([rows, *(part.rows for part in parts)]), np.zeros(len(diffs) + _rows(parts), np.int64),
            np.concatenate([diffs, *(-part.diffs for part in parts)]).reshape(-1, 1),
        )).arrays()  # fmt: skip
        self._queue.start(held[0], held[2][:, 0], as_of, *parts)

    def _listen(self, delta: Delta, before: Published, published: Published) -> None:
        """Called on the event loop for published groups."""
        refusal = None if self._queue.closed else self._permit.refusal(published.catalog)
        if refusal is not None:
            self._queue.fail(refusal)
            self._queue.wake()
            return
        history = self._replaced(delta, before, published) or delta.changes.get(self._relation)
        failure = published.failures.get(self._relation)
        gone = self._gone(published)
        if self._view is not None:
            self._view.tell(partial(self._take, gone=gone))
            return
        broken = None if gone else self._error_in(published)
        if isinstance(failure, ParkedError) and not self._temporary:
            self._left = self._left or before
            history, failure, broken = None, None, failure
        elif self._left is not None and failure is None and not gone:
            old, self._left = (self._left, self._relation), None
            history = partial(difference, old, (published, self._relation), delta.epoch)
        self._in_order.deliver(
            history,
            partial(
                self._deliver, epoch=delta.epoch, failure=failure, gone=gone, broken=broken, hold=published.hold
            ),
        )  # fmt: skip

    def _gone(self, published: Published) -> bool:
        """Whether what it reads has been dropped or altered."""
        known = published.catalog.relations
        gone = not known.keys() >= self._inputs
        return gone or any(i not in known or known[i].children != c for i, c in self._families.items())

    def _replaced(self, delta: Delta, last: Published, published: Published) -> Callable[[], History] | None:
        """If the materialized view followed was replaced by one of the same columns: from now on that one is followed,
        and this computes the difference."""
        known = published.catalog.relations
        if self._temporary or self._relation in known:
            return None
        before = last.catalog.relations[self._relation]
        if before.kind is not RelationKind.MATERIALIZED_VIEW or self._relation in last.failures:
            return None
        after = next((r for r in known.values() if r.oid == before.oid and r.schema == before.schema), None)
        if after is None or after.id in published.failures or after.parts:
            return None
        self._relation, self._inputs = after.id, frozenset({after.id})
        self._families = families(published.catalog, self._inputs)
        return partial(difference, (last, before.id), (published, after.id), delta.epoch)

    def _error_in(self, published: Published) -> SqlError | None:
        error = None
        if not self._ignore_errors:
            error = standing_error(published, self._relation, published.ordinal, self.dictionary)
        return None if error is None else self._in_view(error, published.catalog)

    def _in_view(self, error: SqlError, catalog: Catalog) -> SqlError:
        return self._permit.prepared.shown(in_view(error, catalog, self._relation, self._permit.role))

    def _take(self, history: History | None, covered: int, served: Served, gone: bool = False) -> None:
        """Called by a view that Spark maintains, on any thread, in the order of its changes."""
        broken = None if gone else self._error_of(served)
        hold = self.dictionary.generation
        self._loop.call_soon_threadsafe(self._deliver, history, covered, None, gone, broken, hold)

    def _error_of(self, served: Served) -> SqlError | None:
        error = None if self._ignore_errors else first_of(served.errors, served.upper, self.dictionary)
        return None if error is None else self._in_view(error, self._coordinator.engine.catalog)

    def _deliver(
        self, history: History | None, epoch: int, failure: SqlError | None, gone: bool, broken: SqlError | None,
        hold: object,
    ) -> None:  # fmt: skip
        queue = self._queue
        if queue.closed:
            return
        if history is not None:
            self._hold = self._hold or hold
            queue.hold_back(history)
        if failure is not None or gone:
            queue.fail(failure or SqlError("42P01", "what was subscribed to has been dropped or altered"))
        self._broken = broken
        if broken is None:
            queue.release(epoch)
        queue.wake()
        self._listen_again()

    def warning(self) -> Notice | None:
        """Why no changes are coming, if the relation has an error or its jobs fail."""
        if self._broken is None:
            return self._delay()
        message = f"nothing is said of what changes until this error is gone: {self._broken.message}"
        return Notice("WARNING", "01000", message, self._broken.detail, self._broken.hint)

    def _delay(self) -> Notice | None:
        if self._view is None or (error := self._view.error) is None:
            return None
        message = f"materialized view {self._view.relation.name} is behind: {error.message}"
        return Notice("WARNING", "01000", message, error.detail, "It is tried again; see freshet.spark_jobs.")

    def listen(self, form: Hashable, write: Callable[[RowSet], bytes], push: Callable[[Written], bool]) -> None:
        """Send changes as they come, while nothing waits to be taken. ``write``: their bytes, the same for all
        subscriptions with this ``form``; ``push``: see ``sql.coordination.followers.Listening``."""
        self._outlet = form, write, push
        self._listen_again()

    def _listen_again(self) -> None:
        """Listen, if there is an outlet and the client waits for nothing but changes."""
        if self._outlet is None or self._reports or self._view is not None or self._broken is not None:
            return
        if not self._queue.quiet or not self._in_order.idle or self._left is not None:
            return
        form, write, push = self._outlet

        def written(delta: Delta, published: Published) -> Written | None:
            return self._written(delta, published, write)

        followers = self._coordinator.followers
        number = followers.form((form, self._relation, self._inputs, self._ignore_errors, self.columns))
        followers.listen(self._listen, Listening(number, written, push, self._permit.holds))

    def _written(self, delta: Delta, published: Published, write: Callable[[RowSet], bytes]) -> Written | None:
        """What is sent of changes if nothing else has happened, and they are few."""
        if published.failures.get(self._relation) is not None or self._gone(published) or self._error_in(published):
            return None
        if not self._permit.holds(published.catalog):
            return None
        history = delta.changes.get(self._relation)
        if history is None or not len(history.rows):
            return Written(b"", 0, 0)
        if len(history.rows) > MOST_WRITTEN:
            return None
        rows = RowSet(self._queue.rows(history), self._queue.schema)
        data = write(rows)
        return Written(frame_copy(data) or data, len(rows), len(data))

    @property
    def _reports(self) -> bool:
        """Whether the client is told how far the changes are known."""
        return self.statement.progress or self._queue.up_to is not None

    async def wait(self, timeout: float | None) -> None:
        """Wait until there is something to take or the subscription has ended; ``timeout`` seconds at most. With a
        timeout, everything is there that was committed before."""
        if timeout is not None:
            self._coordinator.followers.catch_up(self._listen)
        deadline = None if timeout is None else self._loop.time() + timeout
        queue = self._queue
        if queue.empty:
            self._hold = None  # the rows taken before have been sent
        beat = HEARTBEAT_SECONDS if self._reports else None
        while queue.empty and not queue.closed:
            left = None if deadline is None else deadline - self._loop.time()
            if left is not None and left <= 0:
                return
            until = min((each for each in (left, beat) if each is not None), default=None)
            if not await queue.arrival(until):
                await self._heartbeat()

    async def _heartbeat(self) -> None:
        """Report progress while there are no commits, if the statement asks for it."""
        if self._reports:
            now = self._coordinator.engine.clock.now()
            published = await self._coordinator.jobs.published_at_least(now)
            if self._view is not None:
                self._view.tell(self._take, published.epoch, now)
            elif not self._queue.closed and self._broken is None:
                self._queue.reach(now)

    def take(self, count: int | None = None) -> RowSet:
        """The waiting rows, at most ``count``. Raises the subscription's error once everything was taken."""
        return self._queue.take(count)

    def close(self) -> None:
        """End the subscription, and drop its temporary view."""
        self._queue.close()
        self._coordinator.followers.listen(self._listen, None)
        if self._relation >= 0:
            self._task = asyncio.ensure_future(self._coordinator.jobs.submit(self._detach))

    def _detach(self) -> None:
        engine = self._coordinator.engine
        if self._view is not None and self._take in self._view.followers:
            self._view.followers.remove(self._take)
        if self._coordinator.followers.remove(self._listen) and self._temporary:
            engine.flush()
            engine.drop_relation(self._relation)


def subscribe_columns(statement: Subscribe) -> tuple[OutputColumn, ...]:
    """mz_timestamp, [mz_progressed,] mz_diff, and the query's columns."""
    progress = (OutputColumn("mz_progressed", BOOL),) if statement.progress else ()
    return (OutputColumn("mz_timestamp", INT8), *progress, OutputColumn("mz_diff", INT8), *statement.query.columns)


def _rows(parts: list[History]) -> int:
    return sum(len(part.diffs) for part in parts)


def families(catalog: Catalog, inputs: frozenset[int]) -> dict[int, tuple[int, ...]]:
    """For each table read together with all its descendants: its children, by the table's id."""
    found = {}
    read = [catalog.relations[i] for i in inputs if i in catalog.relations]
    for table in {r.id: r for own in read for r in (own, *catalog.above(own))}.values():
        members = (r for r in (table, *catalog.below(table)) if r.partitioning is None)
        if {r.id for r in members} <= inputs:
            found[table.id] = table.children
    return found
