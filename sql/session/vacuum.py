"""VACUUM, and what freshet.dictionary shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm.errors import SqlError
from sql.statements.results import CommandResult
from sql.statements.vacuum import Vacuum

if TYPE_CHECKING:
    from sql.coordination.coordinator import Coordinator
    from sql.session.session import Session


async def vacuum(session: Session, statement: Vacuum) -> CommandResult:
    """Values to which nothing refers leave the dictionary. 25001 in a transaction block, and after writes that are to
    commit with it (``INSERT …; VACUUM`` in one message): the sweep would wait for them."""
    transaction = session.transaction
    if transaction is not None and (transaction.explicit or transaction.writer is not None):
        raise SqlError("25001", "VACUUM cannot run inside a transaction block")
    await session.coordinator.sweeper.sweep(statement.full)
    return CommandResult("VACUUM")


def dictionary_row(coordinator: Coordinator) -> tuple[object, ...]:
    """freshet.dictionary: values in use, values that only readers still hold, memory, sweeps, values that left."""
    arena, last = coordinator.engine.dictionary.arena, coordinator.sweeper.last
    return len(arena), arena.dead, arena.byte_size, last.sweeps, last.found
