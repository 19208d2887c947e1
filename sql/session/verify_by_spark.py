"""VERIFY of a view that Spark maintains, run by Spark if the recompute needs more memory than the server has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ivm.rows import RowSet
from planner.distributed.scatter import compute
from planner.expr.context import Context
from sql.catalog.catalog import Relation
from sql.coordination.coordinator import Coordinator
from sql.session.verify import AnySnapshot, Counted, differing
from sql.statements.results import Notice
from storage.cancel import Cancel
from storage.spark.session import tagged

BY_SPARK: Final = Notice("NOTICE", "00000", "the recompute takes more than the server's memory: Spark computes it")


async def verify_by_spark(
    coordinator: Coordinator, view: Relation, read: Callable[[], tuple[Counted, AnySnapshot]], context: Context
) -> RowSet:
    """As ``verify``. ``read``: returns the view's rows, and the snapshot that its query reads. Raises the errors of a
    job of the view, 57014, and errors in rows."""
    cancel = Cancel()
    spread = coordinator.scattered.views[view.id].spread

    def work() -> RowSet:
        held, snapshot = read()
        with (
            coordinator.scattered.scratch() as folder,
            coordinator.spark.session() as spark,
            tagged(spark, folder.name, cancel),
        ):
            expected = compute(spark, folder, spread, snapshot, context, cancel.check)
        return differing(view, held, expected)

    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        cancel.set()
        await asyncio.wait({running})
        raise
