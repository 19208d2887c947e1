"""CREATE, ALTER and DROP SECRET, as in Materialize."""

from __future__ import annotations

from sql.statements.secrets import DropSecret, PutSecret, SecretStatement
from sql.syntax.grammar.cursor import TokenCursor


def secret_statement(cursor: TokenCursor) -> SecretStatement | None:
    """The whole statement, None if another one is next."""
    if cursor.accept("create", "secret"):
        exists = cursor.accept("if", "not", "exists")
        return PutSecret(*_text(cursor), new=True, if_not_exists=exists)
    if cursor.accept("alter", "secret"):
        return PutSecret(*_text(cursor), new=False)
    if cursor.accept("drop", "secret"):
        exists = cursor.accept("if", "exists")
        return DropSecret(tuple(cursor.listed(cursor.name)), exists)
    return None


def _text(cursor: TokenCursor) -> tuple[str, str]:
    name = cursor.name()
    cursor.expect("as")
    return name, cursor.string()
