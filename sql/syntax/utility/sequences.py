"""CREATE and ALTER SEQUENCE, and the options that identity columns share with them."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError, unsupported
from sql.catalog.sequence_options import NoBound, SequenceOptions
from sql.statements import definitions
from sql.statements.rename import Renaming
from sql.syntax.lexing.cursor import Cursor
from sql.syntax.lexing.lexer import TokenKind, tokenize
from sql.syntax.utility.renaming import renaming


def is_sequence_statement(cursor: Cursor) -> bool:
    """Whether CREATE or ALTER of a sequence stands here."""
    if cursor.is_word("alter", "sequence") or cursor.is_word("create", "sequence"):
        return True
    return any(cursor.is_word("create", word, "sequence") for word in ("temp", "temporary", "unlogged"))


def sequence_statement(cursor: Cursor) -> definitions.CreateSequence | definitions.AlterSequence | Renaming:
    """The whole statement."""
    if cursor.accept("alter", "sequence"):
        exists = cursor.accept("if", "exists")
        table = cursor.table_name()
        renamed = renaming(cursor, "sequence", table, exists)
        if renamed is not None:
            return renamed
        if cursor.is_word("set"):
            raise unsupported("ALTER SEQUENCE SET", position=cursor.token.start + 1)
        if cursor.at_end():
            raise cursor.error()
        return definitions.AlterSequence(table.schema_name, table.name, sequence_options(cursor), exists)
    cursor.expect("create")
    temporary = cursor.accept_one_of("temp", "temporary", "unlogged") in ("temp", "temporary")
    cursor.expect("sequence")
    exists = cursor.accept("if", "not", "exists")
    table = cursor.table_name()
    return definitions.CreateSequence(table.schema_name, table.name, sequence_options(cursor), exists, temporary)


def identity_options(text: str, at: int) -> SequenceOptions:
    """What stands in the parentheses of GENERATED … AS IDENTITY (…); ``at``: its offset in the statement."""
    cursor = Cursor(text, tokenize(text))
    try:
        return sequence_options(cursor)
    except SqlError as error:
        if error.position is not None:
            error.position += at
        raise


def sequence_options(cursor: Cursor) -> SequenceOptions:
    """Every option up to the end. Raises 42601 for what is none, or comes twice."""
    options = SequenceOptions()
    while not cursor.at_end():
        at = cursor.token.start
        name, value = _option(cursor)
        if getattr(options, name) is not None:
            raise SqlError("42601", "conflicting or redundant options", position=at + 1)
        options = replace(options, **{name: value})  # type: ignore[arg-type]
    return options


def _option(cursor: Cursor) -> tuple[str, object]:
    token = cursor.token
    word = cursor.advance().value if token.kind is TokenKind.WORD else ""
    match word:
        case "as":
            return "type", _type(cursor)
        case "increment":
            cursor.accept("by")
            return "increment", _number(cursor)
        case "minvalue" | "maxvalue":
            return word.replace("value", "imum"), _number(cursor)
        case "no":
            if cursor.accept("cycle"):
                return "cycle", False
            bound_word = cursor.accept_one_of("minvalue", "maxvalue")
            if bound_word is None:
                raise cursor.error()
            return bound_word.replace("value", "imum"), NoBound()
        case "start":
            cursor.accept("with")
            return "start", _number(cursor)
        case "restart":
            cursor.accept("with")
            signed = cursor.token.kind is TokenKind.NUMBER or cursor.is_symbol("-") or cursor.is_symbol("+")
            return "restart", (_number(cursor) if signed else None,)
        case "cache":
            return "cache", _number(cursor)
        case "cycle":
            return "cycle", True
        case "owned":
            cursor.expect("by")
            return "owner", () if cursor.accept("none") else cursor.dotted()
        case "sequence":
            cursor.expect("name")
            return "name", cursor.dotted()
        case _:
            raise cursor.error(token)


def _type(cursor: Cursor) -> str:
    return cursor.dotted()[-1]


def _number(cursor: Cursor) -> int:
    sign = -1 if cursor.accept_symbol("-") else 1
    if sign == 1:
        cursor.accept_symbol("+")
    token = cursor.token
    value = sign * cursor.integer()
    if not -(2**63) <= value < 2**63:
        message = f'value "{value}" is out of range for type bigint'
        raise SqlError("22003", message, position=token.start + 1)
    return value
