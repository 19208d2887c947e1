"""REFRESH MATERIALIZED VIEW, which has something to do only if the view is down."""

from __future__ import annotations

from ivm.errors import SqlError
from sql.session.state import SessionState
from sql.session.view_errors import in_view
from sql.statements.results import CommandResult, Notice, Result
from sql.statements.statements import RefreshView

_NOTICE = "materialized views are always up to date; REFRESH does nothing"


async def refresh(session: SessionState, statement: RefreshView) -> Result:
    """Fill a view that is down. Raises the view's error if it stays down."""
    coordinator, view = session.coordinator, statement.view.id
    if view not in coordinator.engine.failures or session.running.writer is not None:
        return refresh_here(session, statement)
    try:
        await coordinator.refills.refresh(view)
    except SqlError as error:
        raise in_view(error, coordinator.engine.catalog, view, session.role) from None
    return CommandResult("REFRESH MATERIALIZED VIEW")


def refresh_here(session: SessionState, statement: RefreshView) -> Result:
    """The same in a transaction that has written. 25001: the view is down."""
    if statement.view.id in session.coordinator.engine.failures:
        raise SqlError("25001", "a materialized view that is down cannot be filled in a transaction that has written")
    session.notices.append(Notice("NOTICE", "00000", _NOTICE))
    return CommandResult("REFRESH MATERIALIZED VIEW")
