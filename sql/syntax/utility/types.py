"""CREATE, ALTER and DROP TYPE."""

from __future__ import annotations

from ivm.errors import unsupported
from sql.statements.types import (
    AddLabel,
    CreateEnum,
    DropAttribute,
    DropType,
    RenameAttribute,
    RenameLabel,
    RenameType,
)
from sql.syntax.grammar.types import TypeGrammar
from sql.syntax.nodes.queries import TableName
from sql.syntax.nodes.statements import Statement, Utility
from sql.syntax.nodes.types import (
    AddAttribute,
    AlterCompositeStatement,
    Attribute,
    AttributeChange,
    CreateCompositeStatement,
    SetAttributeType,
)


def type_statement(cursor: TypeGrammar) -> Statement | None:
    """The whole statement, None if another one is next. Raises 0A000 for any type but an enum or a composite type."""
    if cursor.accept("create", "type"):
        return _create(cursor)
    if cursor.accept("drop", "type"):
        return Utility(_drop(cursor))
    return _alter(cursor) if cursor.accept("alter", "type") else None


def _create(cursor: TypeGrammar) -> Statement:
    at = cursor.token.start
    name = cursor.table_name()
    if cursor.accept("as", "enum"):
        cursor.expect_symbol("(")
        labels = () if cursor.is_symbol(")") else cursor.listed(cursor.string)
        cursor.expect_symbol(")")
        return Utility(CreateEnum(name.schema_name, name.name, labels))
    if not cursor.accept("as") or not cursor.accept_symbol("("):
        raise unsupported("CREATE TYPE of anything but an enum or a composite type", position=at + 1)
    attributes = () if cursor.is_symbol(")") else cursor.listed(lambda: _attribute(cursor))
    cursor.expect_symbol(")")
    return CreateCompositeStatement(name, attributes)


def _attribute(cursor: TypeGrammar) -> Attribute:
    at = cursor.token.start
    found = Attribute(cursor.name(), cursor.type_name(), at)
    if cursor.accept("collate"):
        cursor.table_name()
    return found


def _alter(cursor: TypeGrammar) -> Statement:
    name = cursor.table_name()
    at = cursor.token.start
    if cursor.accept("add", "value"):
        exists = cursor.accept("if", "not", "exists")
        label = cursor.string()
        where = cursor.accept_one_of("before", "after")
        neighbor = None if where is None else (cursor.string(), where == "before")
        return Utility(AddLabel(name.schema_name, name.name, label, neighbor, exists))
    if cursor.accept("rename", "value"):
        old = cursor.string()
        cursor.expect("to")
        return Utility(RenameLabel(name.schema_name, name.name, old, cursor.string()))
    if cursor.accept("rename", "to"):
        return Utility(RenameType(name.schema_name, name.name, cursor.label()))
    if cursor.accept("rename", "attribute"):
        old = cursor.name()
        cursor.expect("to")
        return _altered(cursor, name, (RenameAttribute(old, cursor.name()),))
    if cursor.is_word("add", "attribute") or cursor.is_word("drop", "attribute") or cursor.is_word("alter"):
        return _altered(cursor, name, cursor.listed(lambda: _change(cursor)))
    hint = "ADD VALUE, RENAME VALUE, RENAME TO and the changes of attributes are there."
    raise unsupported("such an ALTER TYPE", hint, at + 1)


def _altered(cursor: TypeGrammar, name: TableName, changes: tuple[AttributeChange, ...]) -> AlterCompositeStatement:
    cursor.cascade()
    return AlterCompositeStatement(name, changes)


def _change(cursor: TypeGrammar) -> AttributeChange:
    if cursor.accept("add", "attribute"):
        change: AttributeChange = AddAttribute(_attribute(cursor))
    elif cursor.accept("drop", "attribute"):
        exists = cursor.accept("if", "exists")
        change = DropAttribute(cursor.name(), exists)
    else:
        cursor.expect("alter", "attribute")
        at = cursor.token.start
        name = cursor.name()
        cursor.accept("set", "data")
        cursor.expect("type")
        change = SetAttributeType(Attribute(name, cursor.type_name(), at))
    cursor.cascade()
    return change


def _drop(cursor: TypeGrammar) -> DropType:
    exists = cursor.accept("if", "exists")
    names = tuple((n.schema_name, n.name) for n in cursor.listed(cursor.table_name))
    return DropType(names, exists, cursor.cascade())
