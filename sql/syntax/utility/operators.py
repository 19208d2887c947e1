"""CREATE, ALTER and DROP OPERATOR."""

from __future__ import annotations

from functools import partial

from ivm.errors import SqlError, unsupported
from sql.syntax.grammar.definitions import DefinitionGrammar
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.nodes.operators import (
    AlterOperatorStatement,
    CreateOperatorStatement,
    DropOperatorStatement,
    Operands,
    OptionValue,
    SetOf,
)
from sql.syntax.nodes.queries import TableName, TypeName
from sql.syntax.utility.role_names import role_spec

OperatorStatement = CreateOperatorStatement | AlterOperatorStatement | DropOperatorStatement


def operator_statement(cursor: DefinitionGrammar) -> OperatorStatement | None:
    """The whole statement, None if another one is next. Raises 0A000 for operator classes and families."""
    for verb in ("create", "alter", "drop"):
        for what in ("class", "family"):
            if cursor.is_word(verb, "operator", what):
                raise unsupported(f"{verb.upper()} OPERATOR {what.upper()}", position=cursor.token.start + 1)
    if cursor.accept("create", "operator"):
        return CreateOperatorStatement(_name(cursor), cursor.enclosed(partial(_option, cursor, valued=False)))
    if cursor.accept("drop", "operator"):
        exists = cursor.accept("if", "exists")
        names = cursor.listed(partial(operator_signature, cursor))
        return DropOperatorStatement(names, exists, cursor.cascade())
    return _alter(cursor) if cursor.accept("alter", "operator") else None


def operator_signature(cursor: DefinitionGrammar) -> tuple[TableName, Operands]:
    """``op (left, right)``, where one may be NONE. Raises 42601."""
    name = _name(cursor)
    cursor.expect_symbol("(")
    left = _operand(cursor)
    if left is not None and cursor.is_symbol(")"):
        hint = "Use NONE to denote the missing argument of a unary operator."
        raise SqlError("42601", "missing argument", hint=hint, position=cursor.token.start + 1)
    cursor.expect_symbol(",")
    right = None if left is None else _operand(cursor)
    if left is None:
        right = cursor.type_name()
    cursor.expect_symbol(")")
    return name, (left, right)


def _operand(cursor: DefinitionGrammar) -> TypeName | None:
    return None if cursor.accept("none") else cursor.type_name()


def _name(cursor: DefinitionGrammar) -> TableName:
    at = cursor.token.start
    schema, symbol = cursor.qualified_symbol()
    return TableName(schema, symbol, at)


def _alter(cursor: DefinitionGrammar) -> AlterOperatorStatement:
    name, operands = operator_signature(cursor)
    if cursor.accept("owner", "to"):
        return AlterOperatorStatement(name, operands, owner=role_spec(cursor))
    cursor.expect("set")
    if cursor.accept("schema"):
        return AlterOperatorStatement(name, operands, schema_name=cursor.name())
    return AlterOperatorStatement(name, operands, cursor.enclosed(partial(_option, cursor, valued=True)))


def _option(cursor: DefinitionGrammar, *, valued: bool) -> tuple[str, OptionValue]:
    """``name = value``; ``valued``: the value may not be left out, and NONE is none."""
    name = cursor.label()
    if not valued and not cursor.is_symbol("="):
        return name, "true"
    cursor.expect_symbol("=")
    return name, None if valued and cursor.accept("none") else _value(cursor)


def _value(cursor: DefinitionGrammar) -> OptionValue:
    at = cursor.token.start
    if cursor.token.kind is TokenKind.STRING:
        return cursor.string()
    if cursor.token.kind is TokenKind.NUMBER:
        return cursor.advance().value
    if cursor.token.kind is TokenKind.SYMBOL or cursor.is_word("operator"):
        schema, symbol = cursor.operator_symbol()
        return TableName(schema, symbol, at)
    if cursor.is_one_of("true", "false"):
        return cursor.advance().value
    if cursor.accept("setof"):
        return SetOf(cursor.type_name())
    return cursor.type_name()
