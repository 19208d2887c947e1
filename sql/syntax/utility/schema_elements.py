"""The elements of CREATE SCHEMA: statements that create the schema's first objects (parse_utilcmd.c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ivm.errors import SqlError, unsupported
from sql.statements.definitions import CreateSequence, SchemaElement
from sql.syntax.nodes.constraints import CreateIndexStatement
from sql.syntax.nodes.grants import GrantStatement
from sql.syntax.nodes.statements import CreateTableStatement, CreateViewStatement, Statement, Utility
from sql.syntax.nodes.triggers import CreateTriggerStatement

if TYPE_CHECKING:
    from sql.syntax.grammar.cursor import TokenCursor

_STARTS: Final = ("table", "view", "index", "sequence", "trigger", "unique", "or", "recursive", "constraint", "temp",
                  "temporary", "unlogged", "global", "local")  # fmt: skip


def schema_elements(cursor: TokenCursor, parse: Callable[[], Statement]) -> tuple[SchemaElement, ...]:
    """Those up to the end, in the order in which they are made: sequences, tables, views, indexes, triggers, grants.
    ``parse``: reads one statement. Raises 42601, 42P16, 0A000."""
    found: list[SchemaElement] = []
    while not cursor.at_end():
        start = cursor.index
        at = cursor.token.start
        if not cursor.is_word("grant"):
            if not cursor.is_word("create"):
                raise cursor.error()
            cursor.advance()
            if not cursor.is_one_of(*_STARTS):
                raise cursor.error()
            cursor.index = start
        order, schema_name = _placed(parse(), at)
        found.append(SchemaElement(cursor.source(at, cursor.index), at, order, schema_name))
    return tuple(sorted(found, key=lambda e: e.order))


def _placed(tree: Statement, at: int) -> tuple[int, str | None]:
    """When an element is made, and the schema that it names."""
    match tree:
        case Utility(CreateSequence() as sequence):
            _check_lasting(sequence.temporary, at)
            return 0, sequence.schema_name
        case CreateTableStatement(source=None):
            _check_lasting(tree.temporary, at)
            return 1, tree.table.schema_name
        case CreateViewStatement(materialized=False):
            _check_lasting(tree.temporary, at)
            return 2, tree.table.schema_name
        case CreateIndexStatement():
            return 3, tree.table.schema_name
        case CreateTriggerStatement():
            return 4, tree.table.schema_name
        case GrantStatement():
            return 5, None
        case _:
            raise unsupported("CREATE SCHEMA with elements of this kind", position=at + 1)


def _check_lasting(temporary: bool, at: int) -> None:
    if temporary:
        raise SqlError("42P16", "cannot create temporary relation in non-temporary schema", position=at + 1)
