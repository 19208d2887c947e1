"""GRANT, REVOKE and ALTER DEFAULT PRIVILEGES."""

from __future__ import annotations

from functools import partial
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.statements.role_spec import RoleSpec
from sql.statements.roles import AlterDefaults, Grant, GrantRole, Privilege
from sql.syntax.grammar.definitions import DefinitionGrammar
from sql.syntax.nodes.grants import GrantStatement
from sql.syntax.nodes.queries import TableName, TypeName
from sql.syntax.nodes.statements import Statement, Utility
from sql.syntax.utility.role_names import role_spec, role_specs
from sql.syntax.utility.routines import signature

_NAMED: Final = {"table": "r", "sequence": "s", "type": "T", "domain": "T"}
_SIMPLE: Final = {"schema": "n", "database": "d", "language": "l"}
_ROUTINES: Final = ("function", "procedure", "routine")
_ALL: Final = {"tables": "r", "sequences": "s", "functions": "f", "procedures": "f", "routines": "f"}
_DEFAULTS: Final = {**_ALL, "types": "T", "schemas": "n"}


def grant_statement(cursor: DefinitionGrammar) -> Statement:
    """GRANT or REVOKE, of privileges or of roles."""
    revoke = cursor.advance().value == "revoke"
    option = ""
    if revoke:
        word = next((w for w in ("grant", "admin") if cursor.accept(w, "option", "for")), "")
        option = word
    privileges = _privileges(cursor)
    if not cursor.accept("on"):
        return Utility(_roles(cursor, privileges, revoke, option))
    if option == "admin":
        raise cursor.error()
    return _objects(cursor, privileges, revoke, bool(option))


def default_privileges(cursor: DefinitionGrammar) -> AlterDefaults | None:
    """ALTER DEFAULT PRIVILEGES, None if another statement is next."""
    if not cursor.accept("alter", "default", "privileges"):
        return None
    roles: tuple[RoleSpec, ...] = ()
    schemas: tuple[str, ...] = ()
    while not cursor.is_one_of("grant", "revoke"):
        if not schemas and cursor.accept("in", "schema"):
            schemas = cursor.listed(cursor.name)
        elif not roles and (cursor.accept("for", "role") or cursor.accept("for", "user")):
            roles = role_specs(cursor)
        else:
            raise cursor.error()
    revoke = cursor.advance().value == "revoke"
    option = revoke and cursor.accept("grant", "option", "for")
    privileges = _privileges(cursor)
    cursor.expect("on")
    word = cursor.accept_one_of(*_DEFAULTS)
    if word is None:
        raise cursor.error()
    if any(p.columns for p in privileges):
        raise SqlError("0LP01", "default privileges cannot be set for columns")
    made = Grant(privileges, _DEFAULTS[word], (), (), revoke, option)
    return AlterDefaults(roles, schemas, _rest(cursor, made))


def _privileges(cursor: DefinitionGrammar) -> tuple[Privilege, ...]:
    if cursor.accept("all"):
        cursor.accept("privileges")
        columns = tuple(name for name, _ in cursor.names()) if cursor.is_symbol("(") else ()
        return (Privilege("all", columns),)
    return cursor.listed(partial(_privilege, cursor))


def _privilege(cursor: DefinitionGrammar) -> Privilege:
    name = cursor.accept_one_of("select", "references", "create") or cursor.name()
    if name == "alter" and cursor.accept("system"):
        name = "alter system"
    columns = tuple(n for n, _ in cursor.names()) if cursor.is_symbol("(") else ()
    return Privilege(name, columns)


def _roles(cursor: DefinitionGrammar, privileges: tuple[Privilege, ...], revoke: bool, option: str) -> GrantRole:
    if option == "grant" or any(p.columns or p.name == "all" for p in privileges):
        raise cursor.error()
    cursor.expect("from" if revoke else "to")
    members = role_specs(cursor)
    admin = bool(option)
    if not revoke and cursor.accept("with", "admin", "option"):
        admin = True
    grantor = role_spec(cursor) if cursor.accept("granted", "by") else None
    cascade = revoke and cursor.cascade()
    return GrantRole(tuple(p.name for p in privileges), members, revoke, admin, cascade, grantor)


def _objects(
    cursor: DefinitionGrammar, privileges: tuple[Privilege, ...], revoke: bool, option: bool
) -> GrantStatement:
    start = cursor.token
    signatures: tuple[tuple[TableName, tuple[TypeName, ...] | None], ...] = ()
    names: tuple[tuple[str | None, str], ...] = ()
    kind, inside, routine = "r", False, ""
    word = cursor.token.value
    if cursor.accept("all"):
        word = cursor.accept_one_of(*_ALL) or ""
        if not word:
            raise cursor.error()
        cursor.expect("in", "schema")
        kind, inside, routine = _ALL[word], True, word[:-1] if word[:-1] in _ROUTINES else ""
        names = tuple((None, name) for name in cursor.listed(cursor.name))
    elif cursor.is_one_of(*_ROUTINES):
        kind, routine = "f", cursor.advance().value
        signatures = cursor.listed(partial(signature, cursor, False))
    elif cursor.is_one_of(*_SIMPLE):
        kind = _SIMPLE[cursor.advance().value]
        names = tuple((None, name) for name in cursor.listed(cursor.name))
    elif cursor.is_one_of("foreign", "large", "parameter", "tablespace"):
        raise unsupported(f"GRANT ON {word.upper()}", position=start.start + 1)
    else:
        word = cursor.accept_one_of(*_NAMED) or "table"
        kind = _NAMED[word]
        names = tuple((t.schema_name, t.name) for t in cursor.listed(cursor.table_name))
    made = Grant(privileges, kind, names, (), revoke, option, inside=inside, routine=routine)
    return GrantStatement(_rest(cursor, made), signatures)


def _rest(cursor: DefinitionGrammar, made: Grant) -> Grant:
    """TO or FROM whom, and what follows."""
    cursor.expect("from" if made.revoke else "to")
    grantees = cursor.listed(partial(_grantee, cursor))
    option = made.option or (not made.revoke and cursor.accept("with", "grant", "option"))
    grantor = role_spec(cursor) if cursor.accept("granted", "by") else None
    cascade = made.revoke and cursor.cascade()
    return Grant(
        made.privileges, made.kind, made.names, grantees, made.revoke, option, cascade, grantor, made.inside,
        routine=made.routine,
    )  # fmt: skip


def _grantee(cursor: DefinitionGrammar) -> RoleSpec:
    cursor.accept("group")
    return role_spec(cursor)
