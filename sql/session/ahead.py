"""What a statement that changes rows reads, found before the engine is asked for: on a reader's thread, over what is
published, so that others commit meanwhile.

The engine's thread takes the rows if nothing that they come from has changed since. Otherwise they are found anew, a
few times, and then there (optimistic concurrency control, for one statement: Kung and Robinson, 1981).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError
from ivm.rows import RowSet
from planner.expr.context import Context
from planner.expr.functions.library import FUNCTIONS
from planner.expr.parts import walk
from planner.expr.scalar import Call, Scalar
from planner.logical.nodes import Finishing, Rel
from planner.logical.traversal import all_inputs, has_subquery, scalars
from planner.memo import by_identity
from planner.physical.nodes import Plan
from sql.bind.volatile import is_volatile
from sql.catalog.catalog import RelationKind
from sql.coordination.prepared import Prepared
from sql.engine.read_set import Reading as ReadingNote
from sql.engine.read_set import ReadSet
from sql.engine.snapshot import Published
from sql.engine.writer import Writer
from sql.session.information import SystemInformation
from sql.session.query import Reading
from sql.session.read_points import present
from sql.session.reads import Reads
from sql.session.request import Request
from sql.session.state import SessionState

TRIES: Final = 3
"""How often a statement's rows are found ahead before the engine's thread finds them."""
_REPEATED: Final = (
    "random",
    "gen_random_uuid(",
    "nextval(",
    "identity_nextval(",
    "currval(",
    "lastval(",
    "clock_timestamp(",
    "timeofday(",
)
"""The volatile functions that may be called again for what a statement gives of each row, as after a rollback."""


class OvertakenError(SqlError):
    """Commits have changed what the rows come from since they were found."""

    def __init__(self) -> None:
        super().__init__("40001", "could not serialize access due to concurrent update")


@dataclass(frozen=True, slots=True)
class Ahead:
    """The rows of a statement's source over a published state, finished. ``context`` keeps their values."""

    rows: RowSet
    plan: Plan
    published: Published
    context: Context
    asked: ReadingNote

    def check(self, writer: Writer) -> None:
        """Raise OvertakenError if the writer, on the engine's thread, would find other rows."""
        engine = writer.engine
        engine.flush()
        reads = ReadSet()
        reads.add(self.asked)
        down = not self.asked.relations.isdisjoint(engine.failures)
        if down or engine.recent.conflicts(reads, self.published.ordinal):
            raise OvertakenError


async def found_ahead(
    session: SessionState, reads: Reads, rel: Rel, finishing: Finishing, prepared: Prepared, request: Request
) -> Ahead | None:
    """The rows of a statement's source, if they are many and may be found ahead. Raises what the source raises."""
    coordinator = session.coordinator
    engine = coordinator.engine
    published = engine.published
    if prepared.bound.interpreted or not _is_steady(rel) or not all(map(_may_be_repeated, finishing.project or ())):
        return None
    plan = prepared.plan_of(rel, published)
    if prepared.overdue() or not _sees(session, prepared, published):
        return None
    information = SystemInformation(session, published.catalog)
    read_point = present(published)
    context = reads.context(engine.dictionary, request, read_point.epoch, information)
    reading = Reading(
        plan, prepared.inputs, finishing, read_point, context, information, engine.persistence, coordinator.budget,
        long=prepared.long,
    )  # fmt: skip
    if reading.small or reading.short:
        return None
    cancel = threading.Event()
    rows = await coordinator.read(lambda: reading.run(cancel), cancel)
    return Ahead(rows, plan, published, context, reads.noted(plan, prepared.inputs, context))


def _sees(session: SessionState, prepared: Prepared, published: Published) -> bool:
    """Whether the transaction sees in a statement's relations just what is published."""
    known, coordinator = published.catalog.relations, session.coordinator
    if not known.keys() >= prepared.inputs or prepared.inputs & published.failures.keys():
        return False
    if coordinator.scattered.views and coordinator.scattered.among(prepared.inputs):
        return False
    kinds = {known[i].kind for i in prepared.inputs}
    if coordinator.engine.dataflow.waits and kinds != {RelationKind.TABLE}:
        return False  # rows of views may have come or gone by themselves
    writer = session.running.writer
    return writer is None or not (writer.updates or writer.defines)


@by_identity
def _is_steady(rel: Rel) -> bool:
    """Whether its rows follow from those that it reads: ``check`` asks that again of rows that have changed, and a
    condition that draws would answer otherwise."""
    return not any(map(is_volatile, scalars(rel))) and all(map(_is_steady, all_inputs(rel)))


def _may_be_repeated(expr: Scalar) -> bool:
    calls = (part.function for part in walk(expr) if isinstance(part, Call))
    known = ((name, FUNCTIONS.get(name)) for name in calls)
    again = all(f is None or f.volatility != "volatile" or name.startswith(_REPEATED) for name, f in known)
    return again and not has_subquery(expr)  # what that reads is not among the statement's inputs
