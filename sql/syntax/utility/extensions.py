"""CREATE EXTENSION: of those that every server has."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from sql.statements.statements import NoOperation
from sql.syntax.grammar.cursor import TokenCursor

_PRESENT: Final = ("plpgsql", "freshet")


def extension_statement(cursor: TokenCursor) -> NoOperation | None:
    """The whole statement, None if another one is next. Raises 42710; 0A000 for an extension that is not here."""
    if not cursor.accept("create", "extension"):
        return None
    exists = cursor.accept("if", "not", "exists")
    name = cursor.name()
    cursor.accept("with")
    while not cursor.at_end():
        if cursor.accept_one_of("schema", "version"):
            cursor.label()
        elif not cursor.accept("cascade"):
            raise cursor.error()
    if name not in _PRESENT:
        raise SqlError("0A000", f'extension "{name}" is not available')
    if not exists:
        raise SqlError("42710", f'extension "{name}" already exists')
    return NoOperation("CREATE EXTENSION", f'extension "{name}" already exists, skipping')
