"""CREATE, ALTER and DROP TYPE."""

from __future__ import annotations

from ivm.errors import SqlError, unsupported
from sql.statements.rename import Named
from sql.statements.roles import ChangeOwner
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
from sql.syntax.nodes.queries import TableName, TypeName
from sql.syntax.nodes.statements import Statement, Utility
from sql.syntax.nodes.types import (
    AddAttribute,
    AlterCompositeStatement,
    Attribute,
    AttributeChange,
    CreateCompositeStatement,
    CreateRangeStatement,
    SetAttributeType,
)
from sql.syntax.utility.role_names import role_spec


def type_statement(cursor: TypeGrammar) -> Statement | None:
    """The whole statement, None if another one is next. Raises 0A000 for any other kind of type."""
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
    if cursor.accept("as", "range"):
        return _range(cursor, name)
    if not cursor.accept("as") or not cursor.accept_symbol("("):
        raise unsupported("CREATE TYPE of anything but an enum, a composite or a range type", position=at + 1)
    attributes = () if cursor.is_symbol(")") else cursor.listed(lambda: _attribute(cursor))
    cursor.expect_symbol(")")
    return CreateCompositeStatement(name, attributes)


def _range(cursor: TypeGrammar, name: TableName) -> CreateRangeStatement:
    """The options of a range type. Those that only say how an index compares bounds have no effect. Raises 42601,
    0A000."""
    subtype: TypeName | None = None
    multirange: str | None = None
    cursor.expect_symbol("(")
    while True:
        at = cursor.token.start
        option = cursor.label()
        cursor.expect_symbol("=")
        if option == "subtype":
            if subtype is not None:
                raise SqlError("42601", "conflicting or redundant options", position=at + 1)
            subtype = cursor.type_name()
        elif option == "multirange_type_name":
            multirange = cursor.table_name().name
        elif option in ("subtype_diff", "subtype_opclass", "collation"):
            cursor.table_name()
        elif option == "canonical":
            raise unsupported("a range type with a canonical function", position=at + 1)
        else:
            raise SqlError("42601", f'type attribute "{option}" not recognized', position=at + 1)
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return CreateRangeStatement(name, subtype, multirange)


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
    if cursor.accept("owner", "to"):
        return Utility(ChangeOwner(Named("type", name.schema_name, name.name), role_spec(cursor)))
    if cursor.accept("rename", "attribute"):
        old = cursor.name()
        cursor.expect("to")
        return _altered(cursor, name, (RenameAttribute(old, cursor.name()),))
    if cursor.is_word("add", "attribute") or cursor.is_word("drop", "attribute") or cursor.is_word("alter"):
        return _altered(cursor, name, cursor.listed(lambda: _change(cursor)))
    hint = "ADD VALUE, RENAME VALUE, RENAME TO, OWNER TO and the changes of attributes are there."
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
