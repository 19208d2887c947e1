"""CREATE MATERIALIZED VIEW beside the engine: commits continue while a new view is hydrated.

The engine thread does only three short jobs. It creates the view's nodes, over immutable versions of their inputs; it
reports several times which commits have been made since; and at the end it catches up with the last commits, takes over
the nodes and commits the definition. Everything long, planning included, runs on a thread of its own. The view appears
in one commit or not at all.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum
from typing import Final, TypeVar

from ivm.errors import SqlError
from ivm.hydration.detached import Detached
from planner.distributed.hydration_choice import Choice, Hydrate, choose, searches_ranges, stored_in
from planner.logical.nodes import Rel
from planner.options import Joins
from sql.catalog.catalog import Relation
from sql.catalog.roles import BOOTSTRAP_ID
from sql.catalog.securables import securable
from sql.coordination.filling import Filling, HydrationPhase
from sql.coordination.index_filling import IndexFilling
from sql.coordination.jobs import Jobs
from sql.coordination.prepared import Prepared, StaleError
from sql.ddl.create import Definer
from sql.engine.row_locks import LockOwner
from sql.engine.snapshot import plan_maintained
from sql.engine.writer import Writer
from sql.statements.definitions import CreateView
from storage.spark.session import SparkSession

T = TypeVar("T")
AT_ONCE: Final = 2
"""The most views hydrated at the same time."""
FEW: Final = 200
"""The most updates that the engine thread may catch up with while commits wait."""
REFILL_THREADS: Final = 16
ROUNDS: Final = 8
"""The most rounds of catching up beside the engine: a view may be slower than the commits."""


class Way(Enum):
    """How to create a view: not at all, because it exists and IF NOT EXISTS accepts that; beside the engine; or within
    it, because the definition also changes other relations."""

    NOT_AT_ALL = 0
    BESIDE = 1
    WITHIN = 2


class Hydrators:
    """The threads that hydrate views. ``under_way``: the views being created. ``refilling``: those that are filled
    anew, which have threads of their own."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._threads = ThreadPoolExecutor(AT_ONCE, "hydrator")
        self._refills = ThreadPoolExecutor(REFILL_THREADS, "refill")
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.under_way: list[Creation] = []
        self.refilling: list[Filling] = []

    async def create(self, creation: Creation, owner: LockOwner, patience: int) -> bool:
        """Create the view, which is committed on return. False: only the engine itself can; nothing has changed.

        ``owner``, ``patience``: who waits in the end for others who change the catalog, and for how many milliseconds.
        """
        self.under_way.append(creation)
        try:
            async with self._turns:
                way = await self._job(creation.describe)
                if way is Way.NOT_AT_ALL:
                    return True
                if way is Way.BESIDE:
                    await self._beside(creation.plan, creation.cancel, self._threads)
                    if await self._go(creation, self._threads, owner, patience):
                        return True
                creation.check_local()
                return False
        finally:
            self.under_way.remove(creation)

    async def _go(
        self, filling: Filling, threads: ThreadPoolExecutor, owner: LockOwner | None = None, patience: int = 0
    ) -> bool:
        try:
            if not await self._job(filling.begin):
                return False
            filling.phase = HydrationPhase.HYDRATING
            for _ in range(ROUNDS):
                await self._beside(filling.run, filling.cancel, threads)
                filling.behind = await self._job(filling.advance)
                filling.phase = HydrationPhase.CATCHING_UP
                if filling.behind <= FEW:
                    break
            await self._beside(filling.run, filling.cancel, threads)
            filling.phase = HydrationPhase.TAKING_OVER
            await self._jobs.autocommit(filling.finish, owner=owner, patience=patience)
        except BaseException:
            filling.cancel.set()
            self._jobs.clean_up(filling.abandon)
            raise
        return True

    async def _job(self, work: Callable[[], T]) -> T:
        """Run a job of the engine thread, as a transaction of its own. A cancel that came too late for the job still
        takes effect."""
        task = asyncio.current_task()
        assert task is not None
        before = task.cancelling()
        result = await self._jobs.autocommit(work)
        if task.cancelling() > before:
            raise asyncio.CancelledError
        return result

    async def _beside(self, work: Callable[[], None], cancel: threading.Event, threads: ThreadPoolExecutor) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(threads, work)
        except asyncio.CancelledError:
            cancel.set()
            raise

    async def index(self, filling: IndexFilling, owner: LockOwner, patience: int) -> bool:
        """Create an index, which is committed on return. False: only the engine itself can, or there is nothing to do;
        nothing has changed. ``owner``, ``patience``: as in ``create``."""
        return await self._job(filling.describe) and await self.fill(filling, owner, patience)

    async def fill(self, filling: Filling, owner: LockOwner | None = None, patience: int = 0) -> bool:
        """Plan a view and fill it. False: only the engine itself can."""
        self.refilling.append(filling)
        try:
            filling.phase = HydrationPhase.PLANNING
            await self._beside(filling.plan, filling.cancel, self._refills)
            return await self._go(filling, self._refills, owner, patience)
        finally:
            self.refilling.remove(filling)

    def close(self) -> None:
        """Cancel what runs."""
        for filling in (*self.under_way, *self.refilling):
            filling.cancel.set()
        for threads in (self._threads, self._refills):
            threads.shutdown(wait=False, cancel_futures=True)


