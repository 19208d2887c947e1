"""COMMENT ON object IS text."""

from __future__ import annotations

from typing import Final

from ivm.errors import unsupported
from sql.syntax.grammar.definitions import DefinitionGrammar
from sql.syntax.nodes.queries import TableName
from sql.syntax.nodes.routines import CommentStatement
from sql.syntax.utility.operators import operator_signature
from sql.syntax.utility.routines import signature

RELATIONS: Final = ("table", "view", "index", "sequence", "type", "domain", "source", "sink")
"""The kinds whose objects are named as relations are."""
_NAMES: Final = ("schema", "database", "role", "tablespace", "extension", "language")
_ROUTINES: Final = ("function", "aggregate", "procedure", "routine")
KINDS: Final = frozenset(
    {*RELATIONS, *_NAMES, *_ROUTINES, "materialized view", "operator", "constraint", "domain constraint", "trigger",
     "policy", "column"}
)  # fmt: skip
"""All kinds of objects that COMMENT knows."""


def comment_statement(cursor: DefinitionGrammar) -> CommentStatement:
    """The whole statement. 0A000: the kind of object has no comments here."""
    cursor.expect("comment", "on")
    at = cursor.token.start
    if cursor.accept("materialized", "view"):
        return _end(cursor, "materialized view", cursor.table_name())
    kind = cursor.label()
    if kind in RELATIONS:
        return _end(cursor, kind, cursor.table_name())
    if kind in _NAMES:
        at = cursor.token.start
        return _end(cursor, kind, TableName(None, cursor.name(), at))
    if kind in _ROUTINES:
        name, types = signature(cursor, kind == "aggregate")
        return CommentStatement(kind, name, "", types, _text(cursor))
    if kind == "operator" and not cursor.is_one_of("class", "family"):
        name, operands = operator_signature(cursor)
        return CommentStatement(kind, name, "", operands, _text(cursor))
    if kind == "constraint":
        part = cursor.name()
        cursor.expect("on")
        kind = "domain constraint" if cursor.accept("domain") else kind
        return _end(cursor, kind, cursor.table_name(), part)
    if kind in ("trigger", "policy"):
        part = cursor.name()
        cursor.expect("on")
        return _end(cursor, kind, cursor.table_name(), part)
    if kind == "column":
        *before, part = cursor.dotted()
        if not before:
            raise cursor.error()
        return _end(cursor, kind, TableName(before[-2] if len(before) > 1 else None, before[-1], at), part)
    raise unsupported(f"COMMENT ON {kind.upper()}", position=at + 1)


def _end(cursor: DefinitionGrammar, kind: str, name: TableName, part: str = "") -> CommentStatement:
    return CommentStatement(kind, name, part, None, _text(cursor))


def _text(cursor: DefinitionGrammar) -> str | None:
    """``IS`` and the text; None for NULL and for an empty text."""
    cursor.expect("is")
    return None if cursor.accept("null") else cursor.string() or None
