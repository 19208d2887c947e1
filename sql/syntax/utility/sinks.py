"""CREATE SINK … FROM … INTO …, and ALTER SINK."""

from __future__ import annotations

from functools import partial

from ivm.errors import unsupported
from sql.statements.rename import Renaming
from sql.statements.sinks import AlterSink, CreateSink, SinkOption
from sql.syntax.grammar.cursor import TokenCursor
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.utility.renaming import renaming

_ACTIONS = ("pause", "resume", "restart")
_CLAUSES = ("format", "envelope")


def sink_statement(cursor: TokenCursor) -> CreateSink | AlterSink | Renaming | None:
    """The whole statement, None if another one is next."""
    if cursor.accept("create", "sink"):
        return _create(cursor)
    return _alter(cursor) if cursor.accept("alter", "sink") else None


def _create(cursor: TokenCursor) -> CreateSink:
    exists = cursor.accept("if", "not", "exists")
    name = cursor.table_name()
    cursor.expect("from")
    source = cursor.table_name()
    cursor.expect("into")
    uri = cursor.string()
    options: list[SinkOption] = []
    while not cursor.at_end():
        at = cursor.token.start
        if (clause := cursor.accept_one_of(*_CLAUSES)) is not None:
            options.append((clause, cursor.label(), at))
        elif cursor.accept("key"):
            options.append(("key", cursor.enclosed(cursor.name), at))
        elif cursor.accept("with"):
            options += cursor.enclosed(partial(_option, cursor))
        else:
            raise cursor.error()
    named = (source.schema_name, source.name)
    return CreateSink(name.schema_name, name.name, named, uri, tuple(options), exists)


def _option(cursor: TokenCursor) -> SinkOption:
    at = cursor.token.start
    name = "retain history" if cursor.accept("retain", "history") else cursor.label()
    cursor.accept_symbol("=")
    if name == "retain history":
        cursor.accept("for")
    return name, _value(cursor), at


def _value(cursor: TokenCursor) -> str | bool | tuple[str, ...]:
    if cursor.is_symbol(",") or cursor.is_symbol(")"):
        return True
    if cursor.is_symbol("("):
        return cursor.enclosed(cursor.name)
    word = cursor.accept_one_of("true", "on", "false", "off")
    if word is not None:
        return word in ("true", "on")
    if cursor.token.kind in (TokenKind.STRING, TokenKind.WORD, TokenKind.QUOTED):
        return cursor.advance().value
    raise cursor.error()


def _alter(cursor: TokenCursor) -> AlterSink | Renaming:
    exists = cursor.accept("if", "exists")
    table = cursor.table_name()
    at = cursor.token.start
    action = cursor.accept_one_of(*_ACTIONS)
    if action is not None:
        return AlterSink(table.schema_name, table.name, action, exists)
    renamed = renaming(cursor, "sink", table, exists)
    if renamed is None:
        hint = "PAUSE, RESUME, RESTART, RENAME TO and SET SCHEMA are there."
        raise unsupported("such an ALTER SINK", hint, at + 1)
    return renamed
