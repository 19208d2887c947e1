"""Definitions of what all databases of the server share: its roles, and the databases themselves.

The first database's catalog keeps it, and every other one has a copy. A session changes the copy that it sees, in its
transaction, like anything else in its catalog. When the transaction of another database commits, what it has changed is
committed to the first one before (``sql.session.settling``).
"""

from __future__ import annotations

from typing import TypeGuard

from ivm.errors import SqlError, unsupported
from sql.catalog.databases import FIRST_DATABASE
from sql.coordination.transaction import Extent
from sql.ddl.acting import Actor
from sql.ddl.comments import comment_on_database
from sql.ddl.databases import alter_database, check_renaming, check_whole
from sql.ddl.roles import NOTHING_ELSEWHERE, RoleChange
from sql.engine.writer import Writer
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

Shared = RoleChange | Grant | ChangeOwner | Comment | DatabaseStatement | DropOwned | ReassignOwned


def is_shared(statement: Definition) -> TypeGuard[Shared]:
    """Whether it may change what all databases share."""
    match statement:
        case Grant():
            return statement.kind == "d"
        case ChangeOwner():
            return statement.target.kind == "database"
        case Comment():
            return statement.kind == "database"
        case _:
            return isinstance(statement, RoleChange | DatabaseStatement | DropOwned | ReassignOwned)


def check_in_routine(session: SessionState, statement: Definition) -> None:
    """Raises 25001, or 0A000, for what a routine cannot do."""
    if isinstance(statement, WholeDatabase):
        raise SqlError("25001", f"{_command(statement)} cannot be executed from a function")
    if is_shared(statement) and session.catalog.access.database != FIRST_DATABASE:
        first = session.catalog.access.shared.databases[FIRST_DATABASE].name
        raise unsupported(
            "a change of roles or databases by a function", f'Functions of database "{first}" can do it.'
        )  # fmt: skip


def _command(statement: WholeDatabase) -> str:
    return "CREATE DATABASE" if isinstance(statement, CreateDatabase) else "DROP DATABASE"


async def run_whole(session: SessionState, statement: WholeDatabase, notify: Notify) -> str:
    """CREATE or DROP DATABASE; the tag. 25001: in a transaction block."""
    if session.in_any_block:
        raise SqlError("25001", f"{_command(statement)} cannot run inside a transaction block")
    databases, actor = session.coordinator.databases, session.actor(session.catalog)
    if databases is None:
        check_whole(actor, statement)
        raise unsupported(f"{_command(statement)} without a server")
    return await databases.run(statement, actor, notify)


async def prepare_shared(session: SessionState, statement: Shared) -> None:
    """See to it that the transaction commits what is shared, and ask other databases for what the statement must know.
    Raises 55006, and what ``check_renaming`` does."""
    databases, access = session.coordinator.databases, session.catalog.access
    if databases is None:
        return
    if access.database != FIRST_DATABASE and session.running.extent is Extent.STATEMENT:
        session.running.extent = Extent.MESSAGE  # its commit is not a job of this database alone
    session.elsewhere = NOTHING_ELSEWHERE
    match statement:
        case DropRole():
            session.elsewhere = await databases.elsewhere([r.name for r in statement.roles], access.database)
        case RenameDatabase():
            check_renaming(session.actor(session.catalog), access, statement)
            await databases.check_renames(statement)
        case _:
            pass


def define_shared(writer: Writer, actor: Actor, statement: Comment | DatabaseStatement) -> str:
    """Run a statement about a database; the tag. Raises what the functions called here do."""
    match statement:
        case Comment():
            comment_on_database(writer, actor, statement)
            return "COMMENT"
        case RenameDatabase() | AlterDatabase() | SetDatabase():
            return alter_database(writer, actor, statement)
        case _:
            raise AssertionError("run_whole runs it")
