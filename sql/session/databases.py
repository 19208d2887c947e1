"""Definitions of what all databases of the server share: its roles, and the databases themselves.

The first database's catalog keeps it. A session of that database changes it as it changes any catalog, in transactions
too. One of another database has it changed there, at once, as a transaction of its own: so not in a block, which could
be rolled back.
"""

from __future__ import annotations

from typing import TypeGuard

from ivm.errors import SqlError, unsupported
from sql.catalog.databases import FIRST_DATABASE
from sql.catalog.search_path import SearchPathReader
from sql.coordination.databases import Databases
from sql.ddl.acting import Actor
from sql.ddl.comments import comment_on_database
from sql.ddl.databases import alter_database, check_renaming, check_whole
from sql.ddl.drop_owned import drop_owned_databases
from sql.ddl.owned import database_lines
from sql.ddl.owners import reassign_databases
from sql.ddl.role_statements import run_role_statement
from sql.ddl.roles import NOTHING_ELSEWHERE, RoleChange
from sql.engine.writer import Writer
from sql.session.settling import settle
from sql.session.state import SessionState
from sql.statements.comments import Comment
from sql.statements.databases import (
    AlterDatabase,
    CreateDatabase,
    DatabaseStatement,
    RenameDatabase,
    SetDatabase,
    WholeDatabase,
)
from sql.statements.definitions import Definition
from sql.statements.results import Notify
from sql.statements.roles import ChangeOwner, DropOwned, DropRole, Grant, ReassignOwned

__all__ = ["check_in_routine", "define_shared", "is_shared", "run_elsewhere", "settle"]

Shared = RoleChange | Grant | ChangeOwner | Comment | DatabaseStatement


def is_shared(statement: Definition) -> TypeGuard[Shared]:
    """Whether it changes what all databases share, and nothing else."""
    match statement:
        case Grant():
            return statement.kind == "d"
        case ChangeOwner():
            return statement.target.kind == "database"
        case Comment():
            return statement.kind == "database"
        case _:
            return isinstance(statement, RoleChange | DatabaseStatement)


def check_in_routine(session: SessionState, statement: Definition) -> None:
    """Raises 25001, or 0A000, for what a routine's transaction cannot hold."""
    if isinstance(statement, WholeDatabase):
        raise SqlError("25001", f"{_command(statement)} cannot be executed from a function")
    if is_shared(statement) and not _is_first(session):
        raise _not_here(session)


def _command(statement: WholeDatabase) -> str:
    return "CREATE DATABASE" if isinstance(statement, CreateDatabase) else "DROP DATABASE"


def _is_first(session: SessionState) -> bool:
    return session.catalog.access.database == FIRST_DATABASE


def _not_here(session: SessionState) -> SqlError:
    first = session.catalog.access.shared.databases[FIRST_DATABASE].name
    hint = f'Run it outside of a transaction block, or connected to database "{first}".'
    return unsupported("a change of roles or databases inside a transaction block of this database", hint)


async def run_elsewhere(session: SessionState, statement: Definition, notify: Notify) -> str | None:
    """Run what is not, or not only, a change of this database's catalog; the tag. None: the rest is one, or all."""
    databases = session.coordinator.databases
    if isinstance(statement, WholeDatabase):
        if session.in_any_block:
            raise SqlError("25001", f"{_command(statement)} cannot run inside a transaction block")
        actor = session.actor(session.catalog)
        if databases is None:
            check_whole(actor, statement)
            raise unsupported(f"{_command(statement)} without a server")
        return await databases.run(statement, actor, notify)
    if databases is None:
        return None
    session.elsewhere = NOTHING_ELSEWHERE
    if isinstance(statement, DropRole):
        names = [role.name for role in statement.roles]
        session.elsewhere = await databases.elsewhere(names, session.catalog.access.database)
    if isinstance(statement, RenameDatabase):
        check_renaming(session.actor(session.catalog), session.catalog.access, statement)
        await databases.check_renames(statement)
    if _is_first(session):
        return None
    if is_shared(statement):
        if session.in_any_block:
            raise _not_here(session)
        return await databases.change(lambda writer: _change(session, writer, statement, notify))
    if isinstance(statement, DropOwned | ReassignOwned):
        await _owned(session, databases, statement)
    return None


def _change(session: SessionState, writer: Writer, statement: Shared, notify: Notify) -> str:
    """Run a statement over the first database's catalog."""
    actor = session.actor(writer.catalog)
    if isinstance(statement, RoleChange | Grant | ChangeOwner):
        names = SearchPathReader(writer.catalog, session.path(session.catalog))
        return run_role_statement(writer, names, notify, actor, statement, session.elsewhere)
    return define_shared(writer, actor, statement)


def define_shared(writer: Writer, actor: Actor, statement: Comment | DatabaseStatement) -> str:
    """Run a statement about a database; the tag. Raises what the functions called here do."""
    match statement:
        case Comment():
            comment_on_database(writer, actor, statement)
            return "COMMENT"
        case RenameDatabase() | AlterDatabase() | SetDatabase():
            return alter_database(writer, actor, statement)
        case _:
            raise AssertionError("run elsewhere")


async def _owned(session: SessionState, databases: Databases, statement: DropOwned | ReassignOwned) -> None:
    """What DROP OWNED and REASSIGN OWNED do to databases, which their own transaction cannot."""
    actor = session.actor(session.catalog)
    if not any(database_lines(actor.access, role) for role in actor.all_of(statement.roles)):
        return
    if session.in_any_block:
        raise _not_here(session)

    def change(writer: Writer) -> str:
        actor = session.actor(writer.catalog)
        if isinstance(statement, DropOwned):
            return drop_owned_databases(writer, actor, statement)
        return reassign_databases(writer, actor, statement)

    await databases.change(change)
