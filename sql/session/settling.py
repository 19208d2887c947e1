"""The commit of a transaction that has changed what all databases share.

In another database than the first one that takes two commits: what is shared is committed to the first one, then the
transaction to its own. So roles exist when something is granted to them, also after a crash in between. A transaction
that then fails, as any may at its commit, leaves what was shared.
"""

from __future__ import annotations

from sql.coordination.transaction import Transaction
from sql.session.state import SessionState


async def share(session: SessionState, transaction: Transaction) -> None:
    """Before the commit: commit to the first database what the transaction has changed of it. Raises 40001, rolled
    back."""
    databases, changed = session.coordinator.databases, transaction.shared
    if databases is None or changed is None:
        return
    try:
        await databases.merge(*changed)
    except BaseException:
        await transaction.rollback()
        raise


async def settle(session: SessionState) -> None:
    """After the commit: return when all databases know of it. Cost: nothing if nothing that is shared has changed."""
    if session.coordinator.databases is not None:
        await session.coordinator.databases.settle()
