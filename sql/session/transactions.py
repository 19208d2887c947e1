"""BEGIN, COMMIT, ROLLBACK and savepoints, and the end of implicit transactions."""

from __future__ import annotations

from ivm.errors import SqlError
from sql.coordination.transaction import Extent
from sql.session.state import SessionState
from sql.statements.results import CommandResult
from sql.statements.statements import Begin, Commit, Rollback, Savepoint, Statement


def check_not_failed(session: SessionState, statement: Statement) -> None:
    """25P02: the transaction block has failed, and the statement does not end it."""
    if not session.failed:
        return
    if isinstance(statement, Commit | Rollback):
        return
    if isinstance(statement, Savepoint) and statement.action == "rollback":
        return
    raise aborted()


def aborted() -> SqlError:
    """The error of every statement in a failed transaction block, except those that end it."""
    return SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")


async def run_transaction_control(session: SessionState, statement: Statement) -> CommandResult | None:
    """Run a statement that begins or ends a transaction or a savepoint; None for any other statement."""
    match statement:
        case Begin():
            return _begin(session, statement)
        case Commit() | Rollback():
            return await _end_explicit(session, isinstance(statement, Commit))
        case Savepoint():
            return await _savepoint(session, statement)
        case _:
            return None


def _begin(session: SessionState, statement: Begin) -> CommandResult:
    transaction = session.transaction
    if transaction is None:
        session.new_transaction(Extent.BLOCK)
    elif transaction.is_block:
        session.notice("there is already a transaction in progress", "WARNING", "25001")
    else:
        transaction.extent = Extent.BLOCK
    session.set_modes(statement.modes)
    return CommandResult("BEGIN")


async def _end_explicit(session: SessionState, commit: bool) -> CommandResult:
    transaction, failed = session.transaction, session.failed
    if transaction is None or not transaction.is_block:
        session.notice("there is no transaction in progress", "WARNING", "25P01")
    if transaction is None:
        return CommandResult("COMMIT" if commit else "ROLLBACK")
    session.transaction, session.failed = None, False
    commit = commit and not failed
    try:
        await (transaction.commit() if commit else transaction.rollback())
    finally:
        _after(session, commit)
    return CommandResult("COMMIT" if commit else "ROLLBACK")


async def _savepoint(session: SessionState, statement: Savepoint) -> CommandResult:
    transaction = session.transaction
    if transaction is None or not transaction.is_block:
        what = {"savepoint": "SAVEPOINT", "release": "RELEASE SAVEPOINT"}.get(statement.action, "ROLLBACK TO SAVEPOINT")
        raise SqlError("25P01", f"{what} can only be used in transaction blocks")
    if statement.action == "savepoint":
        await transaction.savepoint(statement.name)
        return CommandResult("SAVEPOINT")
    if statement.action == "release":
        transaction.release_savepoint(statement.name)
        session.cursors.release(len(transaction.savepoints) + 1)
        return CommandResult("RELEASE")
    await transaction.rollback_to(statement.name)
    session.cursors.roll_back(len(transaction.savepoints))
    session.failed = False
    return CommandResult("ROLLBACK")


async def end_implicit(session: SessionState) -> None:
    """Commit the implicit transaction, if one is open."""
    transaction = session.transaction
    if transaction is None or transaction.is_block:
        return
    session.transaction = None
    try:
        await transaction.commit()
    except SqlError:
        _after(session, committed=False)
        raise
    _after(session, committed=True)


async def fail(session: SessionState) -> None:
    """After an error: mark a transaction block as failed; roll back any other transaction."""
    transaction = session.transaction
    if transaction is None:
        return
    if transaction.is_block:
        session.failed = True
        if not transaction.savepoints:
            await transaction.rollback()
    else:
        session.transaction = None
        await transaction.rollback()
        _after(session, committed=False)


def _after(session: SessionState, committed: bool) -> None:
    """Other cleanup at the end of a transaction."""
    session.settings.end(committed)
    session.report_settings()
    session.cursors.end_transaction(committed)
    session.notifications.end_transaction(committed)
    session.portals.clear()
    session.coordinator.advisory.release(session.backend_id, transaction=True)
