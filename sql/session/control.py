"""Statements about the session itself: SET, SHOW, PREPARE, DEALLOCATE, LISTEN, NOTIFY, and those without effect."""

from __future__ import annotations

from typing import assert_never

from ivm.errors import SqlError
from sql.engine.clock import timestamp_now
from sql.parse import StatementText
from sql.session.care import check_cared
from sql.session.datum_rows import datum_rows
from sql.session.modes import set_modes, set_variable
from sql.session.portal import NamedStatement
from sql.session.preparing import TRANSACTION_CONTROL, prepare, show_columns
from sql.session.state import SessionState
from sql.statements.results import CommandResult, Notice, Result
from sql.statements.statements import (
    Deallocate,
    ImportSnapshot,
    Listen,
    NoOperation,
    Notify,
    Prepare,
    SetTransaction,
    SetVariable,
    Show,
)

Control = SetVariable | SetTransaction | ImportSnapshot | Show | Prepare | Deallocate | Listen | Notify | NoOperation


def run_control(session: SessionState, statement: Control) -> Result:
    """Run the statement at once."""
    match statement:
        case SetVariable():
            return _set(session, statement)
        case ImportSnapshot():
            return _import_snapshot(session, statement)
        case SetTransaction():
            return _set_transaction(session, statement)
        case Show():
            return _show(session, statement)
        case Prepare():
            return _prepare(session, statement)
        case Deallocate():
            return _deallocate(session, statement)
        case Listen():
            if statement.stop:
                session.notifications.unlisten(statement.channel)
                return CommandResult("UNLISTEN")
            assert statement.channel is not None, "LISTEN names a channel"
            session.notifications.listen(statement.channel)
            return CommandResult("LISTEN")
        case Notify():
            session.notifications.notify(statement.channel, statement.payload)
            return CommandResult("NOTIFY")
        case NoOperation():
            check_cared(session, statement)
            if statement.notice is not None:
                session.notices.append(Notice("NOTICE", "00000", statement.notice))
            return CommandResult(statement.tag)
        case _:
            assert_never(statement)


def _set(session: SessionState, statement: SetVariable) -> CommandResult:
    if statement.local and not session.in_any_block:
        session.notice("SET LOCAL can only be used in transaction blocks", "WARNING", "25P01")
    set_variable(session, statement.name, statement.value, statement.local)
    return CommandResult(statement.tag)


def _set_transaction(session: SessionState, statement: SetTransaction) -> CommandResult:
    if statement.session:
        for name, value in statement.modes.settings().items():
            session.settings.set(f"default_transaction_{name}", value)
        return CommandResult("SET")
    if not session.in_any_block:
        session.notice("SET TRANSACTION can only be used in transaction blocks", "WARNING", "25P01")
    set_modes(session, statement.modes)
    return CommandResult("SET")


def _import_snapshot(session: SessionState, statement: ImportSnapshot) -> CommandResult:
    if session.transaction is None or not session.in_any_block:
        raise SqlError("25P01", "SET TRANSACTION SNAPSHOT can only be used in transaction blocks")
    session.transaction.import_snapshot(statement.name)
    return CommandResult("SET")


def _show(session: SessionState, statement: Show) -> Result:
    columns, settings = show_columns(session, statement), session.settings
    rows: list[tuple[object, ...]]
    if statement.name.lower() == "all":
        rows = [(name, value, "") for name, value in settings.all()]
    else:
        rows = [(settings.get(statement.name),)]
    return datum_rows(session.coordinator.engine.dictionary, columns, rows, "SHOW")


def _prepare(session: SessionState, statement: Prepare) -> CommandResult:
    if statement.name in session.statements:
        raise SqlError("42P05", f'prepared statement "{statement.name}" already exists')
    prepared = prepare(session, StatementText(statement.text), statement.types)
    if isinstance(prepared.bound.statement, TRANSACTION_CONTROL):
        raise SqlError("42601", f'syntax error at or near "{statement.text.split()[0].rstrip(";")}"')
    now = timestamp_now()
    session.statements[statement.name] = NamedStatement(statement.text, statement.types, prepared, now, by_sql=True)
    return CommandResult("PREPARE")


def _deallocate(session: SessionState, statement: Deallocate) -> CommandResult:
    if statement.name is None:
        session.statements.clear()
        return CommandResult("DEALLOCATE ALL")
    if session.statements.pop(statement.name, None) is None:
        raise SqlError("26000", f'prepared statement "{statement.name}" does not exist')
    return CommandResult("DEALLOCATE")
