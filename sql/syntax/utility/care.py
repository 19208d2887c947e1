"""ANALYZE, CLUSTER and REINDEX: what PostgreSQL's storage needs and this one does not."""

from __future__ import annotations

from ivm.errors import SqlError
from sql.statements.statements import Cared, NoOperation
from sql.syntax.grammar.definitions import DefinitionGrammar

_KINDS = ("table", "index", "schema", "database", "system")


def care_statement(cursor: DefinitionGrammar) -> NoOperation:
    """The whole statement. Its options have no meaning here."""
    word = cursor.advance().value
    if cursor.is_symbol("("):
        cursor.enclosed(lambda: _option(cursor))
    if word == "reindex":
        return NoOperation("REINDEX", cared=(_reindexed(cursor),))
    cursor.accept("verbose")
    if word == "cluster":
        if cursor.at_end():
            return NoOperation("CLUSTER")
        cared = _named(cursor, "table")
        if cursor.accept("using"):
            cursor.name()
        return NoOperation("CLUSTER", cared=(cared,))
    return NoOperation("ANALYZE", cared=() if cursor.at_end() else tuple(cursor.listed(lambda: _analyzed(cursor))))


def _option(cursor: DefinitionGrammar) -> None:
    cursor.label()
    if not cursor.is_symbol(",") and not cursor.is_symbol(")"):
        cursor.advance()


def _named(cursor: DefinitionGrammar, kind: str) -> Cared:
    table = cursor.table_name()
    return Cared(kind, table.schema_name, table.name)


def _analyzed(cursor: DefinitionGrammar) -> Cared:
    found = _named(cursor, "table")
    if cursor.is_symbol("("):
        cursor.enclosed(cursor.name)
    return found


def _reindexed(cursor: DefinitionGrammar) -> Cared:
    kind = cursor.accept_one_of(*_KINDS)
    if kind is None:
        raise cursor.error()
    concurrently = cursor.accept("concurrently")
    if kind == "system" and concurrently:
        raise SqlError("0A000", "cannot reindex system catalogs concurrently")
    if kind in ("table", "index"):
        return _named(cursor, kind)
    return Cared(kind, None, cursor.name())
