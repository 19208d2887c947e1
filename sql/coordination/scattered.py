"""The materialized views that Spark maintains: what commits change goes to them, jobs run, reads wait for their time.

Each published group is noted by the thread that publishes it. Everything else begins on the event loop: a job runs on
a thread of its own, one at a time, its rows are taken in by the engine's thread, and then those are woken who wait.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ivm.errors import SqlError
from ivm.rows import Words
from sql.catalog.catalog import Catalog, Relation
from sql.coordination.scattered_view import Made, ScatteredView
from sql.engine.definition import definition_rel
from sql.engine.group import Delta
from sql.engine.served import Served
from sql.engine.snapshot import Published
from sql.engine.spread import spread_of

if TYPE_CHECKING:
    from sql.coordination.coordinator import Coordinator


@dataclass(slots=True, eq=False)
class _Waiter:
    """Who waits for a view to cover an epoch. ``failures``: of the view when it began to wait."""

    view: ScatteredView
    epoch: int
    failures: int
    future: asyncio.Future[None]


class ScatteredViews:
    """All of a server's. Each has a folder of its own, by id, in one of this database in what executors share."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.views: dict[int, ScatteredView] = {}
        self.broken: dict[int, SqlError] = {}
        """Views whose definitions can no longer be divided, and why."""
        self._coordinator = coordinator
        self._folder = _folder(coordinator)
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "scattered")
        self._waiters: list[_Waiter] = []
        self._jobs: set[asyncio.Task[None]] = set()
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._catalog: Catalog | None = None
        self._closed = False
        engine = coordinator.engine
        self._follow(engine.published, recovering=True)
        self._thread.submit(self._remove_others, {str(relation) for relation in (*self.views, *self.broken)})
        engine.listeners.append(self._published)
        engine.kept_beside.append(self.words)
        self._look()

    # -- commits -------------------------------------------------------------------------------------------------

    def _published(self, delta: Delta, published: Published) -> None:
        """On the thread that publishes."""
        for view in self.views.values():
            view.note(delta.epoch, delta.changes)
        if published.catalog is not self._catalog:
            self._follow(published)
        if self.views:
            self._wake()

    def _follow(self, published: Published, recovering: bool = False) -> None:
        """Views come and go with the catalog."""
        self._catalog = catalog = published.catalog
        there = {relation.id: relation for relation in catalog.scattered()}
        gone = [view for relation, view in self.views.items() if relation not in there]
        views = {i: view for i, view in self.views.items() if i in there}
        for relation in there.values():
            if relation.id in views:
                views[relation.id].relation = relation
                continue
            try:
                views[relation.id] = self._begin(relation, published, recovering)
            except SqlError as error:
                self.broken[relation.id] = error
        self.views = views
        for view in gone:
            view.gone = True
            if not self._closed:
                self._thread.submit(view.remove)
        self._need()

    def _remove_others(self, known: set[str]) -> None:
        """Folders of views that were dropped while no server was there to see to them."""
        for folder in self._folder.glob("*"):
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)

    def _begin(self, relation: Relation, published: Published, recovering: bool) -> ScatteredView:
        engine = self._coordinator.engine
        spread = spread_of(definition_rel(relation, published.catalog), published.catalog, relation.parts)
        folder = self._folder / str(relation.id)
        return ScatteredView(
            relation, spread, folder, engine.dictionary, engine.timeline, engine.persistence, published, recovering
        )

    def _need(self) -> None:
        """The store keeps what a restart would have to apply."""
        persistence = self._coordinator.engine.persistence
        if persistence is None:
            return
        needed: dict[int, int] = {}
        for view in self.views.values():
            applied = view.needs
            for relation in view.spread.tables:
                needed[relation] = min(needed.get(relation, applied), applied)
        persistence.needed = needed

    def words(self) -> list[Words] | None:
        """What a sweep of the dictionary is to see, on the engine's thread; None: not now."""
        if any(view.reading for view in self.views.values()):
            return None
        return [words for view in self.views.values() for words in view.words()]

    def _wake(self) -> None:
        if not self._closed:
            self._loop.call_soon_threadsafe(self._look)

    # -- jobs ----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """On the event loop: answers who has waited long enough, and begins jobs that are due."""
        for waiter in list(self._waiters):
            self._answer(waiter)
        for view in self.views.values():
            if not view.due or self._closed:
                continue
            if view.pause > 0:
                self._later(view)
                continue
            view.start()
            task = asyncio.ensure_future(self._job(view))
            self._jobs.add(task)
            task.add_done_callback(self._jobs.discard)

    def _later(self, view: ScatteredView) -> None:
        if view.relation.id not in self._timers:
            again = partial(self._retry, view.relation.id)
            self._timers[view.relation.id] = self._loop.call_later(view.pause + 0.01, again)

    def _retry(self, relation: int) -> None:
        self._timers.pop(relation, None)
        self._look()

    async def _job(self, view: ScatteredView) -> None:
        try:
            made = await self._loop.run_in_executor(self._thread, self._run, view)
            if made is not None:
                await self._coordinator.submit(partial(view.take_in, made))
                self._need()
        except SqlError:
            return  # the server ends
        self._look()

    def _run(self, view: ScatteredView) -> Made | None:
        """On the jobs' thread. A fault of ours is the view's error, not the server's end."""
        if view.gone or self._closed:
            return None
        try:
            made = view.run(self._coordinator.spark())
        except Exception as error:
            traceback.print_exc()
            view.broke(SqlError("XX000", f"internal error: {type(error).__name__}: {error}"))
            return None
        return made

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """An empty folder that executors see, for as long as this lasts."""
        self._folder.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="verify-", dir=self._folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # -- reads ---------------------------------------------------------------------------------------------------

    def among(self, inputs: Iterable[int]) -> list[ScatteredView]:
        """The views of ours that a query reads."""
        for relation in inputs if self.broken else ():
            if relation in self.broken:
                raise self.broken[relation]
        return [self.views[i] for i in inputs if i in self.views] if self.views else []

    async def covers(self, view: ScatteredView, epoch: int) -> Served:
        """The view's rows, once they are right up to an epoch of a commit. 58000: the job for that fails."""
        while view.covered < epoch:
            waiter = _Waiter(view, epoch, view.failures, self._loop.create_future())
            self._waiters.append(waiter)
            self._answer(waiter)
            try:
                await waiter.future
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        assert view.served is not None
        return view.served

    def _answer(self, waiter: _Waiter) -> None:
        view, future = waiter.view, waiter.future
        if future.done():
            return
        if view.gone or self._closed:
            future.set_exception(SqlError("42P01", f'relation "{view.relation.name}" does not exist'))
        elif view.covered >= waiter.epoch:
            future.set_result(None)
        elif view.failures > waiter.failures and view.error is not None:
            future.set_exception(_behind(view, view.error))

    async def ready(self, relation: int) -> None:
        """A new view's first job has ended well; raises what it failed with."""
        view = self.views.get(relation)
        if view is None:
            return
        try:
            await self.covers(view, view.relation.created)
        except SqlError:
            raise view.error or SqlError("42P01", f'relation "{view.relation.name}" does not exist') from None

    async def close(self) -> None:
        """No job begins any more; one that runs ends with Spark, to no effect."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        for waiter in list(self._waiters):
            self._answer(waiter)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def wait(self) -> None:
        """Returns when nothing runs; after Spark has been stopped."""
        self._thread.shutdown(wait=True)


def _folder(coordinator: Coordinator) -> Path:
    """A folder of this database alone: several servers may share what their executors share."""
    name = f"views-{hashlib.sha256(coordinator.engine.dictionary.secret).hexdigest()[:12]}"
    persistence, shared = coordinator.engine.persistence, coordinator.shared
    if shared is not None:
        return shared / name
    return (Path(tempfile.gettempdir()) if persistence is None else persistence.folder.resolve()) / name


def _behind(view: ScatteredView, error: SqlError) -> SqlError:
    hint = "It is tried again; see freshet.spark_jobs. SET max_staleness reads what is there, as of an earlier commit."
    message = f"materialized view {view.relation.name} is behind: {error.message}"
    return SqlError("58000", message, error.detail, hint)
