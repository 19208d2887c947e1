"""CREATE and ALTER SEQUENCE."""

from __future__ import annotations

from typing import Final

from ivm.errors import unsupported
from sql.statements import definitions
from sql.statements.rename import Renaming
from sql.syntax.grammar.cursor import TokenCursor
from sql.syntax.grammar.sequences import sequence_options
from sql.syntax.utility.renaming import renaming

_CREATES: Final = (("create",), ("create", "temp"), ("create", "temporary"), ("create", "unlogged"))


def sequence_statement(cursor: TokenCursor) -> definitions.CreateSequence | definitions.AlterSequence | Renaming | None:
    """The whole statement, None if another one is next."""
    if cursor.accept("alter", "sequence"):
        exists = cursor.accept("if", "exists")
        table = cursor.table_name()
        renamed = renaming(cursor, "sequence", table, exists)
        if renamed is not None:
            return renamed
        if cursor.is_word("set"):
            raise unsupported("ALTER SEQUENCE SET", position=cursor.token.start + 1)
        if cursor.at_end():
            raise cursor.error()
        return definitions.AlterSequence(table.schema_name, table.name, sequence_options(cursor), exists)
    if not any(cursor.is_word(*words, "sequence") for words in _CREATES):
        return None
    cursor.expect("create")
    temporary = cursor.accept_one_of("temp", "temporary", "unlogged") in ("temp", "temporary")
    cursor.expect("sequence")
    exists = cursor.accept("if", "not", "exists")
    table = cursor.table_name()
    return definitions.CreateSequence(table.schema_name, table.name, sequence_options(cursor), exists, temporary)
