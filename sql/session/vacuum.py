"""VACUUM."""

from __future__ import annotations

from ivm.errors import SqlError
from sql.session.state import SessionState
from sql.statements.results import CommandResult
from sql.statements.vacuum import Vacuum


async def vacuum(session: SessionState, statement: Vacuum) -> CommandResult:
    """Remove unreferenced values from the dictionary. 25001: in a transaction block, or after writes that commit with
    it (a message's several statements, or Executes before one Sync), for which the sweep would wait forever."""
    transaction = session.transaction
    if session.several or (transaction is not None and (transaction.is_block or transaction.writer is not None)):
        raise SqlError("25001", "VACUUM cannot run inside a transaction block")
    await session.coordinator.sweeper.sweep(statement.full)
    return CommandResult("VACUUM")
