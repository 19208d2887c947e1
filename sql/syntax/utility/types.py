"""CREATE, ALTER and DROP TYPE."""

from __future__ import annotations

from ivm.errors import unsupported
from sql.statements.types import AddLabel, CreateEnum, DropType, RenameLabel, RenameType, TypeStatement
from sql.syntax.grammar.cursor import TokenCursor


def type_statement(cursor: TokenCursor) -> TypeStatement | None:
    """The whole statement, None if another one is next. Raises 0A000 for any type but an enum."""
    if cursor.accept("create", "type"):
        return _create(cursor)
    if cursor.accept("drop", "type"):
        return _drop(cursor)
    return _alter(cursor) if cursor.accept("alter", "type") else None


def _create(cursor: TokenCursor) -> CreateEnum:
    at = cursor.token.start
    name = cursor.table_name()
    if not cursor.accept("as", "enum"):
        raise unsupported("CREATE TYPE of anything but an enum", position=at + 1)
    cursor.expect_symbol("(")
    labels = () if cursor.is_symbol(")") else cursor.listed(cursor.string)
    cursor.expect_symbol(")")
    return CreateEnum(name.schema_name, name.name, labels)


def _alter(cursor: TokenCursor) -> AddLabel | RenameLabel | RenameType:
    name = cursor.table_name()
    at = cursor.token.start
    if cursor.accept("add", "value"):
        exists = cursor.accept("if", "not", "exists")
        label = cursor.string()
        where = cursor.accept_one_of("before", "after")
        neighbor = None if where is None else (cursor.string(), where == "before")
        return AddLabel(name.schema_name, name.name, label, neighbor, exists)
    if cursor.accept("rename", "value"):
        old = cursor.string()
        cursor.expect("to")
        return RenameLabel(name.schema_name, name.name, old, cursor.string())
    if cursor.accept("rename", "to"):
        return RenameType(name.schema_name, name.name, cursor.label())
    raise unsupported("such an ALTER TYPE", "ADD VALUE, RENAME VALUE and RENAME TO are there.", at + 1)


def _drop(cursor: TokenCursor) -> DropType:
    exists = cursor.accept("if", "exists")
    names = tuple((n.schema_name, n.name) for n in cursor.listed(cursor.table_name))
    return DropType(names, exists, cursor.cascade())
