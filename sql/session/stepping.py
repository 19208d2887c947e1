"""Routines that are a statement of their own (DO, CALL, SELECT f(…)): others go on between their statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ivm.errors import SqlError
from sql.coordination.stepping import Ending, LostError, Steps, is_alone
from sql.coordination.transaction import Extent
from sql.engine.writer import Writer
from sql.session.information import give_back
from sql.session.state import SessionState
from sql.session.transactions import end_and_go_on

T = TypeVar("T")


async def stepped(session: SessionState, work: Callable[[Writer], T]) -> T:
    """What ``work``, which runs a routine, returns. Raises its errors. The caller rolls back after an error."""
    transaction = session.running
    alone = is_alone(transaction)
    if alone:
        transaction.extent = Extent.ROUTINE
    told, parts = len(session.notices), Steps(transaction, work)
    try:
        return await _run(session, parts, commits=alone)
    except LostError:
        if not alone or parts.ended_one:
            raise
    del session.notices[told:]
    await end_and_go_on(session, commit=False, chain=True)
    return await _run(session, Steps(transaction, work, whole=True), commits=True)


async def _run(session: SessionState, steps: Steps[T], *, commits: bool) -> T:
    async def end(asked: Ending) -> SqlError | None:
        return await end_and_go_on(session, commit=asked.commit, chain=asked.chain)

    session.steps, session.held_locks = steps, []
    try:
        return await steps.run(end, commits=commits)
    except LostError:
        session.advisory_locks += session.held_locks
        give_back(session)
        raise
    finally:
        session.steps = None
