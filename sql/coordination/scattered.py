"""The materialized views that Spark maintains: each commit's changes are passed to them, and reads wait for their jobs.

The thread that publishes a group notes its changes. Everything else starts on the event loop: jobs run on a thread of
their own, one at a time; the engine thread takes in a job's rows; then the readers that wait for them are woken.
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

from ivm.errors import SqlError
from ivm.rows import Words
from sql.catalog.catalog import Catalog, Relation
from sql.coordination.jobs import Jobs
from sql.coordination.scattered_view import JobOutput, ScatteredView
from sql.coordination.spark import SharedSpark
from sql.engine.definition import definition_rel
from sql.engine.engine import Engine
from sql.engine.group import Delta
from sql.engine.served import Served
from sql.engine.snapshot import Published
from sql.engine.spread import spread_of


@dataclass(slots=True, eq=False)
class _Waiter:
    """A reader that waits until a view covers an epoch. ``failures``: the view's failures when the wait began."""

    view: ScatteredView
    epoch: int
    failures: int
    future: asyncio.Future[None]


class ScatteredViews:
    """All scattered views of a server. Each has a folder named after its id, in this database's folder where executors
    can see it."""

    def __init__(self, jobs: Jobs, spark: SharedSpark) -> None:
        self.views: dict[int, ScatteredView] = {}
        self.broken: dict[int, SqlError] = {}
        """Views whose definitions can no longer be divided into fragments, and why."""
        self._jobs = jobs
        self._spark = spark
        self._folder = _folder(jobs.engine, spark.shared)
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "scattered")
        self._waiters: list[_Waiter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._catalog: Catalog | None = None
        self._closed = False
        engine = jobs.engine
        self._follow(engine.published, recovering=True)
        self._thread.submit(self._remove_others, {str(relation) for relation in (*self.views, *self.broken)})
        engine.listeners.append(self._published)
        engine.kept_beside.append(self.words)
        self._look()

    # -- commits -------------------------------------------------------------------------------------------------

    def _published(self, delta: Delta, published: Published) -> None:
        """Note a published group. Runs on the thread that publishes."""
        for view in self.views.values():
            view.add(delta.epoch, delta.changes)
        if published.catalog is not self._catalog:
            self._follow(published)
        if self.views:
            self._wake()

    def _follow(self, published: Published, recovering: bool = False) -> None:
        """Start and remove views as the catalog has them."""
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
        """Remove the folders of views that were dropped while no server ran."""
        for folder in self._folder.glob("*"):
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)

    def _begin(self, relation: Relation, published: Published, recovering: bool) -> ScatteredView:
        engine = self._jobs.engine
        spread = spread_of(definition_rel(relation, published.catalog), published.catalog, relation.parts)
        folder = self._folder / str(relation.id)
        return ScatteredView(
            relation, spread, folder, engine.dictionary, engine.timeline, engine.persistence, published, recovering
        )

    def _need(self) -> None:
        """Have the store keep the history that a restart would have to apply."""
        persistence = self._jobs.engine.persistence
        if persistence is None:
            return
        needed: dict[int, int] = {}
        for view in self.views.values():
            applied = view.needs
            for relation in view.spread.tables:
                needed[relation] = min(needed.get(relation, applied), applied)
        persistence.needed = needed

    def words(self) -> list[Words] | None:
        """The words that a sweep of the dictionary must keep, on the engine thread; None: ask again later."""
        if any(view.reading for view in self.views.values()):
            return None
        return [words for view in self.views.values() for words in view.words()]

    def _wake(self) -> None:
        if not self._closed:
            self._loop.call_soon_threadsafe(self._look)

    # -- jobs ----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """On the event loop: answer the readers whose wait is over, and start due jobs."""
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
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

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
                await self._jobs.submit(partial(view.serve, made))
                self._need()
        except SqlError:
            return  # the server is shutting down
        self._look()

    def _run(self, view: ScatteredView) -> JobOutput | None:
        """Run a view's job on the jobs' thread. A bug is the view's error and does not end the server."""
        if view.gone or self._closed:
            return None
        try:
            made = view.run(self._spark.session())
        except Exception as error:
            traceback.print_exc()
            view.broke(SqlError("XX000", f"internal error: {type(error).__name__}: {error}"))
            return None
        return made

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """An empty folder that executors see; it is removed at the end."""
        self._folder.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="verify-", dir=self._folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # -- reads ---------------------------------------------------------------------------------------------------

    def among(self, inputs: Iterable[int]) -> list[ScatteredView]:
        """Those of a query's inputs that Spark maintains. Raises the error of a broken one."""
        for relation in inputs if self.broken else ():
            if relation in self.broken:
                raise self.broken[relation]
        return [self.views[i] for i in inputs if i in self.views] if self.views else []

    async def covers(self, view: ScatteredView, epoch: int) -> Served:
        """The view's rows, once they cover a commit's epoch. 58000: the job for that fails."""
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
        """Wait until a new view's first job has succeeded; raises its error."""
        view = self.views.get(relation)
        if view is None:
            return
        try:
            await self.covers(view, view.relation.created)
        except SqlError:
            raise view.error or SqlError("42P01", f'relation "{view.relation.name}" does not exist') from None

    async def close(self) -> None:
        """Start no more jobs. A running one ends with Spark, to no effect."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        for waiter in list(self._waiters):
            self._answer(waiter)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def wait(self) -> None:
        """Wait until nothing runs. Called after Spark has been stopped."""
        self._thread.shutdown(wait=True)


def _folder(engine: Engine, shared: Path | None) -> Path:
    """A folder of this database alone: several servers may share one folder with their executors."""
    name, persistence = f"views-{hashlib.sha256(engine.dictionary.secret).hexdigest()[:12]}", engine.persistence
    if shared is not None:
        return shared / name
    return (Path(tempfile.gettempdir()) if persistence is None else persistence.folder.resolve()) / name


def _behind(view: ScatteredView, error: SqlError) -> SqlError:
    hint = "It is tried again; see freshet.spark_jobs. SET max_staleness reads what is there, as of an earlier commit."
    message = f"materialized view {view.relation.name} is behind: {error.message}"
    return SqlError("58000", message, error.detail, hint)
