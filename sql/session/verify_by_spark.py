"""VERIFY of a view that Spark maintains where the server has no room for the recompute: Spark does it, from nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ivm.rows import RowSet
from planner.distributed.scatter import compute
from planner.expr.context import Context
from sql.catalog.catalog import Relation
from sql.session.verify import AnySnapshot, Counted, differing
from sql.statements.results import Notice
from storage.cancel import Cancel
from storage.spark.session import tagged

if TYPE_CHECKING:
    from sql.session.session import Session

BY_SPARK: Final = Notice("NOTICE", "00000", "the recompute takes more than the server's memory: Spark computes it")


async def verify_by_spark(
    session: Session, view: Relation, read: Callable[[], tuple[Counted, AnySnapshot]], context: Context
) -> RowSet:
    """As ``verify``. ``read``: gives what the view has held, and what its query reads. Errors: as a job of the view's,
    57014, and those of rows."""
    coordinator, cancel = session.coordinator, Cancel()
    spread = coordinator.scattered.views[view.id].spread

    def stop() -> bool:
        cancel.check()
        return False

    def work() -> RowSet:
        held, snapshot = read()
        with (
            coordinator.scattered.scratch() as folder,
            coordinator.spark() as spark,
            tagged(spark, folder.name, cancel),
        ):
            expected = compute(spark, folder, spread, snapshot, context, stop)
        return differing(view, held, expected)

    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        cancel.set()
        await asyncio.wait({running})
        raise
