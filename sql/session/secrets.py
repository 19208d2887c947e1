"""CREATE, ALTER and DROP SECRET."""

from __future__ import annotations

import asyncio

from ivm.errors import SqlError
from sql.catalog.connection import secret_of
from sql.session.state import SessionState
from sql.statements.results import CommandResult
from sql.statements.secrets import DropSecret, PutSecret, SecretStatement


async def run_secret(session: SessionState, statement: SecretStatement) -> CommandResult:
    """The statement is no part of a transaction, so it cannot be in a block (25001). Raises 42501, and what
    ``storage.secrets`` does."""
    verb = "DROP" if isinstance(statement, DropSecret) else "CREATE" if statement.new else "ALTER"
    if not session.catalog.access.is_superuser(session.role):
        raise SqlError("42501", f"must be superuser to use {verb} SECRET")
    transaction = session.transaction
    if session.several or (transaction is not None and (transaction.is_block or transaction.writer is not None)):
        raise SqlError("25001", f"{verb} SECRET cannot run inside a transaction block")
    await asyncio.to_thread(_run, session, statement)
    return CommandResult(f"{verb} SECRET")


def _run(session: SessionState, statement: SecretStatement) -> None:
    secrets = session.coordinator.secrets
    if secrets is None:
        raise SqlError("55000", "this server keeps no secrets")
    match statement:
        case PutSecret():
            if statement.if_not_exists and statement.name in secrets.names():
                session.notice(f'secret "{statement.name}" already exists, skipping', sqlstate="42710")
                return
            secrets.put(statement.name, statement.value, new=statement.new)
        case DropSecret():
            for name in statement.names:
                if statement.if_exists and name not in secrets.names():
                    session.notice(f'secret "{name}" does not exist, skipping')
                    continue
                _check_unused(session, name)
                secrets.drop(name)


def _check_unused(session: SessionState, name: str) -> None:
    """2BP01 for the secret of a source of this database."""
    for relation in session.catalog.relations.values():
        given = () if relation.connection is None else relation.connection.options
        if any(secret_of(value) == name for _, value in given):
            raise SqlError("2BP01", f"cannot drop secret {name} because source {relation.name} uses it")
