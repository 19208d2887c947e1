"""CREATE, ALTER and DROP of roles, DROP OWNED, and REASSIGN OWNED."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.statements import statements as bound
from sql.statements.databases import SetDatabase
from sql.statements.role_spec import RoleSpec
from sql.statements.roles import (
    AlterRole,
    CreateRole,
    DropOwned,
    DropRole,
    GrantRole,
    ReassignOwned,
    RenameRole,
    RoleStatement,
    SetRole,
)
from sql.syntax.grammar.cursor import TokenCursor
from sql.syntax.utility.role_names import role_name, role_spec, role_specs

_KINDS: Final = ("role", "user", "group")
_SWITCHES: Final = {
    "superuser": "superuser", "createdb": "createdb", "createrole": "createrole", "inherit": "inherit",
    "login": "login", "replication": "replication", "bypassrls": "bypassrls",
}  # fmt: skip
_LISTS: Final = {"role": "members", "user": "members", "admin": "admins"}


def role_statement(
    cursor: TokenCursor, assignment: Callable[[], bound.Statement]
) -> RoleStatement | SetDatabase | None:
    """The whole statement, None if another one is next. ``assignment``: parses SET or RESET of a setting."""
    if cursor.is_word("drop", "owned"):
        return _drop_owned(cursor)
    for kind in _KINDS:
        if cursor.is_word("user", "mapping"):
            return None
        if cursor.accept("create", kind):
            return _create(cursor, kind)
        if cursor.accept("alter", kind):
            return _alter(cursor, kind, assignment)
        if cursor.accept("drop", kind):
            if_exists = cursor.accept("if", "exists")
            return DropRole(role_specs(cursor), if_exists)
    return None


def reassign_owned(cursor: TokenCursor) -> ReassignOwned:
    """The whole statement REASSIGN OWNED."""
    cursor.expect("reassign", "owned", "by")
    roles = role_specs(cursor)
    cursor.expect("to")
    return ReassignOwned(roles, role_spec(cursor))


def _create(cursor: TokenCursor, kind: str) -> CreateRole:
    name = role_name(cursor)
    cursor.accept("with")
    options: dict[str, object] = {"login": True} if kind == "user" else {}
    lists: dict[str, tuple[RoleSpec, ...]] = {}
    seen: set[str] = set()
    while not cursor.at_end():
        at = cursor.token.start
        if cursor.accept("in"):
            if cursor.accept_one_of("role", "group") is None:
                raise cursor.error()
            key = "within"
        elif cursor.accept("sysid"):
            cursor.integer()
            continue
        else:
            word = cursor.accept_one_of(*_LISTS)
            key = "" if word is None else _LISTS[word]
        if key:
            lists[key] = role_specs(cursor)
        else:
            key = _option(cursor, options)
        if key in seen:
            raise SqlError("42601", "conflicting or redundant options", position=at + 1)
        seen.add(key)
    return CreateRole(
        name, tuple(options.items()), lists.get("within", ()), lists.get("members", ()), lists.get("admins", ())
    )


def _alter(cursor: TokenCursor, kind: str, assignment: Callable[[], bound.Statement]) -> RoleStatement | SetDatabase:
    at = cursor.token.start
    if kind != "group" and cursor.accept("all"):
        if not cursor.accept("in", "database"):
            hint = "ALTER DATABASE … SET does it for each database."
            raise unsupported(f"ALTER {kind.upper()} ALL SET for all databases", hint, at + 1)
        every = cursor.name()
        return SetDatabase(every, *_setting(cursor, assignment))
    role = role_spec(cursor)
    if cursor.accept("rename", "to"):
        return RenameRole(role.name, role_name(cursor))
    if kind == "group" and cursor.is_one_of("add", "drop"):
        revoke = cursor.advance().value == "drop"
        cursor.expect("user")
        return GrantRole((role.name,), role_specs(cursor), revoke, alter=True)
    if kind != "group" and (cursor.is_one_of("set", "reset") or cursor.is_word("in", "database")):
        database = cursor.name() if cursor.accept("in", "database") else None
        return SetRole(role, database, *_setting(cursor, assignment))
    cursor.accept("with")
    options: dict[str, object] = {}
    seen: set[str] = set()
    while not cursor.at_end():
        at = cursor.token.start
        if cursor.accept_one_of("user", "role"):
            return GrantRole((role.name,), role_specs(cursor), False, alter=True)
        key = _option(cursor, options)
        if key in seen:
            raise SqlError("42601", "conflicting or redundant options", position=at + 1)
        seen.add(key)
    return AlterRole(role, tuple(options.items()))


def _setting(cursor: TokenCursor, assignment: Callable[[], bound.Statement]) -> tuple[str | None, str | None]:
    """``SET name {TO | =} value``, ``RESET name`` or ``RESET ALL``: the setting, None for all, and its value."""
    at = cursor.token.start
    found = assignment() if cursor.is_one_of("set", "reset") else None
    if not isinstance(found, bound.SetVariable) or found.local:
        raise SqlError("42601", "ALTER ROLE sets one setting", position=at + 1)
    everything = found.name == "all" and found.value is None
    return None if everything else found.name, found.value


def _option(cursor: TokenCursor, options: dict[str, object]) -> str:
    """One option of a role, which ``options`` gets; its key. Raises 42601, 0A000."""
    at, word = cursor.token.start, cursor.token.value
    if cursor.accept("connection", "limit"):
        negative = cursor.accept_symbol("-")
        key, value = "limit", -cursor.integer() if negative else cursor.integer()
        if value < -1:
            raise SqlError("22023", f"invalid connection limit: {value}")
        options[key] = value
        return key
    if cursor.accept("valid", "until"):
        options["valid_until"] = cursor.string()
        return "valid_until"
    if cursor.accept("encrypted", "password") or cursor.accept("password"):
        options["password"] = None if cursor.accept("null") else cursor.string()
        return "password"
    if cursor.accept("unencrypted", "password"):
        hint = "Remove UNENCRYPTED to store the password in encrypted form instead."
        raise SqlError("0A000", "UNENCRYPTED PASSWORD is no longer supported", hint=hint, position=at + 1)
    name = word.removeprefix("no")
    if not cursor.is_word(word) or name not in _SWITCHES:
        if cursor.is_name():
            raise SqlError("42601", f'unrecognized role option "{word}"', position=at + 1)
        raise cursor.error()
    cursor.advance()
    options[_SWITCHES[name]] = name == word
    return _SWITCHES[name]


def _drop_owned(cursor: TokenCursor) -> DropOwned:
    cursor.expect("drop", "owned", "by")
    return DropOwned(role_specs(cursor), cursor.cascade())
