"""What all databases share reaches those that have not changed it before its client is answered."""

from __future__ import annotations

from sql.session.state import SessionState


async def settle(session: SessionState) -> None:
    """Return when all databases know of the roles and databases that a commit has changed. Cost: nothing if it has
    changed none."""
    if session.coordinator.databases is not None:
        await session.coordinator.databases.settle()
