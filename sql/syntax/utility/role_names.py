"""How statements name roles."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from sql.statements.role_spec import RoleSpec
from sql.syntax.grammar.cursor import TokenCursor
from sql.syntax.lexing.lexer import TokenKind

_SPECIAL: Final = {"current_user": "current", "current_role": "current", "session_user": "session"}


def role_spec(cursor: TokenCursor) -> RoleSpec:
    """A role, CURRENT_USER, SESSION_USER or PUBLIC. Raises 42601, 42939 for NONE."""
    at, token = cursor.token.start, cursor.token
    if token.kind is TokenKind.WORD and token.value in _SPECIAL:
        cursor.advance()
        return RoleSpec(token.value, _SPECIAL[token.value])
    name = _role_word(cursor)
    if name == "none":
        raise SqlError("42939", 'role name "none" is reserved', position=at + 1)
    return RoleSpec(name, "public" if name == "public" else "named")


def role_specs(cursor: TokenCursor) -> tuple[RoleSpec, ...]:
    """A list of them."""
    return cursor.listed(lambda: role_spec(cursor))


def role_name(cursor: TokenCursor) -> str:
    """A role's own name. Raises 42601, 42939."""
    at = cursor.token.start
    found = role_spec(cursor)
    if found.kind == "public":
        raise SqlError("42939", 'role name "public" is reserved', position=at + 1)
    if found.kind != "named":
        raise SqlError("42939", f"{found.name.upper()} cannot be used as a role name here", position=at + 1)
    return found.name


def _role_word(cursor: TokenCursor) -> str:
    return cursor.advance().value if cursor.is_word("none") else cursor.name()
