"""CREATE SOURCE and ALTER SOURCE; the other DROP statements include DROP SOURCE."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError, unsupported
from sql.catalog.catalog import RelationKind
from sql.catalog.connection import Connection, Options, OptionValue
from sql.statements.connections import ConnectionStatement, CreateSource, SetPaused
from sql.statements.rename import Renaming
from sql.syntax.grammar.cursor import TokenCursor
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.utility.renaming import renaming
from storage.types.order import interval_total
from storage.types.text_interval import parse_interval

SYSTEMS: Final = ("files", "kafka", "rate", "jdbc")
ENVELOPES: Final = ("none", "upsert", "debezium")
LEAST_TRIGGER: Final = 100_000


def connection_statement(cursor: TokenCursor) -> ConnectionStatement | Renaming | None:
    """The whole statement, None if another one is next. Raises 42601, 22023."""
    if cursor.accept("alter", "source"):
        return _alter(cursor)
    if not cursor.accept("create", "source"):
        return None
    exists = cursor.accept("if", "not", "exists")
    name = cursor.table_name()
    cursor.expect("from")
    system = cursor.accept_one_of(*SYSTEMS)
    if system is None:
        raise cursor.error()
    about = options(cursor) if cursor.is_symbol("(") else ()
    cursor.expect("into")
    table = cursor.table_name()
    columns = cursor.enclosed(cursor.name) if cursor.is_symbol("(") else ()
    connection = _with(cursor, Connection(system, about, columns)) if cursor.accept("with") else None
    return CreateSource(
        name.schema_name, name.name, connection or Connection(system, about, columns),
        (table.schema_name, table.name), exists,
    )  # fmt: skip


def _alter(cursor: TokenCursor) -> ConnectionStatement | Renaming:
    exists = cursor.accept("if", "exists")
    name = cursor.table_name()
    renamed = renaming(cursor, "source", name, exists)
    if renamed is not None:
        return renamed
    word = cursor.accept_one_of("pause", "resume")
    if word is None:
        raise cursor.error()
    return SetPaused(RelationKind.SOURCE, name.schema_name, name.name, word == "pause", exists)


def options(cursor: TokenCursor) -> Options:
    """``(name [=] value, …)``: a value is a string, a number, a word, names in parentheses, or absent for true.

    Names are as they are written in quotes, and in lower case otherwise. Raises 42601 for one that comes twice.
    """
    found: dict[str, OptionValue] = {}
    cursor.expect_symbol("(")
    while True:
        at = cursor.token.start
        name = cursor.label()
        if name in found:
            raise SqlError("42601", "conflicting or redundant options", position=at + 1)
        cursor.accept_symbol("=")
        found[name] = _value(cursor)
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return tuple(found.items())


def _value(cursor: TokenCursor) -> OptionValue:
    token = cursor.token
    if cursor.is_symbol(",") or cursor.is_symbol(")"):
        return True
    if cursor.is_symbol("("):
        return cursor.enclosed(cursor.name)
    if cursor.is_word("secret") and cursor.ahead().kind in (TokenKind.WORD, TokenKind.QUOTED):
        cursor.advance()
        return "secret", cursor.name()
    if token.kind is TokenKind.WORD and token.value in ("true", "on", "false", "off"):
        return cursor.advance().value in ("true", "on")
    if token.kind in (TokenKind.END, TokenKind.SYMBOL, TokenKind.PARAMETER):
        raise cursor.error()
    return cursor.advance().value


def _with(cursor: TokenCursor, connection: Connection) -> Connection:
    at = cursor.token.start
    envelope, key, trigger = "none", connection.key, connection.trigger
    for name, value in options(cursor):
        if name == "trigger" and isinstance(value, str):
            trigger = _trigger(value, at)
        elif name == "key" and isinstance(value, tuple):
            key = value
        elif name == "envelope" and isinstance(value, str):
            envelope = value.lower()
        elif name in ("trigger", "key", "envelope"):
            raise SqlError("22023", f"invalid value for option {name.upper()}", position=at + 1)
        else:
            raise SqlError("42601", f'option "{name}" not recognized', position=at + 1,
                           hint="WITH takes TRIGGER, KEY and ENVELOPE.")  # fmt: skip
    if envelope not in ENVELOPES:
        raise unsupported(f"ENVELOPE {envelope.upper()}", "ENVELOPE NONE, UPSERT and DEBEZIUM are.", at + 1)
    if key and envelope == "none" and connection.system != "jdbc":
        raise SqlError("42601", "KEY needs ENVELOPE UPSERT or DEBEZIUM", position=at + 1)
    return Connection(connection.system, connection.options, connection.columns, key, envelope, trigger)


def _trigger(text: str, at: int) -> int:
    """An interval in µs. Raises 22007 for other text, 22023 below 0.1 s."""
    total = interval_total(parse_interval(text))
    if total < LEAST_TRIGGER:
        raise SqlError("22023", "TRIGGER must be 100 milliseconds or more", position=at + 1)
    return total
