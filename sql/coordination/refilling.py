"""Views that are down and are filled anew beside the engine, while commits and other reads go on.

Two kinds: views whose step kept others waiting (``Failing.filling``), which readers wait for; and views whose rows are
wrong, because a read found more deletions than insertions of a row. That is a fault of the server: the views that have
such rows, and those that share operators with them or read them, are taken down (``freshet.view_errors``) first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Final, TypeVar

from ivm.errors import SqlError
from sql.catalog.catalog import Relation, RelationKind
from sql.coordination.filling import Filling
from sql.coordination.hydration import Hydrators
from sql.coordination.jobs import Jobs
from sql.coordination.prepared import StaleError
from sql.engine.clock import timestamp_now
from sql.engine.definition import definition_rel
from sql.engine.engine import Engine
from sql.engine.guard import PATIENCE_SECONDS
from sql.engine.snapshot import Published, plan_maintained
from sql.engine.writer import Writer
from storage.record import CommitRecord

T = TypeVar("T")
log = logging.getLogger("freshet.views")
AT_ONCE: Final = 2
"""The most views filled at the same time, not counting those that take long."""
LONG_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.1
"""How often it is checked whether what is being filled is still wanted."""
START_SECONDS: Final = 3600.0
"""How long filling a view may take after a start, or by REFRESH. Memory keeps all history meanwhile."""
SLOW_SECONDS: Final = 60.0
FIRST_SECONDS: Final = 1.0
"""A view of whose inputs rows are removed while it is filled begins again after this time, then after twice as
long, and so on: these may have been the rows with which it does not end."""


class Refills:
    """Fills views anew. Used on the event loop."""

    def __init__(self, jobs: Jobs, hydrators: Hydrators, readers: ThreadPoolExecutor) -> None:
        self._jobs, self._hydrators, self._readers = jobs, hydrators, readers
        self._looking: asyncio.Task[None] | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        """Replaced whenever a view is no longer being filled."""
        self._closing = False
        self._progress: Callable[[str], None] = lambda _: None
        jobs.engine.failing.fill = self._wake
        self._since_start = set(jobs.engine.failing.filling)
        """The views not filled yet since the start."""
        self._began = monotonic()

    def start(self, progress: Callable[[str], None]) -> None:
        """Begin with the views that a start has left to be filled."""
        self._progress = progress
        if self._since_start:
            progress(f"filling {len(self._since_start)} views")
        self._begin()

    # -- views that are parked ----------------------------------------------------------------------------------

    def _wake(self) -> None:
        self._loop.call_soon_threadsafe(self._begin)

    async def ready(self, relations: Set[int]) -> None:
        """Wait while one of these is being filled, until what was made of it is published."""
        filling = self._jobs.engine.failing.filling
        while not (relations.isdisjoint(filling) and relations.isdisjoint(self._tasks)):
            await asyncio.shield(self._ended)

    @property
    def busy(self) -> bool:
        """Whether any view is being filled."""
        return bool(self._tasks or self._jobs.engine.failing.filling)

    def _begin(self) -> None:
        """Begin to fill the views that are not being filled yet."""
        for relation in list(self._jobs.engine.failing.filling):
            if relation not in self._tasks and not self._closing:
                self._tasks[relation] = asyncio.ensure_future(self._fill(relation))

    async def _fill(self, relation: int) -> None:
        failing = self._jobs.engine.failing
        try:
            limit = FIRST_SECONDS
            while relation in failing.filling and not self._closing:
                below = failing.below(relation)
                waits = [i for i in below if i in failing.filling]
                if waits:
                    await self.ready(set(waits))
                elif below:
                    error = self._jobs.engine.failures[below[0]]
                    await self._published(partial(failing.not_filled, relation, error))
                else:
                    async with self._turn():
                        limit = await self._attempt(relation, limit)
        finally:
            self._tasks.pop(relation, None)
            self._note_progress(relation)
            ended, self._ended = self._ended, self._loop.create_future()
            ended.set_result(None)
            if relation in failing.filling:  # again, since the last attempt
                self._begin()

    def _note_progress(self, relation: int) -> None:
        if relation not in self._since_start or self._closing:
            return
        self._since_start.discard(relation)
        if not self._since_start:
            self._progress(f"all views are filled, or down, after {monotonic() - self._began:.1f} s")

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """At most ``AT_ONCE`` at a time, not counting those that have lasted for long."""
        await self._turns.acquire()
        timer = self._loop.call_later(LONG_SECONDS, self._turns.release)
        try:
            yield
        finally:
            if not timer.cancelled() and self._loop.time() < timer.when():
                timer.cancel()
                self._turns.release()

    async def _attempt(self, relation: int, limit: float) -> float:
        """Try once, for at most ``limit`` seconds if rows are removed meanwhile; the next limit."""
        engine = self._jobs.engine
        refill = Refill(engine, relation)
        if refill.needs_engine:
            await self._published(partial(engine.failing.retry, relation))
            return limit
        if await self._published(partial(engine.failing.catch_up, relation)):
            refill.present, refill.whole = False, True
        if self._closing:  # a cancel that came too late for the job
            return limit
        watching = asyncio.ensure_future(self._watch(refill, relation, limit))
        try:
            if not await self._hydrators.fill(refill):
                await self._published(partial(engine.failing.retry, relation))
        except StaleError:
            await asyncio.sleep(LOOK_SECONDS)  # it has changed: begin again with what it is now
        except SqlError as error:
            why = refill.late if refill.late is not None else error
            if refill.whole and not refill.again:
                await self._published(partial(engine.failing.history.give_up, relation))
            if not refill.again and (refill.late is not None or not refill.whole):
                await self._published(partial(engine.failing.not_filled, relation, why))
        finally:
            watching.cancel()
        return limit * 2 if refill.again else limit

    async def _watch(self, refill: Refill, relation: int, limit: float) -> None:
        """Stop a refill that nobody wants any more, or that takes too long."""
        engine, began, slow = self._jobs.engine, monotonic(), False
        removed = engine.failing.filling.get(relation)
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now, lasted = engine.failing.filling.get(relation), monotonic() - began
            if lasted > self._patience(relation, refill):
                refill.late = SqlError("54001", "the view could not be filled in time")
            if refill.whole and not slow and lasted > SLOW_SECONDS:
                slow = True
                self._note_slow(relation, refill)
            refill.again = now is None or (not refill.whole and now != removed and lasted > limit)
            if refill.again or refill.late is not None:
                refill.cancel.set()
                return

    def _patience(self, relation: int, refill: Refill) -> float:
        """How many seconds filling a view may take."""
        engine = self._jobs.engine
        long = refill.whole or relation in engine.failing.unhurried
        return max(engine.watch.seconds, START_SECONDS) if long else engine.watch.seconds

    def _note_slow(self, relation: int, refill: Refill) -> None:
        """A view that is not filled when the server is killed stays down at the next start, if that took long."""
        assert refill.view is not None
        log.warning("view %s has been filling for %d s", refill.view.name, SLOW_SECONDS)
        persistence = self._jobs.engine.persistence
        if persistence is not None:
            self._loop.run_in_executor(None, persistence.store.lag_is_slow, relation)

    async def refresh(self, relation: int) -> None:
        """Fill a view that is down, and wait for it. Raises its error if that fails."""
        engine = self._jobs.engine
        if relation in engine.failures:
            await self._published(partial(engine.failing.refresh, relation))
        await self.ready({relation})
        failure = engine.failures.get(relation)
        if failure is not None:
            raise failure

    # -- views with wrong rows ----------------------------------------------------------------------------------

    def look(self) -> None:
        """Look at all views for wrong rows, soon, unless that is under way. Cost: their rows."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        engine = self._jobs.engine
        wrong = await self._loop.run_in_executor(self._readers, views_with_negative_counts, engine.published)
        if not wrong:
            return
        for relation in await self._published(partial(engine.failing.distrust, wrong)):
            if not await self._filled(relation):
                await self._published(partial(engine.failing.retry, relation))

    async def _published(self, work: Callable[[], T]) -> T:
        """A job of the engine thread, after all earlier commits have been published."""

        def job() -> T:
            self._jobs.engine.flush()
            return work()

        return await self._jobs.autocommit(job)

    async def _filled(self, relation: int) -> bool:
        refill = Refill(self._jobs.engine, relation, wrong=True)
        try:
            return not refill.needs_engine and await self._hydrators.fill(refill)
        except (SqlError, StaleError):
            return False  # the engine says why, if it fails again

    async def close(self) -> None:
        """Stop: a view that is not filled yet is filled at the next start."""
        self._closing = True
        tasks = [*self._tasks.values(), *([] if self._looking is None else [self._looking])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def views_with_negative_counts(published: Published) -> list[int]:
    """The materialized views that have a row with a negative count."""
    found = []
    for relation in published.catalog.relations.values():
        version = published.version(relation.id)
        if relation.kind is RelationKind.MATERIALIZED_VIEW and version is not None:
            _, diffs = version.rows_at(published.ordinal)
            if len(diffs) and diffs.min() < 0:
                found.append(relation.id)
    return found


class Refill(Filling):
    """A view that is down, on its way back. ``wrong``: what the store has of it is wrong too. ``whole``: it comes back
    with its history since the start. ``late``: why it was stopped. ``again``: it was stopped to begin again."""

    def __init__(self, engine: Engine, relation: int, wrong: bool = False) -> None:
        super().__init__(engine, present=not wrong)
        self.view = self._view = engine.catalog.relations.get(relation)
        self.wrong = wrong
        self.started = timestamp_now()
        self.whole = False
        self.late: SqlError | None = None
        self.again = False

    @property
    def needs_engine(self) -> bool:
        """Whether only the engine can fill it: what its joins with PROCTIME() have found is primary data."""
        return self._view is None or bool(self._view.locks)

    @property
    def hurry(self) -> float:
        return PATIENCE_SECONDS * self.engine.failing.patience_of(self._known().id)

    def plan(self) -> None:
        view = self._known()
        rel = definition_rel(view, self.engine.catalog)
        self._plan = plan_maintained(rel, self.engine.published, view.planning, view.schema)

    def check_current(self) -> None:
        view = self._known()
        if self.engine.catalog.relations.get(view.id) is not view or view.id not in self.engine.failures:
            raise StaleError

    def finish(self) -> None:
        engine, flow, view = self.engine, self._caught_up(), self._known()
        assert self._renderer is not None
        if self.whole and not engine.failing.catch_up(view.id):
            raise StaleError
        flow.attach()
        if self.wrong:
            self._replace(view)
        elif self.whole:
            self._catch_up_store(view)
        else:
            self._return(view)
        engine.failing.let_go()

    def _replace(self, view: Relation) -> None:
        """Commit the view as if it were new."""
        engine = self.engine
        assert self._renderer is not None
        writer = Writer.begin(engine)
        view = replace(view, created=engine.timeline.epoch(engine.timeline.last) + 1)
        writer.catalog = writer.catalog.with_relation(view, engine.next_version())
        engine.failing.filled(view.id, view.created)
        engine.adopt(self._renderer, view.id, self._histories(view.created))
        engine.add_indexes(view)
        engine.hydrate()
        writer.commit()

    def _catch_up_store(self, view: Relation) -> None:
        """Bring the view back in a commit of its own, which has all that the store lacks of it."""
        engine = self.engine
        assert self._renderer is not None
        contents, known = engine.failing.lagging.whole(view.id, self._contents)
        engine.adopt(self._renderer, view.id, contents)
        engine.failing.caught_up(view.id)
        engine.add_indexes(view)
        engine.hydrate()
        engine.counts.add_one(view.id, known, engine.timeline.last)
        engine.admit(CommitRecord(engine.clock.advance(engine.dataflow.moment)), engine.catalog, [])
        engine.flush()

    def _return(self, view: Relation) -> None:
        """Bring the view back in a commit of its own. Memory has nothing of it from before."""
        engine = self.engine
        assert self._renderer is not None
        engine.adopt(self._renderer, view.id, {})
        engine.failing.returned(view.id, self._histories(0))
        engine.add_indexes(view)
        engine.hydrate()
        engine.admit(CommitRecord(engine.clock.advance(engine.dataflow.moment)), engine.catalog, [])
        engine.flush()
        engine.forget_before(engine.timeline.last)
        engine.published = engine.root()

    def _known(self) -> Relation:
        assert self._view is not None
        return self._view
