"""Statements about the session itself: SET, SHOW, PREPARE, DEALLOCATE and those that do nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm.errors import SqlError
from ivm.words import TEXT
from sql.engine.clock import POSTGRES_EPOCH, wall_clock
from sql.parse import StatementText
from sql.session.portal import NamedStatement
from sql.statements.queries import OutputColumn
from sql.statements.results import CommandResult, Notice, Result
from sql.statements.statements import (
    Deallocate,
    Listen,
    NoOperation,
    Notify,
    Prepare,
    SetTransaction,
    SetVariable,
    Show,
    Statement,
)

if TYPE_CHECKING:
    from sql.session.execute import Executor
    from sql.session.session import Session


def run_control(session: Session, executor: Executor, statement: Statement) -> Result:
    """The statement's result; at once."""
    match statement:
        case SetVariable():
            return _set(session, statement)
        case SetTransaction():
            return _set_transaction(session, statement)
        case Show():
            return _show(session, executor, statement)
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
            if statement.notice is not None:
                session.notices.append(Notice("NOTICE", "00000", statement.notice))
            return CommandResult(statement.tag)
        case _:
            raise AssertionError(f"{type(statement).__name__} is run elsewhere")


def _set(session: Session, statement: SetVariable) -> CommandResult:
    transaction = session.transaction
    in_block = transaction is not None and transaction.explicit
    if statement.local and not in_block:
        session.notice("SET LOCAL can only be used in transaction blocks", "WARNING", "25P01")
    of_transaction = statement.name.lower().startswith("transaction_")
    session.settings.set(statement.name, statement.value, statement.local or of_transaction)
    if of_transaction and transaction is not None:
        transaction.read_only = session.settings.boolean("transaction_read_only")
    return CommandResult("SET" if statement.value is not None else "RESET")


def _set_transaction(session: Session, statement: SetTransaction) -> CommandResult:
    transaction = session.transaction
    if not statement.session and (transaction is None or not transaction.explicit):
        session.notice("SET TRANSACTION can only be used in transaction blocks", "WARNING", "25P01")
    elif statement.session:
        for name, value in statement.modes.settings().items():
            session.settings.set(f"default_transaction_{name}", value)
    else:
        session.set_modes(statement.modes)
    return CommandResult("SET")


def show_columns(session: Session, statement: Show) -> tuple[OutputColumn, ...]:
    """The columns of SHOW."""
    if statement.name.lower() == "all":
        return tuple(OutputColumn(name, TEXT) for name in ("name", "setting", "description"))
    return (OutputColumn(session.settings.label(statement.name), TEXT),)


def _show(session: Session, executor: Executor, statement: Show) -> Result:
    columns = show_columns(session, statement)
    if statement.name.lower() == "all":
        return executor.datum_rows(columns, [(n, v, "") for n, v in session.settings.all()], "SHOW")
    return executor.datum_rows(columns, [(session.settings.get(statement.name),)], "SHOW")


def _prepare(session: Session, statement: Prepare) -> CommandResult:
    if statement.name in session.statements:
        raise SqlError("42P05", f'prepared statement "{statement.name}" already exists')
    prepared = session.prepare(StatementText(statement.text), statement.types)
    now = wall_clock() - POSTGRES_EPOCH
    session.statements[statement.name] = NamedStatement(statement.text, statement.types, prepared, now, by_sql=True)
    return CommandResult("PREPARE")


def _deallocate(session: Session, statement: Deallocate) -> CommandResult:
    if statement.name is None:
        session.statements.clear()
        return CommandResult("DEALLOCATE ALL")
    if session.statements.pop(statement.name, None) is None:
        raise SqlError("26000", f'prepared statement "{statement.name}" does not exist')
    return CommandResult("DEALLOCATE")
