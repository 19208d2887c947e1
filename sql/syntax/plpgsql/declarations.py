"""DECLARE: variables, aliases and cursors."""

from __future__ import annotations

from ivm.errors import SqlError, unsupported
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.nodes.queries import TypeName
from sql.syntax.plpgsql.cursor import BodyCursor
from sql.syntax.plpgsql.nodes import Declaration, DeclaredType


def declarations(cursor: BodyCursor) -> tuple[Declaration, ...]:
    """What stands between DECLARE and BEGIN. Raises 42601 for a name declared twice."""
    found: list[Declaration] = []
    while not cursor.is_word("begin"):
        if cursor.accept("declare"):
            continue
        if cursor.is_symbol("<<"):
            raise SqlError("42601", "block label must be placed before DECLARE, not after")
        declaration = _declaration(cursor)
        if any(d.name == declaration.name for d in found):
            raise SqlError("42601", f'duplicate declaration at or near "{declaration.name}"')
        found.append(declaration)
    return tuple(found)


def _declaration(cursor: BodyCursor) -> Declaration:
    line, name = cursor.line, cursor.variable()
    if cursor.accept("alias"):
        cursor.expect("for")
        alias = cursor.variable_name()
        cursor.end_statement()
        return Declaration(name, line, alias=alias)
    scroll = _scroll(cursor)
    if cursor.accept("cursor"):
        return _cursor(cursor, name, line, scroll)
    constant = cursor.accept("constant")
    type_ = declared_type(cursor)
    if cursor.accept("collate"):
        collation = cursor.dotted()
        if collation[-1] not in ("default", "C", "POSIX"):
            raise unsupported(f'collation "{collation[-1]}"')
    not_null = cursor.accept("not", "null")
    default = None
    if cursor.accept("default") or cursor.accept_symbol(":=") or cursor.accept_symbol("="):
        default = cursor.fragment(";")
    elif not_null:
        raise SqlError("22004", f'variable "{name}" must have a default value, since it\'s declared NOT NULL')
    cursor.end_statement()
    return Declaration(name, line, type_, constant, not_null, default)


def _scroll(cursor: BodyCursor) -> bool | None:
    if cursor.accept("no", "scroll"):
        return False
    return True if cursor.accept("scroll") else None


def _cursor(cursor: BodyCursor, name: str, line: int, scroll: bool | None) -> Declaration:
    arguments: list[tuple[str, DeclaredType]] = []
    if cursor.accept_symbol("("):
        while not cursor.accept_symbol(")"):
            if arguments:
                cursor.expect_symbol(",")
            argument = cursor.variable()
            arguments.append((argument, declared_type(cursor)))
    if not cursor.accept("is") and not cursor.accept("for"):
        raise cursor.error()
    query = cursor.fragment(";", statement=True)
    cursor.end_statement()
    return Declaration(name, line, query=query, arguments=tuple(arguments), scroll=scroll)


def declared_type(cursor: BodyCursor) -> DeclaredType:
    """A type, %TYPE or %ROWTYPE."""
    if cursor.is_symbol(";") or cursor.is_symbol(":=") or cursor.is_word("default"):
        raise cursor.missing("data type declaration")
    start = cursor.index
    parts = _dotted(cursor)
    if parts and cursor.is_symbol("%"):
        word = cursor.ahead()
        if word.kind is TokenKind.WORD and word.value in ("type", "rowtype"):
            cursor.index += 2
            return DeclaredType(row_of=parts) if word.value == "rowtype" else DeclaredType(copied=parts)
    cursor.index = start
    if cursor.accept("record"):
        return DeclaredType(TypeName("record", (), False, 0))
    return DeclaredType(cursor.type_name())


def _dotted(cursor: BodyCursor) -> tuple[str, ...]:
    parts: list[str] = []
    while cursor.token.kind in (TokenKind.WORD, TokenKind.QUOTED):
        parts.append(cursor.advance().value)
        if not cursor.is_symbol("."):
            break
        cursor.advance()
    return tuple(parts)
