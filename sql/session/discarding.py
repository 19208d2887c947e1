"""DISCARD, and the end of a session's temporary relations."""

from __future__ import annotations

from ivm.errors import SqlError
from sql.coordination.transaction import Extent, Transaction
from sql.ddl.create import drop_temporary
from sql.engine.clock import timestamp_now
from sql.session.modes import set_role
from sql.session.state import SequenceNumbers, SessionState
from sql.statements.results import CommandResult
from sql.statements.statements import Discard


async def discard(session: SessionState, statement: Discard) -> CommandResult:
    """DISCARD ALL, TEMP, SEQUENCES or PLANS. 25001: ALL in a transaction block."""
    what = statement.what
    if what == "all":
        if session.in_any_block:
            raise SqlError("25001", "DISCARD ALL cannot run inside a transaction block")
        session.statements.clear()
        session.cursors.close_all()
        session.notifications.unlisten(None)
        session.coordinator.advisory.release(session.backend_id, transaction=False)
        set_role(session, "session_authorization", None, local=False)
        session.settings.set("all", None)
    if what in ("all", "sequences"):
        session.numbers = SequenceNumbers()
    if what in ("all", "temp", "temporary"):
        names = {session.temporary_schema}
        transaction = session.begin_implicit()
        if session.temporary_schema in transaction.catalog.schemas:
            await transaction.write(lambda writer: drop_temporary(writer, names))
    return CommandResult(f"DISCARD {what.upper()}")


async def drop_own_temporary(session: SessionState) -> None:
    """Drop a closing session's temporary relations and their schema."""
    names = {session.temporary_schema}
    if session.temporary_schema in session.coordinator.engine.published.catalog.schemas:
        transaction = Transaction(session.coordinator.jobs, timestamp_now(), Extent.STATEMENT)
        await transaction.write(lambda writer: drop_temporary(writer, names))
