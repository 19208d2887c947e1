"""VERIFY MATERIALIZED VIEW: compares a view with a recompute of its query, at one read point."""

from __future__ import annotations

import threading

from ivm.errors import SqlError
from ivm.rows import RowSet, Words
from planner.expr.context import Bounds, Context
from sql.coordination.prepared import StaleError
from sql.engine.clock import POSTGRES_EPOCH
from sql.session.information import SystemInformation, system_words
from sql.session.preparing import verify_columns
from sql.session.query import snapshot_of
from sql.session.read_points import present
from sql.session.reads import Reads
from sql.session.request import Request
from sql.session.state import SessionState
from sql.session.verify import AnySnapshot, Counted, verify
from sql.session.verify_by_spark import BY_SPARK, verify_by_spark
from sql.statements.results import Result, RowsResult
from sql.statements.statements import Verify


async def verify_view(session: SessionState, reads: Reads, statement: Verify, request: Request) -> Result:
    """The rows that differ between the view and a recompute of its query, with their diffs. If Spark maintains the view
    and the server has too little memory, Spark recomputes it."""
    transaction = session.running
    published = await transaction.snapshot()
    if published.catalog.lacks([statement.view.id]):
        raise StaleError
    coordinator, view = session.coordinator, statement.view
    dictionary = coordinator.engine.dictionary.scratch()
    information = SystemInformation(session, published.catalog)
    now = published.epoch - POSTGRES_EPOCH
    context = Context(dictionary, now=now, statement_now=now, epoch=published.epoch)
    if view.id in published.failures:
        raise published.failures[view.id]
    read_point, served = await reads.served(frozenset({view.id}), present(published))
    cancel = threading.Event()
    bounds = Bounds(cancel, coordinator.budget)

    def system(relation: int) -> Words:
        return system_words(relation, information, published, dictionary)

    def read() -> tuple[Counted, AnySnapshot]:
        snapshot = snapshot_of(read_point, coordinator.engine.persistence, system)
        if view.id in served:
            return served[view.id].rows.rows_at(read_point.ordinal), snapshot
        return published.rows(view.id, published.ordinal), snapshot

    def work() -> RowSet:
        return verify(view, *read(), published, context, bounds)

    try:
        rows = await coordinator.read(work, cancel)
    except SqlError as error:
        if error.sqlstate != "53200" or view.id not in served:
            raise
        session.notices.append(BY_SPARK)
        rows = await verify_by_spark(coordinator, view, read, context)
    return RowsResult(verify_columns(statement), rows, f"VERIFY {len(rows)}", dictionary, formats=request.formats)
