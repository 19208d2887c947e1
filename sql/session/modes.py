"""The modes of a transaction: when they may change, and what one that is read only refuses."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

from ivm.errors import SqlError
from sql.catalog.catalog import Relation, is_temporary
from sql.session.state import SessionState
from sql.settings.settings import FRESH, MODES
from sql.statements import statements as bound
from sql.statements.definitions import Definition
from sql.statements.statements import Modes, Statement

_WITHOUT_SNAPSHOT: Final = (
    bound.SetVariable, bound.SetTransaction, bound.ImportSnapshot, bound.Show,
    bound.Fetch, bound.Close, bound.Listen, bound.Notify,
)  # fmt: skip
"""Statements that read nothing, and so leave the modes open."""
_BETWEEN: Final = frozenset({"or", "replace", "temp", "temporary", "unlogged", "unique", "local", "recursive"})


def set_variable(session: SessionState, name: str, value: str | None, local: bool = False) -> None:
    """SET and set_config; ``value`` None restores the default. Raises what ``Settings.set`` does, and 25001: it is too
    late for that mode of the transaction."""
    settings, key = session.settings, name.lower()
    if key in ("role", "session_authorization"):
        set_role(session, key, value, local)
        return
    if key not in MODES:
        settings.set(name, value, local)
        return
    before = settings.get(key)
    settings.set(name, value, local=True)
    try:
        _check_change(session, key, before, settings.get(key))
    except SqlError:
        settings.set(name, before, local=True)
        raise
    if session.transaction is not None:
        session.transaction.read_only = settings.boolean("transaction_read_only")
        session.transaction.fresh = settings.get("transaction_isolation") in FRESH


def set_role(session: SessionState, key: str, value: str | None, local: bool) -> None:
    """SET ROLE and SET SESSION AUTHORIZATION. ``value`` None: the default. Raises 22023, 42501."""
    names, access = session.roles(session.catalog), session.catalog.access
    if session.acting:
        raise SqlError("42501", f'cannot set parameter "{key}" within security-definer function')
    if value is None or (key == "role" and value == "none"):
        back = session.login if key == "session_authorization" else session.session_role
        session.settings.set_role(key, None, access.is_superuser(back), local)
        return
    found = names.find(value)
    if found is None:
        raise SqlError("22023", f'role "{value}" does not exist')
    if key == "role" and not access.may_become(session.session_role, found.oid):
        raise SqlError("42501", f'permission denied to set role "{value}"')
    if key != "role" and found.oid != session.login and not access.is_superuser(session.login):
        raise SqlError("42501", "permission denied to set session authorization")
    session.settings.set_role(key, (value, found.oid), found.superuser, local)


def set_modes(session: SessionState, modes: Modes) -> None:
    """Apply the modes of BEGIN or SET TRANSACTION to the open transaction. 25001: it is too late."""
    for name, value in modes.settings().items():
        set_variable(session, f"transaction_{name}", value, local=True)


def _check_change(session: SessionState, key: str, before: str, after: str) -> None:
    transaction = session.transaction
    if transaction is None:
        return
    deep, late = bool(transaction.savepoints), transaction.queried
    message = None
    match key:
        case "transaction_read_only" if before == "on" and after == "off":
            if deep:
                message = "cannot set transaction read-write mode inside a read-only transaction"
            elif late:
                message = "transaction read-write mode must be set before any query"
        case "transaction_isolation" if before != after:
            if late:
                message = "SET TRANSACTION ISOLATION LEVEL must be called before any query"
            elif deep:
                message = "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"
        case "transaction_deferrable":
            if deep:
                message = "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction"
            elif late:
                message = "SET TRANSACTION [NOT] DEFERRABLE must be called before any query"
    if message is not None:
        raise SqlError("25001", message)


def check_modes(session: SessionState, statement: Statement, text: str) -> None:
    """Note that the transaction runs a statement that reads. 25006: it writes, and the transaction is read only."""
    transaction = session.running
    if not isinstance(statement, _WITHOUT_SNAPSHOT):
        transaction.queried = True
    if transaction.read_only and (name := _written(statement, text)) is not None:
        raise SqlError("25006", f"cannot execute {name} in a read-only transaction")


def _written(statement: Statement, text: str) -> str | None:
    """The command's name, if the statement writes anything but temporary tables."""
    match statement:
        case bound.Insert() | bound.Update() | bound.Delete():
            return None if _temporary(statement.table) else type(statement).__name__.upper()
        case bound.Compound():
            parts = (*(part for _, part in statement.parts), statement.main)
            changed = [part.table for part in parts if isinstance(part, bound.DataChange)]
            main = statement.main
            name = type(main).__name__.upper() if isinstance(main, bound.DataChange) else "SELECT"
            return None if all(map(_temporary, changed)) else name
        case bound.CopyFrom():
            return None if _temporary(statement.table) else "COPY FROM"
        case bound.Truncate():
            return "TRUNCATE TABLE"
        case _ if isinstance(statement, Definition | bound.CreateTableFrom):
            return _command(text)
        case _:
            return None


def _temporary(table: Relation) -> bool:
    return is_temporary(table.schema_name)


def _command(text: str) -> str:
    """CREATE TABLE, DROP MATERIALIZED VIEW, …: the first words of a definition's text."""
    verb, *rest = text.lower().replace("(", " ").split()[:8]
    words = [word for word in rest if word not in _BETWEEN]
    if words[:1] == ["materialized"]:
        return f"{verb} materialized view".upper()
    if verb == "comment":
        return "COMMENT"
    if verb not in ("create", "alter", "drop"):
        return "SELECT INTO"
    kind = "".join(takewhile(str.isalpha, words[0])) if words else ""
    if verb == "create" and kind == "table" and " as " in f" {' '.join(text.lower().split())} ":
        return "CREATE TABLE AS"
    return f"{verb} {kind}".upper()
