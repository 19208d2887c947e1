"""What only some roles may run, beside definitions: files of the server, and the care of the whole store."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ivm.errors import SqlError
from sql.catalog.roles import CHECKPOINT, MONITOR, READ_SERVER_FILES, SIGNAL_BACKEND, WRITE_SERVER_FILES
from sql.catalog.securables import object_name, securable
from sql.session.state import SessionState
from sql.statements import statements as bound
from sql.statements.statements import Statement
from sql.statements.vacuum import Vacuum

_ANYONE: Final = "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."


def check_rights(session: SessionState, statement: Statement) -> None:
    """Raises 42501 where the current role may not run a statement of this kind."""
    access, role = session.catalog.access, session.role
    if access.is_superuser(role):
        return
    match statement:
        case bound.CopyFrom(path=str()) | bound.CreateTableFrom():
            _check_files(session, READ_SERVER_FILES, "read", "from")
        case bound.CopyTo(path=str()):
            _check_files(session, WRITE_SERVER_FILES, "write", "to")
        case bound.Verify():
            if not access.owns(role, securable(statement.view)) and not access.may_act_as(role, MONITOR):
                raise SqlError("42501", f"must be owner of {object_name(statement.view)}")
        case bound.VerifyDictionary():
            raise SqlError("42501", "must be superuser to verify the dictionary")
        case Vacuum():
            raise SqlError("42501", "permission denied to vacuum the store")
        case bound.NoOperation(tag="CHECKPOINT"):
            message = "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT"
            if not access.may_act_as(role, CHECKPOINT):
                raise SqlError("42501", message)
        case bound.Explain():
            check_rights(session, statement.statement)
        case _:
            pass


def _check_files(session: SessionState, needed: int, verb: str, way: str) -> None:
    if not session.catalog.access.may_act_as(session.role, needed):
        role = f"pg_{verb}_server_files"
        message = f"must be superuser or have privileges of the {role} role to COPY {way} a file"
        raise SqlError("42501", message, hint=_ANYONE)


def hidden(session: SessionState, error: SqlError) -> SqlError:
    """The error of a violated constraint, without the row's values unless the current role may read the columns."""
    access, role, subject = session.catalog.access, session.role, error.subject
    if subject is None or error.detail is None or access.is_superuser(role):
        return error
    table = session.catalog.find(subject.schema, subject.table)
    if table is None:
        return error
    if table.security.enabled and (table.security.forced or not access.owns(role, securable(table))):
        return replace(error, detail=None)
    key = next((i.columns for i in table.all_indexes if i.name == subject.constraint), None)
    columns = range(len(table.columns)) if key is None else key
    if access.has_on_columns(role, securable(table), "r", [i + 1 for i in columns]):
        return error
    return replace(error, detail=None)


def check_signal(session: SessionState, other: int, terminate: bool) -> None:
    """Raises 42501 where the current role may not signal a session of another role."""
    access, role = session.catalog.access, session.role
    verb, whose, done = ("terminate", "process", "terminated") if terminate else ("cancel", "query", "canceled")
    if access.is_superuser(role):
        return
    if access.is_superuser(other):
        raise SqlError("42501", f"must be a superuser to {verb} superuser {whose}")
    if not access.may_act_as(role, other) and not access.may_act_as(role, SIGNAL_BACKEND):
        message = f"must be a member of the role whose {whose} is being {done} or member of pg_signal_backend"
        raise SqlError("42501", message)
