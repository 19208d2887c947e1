"""CREATE, ALTER and DROP DATABASE."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.statements import statements as bound
from sql.statements.databases import (
    AlterDatabase,
    CreateDatabase,
    DatabaseStatement,
    DropDatabase,
    RenameDatabase,
    SetDatabase,
    Value,
)
from sql.statements.rename import Named
from sql.statements.role_spec import RoleSpec
from sql.statements.roles import ChangeOwner
from sql.syntax.grammar.cursor import TokenCursor
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.utility.role_names import role_spec

_ALTERED: Final = ("allow_connections", "connection limit", "is_template")
_CREATED: Final = (
    *_ALTERED, "collation_version", "encoding", "icu_locale", "lc_collate", "lc_ctype", "locale", "locale_provider",
    "location", "oid", "owner", "strategy", "tablespace", "template",
)  # fmt: skip


def database_statement(
    cursor: TokenCursor, assignment: Callable[[], bound.Statement]
) -> DatabaseStatement | ChangeOwner | None:
    """The whole statement, None if another one is next. ``assignment``: takes SET or RESET."""
    if cursor.accept("create", "database"):
        name = cursor.name()
        cursor.accept("with")
        return CreateDatabase(name, _options(cursor, _CREATED))
    if cursor.accept("drop", "database"):
        return _drop(cursor)
    if cursor.accept("alter", "database"):
        return _alter(cursor, assignment)
    return None


def _drop(cursor: TokenCursor) -> DropDatabase:
    exists = cursor.accept("if", "exists")
    name = cursor.name()
    force = False
    if cursor.accept("with") or cursor.is_symbol("("):
        at = cursor.token.start
        if any(word != "force" for word in cursor.enclosed(cursor.label)):
            raise SqlError("42601", "unrecognized DROP DATABASE option", position=at + 1)
        force = True
    return DropDatabase(name, exists, force)


def _alter(cursor: TokenCursor, assignment: Callable[[], bound.Statement]) -> DatabaseStatement | ChangeOwner:
    name, at = cursor.name(), cursor.token.start
    if cursor.accept("rename", "to"):
        return RenameDatabase(name, cursor.name())
    if cursor.accept("owner", "to"):
        return ChangeOwner(Named("database", None, name), role_spec(cursor))
    if cursor.is_word("set", "tablespace") or cursor.is_word("refresh"):
        raise unsupported("such an ALTER DATABASE", position=at + 1)
    if cursor.is_one_of("set", "reset"):
        found = assignment()
        if not isinstance(found, bound.SetVariable) or found.local:
            raise SqlError("42601", "ALTER DATABASE sets one setting", position=at + 1)
        everything = found.name == "all" and found.value is None
        return SetDatabase(name, None if everything else found.name, found.value)
    cursor.accept("with")
    options = _options(cursor, _ALTERED)
    if not options:
        raise cursor.error()
    return AlterDatabase(name, options)


def _options(cursor: TokenCursor, known: tuple[str, ...]) -> tuple[tuple[str, Value], ...]:
    """Options up to the end. Raises 42601 for one that is unknown or comes twice."""
    found: dict[str, Value] = {}
    while not cursor.at_end():
        at = cursor.token.start
        name = "connection limit" if cursor.accept("connection", "limit") else cursor.label()
        if name not in known:
            raise SqlError("42601", f'option "{name}" not recognized', position=at + 1)
        if name in found:
            raise SqlError("42601", "conflicting or redundant options", position=at + 1)
        cursor.accept_symbol("=")
        found[name] = _owner(cursor) if name == "owner" else _value(cursor, partial(_number, cursor))
    return tuple(found.items())


def _owner(cursor: TokenCursor) -> Value:
    if cursor.accept("default"):
        return None
    return RoleSpec(cursor.string()) if cursor.token.kind is TokenKind.STRING else role_spec(cursor)


def _value(cursor: TokenCursor, number: Callable[[], int]) -> Value:
    if cursor.accept("default"):
        return None
    word = cursor.accept_one_of("true", "on", "false", "off")
    if word is not None:
        return word in ("true", "on")
    if cursor.is_symbol("-") or cursor.token.kind is TokenKind.NUMBER:
        return number()
    if cursor.token.kind is TokenKind.STRING:
        return cursor.string()
    return cursor.label()


def _number(cursor: TokenCursor) -> int:
    negative = cursor.accept_symbol("-")
    return -cursor.integer() if negative else cursor.integer()