@dataclass(slots=True)
class Creation(Filling):
    """One view that is being created. The fields that freshet.hydrations shows may be read on any thread.

    ``backend``: the session of the statement. ``memory``: the bytes that intermediate results may use, 0 for no limit.
    ``started``: µs since 2000. ``choice``: who computes the first contents. ``step``: Spark's current step.
    """

    statement: CreateView
    prepared: Prepared
    definer: Callable[[Writer], Definer]
    backend: int
    started: int
    spark: SparkSession
    memory: int
    notify: Callable[[str], None]
    _: KW_ONLY
    choice: Choice | None = None
    step: str | None = None
    _spark_place: tuple[int, int, int] | None = None
    _rel: Rel | None = None
    _owner: int = BOOTSTRAP_ID

    @property
    def place(self) -> tuple[int, int, int] | None:
        return self._spark_place or super(Creation, self).place

    @property
    def by(self) -> str | None:
        """Who computes: local or spark; None before that is known."""
        return None if self.choice is None else self.choice.by.value

    @property
    def replaces(self) -> bool:
        """Whether there is a view of that name already."""
        return False

    def describe(self) -> Way:
        """Check the definition."""
        self.phase = HydrationPhase.PLANNING
        self.engine.flush()
        writer = Writer.begin(self.engine)
        writer.planning = self.prepared.planning
        self.prepared.check_current(writer.catalog)
        definer = self.definer(writer)
        self._owner = writer.owner
        described = definer.described(self.statement, stays=True)
        if described is None:
            return Way.NOT_AT_ALL
        self._view, self._rel = described
        return Way.BESIDE if writer.catalog is self.engine.catalog and self._fits(self._view) else Way.WITHIN

    def _fits(self, view: Relation) -> bool:
        """Whether the described view can be hydrated beside the engine."""
        return view.id not in self.engine.catalog.relations

    def plan(self) -> None:
        """Make the physical plan, with today's arrangements."""
        assert self._rel is not None
        assert self._view is not None
        published = self.engine.published
        planning = self.prepared.planning
        plan = plan_maintained(self._rel, published, planning, self._view.schema)
        if self.statement.hydrate is Hydrate.SPARK and searches_ranges(plan):
            self.notify("joins of this view filter ranges instead of searching them, as Spark needs it")
            planning = replace(planning, joins=Joins.LINEAR)
            self._view = replace(self._view, planning=planning)
            plan = plan_maintained(self._rel, published, planning, self._view.schema)
        self._plan = plan
        versions = (published.version(relation) for relation in stored_in(plan))
        rows = sum(version.count for version in versions if version is not None)
        self.choice = choose(self.statement.hydrate, plan, rows, self.spark.settings.master, self.memory)

    def check_local(self) -> None:
        """0A000: Spark is asked to hydrate a view that only the engine thread can create."""
        if self.statement.hydrate is Hydrate.SPARK:
            message = (
                "Spark cannot hydrate a view whose definition changes others, or that reads a running loop's inside"
            )
            raise SqlError("0A000", message, hint="Leave HYDRATE = spark out of the statement.")

    def _compute(self, flow: Detached) -> None:
        if not self._by_spark():
            flow.run()

    def _by_spark(self) -> bool:
        """Have Spark compute the first contents, if it was chosen; whether it did."""
        choice = self.choice
        if choice is None or choice.by is not Hydrate.SPARK:
            return False
        from storage.spark.blocks import IdsClashError

        try:
            self._run_spark()
        except IdsClashError:
            self.notify("two values clash under one id: the view is hydrated by the server itself")
            return False
        except SqlError as error:
            if error.sqlstate != "58000" or self.statement.hydrate is Hydrate.SPARK:
                raise
            self.notify(f"the view is hydrated by the server itself: {error.message}")
            return False
        finally:
            self.step = self._spark_place = None
            self.choice = Choice(Hydrate.LOCAL, "the engine catches up")
        return True

    def _run_spark(self) -> None:
        from planner.distributed.hydration import hydrate_by_spark

        assert self._flow is not None
        assert self._plan is not None
        assert self._installed is not None

        def progress(what: str, steps: int, done: int, updates: int) -> None:
            self.step, self._spark_place = what, (steps, done, updates)

        context = self.engine.renderer.context
        hydrate_by_spark(self._flow, self._plan, self._installed, self.spark, context, self.cancel, progress)

    def finish(self) -> None:
        """Catch up, take over the view and commit it. StaleError: a relation that it reads has changed, or its name is
        taken. Raises BlockedError before anything has changed."""
        assert self._renderer is not None
        assert self._view is not None
        engine, view = self.engine, self._view
        Writer.begin(engine).name(view.schema_name, view.name)
        flow = self._caught_up()
        writer = Writer.begin(engine)
        if (view.schema_name, view.name) in writer.catalog.names or not writer.catalog.has_schema(view.schema_name):
            raise StaleError
        view = replace(view, created=engine.timeline.epoch(engine.timeline.last) + 1)
        writer.owner = self._owner
        writer.own(securable(view), view.schema_name)
        writer.catalog = writer.catalog.with_relation(view, engine.next_version())
        writer.created.append(view)
        flow.attach()
        engine.adopt(self._renderer, view.id, self._histories(view.created))
        try:
            writer.commit()
        except BaseException:
            writer.rollback()
            raise
        engine.failing.let_go()

    def check_current(self) -> None:
        self.prepared.check_current(self.engine.catalog)
