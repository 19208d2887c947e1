"""Views whose rows are wrong: a read found more deletions than insertions of a row.

That is a fault of the server. The views that have such rows, and those that share operators with them or read them, are
taken down (``freshet.view_errors``), and each is filled anew from its definition while commits and other reads go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ivm.errors import SqlError
from sql.catalog.catalog import Relation, RelationKind
from sql.coordination.filling import Filling
from sql.coordination.hydration import Hydrators
from sql.coordination.jobs import Jobs
from sql.coordination.prepared import StaleError
from sql.engine.definition import definition_rel
from sql.engine.engine import Engine
from sql.engine.snapshot import Published, plan_maintained
from sql.engine.writer import Writer

T = TypeVar("T")


class Refills:
    """Looks for such views, and fills them anew. Used on the event loop."""

    def __init__(self, jobs: Jobs, hydrators: Hydrators, readers: ThreadPoolExecutor) -> None:
        self._jobs, self._hydrators, self._readers = jobs, hydrators, readers
        self._running: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Look at all views, soon, unless that is under way. Cost: their rows."""
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        engine = self._jobs.engine
        loop = asyncio.get_running_loop()
        wrong = await loop.run_in_executor(self._readers, views_with_negative_counts, engine.published)
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
        refill = Refill(self._jobs.engine, relation)
        try:
            return not refill.needs_engine and await self._hydrators.fill(refill)
        except (SqlError, StaleError):
            return False  # the engine says why, if it fails again

    async def close(self) -> None:
        """Stop: a view that is not filled yet is filled at the next start."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])


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
    """A view that is down, on its way back."""

    def __init__(self, engine: Engine, relation: int) -> None:
        super().__init__(engine)
        self._view = engine.catalog.relations.get(relation)

    @property
    def needs_engine(self) -> bool:
        """Whether only the engine can fill it: what its joins with PROCTIME() have found is primary data."""
        return self._view is None or bool(self._view.locks)

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
        flow.attach()
        writer = Writer.begin(engine)
        view = replace(view, created=engine.timeline.epoch(engine.timeline.last) + 1)
        writer.catalog = writer.catalog.with_relation(view, engine.next_version())
        engine.failing.filled(view.id, view.created)
        engine.adopt(self._renderer, view.id, self._histories(view.created))
        engine.add_indexes(view)
        engine.hydrate()
        writer.commit()
        engine.failing.let_go()

    def _known(self) -> Relation:
        assert self._view is not None
        return self._view
