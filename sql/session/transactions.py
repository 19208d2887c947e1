"""BEGIN, COMMIT, ROLLBACK and savepoints, and the end of implicit transactions."""

from __future__ import annotations

from ivm.errors import SqlError
from sql.coordination.transaction import Extent, Transaction
from sql.engine.clock import timestamp_now
from sql.session.modes import set_modes
from sql.session.settling import settle, share
from sql.session.state import SessionState
from sql.settings.settings import FRESH, MODES
from sql.statements.results import CommandResult
from sql.statements.statements import NO_MODES, Begin, Commit, PrepareTransaction, Rollback, Savepoint, Statement


def ends_failed_block(statement: object) -> bool:
    """Whether a failed transaction block still runs this statement: one that ends it, or returns to a savepoint."""
    back = isinstance(statement, Savepoint) and statement.action == "rollback"
    return back or isinstance(statement, Commit | Rollback | PrepareTransaction)


def aborted() -> SqlError:
    """The error of every statement in a failed transaction block, except those that end it."""
    return SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")


async def run_transaction_control(session: SessionState, statement: Statement) -> CommandResult | None:
    """Run a statement that begins or ends a transaction or a savepoint; None for any other statement."""
    match statement:
        case Begin():
            return begin(session, statement)
        case Commit() | Rollback():
            return await end_explicit(session, statement)
        case PrepareTransaction():
            return await _refuse_prepared(session)
        case Savepoint():
            return await _savepoint(session, statement)
        case _:
            return None


def begin(session: SessionState, statement: Begin) -> CommandResult:
    """Run BEGIN."""
    transaction = session.transaction
    if transaction is None:
        session.new_transaction(Extent.BLOCK)
    elif transaction.is_block:
        session.notice("there is already a transaction in progress", "WARNING", "25001")
    if statement.modes != NO_MODES:
        set_modes(session, statement.modes)
    session.running.extent = Extent.BLOCK
    return CommandResult(statement.tag)


async def end_explicit(session: SessionState, statement: Commit | Rollback) -> CommandResult:
    """Run COMMIT or ROLLBACK."""
    transaction, name = session.transaction, type(statement).__name__.upper()
    if transaction is None or not transaction.is_block:
        if statement.chain:
            raise SqlError("25P01", f"{name} AND CHAIN can only be used in transaction blocks")
        session.notice("there is no transaction in progress", "WARNING", "25P01")
    if transaction is None:
        return CommandResult(name)
    commit = isinstance(statement, Commit) and not session.failed
    modes = {mode: session.settings.get(mode) for mode in MODES} if statement.chain else None
    session.transaction, session.failed = None, False
    try:
        await (_commit(session, transaction) if commit else transaction.rollback())
    except SqlError:
        _after(session, committed=False)
        raise
    _after(session, commit)
    if statement.chain:
        session.new_transaction(Extent.BLOCK, modes)
    return CommandResult("COMMIT" if commit else "ROLLBACK")


async def _refuse_prepared(session: SessionState) -> CommandResult:
    """End the transaction. Raises 55000, unless it has failed before."""
    refused = session.transaction is not None and session.transaction.is_block and not session.failed
    ended = await end_explicit(session, Rollback())
    if refused:
        hint = "Set max_prepared_transactions to a nonzero value."
        raise SqlError("55000", "prepared transactions are disabled", hint=hint)
    return ended


async def _savepoint(session: SessionState, statement: Savepoint) -> CommandResult:
    transaction = session.transaction
    if transaction is None or not transaction.is_block:
        what = {"savepoint": "SAVEPOINT", "release": "RELEASE SAVEPOINT"}.get(statement.action, "ROLLBACK TO SAVEPOINT")
        raise SqlError("25P01", f"{what} can only be used in transaction blocks")
    if statement.action == "savepoint":
        await transaction.savepoint(statement.name)
        session.settings.savepoint()
        return CommandResult("SAVEPOINT")
    if statement.action == "release":
        transaction.release_savepoint(statement.name)
        session.cursors.release(len(transaction.savepoints) + 1)
        session.settings.release(len(transaction.savepoints) + 1)
    else:
        await transaction.rollback_to(statement.name)
        session.cursors.roll_back(len(transaction.savepoints))
        session.settings.roll_back_to(len(transaction.savepoints))
        session.failed = False
    transaction.read_only = session.settings.boolean("transaction_read_only")
    session.report_settings()
    return CommandResult("RELEASE" if statement.action == "release" else "ROLLBACK")


async def end_implicit(session: SessionState) -> None:
    """Commit the implicit transaction, if one is open."""
    transaction = session.transaction
    if transaction is None or transaction.is_block:
        return
    session.transaction = None
    try:
        await _commit(session, transaction)
    except SqlError:
        _after(session, committed=False)
        raise
    _after(session, committed=True)


def ended(session: SessionState, *, committed: bool) -> None:
    """The implicit transaction has ended with its one statement, which committed by itself or was not run."""
    transaction = session.running
    session.transaction = None
    transaction.call_afterwards()
    _after(session, committed)


async def _commit(session: SessionState, transaction: Transaction) -> None:
    """Commit, unless the rows of a cursor WITH HOLD fail."""
    error = session.cursors.held_error()
    if error is not None:
        await transaction.rollback()
        raise error
    session.ending = transaction
    interrupts = session.interrupts
    try:
        await share(session, transaction)
        interrupts.forget()  # what was meant for a statement that has ended
        with interrupts.limited(session.settings.milliseconds("statement_timeout")), interrupts.interruptible():
            await transaction.commit()
        await settle(session)
    finally:
        session.ending = None


async def fail(session: SessionState) -> None:
    """After an error: mark a transaction block as failed; roll back any other transaction."""
    transaction = session.transaction
    if transaction is None:
        return
    if transaction.is_block:
        session.failed = True
        session.settings.roll_back_to(len(transaction.savepoints))
        session.report_settings()
        if not transaction.savepoints:
            await transaction.rollback()
    else:
        session.transaction = None
        await transaction.rollback()
        _after(session, committed=False)


async def end_and_go_on(session: SessionState, *, commit: bool, chain: bool) -> SqlError | None:
    """COMMIT or ROLLBACK by a procedure, which goes on in a new transaction. ``chain``: with the modes of the old one.
    The error of the commit, rolled back."""
    transaction = session.running
    modes = {mode: session.settings.get(mode) for mode in MODES} if chain else None
    error = None
    try:
        if commit:
            await share(session, transaction)
            await transaction.commit()
            await settle(session)
        else:
            await transaction.rollback()
    except SqlError as raised:
        error = raised
    _settle(session, commit and error is None)
    settings = session.settings
    settings.begin(modes)
    fresh = settings.get("transaction_isolation") in FRESH
    transaction.renew(timestamp_now(), settings.boolean("transaction_read_only"), fresh)
    return error


def _after(session: SessionState, committed: bool) -> None:
    """Other cleanup at the end of a transaction."""
    _settle(session, committed)
    session.portals.clear()


def _settle(session: SessionState, committed: bool) -> None:
    """The end of a transaction, but for its portals."""
    session.settings.end(committed)
    session.report_settings()
    session.cursors.end_transaction(committed)
    session.notifications.end_transaction(committed)
    session.coordinator.advisory.release(session.backend_id, transaction=True)
